"""The easy network N^h keeps its promises at x, and the way back to the trained one is straight."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import flipopt as fo
from flipopt.bounds import lipschitz
from flipopt.homotopy import Transformation, flip_bias, transform
from flipopt.networks.activations import TWO_OVER_SQRT_PI, Leaky
from tests.strategies import points, seeds

FLOOR = 1 - 1e-9  # sigma is chosen a relative 1e-9 too wide, so that rounding does not take the slope below tau
CEILING = 1 + 1e-12  # (1 - leak) slope + leak and 2 / (sigma sqrt(pi)) are rounded a few times
TAUS = st.sampled_from([1e-5, 1e-4, 1e-2, 0.3])
KINDS = ("erf", "prelu", "relu", "elu", "tanh", "identity")


def activation(kind: str, width: int, per_neuron: bool, rng: np.random.Generator) -> fo.Activation:
    """Trained parameters of all sizes: steep and flat erf, PReLU and ELU with alphas below 0 and above 1."""
    size = width if per_neuron else None
    match kind:
        case "erf":
            return fo.Erf(10 ** rng.uniform(-2, 1.5, size))
        case "prelu":
            return fo.PReLU(rng.uniform(-2, 2, size))
        case "elu":
            return fo.ELU(rng.uniform(-1, 2, size))
    return {"relu": fo.ReLU, "tanh": fo.Tanh, "identity": fo.Identity}[kind]()


@st.composite
def cases(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS) -> tuple[fo.FlipProblem, float, float]:
    """A network, all of one kind or mixed, with trouble put in; a point of it, tau and the margin.

    The trouble: one neuron with a pre-activation of up to 1e4, or a layer that is dead: below 0 throughout, and so far
    out that a tanh or trained erf is flat. With a larger tau it is kept within what tau can reach, 0.48 / tau.
    """
    tau = draw(TAUS)
    largest = min(1e4, 0.3 / tau)
    n_hidden, seed = draw(st.integers(1, 4)), draw(seeds)
    classes = draw(st.sampled_from([2, 3, 50]))
    widths = [draw(st.integers(1, 10)) for _ in range(n_hidden + 1)] + [classes]
    rng = np.random.default_rng(seed)
    W = [rng.standard_normal(pair) / np.sqrt(pair[0]) for pair in pairwise(widths)]
    b = [rng.standard_normal(width) for width in widths[1:]]
    layer, trouble = draw(st.integers(0, n_hidden - 1)), draw(st.sampled_from(["none", "saturated", "dead"]))
    if trouble == "saturated":
        b[layer][0] = rng.choice([-1, 1]) * largest * 10 ** rng.uniform(-2, 0)
    elif trouble == "dead":
        b[layer] -= 0.5 * largest
        W[layer] *= draw(st.sampled_from([1.0, 0.0]))
    one, mixed = draw(st.sampled_from(kinds)), draw(st.booleans())
    chosen = [draw(st.sampled_from(kinds)) if mixed else one for _ in range(n_hidden)]
    per_neuron = draw(st.booleans())
    net = fo.DenseNetwork(W, b, [activation(k, n, per_neuron, rng) for k, n in zip(chosen, widths[1:-1])])
    flip = rng.permutation(classes)[: draw(st.sampled_from([2, 3])) if classes > 2 else 2]
    problem = fo.flip_problem(
        net,
        points(net, None, seed),
        flip,
        margin=draw(st.sampled_from([0.0, 0.01])),
        outputs=draw(st.sampled_from(["logits", "probabilities"])),
    )
    return problem, tau, draw(st.sampled_from([0.0, 0.1, 1.0]))


def attainable(activation: fo.Activation, c: np.ndarray, tau: float) -> np.ndarray:
    """tau; or for an erf the steepest slope at c that any sigma in the range of (16) gives, if that is less.

    A ReLU's output of 1e4 may take a neuron of the next layer beyond the reach of tau.
    """
    if not isinstance(activation, fo.Erf):
        return np.full_like(c, tau)
    sigma = np.clip(np.sqrt(2) * np.abs(c), *lipschitz.sigma_range(tau))
    return np.minimum(tau, TWO_OVER_SQRT_PI / sigma * np.exp(-((c / sigma) ** 2)))


def assert_gradients_flow(easy: fo.DenseNetwork, x: np.ndarray, tau: float) -> None:
    for a, c in zip(easy.activations, easy.pre_activations(x)):
        slope = a.slope(c)
        assert (slope >= attainable(a, c, tau) * FLOOR).all(), (slope, c)
        assert (slope <= CEILING).all(), (slope, c)


def assert_feasible(problem: fo.FlipProblem, easy: fo.DenseNetwork, margin: float) -> None:
    y, tied = easy.logits(problem.x), list(problem.classes)
    # The bias is computed from logits that are summed in another order: a few units in the last place of the largest.
    rounding = 1e-9 * max(1.0, np.abs(y).max())
    assert np.ptp(y[tied]) <= rounding
    others = np.delete(y, tied)
    assert (others <= y[tied].min() - margin + rounding).all()
    check = fo.verify(problem.changed(network=easy), problem.x)
    assert check.on_boundary, check
    assert check.kkt_residual == 0  # at x itself nothing is closer


def assert_bounded(made: Transformation, tau: float, x: np.ndarray, seed: int) -> None:
    """(15) within (16) at t = 0 and within path_bounds all the way, and above every sampled Jacobian."""
    low, high = lipschitz.homotopy_bounds(made.network, tau)
    # An erf's sigma is at most 2 / (tau sqrt(pi)) and at least 2 / sqrt(pi), each rounded; the bounds are products of
    # up to five factors. 1e-9 covers that, and OUTWARD in the global bound.
    assert low * (1 - 1e-9) <= lipschitz.global_bound(made.at(0), np.inf) <= high * (1 + 1e-9)
    low, high = lipschitz.path_bounds(made.network, tau)
    X = x + np.random.default_rng(seed).standard_normal((20, len(x))) * np.logspace(-3, 1, 20)[:, None]
    for t in (0.0, 0.1, 0.5, 0.9, 1.0):
        network = made.at(t)
        assert low * (1 - 1e-9) <= lipschitz.global_bound(network, np.inf) <= high * (1 + 1e-9), t
        assert max(np.linalg.norm(J, ord=np.inf) for J in network.jacobian(X)) <= high * (1 + 1e-9), t


@given(cases(), seeds)
def test_gradients_flow_x_is_a_flip_and_the_lipschitz_constant_is_bounded(case: tuple, seed: int) -> None:
    problem, tau, margin = case
    made = transform(problem, tau, margin)
    assert_gradients_flow(made.at(0), problem.x, tau)
    assert_feasible(problem, made.at(0), margin)
    assert_bounded(made, tau, problem.x, seed)


@given(cases(("prelu", "relu")), seeds)
def test_the_smooth_variant_promises_the_same_and_has_no_jump(case: tuple, seed: int) -> None:
    problem, tau, margin = case
    made = transform(problem, tau, margin, smooth=True)
    assert_gradients_flow(made.at(0), problem.x, tau)
    assert_feasible(problem, made.at(0), margin)
    assert_bounded(made, tau, problem.x, seed)
    for left, right in made.at(0).one_sided_slopes:
        np.testing.assert_allclose(left, right, rtol=0, atol=1e-15)


def one_layer(c: np.ndarray, trained: fo.Activation) -> fo.FlipProblem:
    """A network whose hidden pre-activations are ``c``, whatever the input."""
    net = fo.DenseNetwork([np.zeros((2, len(c))), np.eye(len(c), 2)], [c, np.zeros(2)], trained)
    return fo.flip_problem(net, np.zeros(2), (0, 1))


@pytest.mark.parametrize("tau", [1e-2, 1e-5])
def test_up_to_the_reach_of_tau_a_layer_has_one_sigma_and_slope_tau(tau: float) -> None:
    reach = np.sqrt(2 / (np.pi * np.e)) / tau
    for largest in (0.9 * reach, 0.3 * reach, 1e-3 * reach):
        c = np.array([0.0, largest / 9, -largest])
        easy = transform(one_layer(c, fo.Erf(0.1)), tau, 0.0).activations[0]
        assert easy.shape == ()
        assert easy.slope(c).min() >= tau * FLOOR
        # It is no wider than it must be for the slope not to exceed 1, or not to fall below tau.
        assert easy.slope(c).max() == pytest.approx(1) or easy.slope(c).min() == pytest.approx(tau, rel=1e-6)


@pytest.mark.parametrize("tau", [1e-2, 1e-5])
@pytest.mark.parametrize("times", [1.001, 2.0, 30.0])
def test_beyond_the_reach_of_tau_the_steepest_sigma_is_taken_for_that_neuron_alone(tau: float, times: float) -> None:
    c = np.array([0.0, 3.0, -0.5 / tau * 0.4, times * np.sqrt(2 / (np.pi * np.e)) / tau])
    easy = transform(one_layer(c, fo.Erf(0.1)), tau, 0.0).activations[0]
    assert easy.shape == (4,)
    slopes = easy.slope(c)
    assert (slopes[:3] >= tau * FLOOR).all()
    assert (slopes <= CEILING).all()
    # No sigma does better: over a fine grid, none has a steeper slope at this c.
    widths = np.geomspace(TWO_OVER_SQRT_PI, 1e3 / tau, 20001)
    best = (TWO_OVER_SQRT_PI / widths * np.exp(-((c[3] / widths) ** 2))).max()
    assert best < tau
    assert slopes[3] >= best * (1 - 1e-6)


@given(st.floats(1e-6, 0.1), st.floats(0.0, 1.0))
def test_the_printed_line_4_misses_its_own_floor(tau: float, where: float) -> None:
    """sigma = |c| / gamma gives slope tau with respect to c / sigma, which is tau / sigma with respect to c."""
    gamma = np.sqrt(np.log(2 / (tau * np.sqrt(np.pi))))
    least = 1.01 * TWO_OVER_SQRT_PI * gamma  # from here on the maximum of line 4 is |c| / gamma
    c = np.array([least * (0.99 * np.sqrt(2 / (np.pi * np.e)) / tau / least) ** where])
    printed = fo.Erf(c[0] / gamma)
    assert printed.slope(c)[0] == pytest.approx(tau / printed.sigma, rel=1e-9)
    assert printed.slope(c)[0] < 0.9 * tau
    ours = fo.Erf(0.1).relaxed(c, tau)
    assert ours.slope(c)[0] >= tau * FLOOR
    assert ours.sigma > printed.sigma


def test_a_point_outside_its_bounds_is_transformed_at_the_nearest_point_inside() -> None:
    net = fo.DenseNetwork([np.eye(2), np.eye(2)], [np.zeros(2), np.zeros(2)], fo.Erf(0.01))
    problem = fo.flip_problem(net, np.array([5.0, 0.0]), (0, 1), bounds=(-1.0, 1.0))
    easy = transform(problem, 1e-5, 0.1).at(0)
    assert easy.logits(problem.clip(problem.x)) == pytest.approx(np.mean(easy.logits([1.0, 0.0])))


# Line 13


def by_slsqp(y: np.ndarray, classes: tuple[int, ...], margin: float) -> np.ndarray:
    """The quadratic program of line 13 as it is printed, solved by someone else."""
    goal = fo.flip_problem(fo.DenseNetwork([np.eye(len(y))], [y]), y, classes, margin).goal
    parts = ((goal.equations, "eq"), (~goal.equations, "ineq"))
    constraints = [
        {"type": kind, "fun": lambda d, T=goal.T[rows], low=goal.lower[rows]: T @ (y + d) - low,
         "jac": lambda d, T=goal.T[rows]: T}
        for rows, kind in parts
        if rows.any()
    ]  # fmt: skip
    options = {"ftol": 1e-14, "maxiter": 500}
    found = minimize(lambda d: d @ d, 0 * y, jac=lambda d: 2 * d, constraints=constraints, options=options).x
    # Its own verdict does not matter (at an optimum its line search has nowhere to go), if its point is feasible.
    values = goal.T @ (y + found)
    assert (values >= goal.lower - 1e-10).all()
    assert (values <= goal.upper + 1e-10).all()
    return found


def by_levels(y: np.ndarray, classes: tuple[int, ...], margin: float) -> float:
    """The least squared change, over a fine grid of the level that the tied classes are put on."""
    tied = list(classes)
    levels = np.linspace(y.min() - 1, y.max() + margin + 1, 20001)
    changes = np.sum((levels[:, None] - y[tied]) ** 2, axis=1)
    changes += np.sum(np.maximum(0, np.delete(y, tied) + margin - levels[:, None]) ** 2, axis=1)
    return float(changes.min())


@given(st.sampled_from([2, 3, 5, 20]), st.sampled_from([2, 3]), st.floats(0, 2), seeds)
def test_the_output_bias_changes_least(n_classes: int, tied: int, margin: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(n_classes) * 3
    classes = tuple(int(k) for k in rng.permutation(n_classes)[: min(tied, n_classes)])
    change = flip_bias(y, classes, margin)
    moved = y + change
    assert np.ptp(moved[list(classes)]) <= 1e-13 * np.abs(y).max()
    assert (np.delete(moved, classes) <= moved[classes[0]] - margin + 1e-13 * np.abs(y).max()).all()
    # SLSQP's point may violate the constraints by 1e-10, and be better by that times their multipliers.
    theirs = by_slsqp(y, classes, margin)
    assert change @ change <= theirs @ theirs + 1e-9 * (1 + y @ y)
    np.testing.assert_allclose(change, theirs, rtol=0, atol=1e-4 * (1 + np.abs(y).max()))  # the minimiser is unique
    # The grid's best level is feasible and no better; it is off by half a step at most, and the square is flat there.
    best = by_levels(y, classes, margin)
    assert change @ change <= best * (1 + 1e-12) + 1e-12
    step = (np.ptp(y) + margin + 2) / 20000
    assert best <= change @ change + n_classes * step**2


def test_a_bias_that_is_right_already_stays() -> None:
    y = np.array([2.0, 2.0, 1.0, -5.0])
    assert (flip_bias(y, (0, 1), 0.5) == 0).all()
    assert flip_bias(y, (0, 2), 0.0) == pytest.approx([-1 / 3, -1 / 3, 2 / 3, 0.0])  # class 1 comes down with class 0


# The way back


@given(cases(), st.floats(0.01, 0.99))
def test_everything_moves_in_a_straight_line(case: tuple, t: float) -> None:
    problem, tau, margin = case
    made, trained = transform(problem, tau, margin), problem.network
    assert made.at(1) is trained
    start, between = made.at(0), made.at(t)
    assert all(a is b is c for a, b, c in zip(start.weights, between.weights, trained.weights))
    assert all(a is b is c for a, b, c in zip(start.biases[:-1], between.biases[:-1], trained.biases[:-1]))
    line = (1 - t) * start.biases[-1] + t * trained.biases[-1]
    np.testing.assert_allclose(between.biases[-1], line, rtol=1e-13, atol=1e-13 * np.abs(line).max())
    for easy, now, end in zip(start.activations, between.activations, trained.activations):
        for p_easy, p_now, p_end in zip(_parameters(easy), _parameters(now), _parameters(end)):
            np.testing.assert_allclose(p_now, p_easy * (1 - t) + p_end * t, rtol=1e-13, atol=1e-15)


def _parameters(a: fo.Activation) -> tuple[np.ndarray, np.ndarray]:
    """The parameter and the leak; no leak is one of 0."""
    inner, leak = (a.inner, a.leak) if isinstance(a, Leaky) else (a, 0.0)
    return np.asarray(inner.parameter_value), np.asarray(leak)


def test_a_relu_goes_back_to_0_and_a_prelu_to_what_was_trained() -> None:
    """The printed F3 multiplies alpha by (eta - k) / eta, which ends at 0 whatever was trained."""
    c = np.array([-1.0, 2.0])
    for trained, alpha in ((fo.ReLU(), 0.0), (fo.PReLU(0.25), 0.25), (fo.PReLU(3.0), 3.0), (fo.PReLU(-0.5), -0.5)):
        made = transform(one_layer(c, trained), 1e-3, 0.0)
        easy = np.clip(alpha, 1e-3, 1.0)
        for t in (0.0, 0.25, 1 - 1e-9):
            assert made.at(t).activations[0] == fo.PReLU((1 - t) * easy + t * alpha)
        assert made.at(1).activations[0] is trained


@pytest.mark.parametrize("trained", [fo.ReLU(), fo.PReLU(0.25), fo.PReLU(-0.5)], ids=repr)
def test_the_smooth_variant_ends_at_the_trained_activation(trained: fo.PReLU) -> None:
    c = np.linspace(-3, 3, 41)
    easy = trained.smoothed(1e-3)
    end = easy.towards(trained, 1.0)
    np.testing.assert_allclose(end.value(c), trained.value(c), rtol=0, atol=1e-15)
    np.testing.assert_allclose(end.slope(c), trained.slope(c), rtol=0, atol=1e-15)
    np.testing.assert_allclose(easy.towards(trained, 0.0).value(c), easy.value(c), rtol=0, atol=1e-15)


def test_log_steepness_is_the_logarithm_of_bound_15() -> None:
    rng = np.random.default_rng(0)
    W = [rng.standard_normal((3, 4)), rng.standard_normal((4, 5)), rng.standard_normal((5, 2))]
    net = fo.DenseNetwork(W, [rng.standard_normal(k) for k in (4, 5, 2)], [fo.Erf(0.01), fo.PReLU(3.0)])
    made = transform(fo.flip_problem(net, rng.standard_normal(3), (0, 1)), 1e-3, 0.1)
    bounds = [np.log(lipschitz.global_bound(made.at(t), np.inf)) - made.log_steepness(t) for t in (0.0, 0.3, 0.8, 1.0)]
    assert bounds == pytest.approx([bounds[0]] * 4, abs=1e-9)
    assert made.log_steepness(1.0) - made.log_steepness(0.0) > 1


def test_what_cannot_be_transformed_is_named() -> None:
    problem = one_layer(np.ones(2), fo.Erf(1.0))
    made = transform(problem, 1e-5, 0.1)
    for t in (-0.1, 1.1, np.nan):
        with pytest.raises(fo.InputError, match="t: expected a number from 0 to 1"):
            made.at(t)
    with pytest.raises(fo.InputError, match="homotopy: expected a flip between classes"):
        transform(replace(problem, goal=replace(problem.goal, classes=())), 1e-5, 0.1)
    with pytest.raises(fo.InputError, match="other: expected a Erf with a parameter, found Tanh"):
        fo.Erf(1.0).towards(fo.Tanh(), 0.5)
