"""Torch modules as ONNX files: one file each, for any number of rows, that says nothing of where it was written."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path

import onnx
import torch
from torch import nn

from flipopt.common.writing import atomic_path


def onnx_model(
    module: nn.Module, input_shape: tuple[int, ...], given: str = "x", made: str = "logits"
) -> onnx.ModelProto:
    """The module in evaluation mode, a function of ``given`` (batch, \\*input_shape) that returns ``made``."""
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it misses torchvision, which no network here needs
    # Weights with the channels last would be exported with operators that restore their order.
    module = module.eval().to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            module,
            (torch.zeros(2, *input_shape),),
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            input_names=[given],
            output_names=[made],
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    graph = model.graph
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param, "the module computes with one size of batches alone"
    for part in (graph, *graph.node, *graph.value_info, *graph.initializer, *graph.input, *graph.output):
        del part.metadata_props[:]  # the exporter's notes on where it ran
    return model


def save_onnx(model: onnx.ModelProto, path: Path) -> None:
    """Write ``model`` to one file, weights and all."""
    with atomic_path(path) as temporary:
        onnx.save(model, temporary)
