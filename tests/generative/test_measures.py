"""Balls of equal volume, controls, rejection, equations (2) and (3), and Algorithm 3."""

from __future__ import annotations

from math import lgamma, log, pi

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import flipopt as fo
from flipopt.generative import (
    BerOpt,
    averaged,
    baselines,
    compare,
    deviation,
    egbas,
    explore,
    region,
    rejection,
    similarity,
)
from flipopt.generative.balls import at_radii, epsilon_2, epsilon_inf, in_ball
from tests.generative.cases import LATENT, dense, discriminator, query


@given(st.integers(1, 600), st.floats(1e-3, 1e3))
def test_the_cube_has_the_volume_of_the_ball(d: int, radius: float) -> None:
    """Logarithms of the volumes, per dimension."""
    ball = (d / 2 * log(pi) - lgamma(d / 2 + 1)) / d + log(radius)
    cube = log(2 * epsilon_inf(radius, d))
    assert abs(ball - cube) <= 1e-12 * max(1, abs(ball))


def test_equal_volume_is_not_equal_size() -> None:
    assert epsilon_inf(1.0, 100) == pytest.approx(0.2008, abs=5e-5)
    assert epsilon_inf(2.0, 1) == pytest.approx(2.0)
    size = epsilon_inf(1.0, 100) * (100 / 3) ** 0.5
    assert size == pytest.approx(1.16, abs=5e-3)


def test_the_radius_is_half_of_least_and_largest() -> None:
    assert epsilon_2([1.0, 0.0], [[1.0, 1.0], [4.0, 4.0], [1.0, 2.0]]) == pytest.approx((1 + 5) / 2)
    with pytest.raises(fo.InputError, match="rejected: expected at least one point"):
        epsilon_2([1.0, 0.0], np.empty((0, 2)))


def test_points_are_uniform_in_balls() -> None:
    centre = np.array([1.0, -2.0, 3.0])
    Z = in_ball(centre, 2.0, 4000, "2", 0) - centre
    assert stats.kstest((np.linalg.norm(Z, axis=1) / 2) ** 3, "uniform").pvalue > 1e-3
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=0.08)
    C = in_ball(centre, 2.0, 4000, "inf", 0) - centre
    assert stats.kstest((C[:, 1] + 2) / 4, "uniform").pvalue > 1e-3
    radii = np.linspace(0, 5, 50)
    np.testing.assert_allclose(np.linalg.norm(at_radii(centre, radii) - centre, axis=1), radii, atol=1e-12)


def explored(expansions: int = 150) -> fo.generative.Exploration:
    G = dense()
    return explore(G, query(G, 5), 2, np.arange(20) < 8, delta=0.25, expansions=expansions)


@pytest.mark.parametrize("centre", ["mean", "query"])
def test_baselines_of_an_exploration(centre: str) -> None:
    tree = explored()
    found = baselines(tree, 30, centre)
    middle = tree.accepted.mean(axis=0) if centre == "mean" else tree.region.query
    np.testing.assert_array_equal(found.centre, middle)
    apart = np.linalg.norm(tree.rejected - middle, axis=1)
    assert found.epsilon_2 == pytest.approx((apart.min() + apart.max()) / 2)
    assert {name: points.shape for name, points in found.points.items()} == dict.fromkeys(
        ("e-gbas", "l2", "linf", "matched"), (30, LATENT)
    )
    own, control = (np.linalg.norm(found.points[name] - middle, axis=1) for name in ("e-gbas", "matched"))
    np.testing.assert_allclose(control, own)
    assert np.abs(found.points["linf"] - middle).max() <= found.epsilon_inf
    assert np.linalg.norm(found.points["l2"] - middle, axis=1).max() <= found.epsilon_2
    table = compare(found, discriminator())
    assert table.method.tolist() == list(found.points)
    assert table.inside[0] == 1.0
    assert table.inside[1:].max() < 1.0
    assert table.similarity.shape == (4, 2)
    assert compare(found).similarity.shape == (4, 0)
    assert list(table.to_pandas().columns) == ["method", "deviation", "inside", "distance"]
    assert table.distance[0] == pytest.approx(table.distance[3])


