"""The benchmark of image networks, on a network of sixteen pixels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from rich.console import Console
from torch import nn

from benchmarks import networks, peers
from benchmarks.__main__ import main
from benchmarks.distances import known
from flipopt.networks import TorchNetwork


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TorchNetwork:
    """In place of mnist-cnn, with five images beside it."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 3, 3), nn.Tanh(), nn.Flatten(), nn.Linear(12, 3)).double()
    net = TorchNetwork(module, (1, 4, 4))
    (tmp_path / "mnist-cnn.onnx").write_bytes(b"weights")
    images = np.random.default_rng(0).integers(0, 256, (5, 4, 4), dtype=np.uint8)
    np.savez(tmp_path / "mnist-cnn.sample.npz", images=images)
    monkeypatch.setattr(networks, "FOLDER", tmp_path)
    monkeypatch.setattr(networks, "network", lambda name: net)
    return net


def test_the_program_compares_with_an_attack_once(
    tiny: TorchNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("foolbox")
    monkeypatch.setattr(networks, "TURNS", 1)
    out = tmp_path / "networks.csv"
    arguments = ["networks", "--parts", "mnist-cnn,mnist-cnn-turns", "--attacks", "ddn-200", "--images", "2"]
    for _ in range(2):
        result = CliRunner().invoke(main, [*arguments, "--out", str(out)])
        assert result.exit_code == 0, result.output
    figures = networks.figures(out)
    assert len(out.read_text().splitlines()) == 1 + len(figures)
    assert figures["mnist-cnn", "flipopt", "converged"] == 1
    assert figures["mnist-cnn", "ddn-200", "solved"] == 1
    assert 0.5 < figures["mnist-cnn", "ddn-200", "median of ours / theirs"] <= 1
    assert {what for part, what, _ in figures if part == "mnist-cnn-turns"} == {"flipopt", "ddn-200"}
    assert "| the nearest of all attacks | 100.0% |" in out.with_suffix(".md").read_text()


def test_attacks_go_on_where_they_stopped(tiny: TorchNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def closest(peer: object, net: object, X: np.ndarray, *_: object) -> tuple[np.ndarray, np.ndarray, float]:
        seen.append(len(X))
        return np.append(np.inf, X.sum(axis=1)[1:]), X, 1.0

    monkeypatch.setattr(peers, "closest", closest)
    monkeypatch.setattr(peers, "missing", lambda attack: "")
    monkeypatch.setattr(peers, "PEERS", {"ddn-200": peers.Peer("ddn-200", "none", lambda: lambda *_: torch.zeros(0))})
    monkeypatch.setattr(networks, "AT_ONCE", 2)
    kept = tmp_path / "kept.json"
    (first, _), (every, seconds), (again, _) = (
        networks.attacked(kept, "mnist-cnn", "ddn-200", images, Console()) for images in (2, 5, 3)
    )
    assert seen == [2, 2, 1]
    assert known(kept, networks.fingerprint("mnist-cnn"), "ddn-200")[1] == pytest.approx(5 * seconds, abs=1e-3)
    np.testing.assert_array_equal(every[:2], first)
    np.testing.assert_array_equal(every[:3], again)
    np.testing.assert_array_equal(np.isinf(every), [True, False, True, False, True])
    (tmp_path / "mnist-cnn.onnx").write_bytes(b"other weights")
    assert known(kept, networks.fingerprint("mnist-cnn"), "ddn-200") == ([], 0.0)
    assert len(json.loads(kept.read_text())) == 1


def test_an_attack_that_fails_is_farther() -> None:
    figures = {
        name: value for _, name, value in networks.compared("a", np.array([np.inf, 1, 2]), np.array([1, 1.1, 2]))
    }
    assert figures["solved"] == pytest.approx(2 / 3)
    assert figures["ratio, largest"] == pytest.approx(1.1)
    assert figures["median of ours / theirs"] == 1
    assert figures["closer"] == figures["farther"] == pytest.approx(1 / 3)


def test_rows_have_channels_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.arange(24, dtype=np.uint8).reshape(1, 2, 4, 3)
    np.savez(tmp_path / "cifar-resnet8.sample.npz", images=images)
    monkeypatch.setattr(networks, "FOLDER", tmp_path)
    row = networks.inputs("cifar-resnet8", 1)[0]
    np.testing.assert_array_equal(row.reshape(3, 2, 4), np.moveaxis(images[0], 2, 0) / 255)


def test_unknown_parts_are_named() -> None:
    result = CliRunner().invoke(main, ["networks", "--parts", "mnist-cnn,nothing"])
    assert result.exit_code == 2
    assert "found nothing" in result.output
