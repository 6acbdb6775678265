"""Any tensor of an exported file beside what the module has there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from torch import Tensor, nn

RTOL, ATOL = 1e-4, 1e-5
"""Between torch and onnxruntime: float32 sums of up to a thousand products in another order, batch norm folded into the
weights, through five layers. Images are at most 1."""


def disturbed(network: nn.Module) -> nn.Module:
    """With shifts and batch norms as training might have left them, still in training mode."""
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.bias, std=0.3)
            nn.init.normal_(layer.running_mean, std=0.1)
            nn.init.uniform_(layer.running_var, 0.5, 1.5)
        elif isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
            layer.weight.data *= 0.1 / layer.weight.data.std()
            if layer.bias is not None:
                nn.init.normal_(layer.bias, std=0.1)
    return network


def n_parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def run(path: Path, tensors: list[str], **inputs: Tensor) -> list[np.ndarray]:
    """Any tensors of an ONNX file, by name."""
    model = onnx.load(path)
    known = {output.name for output in model.graph.output}
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in tensors if name not in known)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(tensors, {name: values.numpy() for name, values in inputs.items()})


def hooked(network: nn.Module, kind: type[nn.Module], inputs: Tensor) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """What a network gives in evaluation mode, and what goes into and comes out of its layers of a kind."""
    before: list[Tensor] = []
    after: list[Tensor] = []

    def keep(layer: nn.Module, given: tuple[Tensor], made: Tensor) -> None:
        before.append(given[0])
        after.append(made)

    for layer in network.eval().modules():
        if isinstance(layer, kind):
            layer.register_forward_hook(keep)
    with torch.no_grad():
        return network(inputs), before, after
