"""The 1- and inf-norm with so many features that no matrix of features by features fits."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import flipopt as fo
from flipopt.solvers import Ipopt, Nlopt, Scipy, Solver
from tests.cases import linear

MANY = 10_000


def plane(n: int) -> tuple[fo.DenseNetwork, np.ndarray, np.ndarray]:
    """y_0 - y_1 = a . x + 40, x and a."""
    rng = np.random.default_rng(1)
    a, x = rng.standard_normal(n), rng.uniform(-1, 1, n)
    return linear(a, 40.0 - a @ x), x, a


@pytest.mark.parametrize("norm", [1, np.inf])
def test_a_plane_s_flip_is_found_in_little_memory(norm: float) -> None:
    net, x, a = plane(MANY)
    fo.closest_flip_point(*plane(5)[:2], norm=norm)  # what is imported and compiled first is no part of it
    tracemalloc.start()
    try:
        flip = fo.closest_flip_point(net, x, norm=norm)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert flip.status is fo.Status.CONVERGED, flip.message
    assert flip.distance == pytest.approx(40.0 / np.linalg.norm(a, ord=np.inf if norm == 1 else 1), rel=1e-7)
    assert peak < 200e6  # an identity of this size has 8e8 bytes


DENSE = [Scipy(), Nlopt(), Nlopt(algorithm="AUGLAG"), Ipopt(hessian="exact")]


@pytest.mark.parametrize("solver", DENSE, ids=lambda solver: solver.name)
def test_dense_matrices_that_are_too_large_are_refused(solver: Solver) -> None:
    net, x, _ = plane(MANY)
    found = solver.solve(fo.flip_problem(net, x, (0, 1), norm=1))
    assert found.status is fo.Status.UNAVAILABLE
    assert "GiB for 20,000 variables and 20,001 constraints; max_bytes allows 4.0 GiB" in found.message


def test_how_much_is_too_large_can_be_said() -> None:
    net, x, _ = plane(50)
    setting = fo.flip_problem(net, x, (0, 1), norm=np.inf).setting
    needed = 8 * Scipy().dense_numbers(51, 101)
    assert replace(Scipy(), max_bytes=needed).cannot(setting) is None
    assert "dense matrices" in str(replace(Scipy(), max_bytes=needed - 1).cannot(setting))
    with pytest.raises(fo.InputError, match="max_bytes: expected a positive number, found 0"):
        Ipopt(max_bytes=0)
