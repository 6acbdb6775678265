"""Pictures of what flip points say: trust, alternate classes, directions, training data, estimates, attacks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.common.writing import atomic_path
from flipopt.explain import Adversarial, Alternate, Ambiguity, Directions, Influence, TaylorComparison, Trust
from flipopt.explain.trust import Predictor

DISTANCE, SOFTMAX, WRONG, QUIET = "#2166ac", "#d6604d", "#b2182b", "0.75"
LEAST_DOUBT = 1e-16
"""Softmax that is 1 in floats is drawn here: an axis of logarithms has no 0."""


def draw_trust(path: str | Path, trust: Trust) -> None:
    """Distance against softmax, ROC and precision of both as predictors of mistakes, and shares of mistakes by value;
    written to ``path`` (.png, .pdf, .svg)."""
    figure = _figure(11, 6.6)
    axes = figure.subplots(2, 3)
    _scatter(axes[0, 0], trust)
    pairs = ((trust.distance, DISTANCE), (trust.softmax, SOFTMAX))
    for predictor, colour in pairs:
        low, high = predictor.interval
        label = f"{predictor.name}: {predictor.auc:.3f} ({low:.2f} to {high:.2f})"
        axes[0, 1].step(*predictor.roc, where="post", color=colour, label=label)
        label = f"{predictor.name}: {predictor.average_precision:.3f}"
        axes[0, 2].step(*predictor.pr, where="pre", color=colour, label=label)
    axes[0, 1].plot([0, 1], [0, 1], color=QUIET, lw=0.8, ls=":")
    axes[0, 2].axhline(1 - trust.accuracy, color=QUIET, lw=0.8, ls=":")
    axes[0, 1].set(
        xlabel="right answers that are suspected", ylabel="mistakes that are found", title="ROC curve (area)"
    )
    axes[0, 2].set(
        xlabel="mistakes that are found",
        ylabel="mistakes among the suspected",
        title="Precision (average)",
        ylim=(0, 1.03),
    )
    for axis in axes[0, 1:]:
        axis.legend(frameon=False, fontsize=8, loc="best")
    _calibration(axes[1, 0], trust.distance, trust.distance.calibration.value, DISTANCE)
    doubt = np.maximum(1 - trust.softmax.calibration.value, LEAST_DOUBT)
    _calibration(axes[1, 1], trust.softmax, doubt, SOFTMAX)
    promised = np.geomspace(min(doubt.min(initial=0.1), 0.1), 1, 50)
    axes[1, 1].plot(promised, promised, color=QUIET, lw=0.8, ls=":")
    axes[1, 0].set(xlabel="distance to the nearest flip")
    axes[1, 1].set(xscale="log", xlabel="1 - softmax (dotted: if it were so)")
    axes[1, 1].invert_xaxis()
    _words(axes[1, 2], trust.summary())
    _save(figure, path)


def draw_alternate(path: str | Path, alternate: Alternate) -> None:
    """How many inputs of each predicted class flip first to each other class."""
    figure = _figure(0.45 * len(alternate.classes) + 3, 0.42 * len(alternate.classes) + 2.4)
    axis = figure.subplots()
    most = max(1, int(alternate.matrix.max(initial=0)))
    axis.imshow(alternate.matrix, cmap="Blues", vmin=0, vmax=most)
    for (i, j), count in np.ndenumerate(alternate.matrix):
        if count:
            axis.text(
                j, i, count, ha="center", va="center", fontsize=8, color="white" if count > 0.6 * most else "black"
            )
    places = range(len(alternate.classes))
    axis.set_xticks(places, alternate.classes, rotation=45 if max(map(len, alternate.classes), default=0) > 3 else 0)
    axis.set_yticks(places, alternate.classes)
    axis.set(xlabel="nearest other class", ylabel="predicted class", title="Inputs by their nearest flip")
    _save(figure, path)


def draw_directions(
    path: str | Path, directions: Directions, names: Sequence[str] | None = None, count: int = 4
) -> None:
    """The spectrum of the directions, the sizes of changes, and the first components: as images where ``features`` were
    given, else as bars, with the ``names`` of features."""
    count = min(count, len(directions.components))
    if count == 0:
        raise InputError("directions: expected at least one flip, found none")
    figure = _figure(2.5 * max(count, 3) + 0.6, 5.6)
    upper, lower = figure.subfigures(2, 1, height_ratios=(1, 1))
    axes = upper.subplots(1, 2)
    _spectrum(axes[0], directions)
    _sizes(axes[1], directions)
    panels = np.atleast_1d(lower.subplots(1, count))
    if directions.features is None:
        _bars(panels, directions, names)
    else:
        _images(lower, panels, directions)
    _save(figure, path)


def draw_ambiguity(path: str | Path, ambiguity: Ambiguity) -> None:
    """Which share of decisions may change within every distance, or with every probability."""
    by_radius = not np.isnan(ambiguity.radius)
    values = np.sort(ambiguity.distance) if by_radius else np.sort(ambiguity.probability)[::-1]
    if len(values) == 0:
        raise InputError("ambiguity: expected at least one flip, found none")
    figure = _figure(5.4, 3.6)
    axis = figure.subplots()
    axis.step(values, np.arange(1, len(values) + 1) / len(values), where="post" if by_radius else "pre", color=DISTANCE)
    axis.axvline(ambiguity.radius if by_radius else ambiguity.level, color=SOFTMAX, lw=1)
    axis.set(ylabel="share of decisions", ylim=(0, 1.03), title=f"{ambiguity.share:.0%} are ambiguous")
    axis.set_xlabel("within this distance" if by_radius else "with this probability or more")
    _save(figure, path)


def draw_influence(path: str | Path, influence: Influence, distances: Array) -> None:
    """The distances (rows,) of all training data, by class, and what of them is nearest and farthest."""
    figure = _figure(7, 3.6)
    axis = figure.subplots()
    parts = ((distances, QUIET, "all"), (distances[influence.nearest], DISTANCE, "nearest"))
    bins = np.linspace(0, float(np.nanmax(distances)), 61)
    for values, colour, label in (*parts, (distances[influence.farthest], SOFTMAX, "farthest")):
        axis.hist(values, bins=bins, color=colour, label=f"{label}: {len(values):,}")
    axis.set(xlabel="distance to the nearest flip", ylabel="inputs", title="Training data by distance")
    axis.legend(frameon=False)
    _save(figure, path)


def draw_taylor(path: str | Path, comparison: TaylorComparison) -> None:
    """Estimates against closest distances, beta, the boundary in the direction of the estimate, and angles (Figures
    5 to 8 of 001)."""
    known = np.isfinite(comparison.beta) & (comparison.beta > 0) & (comparison.closest > 0)
    some = comparison.take(known)
    if len(some) == 0:
        raise InputError("comparison: expected at least one estimate, found none")
    figure = _figure(9, 6.6)
    axes = figure.subplots(2, 2)
    axes[0, 0].loglog(some.closest, some.estimate, "o", ms=3, color=DISTANCE, alpha=0.6)
    ends = [some.closest.min(), some.closest.max()]
    axes[0, 0].plot(ends, ends, color=QUIET, lw=0.8, ls=":")
    axes[0, 0].set(xlabel="distance of the closest flip", ylabel="first-order estimate", title="Estimates")
    _histogram(axes[0, 1], some.beta, "beta: closest over estimate", "By how much estimates are off")
    met = np.isfinite(some.ratio)
    if met.any():
        _histogram(axes[1, 0], some.ratio[met], "along the direction, over closest", "The boundary in that direction")
    lost = int((~comparison.feasible).sum())
    axes[1, 0].annotate(
        f"none allowed: {lost} of {len(comparison)}", (0.97, 0.93), xycoords="axes fraction", ha="right"
    )
    axes[1, 1].plot(some.closest, some.angle, "o", ms=3, color=DISTANCE, alpha=0.6)
    axes[1, 1].set(
        xlabel="distance of the closest flip", ylabel="degrees", ylim=(0, None), title="Angle between the two"
    )
    _save(figure, path)


def draw_adversarial(path: str | Path, adversarial: Adversarial) -> None:
    """Points of least loss and first crossings against the closest flips, and how the best radius varies (Figure 12 of
    001)."""
    if len(adversarial) == 0:
        raise InputError("adversarial: expected at least one input with a flip, found none")
    figure = _figure(9, 3.8)
    left, right = figure.subplots(1, 2)
    closest, some = adversarial.flip_distance, adversarial.success
    for values, colour, label in (
        (adversarial.distance, SOFTMAX, "point of least loss"),
        (adversarial.crossing, DISTANCE, "first crossing on the way"),
    ):
        left.plot(closest[some], values[some], "o", ms=3, color=colour, alpha=0.7, label=label)
    failed = ~some
    left.plot(closest[failed], adversarial.distance[failed], "x", ms=3, color=QUIET, label="does not flip")
    ends = [0, float(max(closest.max(), adversarial.distance.max()))]
    left.plot(ends, ends, color=QUIET, lw=0.8, ls=":")
    left.set(xlabel="distance of the closest flip", ylabel="distance", title="Attacks in a ball")
    left.legend(frameon=False, fontsize=8)
    right.hist(closest, bins=40, color=DISTANCE)
    for radius in np.unique(adversarial.radius)[:3]:
        right.axvline(radius, color=SOFTMAX, lw=1.2, label=f"radius {radius:g}")
    feasible = float(adversarial.feasible.mean())
    right.set(xlabel="best radius: distance of the closest flip", ylabel="inputs", title=f"Feasible for {feasible:.0%}")
    right.legend(frameon=False, fontsize=8)
    _save(figure, path)


def _figure(width: float, height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _save(figure: Any, path: str | Path) -> None:
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150)


def _scatter(axis: Any, trust: Trust) -> None:
    """Figure 3 of 002: softmax says little where distance does."""
    for wrong, colour, size, label in ((False, QUIET, 6, "right"), (True, WRONG, 12, "mistake")):
        some = trust.wrong == wrong
        axis.scatter(trust.distance.values[some], trust.softmax.values[some], s=size, color=colour, label=label)
    axis.set(xlabel="distance to the nearest flip", ylabel="softmax", title="Each input")
    axis.legend(frameon=False, fontsize=8)


def _calibration(axis: Any, predictor: Predictor, places: Array, colour: str) -> None:
    bins = predictor.calibration
    error = np.stack([bins.share - bins.low, bins.high - bins.share])
    axis.errorbar(places, bins.share, np.maximum(error, 0), fmt="o-", ms=4, lw=1, capsize=2, color=colour)
    axis.set(ylabel="share of mistakes", ylim=(-0.03, 1.03))
    axis.set_title(f"Mistakes by {predictor.name} (95% intervals)")


def _words(axis: Any, text: str) -> None:
    import textwrap

    axis.axis("off")
    axis.text(0, 0.97, "\n".join(textwrap.wrap(text, 44)), va="top", fontsize=9, transform=axis.transAxes)


def _spectrum(axis: Any, directions: Directions) -> None:
    what = "directions" if directions.method == "pca" else "features, in the order of pivots"
    places = np.arange(1, len(directions.share) + 1)
    axis.plot(places, np.cumsum(directions.share), color=DISTANCE)
    for share in (0.9, 0.95, 0.99):
        needed = directions.needed(share)
        axis.plot([needed], [share], "o", ms=4, color=SOFTMAX)
        axis.annotate(
            f"{share:.0%}: {needed}", (needed, share), xytext=(6, -10), textcoords="offset points", fontsize=8
        )
    axis.set(
        xlabel=what, ylabel="share of squared changes", title=f"Rank {directions.rank}", ylim=(0, 1.03), xlim=(0, None)
    )


def _sizes(axis: Any, directions: Directions) -> None:
    largest = np.sort(directions.largest)[::-1]
    axis.plot(np.arange(1, len(largest) + 1), largest, color=DISTANCE)
    axis.axhline(directions.negligible * largest.max(), color=QUIET, lw=0.8, ls=":")
    axis.set(xlabel="features, largest first", ylabel="largest change", xlim=(0, None))
    axis.set_title(f"{len(directions.never)} of {len(largest)} features never matter")


def _titles(directions: Directions) -> list[str]:
    return [f"{k + 1}: {share:.0%}" for k, share in enumerate(directions.share)]


def _bars(panels: Any, directions: Directions, names: Sequence[str] | None, most: int = 12) -> None:
    labels = names or [str(k) for k in range(len(directions.largest))]
    for panel, component, title in zip(panels, directions.components, _titles(directions), strict=False):
        chosen = np.argsort(-np.abs(component), kind="stable")[:most]
        panel.barh(range(len(chosen)), component[chosen], color=np.where(component[chosen] > 0, SOFTMAX, DISTANCE))
        panel.set_yticks(range(len(chosen)), [labels[k] for k in chosen], fontsize=7)
        panel.invert_yaxis()
        panel.axvline(0, color=QUIET, lw=0.8)
        panel.set_title(title, fontsize=9)


def _images(figure: Any, panels: Any, directions: Directions) -> None:
    images = directions.images(len(panels))
    largest = float(np.quantile(np.abs(images), 0.995 if images.ndim == 4 else 1.0)) or 1.0
    shades: Any = None
    for panel, image, title in zip(panels, images, _titles(directions), strict=False):
        if image.ndim == 3:  # colours: grey where nothing changes
            panel.imshow(np.clip(0.5 + image / (2 * largest), 0, 1))
        else:
            shades = panel.imshow(image, cmap="RdBu_r", vmin=-largest, vmax=largest)
        panel.set_title(title, fontsize=9)
        panel.set_xticks([])
        panel.set_yticks([])
    if shades is None:
        figure.supxlabel(f"grey: no change; full colour: a change of {largest:.2g} or more", fontsize=9)
    else:
        figure.colorbar(shades, ax=panels, shrink=0.8, label="change of pixel")


def _histogram(axis: Any, values: Array, label: str, title: str) -> None:
    """Of ratios, on an axis of logarithms."""
    low, high = np.log10(values.min()), np.log10(values.max())
    axis.hist(values, bins=np.logspace(low - 0.01, high + 0.01, 41), color=DISTANCE)
    axis.axvline(1, color=SOFTMAX, lw=1)
    axis.set(xscale="log", xlabel=label, ylabel="inputs", title=title)
