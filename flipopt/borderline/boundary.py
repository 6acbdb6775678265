"""What is measured of one boundary in a profile: both directions, every method, IDC and EDC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flipopt.borderline.baselines import nearest_pairs, random_pairs
from flipopt.borderline.closest import closest_of, farther
from flipopt.borderline.edc import edc_of
from flipopt.borderline.idc import idc
from flipopt.borderline.instances import Instances, nothing_found
from flipopt.borderline.profile import Profile
from flipopt.borderline.refinement import Refinement
from flipopt.borderline.samples import Samples
from flipopt.common.checks import Array, as_number, as_whole, one_of
from flipopt.common.errors import DerivativeError, InputError, MissingPackageError
from flipopt.explain.matching import counted

MEASURED = ("rpbs", "epbs", "closest")
SHARED = ("edc1_test", "edc1_borderline", "edc2_test", "edc2_borderline", "own_test", "own_borderline")


@dataclass(frozen=True)
class Measuring:
    """What is measured of every pair of classes, and on how many samples.

    Attributes
    ----------
    pairs
        Sources of a direction for random and for embedding-nearest pairs, at most.
    flips
        Sources of a direction whose closest flip points are sought, at most: the first of the same; 0: none.
    on
        The instances that IDC and EDC are measured on: "rpbs", "epbs" or "closest". Those that are handed in, if any,
        take their place.
    starts, k, m
        Of :func:`idc`.
    C
        Of :func:`edc`.
    bounds
        Lower and upper bound of every feature of a closest flip point; None for no bounds.
    refinement
        How lines are halved.
    seed
        Of all choices.
    """

    pairs: int = 200
    flips: int = 50
    on: str = "epbs"
    starts: int = 200
    k: int = 50
    m: int = 50
    C: float = 1.0
    bounds: tuple[float, float] | None = None
    refinement: Refinement = field(default_factory=Refinement)
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("pairs", "starts", "k", "m"):
            as_whole(getattr(self, name), name, least=1)
        as_whole(self.flips, "flips")
        as_whole(self.seed, "seed")
        as_number(self.C, "C", least=0.0)
        one_of(self.on, MEASURED, "on")
        if self.on == "closest" and self.flips == 0:
            raise InputError("flips: expected a whole number >= 1 to measure closest flip points, found 0")


@dataclass(frozen=True, eq=False)
class Boundaries:
    """What a worker does: boundaries one after the other, each as if it were alone.

    ``classes`` (boundaries, 2) are their classes, ``given`` instances that were handed in, and ``held`` the samples
    that nothing is fitted on.
    """

    samples: Samples
    held: Samples | None
    given: Instances | None
    options: Measuring
    classes: Array

    def __len__(self) -> int:
        return len(self.classes)

    def __call__(self, part: range) -> Profile:
        return Profile.join([self.both_ways(int(a), int(b)) for a, b in self.classes[part.start : part.stop]])

    def prepare(self) -> None:
        """Compute embeddings here, once, and not in every worker."""
        for samples in (self.samples, self.held):
            _ = None if samples is None else samples.embedding

    def both_ways(self, a: int, b: int) -> Profile:
        """The records of (a, b) and of (b, a)."""
        on = self.options.on if self.given is None else "given"
        records, points = [], []
        for s, t in ((a, b), (b, a)):
            found, note = self._instances(s, t)
            points.append(found[on].found)
            records.append(self._record(s, t, found, points[-1], note))
        shared, why = self._shared(Instances.join(points), a, b)
        for record in records:
            record |= shared
            record["note"] = "; ".join([*record["note"], *why])
        return Profile.of(records)

    def _instances(self, s: int, t: int) -> tuple[dict[str, Instances], list[str]]:
        """Of every method, from s to t, and what there is none of."""
        samples, options, note = self.samples, self.options, []
        none = np.empty(0, dtype=np.int64)
        nothing = nothing_found(none, none, none.reshape(0, 2), np.empty(0, dtype=object), samples.network.n_inputs)
        count, seed, how = min(options.pairs, len(samples.sources(s))), options.seed, options.refinement
        found = {
            "rpbs": random_pairs(samples, s, t, count, seed, how),
            "epbs": nearest_pairs(samples, s, t, count, seed, how),
            "given": nothing if self.given is None else self.given.between(s, t),
            "closest": nothing,
        }
        if options.flips:
            try:
                found["closest"] = closest_of(samples, s, t, options.flips, seed, {"bounds": options.bounds})
            except (DerivativeError, MissingPackageError) as error:
                note.append(f"no closest flip points: {error}")
        return found, note

    def _record(
        self, s: int, t: int, found: dict[str, Instances], points: Instances, note: list[str]
    ) -> dict[str, Any]:
        """What belongs to one direction, whose ``points`` IDC is measured on."""
        closest, options = found["closest"], self.options
        cost = sum(int(some.evaluations.sum()) for some in found.values())
        record: dict[str, Any] = {"classes": (s, t), "sources": len(self.samples.sources(s)), "points": len(points)}
        for name, some in found.items():
            record |= {f"{name}_success": some.success_rate, f"{name}_distance": _median(some.found.distance)}
            record |= {f"{name}_yield": some.yield_rate, f"{name}_farther": farther(some, closest).median}
        record["closest_converged"] = closest.converged_rate
        if len(points) < 2:
            return record | {
                "evaluations": cost,
                "note": [*note, f"no IDC: {counted(len(points), 'borderline instance')}"],
            }
        lines = idc(self.samples.network, points, s, t, options.starts, options.k, options.m, options.seed)
        record |= {
            "idc": lines.value,
            "idc_low": lines.interval[0],
            "idc_high": lines.interval[1],
            "third": lines.third,
        }
        return record | {"evaluations": cost + len(lines.starts) * lines.k * lines.m, "note": note}

    def _shared(self, points: Instances, a: int, b: int) -> tuple[dict[str, float], list[str]]:
        """EDC of both directions together, or why there is none."""
        try:
            found = edc_of(self.samples, self.held, points, a, b, self.options.C, self.options.seed)
        except MissingPackageError as error:
            return {}, [f"no EDC: {error}"]
        why = [] if found.converged else ["EDC: the support vector machine's solver was stopped by its limit"]
        return {name: getattr(found, name) for name in SHARED}, why


def _median(values: Array) -> float:
    return float(np.median(values)) if len(values) else np.nan
