"""``flipopt report``: labels, images and units from files, and what is said of those that do not fit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import flipopt as fo
from flipopt.cli.main import main
from tests.report.test_audit import table_of_people

NAMES = ("income", "age", "debts", "owns")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["report", *arguments], env={"COLUMNS": "100"})


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r"^const DATA = (.*);$", Path(page).read_text(), re.MULTILINE)
    assert found
    return json.loads(found[1])  # type: ignore[no-any-return]


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """net.npz, people.csv with a column of class names, and files of labels; 12 rows."""
    net, X, labels, _ = table_of_people()
    X, labels = X[:12], labels[:12]
    monkeypatch.chdir(tmp_path)
    net.save("net.npz")
    words = [("low", "middle", "high")[k] for k in labels]
    lines = [",".join([*map(repr, x.tolist()), word]) for x, word in zip(X, words)]
    Path("people.csv").write_text("\n".join([",".join([*NAMES, "risk"]), *lines]) + "\n")
    np.save("X.npy", X)
    np.save("labels.npy", labels)
    Path("labels.csv").write_text("risk\n" + "\n".join(words) + "\n")
    Path("units.csv").write_text("feature,unit\nincome,$\nage,years\n")
    return X, labels


def test_a_table_with_its_labels_in_a_column(people: tuple[Any, Any]) -> None:
    options = ("--names", "low,middle,high", "--units", "units.csv", "--scaled", "--out", "r.html")
    result = run("net.npz", "people.csv", "--labels", "risk", *options)
    assert result.exit_code == 0, result.output
    data = data_of("r.html")
    assert data["rows"]["label"] == people[1].tolist()
    assert data["classes"] == ["low", "middle", "high"]
    features = {line[0] for detail in data["details"].values() for line in detail["changes"]}
    assert features <= set(NAMES)
    assert any(
        cell.endswith(" $") for detail in data["details"].values() for line in detail["changes"] for cell in line
    )
    assert "What to do with it" in result.output
    assert "Audit of net.npz" in Path("r.html").read_text()


@pytest.mark.parametrize("labels", ["labels.npy", "labels.csv"])
def test_labels_from_files(people: tuple[Any, Any], labels: str) -> None:
    result = run("net.npz", "X.npy", "--labels", labels, "--names", "low,middle,high", "--rows", "9")
    assert result.exit_code == 0, result.output
    assert data_of("report.html")["rows"]["label"] == people[1][:9].tolist()


def test_a_run_is_kept_and_bad_rows_are_named(people: tuple[Any, Any]) -> None:
    X, _ = people
    X[3, 1] = np.nan
    np.save("X.npy", X)
    for _ in range(2):
        result = run("net.npz", "X.npy", "--run", "kept")
        assert result.exit_code == 0, result.output
        assert "row 3: x1 is no number" in result.output
    assert len(fo.FlipTable.load("kept")) == 12
    assert data_of("report.html")["rows"]["distance"][3] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("net.npz",), "DATA: expected a file of inputs, found none"),
        (("net.npz", "X.npy", "--labels", "risk"), "--labels: expected"),
        (("net.npz", "people.csv", "--labels", "nothing"), "people.csv: expected rows of 4 numbers"),
        (("net.npz", "X.npy", "--labels", "short.npy"), "short.npy: expected 12 labels"),
        (("net.npz", "X.npy", "--labels", "labels.csv"), "labels: expected classes as whole numbers"),
        (("net.npz", "X.npy", "--names", "a,b"), "class_names: expected 3 names, found 2"),
        (("net.npz", "X.npy", "--shape", "2by2"), "--shape: expected sides"),
        (("net.npz", "X.npy", "--shape", "5x5"), "--shape: expected 4 pixels"),
        (("net.npz", "X.npy", "--units", "units.csv"), "units.csv: expected features such as x0"),
        (
            ("net.npz", "X.npy", "--images", "X.npy", "--shape", "2x2", "--out", "r.txt"),
            "--out: expected a name ending",
        ),
        (("net.npz", "X.npy", "--images", "short.npy"), "short.npy: expected 12 images"),
    ],
)
def test_what_does_not_fit_is_one_line(people: tuple[Any, Any], arguments: tuple[str, ...], words: str) -> None:
    np.save("short.npy", np.zeros(5, dtype=int))
    result = run(*arguments)
    assert result.exit_code == 1
    assert words in result.output
    assert "Traceback" not in result.output
    assert not Path("report.html").exists()


def test_raw_images_of_a_shipped_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = fo.load_shipped("mnist-net1")
    np.savez("digits.npz", images=shipped.images[:1], labels=shipped.labels[:1])
    result = run("mnist-net1", "digits.npz", "--labels", "labels")
    assert result.exit_code == 0, result.output
    data = data_of("report.html")
    assert data["rows"]["label"] == shipped.labels[:1].tolist()
    assert data["rows"]["predicted"] == shipped.network.predict(shipped.X[:1]).tolist()
    assert all("images" in detail for detail in data["details"].values())
    np.savez("features.npz", X=shipped.X[:1])
    pictured = run("mnist-net1", "features.npz", "--images", "digits.npz")
    assert pictured.exit_code == 0, pictured.output
    again = data_of("report.html")["details"]["0"]["images"]
    assert again["before"] == data["details"]["0"]["images"]["before"]


def test_prove_puts_what_is_proved_on_the_page(people: tuple[Any, Any]) -> None:
    tanh = fo.load_network("net.npz")
    refused = run("net.npz", "X.npy", "--prove", "5", "--out", "r.html")
    assert refused.exit_code == 1
    assert "expected ReLU, PReLU or identity in every hidden layer, found Tanh in layer 1" in refused.output
    fo.DenseNetwork(tanh.weights, tanh.biases, fo.ReLU()).save("relu.npz")
    result = run("relu.npz", "X.npy", "--scaled", "--prove", "5", "--out", "r.html")
    assert result.exit_code == 0, result.output
    assert "All of these flips are proved closest." in " ".join(result.output.split())
    assert data_of("r.html")["rows"]["proved"] == [True] * 12
    limited = run("relu.npz", "X.npy", "--bounds", "0", "1", "--prove", "5", "--out", "r.html")
    assert "prove: expected flips in the 2-norm" in limited.output
