"""What 003 says of all its generators, looked at query by query: differences with intervals over queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from benchmarks.reproduce.paper_003.measures import DEPTHS, LEAST, Row, column, known
from benchmarks.reproduce.record import Claim
from flipopt.borderline.idc import bootstrap_interval
from flipopt.common.checks import Array

OURS = "e-gbas"
BALLS = ("l2", "linf")
CONTROL = "matched"
ALMOST = 0.9
"""Share of a mean distance that counts as having come as far."""
Rows = Mapping[int, Sequence[Row]]
"""By layer a row a query."""


@dataclass(frozen=True)
class Mean:
    """A mean over queries (or of differences between two figures of each), with its 95% bootstrap interval."""

    value: float
    low: float
    high: float
    error: float
    count: int

    @classmethod
    def of(cls, values: Array) -> Mean:
        """``error`` is the standard error. Queries that have no value are left out; without any all is NaN."""
        values = values[np.isfinite(values)]
        if len(values) == 0:
            return cls(np.nan, np.nan, np.nan, np.nan, 0)
        error = float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0.0
        return cls(float(values.mean()), *bootstrap_interval(values), error, len(values))

    def words(self, digits: int = 4) -> str:
        """Mean and interval."""
        return f"{self.value:.{digits}f} [{self.low:.{digits}f}, {self.high:.{digits}f}]"


def deviations(table: Sequence[Row], method: str, centre: str = "mean") -> Array:
    """Standard deviations of the images of a method, (queries,)."""
    return column(table, centre, method, "deviation")


def alike(rows: Rows, method: str, depth: int, centre: str = "mean") -> Array:
    """Similarities in a layer of the discriminator, each a mean over the generator's layers, (queries,)."""
    columns = [column(table, centre, method, "similarity", depth - 1) for table in rows.values()]
    return np.asarray(np.mean(columns, axis=0))


def fewer(table: Sequence[Row], other: str, centre: str = "mean") -> Mean:
    """Of the deviation of E-GBAS less that of another method, query by query."""
    return Mean.of(deviations(table, OURS, centre) - deviations(table, other, centre))


def more(rows: Rows, depth: int, other: str) -> Mean:
    """Of the similarity of E-GBAS less that of another method, query by query."""
    return Mean.of(alike(rows, OURS, depth) - alike(rows, other, depth))


def claims(rows: Rows) -> list[Claim]:
    """All of them, on one generator."""
    polytopes = [layer for layer, table in rows.items() if len(known(table, "whole", "rhat"))]
    return [
        _order(rows),
        _similar(rows),
        _beyond_size(rows),
        _beyond_size_similar(rows),
        _grows(rows),
        _infeasible(rows),
        *(_reaches(layer, rows[layer]) for layer in polytopes),
        _deeper(rows),
    ]


def _order(rows: Rows) -> Claim:
    return Claim(
        "images of E-GBAS vary less than those of both balls of equal volume",
        "section 4.2, Table 1",
        _by_layer(rows, lambda table: " and ".join(fewer(table, ball).words() for ball in BALLS))
        + ": E-GBAS less the ball of the 2-norm and less that of the infinity norm, means over queries with 95% "
        "intervals. It holds where both intervals are below 0.",
        {f"layer {layer}": all(fewer(table, ball).high < 0 for ball in BALLS) for layer, table in rows.items()},
    )


def _similar(rows: Rows) -> Claim:
    found = {depth: [more(rows, depth, ball) for ball in BALLS] for depth in DEPTHS}
    return Claim(
        "in the discriminator images of E-GBAS are more similar to the query's than those of both balls",
        "section 4.2, Table 2",
        "; ".join(f"layer {depth} {' and '.join(one.words() for one in both)}" for depth, both in found.items())
        + ": cosines of E-GBAS less those of the two balls. It holds where both intervals are above 0.",
        {f"discriminator's layer {depth}": all(one.low > 0 for one in both) for depth, both in found.items()},
    )


def _beyond_size(rows: Rows) -> Claim:
    return Claim(
        "it is the boundaries, and not how near the samples are, that make images of E-GBAS alike: those of points as "
        "near in random directions vary more (our reading; the paper has no such control)",
        "section 4.2, Table 1",
        _by_layer(rows, lambda table: fewer(table, CONTROL).words())
        + ": E-GBAS less the control of equal distances. It holds where the interval is below 0.",
        {f"layer {layer}": fewer(table, CONTROL).high < 0 for layer, table in rows.items()},
    )


def _beyond_size_similar(rows: Rows) -> Claim:
    found = {depth: more(rows, depth, CONTROL) for depth in DEPTHS}
    return Claim(
        "the same of the similarity in the discriminator: it is lower for points as near in random directions (our "
        "reading)",
        "section 4.2, Table 2",
        "; ".join(f"layer {depth} {one.words()}" for depth, one in found.items())
        + ": E-GBAS less the control. It holds where the interval is above 0.",
        {f"discriminator's layer {depth}": one.low > 0 for depth, one in found.items()},
    )


