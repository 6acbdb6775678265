"""The kinks of torch modules, found while they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flipopt as fo

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

from flipopt.networks.torch_kinks import Rewriting  # noqa: E402

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "relu": functional.relu,
    "torch.relu": torch.relu,
    "method": lambda c: c.relu(),
    "in place": lambda c: c.clone().relu_(),
    "nn.ReLU in place": lambda c: nn.ReLU(inplace=True)(c.clone()),
    "leaky": functional.leaky_relu,
    "prelu": lambda c: functional.prelu(c, torch.tensor([0.1, 0.3, -0.2], dtype=c.dtype)),
    "nn.PReLU": lambda c: nn.PReLU().double()(c),
    "hard tanh": functional.hardtanh,
    "nn.ReLU6": nn.ReLU6(),
    "hard sigmoid": functional.hardsigmoid,
    "hard swish": functional.hardswish,
    "clamp": lambda c: torch.clamp(c, -0.5, 0.25),
    "clamp below": lambda c: c.clamp(min=0.1),
    "abs": torch.abs,
    "maximum": lambda c: torch.maximum(c, -2 * c + 0.1),
    "minimum": lambda c: torch.minimum(c, -2 * c + 0.1),
    "amax": lambda c: c.amax(dim=(2, 3), keepdim=True),
    "amax of all": lambda c: torch.amax(c),
    "max-pool": nn.MaxPool2d(2),
    "overlapping": nn.MaxPool2d(3, stride=2, padding=1),
    "ceiling": nn.MaxPool2d(4, ceil_mode=True),
    "dilated": nn.MaxPool2d(2, stride=1, dilation=2),
    "max over a side": lambda c: c.max(dim=2)[0],
    "max of all": torch.max,
    "max of two": lambda c: torch.max(c, -c + 0.1),
    "leaky in place": lambda c: functional.leaky_relu(c.clone(), 0.1, inplace=True),
    "functional pool": lambda c: functional.max_pool2d(c, (2, 3)),
    "pool of 1": lambda c: functional.max_pool1d(c.flatten(2), 4),
    "after relu": lambda c: functional.max_pool2d(functional.relu(c), 2),
    "global": nn.AdaptiveMaxPool2d(1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_rewritten_by_positive_parts(name: str) -> None:
    function = FUNCTIONS[name]
    C = torch.randn(2, 3, 6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    calls = []

    def positive(c: Any) -> Any:
        calls.append(c)
        return torch.where(c > 0, c, torch.zeros_like(c))

    with Rewriting(positive):
        y = function(C)
    expected = function(C)
    assert calls
    torch.testing.assert_close(y, expected, rtol=1e-12, atol=1e-12)
    weights = torch.randn(y.shape, dtype=y.dtype, generator=torch.Generator().manual_seed(1))
    (ours,), (theirs,) = (torch.autograd.grad((out * weights).sum(), C) for out in (y, expected))
    # torch has the sixth of the hard sigmoid in float32, also in float64.
    torch.testing.assert_close(ours, theirs, rtol=1e-7 if name == "hard sigmoid" else 1e-12, atol=1e-12)


def test_rounded_maxima_are_log_sum_exp() -> None:
    C = torch.randn(1, 1, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with Rewriting(lambda c: functional.softplus(c, beta=3.0, threshold=1e3)):
        y = functional.max_pool2d(C, 2)
    windows = C.unfold(2, 2, 2).unfold(3, 2, 2).reshape(1, 1, 2, 2, 4)
    torch.testing.assert_close(y, torch.logsumexp(3 * windows, dim=-1) / 3)


def small_cnn() -> nn.Module:
    torch.manual_seed(0)
    body = (nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return nn.Sequential(*body, nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, 3)).double().eval()


def test_a_rounded_network_tends_to_the_trained_one_and_has_its_own_derivatives() -> None:
    net = fo.TorchNetwork(small_cnn(), (1, 6, 6))
    X = np.random.default_rng(0).uniform(size=(4, 36))
    gaps = [np.abs(net.softened(share, 1.0).logits(X) - net.logits(X)).max() for share in (0.1, 0.01, 1e-5)]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-4
    soft, V, D = net.softened(0.1, 1.0), np.array([1.0, -1.0, 0.5]), np.random.default_rng(1).normal(size=X.shape)
    step = 1e-5
    differences = (soft.logits(X + step * D) - soft.logits(X - step * D)) @ V / (2 * step)
    np.testing.assert_allclose((soft.vjp(X, V) * D).sum(axis=1), differences, rtol=1e-7)  # central: step^2
    change = (soft.vjp(X + step * D, V) - soft.vjp(X - step * D, V)) / (2 * step)
    np.testing.assert_allclose(soft.hessian_product(X, V, D), change, atol=1e-6 * np.abs(change).max())


def test_smooth_modules_have_no_kinks() -> None:
    assert not fo.TorchNetwork(nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2))).kinked
    assert fo.TorchNetwork(small_cnn(), (1, 6, 6)).kinked


class Odd(nn.Module):
    """Kinks of what is no activation, and a number that is used before and after an activation in place."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.scale = nn.Linear(4, 3), nn.Parameter(torch.tensor([0.5, 2.0, 9.0]))

    def forward(self, x: Any) -> Any:
        h = self.linear(x)
        o = functional.relu(h, inplace=True)
        index = torch.arange(3).clamp(0, 2)
        return (h + o)[:, index] * self.scale.clamp(max=4.6) * self.scale.abs().max()


