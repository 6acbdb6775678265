from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import flipopt as fo
from flipopt.cli import main


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, env={"COLUMNS": "120"})


def test_demo_classifies_the_shipped_images() -> None:
    result = run("demo")
    assert result.exit_code == 0
    shipped = fo.load_shipped("mnist-net1")
    right = int((shipped.network.predict(shipped.X) == shipped.labels).sum())
    totals = next(line for line in result.output.splitlines() if line.startswith("│ all"))
    assert [cell.strip() for cell in totals.split("│")[2:4]] == ["200", str(right)]
    for heading in ("Lipschitz bounds", "Gradient flow at x: class 7", "1,192,072 parameters"):
        assert heading in result.output


def test_info_reads_files_and_measures_at_a_row_of_the_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    net = fo.DenseNetwork(
        [rng.standard_normal((3, 5)), rng.standard_normal((5, 4))], [np.zeros(5), np.zeros(4)], fo.PReLU(rng.random(5))
    )
    X = rng.standard_normal((6, 3))
    net.save(tmp_path / "net.npz")
    net.save(tmp_path / "net.onnx")
    np.save(tmp_path / "X.npy", X)
    np.savez(tmp_path / "X.npz", X=X)
    for file, data in (("net.npz", "X.npy"), ("net.onnx", "X.npz")):
        result = run("info", str(tmp_path / file), "--data", str(tmp_path / data), "--row", "4")
        assert result.exit_code == 0, result.output
        assert f"class {net.predict(X[4])}, softmax {net.probabilities(X[4]).max():.4f}" in result.output
        assert "PReLU" in result.output
    assert run("info", str(tmp_path / "net.npz")).exit_code == 0


def test_info_on_a_linear_network_has_nothing_to_flow_through(tmp_path: Path) -> None:
    fo.DenseNetwork([np.eye(2)], [np.zeros(2)]).save(tmp_path / "net.npz")
    result = run("info", str(tmp_path / "net.npz"))
    assert result.exit_code == 0
    assert "6 parameters" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "nowhere.npz"], "nowhere.npz: no such file"),
        (["info", "net1"], "net1: expected a .npz file"),
        (["info", "mnist-net1", "--row", "200"], "--row: expected 0 to 199, found 200"),
        (["info", "mnist-net1", "--data", "X.txt"], "X.txt: expected .npy or .npz"),
        (["info", "mnist-net1", "--data", "bad.npy"], "bad.npy: not a readable npy file"),
        (["info", "mnist-net1", "--data", "narrow.npy"], "narrow.npy: expected shape (100,) or (batch, 100)"),
        (["info", "mnist-net1", "--data", "other.npz"], "other.npz: expected an array X or features, found a"),
        (["info", "mnist-net1", "--data", "missing.npy"], "missing.npy: no such file"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_1(arguments, message, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.npy").write_bytes(b"nothing")
    np.save("narrow.npy", np.zeros((2, 5)))
    np.savez("other.npz", a=np.zeros(3))
    result = run(*arguments)
    assert result.exit_code == 1
    assert message in result.output
    assert "Traceback" not in result.output


def test_version_and_help() -> None:
    assert fo.__version__ in run("--version").output
    for command in ("demo", "info"):
        assert run(command, "--help").exit_code == 0
        assert command in run("--help").output
