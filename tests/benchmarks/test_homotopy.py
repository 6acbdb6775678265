from __future__ import annotations

import csv
from dataclasses import fields
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

import flipopt as fo
from benchmarks import homotopy, homotopy_sensitivity
from benchmarks.__main__ import main
from benchmarks.machine import facts
from flipopt.homotopy import Homotopy, StepControl


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


# Sensitivity


def test_every_tuned_value_is_halved_and_doubled_and_nothing_else_changes() -> None:
    variants = list(homotopy_sensitivity.variants())
    plain = variants[0][2]
    assert plain.control == StepControl()
    changed = {}
    for value, _, options in variants[2:]:
        differing = [
            f.name for f in fields(StepControl) if getattr(options.control, f.name) != getattr(plain.control, f.name)
        ]
        assert differing == [value]
        changed.setdefault(value, []).append(getattr(options.control, value))
    assert list(changed) == [field.name for field in fields(StepControl)]
    for value, (low, high) in changed.items():
        assert low < getattr(StepControl(), value) < high


def test_the_images_of_the_sensitivity_are_in_no_other_table() -> None:
    assert homotopy_sensitivity.FIRST_IMAGE + 20 < homotopy.FIRST_IMAGE


def test_changes_are_relative_to_the_same_paths_as_they_are(tmp_path: Path) -> None:
    def row(case_row: int, value: str, status: str, distance: float, forward: int) -> dict:
        head = {"case": "b", "row": case_row, "target": "nearest", "value": value, "setting": "-"}
        return head | {"status": status, "distance": distance, "forward": forward, "hessian": 0}

    rows = [
        row(0, "as it is", "CONVERGED", 1.0, 100),
        row(1, "as it is", "CONVERGED", 3.0, 300),
        row(0, "grow", "CONVERGED", 2.0, 150),
        row(1, "grow", "LIMIT", np.nan, 350),
    ]
    lines = homotopy_sensitivity.summaries(rows)
    assert lines == [
        ("b", "as it is", "-", "2/2", "+0%", "-", "+0%"),
        ("b", "grow", "-", "1/2", "+25%", "-", "+100%"),
    ]
    homotopy_sensitivity.write_markdown(tmp_path / "table.md", rows)
    text = (tmp_path / "table.md").read_text().splitlines()
    assert len(text) == 4
    assert text[-1] == "| b | grow | - | 1/2 | +25% | - | +100% |"


@pytest.mark.slow
def test_a_sensitivity_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(homotopy_sensitivity, "TARGETS", {"c": ("nearest",)})
    monkeypatch.setattr(
        homotopy_sensitivity, "variants", lambda: iter([("as it is", "-", Homotopy(2, adaptive=False))])
    )
    out, console = tmp_path / "rows.csv", Console(width=200, file=StringIO())
    rows = homotopy_sensitivity.run(out, 1, console)
    assert [(row["case"], row["row"]) for row in rows] == [("c", homotopy_sensitivity.FIRST_IMAGE)]
    before = out.read_bytes()
    assert homotopy_sensitivity.run(out, 1, console) == rows
    assert out.read_bytes() == before
    homotopy_sensitivity.show(rows, console)
    assert "as it is" in console.file.getvalue()
