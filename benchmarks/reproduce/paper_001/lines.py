"""Figures 1 to 4: coefficients, and what the network says along lines between images and flip points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.reproduce import pictures
from benchmarks.reproduce.desk import Case, Desk, Images
from benchmarks.reproduce.paper_001.flip_lines import between_flips, to_flips
from benchmarks.reproduce.paper_001.reconstructions import reconstructions
from benchmarks.reproduce.paper_001.samples import NETWORK, SEEDS, Part, by_seed, flipped, holds, share
from benchmarks.reproduce.record import Claim, Picture, Record, Sheet
from flipopt.common.checks import Array
from flipopt.paths import Crossings, Line, crossings
from flipopt.report import draw_line

LINES = 4000
MANY = 5
"""Lines with the most crossings, that are drawn."""
FILE = "001-figure-2.png"


@dataclass(frozen=True)
class Between:
    """Lines between random images of a set: the pairs (lines, 2), and where they cross the boundary."""

    images: Images
    pairs: Array
    found: Crossings

    @property
    def lengths(self) -> Array:
        """Of the lines, (lines,)."""
        X = self.images.X
        return np.asarray(np.linalg.norm(X[self.pairs[:, 0]] - X[self.pairs[:, 1]], axis=1))


Sets = Mapping[str, Between]
"""Lines within the training set and within the test set."""


def lines(desk: Desk) -> Record:
    """Lines between images on two networks, from images to their closest flips, and between flips."""
    cases = {seed: desk.case(NETWORK, seed) for seed in SEEDS}
    found = {seed: flipped(desk, case, "test") for seed, case in cases.items()}
    parts = [
        reconstructions(desk, cases[SEEDS[0]]),
        _between_images(desk, cases),
        to_flips(desk, found),
        between_flips(desk, found),
    ]
    count = desk.few(LINES, 100)
    return Record(
        title="Lines between images and flip points (Figures 1 to 4)",
        summary=f"The softmax score was followed along {count:,} lines between random images of the training set and "
        f"as many of the test set, from all {len(found[SEEDS[0]]):,} test images to their closest flips, and between "
        "random pairs of those flips. Crossings of the boundary were found by sampling as densely as the curvature "
        f"asks for. All distances are those of the {cases[SEEDS[0]].features.n_features} coefficients.",
        setup={"network": NETWORK, "lines within a set": count, "crossings": "adaptive"},
        seeds=SEEDS,
        numbers=[number for part in parts for number in part.numbers],
        claims=[claim for part in parts for claim in part.claims],
        pictures=[picture for part in parts for picture in part.pictures],
        sheets=[sheet for part in parts for sheet in part.sheets],
        figures={name: value for part in parts for name, value in part.figures.items()},
    )


def _between_images(desk: Desk, cases: Mapping[int, Case]) -> Part:
    """Figure 2."""
    count = desk.few(LINES, 100)
    found = {
        seed: {
            name: _between(case, images, count, seed)
            for name, images in (("training", case.train), ("test", case.test))
        }
        for seed, case in cases.items()
    }
    first = found[SEEDS[0]]
    rows = [[f"seed {seed}", name, *_row(between)] for seed, sets in found.items() for name, between in sets.items()]
    head = ("network", "images", "lines", "no crossing", "one", "two or more", "most")
    figures = {
        f"crossings of lines between {name} images, seed {seed}": np.bincount(between.found.count)
        for seed, sets in found.items()
        for name, between in sets.items()
    }
    return Part(
        claims=_claims(found),
        pictures=_draw(desk, cases[SEEDS[0]], first),
        sheets=[Sheet("Crossings of lines between random images (shares with intervals at 95%)", head, rows)],
        figures=figures,
    )


def _between(case: Case, images: Images, count: int, seed: int) -> Between:
    """Random pairs of different images."""
    rng = np.random.default_rng(seed)
    first = rng.integers(len(images), size=count)
    pairs = np.column_stack([first, (first + rng.integers(1, len(images), size=count)) % len(images)])
    A, B = images.X[pairs[:, 0]], images.X[pairs[:, 1]]
    different = (A != B).any(axis=1)  # the data set has an image twice, now and then
    found = crossings(case.network, A[different], B[different], "adaptive", progress=True)
    return Between(images, pairs[different], found)


def _row(between: Between) -> list[str]:
    count = between.found.count
    return [f"{len(count):,}", share(count == 0), share(count == 1), share(count > 1), str(count.max())]


def _claims(found: Mapping[int, Sets]) -> list[Claim]:
    def once(sets: Sets) -> str:
        parts = [f"{share(between.found.count <= 1)} of {name} lines" for name, between in sets.items()]
        return " and ".join(parts)

    def often(sets: Sets) -> str:
        parts = [
            f"{share(between.found.count > 1)} of {name} lines cross twice or more, at most "
            f"{between.found.count.max()} times"
            for name, between in sets.items()
        ]
        return " and ".join(parts)

    def several(between: Between) -> float:
        return float((between.found.count > 1).mean())

    return [
        Claim(
            "lines between most pairs of images cross the boundary at most once",
            "section 4.2, Figure 2",
            f"At most one crossing (with intervals at 95%): {by_seed(found, once)}",
            holds(found, lambda sets: all(several(between) < 0.5 for between in sets.values())),
        ),
        Claim(
            "several crossings are more frequent among test images than among training images",
            "section 4.2, Figure 2",
            by_seed(found, often),
            holds(found, lambda sets: several(sets["test"]) > several(sets["training"])),
        ),
    ]


def _draw(desk: Desk, case: Case, sets: Sets) -> list[Picture]:
    """A line as most are, and those with the most crossings of all."""
    shown: list[tuple[str, int]] = []
    test = sets["test"]
    once = np.flatnonzero(test.found.count == 1)
    if len(once):
        shown.append(("test", int(once[np.argsort(test.lengths[once])[len(once) // 2]])))
    every = [(-int(count), name, k) for name, between in sets.items() for k, count in enumerate(between.found.count)]
    shown += [(name, k) for _, name, k in sorted(every)[:MANY]]
    draw_line(
        desk.picture(FILE),
        [_line(case, sets[name], k) for name, k in shown],
        classes=case.classes,
        titles=_titles(case.classes, sets, shown),
        ends=("first image", "second image"),
    )
    pictures.smaller(desk.picture(FILE))
    caption = (
        "Softmax along straight lines between two images; dotted lines are crossings of the boundary, titles have the "
        "true classes. First panel: a line between test images that crosses once, of median length among those that "
        f"do. The others are the {MANY} with the most crossings of all, in the training and the test set."
    )
    return [Picture(FILE, caption)]


def _line(case: Case, between: Between, k: int) -> Line:
    a, b = between.images.X[between.pairs[k]]
    return Line(case.network, a, b)


def _titles(classes: Sequence[str], sets: Sets, shown: Sequence[tuple[str, int]]) -> list[str]:
    titles = []
    for name, k in shown:
        between = sets[name]
        first, second = between.pairs[k]
        kinds = [classes[label] for label in between.images.labels[[first, second]]]
        count = between.found.count[k]
        crossed = "once" if count == 1 else "twice" if count == 2 else f"{count} times"
        titles.append(f"{name} {first} ({kinds[0]}) to {second} ({kinds[1]}): crosses {crossed}")
    return titles
