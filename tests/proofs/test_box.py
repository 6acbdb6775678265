from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from benchmarks.proofs_soundness import accepts
from flipopt.proofs import check
from flipopt.proofs.box import Box
from tests.proofs.cases import Bounds, distance_by_pieces, network
from tests.proofs.test_check import arrays
from tests.proofs.test_prove import assert_true
from tests.strategies import examples, seeds


def random_bounds(x: np.ndarray, rng: np.random.Generator, size: float = 1.0) -> Bounds:
    """Some of them at x itself."""
    room = size * np.abs(rng.standard_normal((2, len(x)))) * (rng.random((2, len(x))) > 0.2)
    return x - room[0], x + room[1]


def box_of(lower: np.ndarray, upper: np.ndarray) -> Box:
    n = len(lower)
    return Box(lower, upper, np.arange(n), np.eye(n), np.eye(n), 0.0)


@given(seeds)
def test_the_least_of_a_linear_form_in_a_ball_and_a_box(seed: int) -> None:
    rng, n = np.random.default_rng(seed), 5
    lower, upper = (-np.abs(rng.standard_normal(n)), np.abs(rng.standard_normal(n)))
    lower[rng.random(n) < 0.2], upper[rng.random(n) < 0.3] = 0.0, np.inf
    A, radius = rng.standard_normal((4, n)), float(np.exp(rng.standard_normal()))
    A[0, 0] = 0.0
    least = box_of(lower, upper).least(A, radius)
    D = rng.standard_normal((2000, n))
    D = np.clip(D * radius / np.linalg.norm(D, axis=1, keepdims=True), lower, upper)
    assert (least <= (D @ A.T).min(axis=0)).all()
    scales = np.geomspace(1e-6, 1e6, 4001)[:, None]
    for a, bound in zip(A, least):  # the point that takes it: -a / s, stopped by the walls, for the right s
        points = np.clip(-a / scales, lower, upper)
        best = (points @ a)[np.linalg.norm(points, axis=1) <= radius].min()
        assert bound == pytest.approx(best, rel=2e-2)


@examples(10)
@given(seeds, st.sampled_from([(2, 4, 3), (3, 3, 3, 2), (6, 2, 3), (5, 3, 2)]), st.sampled_from([0.3, 1.0, 3.0]))
def test_bounds_agree_with_the_enumeration_of_all_pieces(seed: int, widths: tuple[int, ...], size: float) -> None:
    rng = np.random.default_rng(seed)
    net, x = network(seed, widths, bias=0.5 * (seed % 2)), rng.standard_normal(widths[0])
    bounds = random_bounds(x, rng, size)
    proof, true = fo.proofs.prove(net, x, bounds=bounds), distance_by_pieces(net, x, bounds=bounds)
    assert_true(proof, true)
    assert proof.proved
    if true < np.inf:
        assert (bounds[0] <= proof.x).all()
        assert (proof.x <= bounds[1]).all()
    else:
        assert proof.upper == np.inf
        assert proof.gap == 0
        assert "there is no flip within the bounds" in proof.message


