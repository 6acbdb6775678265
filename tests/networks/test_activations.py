from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.networks.activations import Leaky, Softplus
from tests.derivatives import centred, torch_activation
from tests.strategies import activations, seeds

WIDTH = 5
ALL = [fo.Erf(0.7), fo.PReLU(0.2), fo.ReLU(), fo.ELU(1.3), fo.Tanh(), fo.Identity()]


def pre_activations(seed: int) -> np.ndarray:
    """(7, WIDTH) numbers of many sizes, none so near 0 that a difference would straddle a kink."""
    rng = np.random.default_rng(seed)
    c = rng.standard_normal((7, WIDTH)) * 10.0 ** rng.uniform(-1, 0.5, size=(7, 1))
    return np.where(np.abs(c) < 1e-3, 1e-3, c)


@given(activations(WIDTH), seeds)
def test_derivatives_agree_with_centred_differences(activation: fo.Activation, seed: int) -> None:
    c = pre_activations(seed)
    ones = np.ones_like(c)
    # Absolute 1e-9 is what a difference of step eps^(1/3) can resolve of a function of size 1.
    np.testing.assert_allclose(activation.slope(c), centred(activation.value, c, ones), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(activation.curvature(c), centred(activation.slope, c, ones), rtol=1e-6, atol=2e-8)


@given(activations(WIDTH), seeds)
def test_values_and_derivatives_agree_with_torch(activation: fo.Activation, seed: int) -> None:
    c = pre_activations(seed)
    t = torch.tensor(c, requires_grad=True)
    value = torch_activation(activation, t)
    (slope,) = torch.autograd.grad(value.sum(), t, create_graph=True)
    curvature = torch.zeros_like(t)
    if slope.requires_grad:
        (curvature,) = torch.autograd.grad(slope.sum(), t, allow_unused=True, materialize_grads=True)
    for ours, theirs in (
        (activation.value(c), value),
        (activation.slope(c), slope),
        (activation.curvature(c), curvature),
    ):
        np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=1e-12, atol=1e-14)


@given(activations(WIDTH).filter(lambda activation: activation.tunable), seeds)
def test_parameter_slope_agrees_with_differences_and_torch(activation: fo.Activation, seed: int) -> None:
    c = pre_activations(seed)
    value = np.broadcast_to(np.asarray(activation.parameter_value), WIDTH).copy()
    at = centred(lambda p: type(activation)(np.maximum(p, 1e-5)).value(c), np.maximum(value, 0.01), np.ones(WIDTH))
    ours = type(activation)(np.maximum(value, 0.01)).parameter_slope(c)
    np.testing.assert_allclose(ours, at, rtol=1e-6, atol=1e-9)
    p = torch.tensor(np.broadcast_to(value, c.shape).copy(), requires_grad=True)
    (theirs,) = torch.autograd.grad(torch_activation(activation, torch.tensor(c), p).sum(), p)
    np.testing.assert_allclose(activation.parameter_slope(c), theirs.numpy(), rtol=1e-12, atol=1e-14)


@given(activations(WIDTH), seeds, st.sampled_from(["float32", "float64"]))
def test_shape_and_dtype_are_kept(activation: fo.Activation, seed: int, dtype: str) -> None:
    for shape in ((WIDTH,), (3, WIDTH), (2, 3, WIDTH), (0, WIDTH)):
        c = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
        results = [activation.value(c), activation.slope(c), activation.curvature(c)]
        results += [activation.parameter_slope(c)] if activation.parameter else []
        for result in results:
            assert result.shape == shape
            assert result.dtype == dtype


@given(activations(WIDTH), seeds)
def test_slope_range_holds_every_slope_and_is_attained(activation: fo.Activation, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.standard_normal((2, WIDTH)) * 2, axis=0)
    smallest, largest = activation.slope_range(*ends)
    inside = activation.slope(ends[0] + (ends[1] - ends[0]) * np.linspace(0, 1, 2001)[:, None])
    assert (inside >= smallest - 1e-12).all()
    assert (inside <= largest + 1e-12).all()
    assert (np.abs(inside).max(axis=0) <= activation.lipschitz + 1e-12).all()
    # The range is no wider than what a fine sample of a slope with bounded curvature can miss; a jump at 0 is seen too.
    np.testing.assert_allclose(inside.min(axis=0), np.broadcast_to(smallest, WIDTH), atol=0.06)
    np.testing.assert_allclose(inside.max(axis=0), np.broadcast_to(largest, WIDTH), atol=0.06)


@pytest.mark.parametrize("activation", ALL, ids=lambda activation: type(activation).__name__)
def test_scalars_and_integers_are_accepted(activation: fo.Activation) -> None:
    assert activation.value(np.array(2)).dtype == np.float64
    assert activation.value(np.array(0.0)).shape == ()
    assert float(activation.value(np.array(0.0))) == 0.0


def test_lipschitz_constants_in_closed_form() -> None:
    assert fo.Erf(0.5).lipschitz == pytest.approx(4 / np.sqrt(np.pi))
    assert fo.PReLU(-3.0).lipschitz == 3
    assert fo.ELU(2.0).lipschitz == 2
    assert [fo.ReLU().lipschitz, fo.Tanh().lipschitz, fo.Identity().lipschitz] == [1, 1, 1]


