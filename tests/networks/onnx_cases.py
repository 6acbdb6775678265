"""Exports that the ONNX tests share; what they need and is not installed is a reason to skip."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import numpy as np
import pytest

import flipopt as fo

torch = pytest.importorskip("torch", reason="derivatives of ONNX files need torch")
nn = torch.nn


class Residual(nn.Module):
    """A block with a shortcut, batch norm and global average pooling."""

    def __init__(self, channels: int = 4) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Conv2d(1, channels, 1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.last = nn.Linear(channels, 3)

    def forward(self, x):
        h = self.norm2(self.second(torch.relu(self.norm(self.first(x)))))
        return self.last(self.pool(torch.relu(h + self.shortcut(x))).flatten(1))


class ViT(nn.Module):
    """Patches of 4 x 4, a class token, one encoder layer."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.position = nn.Parameter(0.1 * torch.randn(1, 5, width))
        layer = nn.TransformerEncoderLayer(width, 2, 16, 0.0, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        h = self.patches(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.token.expand(h.shape[0], -1, -1), h], dim=1) + self.position
        return self.head(self.norm(self.encoder(h))[:, 0])


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 3), nn.LeakyReLU(0.1), nn.Flatten(), nn.Linear(16, 3),
    )  # fmt: skip


def gelu_mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.GELU(), nn.Linear(12, 3))


def relu_mlp() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.ReLU(), nn.Linear(12, 3), nn.Softmax(dim=1))


MODULES = {"cnn": cnn, "resnet": Residual, "gelu": gelu_mlp, "vit": ViT, "relu": relu_mlp}
SHAPE = (1, 8, 8)


def module_of(name: str) -> nn.Module:
    """A network whose batch norms have statistics of their own."""
    torch.manual_seed(0)
    module = MODULES[name]()
    module.train()
    with torch.no_grad():
        module(torch.rand(16, *SHAPE))
    return module.eval()


def export(module: nn.Module, path: Path, batch: int = 1, **options) -> None:
    """torch's default export."""
    pytest.importorskip("onnxscript", reason="torch's exporter needs onnxscript")
    logging.disable()  # the exporter writes so many debug records that keeping them takes longer than the export
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(module, (torch.zeros(batch, *SHAPE),), path, verbose=False, **options)
    finally:
        logging.disable(logging.NOTSET)


def torch_values(module: nn.Module, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The logits of a module in float64, and their Jacobian (rows, classes, inputs)."""
    points = torch.tensor(X, dtype=torch.float64).reshape(-1, *SHAPE).requires_grad_()
    Y = module(points)
    rows = [torch.autograd.grad(Y[:, k].sum(), points, retain_graph=True)[0] for k in range(Y.shape[1])]
    return Y.detach().numpy(), torch.stack(rows, dim=1).reshape(len(X), Y.shape[1], -1).numpy()


def central_differences(net: fo.Network, x: np.ndarray, d: np.ndarray) -> np.ndarray:
    """The derivative of the logits at x along d, with the step of least error in float64."""
    step = np.finfo(np.float64).eps ** (1 / 3) * max(1.0, float(np.abs(x).max())) / float(np.abs(d).max())
    return (net.logits(x + step * d) - net.logits(x - step * d)) / (2 * step)
