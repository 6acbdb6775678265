"""A homotopy in pictures: the path of flip points, and how gradients flow before and after the transformation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.common.writing import atomic_path
from flipopt.networks import DenseNetwork
from flipopt.networks.gradient_flow import gradient_flow
from flipopt.results import FlipResult

TRAINED, EASY = "#b2182b", "#2166ac"
TINY = 1e-40
"""Slopes below this, 0 among them, are drawn here: an axis of logarithms has no 0."""


def draw_path(path: str | Path, network: DenseNetwork, easy: DenseNetwork, x: Array, flip: FlipResult) -> None:
    """Draw the stages of ``flip`` and the gradient flow at x (n_inputs,) to ``path`` (.png, .pdf, .svg).

    ``network`` is the trained network and ``easy`` its transformed form at t = 0.
    """
    from matplotlib.figure import Figure

    if not flip.stages:
        raise InputError("flip: expected the result of a homotopy, found one without stages")
    figure = Figure(figsize=(9.6, 6.4), layout="constrained")
    axes = figure.subplots(2, 2)
    _draw_distance(axes[0, 0], flip)
    _draw_scores(axes[0, 1], network, x, flip)
    _draw_flow(axes[1], network, easy, x)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150)


def _draw_distance(axis: Any, flip: FlipResult) -> None:
    kept = [stage for stage in flip.stages if stage.kept]
    failed = [stage for stage in flip.stages if not stage.kept]
    axis.plot([0.0, *(s.t for s in kept)], [0.0, *(s.distance for s in kept)], "o-", color=EASY, ms=4, label="kept")
    for stage in failed:  # where it ended means nothing; that it was tried does
        axis.axvline(stage.t, color="0.7", lw=0.8, ls=":", label="failed" if stage is failed[0] else None)
    axis.set(xlabel="t", ylabel="distance", title="Distance of the flip point from x")
    axis.legend(frameon=False)


def _draw_scores(axis: Any, network: DenseNetwork, x: Array, flip: FlipResult) -> None:
    """What the trained network says at the points of the path: its two scores meet at the end."""
    kept = [stage for stage in flip.stages if stage.kept]
    t = [0.0, *(stage.t for stage in kept)]
    scores = network.logits(np.stack([x, *(stage.x for stage in kept)]))
    i, j = flip.classes[:2]
    for k, colour in ((i, TRAINED), (j, EASY)):
        axis.plot(t, scores[:, k], "o-", color=colour, ms=4, label=f"class {k}")
    axis.set(xlabel="t", ylabel="logit", title="Scores of the trained network on the path")
    axis.legend(frameon=False)


def _draw_flow(axes: Any, network: DenseNetwork, easy: DenseNetwork, x: Array) -> None:
    for net, colour, label in ((network, TRAINED, "trained"), (easy, EASY, "transformed")):
        flow = gradient_flow(net, x)
        layers = [layer.layer for layer in flow]
        smallest = np.maximum([layer.smallest_slope for layer in flow], TINY)
        median = np.maximum([layer.median_slope for layer in flow], TINY)
        axes[0].plot(layers, median, "o-", color=colour, ms=4, label=f"{label}, median")
        axes[0].plot(layers, smallest, "o:", color=colour, ms=3, label=f"{label}, smallest")
        axes[1].plot(layers, [layer.jacobian_norm for layer in flow], "o-", color=colour, ms=4, label=label)
    axes[0].set(xlabel="layer", yscale="log", ylabel="slope of a neuron", title="Slopes at x")
    axes[1].set(xlabel="layer", yscale="log", ylabel="norm of dy/dc", title="Gain from a layer to the logits at x")
    for axis in axes:
        axis.legend(frameon=False)
