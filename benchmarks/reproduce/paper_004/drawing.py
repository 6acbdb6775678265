"""The pictures of 004."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import flipopt as fo
from benchmarks.reproduce.paper_004.answers import Answers
from benchmarks.reproduce.paper_004.networks import KINDS
from benchmarks.reproduce.paper_004.words import at
from benchmarks.reproduce.pictures import BLUE, QUIET, RED, figure, save
from flipopt.common.checks import Array
from flipopt.report.disagreement import AGREE, MODELS, SPLIT

COLOURS = {"MLP": BLUE, "CNN": "#e08214", "ViT": "#1b7837"}
Interpolations = fo.disagreement.Interpolations


def images(path: Path, models: Answers, asked: fo.disagreement.Labels | None) -> None:
    """Figure 3: a row a line, with what models say above each image."""
    shown = models.sets.first
    across, pairs = len(shown) // len(shown.pairs), shown.pairs
    drawn = figure(0.82 * across + 0.4, 0.97 * len(pairs))
    axes = drawn.subplots(len(pairs), across)
    said = models.predicted[:, models.sets.part(0)]
    apart = np.zeros(len(shown), dtype=bool) if asked is None else np.ptp(asked.labels, axis=0) > 0
    for k, (axis, image) in enumerate(zip(axes.reshape(-1), shown.images.reshape(-1, 28, 28), strict=True)):
        axis.imshow(image, cmap="gray", vmin=0, vmax=1)
        axis.set(xticks=[], yticks=[])
        words = spoken(said[:, k]) if len(said) else ""
        axis.set_title(words, fontsize=9, pad=2, color=RED if words != "✓" else "0.5")
        axis.spines[:].set(visible=bool(apart[k]), color=RED, linewidth=2.0)
    for axis, (i, j) in zip(axes[:, 0], pairs, strict=True):
        axis.set_ylabel(f"{i} to {j}", fontsize=9)
    save(drawn, path)


def spoken(said: Array) -> str:
    """✓ where all say the same, else what they say, the most frequent first."""
    classes, counts = np.unique(said, return_counts=True)
    if len(classes) == 1:
        return "✓"
    return ", ".join(str(classes[k]) for k in np.argsort(-counts, kind="stable"))


def maps(path: Path, studies: Mapping[float, fo.disagreement.Study], shown: Interpolations) -> None:
    """Figure 4 without people: a panel an accuracy, a square an image, a row a line."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    lines, across = len(shown.pairs), len(shown) // len(shown.pairs)
    drawn = figure(3.0 * len(studies) + 0.6, 0.22 * lines + 1.3)
    colours = [AGREE, *MODELS]
    panels = drawn.subplots(1, len(studies), sharey=True, squeeze=False)[0]
    for axis, (target, study) in zip(panels, studies.items(), strict=True):
        split = np.minimum(study.models.split, len(colours)).reshape(lines, across) - 1
        axis.pcolormesh(
            split, cmap=ListedColormap(colours), vmin=-0.5, vmax=len(colours) - 0.5, edgecolors="white", lw=0.8
        )
        axis.set_title(f"{at(target)}: {int(study.disagree.sum())} of {len(split.flat)} images", fontsize=9)
        axis.set_xticks([0.5, across / 2, across - 0.5], ["0", "alpha", "1"], fontsize=8)
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    panels[0].set_ylim(lines, 0)
    panels[0].set_yticks(np.arange(lines) + 0.5, [f"{i} to {j}" for i, j in shown.pairs], fontsize=8)
    names = ["all agree", *SPLIT]
    patches = [Patch(facecolor=colour, label=name) for colour, name in zip(colours, names, strict=True)]
    drawn.legend(handles=patches, loc="outside lower center", ncols=len(patches), frameon=False, fontsize=8)
    save(drawn, path)


def crossings(path: Path, found: fo.disagreement.Crossings, models: Answers) -> None:
    """Where each model first changes its mind, a row a line."""
    pairs = models.sets.first.pairs
    drawn = figure(8.0, 0.36 * len(pairs) + 1.2)
    axis = drawn.subplots()
    for row, kind in enumerate(KINDS.values()):
        numbers = [k for k, model in enumerate(models.models) if model.kind == kind]
        rows = np.isin(found.model, numbers) & np.isfinite(found.first)
        if rows.any():
            y = found.line[rows] + 0.22 * (row - 1)
            axis.scatter(found.first[rows], y, s=14, color=COLOURS[kind], alpha=0.75, lw=0, label=kind)
    axis.set_yticks(range(len(pairs)), [f"{i} to {j}" for i, j in pairs], fontsize=8)
    axis.set(xlim=(-0.02, 1.02), ylim=(len(pairs) - 0.5, -0.5), xlabel="alpha where the model first changes its mind")
    axis.set_xticks(np.linspace(0, 1, 11))
    axis.grid(axis="x", color="0.9")
    axis.set_axisbelow(True)
    axis.hlines(np.arange(len(pairs) - 1) + 0.5, -0.02, 1.02, color="0.85", lw=0.6)
    drawn.legend(loc="outside upper center", ncols=len(KINDS), frameon=False, fontsize=8)
    save(drawn, path)


def distances(path: Path, models: Answers, D: Array) -> None:
    """The mean distance of an image over models against its place on the line, a panel an architecture."""
    shown, disagree = models.sets.first, models.study(0).disagree
    looked_for = {model.kind for model, row in zip(models.models, D, strict=True) if np.isfinite(row).any()}
    kinds = [kind for kind in KINDS.values() if kind in looked_for]
    drawn = figure(3.6 * len(kinds) + 0.4, 3.4)
    panels: Any = drawn.subplots(1, len(kinds), squeeze=False)[0]
    rng = np.random.default_rng(0)
    aside = 0.02 * (rng.random(len(shown)) - 0.5)  # so that the images of a place do not hide each other
    for axis, kind in zip(panels, kinds, strict=True):
        own = D[[model.kind == kind for model in models.models]]
        looked = np.isfinite(own).any(axis=0)
        average = np.nanmean(own[:, looked], axis=0)
        for colour, which, words in (
            (QUIET, ~disagree[looked], "all models agree"),
            (BLUE, disagree[looked], "models disagree"),
        ):
            axis.scatter((shown.alpha + aside)[looked][which], average[which], s=12, color=colour, lw=0, label=words)
        axis.set(xlabel="alpha", title=f"{kind}s, {int(looked.sum())} images")
        axis.set_ylim(bottom=0)
    panels[0].set_ylabel("mean distance to the closest flip")
    handles, names = panels[0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside upper center", ncols=2, frameon=False, fontsize=8)
    save(drawn, path)
