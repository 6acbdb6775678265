"""Section 5.2's alpha: how the paper's 0.8 compares with others, by numbers in place of the eye."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import flipopt as fo
from benchmarks.reproduce import pictures
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_000.classifiers import Classifier, Model
from benchmarks.reproduce.paper_000.measures import QUICK, kept
from benchmarks.reproduce.record import Picture, Sheet
from flipopt import report
from flipopt.borderline import Tradeoff, Training

PUBLISHED = 0.8
TRAINING = Training()


def tradeoff(desk: Desk, known: Classifier) -> Tradeoff:
    """Component I from s to t by several alphas, of seed 0; what was computed before is not computed again."""
    columns = kept(desk, known, "alpha", partial(_columns, desk, known))
    arrays = {name: np.array(columns[name]) for name in Tradeoff.names()}
    return Tradeoff(**arrays, classes_of=known.pair, seed=0)


def _columns(desk: Desk, known: Classifier) -> dict[str, Any]:
    training = desk.few(TRAINING, replace(TRAINING, steps=QUICK.steps, batch=QUICK.batch))
    found = fo.borderline.tradeoff(known.network, *known.train, *known.pair, training=training, progress=True)
    return {name: getattr(found, name).tolist() for name in Tradeoff.names()}


def picture(desk: Desk, known: Classifier, found: Tradeoff) -> Picture:
    """Success against error."""
    path = desk.picture(f"000-alpha-{known.model.name}.png")
    report.draw_tradeoff(path, found)
    pictures.smaller(path)
    s, t = known.model.pair
    return Picture(
        path.name,
        f"{known.model.words}, component I from “{s}” to “{t}” by the weight alpha of the class in the loss: the share "
        "of images held back that are led over, and their squared error.",
    )


def sheet(found: Mapping[Model, Tradeoff]) -> Sheet:
    """The paper's alpha and the one that its two criteria choose."""
    head = ["classifier", "variance", "alpha", "led over, %", "error", "alpha chosen", "led over, %", "error"]
    body = []
    for model, one in found.items():
        paper, best = int(np.abs(one.alpha - PUBLISHED).argmin()), one.chosen
        cells = [f"{one.variance[0]:.1f}", f"{one.alpha[paper]:g}", *_cells(one, paper)]
        chosen = ["none: all collapsed", "", ""] if best is None else [f"{one.alpha[best]:g}", *_cells(one, best)]
        body.append([model.words, *cells, *chosen])
    return Sheet(
        "The weight alpha of the class in the loss of component I: the paper's, and the one with the smallest error "
        "among those that lead as many over, to a percentage point, without collapsing",
        head,
        body,
    )


def _cells(one: Tradeoff, k: int) -> list[str]:
    return [f"{100 * one.success[k]:.1f}", f"{one.error[k]:.1f}{' (collapsed)' * bool(one.collapsed[k])}"]
