"""``flipopt explain``: one input, its class, trust, distances and changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import flipopt as fo
from flipopt.cli.main import main
from flipopt.report.audit.section import number
from tests.cli.test_report import people

__all__ = ["people"]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["explain", *arguments], env={"COLUMNS": "80"})


def test_a_row_of_a_table(people: tuple[Any, Any]) -> None:
    options = ("--labels", "risk", "--names", "low,middle,high", "--units", "units.csv", "--scaled")
    result = run("net.npz", "people.csv", "--row", "3", *options, "--out", "row.png")
    assert result.exit_code == 0, result.output
    X, _ = people
    net = fo.load_network("net.npz")
    flips = fo.closest_flip_points(net, X[3:4], targets="all", weights=fo.scale_of(X))
    nearest = flips.nearest()
    words = " ".join(result.output.split())
    assert f"Row 3 is “{('low', 'middle', 'high')[net.predict(X[3])]}”" in words
    assert f"What makes it “{('low', 'middle', 'high')[nearest.classes[0, 1]]}”" in words
    assert "Compared with 11 other rows" in words
    assert all(number(float(distance), 4) in words for distance in flips.distance)
    assert "of 11 reference inputs are nearer to a flip" in words
    assert "$" in words
    assert max(map(len, result.output.splitlines())) <= 80
    assert Path("row.png").read_bytes().startswith(b"\x89PNG")


def test_a_reference_of_flips_is_not_solved_again(people: tuple[Any, Any]) -> None:
    X, _ = people
    fo.closest_flip_points(fo.load_network("net.npz"), X).save("flips.parquet")
    result = run("net.npz", "X.npy", "--row", "0", "--reference", "flips.parquet")
    assert result.exit_code == 0, result.output
    assert "Compared with" not in result.output
    assert "of 11 reference inputs" in " ".join(result.output.split())
    assert "are mistakes cannot be said" in " ".join(result.output.split())


def test_an_image_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    fo.DenseNetwork([rng.standard_normal((12, 3))], [np.zeros(3)], []).save("net.npz")
    np.save("X.npy", rng.random((3, 12)))
    result = run("net.npz", "X.npy", "--row", "1", "--shape", "3x4", "--out", "row.png")
    assert result.exit_code == 0, result.output
    assert "of 12 pixels" in " ".join(result.output.split())
    assert Path("row.png").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("net.npz", "X.npy", "--row", "12"), "--row: expected 0 to 11, found 12"),
        (("net.npz", "X.npy", "--row", "5"), "found that x2 of row 5 is none"),
        (("net.npz", "X.npy", "--reference", "X.npy"), "X.npy: "),
        (("net.npz",), "DATA: expected a file of inputs"),
    ],
)
def test_what_does_not_fit_is_one_line(people: tuple[Any, Any], arguments: tuple[str, ...], words: str) -> None:
    X, _ = people
    X[5, 2] = np.inf
    np.save("X.npy", X)
    result = run(*arguments)
    assert result.exit_code == 1
    assert words in result.output
    assert "Traceback" not in result.output


def test_an_input_alone(people: tuple[Any, Any]) -> None:
    np.save("X.npy", people[0][:1])
    result = run("net.npz", "X.npy")
    assert result.exit_code == 0, result.output
    assert "among others cannot be said" in " ".join(result.output.split())
