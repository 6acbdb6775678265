"""The commands on ONNX files that are not chains of dense layers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper, numpy_helper

import flipopt as fo
from flipopt.cli.main import main

pytest.importorskip("torch", reason="derivatives of ONNX files need torch")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, env={"COLUMNS": "120"})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small convolutional network with one output, net.onnx, and four points."""
    rng = np.random.default_rng(0)
    arrays = {"K": rng.standard_normal((2, 1, 2, 2)), "W": rng.standard_normal((8, 1)), "b": np.zeros(1)}
    nodes = [
        helper.make_node("Conv", ["x", "K"], ["c"]),
        helper.make_node("Tanh", ["c"], ["h"]),
        helper.make_node("Flatten", ["h"], ["f"]),
        helper.make_node("Gemm", ["f", "W", "b"], ["g"]),
        helper.make_node("Sigmoid", ["g"], ["p"]),
    ]
    graph = helper.make_graph(
        nodes,
        "cnn",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 1, 3, 3])],
        [helper.make_tensor_value_info("p", TensorProto.FLOAT, ["batch", 1])],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()],
    )
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "net.onnx")
    np.save(tmp_path / "X.npy", rng.random((4, 9)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_info_lists_operators_and_says_what_the_logits_are(folder: Path) -> None:
    result = run("info", "net.onnx")
    assert result.exit_code == 0, result.output
    sizes = "17 parameters, 9 inputs (1 x 3 x 3), 2 classes"
    for fact in ("Conv", "Gemm", sizes, "last Sigmoid", "derivatives by torch"):
        assert fact in " ".join(result.output.split())


def test_solve_finds_flip_points(folder: Path) -> None:
    result = run("solve", "net.onnx", "X.npy", "--out", "flips.parquet")
    assert result.exit_code == 0, result.output
    flips = fo.FlipTable.load("flips.parquet")
    assert flips.success.all()
    np.testing.assert_allclose(fo.load_network("net.onnx").probabilities(flips.x), 0.5, atol=1e-5)


def test_path_needs_dense_layers(folder: Path) -> None:
    result = run("path", "net.onnx", "--data", "X.npy", "--target", "1", "--out", "path.png")
    assert result.exit_code == 1
    assert "NET: expected a network of dense layers" in result.output
