"""Points that the network itself puts in the other class, and linear constraints that hold to the last digit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

import flipopt as fo
from tests.strategies import examples, networks, points, seeds

UNITS = np.array([3e4, 12.0, 1.0, 1.0, 1e-3])


def applications(dtype: type = np.float64) -> fo.DenseNetwork:
    """A classifier of three classes, its inputs in their own units."""
    rng = np.random.default_rng(5)
    W = [rng.standard_normal((5, 9)) / UNITS[:, None], rng.standard_normal((9, 3))]
    return fo.DenseNetwork(W, [0.3 * rng.standard_normal(9), np.zeros(3)], fo.Tanh()).astype(dtype)


def rows(count: int) -> np.ndarray:
    return np.random.default_rng(6).standard_normal((count, 5)) * UNITS


OPTIONS: dict = {"weights": 1 / UNITS**2, "bounds": (-3 * UNITS, 3 * UNITS), "frozen": [1]}
LINEAR = fo.LinearConstraint(np.array([[1.0, 0, 2e4, 0, 0], [0, 0, 1, 1, 1e3]]), [-np.inf, 0.5], [1e4, 0.5])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("solver", [None, "ipopt"])
def test_the_network_says_the_other_class(dtype: type, solver: str | None) -> None:
    net, X = applications(dtype), rows(12)
    flips = fo.closest_flip_points(net, X, solver=solver, **OPTIONS)
    found = fo.closest_flip_points(net, X, solver=solver, valid=True, **OPTIONS)
    assert found.success.all()
    for x, j in zip(found.x, found.classes[:, 1]):
        assert net.predict(x) == net.predict(x.astype(dtype)) == j
    assert found.distance == pytest.approx(flips.distance, rel=1e-3 if dtype is np.float32 else 1e-9)
    assert (found.x[:, 1] == X[:, 1]).all()
    assert (np.abs(found.x) <= 3 * UNITS).all()


@pytest.mark.parametrize("solver", [None, "ipopt"])
def test_linear_constraints_hold_to_the_last_digit(solver: str | None) -> None:
    net, X = applications(), rows(15)
    for valid in (False, True):
        found = fo.closest_flip_points(net, X, solver=solver, constraints=[LINEAR], valid=valid, **OPTIONS)
        assert found.success.mean() >= 0.9
        values = found.x[found.success] @ LINEAR.A.T
        size = np.abs(found.x[found.success]) @ np.abs(LINEAR.A).T + 1
        assert ((values - LINEAR.upper) / size).max() <= 1e-15
        assert np.abs(values[:, 1] - 0.5).max() <= 1e-15 * size[:, 1].max()
        assert not valid or (net.predict(found.x) == found.classes[:, 1])[found.success].all()


def test_both_solvers_agree_under_linear_constraints() -> None:
    net, X = applications(), rows(8)
    own, ipopt = (
        fo.closest_flip_points(net, X, "all", solver=s, constraints=[LINEAR], starts=2, **OPTIONS)
        for s in ("batch", "ipopt")
    )
    both = own.success & ipopt.success
    assert both.sum() >= 12
    assert np.median(own.distance[both] / ipopt.distance[both]) == pytest.approx(1, rel=1e-6)


@examples(10)
@given(networks(smooth=True), seeds, st.integers(0, 3))
def test_no_row_depends_on_the_others(net: fo.DenseNetwork, seed: int, k: int) -> None:
    X = points(net, 4, seed)
    limit = fo.LinearConstraint(np.ones((1, net.n_inputs)), [-np.inf], [float(X.sum(axis=1).mean())])
    options: dict = {"constraints": limit, "valid": True, "solver": fo.solvers.Batch(rescue=False)}
    together = fo.closest_flip_points(net, X, **options)
    alone = fo.closest_flip_point(net, X[k], **options)
    assert np.array_equal(together.x[k], alone.x)
    assert together.status[k] is alone.status


def test_a_probability_is_reached() -> None:
    net, X = applications(), rows(10)
    found = fo.closest_flip_points(net, X, valid=0.7, **OPTIONS)
    z = net.probabilities(found.x)
    j = found.classes[:, 1]
    target = z[np.arange(10), j]
    other = np.where(np.arange(3) == j[:, None], 0.0, z).max(axis=1)
    assert found.success.all()
    assert (target / (target + other) >= 0.7).all()
    assert (target / (target + other)).min() == pytest.approx(0.7, rel=1e-9)
    assert (found.distance > fo.closest_flip_points(net, X, **OPTIONS).distance).all()


def test_a_nonlinear_constraint_holds_inside_too() -> None:
    net, x = applications(), rows(1)[0]
    flip = fo.closest_flip_point(net, x, **OPTIONS)
    ball = fo.NonlinearConstraint(
        lambda v: np.array([((v - x) ** 2 / UNITS**2).sum()]),
        lambda v: (2 * (v - x) / UNITS**2)[None],
        -np.inf,
        (1.5 * flip.distance) ** 2,
    )
    found = fo.closest_flip_point(net, x, flip.classes[1], constraints=[ball], valid=True, **OPTIONS)
    assert found.success
    assert net.predict(found.x) == flip.classes[1]


def test_a_boundary_that_cannot_be_crossed_is_said() -> None:
    # The flip at x_0 = 0 is on the bound: no point beyond it is allowed, and the tie goes to the class 0.
    net = fo.DenseNetwork([np.array([[1.0, 0.0], [0.0, 0.0]])], [np.zeros(2)])
    found = fo.closest_flip_point(net, [1.0, 0.3], 1, bounds=(0.0, 2.0), valid=True)
    assert found.status is fo.Status.ON_BOUNDARY
    assert "no allowed point" in found.message
    assert found.x == pytest.approx([0.0, 0.3])


@pytest.mark.parametrize("valid", [0.3, 1.0, "yes", None])
def test_a_probability_that_makes_no_sense_is_an_error(valid: object) -> None:
    with pytest.raises(fo.InputError, match="valid: expected True, False or a probability"):
        fo.closest_flip_point(applications(), rows(1)[0], valid=valid)


def test_inside_several_classes_is_an_error() -> None:
    net, x = applications(), rows(1)[0]
    others = [k for k in range(3) if k != net.predict(x)]
    with pytest.raises(fo.InputError, match="valid: expected a flip between two classes"):
        fo.closest_flip_point(net, x, others, valid=True)


def least_lead(W: np.ndarray, b: np.ndarray, j: int, lead: float) -> float:
    """The distance from 0 to where y = W' x + b has the class j ahead of all others by ``lead``."""
    others = np.arange(len(b)) != j
    A, c = (W[:, [j]] - W[:, others]).T, b[j] - b[others] - lead
    E = np.vstack([A.T, -c])  # least distance programming of Lawson and Hanson: |z| least where A z >= -c
    r = E @ nnls(E, np.eye(len(E))[-1])[0] - np.eye(len(E))[-1]
    return float(np.linalg.norm(r[:-1] / r[-1])) if np.linalg.norm(r) > 1e-9 else np.inf


