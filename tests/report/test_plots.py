"""Plots and HTML of results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from flipopt.common.errors import InputError

RNG = np.random.default_rng(0)
NET = fo.DenseNetwork([RNG.standard_normal((12, 3))], [np.zeros(3)], [])
X = RNG.random((7, 12))


def test_one_flip_is_drawn_with_what_is_known(tmp_path: Path) -> None:
    flip = fo.closest_flip_point(NET, X[0])
    alone = flip.plot()
    assert len(alone.axes) == 1
    assert alone.axes[0].get_xlabel() == "value at the flip"
    changed = flip.plot(tmp_path / "flip.png", x=X[0], network=NET, names=[f"n{k}" for k in range(12)], classes="abc")
    bars, line = changed.axes
    assert bars.get_xlabel() == "change"
    widths = sorted(bar.get_width() for bar in bars.patches)
    np.testing.assert_allclose(widths, sorted(flip.x - X[0]))
    assert [text.get_text() for text in line.get_legend().get_texts()] == [f"“{'abc'[k]}”" for k in flip.classes]
    along, probability = line.lines[0].get_data()
    assert np.interp(flip.distance, along, probability) == pytest.approx(
        NET.probabilities(flip.x)[flip.classes[0]], abs=1e-3
    )
    assert (tmp_path / "flip.png").read_bytes().startswith(b"\x89PNG")


def test_an_image_is_drawn_beside_its_flip_and_the_difference() -> None:
    flip = fo.closest_flip_point(NET, X[0])
    figure = flip.plot(x=X[0], shape=(3, 4))
    assert [axis.get_title() for axis in figure.axes[:2]] == ["input", "flip"]
    np.testing.assert_allclose(figure.axes[2].images[0].get_array(), (flip.x - X[0]).reshape(3, 4))
    with pytest.raises(InputError, match="shape: expected"):
        flip.plot(x=X[0], shape=(3, 5))


def test_many_flips_are_drawn_by_class(tmp_path: Path) -> None:
    flips = fo.closest_flip_points(NET, X)
    boxes, matrix = flips.plot(tmp_path / "flips.svg").axes
    assert "7 flips" in boxes.get_title()
    assert sum(int(text.get_text()) for text in matrix.texts) == 7
    assert b"<svg" in (tmp_path / "flips.svg").read_bytes()
    assert flips.plot()._repr_png_().startswith(b"\x89PNG")  # for notebooks
    pictures = flips.plot(X=X, shape=(3, 4))
    assert pictures.axes[0].get_ylabel() == f"row {flips.row[flips.distance.argmin()]}"
    assert len(flips[:0].plot().axes) == 2
    with pytest.raises(InputError, match="X: expected all 7 rows"):
        flips.plot(X=X[:3])


def test_notebooks_show_a_compact_table() -> None:
    flips = fo.closest_flip_points(NET, np.vstack([X, X + 0.01, np.full((1, 12), np.nan)]))
    html = flips._repr_html_()
    assert html.count("<tr>") == 11
    assert "15 entries: 14 CONVERGED, 1 NUMERICAL_ERROR" in html
    assert "0 entries" in flips[:0]._repr_html_()
    flip = fo.closest_flip_point(NET, X[0])
    one = flip._repr_html_()
    assert f"{flip.distance:.4g}" in one
    assert "KKT residual" in one
