from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import flipopt as fo
from benchmarks import homotopy
from benchmarks.__main__ import main
from benchmarks.machine import facts
from flipopt.homotopy import Homotopy


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two quick methods on a small network, whose second method is a short path of three stages."""
    rng = np.random.default_rng(4)
    W = [rng.standard_normal((100, 8)) / 10, rng.standard_normal((8, 4))]
    net = fo.DenseNetwork(W, [rng.standard_normal(8), np.zeros(4)], fo.Erf(1.0))
    methods = {
        "ipopt-walk": homotopy.METHODS["ipopt-walk"],
        "uniform-5": homotopy.Method(fo.solvers.Ipopt(), homotopy=Homotopy(3, adaptive=False)),
    }
    monkeypatch.setattr(homotopy, "METHODS", methods)
    monkeypatch.setattr(homotopy, "_network", lambda case: net)
    return list(methods)


def test_rows_are_complete_and_none_is_solved_twice(tmp_path: Path, small: list[str]) -> None:
    out, console = tmp_path / "homotopy.csv", Console(width=200, file=StringIO())
    rows = homotopy.run(out, "a", 2, 1, console)
    with out.open(newline="") as stream:
        assert next(csv.reader(stream)) == [*homotopy.COLUMNS, *facts()]
    problems = [(row["row"], row["target"], row["method"]) for row in rows]
    assert problems == [(k, target, name) for k in (0, 1) for target in ("nearest", "random") for name in small]
    for row in rows:
        assert all(value != "" for value in row.values()), row
        assert row["status"] in fo.Status.__members__
        assert row["stages"] == (3 if row["method"] == "uniform-5" else 0)
        assert row["i"] != row["j"]
    assert any(row["status"] == "CONVERGED" and row["distance"] > 0 for row in rows)
    before = out.read_bytes()
    assert homotopy.run(out, "a", 2, 1, console) == rows
    assert out.read_bytes() == before
    more = homotopy.run(out, "a", 3, 1, console)
    assert len(more) == 12
    assert more[:8] == rows


def test_the_table_has_every_method_and_counts_what_is_verified(tmp_path: Path, small: list[str]) -> None:
    rows = homotopy.run(tmp_path / "homotopy.csv", "a", 1, 1, Console(file=StringIO()))
    console = Console(width=200, file=StringIO())
    homotopy.show(rows, console)
    text = console.file.getvalue()
    assert "NET1, probabilities" in text
    for name in small:
        assert text.count(name) == 2  # nearest and random
    lines = homotopy.summaries(rows)
    assert [line["method"] for line in lines] == small
    for line in lines:
        own = [row for row in rows if row["method"] == line["method"]]
        assert line["verified"] == f"{sum(row['status'] == 'CONVERGED' for row in own)}/{len(own)}"
        assert float(line["forward"]) == pytest.approx(np.mean([row["forward"] for row in own]), abs=0.5)


def test_cases_are_what_they_say() -> None:
    cases = homotopy.CASES
    assert {case.outputs for case in cases.values()} == {"logits", "probabilities"}
    plain, saturated = cases["a"].network(), cases["b"].network()
    for trained, steep in zip(plain.activations, saturated.activations):
        np.testing.assert_allclose(steep.parameter_value, np.divide(trained.parameter_value, homotopy.SATURATION))
    assert all((a == b).all() for a, b in zip(plain.weights, saturated.weights))
    assert {type(activation) for activation in cases["c"].network().activations} == {fo.ReLU}
    assert "adaptive-elu" in cases["c"].methods
    assert "adaptive-elu" not in cases["a"].methods


def test_unknown_cases_are_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["homotopy", "--cases", "ax", "--out", str(tmp_path / "rows.csv")])
    assert result.exit_code == 2
    assert "expected letters out of abc, found 'ax'" in result.output
    assert not (tmp_path / "rows.csv").exists()
