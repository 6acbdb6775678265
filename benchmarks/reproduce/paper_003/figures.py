"""Figures 1, 4 and 5 with a generator of two latent numbers, and Figures 6 and 7 with that of Tables 1 and 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import flipopt.generative as fg
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_003 import drawing
from benchmarks.reproduce.paper_003.claims import BALLS
from benchmarks.reproduce.paper_003.measures import (
    Row,
    Settings,
    column,
    comparable,
    explored,
    settings,
)
from benchmarks.reproduce.paper_003.networks import DCGAN, PLANE, Pair, pair
from benchmarks.reproduce.record import Claim, Picture, Record, Sheet
from flipopt.common.checks import Array
from flipopt.common.progress import progress_bar

FLAT = Settings(queries=5, interval=1.0, delta=0.06, expansions=3000, count=400)
"""In the plane, where many samples and short steps fill a region; else as in the tables."""
FLAT_QUICK = Settings(queries=2, steps=20, interval=1.0, delta=0.15, expansions=150, count=40)
GRID = 201
"""Points a side of the box, by which areas are measured."""
COVERED = 0.9
"""Share of a region's area in the box within a step of a sample that counts as all of it."""
SHOWN = 2
"""Queries of Figures 6 and 7: the first ones of the tables."""
LAYER = 1
"""Of the pictures in the plane and of Figure 7: its region is a polytope."""

Part = tuple[list[Claim], list[Picture], list[Sheet], Mapping[str, Any]]
"""Of a record."""


@dataclass(frozen=True, eq=False)
class Flat:
    """A query in the plane: its samples, the points compared, and the region on a grid."""

    tree: fg.Exploration
    balls: fg.Baselines
    grid: Array
    inside: Array


def figures(desk: Desk) -> Record:
    """Of the generators that are there."""
    how, flat = settings(desk), desk.few(FLAT, FLAT_QUICK)
    plane, whole = pair(desk, PLANE), pair(desk, DCGAN)
    parts: list[Part] = []
    absent = [model for model, one in ((PLANE, plane), (DCGAN, whole)) if one is None]
    if plane is not None:
        parts.append(in_the_plane(desk, plane, flat))
    if whole is not None:
        parts.append(([], [_figure_6(desk, whole, how), _figure_7(desk, whole, how)], [], {}))
    missing = [Sheet("Not run", ["generator", "why, and what would"], [[m.words, m.not_run] for m in absent])]
    return Record(
        title="Regions and samples in pictures (Figures 1 and 4 to 7)",
        summary="The geometry is shown with a generator of MNIST of two latent numbers, so that nothing is projected; "
        f"{flat.queries} queries from N(0, I), I = {flat.interval:g}, a step of {flat.delta:g} and "
        f"{flat.expansions:,} expansions, the rest as in the tables. The pictures in the plane are of the first query "
        f"whose region of layer {LAYER} was left by expansions. Figures 6 and 7 show the first {SHOWN} queries of the "
        "tables. Of the churches and faces of Figures 6 and 7 nothing can be shown here.",
        setup={"plane": repr(flat), "settings": repr(how)},
        seeds=[how.seed],
        claims=[claim for part in parts for claim in part[0]],
        pictures=[picture for part in parts for picture in part[1]],
        sheets=[*(sheet for part in parts for sheet in part[2]), *(missing if absent else [])],
        figures={name: value for part in parts for name, value in part[3].items()},
    )


def in_the_plane(desk: Desk, plane: Pair, how: Settings) -> Part:
    """Figures 1, 4 and 5, and areas in place of a look at them."""
    table: dict[int, list[Row]] = {}
    shown: Flat | None = None
    tasks = [(layer, k) for layer in plane.model.layers for k in range(how.queries)]
    with progress_bar(f"{plane.name}: queries and layers", len(tasks), console=desk.console) as advance:
        for done, (layer, k) in enumerate(tasks, 1):
            one = flat(desk, plane, how, layer, k)
            if one is not None:
                table.setdefault(layer, []).append(areas(one) | {"number": k})
                shown = one if shown is None and layer == LAYER else shown
            advance(done)
    if shown is None:
        return [], [], [], {}
    drawn = [_figure_1(desk, shown), _figure_4(desk, shown), _figure_5(desk, shown)]
    return (
        [_feasible(table), _covers(table)],
        drawn,
        [_areas(table)],
        {"areas": {f"layer {k}": t for k, t in table.items()}},
    )


def flat(desk: Desk, plane: Pair, how: Settings, layer: int, k: int) -> Flat | None:
    """A query, or None if nothing can be compared."""
    tree = explored(desk, plane, how, layer, k)
    if not comparable(tree):
        return None
    at = np.linspace(-how.interval, how.interval, GRID)
    grid = tree.region.query + np.stack(np.meshgrid(at, at), axis=-1).reshape(-1, 2)
    return Flat(tree, fg.baselines(tree, how.count, seed=k), grid, tree.region.contains(grid))


def areas(one: Flat) -> Row:
    """Shares of areas, on the grid, and of points."""
    from scipy.spatial import cKDTree

    inside, away = one.grid[one.inside], np.linalg.norm(one.grid - one.balls.centre, axis=1)
    cube = np.abs(one.grid - one.balls.centre).max(axis=1)
    covered = {
        "e-gbas": cKDTree(one.tree.accepted).query(inside)[0] <= one.tree.delta,
        "l2": away[one.inside] <= one.balls.epsilon_2,
        "linf": cube[one.inside] <= one.balls.epsilon_inf,
    }
    found: Row = {f"{name} covers": float(values.mean()) for name, values in covered.items()}
    found |= {f"{name} inside": float(one.tree.region.contains(z).mean()) for name, z in one.balls.points.items()}
    return found | {"of the box": float(one.inside.mean()), "samples": len(one.tree.accepted)}