def test_equality_is_by_kind_and_parameter() -> None:
    assert fo.Erf(0.5) == fo.Erf(0.5)
    assert fo.Erf(0.5) != fo.Erf(0.6)
    assert fo.PReLU(0.0) != fo.ReLU()
    assert fo.Erf(np.array([1.0, 2.0])) == fo.Erf(np.array([1.0, 2.0]))
    assert len({fo.Erf(0.5), fo.Erf(0.5), fo.Tanh()}) == 2


def test_a_parameter_belongs_to_its_activation() -> None:
    sigma = np.array([1.0, 2.0])
    activation = fo.Erf(sigma)
    sigma[0] = 9
    assert activation.sigma[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        activation.sigma[0] = 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fo.Erf(0.0), "sigma: expected positive"),
        (lambda: fo.Erf(np.array([1.0, -1.0])), "sigma: expected positive"),
        (lambda: fo.Erf(np.nan), "sigma: expected finite"),
        (lambda: fo.Erf(np.ones((2, 2))), "sigma: expected one number or one per neuron"),
        (lambda: fo.PReLU("steep"), "alpha: expected real numbers"),
        (lambda: fo.ELU([]), "alpha: expected one number"),
    ],
)
def test_bad_parameters_are_named(make, message: str) -> None:
    with pytest.raises(fo.InputError, match=message):
        make()


def test_an_activation_without_parameter_says_so() -> None:
    with pytest.raises(fo.DerivativeError, match="Tanh has no parameter"):
        fo.Tanh().parameter_slope(np.ones(2))


# What homotopy paths are made of


