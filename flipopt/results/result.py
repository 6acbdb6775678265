"""What a solve returns: a status that carries its message, one flip point, or a table of many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError, InputError
from flipopt.common.files import atomic_path, require_file
from flipopt.problem import Evaluations
from flipopt.verification import Verification

if TYPE_CHECKING:
    import pandas


class Status(Enum):
    """How a solve ended, by flipopt's own check and not by the solver's word."""

    CONVERGED = "a closest flip point: on the boundary and stationary"
    ON_BOUNDARY = "on the boundary, but not proved closest"
    INFEASIBLE = "the solver found no point that satisfies the constraints"
    LIMIT = "stopped by a limit on iterations, evaluations or time"
    NUMERICAL_ERROR = "the solver failed, or its point does not stand up to the check"
    UNAVAILABLE = "the solver is not installed or cannot take this problem"

    @property
    def message(self) -> str:
        return self.value


@dataclass(frozen=True)
class Stage:
    """One stage of a homotopy: a flip point of a network between the easy one (t = 0) and the trained one (t = 1).

    Attributes
    ----------
    t, step
        Where on the path, and how far from the stage before.
    x
        The point that the solver found, (n_inputs,).
    distance, moved
        From the input, in the problem's norm, and from the last point that was kept, in the 2-norm.
    boundary_gap, kkt_residual
        What the check found at the point, for the network of this stage.
    status, solver, evaluations
        Of the solve.
    kept
        Whether the path went on from this point.
    decision
        What was made of it.
    """

    t: float
    step: float
    x: Array = field(repr=False)
    distance: float
    moved: float
    boundary_gap: float
    kkt_residual: float
    status: Status
    solver: str
    evaluations: Evaluations
    kept: bool
    decision: str


@dataclass(frozen=True)
class FlipResult:
    """A flip point and everything known about it.

    Attributes
    ----------
    x
        The point x_hat, (n_inputs,), float64.
    distance
        d(x_hat, x) in the problem's norm; NaN if the point is not on the boundary.
    classes
        (i, j), or more classes if more of them tie.
    status, message
        The check's verdict, and what the solver said.
    check
        The :class:`~flipopt.verification.Verification`; None if there was no point to check.
    evaluations, elapsed
        The whole cost, of every start and of every class that was tried: network evaluations and seconds.
    iterations
        Of the solver, in the run that found this point.
    solver
        Its name.
    multipliers
        Of the goal's rows, as the check found them.
    starts, agreeing
        Starting points tried, and how many of them led to this distance.
    stages
        What each :class:`Stage` of a homotopy did; empty without one.
    settled
        False if this is the nearest of several classes and one of them was not solved.
    """

    x: Array
    distance: float
    classes: tuple[int, ...]
    status: Status
    message: str
    check: Verification | None
    evaluations: Evaluations
    iterations: int
    elapsed: float
    solver: str
    starts: int = 1
    agreeing: int = 1
    stages: tuple[Stage, ...] = ()
    settled: bool = True

    @property
    def success(self) -> bool:
        """Verified as a closest flip point."""
        return self.status is Status.CONVERGED

    @property
    def multipliers(self) -> Array:
        return self.check.multipliers if self.check is not None else np.empty(0)


SAME_DISTANCE = 1e-6
"""Two starts agree if their distances differ by less than this, relative."""
_VALUES = (
    *("distance", "status", "kkt_residual", "boundary_gap", "evaluations", "elapsed", "message"),
    *("starts", "agreeing", "settled"),
)
_ARRAYS = ("row", "classes", "x", *_VALUES)
TABLE_COLUMNS = ("row", "i", "j", *_VALUES)
"""Columns of a saved table, besides the points x."""


@dataclass(frozen=True, eq=False)
class FlipTable:
    """Many flip points, one entry a problem.

    Attributes
    ----------
    row
        Index into the X that was asked about, (entries,).
    classes
        (i, j) of each entry, (entries, 2).
    x
        The points, (entries, n_inputs).
    distance, status, kkt_residual, boundary_gap, evaluations, elapsed, message
        One value an entry; the status is a :class:`Status`.
    starts, agreeing
        Starting points tried, and how many of them led to this distance.
    settled
        Of the nearest of all classes: whether every other class was solved to its end as well. False if one was not
        solved, or was given up because by its progress it could no longer be the nearest.
    results
        Every entry as a :class:`FlipResult`; empty if they were solved as a batch or read from a file.
    """

    row: Array
    classes: Array
    x: Array
    distance: Array
    status: Array
    kkt_residual: Array
    boundary_gap: Array
    evaluations: Array
    elapsed: Array
    message: Array
    starts: Array
    agreeing: Array
    settled: Array
    results: tuple[FlipResult, ...] = field(default=(), repr=False)

    @property
    def success(self) -> Array:
        """Which entries are verified closest flip points, (entries,) bool."""
        return np.array([status is Status.CONVERGED for status in self.status], dtype=bool)

    def __len__(self) -> int:
        return len(self.row)

    @classmethod
    def of(cls, rows: Sequence[int], results: Sequence[FlipResult], n_inputs: int) -> FlipTable:
        """A table of results, one for each of ``rows``."""

        def column(values: list[Any], dtype: Any) -> Array:
            return np.array(values, dtype=dtype)

        checks = [result.check for result in results]
        status = np.empty(len(results), dtype=object)
        status[:] = [result.status for result in results]
        return cls(
            row=column(list(rows), np.int64),
            classes=column([result.classes[:2] for result in results], np.int64).reshape(len(results), 2),
            x=column([result.x for result in results], np.float64).reshape(len(results), n_inputs),
            distance=column([result.distance for result in results], np.float64),
            status=status,
            kkt_residual=column([check.kkt_residual if check else np.nan for check in checks], np.float64),
            boundary_gap=column([check.boundary_gap if check else np.nan for check in checks], np.float64),
            evaluations=column([result.evaluations.total for result in results], np.int64),
            elapsed=column([result.elapsed for result in results], np.float64),
            message=column([result.message for result in results], object),
            starts=column([result.starts for result in results], np.int64),
            agreeing=column([result.agreeing for result in results], np.int64),
            settled=column([result.settled for result in results], bool),
            results=tuple(results),
        )

    def nearest(self) -> FlipTable:
        """One entry a row: its closest verified flip, or its closest point of any status if none is verified."""
        order = np.lexsort((np.nan_to_num(self.distance, nan=np.inf), ~self.success, self.row))
        first = np.concatenate([[True], np.diff(self.row[order]) > 0]) if len(order) else np.empty(0, dtype=bool)
        return self[order[first]]

    def __getitem__(self, keep: Array) -> FlipTable:
        """The entries at indices or of a mask."""
        index = np.arange(len(self))[keep]
        arrays = {name: getattr(self, name)[index] for name in _ARRAYS}
        return FlipTable(**arrays, results=tuple(self.results[k] for k in index) if self.results else ())

    @classmethod
    def join(cls, parts: Sequence[FlipTable]) -> FlipTable:
        """The entries of several tables, in order."""
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _ARRAYS}
        return cls(**arrays, results=tuple(result for part in parts for result in part.results))

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame of everything but the points (needs pandas)."""
        from flipopt.common.checks import optional_package

        frame: pandas.DataFrame = optional_package("pandas", "bench", "to_pandas").DataFrame(self._columns())
        return frame

    def _columns(self) -> dict[str, Any]:
        return {
            "row": self.row,
            "i": self.classes[:, 0],
            "j": self.classes[:, 1],
            **{name: getattr(self, name) for name in _VALUES if name not in ("status", "message")},
            "status": [status.name for status in self.status],
            "message": list(self.message),
        }

    def save(self, path: str | Path) -> None:
        """Write a Parquet file, whole or not at all; :meth:`load` reads it."""
        save_tables([self], path)

    def _to_arrow(self) -> Any:
        import pyarrow as pa

        points = pa.FixedSizeListArray.from_arrays(pa.array(self.x.reshape(-1)), self.x.shape[1])
        return pa.table({**self._columns(), "x": points})

    @classmethod
    def load(cls, path: str | Path) -> FlipTable:
        """Read what :meth:`save` wrote."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = Path(path)
        require_file(path)
        try:
            table = pq.read_table(path, memory_map=False)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise FileFormatError(f"{path}: not a Parquet file: {error}") from error
        missing = [name for name in (*TABLE_COLUMNS, "x") if name not in table.column_names]
        if missing:
            raise FileFormatError(f"{path}: lacks the columns {', '.join(missing)}")
        try:
            return cls._from_arrow(table)
        except (KeyError, ValueError, TypeError, AttributeError, pa.ArrowException) as error:
            raise FileFormatError(f"{path}: not a table of flip points: {error}") from error

    @classmethod
    def _from_arrow(cls, table: Any) -> FlipTable:
        columns = {name: table[name].to_numpy() for name in TABLE_COLUMNS}
        points = table["x"].combine_chunks()
        shape = len(points), points.type.list_size
        x = points.flatten().to_numpy(zero_copy_only=False).reshape(shape).astype(np.float64)
        status = np.empty(len(points), dtype=object)
        status[:] = [Status[name] for name in columns["status"]]
        classes = np.column_stack([columns["i"], columns["j"]]).astype(np.int64)
        plain = {name: columns[name] for name in ("distance", "kkt_residual", "boundary_gap", "elapsed")}
        return cls(
            row=columns["row"].astype(np.int64),
            classes=classes,
            x=x,
            status=status,
            evaluations=columns["evaluations"].astype(np.int64),
            message=columns["message"],
            starts=columns["starts"].astype(np.int64),
            agreeing=columns["agreeing"].astype(np.int64),
            settled=columns["settled"].astype(bool),
            **{name: values.astype(np.float64) for name, values in plain.items()},
        )


def save_tables(tables: Iterable[FlipTable], path: str | Path) -> None:
    """Write tables to one Parquet file as they come, whole or not at all: no more than one is held in memory."""
    import pyarrow.parquet as pq

    with atomic_path(path) as temporary:
        pieces = iter(tables)
        first = next(pieces, None)
        if first is None:
            raise InputError("tables: expected at least one table of flip points, found none")
        with pq.ParquetWriter(temporary, first._to_arrow().schema) as writer:
            for table in chain([first], pieces):
                writer.write_table(table._to_arrow())
