"""The comparison of hit-and-run: what counts as agreement."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks import hit_and_run
from flipopt.common.errors import MissingPackageError


def test_moments_of_one_law_agree_and_those_of_two_do_not() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((2, 4, 250, 50))
    apart = hit_and_run.differences(X, Y)
    assert (apart <= hit_and_run.ERRORS).mean() >= 0.96
    assert 0.5 < (apart**2).mean() < 1.6
    assert (hit_and_run.differences(X, Y + 0.5) > hit_and_run.ERRORS).all()


@pytest.mark.parametrize("name", hit_and_run.POLYTOPES)
def test_polytopes_have_the_point_inside(name: str) -> None:
    A, b, start = hit_and_run.polytope(name, 0)
    assert A.shape[1] == hit_and_run.D
    assert len(A) >= hit_and_run.FACES
    assert (A @ start + b > 0).all()


def test_without_hopsy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flipopt.common.checks.find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match="needs hopsy"):
        hit_and_run.by_hopsy(np.eye(2), np.ones(2), np.zeros(2), 0)


def test_rows_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with hit_and_run.keeping(path, hit_and_run.COLUMNS, Console(quiet=True)) as add:
        add([dict.fromkeys(hit_and_run.COLUMNS, 1) | {"polytope": "random"}])
    console = Console(width=200, record=True, quiet=False)
    hit_and_run.show(path, console)
    assert "random" in console.export_text()
