"""Section 6: is the region of the ships connected, and is it star-shaped?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csgraph

import flipopt as fo
from benchmarks.reproduce import pictures
from benchmarks.reproduce.desk import Case, Desk, Images
from benchmarks.reproduce.paper_001.clusters import separated
from benchmarks.reproduce.paper_001.samples import NETWORK, SEEDS, SHIP, by_seed, holds, quantiles, share
from benchmarks.reproduce.record import Claim, Number, Picture, Record
from flipopt.common.checks import Array
from flipopt.paths import crossings
from flipopt.regions import Connectivity
from flipopt.report import draw_regions

TRAINING_SHIPS = 1000
MOST_IMAGES = 8
"""In a row of a picture."""
FILES = ("001-section-6-graph.png", "001-section-6-ships.png")
NAME = "001.section_6"


@dataclass(frozen=True)
class Region:
    """Ships that a network has right, which of them are joined by a line inside, and which the mean ship is joined to.

    ``from_mean`` is (ships,) bool, all False if the network does not take the mean of all of them for a ship.
    """

    ships: Images
    graph: Connectivity
    from_mean: Array

    @property
    def best(self) -> int:
        """The ship that is joined to the most others."""
        return int(self.graph.degrees.argmax())

    def longest_chain(self) -> list[int]:
        """Between the two ships that take the most lines, of those that a chain joins."""
        hops = csgraph.shortest_path(self.graph.adjacency, unweighted=True, directed=False)
        hops[~np.isfinite(hops)] = -1
        a, b = np.unravel_index(int(hops.argmax()), hops.shape)
        return self.graph.chain(int(a), int(b))


def regions(desk: Desk) -> Record:
    """All right ships of the test set; half of them by a second network; a thousand of the training set."""
    cases = {seed: desk.case(NETWORK, seed) for seed in SEEDS}
    test = {seed: _region(desk, case, case.test, "test", None) for seed, case in cases.items() if seed == SEEDS[0]}
    for seed in SEEDS[1:]:
        half = len(test[SEEDS[0]].graph) // 2
        test[seed] = _region(desk, cases[seed], cases[seed].test, "test", half)
    train = {SEEDS[0]: _region(desk, cases[SEEDS[0]], cases[SEEDS[0]].train, "train", TRAINING_SHIPS)}
    first = test[SEEDS[0]]
    found = separated(first.graph, first.ships, cases[SEEDS[0]], desk.few((2, 3, 4), (2,)))
    chain = first.longest_chain()
    return Record(
        title="The region of the ships (section 6)",
        summary=f"Of the {first.graph.n_lines:,} lines between all {len(first.graph)} ships of the test set that the "
        f"network has right, {100 * first.graph.share:.1f}% stay among the ships. {found.summary}",
        setup={
            "network": NETWORK,
            "lines": "adaptive",
            **{f"test ships, seed {seed}": len(some.graph) for seed, some in test.items()},
            "training ships": len(train[SEEDS[0]].graph),
        },
        seeds=SEEDS,
        numbers=_numbers(first),
        claims=_claims(test, train),
        pictures=_pictures(desk, cases[SEEDS[0]], first, chain),
        sheets=[found.sheet],
        figures={
            **{f"test ships, seed {seed}": _figures(some) for seed, some in test.items()},
            f"training ships, seed {SEEDS[0]}": _figures(train[SEEDS[0]]),
            "most lines of a chain that two test ships take": len(chain) - 1,
            **found.figures,
        },
    )


def _region(desk: Desk, case: Case, images: Images, part: str, most: int | None) -> Region:
    """Of the ships that are right, all or ``most`` random ones."""
    rows = np.flatnonzero((images.labels == SHIP) & (case.predicted(images) == SHIP))
    rows = rows[np.sort(np.unique(images.X[rows], axis=0, return_index=True)[1])]  # the set has some images twice
    if most is not None and most < len(rows):
        rows = np.sort(np.random.default_rng(case.seed).choice(rows, most, replace=False))
    ships = images.take(rows)
    desk.console.print(f"lines between {len(ships):,} ships, {part}, seed {case.seed}")
    run = desk.work / f"regions-{part}-seed{case.seed}"
    graph = fo.regions.connectivity(case.network, ships.X, progress=True, run=run)
    centre = ships.X.mean(axis=0)
    inside = np.zeros(len(ships), dtype=bool)
    if case.network.in_float64.predict(centre) == SHIP:
        inside = crossings(case.network, centre, ships.X, "adaptive").count == 0
    return Region(ships, graph, inside)


def _numbers(found: Region) -> list[Number]:
    graph = found.graph
    others = len(graph) - 1
    of = f"Of {graph.n_lines:,} lines between the {len(graph)} ships of the test set that are right."
    least, median, best = (int(value) for value in np.quantile(graph.degrees, (0, 0.5, 1)))
    return [
        Number(
            f"{NAME}.ship_lines_inside_percent",
            "lines between ships that stay in their region, %",
            100 * graph.share,
            of,
        ),
        Number(f"{NAME}.ship_lines_leaving_percent", "lines that leave it, %", 100 * (1 - graph.share), of),
        Number(
            f"{NAME}.least_connected_ship_links",
            "other ships that the least connected one is joined to",
            float(least),
            f"Out of {others} others; the median is {median}, the largest {best}. The paper does not say how many "
            "ships it has.",
        ),
    ]


def _claims(test: Mapping[int, Region], train: Mapping[int, Region]) -> list[Claim]:
    def chains(some: Region) -> str:
        graph = some.graph
        parts = graph.n_components
        sizes = np.bincount(graph.components)
        rest = f" in {parts} parts, the largest of {sizes.max()}" if parts > 1 else " in one part"
        return (
            f"{len(graph)} ships{rest}, {100 * graph.share:.1f}% of lines inside, at least {graph.degrees.min()} each"
        )

    def star(some: Region) -> str:
        return (
            f"the best connected ship is joined to {some.graph.degrees.max()} of {len(some.graph) - 1} others, "
            f"{len(some.graph.centres)} to all; the mean of all ships is joined to {share(some.from_mean)}"
        )

    def is_star(some: Region) -> bool:
        return len(some.graph.centres) > 0 or bool(some.from_mean.all())

    return [
        Claim(
            "all ships are connected by chains of lines that stay in their region",
            "section 6",
            by_seed(test, chains),
            holds(test, lambda some: some.graph.n_components == 1),
        ),
        Claim(
            "the region of the ships is star-shaped",
            "section 6",
            "Chains do not show it; a point that is joined to all ships would speak for it. Looked for among the ships "
            f"and at their mean: {by_seed(test, star)}",
            holds(test, is_star),
        ),
        Claim(
            "the images of the training set are connected by chains, too",
            "section 6",
            by_seed(train, chains),
            holds(train, lambda some: some.graph.n_components == 1),
        ),
    ]


def _pictures(desk: Desk, case: Case, found: Region, chain: list[int]) -> list[Picture]:
    graph = found.graph
    draw_regions(desk.picture(FILES[0]), graph, chain=chain)
    pictures.smaller(desk.picture(FILES[0]))
    shown = chain[: MOST_IMAGES - 2]
    titles = ["least connected", "best connected", *(f"chain, ship {k + 1}" for k in range(len(shown)))]
    rows = [graph.least_connected, found.best, *shown]
    drawn = pictures.figure(1.8 * len(rows), 2.3)
    for axis, row, title in zip(drawn.subplots(1, len(rows)), rows, titles, strict=True):
        pictures.show_image(axis, found.ships.images[row], f"{title}\n({graph.degrees[row]} links)")
    pictures.save(drawn, desk.picture(FILES[1]))
    ends = "the two ships that are farthest apart by lines inside the region"
    return [
        Picture(
            FILES[0],
            f"The {len(graph)} ships of the test set that the network has right, placed by the first two principal "
            "components of their coefficients; colours say to how many others each is joined by a line that stays in "
            "the region. A few of these lines are drawn. Red: the least connected ship, and the shortest chain between "
            f"{ends}.",
        ),
        Picture(
            FILES[1],
            "The ship that is joined to the fewest others, the one that is joined to the most, and the shortest chain "
            f"between {ends}: from each ship to the next the line stays in the region.",
        ),
    ]


def _figures(some: Region) -> dict[str, Any]:
    graph = some.graph
    return {
        "lines": graph.n_lines,
        "share inside": graph.share,
        "components": np.bincount(graph.components),
        "ships joined to all others": len(graph.centres),
        "links of a ship": {**quantiles(graph.degrees), "least": graph.degrees.min(), "most": graph.degrees.max()},
        "joined to the mean of all ships": some.from_mean.mean(),
        "evaluations a line": graph.evaluations,
    }
