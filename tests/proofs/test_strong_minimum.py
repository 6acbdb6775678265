from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.proofs.strong_minimum import height
from tests.cases import disc
from tests.proofs.cases import network, slab
from tests.strategies import examples, seeds

X = np.array([0.05, 0.0, 0.0])
FAR, NEAR = np.array([-1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0])


def test_the_closest_flip_of_a_disc_stands() -> None:
    net, x = disc(1.0), np.array([0.3, 0.0])
    found = fo.proofs.strong_minimum(net, x, fo.closest_flip_point(net, x), samples=500)
    assert (found.flips_found, found.likely_found, found.descents_found) == (0, 0, 0)
    assert found.nearer is None
    assert not found.refuted
    assert found.share_at_most == pytest.approx(1 - 0.05 ** (1 / 500))
    assert found.radius == pytest.approx(0.99 * 0.7)
    assert found.flat_within == pytest.approx(found.radius * np.cos(np.pi * found.share_at_most))
    assert "No nearer flip was found" in str(found)


def test_a_flip_on_the_far_side_is_replaced_by_the_near_one() -> None:
    found = fo.proofs.strong_minimum(slab(), X, FAR, samples=20_000)
    assert found.nearer is not None
    np.testing.assert_allclose(found.nearer.x, NEAR, atol=1e-6)
    assert found.nearer.success
    assert found.nearer.distance == pytest.approx(0.95)
    assert found.distance == pytest.approx(1.05)
    cap = (1 - 0.95 / found.radius) / 2  # Archimedes: in three dimensions the share of a cap is that of its height
    assert found.flips_found / found.samples == pytest.approx(cap, abs=5 * np.sqrt(cap / found.samples))
    assert cap < found.share_at_most < 1.2 * cap
    assert "Not the closest" in str(found)


def test_uniform_points_alone_hold_what_they_promise() -> None:
    cap, held = (1 - 0.95 / (0.99 * 1.05)) / 2, 0
    for seed in range(60):
        found = fo.proofs.strong_minimum(slab(), X, FAR, samples=100, seed=seed, likely=0, descents=0, confidence=0.9)
        held += found.share_at_most >= cap
    assert held >= 0.9 * 60 - 5  # two standard deviations; the interval is wider than it need be


@pytest.mark.parametrize("by", ["likely", "descents", "towards"])
def test_what_is_too_small_for_uniform_points_is_found_otherwise(by: str) -> None:
    n = 60
    x, far = np.r_[0.05, np.zeros(n - 1)], np.r_[-1.0, np.zeros(n - 1)]
    counts = {"likely": 200 if by != "descents" else 0, "descents": 64 if by == "descents" else 0}
    towards = np.r_[2.0, np.zeros(n - 1)] if by == "towards" else None
    found = fo.proofs.strong_minimum(slab(n), x, far, samples=2_000, towards=towards, **counts)
    assert found.flips_found == 0
    assert found.nearer is not None
    assert found.nearer.distance == pytest.approx(0.95)


def test_only_points_within_the_bounds_count() -> None:
    found = fo.proofs.strong_minimum(slab(), X, FAR, bounds=([-np.inf, -np.inf, 0.0], [0.99, np.inf, np.inf]))
    assert not found.refuted
    assert 0.4 * found.samples < found.allowed < 0.6 * found.samples
    assert np.isnan(found.flat_within)
    assert "within the bounds" in str(found)
    wider = fo.proofs.strong_minimum(slab(), X, FAR, bounds=(-np.inf, 1.5))
    assert wider.nearer is not None


def test_frozen_features_stay() -> None:
    x = np.array([0.05, 0.7, 0.0])
    found = fo.proofs.strong_minimum(slab(), x, FAR + np.array([0, 0.7, 0]), frozen=[1])
    assert found.dimension == 2
    assert found.nearer is not None
    assert found.nearer.x[1] == 0.7


@given(seed=seeds)
@examples(10)
def test_weights_are_units(seed: int) -> None:
    net, x = network(seed % 1000, (3, 4, 3)), np.random.default_rng(seed).standard_normal(3)
    weights = np.array([4.0, 1.0, 0.25])
    flips = fo.closest_flip_points(net, x[None], "all", weights=weights)
    flips = flips[np.isfinite(flips.distance)]
    if len(flips) == 0:
        return
    far = flips.x[flips.distance.argmax()]
    root = np.sqrt(weights)
    scaled = fo.DenseNetwork([net.weights[0] / root[:, None], *net.weights[1:]], net.biases, net.activations)
    one = fo.proofs.strong_minimum(net, x, far, samples=300, likely=50, descents=8, weights=weights)
    other = fo.proofs.strong_minimum(scaled, root * x, root * far, samples=300, likely=50, descents=8)
    assert one.flips_found == other.flips_found
    assert one.distance == pytest.approx(other.distance)
    assert one.refuted == other.refuted
    if one.nearer is not None and other.nearer is not None:
        assert one.nearer.distance < one.distance
        assert one.nearer.distance == pytest.approx(other.nearer.distance, rel=1e-5)


@given(share=st.floats(1e-9, 0.499))
def test_heights_of_caps(share: float) -> None:
    assert height(share, 2) == pytest.approx(np.cos(np.pi * share), abs=1e-9)
    assert height(share, 3) == pytest.approx(1 - 2 * share, abs=1e-9)
    assert height(share, 1) == 1.0
    assert height(share, 100) <= height(share, 10) + 1e-12
    assert height(0.5, 7) == 0.0


def test_any_network_will_do() -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(16, 3)
    )
    net = fo.TorchNetwork(module, input_shape=(1, 6, 6))
    x = np.random.default_rng(0).standard_normal(36)
    flips = fo.closest_flip_points(net, x[None], "all")
    order = np.argsort(flips.distance)
    assert not fo.proofs.strong_minimum(net, x, flips.x[order[0]], samples=500, likely=100, descents=16).refuted
    far = fo.proofs.strong_minimum(net, x, flips.x[order[1]], samples=500, likely=100, descents=16)
    assert far.nearer is not None
    assert far.nearer.distance < flips.distance[order[1]]


def test_mistakes_are_named() -> None:
    for options, words in (
        ({"flip": X}, "flip: expected a point other than x"),
        ({"flip": X[:2]}, "flip: expected shape"),
        ({"confidence": 1.0}, "confidence: expected a number"),
        ({"samples": 0}, "samples: expected a whole number >= 1"),
        ({"delta": 1.0}, "delta: expected a number"),
    ):
        with pytest.raises(fo.FlipoptError, match=words):
            fo.proofs.strong_minimum(slab(), X, **({"flip": FAR} | options))
