"""Section 7 and Figures 9 to 12: minimising the loss of the other label in a ball, beside the closest flip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import flipopt as fo
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_001.attack_pictures import Example, draw_all
from benchmarks.reproduce.paper_001.samples import (
    NETWORK,
    SEEDS,
    SHIP,
    Flipped,
    by_seed,
    flipped,
    holds,
    known,
    middle,
    quantiles,
    share,
    spread,
)
from benchmarks.reproduce.published import published
from benchmarks.reproduce.record import Claim, Number, Record, setting
from flipopt.common.checks import Array
from flipopt.explain import Adversarial

RADIUS, STEPS = 0.5, 100
IMAGES = {SEEDS[0]: 1000, SEEDS[1]: 500}
FARTHER, EARLIER = 1.1, 0.9
"""Times the closest distance from which on a point is farther, and of the way up to which a crossing is before it."""
NAME = "001.section_7"


@dataclass(frozen=True)
class _Attacked:
    """Images with their closest flips, and the points of least loss of the same images, entry by entry."""

    found: Flipped
    points: Adversarial

    @property
    def farther(self) -> Array:
        """Distance of the point over that of the flip, of those points that flip."""
        return np.asarray((self.points.distance / self.points.flip_distance)[self.points.success])

    @property
    def before(self) -> Array:
        """Where on the way to the point the boundary is crossed, as a share, of those points that flip."""
        return np.asarray((self.points.crossing / self.points.distance)[self.points.success])

    @property
    def in_pixels(self) -> Array:
        """Distances of the closest flips in pixels, over those in coefficients."""
        found = self.found
        changes = found.case.features.inverse_transform(found.flips.x - found.images.X)
        return np.asarray(np.linalg.norm(changes.reshape(len(found), -1), axis=1) / found.distance)

    @property
    def fits(self) -> Array:
        """For which images the radius is enough, and at most twice too large."""
        return np.asarray(self.points.feasible & (self.points.radius <= 2 * self.points.flip_distance))


def attacks(desk: Desk) -> Record:
    """Attacks on test images of two networks, two images to look at, and how distances vary in the training set."""
    test = {seed: flipped(desk, desk.case(NETWORK, seed), "test") for seed in SEEDS}
    attacked = {seed: _attack(test[seed].take(slice(desk.few(count, 60)))) for seed, count in IMAGES.items()}
    first = attacked[SEEDS[0]]
    train = flipped(desk, test[SEEDS[0]].case, "train")
    near = _example(first.found, _most_alike(first.found))
    far = _farthest({"training": train, "test": test[SEEDS[0]]})
    return Record(
        title="Adversarial examples in a ball (section 7, Figures 9 to 12)",
        summary=f"For {len(first.points):,} test images: the point of least loss of the other label in a ball of "
        f"radius {RADIUS:g} (projected gradient descent, {STEPS} steps), and the closest flip; for all {len(train):,} "
        "training images the closest flip. The images of Figures 9 to 11 are chosen by their flips' distances alone. "
        "Distances are those of the coefficients; in pixels those of flips are smaller by a factor of "
        f"{spread(first.in_pixels, '.2f')}.",
        setup={
            "network": NETWORK,
            "radius": RADIUS,
            "gradient steps": STEPS,
            **{f"test images, seed {seed}": len(some.points) for seed, some in attacked.items()},
            "training images": len(train),
        },
        seeds=SEEDS,
        numbers=_numbers(first, near, far),
        claims=_claims(attacked, train),
        pictures=draw_all(desk, first.points, near, far, train.distance),
        figures={
            **{f"test images, seed {seed}": _figures(some) for seed, some in attacked.items()},
            "closest flips of training images, distance": quantiles(train.distance),
            "training images for which the radius is too small": (train.distance > RADIUS).mean(),
            "image of Figures 9 and 10": {"test image": near.number, "softmax at the point": near.score},
            "image of Figure 11": {f"{far.where} image": far.number, "softmax at the point": far.score},
        },
    )


def _attack(found: Flipped) -> _Attacked:
    points = fo.explain.adversarial(found.case.network, found.images.X, RADIUS, steps=STEPS, flips=found.flips)
    return _Attacked(found, points)


def _most_alike(found: Flipped) -> int:
    """Among ships that are right, or among all images if there is none, that whose flip is nearest to the paper's."""
    off = np.abs(found.distance - published()[f"{NAME}.closest_flip_distance"])
    ships = (found.images.labels == SHIP) & ~found.wrong
    return int(np.where(ships | ~ships.any(), off, np.inf).argmin())


def _farthest(sets: Mapping[str, Flipped]) -> Example:
    """The image of any set whose flip is nearest to the distance of the paper's far one."""
    wanted = published()[f"{NAME}.far_image_flip_distance"]
    off = {name: np.abs(found.distance - wanted) for name, found in sets.items()}
    name = min(off, key=lambda name: float(off[name].min()))
    return _example(sets[name], int(off[name].argmin()), name)


