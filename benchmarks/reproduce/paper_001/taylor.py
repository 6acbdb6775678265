"""Section 5 and Figures 5 to 8: first-order estimates of the distance beside closest flips."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from benchmarks.reproduce import pictures
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_001.samples import (
    HALF_GREY,
    NETWORK,
    SEEDS,
    Flipped,
    by_seed,
    flipped,
    holds,
    known,
    middle,
    pixel_exits,
    quantiles,
    share,
    spread,
)
from benchmarks.reproduce.record import Claim, Number, Picture, Record
from flipopt.common.checks import Array
from flipopt.explain import TaylorComparison, compare_taylor
from flipopt.paths import taylor
from flipopt.report import draw_taylor

NEAR = 0.01
"""Distance below which the paper gives a figure of its own."""
BINS = 10
"""Of distance, with as many images each, in which the lowest angles are looked at."""
NEARLY = 1.1
"""Mean of the distance along the direction over the closest, up to which it counts as nearly as close."""
FILES = {"softmax": "001-figures-5-8.png", "logits": "001-figures-5-8-logits.png"}
NAME = "001.section_5"


@dataclass(frozen=True)
class _Estimates:
    """Of a network: comparisons by softmax and by logits, and which directions leave the images before the boundary.

    ``strict`` and ``leaves`` are (images,) bool: without and with half a grey level of slack; ``flips_leave`` says the
    same, with slack, of the closest flips themselves.
    """

    found: Flipped
    softmax: TaylorComparison
    logits: TaylorComparison
    strict: Array
    leaves: Array
    flips_leave: Array

    @property
    def ratio(self) -> Array:
        """Distance along the direction over the closest, of those directions that meet the boundary."""
        return np.asarray(self.softmax.ratio[np.isfinite(self.softmax.ratio)])

    @property
    def rank(self) -> float:
        """Spearman's correlation of angle and distance."""
        known = np.isfinite(self.softmax.angle)
        return float(spearmanr(self.softmax.closest[known], self.softmax.angle[known]).statistic)

    @property
    def lowest(self) -> Array:
        """The 5% quantile of angles in bins of distance, nearest first."""
        order = np.argsort(self.softmax.closest, kind="stable")
        return np.array([np.nanquantile(self.softmax.angle[part], 0.05) for part in np.array_split(order, BINS)])


def estimates(desk: Desk) -> Record:
    """Estimates by softmax and by logits for the whole test set, on two networks."""
    found = {seed: _estimates(flipped(desk, desk.case(NETWORK, seed), "test")) for seed in SEEDS}
    first = found[SEEDS[0]]
    total = len(first.softmax)
    return Record(
        title="First-order estimates (section 5, Figures 5 to 8)",
        summary=f"For {total:,} test images: the distance to the boundary by a Taylor expansion of the outputs at the "
        "image, the boundary that is met in its direction, and the closest flip. Section 2 of the paper says that "
        "outputs are softmax, so that softmax is what is compared; logits are beside it. With two classes both have "
        "the same direction, and the estimate by softmax is the longer one: by sinh(d) / d for a lead of d logits.",
        setup={"network": NETWORK, "outputs": "softmax", "images": total, "slack of pixels": HALF_GREY},
        seeds=SEEDS,
        numbers=_numbers(first),
        claims=_claims(found),
        pictures=_pictures(desk, first),
        figures={f"seed {seed}": _figures(some) for seed, some in found.items()},
    )


def _estimates(found: Flipped) -> _Estimates:
    X, images, network, features = found.images.X, found.images.images, found.case.network, found.case.features
    softmax, logits = taylor(network, X, outputs="probabilities"), taylor(network, X, outputs="logits")
    towards = features.inverse_transform(softmax.direction)
    strict, leaves = (~(softmax.reached <= pixel_exits(towards, images, slack)) for slack in (0.0, HALF_GREY))
    moved = features.inverse_transform(found.flips.x - X)
    compared = [compare_taylor(replace(estimate, feasible=~leaves), found.flips, X) for estimate in (softmax, logits)]
    return _Estimates(found, compared[0], compared[1], strict, leaves, pixel_exits(moved, images, HALF_GREY) < 1)


def _numbers(found: _Estimates) -> list[Number]:
    softmax, logits = found.softmax, found.logits
    near = softmax.closest < NEAR
    close = f"{np.count_nonzero(near)} images are closer than {NEAR:g}"
    if near.any():
        close += f"; by softmax it is {spread(softmax.beta[near])}, by logits {spread(logits.beta[near])}"
    ratio = found.ratio
    never = int((~np.isfinite(softmax.ratio)).sum())
    return [
        Number(
            f"{NAME}.taylor_underestimates_by_below_distance_0.01",
            "closest distance over its first-order estimate, median of images nearer than 0.01",
            known(middle(softmax.beta[near])),
            f"The paper says “about”, not of what. {close}.",
        ),
        Number(
            f"{NAME}.taylor_underestimates_by_up_to",
            "the same, the largest of all images",
            known(_largest(softmax.beta)),
            f"Of all images it is {spread(softmax.beta)}. By logits it is {spread(logits.beta)}, at most "
            f"{_largest(logits.beta):.3g}.",
        ),
        Number(
            f"{NAME}.distance_along_taylor_direction_over_closest_mean",
            "distance of the boundary in the direction of the estimate, over the closest, mean",
            float(ratio.mean()) if len(ratio) else None,
            f"Of {len(ratio):,} directions that meet the boundary; {never} do not. The ratio is {spread(ratio)}, and "
            f"below {NEARLY:g} for {share(ratio < NEARLY)}.",
        ),
        Number(
            f"{NAME}.taylor_direction_leaves_feasible_set_percent",
            "images whose direction leaves the pixels' bounds before it meets the boundary, %",
            float(100 * found.leaves.mean()),
            f"With half a grey level of slack, without which it is {share(found.strict)}: black and white pixels may "
            "move one way only. Of the closest flips, which were computed without bounds, "
            f"{share(found.flips_leave)} are beyond them, and none in the paper.",
        ),
    ]


