"""IDC, the complexity of a decision boundary in the input space (000, section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from flipopt.borderline.forward import RESOLVED, Walked, in_precision
from flipopt.borderline.instances import Instances
from flipopt.borderline.samples import ROWS, as_class
from flipopt.common.checks import Array, as_whole
from flipopt.common.errors import InputError
from flipopt.networks.points import as_points
from flipopt.networks.protocol import Network
from flipopt.networks.wrapping import as_network
from flipopt.runs.threads import in_order

LEVEL, RESAMPLES = 0.95, 2000


@dataclass(frozen=True, eq=False)
class IDC:
    """How often the class changes along lines between borderline points.

    Attributes
    ----------
    value
        IDC, equation (4): the mean of the oscillations (3) of all lines.
    interval
        Its 95% bootstrap interval over start points.
    starts
        The points that lines start at, (starts,) indices.
    by_start
        The mean oscillation of the lines of each, (starts,).
    k, m
        Lines from a start, and points on a line.
    n_points
        Borderline points there were.
    third
        Share of the points on lines that are in neither of the two classes; NaN where these were not named.
    """

    value: float
    interval: tuple[float, float]
    starts: Array = field(repr=False)
    by_start: Array = field(repr=False)
    k: int
    m: int
    n_points: int
    third: float

    def summary(self) -> str:
        """In plain words."""
        low, high = self.interval
        other = "" if np.isnan(self.third) else f"; {self.third:.1%} of the points on lines are in a third class"
        return (
            f"IDC {self.value:.4f} (95% interval {low:.4f} to {high:.4f}): a line between two of {self.n_points:,} "
            f"borderline points changes class {self.value * self.m:.2f} times in {self.m} points (mean of {self.k} "
            f"lines from each of {len(self.starts)}){other}."
        )

    def __str__(self) -> str:
        return self.summary()


def oscillation(classes: Array) -> Array:
    """Equation (3): changes between neighbours along the last axis of ``classes`` (..., m), divided by m."""
    classes = np.asarray(classes)
    if classes.ndim == 0 or classes.shape[-1] == 0:
        raise InputError(f"classes: expected the classes of at least one point a line, found shape {classes.shape}")
    return np.asarray((classes[..., 1:] != classes[..., :-1]).sum(axis=-1) / classes.shape[-1])


def idc(
    net: Any,
    points: Any,
    s: Any = None,
    t: Any = None,
    starts: int | None = 500,
    k: int = 50,
    m: int = 50,
    seed: int = 0,
    chunk: int = ROWS,
) -> IDC:
    """IDC: the mean oscillation of the predicted class along lines between borderline points, equations (3) and (4).

    From each of some start points x_i, lines lead to ``k`` other points x_j, chosen at random without repetition. The
    network classifies t x_i + (1 - t) x_j at t = 0, 1/m, ..., (m - 1)/m; the oscillation is the number of changes
    between neighbours, of whatever classes, divided by m. The authors' settings are k = m = 50, from every point.

    Parameters
    ----------
    net
        Any network; one that is not a chain of dense layers in its own precision.
    points
        Borderline points (n, n_inputs), n >= 2, or :class:`Instances` of one direction, of which those that were found
        are taken: the boundary approached from s, and that approached from t, are measured each by itself.
    s, t
        The two classes, to say how many points on the lines are in a third one; by default those of the instances.
    starts
        Start points, at most, chosen at random; None: all points. An evaluation of the network is needed for each of
        starts * k * m points.
    k, m
        Lines from a start point, and points on each.
    seed
        Of all choices.
    chunk
        Points that go to the network together, in whole lines.
    """
    network = as_network(net, points, many=True)
    X, pair = _borderline(points, network)
    pair = pair if s is None or t is None else (as_class(network, s, "s"), as_class(network, t, "t"))
    k, m, chunk = (as_whole(value, name, least=1) for value, name in ((k, "k"), (m, "m"), (chunk, "chunk")))
    rng = np.random.default_rng(as_whole(seed, "seed"))
    chosen = np.arange(len(X)) if starts is None else rng.permutation(len(X))[: as_whole(starts, "starts", least=1)]
    k = min(k, len(X) - 1)
    others = np.stack([rng.choice(len(X) - 1, k, replace=False) for _ in chosen])
    others += others >= chosen[:, None]  # all points but the start itself
    walked = Walked.of(in_precision(network, RESOLVED), rough=True)
    ends, lines = np.column_stack([np.repeat(chosen, k), others.reshape(-1)]), max(1, chunk // m)
    parts = [ends[first : first + lines] for first in range(0, len(ends), lines)]
    found = list(in_order(partial(_oscillations, walked, walked.ends(X), m, pair), parts))
    by_start = np.concatenate([values for values, _ in found]).reshape(len(chosen), k).mean(axis=1)
    third = sum(count for _, count in found) / (len(ends) * m) if pair is not None else np.nan
    interval = bootstrap_interval(by_start, seed)
    return IDC(float(by_start.mean()), interval, chosen, by_start, k, m, len(X), float(third))


def bootstrap_interval(values: Array, seed: int = 0) -> tuple[float, float]:
    """Of the mean of ``values`` (n,): quantiles of the means of samples of as many, drawn with repetition."""
    rng = np.random.default_rng(seed)
    means = [values[rng.integers(len(values), size=len(values))].mean() for _ in range(RESAMPLES)]
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _borderline(points: Any, network: Network) -> tuple[Array, tuple[int, int] | None]:
    """The points (n, n_inputs), and their two classes where they are instances."""
    pair: tuple[int, int] | None = None
    if isinstance(points, Instances):
        found = points.found
        pairs = np.unique(found.classes, axis=0)
        if len(pairs) > 1:
            raise InputError(
                f"points: expected instances of one direction (s, t), found {len(pairs)} pairs of classes; take one by "
                ".between(s, t), or all of them by .found.x"
            )
        pair = (int(pairs[0, 0]), int(pairs[0, 1])) if len(pairs) else None
        points = found.x
    X = np.atleast_2d(as_points(points, network, "points")).astype(np.float64)
    if len(X) < 2:
        raise InputError(f"points: expected at least two borderline points, found {len(X)}")
    return X, pair


def _oscillations(walked: Walked, X: Array, m: int, pair: tuple[int, int] | None, ends: Array) -> tuple[Array, int]:
    """Of lines between ``ends`` (lines, 2), indices into X, and how many points on them are in a third class."""
    lines = walked.between(X[ends[:, 1]], X[ends[:, 0]])
    each = np.repeat(np.arange(len(ends)), m)
    classes = lines.logits(each, np.tile(np.arange(m) / m, len(ends))).argmax(axis=1).reshape(-1, m)
    return oscillation(classes), 0 if pair is None else int((~np.isin(classes, pair)).sum())
