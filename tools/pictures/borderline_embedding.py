"""The last hidden layer between 4 and 9, with borderline instances of both directions, and test images beside."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import flipopt as fo
from flipopt.report import draw_embedding


def draw(path: Path) -> None:
    shipped = fo.load_shipped("mnist-fcn")
    net, X, labels = shipped.network, shipped.X, shipped.labels
    both = [fo.borderline.rpbs(net, X, labels, s, t) for s, t in ((4, 9), (9, 4))]
    last = np.arange(200) >= 150
    test = X[last & np.isin(labels, (4, 9))]
    draw_embedding(path, net, X[~last], labels[~last], fo.borderline.Instances.join(both), test, shipped.classes)
