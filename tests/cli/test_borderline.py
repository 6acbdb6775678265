"""``flipopt borderline``: every boundary of a network, from files and into files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import flipopt as fo
from flipopt.borderline import Profile
from flipopt.cli.main import main
from tests.borderline.cases import blobs

FEW = ("--samples", "10", "--flips", "3", "--starts", "4")
ROOT = Path(__file__).parents[2]
CONVOLUTIONAL = ROOT / "models" / "networks" / "mnist-cnn.onnx"
OF_THE_PAPER = ROOT / "models" / "networks" / "deepdig-mnist-cnn.onnx"
MAPS = ROOT / "benchmarks" / "results" / "reproduction" / "autoencoders" / "MNIST_CNN"
WITHOUT_TORCH = """
import sys
from importlib.machinery import PathFinder
found = PathFinder.find_spec
PathFinder.find_spec = classmethod(lambda _, name, *rest: None if name.split(".")[0] == "torch" else found(name, *rest))
from flipopt.cli.main import main
few = ["--samples", "5", "--starts", "2", "--out", "few.csv"]
try:
    main(["borderline", sys.argv[1], "digits.npy", *few, *sys.argv[2:]])
except SystemExit as ended:
    assert ended.code == 0
assert "torch" not in sys.modules
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["borderline", *arguments], env={"COLUMNS": "100"})


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, np.ndarray]:
    """net.npz, net.onnx, X.npy, labels.npy and words.csv."""
    net, X, labels = blobs()
    monkeypatch.chdir(tmp_path)
    net.save("net.npz")
    net.save("net.onnx")
    np.save("X.npy", X)
    np.save("labels.npy", labels)
    Path("words.csv").write_text("colour\n" + "\n".join(("red", "green", "blue")[k] for k in labels) + "\n")
    return X, labels


def test_all_pairs_in_a_run_and_a_table(clouds: tuple[np.ndarray, np.ndarray]) -> None:
    options = ("--labels", "words.csv", "--names", "red,green,blue", "--run", "run", "--picture", "maps.png")
    result = run("net.npz", "X.npy", *options, *FEW, "--out", "pairs.parquet")
    assert result.exit_code == 0, result.output
    found = Profile.load("pairs.parquet")
    assert len(found) == 6
    words = " ".join(result.output.split())
    assert "The most fragile pairs" in words
    assert "6 ordered pairs of 3 classes" in words
    assert "“red”" in words
    assert Path("maps.png").read_bytes().startswith(b"\x89PNG")
    again = run("net.npz", "X.npy", *options, *FEW, "--out", "pairs.csv")
    assert again.exit_code == 0, again.output
    lines = Path("pairs.csv").read_text().splitlines()
    assert lines[0].startswith("i,j,sources,rpbs_success")
    assert len(lines) == 7
    assert ",nan," not in lines[1]
    assert fo.runs.open("run").done == 3


def test_pairs_by_name_or_number(clouds: tuple[np.ndarray, np.ndarray]) -> None:
    options = ("--labels", "words.csv", "--names", "red,green,blue", *FEW)
    result = run("net.npz", "X.npy", *options, "--pair", "red", "2", "--pair", "blue", "red", "--out", "pairs.parquet")
    assert result.exit_code == 0, result.output
    assert Profile.load("pairs.parquet").classes.tolist() == [[0, 2], [2, 0]]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--pair", "0", "0"), "pairs: expected two different classes, found class 0 twice"),
        (("--pair", "0", "7"), "--pair: expected classes by name or from 0 to 2, found '7'"),
        (("--pair", "0", "1", "--all-pairs"), "--all-pairs: expected no --pair beside it"),
        (("--out", "pairs.txt"), "--out: expected a name ending in .parquet or .csv"),
        (("--labels", "short.npy"), "expected 120 labels"),
        (("--labels", "ones.npy"), "X: expected samples of two classes that the network puts there, found 1"),
        (("--samples", "0"), "pairs: expected a whole number >= 1"),
    ],
)
def test_what_does_not_fit_is_one_line(
    clouds: tuple[np.ndarray, np.ndarray], arguments: tuple[str, ...], words: str
) -> None:
    np.save("short.npy", clouds[1][:5])
    np.save("ones.npy", np.ones(120, dtype=np.int64))
    result = run("net.npz", "X.npy", *arguments)
    assert result.exit_code == 1
    assert words in " ".join(result.output.split())
    assert "Traceback" not in result.output


def test_a_model_that_does_not_fit_the_data_is_refused(clouds: tuple[np.ndarray, np.ndarray]) -> None:
    np.save("wide.npy", np.zeros((4, 3)))
    result = run("net.npz", "wide.npy")
    assert result.exit_code == 1
    assert "wide.npy" in result.output


def test_deepdig_s_autoencoders_are_trained_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--pair", "1", "2", "--maps", "maps", "--steps", "40", *FEW)
    first = run("mnist-fcn", *options, "--out", "first.parquet")
    assert first.exit_code == 0, first.output
    assert "autoencoders in maps" in first.output
    assert "DeepDIG" in first.output
    files = {path.name for path in Path("maps").iterdir()}
    assert files == {"deepdig.json", *(f"autoencoder-{s}-{t}-{c}-0.onnx" for s, t in ((1, 2), (2, 1)) for c in (1, 2))}
    monkeypatch.setattr("flipopt.cli.boundaries.deepdig", None)
    again = run("mnist-fcn", *options, "--out", "again.parquet")
    assert again.exit_code == 0, again.output
    found, same = Profile.load("first.parquet"), Profile.load("again.parquet")
    assert np.isfinite(found.given_success).any()
    np.testing.assert_array_equal(found.given_success, same.given_success)
    other = run("mnist-fcn", "--pair", "3", "4", "--maps", "maps", *FEW)
    assert other.exit_code == 1
    assert "pairs: expected pairs that there are autoencoders of, found (3, 4)" in " ".join(other.output.split())


def without_torch(*arguments: str) -> str:
    """Of few.csv's making, what was printed."""
    np.save("digits.npy", fo.load_shipped("mnist-fcn").X[:60])
    command = [sys.executable, "-c", WITHOUT_TORCH, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "COLUMNS": "100"})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_works_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "2 pairs: no closest flip points: " in without_torch(str(CONVOLUTIONAL), "--pair", "1", "7")
    assert len(Path("few.csv").read_text().splitlines()) == 3


def test_trained_autoencoders_work_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    printed = without_torch(str(OF_THE_PAPER), "--pair", "1", "2", "--maps", str(MAPS))
    assert "10 of 10 pairs (100%) end as a borderline instance" in " ".join(printed.split())
    header, *rows = (line.split(",") for line in Path("few.csv").read_text().splitlines())
    assert [float(row[header.index("given_success")]) for row in rows] == [1.0, 1.0]
