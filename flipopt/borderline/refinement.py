"""Borderline instance refinement, Algorithm 1 of Karimi, Derr and Tang (000), on all pairs at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.borderline.forward import RESOLVED, Walked, in_precision
from flipopt.borderline.instances import Instances, Outcome, nothing_found
from flipopt.common.checks import Array, as_number, as_whole, rectangular
from flipopt.common.errors import InputError
from flipopt.networks.points import as_points
from flipopt.networks.protocol import Network
from flipopt.networks.wrapping import as_network
from flipopt.paths.bisection import halve
from flipopt.paths.lines import Lines
from flipopt.runs.threads import in_order


@dataclass(frozen=True)
class Refinement:
    """How lines are halved.

    Attributes
    ----------
    beta
        Largest gap of the two probabilities; 0: to the last representable number.
    strict
        Whether a line fails at the first midpoint in a third class, as in the paper.
    iterations
        Steps of a line, at most. 60 are enough unless the boundary is very near the start.
    chunk
        Pairs that go to the network together.
    """

    beta: float = 1e-4
    strict: bool = True
    iterations: int = 100
    chunk: int = 512

    def __post_init__(self) -> None:
        as_number(self.beta, "beta", least=0.0)
        as_whole(self.iterations, "iterations", least=1)
        as_whole(self.chunk, "chunk", least=1)


def refine(
    net: Any,
    S: Any,
    T: Any,
    s: int | ArrayLike | None = None,
    t: int | ArrayLike | None = None,
    beta: float = 1e-4,
    strict: bool = True,
    iterations: int = 100,
    chunk: int = 512,
) -> Instances:
    """Borderline instances between the rows of S (class s) and of T (class t): Algorithm 1 of the paper.

    The line between a pair is halved: a midpoint in class s replaces the start, one in class t the end, until the
    probabilities of s and t differ by at most ``beta``. All pairs of a chunk take a step together. A pair that cannot
    be refined has a status and a message, and costs no other anything.

    Parameters
    ----------
    net
        Any network. It is computed in float64, or, where it is not a chain of dense layers and ``beta`` is at least
        1e-5, in its own precision, as it is used; an ONNX graph then by onnxruntime.
    S, T
        Points (pairs, n_inputs), or one point (n_inputs,) for all pairs. They need not be finite.
    s, t
        Their classes: one for all pairs, or one a pair, (pairs,); by default what the network predicts.
    beta
        Largest difference of the two probabilities; 0 to go on to the last representable number.
    strict
        True, as in the paper: a line fails at the first midpoint in a third class. False: it goes on by which of s and
        t is ahead of the other, and fails if a third class is above one of them where they tie. So more are found, and
        where both searches end well they end at the same point, unless a third class is between the two within beta.
    iterations
        Steps of a line, at most.
    chunk
        Pairs that go to the network together.
    """
    how = Refinement(beta, strict, iterations, chunk)
    network = as_network(net, S, many=np.ndim(S) > 1)
    S, T = (np.atleast_2d(as_points(ends, network, name, finite=False)) for ends, name in ((S, "S"), (T, "T")))
    if len(S) != len(T) and 1 not in (len(S), len(T)):
        raise InputError(f"T: expected {len(S)} points, as S has, or one, found {len(T)}")
    count = max(len(S), len(T)) if min(len(S), len(T)) else 0
    rows = tuple(np.arange(count) if len(ends) > 1 else np.zeros(count, dtype=np.int64) for ends in (S, T))
    S, T = (np.broadcast_to(ends, (count, network.n_inputs)) for ends in (S, T))
    first, second = _classes(s, count, network, "s"), _classes(t, count, network, "t")
    same = np.flatnonzero((first == second) & (first >= 0))
    if len(same):
        raise InputError(f"t: expected other classes than s, found class {first[same[0]]} twice in pair {same[0]}")
    return refine_pairs(network, S, T, (first, second), (rows[0], rows[1]), how)


def refine_pairs(
    network: Network, S: Array, T: Array, classes: tuple[Array, Array], rows: tuple[Array, Array], how: Refinement
) -> Instances:
    """As :func:`refine`, of arguments that are checked: classes (pairs,) with -1 for what the network predicts, and the
    rows that the table names."""
    network = in_precision(network, how.beta)
    walked = Walked.of(network) if how.beta >= RESOLVED else Walked(network, None)
    parts = [slice(first, first + how.chunk) for first in range(0, len(S), how.chunk)]

    def refined(part: slice) -> Instances:
        return _chunk(walked, S[part], T[part], [c[part] for c in classes], [r[part] for r in rows], how)

    return Instances.join(list(in_order(refined, parts)) if parts else [refined(slice(0, 0))])


def _chunk(walked: Walked, S: Array, T: Array, classes: list[Array], rows: list[Array], how: Refinement) -> Instances:
    """Pairs that go to the network together."""
    S, T = S.astype(np.float64), T.astype(np.float64)
    finite = np.isfinite(np.stack([S, T])).all(axis=(0, 2))
    ends = [walked.ends(np.where(finite[:, None], X, 0.0)) for X in (S, T)]
    lines = walked.between(*ends)
    s, t, status = _starting(lines, finite, *classes)
    live = np.flatnonzero(status == Outcome.FOUND)
    halved = halve(lines, s, t, live, how.beta, how.strict, how.iterations)
    for which, outcome in (
        (~halved.success, Outcome.LIMIT),
        (~halved.success & halved.exhausted, Outcome.JUMP),
        (halved.third >= 0, Outcome.LEFT),
        (~np.isfinite(halved.gap), Outcome.BROKEN),
    ):
        status[live[which[live]]] = outcome
    found = nothing_found(rows[0], rows[1], np.column_stack([s, t]), status, S.shape[1])
    alpha = halved.alpha[live, None]
    found.x[live] = (1 - alpha) * S[live] + alpha * T[live]
    found.distance[live] = np.linalg.norm(found.x[live] - S[live], axis=1)
    for name in ("alpha", "gap", "steps", "third"):
        getattr(found, name)[:] = getattr(halved, name)
    found.evaluations[:] = lines.evaluations
    return found


def _starting(lines: Lines, finite: Array, s: Array, t: Array) -> tuple[Array, Array, Array]:
    """The classes of the pairs, (pairs,) each, and FOUND for those that can be refined, else why they cannot."""
    sound, count = np.flatnonzero(finite), int(finite.sum())
    both, ends = np.concatenate([sound, sound]), np.repeat([0.0, 1.0], count)
    with np.errstate(invalid="ignore", over="ignore"):
        Y = lines.logits(both, ends).reshape(2, count, lines.network.n_classes)
    predicted = np.full((2, len(lines)), -1)
    predicted[:, sound] = np.where(np.isfinite(Y).all(axis=2), Y.argmax(axis=2), -1)
    a, b = predicted
    s, t = np.where(s < 0, a, s), np.where(t < 0, b, t)
    status = np.full(len(lines), Outcome.FOUND, dtype=object)
    for which, outcome in (
        (b != t, Outcome.NOT_T),
        (a != s, Outcome.NOT_S),
        (s == t, Outcome.SAME),
        ((a < 0) | (b < 0), Outcome.BROKEN),
        (~finite, Outcome.NOT_FINITE),
    ):
        status[which] = outcome
    return s, t, status


def _classes(given: Any, count: int, network: Network, name: str) -> Array:
    """One class a pair, (count,); -1 for what the network predicts."""
    if given is None:
        return np.full(count, -1)
    array = rectangular(given, name, "a class, or one a pair")
    if array.dtype.kind not in "iu" or array.shape not in ((), (count,)):
        raise InputError(f"{name}: expected a class, or {count} classes, one a pair, found {array.dtype} {array.shape}")
    if array.size and not 0 <= array.min() <= array.max() < network.n_classes:
        bad = array[(array < 0) | (array >= network.n_classes)].flat[0]
        raise InputError(f"{name}: expected classes from 0 to {network.n_classes - 1}, found {bad}")
    return np.broadcast_to(array.astype(np.int64), (count,))
