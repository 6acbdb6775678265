from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from benchmarks.loans import CASES, Case
from data_prep.loans import GROUPS, NAMES, WHOLE, applications
from flipopt.common.point_files import read_points

FOLDER = Path(__file__).parents[2] / "benchmarks" / "problems"


@pytest.fixture(scope="module")
def network() -> fo.Network:
    return fo.load_network(FOLDER / "loans.npz")


@pytest.fixture(scope="module")
def sample() -> np.ndarray:
    return read_points(FOLDER / "loans.csv", len(NAMES))


def test_applications_are_whole_numbers_and_groups(sample: np.ndarray) -> None:
    assert (applications(len(sample), 1)[:, 3:5] == np.round(applications(len(sample), 1)[:, 3:5])).all()
    assert (sample == np.round(sample)).all()
    for group in GROUPS:
        assert (sample[:, [NAMES.index(name) for name in group]].sum(axis=1) == 1).all()


@pytest.mark.parametrize("case", [case for case in CASES if case.options == {}], ids=lambda case: case.name)
def test_two_applications_of_every_setting_are_solved(case: Case, network: fo.Network, sample: np.ndarray) -> None:
    table, _ = case.solve(network, sample[:2], sample)
    assert table.success.all(), table.message
    assert case.holds(table, sample[:2], sample).all()
    assert not case.valid or (network.predict(table.x) == table.classes[:, 1]).all()


def test_what_does_not_hold_is_seen(network: fo.Network, sample: np.ndarray) -> None:
    strict = Case("all", linear=True, whole=WHOLE, groups=True)
    table, _ = Case("plain").solve(network, sample[:3], sample)
    assert not strict.holds(table, sample[:3], sample).any()
