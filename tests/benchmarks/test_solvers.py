"""The comparison of all methods: attacks are counted and judged like everything else, and a run leaves a report."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from benchmarks import solvers
from benchmarks.attacks import AttackMethod, Counted
from benchmarks.peers import PEERS
from benchmarks.problems import BenchmarkProblems
from flipopt.comparison.methods import Budget
from flipopt.comparison.rows import read_rows
from flipopt.comparison.runner import row_of
from flipopt.comparison.table import read_best

FEW = BenchmarkProblems(known=1, images=0)


def test_points_are_counted_forward_and_backward() -> None:
    counted = Counted(torch.nn.Linear(3, 2))
    X = torch.ones((5, 3), requires_grad=True)
    counted(X)
    counted(X[:2]).sum().backward()
    assert (counted.forward_points, counted.backward_points) == (7, 2)


@pytest.mark.skipif("ddn-200" not in PEERS, reason="foolbox is not installed")
def test_an_attack_s_point_is_beyond_a_plane_and_its_cost_is_known() -> None:
    instance = FEW.make("plane 10 0")
    row = row_of(instance, "ddn-200", AttackMethod("ddn-200"), Budget())
    assert row["status"] == "BEYOND", row["message"]
    assert 1 - 1e-6 <= row["distance"] / FEW.answers()["plane 10 0"] <= 1.02
    assert row["forward"] >= 200
    assert row["backward"] >= 200
    assert row["message"] == "a point of class 1"


def test_a_run_has_every_method_every_failure_and_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solvers, "QUICK", FEW)
    out, best, console = tmp_path / "solvers.csv", tmp_path / "best.csv", Console(record=True, width=120)
    names = ["ipopt", "pieces", "batch"]
    comparison = solvers.run(out, True, names, best, console)
    rows = read_rows(out)
    assert {(row["problem"], row["method"]) for row in rows} == {
        (entry.name, name) for entry in FEW.entries() for name in names
    }
    assert {row["status"] for row in rows if row["method"] == "pieces"} == {"UNAVAILABLE"}
    # Known answers are the best known: nobody may be closer, but for rounding.
    assert np.nanmin(comparison.ratio) >= 1 - 1e-7
    ipopt = comparison.ratio[:, comparison.methods.index("ipopt")]
    planes = [k for k, family in enumerate(comparison.families) if family != "spheres"]
    np.testing.assert_allclose(ipopt[planes], 1.0, rtol=1e-6)
    assert set(read_best(best)) == {entry.name for entry in FEW.entries()}
    assert out.with_suffix(".html").exists()
    assert "pieces" in console.export_text()
    before = best.read_text(), out.read_text()
    solvers.run(out, True, names, best, Console(quiet=True))
    assert (best.read_text(), out.read_text()) == before
