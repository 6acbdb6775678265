from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from tests.proofs.cases import distance_by_pieces, network, slab

X = np.array([0.05, 0.0, 0.0])


def test_two_minima_are_told_apart_and_counted() -> None:
    found = fo.proofs.starts(slab(), X, starts=60)
    assert len(found.minima) == 2
    np.testing.assert_allclose(found.minima.distance, [0.95, 1.05])
    np.testing.assert_allclose(found.minima.x, [[1, 0, 0], [-1, 0, 0]], atol=1e-5)
    assert found.minima.success.all()
    assert found.ended == 60
    assert (found.found >= 15).all()  # half each, but for four standard deviations
    assert found.agreed == found.found[0] / 60
    assert found.expected_minima == pytest.approx(2 * 59 / 56)
    assert found.unseen_share == pytest.approx(6 / (60 * 59))
    assert found.good_turing == 0
    assert found.chao1 == 2
    assert found.nearer_share_at_most == pytest.approx(1 - 0.05 ** (1 / 60))
    assert "60 of 60 starts led to the boundary, to 2 different ends" in str(found)


def test_a_known_flip_that_is_not_the_closest_is_named() -> None:
    far = fo.closest_flip_point(slab(), X, starts=[[-0.9, 0.0, 0.0]])
    assert far.distance == pytest.approx(1.05)
    assert "The flip that was known, at 1.05, is not the closest" in str(
        fo.proofs.starts(slab(), X, starts=20, flip=far)
    )
    near = replace(far, distance=0.9)
    assert "None came to the flip that is known" in str(fo.proofs.starts(slab(), X, starts=20, flip=near))


@pytest.mark.parametrize("seed", [1, 5, 8])
def test_starts_find_the_nearest_of_all_pieces(seed: int) -> None:
    net, x = network(seed, (2, 4, 3, 3)), np.random.default_rng(seed).standard_normal(2)
    found = fo.proofs.starts(net, x, starts=30)
    assert found.distance == pytest.approx(distance_by_pieces(net, x), rel=1e-6)
    assert (np.diff(found.minima.distance) >= 0).all()


def test_targets_samples_bounds_and_frozen_features() -> None:
    net, x = network(1, (2, 4, 3)), np.array([0.3, -0.2])
    i = int(net.predict(x))
    samples = 3 * np.random.default_rng(0).standard_normal((100, 2))
    j = next(int(k) for k in net.predict(samples) if k != i)
    found = fo.proofs.starts(net, x, starts=20, target=j, towards=samples)
    assert (found.minima.classes == [i, j]).all()
    with pytest.raises(fo.FlipoptError, match="towards: expected a sample in another class"):
        fo.proofs.starts(net, x, starts=20, target=j, towards=x[None])
    half = fo.proofs.starts(slab(), X, starts=20, bounds=([-np.inf, 0, -1], [0.5, 1, 1]), frozen=[2], radius=2)
    np.testing.assert_allclose(half.minima.x, [[-1, 0, 0]], atol=1e-5)


def test_the_same_seed_is_the_same_and_another_is_not() -> None:
    one, same, other = (fo.proofs.starts(slab(), X, starts=30, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.minima.x, same.minima.x)
    assert not np.array_equal(one.minima.x, other.minima.x)


@given(counts=st.lists(st.integers(1, 40), min_size=1, max_size=12))
def test_estimates_make_sense(counts: list[int]) -> None:
    few = fo.proofs.starts(slab(), X, starts=2).minima
    minima = replace(few.take(np.zeros(len(counts), dtype=int)), agreeing=np.array(counts))
    found = fo.proofs.Starts(minima, sum(counts), 0.95, 1.0)
    assert found.ended == sum(counts)
    assert found.expected_minima >= len(counts)
    assert found.chao1 >= len(counts) * (1 - 1e-12)
    assert 0 <= found.good_turing <= 1
    assert 0 <= found.unseen_share <= 1
    assert 0 < found.nearer_share_at_most < 1
    more = replace(found, minima=replace(minima, agreeing=10 * minima.agreeing))
    assert more.expected_minima <= found.expected_minima
    assert more.unseen_share <= found.unseen_share


def test_starts_that_lead_nowhere_say_nothing() -> None:
    minima = fo.proofs.starts(slab(), X, starts=2).minima
    none = fo.proofs.Starts(minima[:0], 5, 0.95, 1.0)
    assert (none.ended, none.unseen_share, none.good_turing, none.nearer_share_at_most) == (0, 1.0, 1.0, 1.0)
    assert np.isnan([none.distance, none.agreed, none.chao1]).all()
    assert none.expected_minima == np.inf
    assert str(none) == "None of 5 starts led to the boundary."


def test_mistakes_are_named() -> None:
    with pytest.raises(fo.FlipoptError, match="starts: expected a whole number >= 1"):
        fo.proofs.starts(slab(), X, starts=0)
    with pytest.raises(fo.FlipoptError, match="target: expected classes other than the source"):
        fo.proofs.starts(slab(), X, target=0)
    with pytest.raises(fo.FlipoptError, match="radius: expected that of a ball"):
        fo.proofs.starts(slab(), X, flip=replace(fo.closest_flip_point(slab(), X), distance=np.nan))
