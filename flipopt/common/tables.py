"""Columns that people take elsewhere: as a pandas DataFrame or a Parquet file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flipopt.common.checks import Array, optional_package
from flipopt.common.columns import Columns
from flipopt.common.writing import atomic_path

if TYPE_CHECKING:
    import pandas

PAIRS = {"classes": ("i", "j")}
"""Fields of two columns, and what those are called in a table."""


class Table(Columns):
    """A dataclass of arrays, a record along their first axis each: the base of the results of analyses.

    A field (records,) is a column of its name; ``classes`` (records, 2) are the columns i and j; other fields with more
    axes, such as points, are not in the DataFrame, and lists of numbers in the file.
    """

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame of all plain columns (needs pandas)."""
        plain = {name: values for name, values in self._columns().items() if values.ndim == 1}
        frame: pandas.DataFrame = optional_package("pandas", "bench", "to_pandas").DataFrame(plain)
        return frame

    def save(self, path: str | Path) -> None:
        """Write a Parquet file, whole or not at all."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({name: _column(values) for name, values in self._columns().items()})
        with atomic_path(path) as temporary:
            pq.write_table(table, temporary)

    def _columns(self) -> dict[str, Array]:
        columns: dict[str, Array] = {}
        for name in self.names():
            values = getattr(self, name)
            columns |= dict(zip(PAIRS[name], values.T, strict=True)) if name in PAIRS else {name: values}
        return columns


def _column(values: Array) -> Any:
    import pyarrow as pa

    if values.ndim == 1:
        return pa.array(values)
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), math.prod(values.shape[1:]))
