from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import flipopt as fo
from flipopt.bounds import lower
from flipopt.networks import torch_dense
from flipopt.networks.torch_dense import unrolled
from tests.bounds.test_lipschitz import sphere

SHAPE = (2, 6, 6)


def convolutional(activation: nn.Module, classes: int = 3) -> nn.Sequential:
    torch.manual_seed(0)
    norm = nn.BatchNorm2d(4)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, stride=2, padding=1), norm, activation, nn.Dropout(0.3), nn.Conv2d(4, 5, 2), nn.AvgPool2d(2),
        nn.Tanh(), nn.Flatten(), nn.Linear(5, classes),
    )  # fmt: skip


@pytest.mark.parametrize(
    "activation", [nn.ReLU(), nn.LeakyReLU(0.2), nn.PReLU(4), nn.ELU(), nn.Tanh()], ids=lambda layer: str(layer)
)
def test_written_out_it_has_the_same_logits(activation: nn.Module) -> None:
    if isinstance(activation, nn.PReLU):
        activation.weight.data = torch.tensor([0.1, -0.3, 0.5, 1.2])
    net = fo.TorchNetwork(convolutional(activation), SHAPE).astype(np.float64)
    dense, X = unrolled(net.module, SHAPE), np.random.default_rng(0).standard_normal((7, 72))
    np.testing.assert_allclose(dense.logits(X), net.logits(X), rtol=1e-12, atol=1e-12)


def test_activations_one_after_the_other_and_one_output() -> None:
    module = nn.Sequential(nn.Conv1d(1, 2, 3), nn.ReLU(), nn.Tanh(), nn.Flatten(), nn.Linear(6, 1))
    net = fo.TorchNetwork(module, (1, 5)).astype(np.float64)
    X = np.random.default_rng(0).standard_normal((4, 5))
    np.testing.assert_allclose(unrolled(net.module, (1, 5)).logits(X), net.logits(X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("activation", [nn.ReLU(), nn.Tanh()], ids=lambda layer: str(layer))
def test_nothing_flips_within_what_is_proved_of_a_convolutional_network(activation: nn.Module) -> None:
    net, rng = fo.TorchNetwork(convolutional(activation), SHAPE).astype(np.float64), np.random.default_rng(1)
    X = rng.standard_normal((3, 72))
    proved = lower(net, X)
    assert (proved > 1.5 * lower(net, X, method="lipschitz")).all()
    assert (proved <= fo.closest_flip_points(net, X).distance).all()
    for x, r in zip(X, proved, strict=True):
        Y = net.logits(x + r * sphere(rng, 200, 72, 2))
        assert (Y.argmax(axis=1) == net.logits(x).argmax()).all()


def test_a_torch_module_of_dense_layers_is_a_dense_network_to_it() -> None:
    module = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    net, X = fo.TorchNetwork(module), np.random.default_rng(0).standard_normal((5, 4))
    np.testing.assert_array_equal(lower(net, X), lower(net.in_float64, X))


def test_what_is_too_large_to_be_written_out_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_dense, "ENTRIES", 1000)
    with pytest.raises(fo.InputError, match="at most 1000 weights when written out, found 72 x 36"):
        unrolled(convolutional(nn.ReLU()).double(), SHAPE)
