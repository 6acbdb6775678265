"""Hit-and-run: known moments of polytopes, regions compared with rejection, and what the diagnostics say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import flipopt as fo
from flipopt.generative import explore, hit_and_run, largest_ball, nearest_boundaries, region
from flipopt.generative.chains import SWEEPS
from flipopt.generative.diagnostics import effective_size, split_rhat
from flipopt.generative.polytope import chebyshev, exact_chains, faces_of
from tests.generative.cases import LATENT, convolutional, dense, query
from tests.strategies import examples, seeds

NOWHERE = np.inf


def simplex(d: int) -> tuple[np.ndarray, np.ndarray]:
    """{ z >= 0, sum z <= 1 }."""
    return np.concatenate([np.eye(d), -np.ones((1, d))]), np.append(np.zeros(d), 1.0)


def test_of_a_simplex_the_moments_are_dirichlet() -> None:
    d = 5
    A, b = simplex(d)
    X = exact_chains(A, b, np.full(d, 0.1), np.zeros(d), NOWHERE, False, (4, 1000, 3), 0)
    assert split_rhat(X).max() < 1.02
    error = np.sqrt(d / ((d + 1) ** 2 * (d + 2)) / effective_size(X))
    assert (np.abs(X.mean(axis=(0, 1)) - 1 / (d + 1)) < 4 * error).all()
    np.testing.assert_allclose(X.var(axis=(0, 1)), d / ((d + 1) ** 2 * (d + 2)), rtol=0.15)
    assert ((A @ X.reshape(-1, d).T).T + b >= -1e-12).all()


def test_of_a_ball_half_of_which_is_cut_off() -> None:
    """The mean along the normal of a half ball of radius r in d = 3 is 3 r / 8, and points are uniform in r^3."""
    A, b, centre = np.array([[1.0, 0.0, 0.0]]), np.array([-5.0]), np.array([5.0, 1.0, -2.0])
    X = exact_chains(A, b, np.array([5.3, 1.0, -2.0]), centre, 2.0, False, (4, 800, 3), 1)
    offsets = X.reshape(-1, 3) - centre
    assert offsets[:, 0].mean() == pytest.approx(0.75, abs=0.05)
    assert stats.kstest((np.linalg.norm(offsets, axis=1) / 2) ** 3, "uniform").pvalue > 1e-3
    assert offsets[:, 0].min() >= 0


def test_under_the_prior_coordinates_are_truncated_normal() -> None:
    A, b = np.array([[1.0, 0.0], [0.0, -1.0]]), np.array([-0.5, 1.0])  # z_0 >= 0.5, z_1 <= 1
    X = exact_chains(A, b, np.array([1.0, 0.0]), np.array([3.0, 3.0]), NOWHERE, True, (4, 1000, 5), 2).reshape(-1, 2)
    assert stats.kstest(X[:, 0], stats.truncnorm(0.5, np.inf).cdf).pvalue > 1e-3
    assert stats.kstest(X[:, 1], stats.truncnorm(-np.inf, 1.0).cdf).pvalue > 1e-3


def test_moments_agree_with_a_peer() -> None:
    hopsy = pytest.importorskip("hopsy")
    rng = np.random.default_rng(0)
    A, b = np.concatenate([rng.standard_normal((12, 4)), np.eye(4), -np.eye(4)]), np.ones(20)
    problem = hopsy.Problem(-A, b)
    peers = [hopsy.MarkovChain(problem, hopsy.UniformHitAndRunProposal, starting_point=np.zeros(4)) for _ in range(4)]
    _, theirs = hopsy.sample(peers, [hopsy.RandomNumberGenerator(k) for k in range(4)], n_samples=1000, thinning=20)
    ours = exact_chains(A, b, np.zeros(4), np.zeros(4), NOWHERE, False, (4, 1000, 5), 0)
    for power in (1, 2):
        x, y = (np.asarray(X) ** power for X in (ours, theirs))
        errors = [X.std(axis=(0, 1)) / np.sqrt(effective_size(X)) for X in (x, y)]
        assert (np.abs(x.mean(axis=(0, 1)) - y.mean(axis=(0, 1))) < 3 * np.hypot(*errors)).all()


def test_the_largest_ball_is_in_the_polytope() -> None:
    A, b = simplex(2)
    centre, radius = chebyshev(A, b, np.full(2, -5.0), np.full(2, 5.0))
    inner = 1 / (2 + 2**0.5)  # of a right triangle with legs of 1
    np.testing.assert_allclose(centre, inner, atol=1e-9)
    assert radius == pytest.approx(inner)
    with pytest.raises(fo.InputError, match="expected one with points inside, found none"):
        chebyshev(np.array([[1.0], [-1.0]]), np.array([-1.0, -1.0]), np.zeros(1), np.ones(1))


def test_the_largest_ball_of_a_region_is_no_smaller_than_the_query_s() -> None:
    G = dense()
    of = region(G, query(G), 1)
    centre, radius = largest_ball(of, 2.0)
    nearest = nearest_boundaries(G, query(G), 1, candidates=1).distance[0]
    assert radius >= nearest > 0
    assert nearest_boundaries(G, centre, 1, candidates=1).distance[0] == pytest.approx(radius)
    assert of.contains(centre)


def test_four_hundred_faces_in_a_hundred_dimensions() -> None:
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((400, 100)), np.abs(10 * rng.standard_normal(400))
    X = exact_chains(A, b, np.zeros(100), np.zeros(100), 5.0, False, (4, 250, SWEEPS), 0)
    assert (X.reshape(-1, 100) @ A.T + b >= 0).all()
    assert split_rhat(X).max() < 1.05
    assert effective_size(X).min() > 400


@examples(6)
@given(seeds, st.sampled_from(["box", "ball", "prior"]))
def test_points_of_a_region_are_in_it(seed: int, within: str) -> None:
    G = dense()
    z0 = np.random.default_rng(seed).standard_normal(LATENT)
    for layer, mask in ((1, None), (2, [0, 1, 2])):
        of = region(G, z0, layer, mask)
        found = hit_and_run(of, 40, within, 0.7, sweeps=2, seed=seed)  # type: ignore[arg-type]
        assert of.check(found.points).all()
        offsets = found.points - z0
        assert within != "box" or np.abs(offsets).max() <= 0.7 * (1 + 1e-12)
        assert within != "ball" or np.linalg.norm(offsets, axis=1).max() <= 0.7 * (1 + 1e-12)
        assert found.polytope == (layer == 1)
        assert (found.evaluations == 0) == (layer == 1)


def test_faces_are_those_of_the_formula() -> None:
    G = convolutional()
    of = region(G, query(G), 1)
    A, b = faces_of(of)
    Z = np.random.default_rng(0).standard_normal((20, 10))
    np.testing.assert_allclose(Z @ A.T + b, (of.exact(Z) * of.signs)[:, of.units], atol=1e-10)
    with pytest.raises(fo.InputError, match="expected one of a layer that is affine in z, found layer 2"):
        faces_of(region(G, query(G), 2))


@pytest.mark.parametrize("within", ["box", "ball"])
def test_slices_agree_with_rejection(within: str) -> None:
    G, r = dense(widths=(2, 12, 12, 16)), 1.5
    z0, mask = query(G, 9), np.arange(12)
    of = region(G, z0, 2, mask)
    rng = np.random.default_rng(0)
    Z = z0 + rng.uniform(-r, r, (20_000, 2))
    Z = Z[of.contains(Z) & ((within == "box") | (np.linalg.norm(Z - z0, axis=1) <= r))]
    assert 0.1 < len(Z) / 20_000 < 0.7
    tree = explore(G, z0, 2, mask, interval=r, delta=0.2, expansions=100)
    found = hit_and_run(of, 1600, within, r, chains=8, sweeps=6, starts=tree)  # type: ignore[arg-type]
    assert found.mixed
    error = Z.std(axis=0) / np.sqrt(found.ess)
    assert (np.abs(found.points.mean(axis=0) - Z.mean(axis=0)) < 4 * error).all()
    np.testing.assert_allclose(np.cov(found.points.T), np.cov(Z.T), atol=0.15 * np.var(Z))


def test_slices_under_the_prior() -> None:
    G = dense(widths=(2, 12, 12, 16))
    of = region(G, query(G, 9), 2)
    Z = np.random.default_rng(0).standard_normal((20_000, 2))
    Z = Z[of.contains(Z)]
    found = hit_and_run(of, 1600, "prior", chains=8, sweeps=6)
    assert (np.abs(found.points.mean(axis=0) - Z.mean(axis=0)) < 4 * Z.std(axis=0) / np.sqrt(found.ess)).all()


def test_chains_that_have_not_mixed_say_so() -> None:
    G = dense()
    of = region(G, query(G), 2)
    stuck = hit_and_run(of, 16, "prior", sweeps=1)
    assert not stuck.mixed
    assert "not mixed: the points need not have the prior's density" in str(stuck)
    well = hit_and_run(region(G, query(G), 1), 400, "ball", 0.5)
    assert well.mixed
    assert "mixed: the points are uniform within a ball of 0.5" in str(well)


@pytest.mark.parametrize("layer", [1, 2])
@pytest.mark.parametrize("within", ["box", "ball", "prior"])
def test_a_region_without_boundaries_is_the_whole_space(layer: int, within: str) -> None:
    G = dense()
    found = hit_and_run(region(G, query(G), layer, []), 600, within, 0.5, sweeps=20)  # type: ignore[arg-type]
    centre = 0 if within == "prior" else query(G)
    size = {"box": 0.5 / 3**0.5, "ball": 0.5 / (LATENT + 2) ** 0.5, "prior": 1.0}[within]
    np.testing.assert_allclose(found.points.std(axis=0), size, rtol=0.25)
    assert (np.abs(found.points.mean(axis=0) - centre) < 4.5 * size / np.sqrt(found.ess)).all()


def test_one_short_chain_is_enough_for_an_answer() -> None:
    G = dense()
    found = hit_and_run(region(G, query(G), 1), 4, chains=1, sweeps=1)
    assert found.points.shape == (4, LATENT)
    assert found.region.contains(found.points).all()


def test_diagnostics_of_known_chains() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4, 1000, 2))
    assert split_rhat(X).max() < 1.01
    np.testing.assert_allclose(effective_size(X), 4000, rtol=0.2)
    Y = np.empty((4, 4000, 1))
    Y[:, 0] = rng.standard_normal((4, 1))
    for k in range(1, 4000):
        Y[:, k] = 0.8 * Y[:, k - 1] + 0.6 * rng.standard_normal((4, 1))
    np.testing.assert_allclose(effective_size(Y), 16_000 * 0.2 / 1.8, rtol=0.2)  # (1 - rho) / (1 + rho)
    assert split_rhat(X + np.array([[[0, 0]], [[0, 2]], [[0, 0]], [[0, 2]]]))[1] > 1.3
    drift = X[:, :, :1] + np.linspace(0, 3, 1000)[:, None]
    assert split_rhat(drift)[0] > 1.2  # which unsplit chains would not show
    assert split_rhat(np.ones((2, 8, 1)))[0] == 1.0
    assert effective_size(np.ones((2, 8, 1)))[0] == 1.0


def test_arguments_are_checked() -> None:
    G = dense()
    of = region(G, query(G), 2)
    for call, message in (
        (lambda: hit_and_run(of, 3), "count: expected a whole number >= 16"),
        (lambda: hit_and_run(of, 100, "cube"), "within: expected one of box, ball, prior"),  # type: ignore[arg-type]
        (lambda: hit_and_run(of, 100, radius=0), "radius: expected a number > 0"),
        (lambda: hit_and_run(G, 100), "region: expected a Region, found Generator"),  # type: ignore[arg-type]
        (lambda: hit_and_run(of, 100, starts=query(G) + 9), "starts: expected points of the region"),
        (lambda: split_rhat(np.zeros((2, 3, 1))), "expected chains"),
    ):
        with pytest.raises(fo.InputError, match=message):
            call()