def _feasible(table: Mapping[int, Sequence[Row]]) -> Claim:
    def percent(layer: int, *names: str) -> str:
        return " and ".join(f"{100 * column(table[layer], name).mean():.0f}%" for name in names)

    return Claim(
        "both balls leave out part of the region and contain points outside it; samples of E-GBAS are all inside",
        "Figure 5",
        "; ".join(
            f"layer {layer}, {len(rows)} queries in the plane: the balls of the 2-norm and of the infinity norm cover "
            f"{percent(layer, 'l2 covers', 'linf covers')} of the region's area in the box, and "
            f"{percent(layer, 'l2 inside', 'linf inside')} of their points are inside; of the samples "
            f"{percent(layer, 'e-gbas inside')} are"
            for layer, rows in table.items()
        )
        + ".",
        {
            f"layer {layer}, query {row['number']}": row["e-gbas inside"] == 1
            and max(row[f"{ball} {what}"] for ball in BALLS for what in ("covers", "inside")) < 1
            for layer, rows in table.items()
            for row in rows
        },
    )


def _covers(table: Mapping[int, Sequence[Row]]) -> Claim:
    return Claim(
        f"in the plane GB-RRT covers the region: {100 * COVERED:.0f}% of its area in the box is within a step of a "
        "sample",
        "Figures 3 and 5",
        "; ".join(
            f"layer {layer}: {100 * column(rows, 'e-gbas covers').mean():.1f}% on average, "
            f"{100 * column(rows, 'e-gbas covers').min():.1f}% at least"
            for layer, rows in table.items()
        )
        + ". What it comes to in 100 dimensions is with the tables.",
        {
            f"layer {layer}, query {row['number']}": row["e-gbas covers"] >= COVERED
            for layer, rows in table.items()
            for row in rows
        },
    )


AREAS = {
    "region, of the box": "of the box",
    "E-GBAS covers": "e-gbas covers",
    "2-norm covers": "l2 covers",
    "infinity norm covers": "linf covers",
    "E-GBAS inside": "e-gbas inside",
    "2-norm inside": "l2 inside",
    "infinity norm inside": "linf inside",
    "control inside": "matched inside",
}
"""Columns of a table, by what they are called in it."""


def _areas(table: Mapping[int, Sequence[Row]]) -> Sheet:
    return Sheet(
        "Areas in the plane, in %: of the box that the region takes; of the region in the box that is within a step of "
        "a sample or in a ball; and shares of points inside the region",
        ["layer", "query", "samples", *AREAS],
        [
            [
                str(layer),
                str(row["number"]),
                f"{row['samples']:,}",
                *(f"{100 * row[name]:.1f}" for name in AREAS.values()),
            ]
            for layer, rows in table.items()
            for row in rows
        ],
    )


def _figure_1(desk: Desk, one: Flat) -> Picture:
    path = desk.picture("003-figure-1.png")
    drawing.samples_beside_a_ball(path, one)
    return Picture(
        path.name,
        "Samples of E-GBAS (blue) and of the 2-norm's ball (red) in the region (grey) of a query (star), and images "
        "of some of each: those outside the region have a red frame.",
    )


def _figure_4(desk: Desk, one: Flat) -> Picture:
    path = desk.picture("003-figure-4.png")
    drawing.radii(path, one)
    return Picture(
        path.name,
        "Left: accepted samples (black), expansions that were rejected (red) and the mean of the accepted (blue). "
        "Right: circles around the mean through the nearest rejected one (red) and the farthest (orange), and at the "
        "mean of both distances (blue), which is the radius of the ball.",
    )


def _figure_5(desk: Desk, one: Flat) -> Picture:
    path = desk.picture("003-figure-5.png")
    drawing.geometry(path, one)
    return Picture(
        path.name,
        "The region in the box (grey; the box dotted) and points of each method: blue inside the region, red outside. "
        "The control has the distances of the samples in random directions.",
    )


def _figure_6(desk: Desk, whole: Pair, how: Settings) -> Picture:
    queries = range(min(SHOWN, how.queries))
    found = {(layer, k): explored(desk, whole, how, layer, k) for layer in whole.model.layers for k in queries}
    path = desk.picture("003-figure-6.png")
    drawing.by_layer(path, found)
    return Picture(
        path.name,
        "What varies among samples of E-GBAS, by layer: for each query the standard deviation of every pixel (pixels "
        "go from 0 to 1, each map to the largest of its row), and below it images of samples, the query's first.",
    )


def _figure_7(desk: Desk, whole: Pair, how: Settings) -> Picture:
    found = []
    for k in range(min(SHOWN, how.queries)):
        tree = explored(desk, whole, how, LAYER, k)
        if comparable(tree):
            found.append(fg.baselines(tree, how.count, seed=k))
    path = desk.picture("003-figure-7.png")
    drawing.beside_each_other(path, found)
    return Picture(
        path.name,
        f"Layer {LAYER}: the query's image, and images of random points of the 2-norm's ball, of the control at equal "
        "distances, and of samples of E-GBAS.",
    )
