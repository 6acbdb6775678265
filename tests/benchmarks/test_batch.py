"""The batch benchmark: its pairs, its resumable figures and its tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks import batch, batch_report
from benchmarks.clock import Clock
from flipopt.features.shipped import load_shipped
from flipopt.flips.many import closest_flip_points


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> batch.Data:
    """The images that ship with the network, whatever data sets this machine has."""
    net = load_shipped("mnist-net1")
    here = batch.Data(net.network, net.X, lambda: (net.X, np.asarray(net.network.predict(net.X))))
    monkeypatch.setattr(batch, "data", lambda name, folder="": here)
    return here


def test_pairs_have_a_target_that_is_not_the_source(shipped: batch.Data) -> None:
    rows, classes = batch.random_pairs(shipped.network, shipped.X, 50)
    assert len(set(rows)) == 50
    np.testing.assert_array_equal(classes[:, 0], shipped.network.predict(shipped.X[rows]))
    assert (classes[:, 0] != classes[:, 1]).all()
    again = batch.random_pairs(shipped.network, shipped.X, 50)
    np.testing.assert_array_equal(again[1], classes)


@pytest.mark.slow
def test_parts_are_measured_once_and_shown(shipped: batch.Data, tmp_path: Path) -> None:
    out, console = tmp_path / "batch.csv", Console(record=True, width=160)
    for _ in range(2):
        batch.run(out, ["independence"], 5, 4, "", console)
    figures = batch.figures(out)
    assert len(out.read_text().splitlines()) == 1 + len(figures)
    assert all(0 <= value <= 1e-9 for value in figures.values())
    batch.show(out, console)
    assert "one at a time" in console.export_text()
    assert "| mnist-net1, shuffled |" in out.with_suffix(".md").read_text()


def test_the_clock_counts_both_precisions_and_changes_nothing(shipped: batch.Data) -> None:
    pytest.importorskip("torch")
    clock, X = Clock(shipped.network), shipped.X[:3].astype(np.float64)
    timed, plain = closest_flip_points(clock, X), closest_flip_points(shipped.network, X)
    np.testing.assert_array_equal(timed.x, plain.x)
    passes = sum(tally.operations for tally in clock.tallies.values()) / clock._operations
    assert passes == pytest.approx(plain.evaluations.sum(), rel=0.1)  # the check's own and others' are not counted
    assert all(tally.rate > 0 for tally in clock.tallies.values())


def test_ratios_are_of_one_part() -> None:
    figures = {}
    for what in ("all pairs", "nearest pairs"):
        figures |= {("speed", what, "ms a pair"): 4.0, ("speed", what, "ms a pair by ipopt"): 200.0}
    for dtype, rate in (("float64", 5.0), ("float32", 8.0)):
        figures |= {
            ("speed", dtype, "Gflop/s of a core in the network"): rate,
            ("speed", dtype, "share of the time in the network"): 0.4,
            ("speed", dtype, "Gflop/s of a core, matrix products"): 10.0,
        }
    figures |= {("speed", "nearest of all", "ms an image"): 30.0}
    remarks = batch_report.remarks(figures)
    assert remarks[0].startswith("all pairs: 50 times")
    assert "50% of what it does" in remarks[2]
    assert "in float32, where a core does 8.0 Gflop/s: 80% of what" in remarks[3]
    assert batch_report.remarks({}) == []


def test_large_sizes_are_in_the_same_table() -> None:
    figures = {("scale", "10 pairs", "ms a pair"): 1.0, ("scale-large", "99 pairs", "ms a pair"): 2.0}
    sheet = next(sheet for sheet in batch_report.SHEETS if sheet.part == "scale")
    assert [line[:2] for line in sheet.lines(figures)] == [["10 pairs", "1"], ["99 pairs", "2"]]
