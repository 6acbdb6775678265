"""The picture that alpha is chosen by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from flipopt.borderline import Tradeoff
from flipopt.common.errors import InputError
from flipopt.common.writing import atomic_path

KEPT, LOST, CHOSEN = "#2166ac", "#b2b2b2", "#d6604d"


def draw_tradeoff(path: str | Path, tradeoff: Tradeoff) -> None:
    """Success against error for every alpha, with the one that is chosen and the variance of the samples, written to
    ``path`` (.png, .pdf, .svg)."""
    from matplotlib.figure import Figure

    known = np.isfinite(tradeoff.success) & np.isfinite(tradeoff.error)
    if not known.any():
        raise InputError("tradeoff: expected at least one alpha with a success and an error, found none")
    figure = Figure(figsize=(6.0, 4.2), layout="constrained")
    axis = figure.subplots()
    order = [k for k in np.argsort(tradeoff.alpha, kind="stable") if known[k]]
    axis.plot(tradeoff.error[order], 100 * tradeoff.success[order], color="0.8", lw=1, zorder=1)
    for k in order:
        _point(axis, tradeoff, int(k))
    s, t = tradeoff.classes_of
    label = "variance of the samples: a map there has collapsed"
    axis.axvline(tradeoff.variance[0], color="0.3", lw=1, ls="--", label=label)
    axis.set_xscale("log")
    axis.set(xlabel="reconstruction error (sum over an input, mean over samples)", ylim=(-4, 106))
    axis.set_ylabel(f"validation samples of {s} led to {t} (%)")
    axis.set_title(f"Choice of alpha, from class {s} to class {t}", fontsize=10)
    axis.legend(frameon=False, fontsize=8, loc="lower right")
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150)


def _point(axis: Any, tradeoff: Tradeoff, k: int) -> None:
    """One alpha, with its value beside it."""
    place = tradeoff.error[k], 100 * tradeoff.success[k]
    chosen = k == tradeoff.chosen
    colour = CHOSEN if chosen else LOST if tradeoff.collapsed[k] else KEPT
    axis.scatter(*place, s=70 if chosen else 24, color=colour, zorder=2, label="chosen" if chosen else None)
    axis.annotate(f"{tradeoff.alpha[k]:g}", place, xytext=(5, -11), textcoords="offset points", fontsize=8)
