"""Regions: signs, membership, sharing, and where segments cross boundaries."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.generative import region, shares
from flipopt.generative.exact import in_float64
from tests.generative.cases import LATENT, convolutional, dense, pre_activations, query
from tests.strategies import examples, seeds


def near(z0: np.ndarray, rows: int, size: float, seed: int = 1) -> np.ndarray:
    return z0 + size * np.random.default_rng(seed).standard_normal((rows, len(z0)))


@examples(10)
@given(seeds, st.integers(1, 3))
def test_membership_is_the_signs_of_the_formula(seed: int, layer: int) -> None:
    G, rng = dense(), np.random.default_rng(seed)
    z0, mask = rng.standard_normal(LATENT), rng.random(G.layers[layer - 1].units) < 0.3
    found, Z = region(G, z0, layer, mask), near(z0, 50, 0.7, seed)
    c0, C = pre_activations(z0, layer)[0], pre_activations(Z, layer)
    np.testing.assert_array_equal(found.signs, np.where(mask, np.sign(c0), 0))
    inside = (np.sign(C) == np.sign(c0))[:, mask].all(axis=1)
    np.testing.assert_array_equal(found.contains(Z), inside)
    np.testing.assert_array_equal(found.check(Z), inside)
    np.testing.assert_array_equal(shares(G, Z, z0, layer, mask), inside)
    assert found.contains(z0)


def test_strict_sharing_asks_for_all_units() -> None:
    G = dense()
    z0 = query(G)
    Z = near(z0, 400, 0.3)
    strict, relaxed = shares(G, Z, z0, 1), shares(G, Z, z0, 1, [0, 3])
    assert 0 < strict.sum() < relaxed.sum() < 400
    assert not (strict & ~relaxed).any()
    assert shares(G, z0, z0, 1)
    np.testing.assert_array_equal(region(G, z0, 1).contains(Z), strict)


def test_an_empty_mask_leaves_the_whole_space() -> None:
    G = dense()
    np.testing.assert_array_equal(region(G, query(G), 2, np.ones(20)).units, np.arange(20))
    whole = region(G, query(G), 2, [])
    assert len(whole.units) == 0
    assert whole.contains(near(query(G), 9, 10.0)).all()


def test_nothing_gives_nothing() -> None:
    G = dense()
    none, of = np.empty((0, LATENT)), region(G, query(G), 2)
    assert of.contains(none).shape == of.check(none).shape == of.stays(none, none).shape == (0,)
    assert len(of.crossings(none, none)) == len(region(G, query(G), 2, []).crossings(query(G), -query(G))) == 0
    assert of.margins(none).shape == (0, 20)


def test_float32_decides_no_sign_that_it_does_not_know() -> None:
    """Points on a boundary up to rounding: half of them are outside by float64, and not all by float32 alone."""
    G = convolutional()
    z0 = query(G)
    of = region(G, z0, 1)
    far = near(z0, 60, 0.5)
    found = of.crossings(np.repeat(z0[None], 60, axis=0), far)
    first = found.take(np.unique(found.segment, return_index=True)[1])
    assert len(first) > 40
    alpha = first.alpha * (1 + 1e-9 * np.where(np.arange(len(first)) % 2, 1, -1))
    Z = z0 + alpha[:, None] * (far[first.segment] - z0)
    exact = of.check(Z)
    np.testing.assert_array_equal(of.contains(Z), exact)
    np.testing.assert_array_equal(exact, np.arange(len(first)) % 2 == 0)
    assert ((of.margins(Z) >= 0).all(axis=1) != exact).any()


@pytest.mark.parametrize("layer", [1, 2])
def test_crossings_are_where_units_are_zero(layer: int) -> None:
    G = dense()
    z0 = query(G)
    of, far = region(G, z0, layer), near(z0, 12, 1.0)
    found = of.crossings(z0, far, points=201)
    Z = z0 + found.alpha[:, None] * (far[found.segment] - z0)
    C = pre_activations(Z, layer)[np.arange(len(found)), found.unit]
    assert len(found) > 20
    np.testing.assert_allclose(C, 0, atol=1e-9)
    ends = np.sign(pre_activations(far, layer)) != np.sign(pre_activations(z0, layer))
    changes = np.zeros_like(ends, dtype=int)
    np.add.at(changes, (found.segment, found.unit), 1)
    np.testing.assert_array_equal(changes % 2 == 1, ends)  # an odd number of changes is a change
    assert (np.diff(found.alpha)[np.diff(found.segment) == 0] >= 0).all()
    np.testing.assert_array_equal(of.stays(z0, far, 201), changes.sum(axis=1) == 0)


def test_crossings_of_planes_are_linear() -> None:
    G = dense()
    z0 = query(G)
    far = near(z0, 6, 1.0)
    found = region(G, z0, 1).crossings(z0, far, points=2)
    c0, C = pre_activations(z0, 1)[0, found.unit], pre_activations(far, 1)[found.segment, found.unit]
    np.testing.assert_allclose(found.alpha, c0 / (c0 - C), atol=1e-10)
    assert list(found.to_pandas().columns) == ["segment", "unit", "alpha", "sign"]
    assert len(region(G, z0, 1).crossings(z0, z0)) == 0


@pytest.mark.parametrize("layer", [1, 2])
def test_float64_without_torch_is_that_of_torch(layer: int, monkeypatch: pytest.MonkeyPatch) -> None:
    G = convolutional()
    Z = near(query(G), 3, 1.0)
    expected = in_float64(G, layer)(Z)
    monkeypatch.setattr("flipopt.generative.exact.has_torch", lambda: False)
    monkeypatch.setitem(sys.modules, "torch", None)
    found = in_float64(G, layer)(Z)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert np.abs(found - G.forward(Z, to=layer)).max() > 1e-9  # which float32 is not


def test_arguments_are_checked() -> None:
    G = dense()
    z0: Any = query(G)
    for call, message in (
        (lambda: region(G, z0, 9), "layer: expected a layer from 1 to 3"),
        (lambda: region(G, z0[:2], 1), "z0: expected shape"),
        (lambda: region(G, np.zeros((2, LATENT)), 1), "z0: expected one latent vector"),
        (lambda: region(G, z0, 1, np.ones(3, dtype=bool)), "mask: expected 24 booleans"),
        (lambda: region(G, z0, 1, [24]), "mask: expected 24 booleans"),
        (lambda: region(G, z0, 1).crossings(np.zeros((2, LATENT)), np.zeros((3, LATENT))), "B: expected 2 points"),
        (lambda: region(G, z0, 1).stays(z0, z0, 1), "points: expected a whole number >= 2"),
    ):
        with pytest.raises(fo.InputError, match=message):
            call()
