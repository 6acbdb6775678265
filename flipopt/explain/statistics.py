"""How well a score ranks mistakes, with intervals: areas under curves, shares. All intervals are at 95%."""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

from flipopt.common.checks import Array

LEVEL = 0.95
Z = float(special.ndtri((1 + LEVEL) / 2))


def roc(score: Array, wrong: Array) -> tuple[Array, Array]:
    """False and true positive rates, a point a value of the score, from (0, 0) to (1, 1); high scores are suspect.

    ``score`` (rows,) are finite, ``wrong`` (rows,) bool; NaN where there is no mistake, or nothing else.
    """
    true, false = _found(score, wrong)
    with np.errstate(invalid="ignore"):
        return false / (~wrong).sum(), true / wrong.sum()


def precision_recall(score: Array, wrong: Array) -> tuple[Array, Array]:
    """Recall and precision, a point a value of the score, from recall 0 on."""
    true, false = _found(score, wrong)
    with np.errstate(invalid="ignore"):
        precision = true[1:] / (true + false)[1:]
        return true / wrong.sum(), np.append(precision[:1], precision) if len(precision) else np.full(1, np.nan)


def average_precision(score: Array, wrong: Array) -> float:
    """Precision, averaged over the mistakes in the order in which the score finds them."""
    if not wrong.any():
        return np.nan
    recall, precision = precision_recall(score, wrong)
    return float((np.diff(recall) * precision[1:]).sum())


def auc(score: Array, wrong: Array) -> float:
    """The area under the ROC curve: how often a mistake scores above a right answer, ties counted half."""
    if wrong.all() or not wrong.any():
        return np.nan
    return float(placements(score, wrong)[0].mean())


def auc_interval(area: float, wrong: int, right: int) -> tuple[float, float]:
    """Of the true area: those values that differ from ``area`` by no more than Z standard errors *of their own*.

    R. G. Newcombe, Statistics in Medicine 25, 2006, method 5, with the variance of Hanley and McNeil. Unlike intervals
    by an estimated variance it does not shrink to a point where few mistakes are all found.
    """
    if np.isnan(area):
        return np.nan, np.nan
    many = (wrong + right) / 2 - 1

    def excess(theta: float) -> float:
        factor = 1 + many * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        return float(abs(theta - area) - Z * np.sqrt(theta * (1 - theta) * factor / (wrong * right)))

    # At 0 and 1 the standard error vanishes: an area there is a root too, but not the one that is meant.
    low = 0.0 if area == 0 else optimize.brentq(excess, 0.0, min(area, 1 - 1e-9))
    high = 1.0 if area == 1 else optimize.brentq(excess, max(area, 1e-9), 1.0)
    return float(low), float(high)


def auc_difference(one: Array, other: Array, wrong: Array) -> tuple[float, tuple[float, float]]:
    """The difference of the areas of two scores of the same rows, and its interval.

    The variance is that of E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson, Biometrics 44, 1988, which takes into
    account the rows being the same; Student's t in place of the normal distribution, with the degrees of freedom of
    Satterthwaite as in the test of Brunner and Munzel, widens the interval where mistakes are few.
    """
    if min(wrong.sum(), (~wrong).sum()) < 2:
        return auc(one, wrong) - auc(other, wrong), (np.nan, np.nan)
    parts = [a - b for a, b in zip(placements(one, wrong), placements(other, wrong), strict=True)]
    difference = float(parts[0].mean())
    variances = [part.var(ddof=1) / len(part) for part in parts]
    total = sum(variances)
    if total == 0:  # perfect rankings, from which no variance can be estimated
        (low, high), (from_, to) = (_interval(score, wrong) for score in (one, other))
        return difference, (low - to, high - from_)
    freedom = total**2 / sum(v**2 / (len(part) - 1) for v, part in zip(variances, parts, strict=True))
    width = special.stdtrit(freedom, (1 + LEVEL) / 2) * np.sqrt(total)
    return difference, (float(difference - width), float(difference + width))


def _interval(score: Array, wrong: Array) -> tuple[float, float]:
    return auc_interval(auc(score, wrong), int(wrong.sum()), int((~wrong).sum()))


def placements(score: Array, wrong: Array) -> tuple[Array, Array]:
    """For every mistake the share of right answers below it, for every right answer that of mistakes above."""
    high, low = np.sort(score[wrong]), np.sort(score[~wrong])
    return _below_share(low, score[wrong]), 1 - _below_share(high, score[~wrong])


def wilson(count: Array | int, total: Array | int) -> tuple[Array, Array]:
    """Of a share (E. B. Wilson 1927); (0, 1) where there is nothing to count."""
    n = np.asarray(total, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = np.asarray(count) / n
        centre = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
        width = Z * np.sqrt(p * (1 - p) / n + (Z / (2 * n)) ** 2) / (1 + Z**2 / n)
    low = np.where(np.asarray(count) == 0, 0.0, centre - width)
    high = np.where(np.asarray(count) == n, 1.0, centre + width)
    return np.where(n > 0, low, 0.0), np.where(n > 0, high, 1.0)


def _below_share(sorted_values: Array, values: Array) -> Array:
    """Share of some sorted values below each of others, equal ones counted half."""
    left, right = (np.searchsorted(sorted_values, values, side=side) for side in ("left", "right"))
    return np.asarray((left + right) / (2 * len(sorted_values)))


def _found(score: Array, wrong: Array) -> tuple[Array, Array]:
    """Mistakes and right answers at or above every value of the score, highest first, 0 before all."""
    order = np.argsort(-score, kind="stable")
    last = np.append(np.flatnonzero(np.diff(score[order])), len(score) - 1) if len(score) else np.empty(0, dtype=int)
    return tuple(np.append(0, np.cumsum(which[order])[last]) for which in (wrong, ~wrong))  # type: ignore[return-value]