@given(activations(WIDTH), st.floats(0, 1), st.booleans(), seeds)
def test_derivatives_of_a_leaky_activation(inner: fo.Activation, leak: float, per_neuron: bool, seed: int) -> None:
    c, ones = pre_activations(seed), np.ones((7, WIDTH))
    activation = Leaky(inner, np.linspace(0, leak, WIDTH) if per_neuron else leak)
    # The tolerances of the test of all other activations, above.
    np.testing.assert_allclose(activation.slope(c), centred(activation.value, c, ones), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(activation.curvature(c), centred(activation.slope, c, ones), rtol=1e-6, atol=2e-8)
    along = centred(lambda p: Leaky(inner, p).value(c), np.asarray(activation.leak), np.ones(()))
    np.testing.assert_allclose(activation.parameter_slope(c), along, rtol=1e-6, atol=1e-9)
    p = torch.tensor(np.broadcast_to(activation.leak, c.shape).copy(), requires_grad=True)
    t = torch.tensor(c, requires_grad=True)
    theirs = (1 - p) * torch_activation(inner, t) + p * t
    slope, by_leak = torch.autograd.grad(theirs.sum(), (t, p))
    for ours, expected in (
        (activation.value(c), theirs.detach()),
        (activation.slope(c), slope),
        (activation.parameter_slope(c), by_leak),
    ):
        np.testing.assert_allclose(ours, expected.numpy(), rtol=1e-12, atol=1e-14)


@given(activations(WIDTH), st.floats(0, 1), seeds)
def test_a_leaky_activation_keeps_its_slopes_in_range(inner: fo.Activation, leak: float, seed: int) -> None:
    activation, rng = Leaky(inner, leak), np.random.default_rng(seed)
    ends = np.sort(rng.standard_normal((2, WIDTH)) * 2, axis=0)
    smallest, largest = activation.slope_range(*ends)
    inside = activation.slope(ends[0] + (ends[1] - ends[0]) * np.linspace(0, 1, 501)[:, None])
    assert (inside >= smallest - 1e-12).all()
    assert (inside <= largest + 1e-12).all()
    assert (np.abs(inside) <= activation.lipschitz + 1e-12).all()


@given(st.floats(-2, 2), seeds)
def test_a_leaky_relu_is_a_prelu(alpha: float, seed: int) -> None:
    c, prelu = pre_activations(seed), fo.PReLU(alpha)
    for leaky in (Leaky(fo.ReLU(), alpha), Leaky(fo.ELU(0.0), alpha)):
        np.testing.assert_allclose(leaky.value(c), prelu.value(c), rtol=1e-14)
        np.testing.assert_allclose(leaky.slope(c), prelu.slope(c), rtol=1e-14)
        np.testing.assert_array_equal(leaky.curvature(c), 0)


@given(activations(WIDTH), st.floats(1e-6, 0.5), seeds)
def test_relaxed_activations_have_slopes_from_tau_to_1_and_lead_back(
    trained: fo.Activation, tau: float, seed: int
) -> None:
    c = pre_activations(seed)[0]
    easy = trained.relaxed(c, tau)
    reach = np.sqrt(2 / (np.pi * np.e)) / tau
    within = np.abs(c) <= (reach if isinstance(trained, fo.Erf) else np.inf)
    assert (easy.slope(c)[within] >= tau * (1 - 1e-9)).all()  # sigma is 1e-9 too wide, against rounding
    assert (easy.slope(c) <= 1 + 1e-12).all()
    assert easy.lipschitz.max() <= 1 + 1e-12
    for t, end in ((0.0, easy), (1.0, trained)):
        np.testing.assert_allclose(easy.towards(trained, t).value(c), end.value(c), rtol=1e-12, atol=1e-15)


def test_leaky_activations_are_equal_by_what_they_are_made_of() -> None:
    assert Leaky(fo.Tanh(), 0.1) == Leaky(fo.Tanh(), 0.1)
    assert Leaky(fo.Tanh(), 0.1) != Leaky(fo.Tanh(), 0.2)
    assert Leaky(fo.Tanh(), 0.1) != Leaky(fo.Identity(), 0.1)
    assert Leaky(fo.Tanh(), 0.1) != fo.Tanh()
    assert len({Leaky(fo.Tanh(), 0.1), Leaky(fo.Tanh(), 0.1), Leaky(fo.ELU(1.0), 0.1)}) == 2
    assert Leaky(fo.ELU(np.ones(3)), 0.1).shape == (3,)


# What softened networks are made of


@given(st.floats(0.05, 3.0), st.booleans(), seeds)
def test_derivatives_of_softplus(width: float, per_neuron: bool, seed: int) -> None:
    c, ones = pre_activations(seed), np.ones((7, WIDTH))
    activation = Softplus(np.linspace(width, 2 * width, WIDTH) if per_neuron else width)
    # The slope bends within the width, so that is what a step must be short of: the error is (step / width)^2.
    np.testing.assert_allclose(activation.slope(c), centred(activation.value, c, ones), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(activation.curvature(c), centred(activation.slope, c, ones), rtol=1e-5, atol=1e-6)
    by_width = centred(lambda p: Softplus(p).value(c), np.asarray(activation.width), np.ones(()))
    np.testing.assert_allclose(activation.parameter_slope(c), by_width, rtol=1e-6, atol=1e-7)
    t, p = torch.tensor(c), torch.tensor(np.broadcast_to(activation.width, c.shape).copy())
    theirs = p * torch.logaddexp(torch.zeros_like(t), t / p)
    np.testing.assert_allclose(activation.value(c), theirs.numpy(), rtol=1e-12, atol=1e-14)


@given(st.floats(0.05, 3.0), seeds)
def test_softplus_keeps_its_slopes_in_range_and_near_the_kink(width: float, seed: int) -> None:
    activation, rng = Softplus(width), np.random.default_rng(seed)
    ends = np.sort(rng.standard_normal((2, WIDTH)) * 2, axis=0)
    smallest, largest = activation.slope_range(*ends)
    inside = activation.slope(ends[0] + (ends[1] - ends[0]) * np.linspace(0, 1, 501)[:, None])
    np.testing.assert_allclose([inside.min(axis=0), inside.max(axis=0)], [smallest, largest], rtol=1e-12)
    assert activation.lipschitz == 1
    c = np.linspace(-1e3, 1e3, 999) * width
    above = activation.value(c) - fo.ReLU().value(c)
    assert (above >= 0).all()
    assert above.max() <= np.log(2) * width * (1 + 1e-12)  # at the kink
    assert activation.value(c).dtype == np.float64


@given(activations(WIDTH), st.floats(0.01, 1.0), seeds)
def test_softened_activations_are_near_and_no_steeper(trained: fo.Activation, share: float, seed: int) -> None:
    c = pre_activations(seed)
    soft = trained.softened(share, size=2.0)
    assert (soft.lipschitz <= trained.lipschitz + 1e-12).all()
    if isinstance(trained, fo.Erf):
        np.testing.assert_allclose(soft.sigma, (1 + share) * np.asarray(trained.sigma))
    elif isinstance(trained, fo.PReLU):
        assert soft.shape == trained.shape
        off = np.abs(1 - np.asarray(trained.alpha)) * np.log(2) * 2 * share
        assert (np.abs(soft.value(c) - trained.value(c)) <= off * (1 + 1e-12) + 1e-12).all()
    else:
        assert soft is trained


def test_a_softplus_needs_a_width() -> None:
    with pytest.raises(fo.InputError, match="width: expected positive numbers, found 0"):
        Softplus(0.0)


def test_only_what_has_a_parameter_in_common_can_be_moved_between() -> None:
    assert fo.Tanh().towards(fo.Tanh(), 0.3) == fo.Tanh()
    assert fo.Erf(1.0).towards(fo.Erf(3.0), 0.25) == fo.Erf(1.5)
    assert fo.PReLU(1.0).towards(fo.ReLU(), 0.25) == fo.PReLU(0.75)
    for a, b in ((fo.Tanh(), fo.Identity()), (fo.Erf(1.0), fo.ELU(1.0)), (fo.PReLU(0.1), fo.ELU(1.0))):
        with pytest.raises(fo.InputError, match=f"other: expected a {type(a).__name__}"):
            a.towards(b, 0.5)
