"""Is it the closest? Proofs for one input and for many."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.bounds import lower as lower_bounds
from flipopt.common.checks import Array, as_number, as_point
from flipopt.common.errors import FlipoptError, InputError
from flipopt.common.progress import progress_bar
from flipopt.common.tables import Table
from flipopt.flips.faults import EVERYBODYS, examined, said
from flipopt.flips.many import closest_flip_points
from flipopt.networks.dense import DenseNetwork
from flipopt.networks.points import as_one_point, as_points
from flipopt.networks.wrapping import as_network
from flipopt.problem import Setting
from flipopt.proofs.instance import Instance, require_piecewise_linear
from flipopt.proofs.proof import Kept, Proof
from flipopt.proofs.search import Effort, Search
from flipopt.results import FlipResult, FlipTable
from flipopt.runs.computing import compute
from flipopt.runs.executors import as_executor, in_turn
from flipopt.runs.fingerprint import fingerprint
from flipopt.runs.store import Run
from flipopt.runs.threads import one_blas_thread
from flipopt.runs.work import Work

if TYPE_CHECKING:
    import pyarrow

KIND = "proofs"
LARGEST_PART = 64
"""Rows of a part: after them a run has something to keep."""
DOUBLINGS = 20
"""Of the radius within which a flip is looked for where none is known."""
LEAST = 1e-140
"""Distances below it are not proved: their squares are next to underflow."""
SMALLEST = 1e-6
"""The least of these radii, relative to the length of x: relaxations prove nothing where leads are hardly more than
rounding."""


def prove(
    network: Any,
    x: ArrayLike,
    flip: FlipResult | ArrayLike | None = None,
    tol: float = 1e-6,
    seconds: float = 60.0,
    weights: ArrayLike | None = None,
    frozen: ArrayLike | None = None,
    bounds: Any = None,
    effort: Effort | None = None,
) -> Proof:
    """How far the closest flip of x is in the 2-norm, proved: by branch and bound, for ReLU and PReLU networks.

    Parameters
    ----------
    network
        A dense network with ReLU, PReLU or identity as activations.
    x
        The input, (n_inputs,).
    flip
        A flip of x, as a result or as a point, to begin with; by default the one of
        :func:`~flipopt.closest_flip_point`. The nearer it is, the sooner the proof is done; a nearer one that is found
        on the way takes its place.
    tol
        The proof is done when the bounds differ by this share of the distance.
    seconds
        Time limit. The bounds hold at any time.
    weights, frozen
        As in :func:`~flipopt.closest_flip_point`.
    bounds
        As there; x must be within them. Then there may be no flip at all: ``upper`` is infinite and the proof is done
        when the whole box has been searched.
    effort
        How much is done at a node.
    """
    net = require_piecewise_linear(as_network(network, x))
    setting = Setting.of(net, bounds=bounds, weights=weights, frozen=frozen)
    point = as_one_point(x, net, "x")
    tol, seconds = as_number(tol, "tol", least=1e-9, below=1.0), as_number(seconds, "seconds", least=0.0)
    known = None if flip is None else as_point(flip.x if isinstance(flip, FlipResult) else flip, net.n_inputs, "flip")
    with one_blas_thread():
        return _prove(setting, point, known, tol, seconds, effort or Effort())


@np.errstate(all="ignore")  # what is not finite proves nothing
def _prove(setting: Setting, x: Array, flip: Array | None, tol: float, seconds: float, effort: Effort) -> Proof:
    started = effort.now()
    net = setting.network
    assert isinstance(net, DenseNetwork)
    root, free = np.sqrt(setting.weights), ~setting.frozen
    i = int(net.predict(x))
    instance = Instance.of(net, x, i, root, free, _bounds_at(setting, x))
    leads = instance.leads(np.zeros(len(instance.R)))
    if leads.min() <= 0:
        j, history = int(instance.others[leads.argmin()]), np.zeros((1, 3))
        return Proof(0.0, 0.0, x, (i, j), True, 0, 0.0, history, f"x is a flip itself: classes {i} and {j} tie there")
    if flip is None:
        flip = _flips_of(setting, x[None], np.array([True]))[0]
    search = Search(instance, tol, effort=effort)
    if np.isfinite(flip).all() and search.begin_at((root * (flip - x)) @ instance.Q):
        search.run(seconds - (effort.now() - started))
    else:
        search = _outwards(setting, instance, x, tol, started + seconds, effort)
    return _found(setting, instance, search, x, effort.now() - started)


def _beyond(setting: Setting, x: Array) -> int | None:
    """The first feature that may change and is not within its bounds."""
    beyond = ~setting.frozen & ~((setting.lower <= x) & (x <= setting.upper))
    return int(beyond.argmax()) if beyond.any() else None


def _bounds_at(setting: Setting, x: Array) -> tuple[Array, Array] | None:
    """The bounds, if there are any; x must be within them where it may change."""
    if not setting.bounded:
        return None
    k = _beyond(setting, x)
    if k is not None:
        raise InputError(
            f"x: expected a point within the bounds, found {x[k]:g} at index {k}, where they are "
            f"{setting.lower[k]:g} and {setting.upper[k]:g}"
        )
    return setting.lower, setting.upper


def _outwards(setting: Setting, instance: Instance, x: Array, tol: float, end: float, effort: Effort) -> Search:
    """A search where no flip is known: in balls twice as large each time, until one has a flip or all that the bounds
    allow, or time is up."""
    free = ~setting.frozen
    least = float(np.sqrt(setting.weights[free].min()))
    radius = least * max(float(lower_bounds(setting.network, x)), SMALLEST * float(np.linalg.norm(x)) or SMALLEST)
    search = Search(instance, tol, best=radius)
    for _ in range(DOUBLINGS if np.isfinite(radius) else 0):
        radius *= 2
        search = Search(instance, tol, best=radius, effort=effort)
        search.run(end - effort.now())
        if len(search.d) or not search.proved or _everywhere(search):
            break
    return search


def _everywhere(search: Search) -> bool:
    """Whether the ball that was searched has all of the box."""
    return search.instance.box is not None and search.lower >= search.instance.box.reach


def _found(setting: Setting, instance: Instance, search: Search, x: Array, spent: float) -> Proof:
    root, stretch = np.sqrt(setting.weights), instance.stretch
    lower, nodes, known = search.lower / stretch, len(search.nodes), len(search.d) > 0
    lower = lower if lower > LEAST else 0.0
    upper, none = (search.best if known else np.inf), not known and _everywhere(search)
    proved = (known and search.proved and lower > 0) or none
    history = np.array(search.history or [(spent, search.best, np.inf)]) / np.array([1.0, stretch, 1.0])
    point, j = np.full_like(x, np.nan), int(instance.source == 0)
    if known:
        point = setting.clip(x + (instance.Q @ search.d) / root, x)
        j = int(instance.others[instance.leads(search.d).argmin()])
    else:
        history[:, 2] = np.inf
    if none:
        words = "proved: there is no flip within the bounds"
    elif proved:
        words = f"proved: the closest flip is at {upper:.9g}"
    elif known:
        words = f"not proved in {spent:.1f} s: the closest flip is between {lower:.9g} and {upper:.9g}"
        words += "; the rest is rounding" if search.done else ""
    else:
        words = f"no flip is known; there is none within {lower:.9g}"
    kept = Kept(x, root, ~setting.frozen, setting.lower, setting.upper, instance, search.nodes) if nodes else None
    words = f"{words} ({nodes} nodes)"
    return Proof(lower, upper, point, (instance.source, j), proved, nodes, spent, history, words, kept)


@dataclass(frozen=True, eq=False)
class Proofs(Table):
    """Proofs of many inputs.

    Attributes
    ----------
    row, classes
        Index into X, (rows,), and the classes that tie, (rows, 2).
    lower, upper
        Bounds on the distance, (rows,); NaN where there is a ``message`` of an error.
    proved
        Whether they agree, (rows,) bool.
    nodes, seconds
        Of the searches, (rows,).
    x
        The nearest flips known, (rows, n_inputs).
    message
        In words, (rows,).
    """

    row: Array
    classes: Array
    lower: Array
    upper: Array
    proved: Array
    nodes: Array
    seconds: Array
    x: Array
    message: Array

    @classmethod
    def of(cls, first: int, proofs: list[Proof], n: int) -> Proofs:
        """Of consecutive rows."""
        return cls(
            np.arange(first, first + len(proofs)),
            np.array([proof.classes for proof in proofs], dtype=np.int64).reshape(-1, 2),
            np.array([proof.lower for proof in proofs], dtype=np.float64),
            np.array([proof.upper for proof in proofs], dtype=np.float64),
            np.array([proof.proved for proof in proofs], dtype=bool),
            np.array([proof.nodes for proof in proofs], dtype=np.int64),
            np.array([proof.seconds for proof in proofs], dtype=np.float64),
            np.array([proof.x for proof in proofs]).reshape(-1, n),
            np.array([proof.message for proof in proofs], dtype=object),
        )

    def to_arrow(self) -> pyarrow.Table:
        """For a file."""
        import pyarrow as pa

        columns = {name: pa.array(getattr(self, name)) for name in self.names() if name not in ("classes", "x")}
        points = pa.FixedSizeListArray.from_arrays(pa.array(self.x.reshape(-1)), self.x.shape[1])
        return pa.table(columns | {"i": self.classes[:, 0], "j": self.classes[:, 1], "x": points})

    @classmethod
    def from_arrow(cls, table: pyarrow.Table) -> Proofs:
        """From :meth:`to_arrow`."""
        plain = {
            field.name: table[field.name].to_numpy() for field in fields(cls) if field.name not in ("classes", "x")
        }
        points = table["x"].combine_chunks()
        x = points.flatten().to_numpy().reshape(len(table), -1)
        return cls(classes=np.column_stack([table["i"], table["j"]]), x=x, **plain)

    def summary(self) -> str:
        """In plain words."""
        if len(self) == 0:
            return "No inputs."
        known = np.isfinite(self.upper)
        words = f"{int(self.proved.sum())} of {len(self)} closest flips are proved"
        if known.any():
            words += f", at a median distance of {np.median(self.upper[known]):.4g}"
        open_gaps = (1 - self.lower / np.where(self.upper > 0, self.upper, 1))[known & ~self.proved]
        if len(open_gaps):
            words += f"; the bounds of the other {len(open_gaps)} differ by at most {open_gaps.max():.2%}"
        return f"{words}."

    def __str__(self) -> str:
        return self.summary()


@dataclass(frozen=True, eq=False)
class _Prover:
    """What a worker does."""

    setting: Setting
    tol: float
    seconds: float
    effort: Effort

    def __call__(self, rows: tuple[int, Array, Array]) -> Proofs:
        first, X, flips = rows
        _, why = examined(self.setting.network, X)
        known = flips
        if np.isnan(flips).all():
            within = np.array([_beyond(self.setting, x) is None for x in X])
            known = _flips_of(self.setting, X, (why == "") & within)
        return Proofs.of(
            first, [self._one(x, flip, words) for x, flip, words in zip(X, known, why, strict=True)], X.shape[1]
        )

    def _one(self, x: Array, flip: Array, why: str) -> Proof:
        if not why:
            try:
                return _prove(self.setting, x, flip, self.tol, self.seconds, self.effort)
            except EVERYBODYS:
                raise
            except Exception as error:  # whatever a row does
                why = said(error)
        nothing = np.full_like(x, np.nan)
        return Proof(np.nan, np.nan, nothing, (0, 1), False, 0, 0.0, np.empty((0, 3)), why)


def _flips_of(setting: Setting, X: Array, sound: Array) -> Array:
    """The closest flips known of the rows of X that are sound; NaN where there is none."""
    points = np.full(X.shape, np.nan)
    if sound.any():
        flips = closest_flip_points(
            setting.network,
            X[sound],
            weights=setting.weights,
            frozen=setting.frozen,
            bounds=(setting.lower, setting.upper),
        )
        points[sound] = flips.x
    return points


def prove_many(
    network: Any,
    X: ArrayLike,
    flips: FlipTable | None = None,
    tol: float = 1e-6,
    seconds: float = 60.0,
    weights: ArrayLike | None = None,
    frozen: ArrayLike | None = None,
    bounds: Any = None,
    effort: Effort | None = None,
    progress: bool = False,
    run: str | Path | None = None,
    executor: Any = None,
) -> Proofs:
    """:func:`prove` for every row of X (rows, n_inputs).

    A row that is not finite, or at which something fails, has NaN and a message, and costs no other row anything.

    Parameters
    ----------
    network, X, tol, seconds, weights, frozen, bounds, effort
        As in :func:`prove`; ``seconds`` are for each row.
    flips
        One flip for each row, in order, to begin with; found here by default.
    progress
        Show a progress bar.
    run
        A folder that keeps what is finished: the same call goes on where an earlier one was stopped.
    executor
        None for threads, "processes", or a ``dask.distributed`` client or its address.
    """
    net = require_piecewise_linear(as_network(network, X, many=True))
    setting = Setting.of(net, bounds=bounds, weights=weights, frozen=frozen)
    rows = np.atleast_2d(as_points(X, net, "X", finite=False)).astype(np.float64)
    tol, seconds = as_number(tol, "tol", least=1e-9, below=1.0), as_number(seconds, "seconds", least=0.0)
    known = np.full(rows.shape, np.nan) if flips is None else _of_rows(flips, rows)
    if len(rows) == 0:
        return Proofs.of(0, [], net.n_inputs)

    def load(part: range) -> tuple[int, Array, Array]:
        some = slice(part.start, part.stop)
        return part.start, rows[some], known[some]

    options = effort or Effort()
    work = Work(_Prover(setting, tol, seconds, options), load, len(rows), 1, LARGEST_PART)
    if run is not None:
        what = {"network": fingerprint(net), "X": fingerprint(rows), "flips": fingerprint(known), "tol": repr(tol)}
        what |= {"seconds": repr(seconds), "weights": fingerprint(setting.weights)}
        what |= {"frozen": fingerprint(setting.frozen), "effort": repr(options)}
        if options.core_seconds:
            what |= {"core seconds": "True"}
        if setting.bounded:
            what |= {"bounds": fingerprint(np.stack([setting.lower, setting.upper]))}
        kept = Run.begin(run, KIND, what, len(rows), 1)
        compute(kept, work, as_executor(executor), Proofs.to_arrow, "rows", progress)
        return Proofs.join([Proofs.from_arrow(table) for table in kept.tables()])
    parts = []
    with progress_bar("proofs", len(rows), "rows", progress) as advance:
        for part in in_turn(as_executor(executor), work):
            parts.append(part)
            advance(int(part.row[-1]) + 1)
    return Proofs.join(parts)


def _of_rows(flips: FlipTable, X: Array) -> Array:
    if len(flips) != len(X) or not np.array_equal(flips.row, np.arange(len(X))):
        raise FlipoptError(f"flips: expected one for each of {len(X)} rows of X, in order, found {len(flips)}")
    return flips.x.astype(np.float64)
