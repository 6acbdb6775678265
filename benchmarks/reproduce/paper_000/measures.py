"""What is measured of a classifier: DeepDIG, the baselines, closest flip points, IDC and EDC, for every seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import flipopt as fo
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_000.classifiers import Classifier
from flipopt.borderline import DeepDig, DeepDigOptions, Instances
from flipopt.common.checks import Array

SEEDS = (0, 1, 2, 3, 4)
STARTS = 500
"""Of IDC."""
CLOSEST = 200
"""Sources of a direction whose closest flip points are sought, of the first seed."""
FIRSTS = 5
"""Samples of class t that EPBS as coded is tried with, beside the first."""
METHODS = ("DeepDIG", "RPBS", "EPBS")
QUICK = DeepDigOptions(steps=30, batch=16, tries=1)
WAYS = ("s to t", "t to s")
Row = dict[str, Any]


def options(desk: Desk, seeds: Sequence[int], **others: Any) -> DeepDigOptions:
    """The paper's, for some seeds."""
    return replace(desk.few(DeepDigOptions(), QUICK), seeds=tuple(seeds), **others)


def dug(desk: Desk, classifier: Classifier, seeds: Sequence[int]) -> DeepDig:
    """DeepDIG on the paper's pair, kept in a run."""
    X, labels = classifier.train
    name = classifier.model.name
    desk.console.print(f"{name}: {len(seeds)} seeds of the autoencoders, both directions")
    return fo.borderline.deepdig(
        classifier.network,
        X,
        labels,
        [classifier.pair],
        options(desk, seeds, maps_at_once=len(seeds)),
        run=desk.work / "deepdig" / name,
        executor=desk.few("processes", None),
        progress=True,
    )


def directions(classifier: Classifier) -> list[tuple[int, int]]:
    """Both, that of the paper's tables first."""
    s, t = classifier.pair
    return [(s, t), (t, s)]


def by_seed(desk: Desk, classifier: Classifier, found: DeepDig, seed: int) -> Row:
    """One seed: component accuracies, the search, IDC and EDC."""
    one, both = found.of(seed), directions(classifier)
    row: Row = {"seed": seed}
    for k, (s, t) in enumerate(both):
        for component in (1, 2):
            some = one.maps.take((one.maps.classes == (s, t)).all(axis=1) & (one.maps.component == component))
            prefix = f"{WAYS[k]} {'I' * component}"
            row |= {f"{prefix} {name}": float(getattr(some, name)[0]) for name in ("accuracy", "error", "variance")}
            row |= {f"{prefix} collapsed": bool(some.collapsed[0]), f"{prefix} tries": int(some.tries[0])}
    for method, tables in _searches(classifier, one, seed).items():
        for k, table in enumerate(tables):
            row |= _searched(f"{WAYS[k]} {method}", table)
    instances = [one.instances.between(s, t).found for s, t in both]
    for k, found_there in enumerate(instances):
        row |= _lines(desk, classifier, f"{WAYS[k]} IDC", found_there)
    return row | _embedded(classifier, instances)


def _searches(classifier: Classifier, one: DeepDig, seed: int) -> dict[str, list[Instances]]:
    """Instances of the three methods, from s to t and from t to s."""
    both, (X, labels) = directions(classifier), classifier.train
    pairs: tuple[Callable[..., Instances], ...] = fo.borderline.rpbs, fo.borderline.epbs
    found = {"DeepDIG": [one.instances.between(s, t) for s, t in both]}
    for name, search in zip(METHODS[1:], pairs, strict=True):
        found[name] = [search(classifier.network, X, labels, s, t, seed=seed) for s, t in both]
    return found


def _searched(prefix: str, table: Instances) -> Row:
    return {
        f"{prefix} success": 100 * table.success_rate,
        f"{prefix} yield": 100 * table.yield_rate,
        f"{prefix} gap": float(table.found.gap.mean()) if table.success.any() else np.nan,
        f"{prefix} distance": float(np.median(table.found.distance)) if table.success.any() else np.nan,
    }


def _lines(desk: Desk, classifier: Classifier, prefix: str, some: Instances) -> Row:
    if len(some) < 2:
        return {prefix: np.nan, f"{prefix} half-width": np.nan}
    found = fo.borderline.idc(classifier.network, some, starts=desk.few(STARTS, 5))
    low, high = found.interval
    return {prefix: found.value, f"{prefix} half-width": (high - low) / 2}


def _embedded(classifier: Classifier, instances: list[Instances]) -> Row:
    """EDC of the instances of both directions."""
    X, labels = classifier.train
    test, test_labels = classifier.test
    found = fo.borderline.edc(
        classifier.network, instances, X, labels, *classifier.pair, test=test, test_labels=test_labels
    )
    names = ("edc1_test", "edc1_borderline", "edc2_test", "edc2_borderline", "own_test", "own_borderline", "converged")
    return {name: getattr(found, name) for name in names}


def beside(desk: Desk, classifier: Classifier, found: DeepDig, seed: int) -> Row:
    """Closest flip points as a fourth method, how much farther the others are, and EPBS as the authors coded it."""
    (X, labels), net = classifier.train, classifier.network
    row: Row = {}
    one = found.of(seed)
    searches = _searches(classifier, one, seed)
    for k, (s, t) in enumerate(directions(classifier)):
        closest = fo.borderline.closest(
            net, X, labels, s, t, count=desk.few(CLOSEST, 4), bounds=(0.0, 1.0), progress=True
        )
        row |= {f"{WAYS[k]} closest success": 100 * closest.success_rate}
        row |= {f"{WAYS[k]} closest converged": 100 * closest.converged_rate}
        row |= {f"{WAYS[k]} closest distance": float(np.median(closest.found.distance))}
        for method, tables in searches.items():
            farther = fo.borderline.farther(tables[k], closest)
            row |= {f"{WAYS[k]} {method} farther": farther.median}
        row |= {f"{WAYS[k]} EPBS as coded": _as_coded(classifier, s, t, desk.few(FIRSTS, 2))}
    return row


def _as_coded(classifier: Classifier, s: int, t: int, others: int) -> list[float]:
    """Success in % with every source paired with one sample of class t: the first, and then the next ones."""
    X, labels = classifier.train
    of_t, sources = (np.flatnonzero(labels == k) for k in (t, s))
    there = of_t[np.asarray(classifier.network.predict(X[of_t])) == t][: others + 1]
    found = []
    for partner in there:
        rows = np.append(sources, partner)
        found.append(
            100 * fo.borderline.epbs(classifier.network, X[rows], labels[rows], s, t, as_coded=True).success_rate
        )
    return found


def kept(desk: Desk, classifier: Classifier, what: str, compute: Callable[[], Row]) -> Row:
    """What was computed of this very network before, or what is computed now."""
    from flipopt.runs.fingerprint import fingerprint

    key = fingerprint(classifier.network, desk.quick)[:16]
    return desk.kept(f"deepdig-{classifier.model.name}-{what}-{key}", compute)


def column(rows: Sequence[Row], name: str) -> list[float]:
    """The values of both directions, or of the one that there is, of every seed."""
    names = [name] if name in rows[0] else [f"{way} {name}" for way in WAYS]
    return [float(row[one]) for row in rows for one in names]


def mean(rows: Sequence[Row], name: str) -> float:
    """Of :func:`column`, without what could not be had."""
    values: Array = np.array(column(rows, name))
    return float(np.nanmean(values)) if np.isfinite(values).any() else np.nan
