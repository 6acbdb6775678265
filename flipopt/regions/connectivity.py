"""Which pairs of samples are joined by a line that stays in the region of their class: all pairs, in blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from flipopt.common.checks import Array, as_whole, one_of
from flipopt.common.errors import InputError
from flipopt.common.progress import progress_bar
from flipopt.common.tables import Table
from flipopt.networks.points import as_points
from flipopt.networks.protocol import Network
from flipopt.networks.wrapping import as_network
from flipopt.paths.adaptive import Sampling, leaving
from flipopt.paths.crossings import MODES, Searcher, prover
from flipopt.paths.lines import Lines, exact, in_float32_far_away
from flipopt.paths.proving import Proving
from flipopt.regions.graph import Connectivity
from flipopt.runs.computing import compute
from flipopt.runs.executors import as_executor, in_turn
from flipopt.runs.fingerprint import fingerprint
from flipopt.runs.store import Run
from flipopt.runs.work import Work

KIND = "connectivity"
NUMBERS_AT_ONCE = 2**18
"""Entries of the first ends of the lines that are looked at together."""
LINES_AT_ONCE = {"adaptive": 1024, "proved": 64}
"""Lines that are, at most; 64 at least."""


@dataclass(frozen=True)
class Pairs(Table):
    """What was found of some pairs: those that are ``inside`` or ``undecided``, and evaluations, (pairs,) each."""

    inside: Array
    undecided: Array
    evaluations: Array

    def to_arrow(self) -> Any:
        """As a pyarrow table."""
        import pyarrow as pa

        return pa.table({name: getattr(self, name) for name in self.names()})

    @classmethod
    def from_arrow(cls, table: Any) -> Pairs:
        """From a pyarrow table of the same columns."""
        return cls(**{name: table[name].to_numpy() for name in cls.names()})


def connectivity(
    net: Any,
    X: Any,
    mode: str = "adaptive",
    of: int | None = None,
    options: Sampling | Proving | None = None,
    progress: bool = False,
    run: str | Path | None = None,
    executor: Any = None,
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
    run
        A folder in which what is found is kept as it comes. If a run of the same call is there, it is gone on with.
    executor
        Who computes: None, threads of this process; "processes"; or a dask.distributed Client or its address.
    """
    one_of(mode, MODES, "mode")
    samples = Samples.of(net, X, of)
    look = Look.of(samples, mode, options)
    total = len(samples.X) * (len(samples.X) - 1) // 2
    work, who = Work(look, lambda part: part, total, look.step, total), as_executor(executor)
    if run is None:
        found = _tracked(in_turn(who, work), total, progress)
    else:
        what = {"network": samples.network, "X": samples.X, "options": look.options}
        described = {name: fingerprint(value) for name, value in what.items()} | {"mode": mode}
        kept = Run.begin(run, KIND, described, total, look.step)
        compute(kept, replace(work, step=kept.step), who, Pairs.to_arrow, "lines", progress)
        found = [Pairs.from_arrow(table) for table in kept.tables()]
    return _graph(samples, Pairs.join(found))


def _tracked(parts: Iterable[Pairs], total: int, progress: bool) -> list[Pairs]:
    found: list[Pairs] = []
    with progress_bar(KIND, total, "lines", progress) as advance:
        for part in parts:
            found.append(part)
            advance(sum(map(len, found)))
    return found


@dataclass(frozen=True)
class Samples:
    """Samples of class ``k``: their logits Y, and where they were in what was handed in."""

    network: Network
    X: Array
    Y: Array
    rows: Array
    k: int

    @classmethod
    def of(cls, net: Any, X: Any, of: int | None) -> Samples:
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


@dataclass(frozen=True)
class Look:
    """What a worker does: pairs in groups of ``step``, which do not depend on who does them."""

    samples: Samples
    options: Sampling | Proving
    step: int

    @classmethod
    def of(cls, samples: Samples, mode: str, options: Sampling | Proving | None) -> Look:
        kind: type[Sampling | Proving] = Sampling if mode == "adaptive" else Proving
        options = kind() if options is None else options
        if not isinstance(options, kind):
            raise InputError(f"options: expected a {kind.__name__} in {mode} mode, found {type(options).__name__}")
        if isinstance(options, Proving):
            prover(samples.network, options)  # raises where nothing can be proved
        step = max(64, min(LINES_AT_ONCE[mode], NUMBERS_AT_ONCE // samples.X.shape[1]))
        return cls(samples, options, step)

    def __call__(self, part: range) -> Pairs:
        prove = prover(self.samples.network, self.options) if isinstance(self.options, Proving) else None
        firsts = range(part.start, part.stop, self.step)
        return Pairs.join([self._group(np.arange(k, min(k + self.step, part.stop)), prove) for k in firsts])

    def _group(self, numbers: Array, prove: Searcher | None) -> Pairs:
        samples, (i, j) = self.samples, pairs_at(numbers, len(self.samples.X))
        lines = Lines.between(in_float32_far_away(samples.network), samples.X[i], samples.X[j])
        sampling = self.options if isinstance(self.options, Sampling) else Sampling()
        inside = ~leaving(lines, samples.k, (samples.Y[i], samples.Y[j]), sampling)
        undecided, evaluations = np.zeros_like(inside), lines.evaluations
        rest = np.flatnonzero(inside)
        if prove is not None and len(rest):
            exactly = Lines.between(samples.network, lines.A[rest], lines.B[rest])
            search = prove(exactly)
            evaluations[rest] += exactly.evaluations
            undecided[rest[search.undecided.line]] = True
            inside[rest[search.undecided.line]] = False
            undecided[rest[search.brackets.line]] = inside[rest[search.brackets.line]] = False
        return Pairs(inside, undecided, evaluations)


def _graph(samples: Samples, pairs: Pairs) -> Connectivity:
    count = len(samples.X)
    i, j = pairs_at(np.flatnonzero(pairs.inside), count)
    both = np.concatenate([i, j]), np.concatenate([j, i])
    adjacency = sparse.csr_array((np.ones(2 * len(i), dtype=bool), both), shape=(count, count))
    undecided = np.column_stack(pairs_at(np.flatnonzero(pairs.undecided), count))
    evaluations = float(pairs.evaluations.mean())
    return Connectivity(adjacency, samples.X, samples.rows, samples.k, undecided, evaluations)