def _example(found: Flipped, k: int, where: str = "test") -> Example:
    """One image with its flip and its point of least loss."""
    case, images, points = found.case, found.images, _attack(found.take(slice(k, k + 1))).points
    score = float(case.network.in_float64.probabilities(points.x)[0, points.classes[0, 0]])
    return Example(case, where, int(found.numbers[k]), images.images[k], images.X[k], found.flips.x[k], points, score)


def _numbers(first: _Attacked, near: Example, far: Example) -> list[Number]:
    points, off = first.points, first.points.success
    wanted = published()[f"{NAME}.closest_flip_distance"]
    at_end = share(points.distance[off] > 0.99 * RADIUS)
    finds = "flips the class" if far.flips else "finds no point of the other class"
    return [
        setting(f"{NAME}.loss_minimisation_radius", "radius of the ball", RADIUS),
        Number(
            f"{NAME}.closest_flip_distance",
            "distance of the closest flip of the image of Figures 9 and 10",
            float(near.points.flip_distance[0]),
            f"Chosen for it: {near.named}; of the ships that are right among {len(points):,} test images its flip is "
            f"nearest to {wanted:g}. Of all the images it is {spread(points.flip_distance)}.",
        ),
        Number(
            f"{NAME}.loss_minimisation_distance",
            "distance of the point of least loss of that image",
            float(near.points.distance[0]),
            f"Of the {np.count_nonzero(off):,} test images whose point flips the class it is "
            f"{spread(points.distance[off])}; {at_end} of the points are within 1% of the end of the ball.",
        ),
        Number(
            f"{NAME}.angle_degrees",
            "angle between the ways to both, degrees",
            known(float(near.points.angle[0])),
            f"Of the test images whose point flips it is {spread(points.angle[off])}.",
        ),
        Number(
            f"{NAME}.far_image_flip_distance",
            "distance of the closest flip of the image of Figure 11",
            float(far.points.flip_distance[0]),
            f"Chosen for it: {far.named} comes nearest to it, of the training and the test set. Minimising the "
            f"loss there {finds}; at its point the softmax of the image's class is {100 * far.score:.1f}%.",
        ),
    ]


def _claims(attacked: Mapping[int, _Attacked], train: Flipped) -> list[Claim]:
    def farther(some: _Attacked) -> str:
        return f"{spread(some.farther)} of {len(some.farther):,} points that flip"

    def before(some: _Attacked) -> str:
        return f"{spread(some.before)}, at {spread(some.points.crossing[some.points.success])}"

    def fits(some: _Attacked) -> str:
        points = some.points
        large = points.radius > 2 * points.flip_distance
        return (
            f"it fits {share(some.fits)}, is too small for {share(~points.feasible)} and more than twice too large for "
            f"{share(large)}"
        )

    def cost(some: _Attacked) -> str:
        return f"{middle(some.found.flips.evaluations):.0f}"

    steps = 2 * STEPS + 1
    return [
        Claim(
            "minimising the loss in a ball ends farther away than the closest flip",
            "section 7, Figures 9 and 10",
            f"Distance over that of the flip (farther: above {FARTHER:g} in the median): {by_seed(attacked, farther)}",
            holds(attacked, lambda some: middle(some.farther) > FARTHER),
        ),
        Claim(
            "the line to the adversarial point crosses the boundary well before it",
            "section 7, Figure 10",
            f"As a share of the way (well before: below {EARLIER:g} in the median), and as a distance: "
            f"{by_seed(attacked, before)}",
            holds(attacked, lambda some: middle(some.before) < EARLIER),
        ),
        Claim(
            "distances to the closest flip vary so much that one radius fits few images",
            "section 7, Figure 12",
            f"A radius of {RADIUS:g} fits an image if it reaches the flip and at most twice as far (few: less than "
            f"half): {by_seed(attacked, fits)} In the training set of seed {SEEDS[0]} it is too small for "
            f"{share(train.distance > RADIUS)}, and distances are {spread(train.distance)}.",
            holds(attacked, lambda some: bool(some.fits.mean() < 0.5)),
        ),
        Claim(
            "a closest flip costs about as much as minimising the loss",
            "section 7",
            f"Forward and backward passes of a flip, in the median, beside {steps} for {STEPS} gradient steps (about "
            f"as much: no more than twice): {by_seed(attacked, cost)}",
            holds(attacked, lambda some: middle(some.found.flips.evaluations) <= 2 * steps),
        ),
    ]


def _figures(some: _Attacked) -> dict[str, Any]:
    points, off = some.points, some.points.success
    return {
        "points of least loss that flip": off.mean(),
        "images for which the radius is enough": points.feasible.mean(),
        "images that the radius fits, up to twice": some.fits.mean(),
        "distance of the closest flip": quantiles(points.flip_distance),
        "the same in pixels, over that": quantiles(some.in_pixels),
        "distance of points that flip": quantiles(points.distance[off]),
        "the same, over the closest flip": quantiles(some.farther),
        "first crossing on the way to them, distance": quantiles(points.crossing[off]),
        "first crossing, as a share of the way": quantiles(some.before),
        "angle between both ways, degrees": quantiles(points.angle[off]),
        "passes of a closest flip": quantiles(some.found.flips.evaluations),
    }