def test_the_deviation_is_that_of_all_images_at_once() -> None:
    G = dense()
    Z = np.random.default_rng(0).standard_normal((2500, LATENT))
    found, images = deviation(G, Z), G.forward(Z).astype(np.float64)
    np.testing.assert_allclose(found.pixels, images.std(axis=0), rtol=1e-10)
    assert found.value == pytest.approx(images.std(axis=0).mean())
    assert deviation(G, np.repeat(Z[:1], 9, axis=0)).value == 0


def test_the_similarity_is_the_mean_cosine() -> None:
    G, D = dense(), discriminator()
    Z, z0 = np.random.default_rng(0).standard_normal((2100, LATENT)), query(G)
    X, x0 = (D.features(G.forward(z), 1).astype(np.float64) for z in (Z, z0[None]))
    cosines = X @ x0[0] / np.linalg.norm(X, axis=1) / np.linalg.norm(x0)
    assert similarity(D, G, Z, z0, 1) == pytest.approx(cosines.mean())
    assert similarity(D, G, z0, z0, 1) == pytest.approx(1)


def test_averages_over_queries_have_intervals() -> None:
    tables = [compare(baselines(explored(), 20, seed=seed), discriminator()) for seed in range(4)]
    found = averaged(tables)
    deviations = np.stack([table.deviation for table in tables])
    np.testing.assert_allclose(found.deviation, deviations.mean(axis=0))
    np.testing.assert_allclose(found.similarity[2, 1], np.mean([table.similarity[2, 1] for table in tables]))
    low, high = found.deviation_interval.T
    assert (deviations.min(axis=0) <= low).all()
    assert (low < found.deviation).all()
    assert (found.deviation < high).all()
    assert (high <= deviations.max(axis=0)).all()
    assert found.similarity_interval.shape == (4, 2, 2)
    assert found.queries.tolist() == [4] * 4
    assert averaged([compare(baselines(explored(), 20))]).similarity.shape == (4, 0)


def test_rejection_keeps_what_is_inside() -> None:
    G = dense()
    of = region(G, query(G), 1, [0, 1, 2])
    found = rejection(of, 50, seed=1)
    Z = np.random.default_rng(1).standard_normal((4096, LATENT))
    np.testing.assert_array_equal(found.points, Z[of.contains(Z)][:50])
    assert found.share == pytest.approx(of.contains(Z).mean(), abs=0.1)
    assert of.contains(Z[: found.drawn]).sum() == 50
    none = rejection(region(G, query(G), 2), 50, most=300)
    assert none.drawn == 300
    boxed = rejection(of, 20, interval=0.1)
    assert np.abs(boxed.points - of.query).max() <= 0.1


def test_algorithm_3_is_its_two_parts() -> None:
    G = dense()
    found = egbas(G, query(G), 2, target_error=0.2, options=BerOpt(steps=30), expansions=60, delta=0.3)
    again = explore(G, query(G), 2, found.essential.mask, expansions=60, delta=0.3)
    np.testing.assert_array_equal(found.exploration.accepted, again.accepted)
    assert str(found).count("\n") == 1


def test_arguments_are_checked() -> None:
    G, tree = dense(), explored(20)
    for call, message in (
        (lambda: baselines(tree, centre="corner"), "centre: expected one of mean, query"),
        (lambda: in_ball([0.0], 1.0, 3, "3"), "norm: expected one of 2, inf"),
        (lambda: deviation(G, np.empty((0, LATENT))), "z: expected at least one latent vector"),
        (lambda: similarity(discriminator(), dense(widths=(6, 5, 9)), query(G), query(G), 1), "D: expected a discrim"),
        (lambda: averaged([]), "comparisons: expected at least one"),
        (lambda: rejection(tree.region, 0), "count: expected a whole number >= 1"),
    ):
        with pytest.raises(fo.InputError, match=message):
            call()
