from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks.proofs_networks import GAPS, NETWORKS, TIMES, figures, gaps_at, run
from benchmarks.rows import read_rows


def test_gaps_are_those_of_the_history() -> None:
    gaps = gaps_at(np.array([[0.15, 1.0, 2.0], [1.0, 1.5, 2.0], [40.0, 2.0, 2.0]]))
    expected = [1.0 if t < 0.15 else 0.5 if t < 1 else 0.25 if t < 40 else 0.0 for t in TIMES]
    np.testing.assert_array_equal(gaps, expected)


def test_rows_are_kept_and_summed_up(tmp_path: Path) -> None:
    out, work = tmp_path / "rows.csv", tmp_path / "work"
    run(out, 1, work, 0.0, Console(quiet=True))
    rows = read_rows(out, real=("lower", "upper", *GAPS))
    assert [row["network"] for row in rows] == list(NETWORKS)
    assert all(0 < row["lower"] <= row["upper"] for row in rows)
    assert out.with_suffix(".png").read_bytes()[:4] == b"\x89PNG"
    assert "2 x 100" in out.with_suffix(".md").read_text()
    kept = (work / "rows.csv").read_bytes()
    run(out, 1, work, 60.0, Console(quiet=True))
    assert (work / "rows.csv").read_bytes() == kept  # not proved anew
    found = {row["figure"]: row["value"] for row in figures("mnist-2x100", [*rows[:1], rows[0] | {"proved": "1"}])}
    assert (found["images"], found["proved to 1e-6: %"] >= 50) == (2, True)
