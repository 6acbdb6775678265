"""GB-RRT against its plain transcription, and what it promises of samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

import flipopt as fo
from flipopt.generative import Generator, explore
from tests.generative.cases import LATENT, convolutional, dense, dense_weights, pre_activations, query, write
from tests.strategies import examples, seeds


def algorithm_2(G: Generator, z0: np.ndarray, layer: int, mask: np.ndarray, I: float, N: int, delta: float, seed: int):  # noqa: E741
    """Line by line, with >= delta (1 - 1e-6) in line 6."""
    rng = np.random.default_rng(seed)
    signs = np.sign(G.forward(z0, to=layer))
    Q, tree, rejected = [z0], [-1], []
    for _ in range(N):
        z = rng.uniform(z0 - I, z0 + I)
        nearest = int(np.argmin([np.linalg.norm(z - q) for q in Q]))
        q = Q[nearest]
        step = (z - q) / np.linalg.norm(z - q) * delta + q
        if not (signs * G.forward(step, to=layer) >= 0)[mask].all():
            rejected.append(step)
        elif min(np.linalg.norm(step - q) for q in Q) >= delta * (1 - 1e-6):
            Q.append(step)
            tree.append(nearest)
    return np.array(Q), np.array(tree), np.array(rejected).reshape(-1, len(z0))


@pytest.mark.parametrize(("layer", "share"), [(1, 0.4), (2, 0.4), (3, 1.0)])
@pytest.mark.parametrize("batch", [1, 7, 256])
def test_it_is_algorithm_2_bit_for_bit_whatever_the_batch(layer: int, share: float, batch: int) -> None:
    G = dense()
    z0 = query(G, 5)
    mask = np.random.default_rng(0).random(G.layers[layer - 1].units) < share
    Q, tree, rejected = algorithm_2(G, z0, layer, mask, 1.0, 250, 0.25, 11)
    found = explore(G, z0, layer, mask, interval=1.0, delta=0.25, expansions=250, batch=batch, seed=11)
    np.testing.assert_array_equal(found.accepted, Q)
    np.testing.assert_array_equal(found.tree, tree)
    np.testing.assert_array_equal(found.rejected, rejected)
    assert len(Q) > 20
    assert len(rejected) > 20
    assert found.expansions == 250
    assert found.evaluations >= 250 if batch > 1 else found.evaluations == 250


def test_of_a_convolutional_generator_too() -> None:
    G = convolutional()
    z0, mask = query(G, 5), np.arange(G.layers[1].units) % 8 == 0
    Q, tree, _ = algorithm_2(G, z0, 2, mask, 1.0, 150, 0.25, 1)
    found = explore(G, z0, 2, mask, delta=0.25, expansions=150, seed=1)
    np.testing.assert_array_equal(found.accepted, Q)
    np.testing.assert_array_equal(found.tree, tree)
    assert len(Q) > 20


@examples(10)
@given(seeds, st.integers(1, 3), st.integers(1, 64), st.booleans())
def test_samples_keep_signs_and_distances(seed: int, layer: int, batch: int, segments: bool) -> None:
    G, rng = dense(), np.random.default_rng(seed)
    z0, mask = rng.standard_normal(LATENT), rng.random(G.layers[layer - 1].units) < 0.3
    found = explore(G, z0, layer, mask, delta=0.3, expansions=80, batch=batch, check_segments=segments, seed=seed)
    Z, C = found.accepted, pre_activations(found.accepted, layer)
    assert ((np.sign(pre_activations(z0, layer)) * C)[:, mask] >= 0).all()
    assert found.verified.all()
    assert (np.sign(pre_activations(z0, layer)) * pre_activations(found.rejected, layer) < 0)[:, mask].any(axis=1).all()
    apart = np.linalg.norm(Z[:, None] - Z, axis=2) + 9 * np.eye(len(Z))
    assert apart.min() >= 0.3 * (1 - 1e-6) - 1e-12
    np.testing.assert_allclose(np.linalg.norm(Z[1:] - Z[found.tree[1:]], axis=1), 0.3, rtol=1e-12)
    assert (found.tree[1:] < np.arange(1, len(Z))).all()
    assert found.tree[0] == -1
    assert found.expansions == 80


def test_with_segments_checked_every_sample_is_joined_to_the_query() -> None:
    G = dense(widths=(2, 30, 30, 16))
    mask = np.ones(30, dtype=bool)
    for seed in range(40):
        z0 = query(G, seed)
        free = explore(G, z0, 2, mask, delta=0.5, expansions=300, interval=2.0)
        checked = explore(G, z0, 2, mask, delta=0.5, expansions=300, interval=2.0, check_segments=True)
        assert checked.connected.all()
        if checked.left:
            break
    assert checked.left > 0  # or nothing is tested
    assert not free.connected[1:].any()
    Z, parents = checked.accepted[1:], checked.accepted[checked.tree[1:]]
    at = np.linspace(0, 1, 33)[:, None, None]
    between = (parents + at * (Z - parents)).reshape(-1, 2)
    assert (
        (np.sign(pre_activations(z0, 2, widths=(2, 30, 30, 16)))) * pre_activations(between, 2, widths=(2, 30, 30, 16))
        >= 0
    ).all()
    assert not free.region.stays(free.accepted[free.tree[1:]], free.accepted[1:]).all()


def test_a_convex_region_needs_no_look_at_segments() -> None:
    G = dense()
    found = explore(G, query(G), 1, [0, 1, 2], expansions=50, check_segments=True)
    assert found.connected.all()
    assert found.evaluations < 33 * 50


def test_what_it_says(tmp_path: Path) -> None:
    G = dense()
    found = explore(G, query(G), 2, [0, 1, 2, 3], expansions=100)
    assert found.delta == pytest.approx(0.08 * 6**0.5)
    distances = np.linalg.norm(found.accepted - query(G), axis=1)[1:]
    assert found.reach == (pytest.approx(distances.mean()), pytest.approx(distances.max()))
    assert f"{len(found.accepted) - 1} samples of 100 expansions in layer 2 (4 of 20 units)" in str(found)
    frame = found.nodes.to_pandas()
    assert list(frame.columns) == ["parent", "distance", "connected", "verified"]
    assert len(found.images(5)) == 5
    found.plot(tmp_path / "tree.png")
    assert (tmp_path / "tree.png").stat().st_size > 10_000


@pytest.mark.parametrize("d", [1, 2])
def test_what_is_no_image_is_not_drawn(d: int, tmp_path: Path) -> None:
    nodes = [helper.make_node("Gemm", ["z", "W1", "b1"], ["c"]), helper.make_node("Relu", ["c"], ["x"])]
    G = Generator(write(nodes, dense_weights(0, (d, 5)), ("batch", d)))
    explore(G, np.zeros(d), 1, expansions=20).plot(tmp_path / "tree.svg")
    assert "principal" not in (tmp_path / "tree.svg").read_text()


def test_arguments_are_checked() -> None:
    G = dense()
    for options, message in (
        ({"delta": 0.0}, "interval, delta: expected numbers > 0"),
        ({"interval": -1.0}, "interval: expected a number >= 0"),
        ({"expansions": 0}, "expansions: expected a whole number >= 1"),
        ({"batch": 0}, "batch: expected a whole number >= 1"),
        ({"seed": -1}, "seed: expected a whole number >= 0"),
    ):
        with pytest.raises(fo.InputError, match=message):
            explore(G, query(G), 1, **options)
