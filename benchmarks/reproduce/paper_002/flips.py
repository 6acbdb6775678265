"""Section 6.1: the flip points of every training image to every other class, what they cost, and what they say."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import flipopt as fo
from benchmarks.reproduce.desk import Case, Desk
from benchmarks.reproduce.paper_002.alternates import Mistakes, alternate_claim, alternate_sheet, more_starts
from benchmarks.reproduce.paper_002.table_2 import table_2
from benchmarks.reproduce.paper_002.trust import Trusted, figure_3, unseen
from benchmarks.reproduce.record import Claim, Picture, Record, Sheet
from flipopt.common.checks import Array
from flipopt.explain.trust import trust
from flipopt.results import FlipTable, Status
from flipopt.runs.store import Run
from flipopt.runs.threads import cores

NETS = {"NET1": "mnist-net1", "NET2": "mnist-net2"}
SECOND = "NET1, seed 1"
"""Another network of the same kind, with fewer flip points: does what holds for NET1 hold for it?"""
SAMPLE = 5000
"""Images of the half that it was not trained on whose nearest flips are computed for it."""
ALONE = 20
"""Images that are also solved one at a time."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """What is kept of the flips of all training images to all other classes.

    Attributes
    ----------
    name, case
        Of which network.
    statuses
        How many flips ended how.
    evaluations
        Forward passes of each flip, (flips,).
    seconds
        Of all workers together.
    nearest
        The nearest flip of every image.
    mistakes
        The images that the network has wrong, with all of their flips.
    """

    name: str
    case: Case
    statuses: Counter[str]
    evaluations: Array
    seconds: float
    nearest: FlipTable
    mistakes: Mistakes

    @property
    def flips(self) -> int:
        return len(self.evaluations)

    @property
    def verified(self) -> int:
        """How many of the flips."""
        return self.statuses[Status.CONVERGED.name]

    @property
    def each(self) -> float:
        """Seconds of a core a flip."""
        return self.seconds / self.flips


def flips(desk: Desk) -> Record:
    """All flips of NET1 and NET2; of a second seed those of its mistakes, and the nearest of some images."""
    sweeps = [sweep(desk, name, desk.case(recipe)) for name, recipe in NETS.items()]
    second = desk.case(NETS["NET1"], 1)
    mistakes = [*(some.mistakes for some in sweeps), _second_mistakes(desk, second)]
    trusted = [Trusted(some.name, some.case, *_trusts(some.case, some.nearest)) for some in sweeps]
    trusted.append(_second_trusted(desk, second))
    alternates = alternate_claim(mistakes, more_starts(desk, mistakes[0]))
    numbers, example, sheets, pictures = table_2(desk, mistakes)
    more, claims, picture = figure_3(desk, trusted)
    total = sum(some.flips for some in sweeps)
    return Record(
        title="Flip points of the training set (section 6.1, Table 2, Figures 2 and 3)",
        summary=f"For each of the {len(second.train):,} training images the nearest flip point between the class that "
        f"the network predicts and each of the {len(second.classes) - 1} others was sought, for NET1 and for NET2, "
        f"{total:,} in all. They say which class a mistake flips to, and whether the distance tells mistakes from "
        "right answers.",
        setup={"solver": "batch", "targets": "all", "cores": cores(), "second seed": f"mistakes, and {SAMPLE} images"},
        seeds=(0, 1),
        numbers=[*numbers, *more],
        claims=[claim for claim in (_fast(desk, sweeps), alternates, example, *claims) if claim.holds],
        pictures=[*pictures, Picture(*picture)],
        sheets=[_costs(sweeps), *alternate_sheet(mistakes), *sheets],
        figures={
            **{f"{some.name}: statuses": dict(some.statuses) for some in sweeps},
            **{f"{some.name}: seconds of all workers": some.seconds for some in sweeps},
            **{f"{some.name}: hours on {cores()} cores": some.seconds / cores() / 3600 for some in sweeps},
            **{f"{some.name}: {key}": value for some in mistakes for key, value in some.shares.items()},
            "largest memory of the process, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        },
    )


def sweep(desk: Desk, name: str, case: Case) -> Sweep:
    """Go through the flips of a network part by part; what the run lacks is computed first."""
    folder = desk.work / "flips" / f"{case.name}-all"
    labels, X = case.train.labels, case.train.X
    desk.console.print(f"{case.name}-all: {len(X):,} rows, all classes")
    statuses: Counter[str] = Counter()
    nearest, wrong, evaluations = [], [], []
    for table in fo.stream_flip_points(case.network, X, "all", progress=True, run=folder):
        statuses.update(status.name for status in table.status)
        evaluations.append(table.evaluations)
        nearest.append(table.nearest())
        wrong.append(table[table.classes[:, 0] != labels[table.row]])
    mistakes = FlipTable.join(wrong)
    seconds = sum(seconds for _, seconds, _ in Run(folder).pace())
    return Sweep(
        name,
        case,
        statuses,
        np.concatenate(evaluations),
        seconds,
        FlipTable.join(nearest),
        Mistakes.of(name, case, np.unique(mistakes.row), mistakes),
    )


def _second_mistakes(desk: Desk, case: Case) -> Mistakes:
    rows = np.flatnonzero(case.predicted(case.train) != case.train.labels)
    flips = desk.flips(f"{case.name}-seed-1-mistakes", case, case.train.X[rows], "all")
    return Mistakes(SECOND, case, rows, flips)


def _trusts(case: Case, nearest: FlipTable) -> tuple[fo.explain.Trust, fo.explain.Trust]:
    """Of all training images, and of those that the network was not trained on."""
    other = nearest[unseen(case)[nearest.row]]
    whole, part = (trust(some, case.network, case.train.X, case.train.labels) for some in (nearest, other))
    return whole, part


def _second_trusted(desk: Desk, case: Case) -> Trusted:
    some = case.train.take(np.flatnonzero(unseen(case))[:SAMPLE])
    flips = desk.flips(f"{case.name}-seed-1-nearest", case, some.X)
    return Trusted(SECOND, case, None, trust(flips, case.network, some.X, some.labels))


def _costs(sweeps: Sequence[Sweep]) -> Sheet:
    """What the flips took, and how many were verified."""
    head = [
        "network", "flip points", "verified", "on the boundary, not verified", "not found", "hours of a core",
        "ms of a core each", "forward passes each, median", "distance of the nearest, median",
    ]  # fmt: skip
    rows = []
    for some in sweeps:
        near = some.statuses[Status.ON_BOUNDARY.name]
        rows.append(
            [
                some.name,
                f"{some.flips:,}",
                f"{some.verified:,}",
                f"{near:,}",
                f"{some.flips - some.verified - near:,}",
                f"{some.seconds / 3600:.2f}",
                f"{1000 * some.each:.2f}",
                f"{np.median(some.evaluations):.0f}",
                f"{np.nanmedian(some.nearest.distance):.3f}",
            ]
        )
    return Sheet("Flip points to all other classes. Hours are those of workers by the clock.", head, rows)


def _fast(desk: Desk, sweeps: Sequence[Sweep]) -> Claim:
    """Time a flip in the batch, and time an image when images are solved one at a time."""
    alone = {}
    for some in sweeps:
        X = some.case.test.X[: desk.few(ALONE, 3)]
        seconds = [fo.closest_flip_point(some.case.network, x).elapsed for x in X]
        alone[some.name] = float(np.median(seconds[1:]))  # the first one compiles
    return Claim(
        "a closest flip point of an MNIST image takes less than a second",
        "sections 6 and 7.2",
        "; ".join(
            f"{some.name}: {1000 * some.each:.1f} ms of a core in the batch, with {some.verified:,} of {some.flips:,} "
            f"verified, and {alone[some.name]:.2f} s for the nearest of all classes of one image alone"
            for some in sweeps
        )
        + ".",
        {some.name: some.each < 1 and alone[some.name] < 1 for some in sweeps},
    )
