"""Figures 3 and 4: the softmax score on lines from images to their closest flips, and between flips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.reproduce import pictures
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_001.samples import (
    SEEDS,
    SHIP,
    Flipped,
    Part,
    by_seed,
    holds,
    middle,
    quantiles,
    scores,
    share,
    spread,
)
from benchmarks.reproduce.record import Claim, Picture
from flipopt.common.checks import Array
from flipopt.explain.geometry import angles
from flipopt.paths import Line
from flipopt.report import draw_line

FAR_FROM_LINEAR = 10.0
"""Degrees between normals from which on a boundary counts as far from linear; those of a hyperplane are parallel."""
ALIKE = 0.2
"""Largest difference of median curves that go from 1 to about -1 and count as alike: a tenth of that range."""
OFF = 0.1
"""By how much a score departs from 0.5."""
PAIRS, INSIDE = 2000, 64
"""Pairs of flips, and points on the line between two."""
BEYOND = 1.0
FILES = ("001-figure-3.png", "001-figure-4.png")


@dataclass(frozen=True)
class _Bends:
    """Of a network: angles in degrees (images,) and (pairs,), and median curves of right answers and of mistakes."""

    found: Flipped
    at_flip: Array
    between_flips: Array
    right: Array
    wrong: Array

    @property
    def apart(self) -> float:
        """The largest difference of the two median curves; NaN if there is one only."""
        return float(np.abs(self.right - self.wrong).max()) if len(self.right) == len(self.wrong) else np.nan


def to_flips(desk: Desk, found: Mapping[int, Flipped]) -> Part:
    """Figure 3: from images to their closest flips and as far beyond."""
    bends = {seed: _bends(some, desk.few(PAIRS, 50), seed) for seed, some in found.items()}
    _draw_to_flips(desk, found[SEEDS[0]])
    figures = {}
    for seed, some in bends.items():
        wrong, distance = some.found.wrong, some.found.distance
        figures[f"lines to flips, seed {seed}"] = {
            "degrees between the gradients at the image and at its flip": quantiles(some.at_flip),
            "the same, right answers": quantiles(some.at_flip[~wrong]),
            "the same, mistakes": quantiles(some.at_flip[wrong]),
            "degrees between the normals at two flips": quantiles(some.between_flips),
            "distance of right answers": quantiles(distance[~wrong]),
            "distance of mistakes": quantiles(distance[wrong]),
            "median curves apart": some.apart,
        }
    caption = (
        "Softmax along the line from a test image through its closest flip and as far beyond. Upper row: right answers "
        "at the lower and the upper quartile of distance; lower row: the same of mistakes. Scales of distance differ."
    )
    return Part(claims=_bend_claims(bends), pictures=[Picture(FILES[0], caption)], figures=figures)


def _bends(found: Flipped, count: int, seed: int) -> _Bends:
    normals = _gradients(found, found.flips.x)
    pairs = _pairs(len(found), count, seed)
    alpha = np.linspace(0, 2, 41)
    ship = scores(found.case, found.images.X, found.flips.x, alpha)
    score = np.where((found.predicted == SHIP)[:, None], ship, 1 - ship) - 0.5
    curves = score / score[:, :1]
    right, wrong = (np.median(some, axis=0) if len(some) else some[:0, 0] for some in _halves(curves, found.wrong))
    at_flip = angles(_gradients(found, found.images.X), normals)
    return _Bends(found, at_flip, angles(normals[pairs[:, 0]], normals[pairs[:, 1]]), right, wrong)


def _halves(values: Array, wrong: Array) -> tuple[Array, Array]:
    return values[~wrong], values[wrong]


def _gradients(found: Flipped, X: Array) -> Array:
    """Of the logit of ship less that of airplane, at the rows of X."""
    V = np.full((len(X), 2), -1.0)
    V[:, SHIP] = 1.0
    return np.asarray(found.case.network.in_float64.vjp(X, V))


def _pairs(total: int, count: int, seed: int) -> Array:
    """Random pairs of different ones."""
    rng = np.random.default_rng(seed)
    first = rng.integers(total, size=count)
    return np.column_stack([first, (first + rng.integers(1, total, size=count)) % total])


def _bend_claims(bends: Mapping[int, _Bends]) -> list[Claim]:
    def far(some: _Bends) -> bool:
        return min(float(np.median(some.at_flip)), float(np.median(some.between_flips))) > FAR_FROM_LINEAR

    def looks(some: _Bends) -> str:
        wrong = some.found.wrong
        far, near = (middle(some.found.distance[rows]) for rows in (~wrong, wrong))
        return (
            f"{some.apart:.2f} apart ({np.count_nonzero(wrong)} mistakes with flips at {near:.2f} in the median; those "
            f"of right answers are at {far:.2f})"
        )

    return [
        Claim(
            "boundaries are far from linear: no hyperplane would approximate them",
            "section 4.2, Figure 3",
            "Degrees between the gradients of the logits at an image and at its closest flip, and between the "
            "boundary's normals at two random flips, all 0 for a linear network and counted as far from linear above "
            f"{FAR_FROM_LINEAR:g} in the median: "
            + by_seed(bends, lambda some: f"{spread(some.at_flip)} and {spread(some.between_flips)}"),
            holds(bends, far),
        ),
        Claim(
            "along the line to the closest flip the score of mistakes behaves much as that of right answers",
            "section 4.2, Figure 3",
            "Score less 0.5, relative to that at the image, along the line up to twice the distance: the median curves "
            f"of both groups come to be so far apart (alike up to {ALIKE:g}): {by_seed(bends, looks)}",
            holds(bends, lambda some: some.apart <= ALIKE),
        ),
    ]


def _draw_to_flips(desk: Desk, found: Flipped) -> None:
    """Two right answers and two mistakes, at quartiles of distance."""
    shown, titles = [], []
    for wrong, name in ((False, "right"), (True, "mistake")):
        some = np.flatnonzero(found.wrong == wrong)
        by_distance = some[np.argsort(found.distance[some], kind="stable")]
        for quarter in (1, 3) if len(some) else ():
            k = by_distance[quarter * len(some) // 4]
            true = found.case.classes[found.images.labels[k]]
            shown.append(Line(found.case.network, found.images.X[k], found.flips.x[k], beyond=BEYOND))
            titles.append(f"{name}: test {found.numbers[k]} ({true}), flip at {found.distance[k]:.3f}")
    draw_line(desk.picture(FILES[0]), shown, classes=found.case.classes, titles=titles, ends=("image", "flip"))
    pictures.smaller(desk.picture(FILES[0]))


def between_flips(desk: Desk, found: Mapping[int, Flipped]) -> Part:
    """Figure 4: between two flip points."""
    count = desk.few(PAIRS, 50)
    pairs = {seed: _pairs(len(some), count, seed) for seed, some in found.items()}
    alpha = np.arange(1, INSIDE + 1) / (INSIDE + 1)
    lead = {
        seed: scores(some.case, some.flips.x[pairs[seed][:, 0]], some.flips.x[pairs[seed][:, 1]], alpha) - 0.5
        for seed, some in found.items()
    }
    _draw_between_flips(desk, found[SEEDS[0]], pairs[SEEDS[0]], lead[SEEDS[0]])
    off = {seed: np.abs(values).max(axis=1) for seed, values in lead.items()}
    caption = (
        "Softmax along lines between the closest flips of two test images. With a linear boundary it would be 0.5 all "
        "along; were the ships' region convex, no line would enter the airplanes', and the other way round. The lines "
        "shown have the median departure from 0.5 among those that enter the ships' region, the airplanes', or both; "
        "the last one changes sides most often of all."
    )
    figures = {f"largest departure from 0.5 between flips, seed {seed}": quantiles(some) for seed, some in off.items()}
    return Part(claims=_between_claims(lead), pictures=[Picture(FILES[1], caption)], figures=figures)


def _between_claims(lead: Mapping[int, Array]) -> list[Claim]:
    def sides(values: Array) -> str:
        ship, plane = _sides(values)
        return f"{share(ship)} go into the ships and {share(plane)} into the airplanes, {share(ship & plane)} into both"

    def off(values: Array) -> Array:
        return np.asarray(np.abs(values).max(axis=1) > OFF)

    count = len(lead[SEEDS[0]])
    return [
        Claim(
            "on the line between two flip points the score departs from 0.5",
            "section 4.2, Figure 4",
            f"By more than {OFF:g} at one of {INSIDE} points inside, of {count:,} random pairs: "
            + by_seed(lead, lambda values: f"{share(off(values))}, by {spread(np.abs(values).max(axis=1))}"),
            holds(lead, lambda values: bool(off(values).mean() > 0.5)),
        ),
        Claim(
            "neither of the two regions is convex",
            "section 4.2, Figure 4",
            f"Of the lines between two flips, by more than {OFF:g}: {by_seed(lead, sides)} A single line into a class "
            "shows that the region of the other is not convex.",
            holds(lead, lambda values: all(side.any() for side in _sides(values))),
        ),
    ]


def _sides(lead: Array) -> tuple[Array, Array]:
    """Which lines go into the ships, and which into the airplanes, (lines,) bool each."""
    return lead.max(axis=1) > OFF, lead.min(axis=1) < -OFF


def _draw_between_flips(desk: Desk, found: Flipped, pairs: Array, lead: Array) -> None:
    off, (ship, plane) = np.abs(lead).max(axis=1), _sides(lead)
    changes = (np.diff(np.sign(lead), axis=1) != 0).sum(axis=1)
    shown = {}
    for some, name in ((ship & ~plane, "ships"), (plane & ~ship, "airplanes"), (ship & plane, "both")):
        rows = np.flatnonzero(some)
        if len(rows):
            shown[int(rows[np.argsort(off[rows], kind="stable")[len(rows) // 2]])] = f"into {name}"
    shown.setdefault(int(changes.argmax()), "most changes of sides")
    ends = found.flips.x[pairs[list(shown)]]
    lines = [Line(found.case.network, a, b, beyond=0.05) for a, b in ends]
    titles = [f"{name}: flips of test {' and '.join(map(str, found.numbers[pairs[k]]))}" for k, name in shown.items()]
    draw_line(desk.picture(FILES[1]), lines, classes=found.case.classes, titles=titles, ends=("flip", "flip"))
    pictures.smaller(desk.picture(FILES[1]))
