"""The pictures of 003."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import flipopt.generative as fg
from benchmarks.reproduce.pictures import BLUE, RED, figure, save
from flipopt.common.checks import Array

if TYPE_CHECKING:
    from benchmarks.reproduce.paper_003.figures import Flat

ORANGE, BLACK, GREY = "#fdae61", "#1a1a1a", "#e8e8e8"
NAMES = {"e-gbas": "E-GBAS", "l2": "ball, 2-norm", "linf": "ball, infinity norm", "matched": "control, equal distances"}
EXAMPLES = 24
"""Images of each kind in Figure 1."""
BLOCK = 4
"""Images a side in Figure 7."""
SAMPLES = (2, 4)
"""Rows and columns of images below a map in Figure 6."""


def samples_beside_a_ball(path: Path, one: Flat) -> None:
    """Figure 1."""
    region, points = one.tree.region, one.balls.points
    drawn = figure(9.6, 4.6)
    left, right = drawn.subfigures(1, 2, width_ratios=(1, 1.15))
    axis = left.subplots()
    _ground(axis, one)
    for name, colour in (("l2", RED), ("e-gbas", BLUE)):
        axis.scatter(*points[name].T, s=5, color=colour, lw=0, alpha=0.8, label=NAMES[name])
    axis.scatter(*region.query, s=70, marker="*", color=BLACK, zorder=4, label="query")
    axis.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3)
    axes = right.subplots(2, 1)
    for part, name in zip(axes, ("e-gbas", "l2"), strict=True):
        few = points[name][np.linspace(0, len(points[name]) - 1, EXAMPLES).astype(int)]
        _sheet(part, _images(region.generator, few), 4, BLUE, ~region.contains(few))
        part.set_title(
            f"{NAMES[name]}: {100 * region.contains(points[name]).mean():.0f}% inside the region", fontsize=9
        )
    save(drawn, path)


def radii(path: Path, one: Flat) -> None:
    """Figure 4."""
    from matplotlib.patches import Circle

    tree, centre = one.tree, one.balls.centre
    drawn = figure(9.2, 4.7)
    axes = drawn.subplots(1, 2)
    distances = np.linalg.norm(tree.rejected - centre, axis=1)
    for axis in axes:
        _ground(axis, one)
        axis.scatter(*tree.rejected.T, s=5, color=RED, lw=0, alpha=0.6)
        axis.scatter(*tree.accepted.T, s=3, color=BLACK, lw=0)
        axis.scatter(*centre, s=45, color=BLUE, zorder=4)
    radii = {"nearest": (distances.min(), RED), "farthest": (distances.max(), ORANGE)}
    radii["mean of both"] = one.balls.epsilon_2, BLUE
    for name, (radius, colour) in radii.items():
        axes[1].add_patch(
            Circle(tuple(centre), radius, fill=False, color=colour, lw=1.8, label=f"{name}, {radius:.2f}")
        )
    axes[0].set_title(f"{len(tree.accepted):,} accepted, {len(tree.rejected):,} rejected", fontsize=9)
    axes[1].set_title("Radii of the ball", fontsize=9)
    axes[1].legend(fontsize=8, loc="upper right")
    save(drawn, path)


def geometry(path: Path, one: Flat) -> None:
    """Figure 5."""
    from matplotlib.patches import Circle, Rectangle

    balls, centre, region = one.balls, one.balls.centre, one.tree.region
    drawn = figure(12.0, 3.5)
    for axis, name in zip(drawn.subplots(1, 4), ("e-gbas", "l2", "linf", "matched"), strict=True):
        _ground(axis, one)
        points = balls.points[name]
        inside = region.contains(points)
        axis.scatter(*points.T, s=5, lw=0, color=np.where(inside, BLUE, RED))
        axis.set_title(f"{NAMES[name]}\n{100 * inside.mean():.0f}% inside", fontsize=9)
        side = balls.epsilon_inf
        if name == "l2":
            axis.add_patch(Circle(tuple(centre), balls.epsilon_2, fill=False, color=BLACK, lw=1))
        if name == "linf":
            axis.add_patch(Rectangle(tuple(centre - side), 2 * side, 2 * side, fill=False, color=BLACK, lw=1))
    save(drawn, path)


def by_layer(path: Path, found: Mapping[tuple[int, int], fg.Exploration]) -> None:
    """Figure 6: a row a query and a column a layer."""
    layers, queries = (sorted({key[k] for key in found}) for k in (0, 1))
    drawn = figure(2.5 * len(layers), 3.7 * len(queries))
    axes = drawn.subplots(2 * len(queries), len(layers), squeeze=False, height_ratios=[1.9, 1] * len(queries))
    for row, k in enumerate(queries):
        maps = {layer: _pixels(found[layer, k]) for layer in layers}
        most = max(float(one.max()) for one in maps.values())
        for place, layer in enumerate(layers):
            top, below = axes[2 * row, place], axes[2 * row + 1, place]
            top.imshow(maps[layer], cmap="magma", vmin=0, vmax=most or 1.0)
            top.set(xticks=[], yticks=[])
            top.set_title(f"layer {layer}: {maps[layer].mean():.3f}, at most {maps[layer].max():.2f}", fontsize=9)
            tree = found[layer, k]
            some = tree.accepted[np.linspace(0, len(tree.accepted) - 1, SAMPLES[0] * SAMPLES[1]).astype(int)]
            _sheet(below, _images(tree.region.generator, some), SAMPLES[0], BLUE)
        axes[2 * row, 0].set_ylabel(f"query {k}", fontsize=9)
    save(drawn, path)


def beside_each_other(path: Path, found: Sequence[fg.Baselines]) -> None:
    """Figure 7: a row a query."""
    names = ("l2", "matched", "e-gbas")
    drawn = figure(9.6, 2.9 * max(len(found), 1))
    axes = drawn.subplots(max(len(found), 1), 1 + len(names), squeeze=False, width_ratios=(0.4, 1, 1, 1))
    for row, balls in enumerate(found):
        G = balls.region.generator
        axes[row, 0].imshow(_images(G, balls.region.query[None])[0], cmap="gray", vmin=0, vmax=1)
        for place, name in enumerate(names, 1):
            some = balls.points[name][np.linspace(0, len(balls.points[name]) - 1, BLOCK**2).astype(int)]
            _sheet(axes[row, place], _images(G, some), BLOCK, BLUE)
    for axis, title in zip(axes[0], ("query", *(NAMES[name] for name in names)), strict=True):
        axis.set_title(title, fontsize=9)
    for axis in axes.reshape(-1):
        axis.axis("off")
    save(drawn, path)


def _ground(axis: Any, one: Flat) -> None:
    """The region in the box, and as much of the box (dotted) as belongs to it."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Rectangle

    low, high = one.grid.min(axis=0), one.grid.max(axis=0)
    side, inside = round(len(one.grid) ** 0.5), one.grid[one.inside]
    colours = ListedColormap(["white", GREY])
    extent = (low[0], high[0], low[1], high[1])
    axis.imshow(one.inside.reshape(side, side), origin="lower", extent=extent, cmap=colours, vmin=0, vmax=1)
    axis.add_patch(Rectangle(tuple(low), *(high - low), fill=False, color="0.5", lw=0.8, ls=":"))
    points = np.concatenate([inside, one.tree.rejected, *one.balls.points.values()])
    margin = 0.06 * np.ptp(points, axis=0).max()
    first, last = points.min(axis=0) - margin, points.max(axis=0) + margin
    axis.set(xlim=(first[0], last[0]), ylim=(first[1], last[1]), aspect="equal")
    axis.tick_params(labelsize=7)


def _sheet(axis: Any, images: Array, rows: int, colour: str, marked: Array | None = None) -> None:
    """Images in rows, with a frame around those that are marked."""
    from matplotlib.patches import Rectangle

    count, height, width = images.shape
    across = -(-count // rows)
    sheet = np.ones((rows * (height + 2), across * (width + 2)))
    for k, image in enumerate(images):
        y, x = (k // across) * (height + 2) + 1, (k % across) * (width + 2) + 1
        sheet[y : y + height, x : x + width] = image
        if marked is not None:
            frame = RED if marked[k] else colour
            axis.add_patch(Rectangle((x - 1, y - 1), width + 1, height + 1, fill=False, color=frame, lw=1.2))
    axis.imshow(sheet, cmap="gray", vmin=0, vmax=1)
    axis.axis("off")


def _images(G: fg.Generator, z: Array) -> Array:
    """Of latents, (rows, height, width): one channel, or the mean of three."""
    return np.asarray(np.clip(G.forward(z), 0, 1).mean(axis=1))


def _pixels(tree: fg.Exploration) -> Array:
    """Standard deviations of the samples' images, (height, width)."""
    return np.asarray(fg.deviation(tree.region.generator, tree.accepted).pixels.mean(axis=0))
