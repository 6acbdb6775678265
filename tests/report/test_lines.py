"""Pictures of lines and of the graph of a region."""

from __future__ import annotations

from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

import flipopt as fo
from flipopt.report import draw_line, draw_regions
from tests.cases import moons, three_classes


def ink(path: Path) -> float:
    """The share of a picture that is not white."""
    return float((matplotlib.image.imread(path)[..., :3] < 1).any(axis=2).mean())


@pytest.mark.parametrize("count", [1, 4, 5])
def test_lines_are_drawn_a_panel_each(tmp_path: Path, count: int) -> None:
    lines = [fo.paths.Line(moons(), [-1.0, 0.0], [2.0, 0.1 * k], beyond=0.2 * (k % 2)) for k in range(count)]
    path = tmp_path / "lines.png"
    draw_line(path, lines if count > 1 else lines[0], ("no", "yes"), [f"line {k}" for k in range(count)])
    assert ink(path) > 0.01


def test_a_class_that_is_never_likely_has_no_curve(tmp_path: Path) -> None:
    path = tmp_path / "lines.svg"
    draw_line(path, fo.paths.Line(three_classes(), [5.0, -9.0], [6.0, -9.0]))
    text = path.read_text()
    assert "class 0" in text
    assert "class 1" not in text


def test_bad_lines_are_refused(tmp_path: Path) -> None:
    line = fo.paths.Line(moons(), [0.0, 0.0], [1.0, 0.0])
    for lines, titles, why in [
        ([], None, "found none"),
        ([1], None, "something else"),
        ([line], ["a", "b"], "expected 1"),
    ]:
        with pytest.raises(fo.InputError, match=why):
            draw_line(tmp_path / "x.png", lines, titles=titles)


@pytest.mark.parametrize("width", [2, 5])
def test_a_graph_is_drawn_of_samples_in_any_number_of_features(tmp_path: Path, width: int) -> None:
    net = moons()
    X = np.random.default_rng(0).uniform(-1, 1, size=(40, 2))
    c = fo.regions.connectivity(net, X, of=0)
    path = tmp_path / "graph.png"
    draw_regions(path, c, np.random.default_rng(1).uniform(size=(len(c), width)), chain=c.chain(0, 1))
    assert ink(path) > 0.02


def test_parts_have_their_own_colours_and_wrong_samples_are_refused(tmp_path: Path) -> None:
    W = [np.array([[1.0, -1.0]]), np.array([[1.0, 0.0], [1.0, 0.0]])]
    net = fo.DenseNetwork(W, [np.array([-1.0, -1.0]), np.array([0.0, 0.5])], fo.ReLU())  # class 0 where |x| > 1.5
    c = fo.regions.connectivity(net, np.array([[-3.0], [-2.0], [2.0], [3.0], [4.0]]), "proved")
    assert c.components.tolist() == [1, 1, 0, 0, 0]
    draw_regions(tmp_path / "parts.png", c)
    assert ink(tmp_path / "parts.png") > 0.005
    with pytest.raises(fo.InputError, match="X: expected 5 rows"):
        draw_regions(tmp_path / "x.png", c, np.zeros((4, 2)))
