from __future__ import annotations

from pathlib import Path

import numpy as np

import flipopt as fo
from flipopt.report import draw_flips


def test_flips_of_a_network_on_pixels_are_drawn_without_features(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    net = fo.DenseNetwork([rng.standard_normal((12, 3))], [np.zeros(3)], [])
    images = rng.random((2, 3, 4))
    flips = [fo.closest_flip_point(net, image.reshape(-1)) for image in images]
    draw_flips(tmp_path / "flips.png", images, None, flips, ("a", "b", "c"))
    assert (tmp_path / "flips.png").read_bytes().startswith(b"\x89PNG")
