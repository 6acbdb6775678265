"""The comparison of all methods: attacks are counted and judged like everything else, and a run leaves a report."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

import flipopt as fo
from benchmarks import solvers
from benchmarks.attacks import AttackMethod, Counted, Decision, TargetOrNot
from benchmarks.best import read_best
from benchmarks.peers import PEERS
from benchmarks.problems import BenchmarkProblems
from benchmarks.reliability import FormMethod
from flipopt.comparison.methods import Budget
from flipopt.comparison.rows import read_rows
from flipopt.comparison.runner import row_of

FEW, FULL = BenchmarkProblems(known=1, images=0), BenchmarkProblems()


def test_points_are_counted_forward_and_backward() -> None:
    counted = Counted(torch.nn.Linear(3, 2))
    X = torch.ones((5, 3), requires_grad=True)
    counted(X)
    counted(X[:2]).sum().backward()
    assert (counted.forward_points, counted.backward_points) == (7, 2)


def test_the_target_is_a_class_of_its_own() -> None:
    logits = torch.tensor([[1.0, 5.0, 3.0, 4.0], [9.0, 0.0, 2.0, 1.0]])
    for target, expected in ((1, [[4.0, 5.0], [9.0, 0.0]]), (3, [[5.0, 4.0], [9.0, 1.0]])):
        assert TargetOrNot(torch.nn.Identity(), target)(logits).tolist() == expected
        module = TargetOrNot(torch.nn.Identity(), target)(logits).argmax(dim=1)
        identity = fo.DenseNetwork([np.eye(4)], [np.zeros(4)])
        np.testing.assert_array_equal(Decision(identity, target).predict(logits.numpy()), module)


needs_foolbox = pytest.mark.skipif("ddn-200" not in PEERS, reason="foolbox is not installed")


@needs_foolbox
def test_an_attack_is_aimed_at_the_target() -> None:
    row = row_of(FULL.make("relu 40 random"), "ddn-200", AttackMethod(PEERS["ddn-200"]), Budget())
    assert row["status"] == "BEYOND", row["message"]
    assert row["message"] == f"a point of class {FULL.make('relu 40 random').problem.classes[1]}"


@pytest.mark.parametrize("name", ["plane 10 0", "ellipsoid 10 0"])
def test_form_finds_the_design_point(name: str) -> None:
    pytest.importorskip("openturns")
    row = row_of(FEW.make(name), "openturns-form", FormMethod(), Budget())
    assert row["status"] in ("CONVERGED", "ON_BOUNDARY"), row["message"]  # it converges linearly
    assert row["distance"] == pytest.approx(FEW.answers()[name], rel=1e-7)
    assert row["forward"] > row["backward"] > 0
    assert row["iterations"] > 0


@needs_foolbox
def test_an_attack_s_point_is_beyond_a_plane_and_its_cost_is_known() -> None:
    instance = FEW.make("plane 10 0")
    row = row_of(instance, "ddn-200", AttackMethod(PEERS["ddn-200"]), Budget())
    assert row["status"] == "BEYOND", row["message"]
    assert 1 - 1e-6 <= row["distance"] / FEW.answers()["plane 10 0"] <= 1.02
    assert row["forward"] >= 200
    assert row["backward"] >= 200
    assert row["message"] == "a point of class 1"


def test_a_run_has_every_method_every_failure_and_a_report(tmp_path: Path) -> None:
    out, best, console = tmp_path / "solvers.csv", tmp_path / "best.csv", Console(record=True, width=120)
    names = ["ipopt", "pieces", "batch"]
    comparison = solvers.run(out, FEW, names, best, console)
    rows = read_rows(out)
    assert {(row["problem"], row["method"]) for row in rows} == {
        (entry.name, name) for entry in FEW.entries() for name in names
    }
    assert {row["status"] for row in rows if row["method"] == "pieces"} == {"UNAVAILABLE"}
    # Known answers are the best known: nobody may be closer, but for rounding.
    assert np.nanmin(comparison.ratio) >= 1 - 1e-7
    ratios = [row["ratio"] for row in rows if row["feasible"]]
    np.testing.assert_allclose(sorted(ratios), np.sort(comparison.ratio[np.isfinite(comparison.ratio)]), rtol=1e-8)
    ipopt = comparison.ratio[:, comparison.methods.index("ipopt")]
    planes = [k for k, family in enumerate(comparison.families) if family != "spheres"]
    np.testing.assert_allclose(ipopt[planes], 1.0, rtol=1e-6)
    assert set(read_best(best)) == {entry.name for entry in FEW.entries()}
    assert out.with_suffix(".html").exists()
    assert "pieces" in console.export_text()
    tables = out.with_suffix(".md").read_text()
    assert all(f"| {name} |" in tables for name in (*names, "method"))
    assert "| method | plane | ellipsoid | spheres |" in tables
    before = best.read_text(), out.read_text()
    solvers.run(out, FEW, names, best, Console(quiet=True))
    assert (best.read_text(), out.read_text()) == before


def test_the_full_run_is_as_large_as_it_says() -> None:
    entries = FULL.entries()
    assert len(entries) >= 200
    assert len({entry.family for entry in entries}) >= 6
    assert len({entry.name for entry in entries}) == len(entries)


@pytest.mark.skipif("FLIPOPT_QUICK_ROWS" not in os.environ, reason="FLIPOPT_QUICK_ROWS names no rows of a --quick run")
def test_a_quick_run_has_left_what_it_should() -> None:
    out = Path(os.environ["FLIPOPT_QUICK_ROWS"])
    rows, offered = read_rows(out), solvers.methods()
    names = [name for name in solvers.QUICK_METHODS if name in offered]
    every = {(entry.name, name) for entry in solvers.QUICK.entries() for name in names}
    assert len(rows) == len(every)
    assert {(row["problem"], row["method"]) for row in rows} == every
    failures = [row for row in rows if not row["feasible"]]
    assert {row["status"] for row in failures if row["method"] == "pieces"} == {"UNAVAILABLE"}
    assert all(row["message"] and np.isnan(row["distance"]) for row in failures)
    answers = solvers.QUICK.answers()
    for row in rows:
        if row["feasible"]:
            assert row["ratio"] >= 1 - 1e-7, row
            if row["problem"] in answers:
                assert row["ratio"] == pytest.approx(row["distance"] / answers[row["problem"]], rel=1e-6)
    for method in ("ipopt", "batch"):
        mine = [row["ratio"] <= 1.001 for row in rows if row["method"] == method and row["feasible"]]
        assert np.mean(mine) > 0.6
    page, tables = out.with_suffix(".html").read_text(), out.with_suffix(".md").read_text()
    assert all(f'"{name}"' in page and f"| {name} |" in tables for name in names)
    assert out.with_suffix(".png").stat().st_size > 10_000
