"""Which pairs of samples are joined by a line that stays in the region of their class: all pairs, in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from flipopt.common.checks import Array, as_whole, one_of
from flipopt.common.columns import Columns
from flipopt.common.errors import InputError
from flipopt.common.progress import progress_bar
from flipopt.networks.points import as_points
from flipopt.networks.protocol import Network
from flipopt.networks.wrapping import as_network
from flipopt.paths.adaptive import Sampling, leaving
from flipopt.paths.crossings import MODES
from flipopt.paths.lines import Lines, exact, in_float32_far_away
from flipopt.regions.graph import Connectivity
from flipopt.runs.threads import in_order

NUMBERS_AT_ONCE = 2**18
"""Entries of the first ends of the lines of a task."""
PAIRS_AT_ONCE = (64, 1024)
"""Fewest and most lines of a task."""


@dataclass(frozen=True)
class Pairs(Columns):
    """What was found of some pairs: those that are ``inside`` or ``undecided``, and evaluations, (pairs,) each."""

    inside: Array
    undecided: Array
    evaluations: Array


def connectivity(
    net: Any,
    X: Any,
    mode: str = "adaptive",
    of: int | None = None,
    options: Any = None,
    progress: bool = False,
) -> Connectivity:
    """Which samples of a class are joined by a line that stays in the class's region, of all pairs.

    Parameters
    ----------
    net
        Any network; it is computed in float64, and in float32 where the class is clearly ahead.
    X
        Samples (k, n_inputs) that the network puts in one class, all different.
    mode
        "adaptive" samples lines as :func:`flipopt.paths.crossings` does, and leaves a line at the first sample of
        another class. "proved" proves of the lines that sampling leaves over that they stay inside; pairs of which
        it cannot are ``undecided``.
    of
        A class: only the samples that the network puts in it are kept. By default all samples must be in one class.
    options
        A :class:`~flipopt.paths.Sampling`, or in proved mode a :class:`~flipopt.paths.Proving`.
    progress
        Whether to show a bar.
    """
    one_of(mode, MODES, "mode")
    samples = _Samples.of(net, X, of)
    count = len(samples.X)
    total = count * (count - 1) // 2
    step = int(np.clip(NUMBERS_AT_ONCE // samples.X.shape[1], *PAIRS_AT_ONCE))
    parts = [range(first, min(first + step, total)) for first in range(0, total, step)]
    found: list[Pairs] = []
    done = 0
    with progress_bar("connectivity", total, "lines", progress) as advance:
        for result in in_order(lambda part: _look(samples, part, options or Sampling()), parts):
            found.append(result)
            done += len(result)
            advance(done)
    return _graph(samples, Pairs.join(found))


@dataclass(frozen=True)
class _Samples:
    """Samples of class ``k``: their logits Y, and where they were in what was handed in."""

    network: Network
    X: Array
    Y: Array
    rows: Array
    k: int

    @classmethod
    def of(cls, net: Any, X: Any, of: int | None) -> _Samples:
        network = as_network(net, X, many=True)
        X = np.atleast_2d(as_points(X, network, "X")).astype(np.float64)
        network = exact(network)
        Y, rows = network.logits(X), np.arange(len(X))
        classes = Y.argmax(axis=1)
        if of is not None:
            if as_whole(of, "of") >= network.n_classes:
                raise InputError(f"of: expected a class below {network.n_classes}, found {of}")
            rows = rows[classes == of]
        X, Y, classes = X[rows], Y[rows], classes[rows]
        if len(X) < 2:
            raise InputError(f"X: expected at least two samples of a class, found {len(X)}")
        _require_one_class(classes)
        _require_different(X, rows)
        two = np.partition(Y, -2, axis=1)[:, -2:]
        tied = np.flatnonzero(two[:, 0] == two[:, 1])
        if len(tied):
            raise InputError(f"X: expected samples inside the region, found row {rows[tied[0]]} on its boundary")
        return cls(network, X, Y, rows, int(classes[0]))


def _require_one_class(classes: Array) -> None:
    kinds, counts = np.unique(classes, return_counts=True)
    if len(kinds) > 1:
        found = ", ".join(f"{count} in class {kind}" for kind, count in zip(kinds, counts, strict=True))
        odd = np.flatnonzero(classes != kinds[counts.argmax()])[0]
        raise InputError(
            f"X: expected samples that the network puts in one class, found {found} (row {odd} among the fewer); "
            f"choose a class with of="
        )


def _require_different(X: Array, rows: Array) -> None:
    _, first, inverse = np.unique(X, axis=0, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[inverse.reshape(-1)] != np.arange(len(X)))
    if len(again):
        other = first[inverse.reshape(-1)[again[0]]]
        raise InputError(f"X: expected different samples, found rows {rows[other]} and {rows[again[0]]} alike")


def pairs_at(index: Array, count: int) -> tuple[Array, Array]:
    """The samples i < j of the pairs (0, 1), (0, 2), ..., (1, 2), ... with the numbers ``index``."""
    firsts = np.arange(count) * (2 * count - np.arange(count) - 1) // 2  # number of the pair (i, i + 1)
    i = np.searchsorted(firsts[: count - 1], index, side="right") - 1
    return i, index - firsts[i] + i + 1


def _look(samples: _Samples, part: range, options: Sampling) -> Pairs:
    i, j = pairs_at(np.arange(part.start, part.stop), len(samples.X))
    lines = Lines.between(in_float32_far_away(samples.network), samples.X[i], samples.X[j])
    outside = leaving(lines, samples.k, (samples.Y[i], samples.Y[j]), options)
    return Pairs(~outside, np.zeros(len(i), dtype=bool), lines.evaluations)


def _graph(samples: _Samples, pairs: Pairs) -> Connectivity:
    count = len(samples.X)
    i, j = pairs_at(np.flatnonzero(pairs.inside), count)
    both = np.concatenate([i, j]), np.concatenate([j, i])
    adjacency = sparse.csr_array((np.ones(2 * len(i), dtype=bool), both), shape=(count, count))
    undecided = np.column_stack(pairs_at(np.flatnonzero(pairs.undecided), count))
    evaluations = float(pairs.evaluations.mean())
    return Connectivity(adjacency, samples.X, samples.rows, samples.k, undecided, evaluations)
