from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from flipopt.homotopy import transform
from flipopt.report import draw_path


@pytest.fixture
def net() -> fo.DenseNetwork:
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((3, 6)), rng.standard_normal((6, 6)), rng.standard_normal((6, 4))]
    return fo.DenseNetwork(weights, [np.zeros(6), np.zeros(6), np.zeros(4)], [fo.Erf(0.3), fo.ReLU()])


def test_a_path_is_drawn_also_where_slopes_are_zero(net: fo.DenseNetwork, tmp_path: Path) -> None:
    x = np.array([0.4, -1.0, 2.0])
    flip = fo.closest_flip_point(net, x, homotopy=fo.Homotopy(stages=4, adaptive=False))
    easy = transform(fo.flip_problem(net, x, flip.classes), 1e-5, 0.1).at(0.0)
    draw_path(tmp_path / "path.png", net, easy, x, flip)
    assert (tmp_path / "path.png").read_bytes().startswith(b"\x89PNG")


def test_a_result_without_stages_has_no_path(net: fo.DenseNetwork, tmp_path: Path) -> None:
    x = np.array([0.4, -1.0, 2.0])
    with pytest.raises(fo.InputError, match="flip: expected the result of a homotopy"):
        draw_path(tmp_path / "path.png", net, net, x, fo.closest_flip_point(net, x))
    assert not (tmp_path / "path.png").exists()