@pytest.mark.parametrize("solver", [None, "ipopt"])
def test_any_class_may_be_the_runner_up_of_a_probability(solver: str | None) -> None:
    """On linear networks, where the closest point is that of a quadratic program for every class."""
    rng, lead = np.random.default_rng(1), np.log(9.0)
    for _ in range(4):
        W, b = rng.standard_normal((3, 4)), rng.standard_normal(4)
        net, i = fo.DenseNetwork([W], [b], []), int(b.argmax())
        exact = [np.inf if j == i else least_lead(W, b, j, lead) for j in range(4)]
        found = fo.closest_flip_point(net, np.zeros(3), valid=0.9, solver=solver)
        assert found.distance == pytest.approx(min(exact), rel=1e-6)
        assert found.classes == (i, int(np.argmin(exact)))
        table = fo.closest_flip_points(net, np.zeros((2, 3)), valid=0.9, targets="all", solver=solver)
        assert list(table.row) == [0] * 3 + [1] * 3
        for j, distance in zip(table.classes[:, 1], table.distance, strict=True):
            assert distance == pytest.approx(exact[j], rel=1e-6) or (np.isnan(distance) and np.isinf(exact[j]))


def test_any_class_may_be_the_runner_up_with_whole_numbers() -> None:
    rng, lead = np.random.default_rng(1), np.log(9.0)
    grid = np.array([[a, c] for a in range(-4, 5) for c in np.linspace(-4, 4, 1601)])
    for _ in range(3):
        W, b = rng.standard_normal((2, 4)), rng.standard_normal(4)
        net = fo.DenseNetwork([W], [b], [])
        Y = np.sort(net.logits(grid), axis=1)
        ahead = (Y[:, -1] - Y[:, -2] >= lead) & (net.predict(grid) != b.argmax())
        found = fo.closest_flip_point(net, np.zeros(2), valid=0.9, integers=[0], bounds=(-4, 4))
        if ahead.any():
            assert found.distance == pytest.approx(np.linalg.norm(grid[ahead], axis=1).min(), abs=5e-3)


def test_kernel_machines_agree_with_their_own_library() -> None:
    """A sum over many support vectors with large weights: its terms, not its value, say how it is rounded."""
    svm = pytest.importorskip("sklearn.svm")
    rng = np.random.default_rng(3)
    X = rng.standard_normal((150, 4))
    y = (X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(150) > 0).astype(int)
    for machine in (svm.SVC(C=1e4), svm.SVC(kernel="poly", degree=3, C=1e3)):
        machine.fit(X, y)
        found = fo.closest_flip_points(fo.from_sklearn(machine), X[:30], valid=True)
        inside = found.success
        assert inside.any()
        assert (machine.predict(found.x[inside]) == found.classes[inside, 1]).all()
