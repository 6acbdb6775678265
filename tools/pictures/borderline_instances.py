"""What three fours become on the way to a nine: by random pairs, by embedding-nearest pairs, as closest flip points."""

from __future__ import annotations

from pathlib import Path

import flipopt as fo
from flipopt.report import draw_instances


def draw(path: Path) -> None:
    shipped, borderline = fo.load_shipped("mnist-fcn"), fo.borderline
    given = shipped.network, shipped.X, shipped.labels, 4, 9
    methods = {
        "random pair": borderline.rpbs(*given),
        "nearest in the embedding": borderline.epbs(*given),
        "closest flip point": borderline.closest(*given),
    }
    draw_instances(path, methods, shipped.X, (28, 28), 3, shipped.classes)
