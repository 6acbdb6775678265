"""Pictures of section 7: an image with its closest flip and its point of least loss, and distances of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reproduce import pictures
from benchmarks.reproduce.desk import Case, Desk
from benchmarks.reproduce.record import Picture
from flipopt.common.checks import Array
from flipopt.explain import Adversarial
from flipopt.paths import Line
from flipopt.report import draw_adversarial

FILES = ("001-figures-9-11.png", "001-figure-12.png", "001-section-7.png")
BEYOND = 1.2
"""Lines are drawn up to this multiple of the farther of the two points."""


@dataclass(frozen=True)
class Example:
    """An image to look at.

    Attributes
    ----------
    case, where, number
        The network, and which image of which set it is.
    image, x, flip
        Its pixels, its input and its closest flip.
    points
        What minimising the loss finds, one entry.
    score
        Softmax of the image's class there.
    """

    case: Case
    where: str
    number: int
    image: Array
    x: Array
    flip: Array
    points: Adversarial
    score: float

    @property
    def named(self) -> str:
        """As in: image 12 of the test set (“ship”)."""
        predicted = self.case.classes[self.points.classes[0, 0]]
        return f"image {self.number} of the {self.where} set (“{predicted}”)"

    @property
    def flips(self) -> bool:
        """Whether the class is another at the point of least loss."""
        return bool(self.points.success[0])


def draw_all(desk: Desk, points: Adversarial, near: Example, far: Example, distances: Array) -> list[Picture]:
    """All pictures of the section; ``distances`` are those of the closest flips of training images."""
    radius = near.points.radius[0]
    draw_examples(desk.picture(FILES[0]), [near, far])
    draw_distances(desk.picture(FILES[1]), distances, radius)
    draw_adversarial(desk.picture(FILES[2]), points)
    pictures.smaller(desk.picture(FILES[2]))
    return [
        Picture(
            FILES[0],
            f"Upper row {near.named}, lower row {far.named}: the image, its closest flip, the point of least loss of "
            f"the other label in a ball of radius {radius:g}; what changed on the way to the flip and to that point "
            "(mean of the colours, red: lighter); softmax of the image's class on the lines to both and beyond (dots: "
            "the flip and the point; dashed: the radius).",
        ),
        Picture(
            FILES[1],
            f"Distances to the closest flip of all {len(distances):,} training images; the line is a radius of "
            f"{radius:g}. Images on its right have no point of the other class in the ball.",
        ),
        Picture(
            FILES[2],
            f"Left: for {len(points):,} test images, how far the point of least loss in the ball is, and where the "
            "line to it first crosses the boundary, against the distance of the closest flip (dotted: equal). Right: "
            "distances of the closest flips of these images.",
        ),
    ]


def draw_examples(path: Path, examples: Sequence[Example]) -> None:
    """A row an example: three images, two differences, and the softmax score on the way."""
    drawn = pictures.figure(13, 2.5 * len(examples))
    axes = drawn.subplots(len(examples), 6, squeeze=False, width_ratios=[1, 1, 1, 1, 1, 1.9])
    for row, example in zip(axes, examples, strict=True):
        features, points = example.case.features, example.points
        flip, least = (features.inverse_transform(x, example.image) for x in (example.flip, points.x[0]))
        pixels = example.image / 255
        pictures.show_image(row[0], pixels, f"{example.where} image {example.number}")
        pictures.show_image(row[1], flip, f"closest flip,\nat {points.flip_distance[0]:.3f}")
        pictures.show_image(row[2], least, f"least loss in the ball,\nat {points.distance[0]:.3f}")
        pictures.show_change(row[3], flip - pixels, "change to the flip,")
        pictures.show_change(row[4], least - pixels, f"to the other, {points.angle[0]:.0f}° off,")
        _draw_lines(row[5], example)
    pictures.save(drawn, path)


def _draw_lines(axis: Any, example: Example) -> None:
    points, k = example.points, example.points.classes[0, 0]
    far = BEYOND * max(points.flip_distance[0], points.distance[0])
    ends = (
        (example.flip, points.flip_distance[0], pictures.BLUE, "closest flip"),
        (points.x[0], points.distance[0], pictures.RED, "least loss"),
    )
    for end, distance, colour, name in ends:
        if distance == 0:
            continue
        line = Line(example.case.network, example.x, end)
        along = np.linspace(0, far, 201)
        axis.plot(
            along, line.probabilities_at(along / distance)[:, k], color=colour, lw=1.4, label=f"towards the {name}"
        )
        axis.plot(distance, line.probabilities_at(np.ones(1))[0, k], "o", ms=5, color=colour)
    axis.axhline(0.5, color=pictures.QUIET, lw=0.8)
    axis.axvline(points.radius[0], color="0.4", lw=0.8, ls="--")
    axis.set(xlabel="distance from the image", ylim=(-0.02, 1.05), xlim=(0, far))
    axis.set_title(f"softmax of “{example.case.classes[k]}”", fontsize=9)
    axis.legend(frameon=False, fontsize=8, loc="lower left")


def draw_distances(path: Path, distances: Array, radius: float) -> None:
    """A histogram of distances to closest flips, with a radius."""
    drawn = pictures.figure(6, 3.2)
    axis = drawn.subplots()
    axis.hist(distances, bins=60, color=pictures.BLUE)
    inside = float((distances <= radius).mean())
    axis.axvline(radius, color=pictures.RED, lw=1.4, label=f"radius {radius:g}: {inside:.0%} are nearer")
    axis.set(xlabel="distance of the closest flip", ylabel="training images", xlim=(0, None))
    axis.legend(frameon=False)
    pictures.save(drawn, path)
