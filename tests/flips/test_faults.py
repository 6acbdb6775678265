"""Rows at which a network or a solve fails: they have a status and a message, and the others what they have without."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import flipopt as fo
from flipopt.flips.faults import examined, isolated
from tests.solvers.batch.nets import random_network

COLUMNS = ("classes", "x", "distance", "status", "kkt_residual", "boundary_gap", "evaluations", "message", "settled")
BAD = {"nan": np.nan, "inf": -np.inf, "overflow": 1e200, "largest": 1e308}


def same(table: fo.FlipTable, other: fo.FlipTable) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(table, name), getattr(other, name), name)


@pytest.mark.parametrize("activation", [fo.Erf(1.0), fo.ReLU(), fo.ELU(1.0)], ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("bad", BAD)
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
def test_a_bad_row_changes_no_bit_of_the_others(activation: fo.Activation, bad: str) -> None:
    net, rng = random_network(3, (6, 9, 7, 4), activation), np.random.default_rng(0)
    X = rng.standard_normal((13, 6))
    whole = fo.closest_flip_points(net, X)
    worse = np.insert(X, 6, BAD[bad], axis=0)
    found = fo.closest_flip_points(net, worse)
    same(found[found.row != 6], whole)
    entry = found[found.row == 6]
    assert len(entry) == 1
    assert not entry.success[0]
    assert entry.message[0]
    assert (found.row == np.arange(14)).all()


@pytest.mark.parametrize("targets", ["all", np.zeros(3, dtype=int)], ids=["all", "given"])
def test_every_entry_of_a_row_that_is_not_finite_says_so(targets: object) -> None:
    net = random_network(1, (5, 9, 4), fo.Erf(1.0))
    X = np.random.default_rng(5).standard_normal((30, 5))
    X = X[net.predict(X) != 0][:3]
    X[1, 3] = np.nan
    found = fo.closest_flip_points(net, X, targets=targets)
    entry = found[found.row == 1]
    assert len(entry) == (3 if isinstance(targets, str) else 1)
    assert {status.name for status in entry.status} == {"NUMERICAL_ERROR"}
    assert set(entry.message) == {"x: expected finite numbers, found nan at index 3"}
    assert np.isnan(entry.distance).all()
    assert (entry.classes[:, 0] != entry.classes[:, 1]).all()
    assert found.success[found.row != 1].all()


def test_one_input_that_is_not_finite_raises() -> None:
    with pytest.raises(fo.InputError, match="x: expected finite numbers, found nan at index"):
        fo.closest_flip_point(random_network(1, (5, 9, 4), fo.Erf(1.0)), [0.0, np.nan, 0.0, 0.0, 0.0])


class Fussy(torch.nn.Module):
    """Fails for inputs with x_0 > 500, and near those with x_1 > 500."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double()

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        if bool((X[:, 0] > 500).any()):
            raise ValueError("no such input")
        if bool(((X[:, 1] > 500) & (X[:, 1] != 900)).any()):
            raise ArithmeticError("lost its way")
        return self.layers(torch.tanh(X))


@pytest.mark.parametrize("solver", [None, "ipopt"])
def test_a_module_that_raises_costs_the_rows_it_raises_for(solver: str | None) -> None:
    net = fo.TorchNetwork(Fussy(), (3,))
    X = np.random.default_rng(1).standard_normal((5, 3))
    whole = fo.closest_flip_points(net, X, solver=solver)
    worse = np.insert(X, [1, 3], [[900.0, 0.0, 0.0], [0.0, 900.0, 0.0]], axis=0)
    found = fo.closest_flip_points(net, worse, solver=solver)
    assert [status.name for status in found.status[[1, 4]]] == ["NUMERICAL_ERROR"] * 2
    assert found.message[1] == "ValueError: no such input"
    assert "lost its way" in found.message[4]
    np.testing.assert_array_equal(found.status[[0, 2, 3, 5, 6]], whole.status)
    np.testing.assert_allclose(found.distance[[0, 2, 3, 5, 6]], whole.distance, rtol=1e-9)
    alone = fo.closest_flip_point(net, worse[1], solver=solver)
    assert (alone.status.name, alone.message) == ("NUMERICAL_ERROR", "ValueError: no such input")


def test_what_fails_is_found_by_halving() -> None:
    calls = []

    def solve(rows: np.ndarray) -> list[int]:
        calls.append(len(rows))
        if 5 in rows:
            raise RuntimeError("five\nlines")
        return rows.tolist()

    parts = isolated(solve, np.arange(16), lambda rows, why: [f"{rows[0]}: {why}"])
    assert [entry for part in parts for entry in part] == [*range(5), "5: RuntimeError: five lines", *range(6, 16)]
    assert sum(calls) <= 16 * 5


def test_logits_that_are_not_finite_are_named() -> None:
    net = fo.DenseNetwork([np.array([[1e300, -1e300]])], [np.zeros(2)])
    with np.errstate(over="ignore"):
        classes, why = examined(net, np.array([[1.0], [1e10], [-1.0]]))
    assert classes.tolist() == [0, 0, 1]
    assert why.tolist() == ["", "network: expected finite logits at x, found inf", ""]
