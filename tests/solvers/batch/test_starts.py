"""Where starts begin."""

from __future__ import annotations

import numpy as np

import flipopt as fo
from flipopt.solvers.batch import starts as module
from flipopt.solvers.batch.starts import Samples
from tests.solvers.batch.nets import random_batch, random_network


def test_the_size_of_pre_activations_is_each_point_s_own() -> None:
    net = random_network(3, activation=fo.ReLU())
    X = np.vstack([np.random.default_rng(0).standard_normal((6, 5)), np.full((1, 5), 1e4)])
    sizes = module.sizes_of(net, X)
    np.testing.assert_array_equal(sizes, np.concatenate([module.sizes_of(net, x[None]) for x in X]))
    hidden = np.sqrt([(net.pre_activations(x)[0] ** 2).mean() for x in X])
    assert ((sizes <= 2 * hidden) & (sizes >= hidden / 2)).all()
    assert sizes[-1] > sizes[0]
    zero = fo.DenseNetwork([np.eye(2), np.eye(2)], [np.zeros(2)] * 2, fo.ReLU())
    assert module.sizes_of(zero, np.zeros((1, 2))) == 1


def test_starts_towards_samples_are_near_the_boundary_on_the_way() -> None:
    net = random_network(12)
    batch = random_batch(net, 12, problems=8)
    samples = Samples.of(net, 3 * np.random.default_rng(1).standard_normal((60, 5)))
    random = module.random_points(batch, (0, 100))
    for rank in (0, 2):
        points = module.on_the_way(batch, samples, rank, random)
        for k, (x, (i, j)) in enumerate(zip(batch.X, batch.classes)):
            theirs = samples.X[samples.classes == j]
            if len(theirs) <= rank:
                np.testing.assert_array_equal(points[k], random[k])
                continue
            sample = theirs[np.argsort(np.linalg.norm(theirs - x, axis=1))[rank]]
            t = (points[k] - x) @ (sample - x) / ((sample - x) @ (sample - x))
            np.testing.assert_allclose(points[k], x + t * (sample - x), atol=1e-12)
            # Eight bisections: the lead changes its sign within 2^-8 of the way before it.
            ends = net.logits(np.array([x + (t - 2.0**-module.BISECTIONS) * (sample - x), points[k]]))
            assert ends[0, i] > ends[0, j]
            assert ends[1, i] <= ends[1, j]


def test_random_starts_are_the_same_for_every_problem_and_near_x() -> None:
    batch = random_batch(random_network(13), 13)
    points = module.random_points(batch, (0, 1))
    away = points - batch.X
    size = np.linalg.norm(batch.X, axis=1)
    np.testing.assert_allclose(np.linalg.norm(away, axis=1), module.SPREAD * size, rtol=1e-12)
    np.testing.assert_allclose(away / size[:, None], np.broadcast_to(away[0] / size[0], away.shape), atol=1e-12)
    assert (module.random_points(batch, (1, 1)) != points).any()


def test_behind_is_on_the_line_from_the_flip_point_through_x() -> None:
    batch = random_batch(random_network(3), 3, bounds=(-2.0, 2.0))
    X_hat = batch.X + 1.0
    np.testing.assert_allclose(module.behind(batch, X_hat, 0.25), np.clip(batch.X - 0.25, -2, 2), atol=1e-15)
    assert module.behind(batch, X_hat, 0.0) is batch.X
