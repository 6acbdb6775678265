"""The nearest generative boundary as a closest flip point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import flipopt as fo
from flipopt.generative import nearest_boundaries, region
from tests.generative.cases import LATENT, convolutional, dense, discriminator, pre_activations, query
from tests.strategies import examples, seeds


@examples(6)
@given(seeds)
def test_of_the_first_layer_it_is_the_distance_from_a_plane(seed: int) -> None:
    from tests.generative.cases import dense_weights

    G = dense()
    z = np.random.default_rng(seed).standard_normal(LATENT)
    W = dense_weights(0, (LATENT, 24, 20, 16))["W1"].astype(np.float64)
    distances = np.abs(pre_activations(z, 1)[0]) / np.linalg.norm(W, axis=0)
    found = nearest_boundaries(G, z, 1, candidates=24)
    np.testing.assert_array_equal(found.unit, np.argsort(distances))
    np.testing.assert_allclose(found.distance, np.sort(distances), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(found.z - z, axis=1), found.distance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(pre_activations(found.z, 1)[np.arange(24), found.unit], 0, atol=1e-9)


@pytest.mark.parametrize("conv", [False, True])
def test_of_a_deeper_layer_it_is_a_flip_point(conv: bool) -> None:
    G = convolutional() if conv else dense()
    z = query(G)
    found = nearest_boundaries(G, z, 2, candidates=2)
    assert (found.status == fo.Status.CONVERGED).all()
    values = region(G, z, 2).exact(found.z)[np.arange(2), found.unit]
    scale = np.abs(G.forward(z, to=2)).max()
    np.testing.assert_allclose(values, 0, atol=1e-6 * scale)
    np.testing.assert_allclose(np.linalg.norm(found.z - z, axis=1), found.distance, rtol=1e-9)
    assert found.distance[0] <= found.distance[1]
    # Nothing nearer: on spheres a little smaller the unit keeps its sign.
    U = np.random.default_rng(0).standard_normal((2000, G.n_latent))
    U *= 0.98 * found.distance[0] / np.linalg.norm(U, axis=1, keepdims=True)
    assert region(G, z, 2, [int(found.unit[0])]).contains(z + U).all()


def test_the_exact_way_agrees_with_the_solver() -> None:
    from flipopt.generative.nearest import _tie

    G = dense()
    z = query(G)
    found = nearest_boundaries(G, z, 1, candidates=1)
    flip = fo.closest_flip_point(_tie(G, 1, int(found.unit[0])), z)
    assert flip.success
    assert flip.distance == pytest.approx(found.distance[0], rel=1e-6)


def test_of_a_classifier_s_hidden_layer() -> None:
    D = discriminator()
    x = np.random.default_rng(0).standard_normal(16)
    found = nearest_boundaries(D, x, 1, mask=[3, 4], candidates=5)
    assert sorted(found.unit) == [3, 4]
    moved = D.forward(found.z, to=1)
    np.testing.assert_allclose(moved[np.arange(2), found.unit], 0, atol=1e-5)


def test_arguments_are_checked() -> None:
    G = dense()
    for call, message in (
        (lambda: nearest_boundaries(G, np.zeros(3), 1), "z: expected shape"),
        (lambda: nearest_boundaries(G, np.zeros(LATENT), 7), "layer: expected a layer from 1 to 3"),
        (lambda: nearest_boundaries(G, np.zeros(LATENT), 1, candidates=0), "candidates: expected a whole number"),
    ):
        with pytest.raises(fo.InputError, match=message):
            call()