def _claims(found: Mapping[int, _Estimates]) -> list[Claim]:
    def short(some: _Estimates) -> str:
        by = ((some.softmax.beta, "softmax"), (some.logits.beta, "logits"))
        return " and ".join(f"{spread(beta)} by {name}, above 1 for {share(beta > 1)}" for beta, name in by)

    def search(some: _Estimates) -> str:
        return f"mean {some.ratio.mean():.3g}, {spread(some.ratio)}"

    def better(some: _Estimates) -> str:
        search, softmax, logits = _factors(some)
        return f"by a factor of {search:.3g}, {softmax:.3g} and {logits:.3g}"

    def angle(some: _Estimates) -> str:
        low = some.lowest[[0, -1]]
        return (
            f"rank correlation {some.rank:.2f}; {spread(some.softmax.angle)} degrees; one in twenty is below "
            f"{low[0]:.3g} degrees among the nearest tenth of images, and below {low[1]:.3g} among the farthest"
        )

    return [
        Claim(
            "first-order estimates of the distance are too short",
            "section 5, Figures 5 and 6",
            f"Closest distance over its estimate: {by_seed(found, short)}",
            holds(found, lambda some: middle(some.softmax.beta) > 1),
        ),
        Claim(
            "in the direction of the estimate the boundary is nearly as close as the closest flip, in the mean",
            "section 5, Figure 7",
            f"Over the closest (nearly: within {NEARLY - 1:.0%} in the mean): {by_seed(found, search)}",
            holds(found, lambda some: bool(some.ratio.mean() <= NEARLY)),
        ),
        Claim(
            "searching along that direction gives a much better distance than the estimate",
            "section 5, Figures 6 and 7",
            "The distance found, and the estimates by softmax and by logits, are off in the median: "
            + by_seed(found, better),
            holds(found, lambda some: _factors(some)[0] < min(_factors(some)[1:])),
        ),
        Claim(
            "the farther an image is from the boundary, the larger the angle between estimate and flip, and its least",
            "section 5, Figure 8",
            by_seed(found, angle),
            holds(found, lambda some: bool(some.rank > 0 and some.lowest[-1] > some.lowest[0])),
        ),
    ]


def _factors(some: _Estimates) -> tuple[float, ...]:
    """By what the search and the two estimates are off, up or down, in the median; what meets nothing is infinite."""
    ratio = np.where(np.isfinite(some.softmax.ratio), some.softmax.ratio, np.inf)
    with np.errstate(divide="ignore"):
        return tuple(
            float(np.median(np.maximum(values, 1 / values))) for values in (ratio, some.softmax.beta, some.logits.beta)
        )


def _largest(beta: Array) -> float:
    finite = beta[np.isfinite(beta)]
    return float(finite.max()) if len(finite) else np.nan


def _pictures(desk: Desk, found: _Estimates) -> list[Picture]:
    caption = (
        "Test images, with first-order estimates from {}. Upper left: the estimate against the distance of the closest "
        "flip (dotted: equal). Upper right: closest over estimate (line: 1); the paper has values above 1. Lower left: "
        "how far the boundary is in the direction of the estimate, over the closest; on the way there the number given "
        "leave the pixels' bounds. Lower right: the angle between that direction and the one to the closest flip."
    )
    shown = []
    for outputs, comparison in (("softmax", found.softmax), ("logits", found.logits)):
        path = desk.picture(FILES[outputs])
        draw_taylor(path, comparison)
        pictures.smaller(path)
        shown.append(Picture(path.name, caption.format(outputs)))
    return shown


def _figures(some: _Estimates) -> dict[str, Any]:
    return {
        "closest over estimate, softmax": quantiles(some.softmax.beta),
        "closest over estimate, logits": quantiles(some.logits.beta),
        "images by tenths of distance, closest over estimate by logits, medians": _medians(some.logits),
        "distance along the direction over closest": quantiles(some.softmax.ratio),
        "angle, degrees": quantiles(some.softmax.angle),
        "lowest angles by tenths of distance": some.lowest,
        "rank correlation of angle and distance": some.rank,
        "directions that leave the images, strictly": some.strict.mean(),
        "directions that leave the images, with slack": some.leaves.mean(),
        "closest flips that leave the images, with slack": some.flips_leave.mean(),
    }


def _medians(comparison: TaylorComparison) -> list[float]:
    parts = np.array_split(np.argsort(comparison.closest, kind="stable"), BINS)
    return [middle(comparison.beta[part]) for part in parts]
