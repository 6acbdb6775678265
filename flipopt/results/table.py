"""The table of many flip points, and its Parquet file (docs/reference/files.md)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from flipopt.common.checks import Array, optional_package
from flipopt.common.columns import Columns
from flipopt.common.errors import InputError
from flipopt.common.later import later
from flipopt.common.writing import atomic_path
from flipopt.networks.protocol import Network
from flipopt.results.better import order
from flipopt.results.html import described, table_html
from flipopt.results.result import PROVED, FlipResult
from flipopt.results.status import Status
from flipopt.results.table_file import read_columns
from flipopt.runs.store import Run

if TYPE_CHECKING:
    import pandas

VALUES: dict[str, Any] = {
    **dict.fromkeys(("distance", "kkt_residual", "boundary_gap", "elapsed", "lower_bound"), np.float64),
    **dict.fromkeys(("row", "evaluations", "starts", "agreeing"), np.int64),
    "settled": np.bool_,
    **dict.fromkeys(("message", "solver"), np.object_),
}
"""Columns that are in the file as they are, and their types."""
TEXT = ("status", "message", "solver")
REQUIRED = ("i", "j", "x", "status", *(name for name in VALUES if name not in ("solver", "lower_bound")))
"""Columns of a file that can be read; it may lack the solver and the lower bounds."""


@dataclass(frozen=True, eq=False, repr=False)
class FlipTable(Columns):
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
    solver
        The name of the solver that found the point; empty if it was read from a file that does not say.
    lower_bound
        No flip of the input is nearer than this, proved; NaN where nothing was proved, see
        :func:`flipopt.proofs.prove_flips`.
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
    solver: Array
    lower_bound: Array
    results: tuple[FlipResult, ...] = field(default=(), repr=False)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(name for name in super().names() if name != "results")

    @property
    def success(self) -> Array:
        """Which entries are verified closest flip points, (entries,) bool."""
        return np.array([status is Status.CONVERGED for status in self.status], dtype=bool)

    @property
    def proved(self) -> Array:
        """Which entries have no flip nearer by more than a millionth of the distance, (entries,) bool."""
        return np.asarray(self.lower_bound >= self.distance * (1 - PROVED))

    @classmethod
    def of(cls, rows: Sequence[int], results: Sequence[FlipResult], n_inputs: int) -> FlipTable:
        """A table of results, one for each of ``rows``."""
        checks = [result.check for result in results]
        same = ("distance", "elapsed", "message", "starts", "agreeing", "settled", "solver", "lower_bound")
        values: dict[str, Any] = {
            "row": list(rows),
            "evaluations": [result.evaluations.total for result in results],
            **{name: [getattr(result, name) for result in results] for name in same},
            **{
                name: [getattr(check, name) if check else np.nan for check in checks]
                for name in ("kkt_residual", "boundary_gap")
            },
        }
        return cls(
            **{name: np.array(values[name], dtype=kind) for name, kind in VALUES.items()},
            classes=np.array([result.classes[:2] for result in results], dtype=np.int64).reshape(len(results), 2),
            x=np.array([result.x for result in results], dtype=np.float64).reshape(len(results), n_inputs),
            status=np.array([result.status for result in results], dtype=object),
            results=tuple(results),
        )

    def nearest(self) -> FlipTable:
        """One entry a row: its closest verified flip, or its closest point of any status if none is verified."""
        by_row = np.lexsort((*order(self.success, self.distance), self.row))
        return self[by_row[np.unique(self.row[by_row], return_index=True)[1]]]

    def take(self, rows: Array | slice) -> Self:
        """The entries of a mask, at indices, which may repeat, or of a slice; the same as ``table[rows]``."""
        if not isinstance(rows, slice) and np.ndim(rows) != 1:
            raise InputError(f"table[...]: expected a mask, indices or a slice, found {rows!r}")
        kept = np.arange(len(self))[rows]
        return replace(super().take(kept), results=tuple(self.results[k] for k in kept) if self.results else ())

    __getitem__ = take

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The entries of several tables, in order."""
        return replace(super().join(parts), results=tuple(result for part in parts for result in part.results))

    def to_pandas(self, network: Network | None = None) -> pandas.DataFrame:
        """A DataFrame of everything but the points (needs pandas).

        With the network the points are there too, a column for each of its features, and classes have their names.
        """
        columns = self._columns()
        if network is not None:
            classes = getattr(network, "class_names", None) or range(network.n_classes)
            features = getattr(network, "feature_names", None) or [f"x{k}" for k in range(network.n_inputs)]
            columns |= {name: [classes[k] for k in columns[name]] for name in ("i", "j")}
            columns |= dict(zip(features, self.x.T, strict=True))
        frame: pandas.DataFrame = optional_package("pandas", "bench", "to_pandas").DataFrame(columns)
        return frame

    def plot(self, path: str | Path | None = None, **options: Any) -> Any:
        """Draw the distances, and which classes they lead to: a matplotlib figure, written to ``path`` if one is given.

        With the inputs ``X=`` and their ``shape=`` the nearest are drawn as images; see
        :func:`flipopt.report.plot_flips`.
        """
        return later("report.plots:plot_flips")(self, path, **options)

    def __repr__(self) -> str:
        return f"FlipTable({described(self)})"

    def _repr_html_(self) -> str:
        return table_html(self)

    def _columns(self) -> dict[str, Any]:
        """The columns of the file but the points, in its order."""
        plain = [name for name in self.names() if name in VALUES and name not in ("row", *TEXT)]
        return {
            **{"row": self.row, "i": self.classes[:, 0], "j": self.classes[:, 1]},
            **{name: getattr(self, name) for name in plain},
            **{"status": [status.name for status in self.status]},
            **{name: list(getattr(self, name)) for name in ("message", "solver")},
        }

    def save(self, path: str | Path) -> None:
        """Write a Parquet file, whole or not at all; :meth:`load` reads it."""
        save_tables([self], path)

    def to_arrow(self) -> Any:
        """As a pyarrow table, the columns of the file."""
        import pyarrow as pa

        points = pa.FixedSizeListArray.from_arrays(pa.array(self.x.reshape(-1)), self.x.shape[1])
        columns = self._columns()
        return pa.table({**columns, **{name: pa.array(columns[name], pa.string()) for name in TEXT}, "x": points})

    @classmethod
    def load(cls, path: str | Path) -> FlipTable:
        """Read what :meth:`save` wrote, or the folder of a run; what no table can say is refused."""
        path = Path(path)
        if path.is_dir():
            return cls.join([cls.load(chunk.path) for chunk in Run(path).chunks])
        return cls(**read_columns(path, VALUES, REQUIRED))

    @classmethod
    def from_arrow(cls, table: Any) -> FlipTable:
        """From a pyarrow table with the columns of the file."""
        columns = {name: table[name].to_numpy() for name in table.column_names if name != "x"}
        columns.setdefault("lower_bound", np.full(len(table), np.nan))  # of older versions
        points = table["x"].combine_chunks()
        x = points.flatten().to_numpy(zero_copy_only=False).reshape(len(points), points.type.list_size)
        return cls(
            **{name: columns[name].astype(kind) for name, kind in VALUES.items()},
            classes=np.column_stack([columns["i"], columns["j"]]).astype(np.int64),
            x=x.astype(np.float64),
            status=np.array([Status[name] for name in columns["status"]], dtype=object),
        )


def save_tables(tables: Iterable[FlipTable], path: str | Path) -> None:
    """Write tables to one Parquet file as they come, whole or not at all: no more than one is held in memory."""
    import pyarrow.parquet as pq

    with atomic_path(path) as temporary:
        pieces = iter(tables)
        first = next(pieces, None)
        if first is None:
            raise InputError("tables: expected at least one table of flip points, found none")
        with pq.ParquetWriter(temporary, first.to_arrow().schema) as writer:
            for table in chain([first], pieces):
                writer.write_table(table.to_arrow())