def test_kinks_of_parameters_and_indices_do_no_harm() -> None:
    net = fo.TorchNetwork(Odd().double(), (4,))
    X = np.random.default_rng(0).normal(size=(5, 4))
    np.testing.assert_allclose(net.softened(1e-9, 1.0).logits(X), net.logits(X), atol=1e-6)
    assert np.isfinite(net.sizes(X)).all()
    assert np.isfinite(fo.closest_flip_points(net, X).evaluations).all()


def test_rows_share_a_forward_pass_and_may_repeat() -> None:
    net = fo.TorchNetwork(small_cnn(), (1, 6, 6))
    X, rng = np.random.default_rng(0).uniform(size=(3, 36)), np.random.default_rng(1)
    points, V = np.array([2, 0, 2, 2, 1]), rng.normal(size=(5, 3))
    Y, pullback = net.linearize_rows(X)
    np.testing.assert_array_equal(Y, net.logits(X))
    np.testing.assert_allclose(pullback(V, points), net.vjp(X[points], V), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "activation", [nn.ReLU(), nn.LeakyReLU(0.2), nn.PReLU(5), nn.ELU(0.7), nn.Tanh(), nn.Identity()], ids=str
)
def test_chains_of_dense_layers_become_dense_networks(activation: nn.Module) -> None:
    module = nn.Sequential(nn.Flatten(), nn.Sequential(nn.Linear(4, 5, bias=False), activation), nn.Linear(5, 3))
    net = fo.TorchNetwork(module, (2, 2))
    assert isinstance(net.in_float64, fo.DenseNetwork)
    X = np.random.default_rng(0).normal(size=(7, 4))
    np.testing.assert_allclose(net.in_float64.logits(X), net.astype("float64").logits(X), rtol=1e-12)


class Perceptron(nn.Module):
    """As people write them."""

    def __init__(self, twist: bool = False) -> None:
        super().__init__()
        self.first, self.second, self.twist = nn.Linear(4, 6), nn.Linear(6, 3), twist

    def forward(self, x: Any) -> Any:
        x = functional.relu(self.first(x.view(len(x) if self.twist else -1, 4)))
        return self.second(x.flip(1) if self.twist else x)


def test_a_perceptron_with_a_forward_of_its_own_is_dense_too() -> None:
    X = np.random.default_rng(0).normal(size=(20, 4))
    net = fo.TorchNetwork(Perceptron(), (2, 2))
    assert isinstance(net.in_float64, fo.DenseNetwork)
    assert fo.closest_flip_points(net, X).success.all()
    assert isinstance(fo.TorchNetwork(Perceptron(twist=True), (2, 2)).in_float64, fo.TorchNetwork)


def test_other_modules_do_not() -> None:
    assert isinstance(fo.TorchNetwork(small_cnn(), (1, 6, 6)).in_float64, fo.TorchNetwork)
    normed = nn.Sequential(nn.Linear(4, 5), nn.LayerNorm(5), nn.ReLU(), nn.Linear(5, 3))
    assert isinstance(fo.TorchNetwork(normed).in_float64, fo.TorchNetwork)
