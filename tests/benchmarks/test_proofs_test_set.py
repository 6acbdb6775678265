from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console

import flipopt as fo
from benchmarks.proofs_test_set import draw, figures, measured, read_columns, write_rows


def test_images_are_proved_and_the_file_says_no_more_than_that(tmp_path: Path) -> None:
    shipped, work = fo.load_shipped("mnist-fcn"), tmp_path / "work"
    columns = measured(shipped.network, shipped.X[:3], work, 1, Console(quiet=True))
    write_rows(tmp_path / "rows.csv", columns)
    kept = read_columns(tmp_path / "rows.csv")
    assert kept["proved"].tolist() == [1, 1, 1]
    assert (kept["lower"] <= columns["lower"]).all()
    assert (columns["upper"] <= kept["upper"]).all()
    np.testing.assert_allclose(kept["lower"], kept["upper"], rtol=1.3e-6)
    assert (kept["relaxed"] <= kept["lower"]).all()
    assert (kept["batch"] >= kept["lower"]).all()
    again = measured(shipped.network, shipped.X[:3], work, 1, Console(quiet=True))
    np.testing.assert_array_equal(again["seconds"], columns["seconds"])  # not proved anew


def test_figures_and_the_curve_with_an_image_that_is_not_proved(tmp_path: Path) -> None:
    columns = {
        "row": np.arange(4),
        "class": np.array([1, 2, 3, 4]),
        "other": np.array([2, 3, 4, 5]),
        "lower": np.array([0.2, 0.6, 0.9, 1.2]),
        "upper": np.array([0.2, 0.6, 1.1, 1.2]),
        "batch": np.array([0.2, 0.61, 1.1, np.nan]),
        "relaxed": np.array([0.1, 0.3, 0.5, 0.6]),
        "nodes": np.array([1, 3, 900, 5]),
        "seconds": np.array([0.1, 0.2, 60.0, 0.1]),
        "proved": np.array([1, 1, 0, 1]),
    }
    found = {(row["what"], row["figure"]): row["value"] for row in figures(columns)}
    assert found["mnist-fcn", "proved to 1e-6"] == 3
    assert found["mnist-fcn", "flips too far by more than 0.001"] == 2  # one of them was not found at all
    assert found["1", "images with no flip within epsilon, proved: %"] == 25
    assert found["1", "with no flip known: %"] == 50
    draw(columns, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"
