"""The reference is Algorithm 1, and calls are counted as they are made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

import flipopt as fo
from benchmarks import bisection
from benchmarks.bisection import BETA, S, T, convolutional_module, counted, dense_module, one_by_one
from benchmarks.networks import FOLDER


@pytest.fixture(scope="module")
def pairs() -> tuple[fo.DenseNetwork, np.ndarray, np.ndarray]:
    shipped = fo.load_shipped("mnist-fcn")
    predicted = shipped.network.predict(shipped.X)
    A, B = (shipped.X[predicted == k] for k in (S, T))
    rng = np.random.default_rng(0)
    return shipped.network, A[rng.integers(len(A), size=30)], B[rng.integers(len(B), size=30)]


def test_one_pair_at_a_time_finds_as_many_as_all_together(pairs: tuple) -> None:
    network, A, B = pairs
    together = fo.borderline.refine(network, A, B, S, T, beta=BETA)
    assert 0 < together.success.sum() < len(A)
    assert one_by_one(dense_module(network), A, B) == together.success.sum()


def test_the_reference_is_the_same_network(pairs: tuple) -> None:
    network, A, _ = pairs
    path = FOLDER / "deepdig-mnist-cnn.onnx"
    for same, module in ((network, dense_module(network)), (fo.load_network(path), convolutional_module(path))):
        with torch.no_grad():
            Y = module(torch.tensor(A, dtype=torch.float32))
        np.testing.assert_allclose(same.logits(A), Y, rtol=0, atol=1e-4)


def test_all_calls_on_lines_are_counted(pairs: tuple) -> None:
    network, A, B = pairs
    with counted() as sizes:
        found = fo.borderline.refine(network, A, B, S, T, beta=BETA)
    assert len(sizes) >= found.steps.max()
    assert sum(sizes) >= found.steps.sum()
    before = len(sizes)
    fo.borderline.refine(network, A, B, S, T, beta=BETA)
    assert len(sizes) == before


def test_rows_become_ratios(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    rows = [
        bisection._row(0, "net", "three calls a step", 10, 0.5, np.nan, np.nan, 0.9),
        bisection._row(0, "net", "refine", 100, 0.1, 20.0, 9.5, 0.91),
    ]
    path = tmp_path / "rows.csv"
    with bisection.keeping(path, bisection.COLUMNS, Console(quiet=True)) as add:
        add(rows)
    bisection.show(path, Console(width=120))
    assert "50.0" in capsys.readouterr().out  # 50 ms a pair against 1
