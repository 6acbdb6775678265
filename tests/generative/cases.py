"""Small generators and discriminators with weights from a seed, written as ONNX files."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from flipopt.generative import Discriminator, Generator

LATENT, IMAGE = 6, (1, 4, 4)


def folder() -> Path:
    """A new one, which the system clears."""
    return Path(mkdtemp(prefix="flipopt-generative-"))


def write(
    nodes: Sequence[onnx.NodeProto],
    constants: dict[str, np.ndarray],
    shape: Sequence[Any] = ("batch", LATENT),
    path: Path | None = None,
    inputs: Sequence[str] = ("z",),
) -> Path:
    """A model from ``z`` to ``x``."""
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    entries = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, list(shape)) for name in inputs]
    out = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph(list(nodes), "test", entries, [out], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = path or folder() / "generator.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def dense_weights(seed: int, widths: Sequence[int]) -> dict[str, np.ndarray]:
    """W1, b1, W2, ... as float32."""
    rng, found = np.random.default_rng(seed), {}
    for k, (a, b) in enumerate(pairwise(widths), 1):
        found[f"W{k}"] = (rng.standard_normal((a, b)) / np.sqrt(a)).astype(np.float32)
        found[f"b{k}"] = (0.3 * rng.standard_normal(b)).astype(np.float32)
    return found


@cache
def dense_file(seed: int = 0, widths: tuple[int, ...] = (LATENT, 24, 20, 16), kind: str = "Relu") -> Path:
    """Dense layers with an activation after all but the last, a tanh after that, and images of 4 x 4."""
    nodes, current, last = [], "z", len(widths) - 1
    for k in range(1, last + 1):
        nodes.append(helper.make_node("Gemm", [current, f"W{k}", f"b{k}"], [f"c{k}"]))
        current = f"a{k}"
        nodes.append(helper.make_node("Tanh" if k == last else kind, [f"c{k}"], [current]))
    nodes.append(helper.make_node("Reshape", [current, "sides"], ["x"]))
    side = int(np.sqrt(widths[-1]))
    constants = dense_weights(seed, widths) | {"sides": np.array([-1, 1, side, widths[-1] // side])}
    return write(nodes, constants, ("batch", widths[0]))


@cache
def dense(seed: int = 0, widths: tuple[int, ...] = (LATENT, 24, 20, 16), kind: str = "Relu") -> Generator:
    return Generator(dense_file(seed, widths, kind))


def pre_activations(z: np.ndarray, layer: int, seed: int = 0, widths: Sequence[int] = (LATENT, 24, 20, 16)) -> Any:
    """Of :func:`dense` with ReLU, by its formula in float64."""
    parts, h = dense_weights(seed, widths), np.atleast_2d(z).astype(np.float64)
    for k in range(1, layer + 1):
        h = (np.maximum(h, 0) if k > 1 else h) @ parts[f"W{k}"].astype(np.float64) + parts[f"b{k}"]
    return h


def exported(module: Any, shape: tuple[int, ...], path: Path) -> Path:
    """A torch module as ONNX, of inputs (batch, *shape)."""
    import torch

    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module.eval(),
            (torch.zeros(2, *shape),),
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            verbose=False,
        )
    assert program is not None
    onnx.save(program.model_proto, path)
    return path


@cache
def convolutional_module(width: int = 3, latent: int = 10) -> Any:
    """A DCGAN of 8 x 8 images with statistics as if it had been trained."""
    torch = pytest.importorskip("torch")
    nn = torch.nn
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers, channels = [], [latent, 4 * width, 2 * width]
        for k, (a, b) in enumerate(pairwise(channels)):
            kernel, stride, padding = (2, 1, 0) if k == 0 else (4, 2, 1)
            norm = nn.BatchNorm2d(b)
            norm.weight.data.uniform_(0.7, 1.3)
            norm.bias.data.normal_(0, 0.3)
            norm.running_mean.normal_(0, 0.3)
            norm.running_var.uniform_(0.5, 1.5)
            layers += [nn.ConvTranspose2d(a, b, kernel, stride, padding, bias=False), norm, nn.ReLU()]
        last = nn.ConvTranspose2d(2 * width, 1, 4, 2, 1)
        module = nn.Sequential(*layers, last, nn.Tanh()).eval().requires_grad_(False)
        for layer in module:
            if isinstance(layer, nn.ConvTranspose2d):
                layer.weight.mul_(6)
        return module


@cache
def convolutional(latent: int = 10) -> Generator:
    module = convolutional_module(latent=latent)
    return Generator(exported(module, (latent, 1, 1), folder() / "dcgan.onnx"))


@cache
def discriminator() -> Discriminator:
    """Of the images of :func:`dense`."""
    rng = np.random.default_rng(3)
    constants = {
        "W1": rng.standard_normal((16, 12)).astype(np.float32),
        "b1": np.zeros(12, np.float32),
        "W2": rng.standard_normal((12, 1)).astype(np.float32),
        "b2": np.zeros(1, np.float32),
    }
    nodes = [
        helper.make_node("Flatten", ["z"], ["flat"]),
        helper.make_node("Gemm", ["flat", "W1", "b1"], ["c1"]),
        helper.make_node("LeakyRelu", ["c1"], ["a1"], alpha=0.2),
        helper.make_node("Gemm", ["a1", "W2", "b2"], ["c2"]),
        helper.make_node("Sigmoid", ["c2"], ["x"]),
    ]
    return Discriminator(write(nodes, constants, ("batch", *IMAGE)))


def query(generator: Generator, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(generator.n_latent)