def _grows(rows: Rows) -> Claim:
    samples = {layer: column(table, "accepted") - 1 for layer, table in rows.items()}  # without the query
    return Claim(
        f"E-GBAS obtains samples, where rejection fails: at least {LEAST} of every query's region",
        "section 1",
        "; ".join(
            f"layer {layer} from {few.min():,.0f} to {few.max():,.0f}, fewer for {int((few < LEAST - 1).sum())} of "
            f"{len(few)} queries"
            for layer, few in samples.items()
        )
        + ". Of a region that is narrower than a step there are none, and these queries have no part in other figures.",
        {f"layer {layer}": bool((few >= LEAST - 1).all()) for layer, few in samples.items()},
    )


def _infeasible(rows: Rows) -> Claim:
    shares = {layer: [known(table, "mean", ball, "inside") for ball in BALLS] for layer, table in rows.items()}
    return Claim(
        "the balls contain points outside the region, where samples of E-GBAS are all inside",
        "Figure 5",
        "; ".join(
            f"layer {layer} {100 * (1 - two.mean()):.1f}% and {100 * (1 - cube.mean()):.1f}%"
            for layer, (two, cube) in shares.items()
            if len(two)
        )
        + " of the points of the two balls are outside, means over queries. "
        + f"{100 * min(column(table, 'verified').min() for table in rows.values()):.0f}% of the samples have the "
        "query's signs by an independent computation in float64.",
        {
            f"layer {layer}": len(both[0]) > 0
            and max(one.max() for one in both) < 1
            and bool((column(rows[layer], "verified") == 1).all())
            for layer, both in shares.items()
        },
    )


def _reaches(layer: int, table: Sequence[Row]) -> Claim:
    near, far = column(table, "reach", 0), column(table, "whole", "reach", 0)
    rhat = column(table, "whole", "rhat")
    images, samples = (Mean.of(column(table, what, "deviation")).words() for what in ("whole", "samples"))
    return Claim(
        f"GB-RRT covers the region: its samples are as far from the query as points uniform in the region, to "
        f"{100 - 100 * ALMOST:.0f}%",
        "section 3.4, Figure 5",
        f"layer {layer}, whose region is a polytope: samples are {near.mean():.2f} from the query on average, and "
        f"points by hit-and-run in the region, cut by the box that targets are drawn in, {far.mean():.2f} (R-hat at "
        f"most {rhat.max():.3f}). Images of these have a deviation of {images}, those of all samples {samples}.",
        {f"query {one['number']}": bool(near[k] >= ALMOST * far[k]) for k, one in enumerate(table)},
    )


def _deeper(rows: Rows) -> Claim:
    found = {(a, b): Mean.of(column(rows[b], "spread") - column(rows[a], "spread")) for a, b in pairwise(sorted(rows))}
    return Claim(
        "the deeper the layer, the more localised is the variation of images",
        "section 4.1, Figure 6",
        "; ".join(
            f"layer {layer} {100 * spread.mean():.1f}%"
            for layer, table in rows.items()
            if len(spread := known(table, "spread"))
        )
        + " of the pixels vary, (sum v)^2 / (n sum v^2) of their variances v. From layer to layer that changes by "
        + "; ".join(f"{a} to {b} {one.words()}" for (a, b), one in found.items())
        + ". It holds where the interval is below 0.",
        {f"layer {a} to {b}": one.high < 0 for (a, b), one in found.items()},
    )


def _by_layer(rows: Rows, words: Callable[[Sequence[Row]], str]) -> str:
    return "; ".join(f"layer {layer} {words(table)}" for layer, table in rows.items())


def attributes(table: Rows) -> Claim:
    """Of rows of :func:`~benchmarks.reproduce.paper_003.measures.by_digits`."""
    differences = {
        layer: [Mean.of(column(rows, OURS) - column(rows, other)) for other in (*BALLS, CONTROL)]
        for layer, rows in table.items()
    }
    return Claim(
        "images of E-GBAS share attributes of the query's more often than those of the ball of the 2-norm; here the "
        "digit that a classifier takes them for",
        "section 4.1, Figure 7",
        "; ".join(
            f"layer {layer}: {100 * column(rows, OURS).mean():.1f}% of the images, more than of the two balls and the "
            f"control by {', '.join(one.words(3) for one in differences[layer])}"
            for layer, rows in table.items()
        )
        + " (differences of shares, with 95% intervals over queries). It holds where the first interval is above 0.",
        {f"layer {layer}": both[0].low > 0 for layer, both in differences.items()},
    )
