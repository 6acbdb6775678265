"""``flipopt characterise``: one page about every boundary of a network, from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import flipopt as fo
from flipopt.cli.main import main
from tests.borderline.cases import blobs

FEW = ("--samples", "8", "--flips", "3", "--starts", "4")


def run(*arguments: str, command: str = "characterise") -> Result:
    return CliRunner().invoke(main, [command, *arguments], env={"COLUMNS": "100"})


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """net.npz, X.npy, labels.npy and words.csv; the labels."""
    net, X, labels = blobs()
    monkeypatch.chdir(tmp_path)
    net.save("net.npz")
    np.save("X.npy", X)
    np.save("labels.npy", labels)
    Path("words.csv").write_text("colour\n" + "\n".join(("red", "gr<i>n", "blue")[k] for k in labels) + "\n")
    return labels


def test_a_page_from_files_that_a_run_goes_on_with(clouds: np.ndarray) -> None:
    options = ("--labels", "words.csv", "--names", "red,gr<i>n,blue", "--run", "run", "--out", "page.html", *FEW)
    result = run("net.npz", "X.npy", *options)
    assert result.exit_code == 0, result.output
    words = " ".join(result.output.split())
    assert "The most fragile pairs" in words
    assert "6 ordered pairs of 3 classes" in words
    assert "page in page.html" in words
    page = Path("page.html").read_text()
    assert "Boundaries of net.npz" in page
    assert "gr&lt;i&gt;n" in page
    assert "gr<i>n" not in page
    assert fo.runs.open("run").done == 3
    again = run("net.npz", "X.npy", *options, "--title", "Again")
    assert again.exit_code == 0, again.output
    assert "<h1>Again</h1>" in Path("page.html").read_text()


def test_pairs_by_name_without_labels(clouds: np.ndarray) -> None:
    result = run("net.npz", "X.npy", "--names", "red,green,blue", "--pair", "red", "2", "--on", "closest", *FEW)
    assert result.exit_code == 0, result.output
    page = Path("report.html").read_text()
    assert "“red” to “blue”" in page
    assert "“red” to “green”: not measured" not in page  # a class of no pair is not in the maps
    assert "here of closest flip points" in page


def test_images_of_a_shipped_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("mnist-fcn", "--pair", "4", "9", *FEW)
    assert result.exit_code == 0, result.output
    page = Path("report.html").read_text()
    assert page.count("data:image/png;base64,") == 6
    assert "right on 197 of 200 inputs" in page


def test_the_report_has_boundaries_where_they_are_asked_for(clouds: np.ndarray) -> None:
    result = run("net.npz", "X.npy", "--rows", "30", "--boundaries", command="report")
    assert result.exit_code == 0, result.output
    assert "Between the classes: " in result.output
    assert 'id="boundaries"' in Path("report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("net.npz", "X.npy", "--pair", "0", "0"), "pairs: expected two different classes, found class 0 twice"),
        (("net.npz", "X.npy", "--pair", "0", "7"), "--pair: expected classes by name or from 0 to 2, found '7'"),
        (("net.npz", "X.npy", "--pair", "0", "1", "--all-pairs"), "--all-pairs: expected no --pair beside it"),
        (("net.npz", "X.npy", "--labels", "none2.npy", "--pair", "0", "2"), "expected classes with samples"),
        (("net.npz", "X.npy", "--labels", "ones.npy"), "X: expected samples of two classes"),
        (("net.npz", "X.npy", "--labels", "short.npy"), "expected 120 labels"),
        (("net.npz", "wide.npy"), "wide.npy"),
        (("net.npz",), "DATA: expected a file of inputs, found none"),
        (("net.npz", "X.npy", "--out", "page.txt"), "--out: expected a name ending in .html, found page.txt"),
        (("net.npz", "X.npy", "--out", "nowhere/page.html"), "--out: expected a folder that exists"),
        (("net.npz", "X.npy", "--flips", "0", "--on", "closest"), "flips: expected a whole number >= 1"),
        (("net.npz", "X.npy", "--shape", "5x5"), "--shape: expected 2 pixels"),
        (("net.npz", "X.npy", "--names", "a,b"), "classes: expected 3 names, found 2"),
    ],
)
def test_what_does_not_fit_is_one_line(clouds: np.ndarray, arguments: tuple[str, ...], words: str) -> None:
    np.save("short.npy", clouds[:5])
    np.save("ones.npy", np.ones(120, dtype=np.int64))
    np.save("none2.npy", np.minimum(clouds, 1))
    np.save("wide.npy", np.zeros((4, 3)))
    result = run(*arguments)
    assert result.exit_code == 1
    assert words in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert not list(Path().glob("*.html"))