@examples(5)
@given(seed=seeds)
def test_weights_frozen_features_and_bounds_together(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng = np.random.default_rng(seed)
    net, x, weights = network(seed, (6, 3, 3, 2)), rng.standard_normal(6), np.exp(2 * rng.standard_normal(6))
    bounds, free = random_bounds(x, rng, 2.0), np.arange(6) != seed % 6
    proof = fo.proofs.prove(net, x, weights=weights, frozen=~free, bounds=bounds)
    assert_true(proof, distance_by_pieces(net, x, weights, free, bounds))
    path = tmp_path_factory.mktemp("proof") / "proof.npz"
    proof.save(path)
    checked = check(net, path)
    assert checked.accepted, checked.why
    assert "and the bounds" in str(checked)
    np.testing.assert_array_equal(checked.low[free], bounds[0][free])
    assert np.isinf(checked.low[~free]).all()


def test_one_sided_bounds_and_those_that_no_flip_meets() -> None:
    net, x = network(3, (3, 5, 4, 3)), np.random.default_rng(3).standard_normal(3)
    free = fo.proofs.prove(net, x)
    wide = fo.proofs.prove(net, x, bounds=(x - 100, None))
    assert wide.upper == pytest.approx(free.upper, rel=2e-6)
    lower = np.where(free.x < x, (x + free.x) / 2, -np.inf)
    near = fo.proofs.prove(net, x, bounds=(lower, None))
    big = np.where(np.isfinite(lower), lower, -1e3), np.full(3, 1e3)
    assert_true(near, distance_by_pieces(net, x, bounds=big))
    assert near.lower > free.upper


def test_an_image_in_the_range_of_pixels(tmp_path: Path) -> None:
    shipped, path = fo.load_shipped("mnist-fcn"), tmp_path / "proof.npz"
    free, proof = (fo.proofs.prove(shipped.network, shipped.X[0], bounds=bounds) for bounds in (None, (0, 1)))
    assert proof.proved
    assert proof.lower > free.upper * 1.1
    assert 0 <= proof.x.min() <= proof.x.max() <= 1
    proof.save(path)
    checked = check(shipped.network, path)
    assert checked.accepted, checked.why
    assert checked.lower >= proof.upper * (1 - 2e-6)
    stronger = arrays(path) | {"version": np.array(1)}  # without the bounds there is a nearer flip
    assert not accepts(shipped.network, path, stronger)


@pytest.mark.parametrize("seed", [0, 8, 12, 13])
def test_wider_bounds_are_another_claim(seed: int, tmp_path: Path) -> None:
    rng, path = np.random.default_rng(seed), tmp_path / "proof.npz"
    net, x = network(seed, (4, 3, 3)), rng.standard_normal(4)
    bounds = random_bounds(x, rng)
    fo.proofs.prove(net, x, bounds=bounds).save(path)
    assert check(net, path)
    proof = arrays(path)
    assert distance_by_pieces(net, x, bounds=(bounds[0] - 0.1, bounds[1] + 0.1)) < proof["lower"]
    assert not accepts(net, path, proof | {"floor": proof["floor"] - 0.1, "ceiling": proof["ceiling"] + 0.1})


def test_a_multiplier_of_a_bound_that_there_is_not_is_refused(tmp_path: Path) -> None:
    rng, path = np.random.default_rng(13), tmp_path / "proof.npz"
    net, x = network(13, (4, 3, 3)), rng.standard_normal(4)
    fo.proofs.prove(net, x, bounds=random_bounds(x, rng)).save(path)
    proof = arrays(path)
    assert (proof["rows"] > 4 * 3).any()  # the walls come after the neurons and the lead
    for change in ({"floors": proof["floors"][:0], "floor": proof["floor"][:0]}, {"rows": proof["rows"] + 100}):
        assert not accepts(net, path, proof | change)
    for change in (
        {"floors": proof["floors"] + 1},
        {"ceilings": proof["ceilings"][:-1]},
        {"floor": proof["floor"][None]},
    ):
        np.savez(path, **(proof | change))
        with pytest.raises(fo.FileFormatError, match="floor|ceiling"):
            check(net, path)


def test_an_input_outside_is_an_error_and_costs_others_nothing(tmp_path: Path) -> None:
    net, X = network(1, (2, 4, 3, 3)), np.array([[0.1, 0.2], [0.5, -2.0], [-0.3, 0.4]])
    with pytest.raises(fo.InputError, match="x: expected a point within the bounds, found -2 at index 1"):
        fo.proofs.prove(net, X[1], bounds=(-1, 1))
    table = fo.proofs.prove_many(net, X, bounds=(-1, 1), run=tmp_path / "run")
    assert "within the bounds" in table.message[1]
    assert np.isnan(table.lower[1])
    for k in (0, 2):
        assert table.lower[k] == fo.proofs.prove(net, X[k], bounds=(-1, 1)).lower
    with pytest.raises(fo.StorageError, match="bounds"):
        fo.proofs.prove_many(net, X, bounds=(-2, 1), run=tmp_path / "run")


def test_a_table_of_flips_within_bounds() -> None:
    net, rng = network(6, (2, 4, 3, 3)), np.random.default_rng(6)
    X = rng.uniform(-1, 1, (4, 2))
    flips = fo.closest_flip_points(net, X, bounds=(-3, 3))
    proved = fo.proofs.prove_flips(net, X, flips, bounds=(-3, 3))
    true = np.array([distance_by_pieces(net, x, bounds=(np.full(2, -3.0), np.full(2, 3.0))) for x in X])
    assert (proved.lower_bound <= true * (1 + 1e-9)).all()
    near = np.isfinite(true)
    assert near.any()
    np.testing.assert_allclose(proved.distance[near], true[near], rtol=2e-6)
    assert proved.proved[near].all()
    with pytest.raises(fo.InputError, match="flips: expected points within the bounds"):
        fo.proofs.prove_flips(net, X, flips, bounds=(flips.x.min() + 1e-6, 3))
