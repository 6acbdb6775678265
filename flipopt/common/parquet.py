"""Columns of a Parquet file from a stranger.

What pyarrow allocates follows from the headers of a file's pages and not from its footer, which may say anything. So
the headers are read first (:mod:`flipopt.common.thrift`), and pyarrow sees only files whose pages hold little enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError
from flipopt.common.files import reading, require_file
from flipopt.common.limits import limits, require_within
from flipopt.common.quoting import quoted
from flipopt.common.thrift import Thrift

MAGIC = b"PAR1"
TEXT_BYTES = 64
"""What a row of text counts as."""
BATCH_BYTES = 2**24
DEEPEST = 8
"""Levels of a schema: a list has three."""
LONGEST_HEADER = 2**16
"""Bytes of a page's header, with statistics."""


class Parquet:
    """A Parquet file: the types of its columns, and those columns that are asked for: numbers, lists of them, text."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.path, self._pa = path, pa
        size = require_file(path)
        with reading(path, "a Parquet file"), path.open("rb") as file:
            self._groups = _row_groups(file, size, path)
            self._file = pq.ParquetFile(pa.OSFile(str(path)))
            self.schema = self._file.schema_arrow
            self.rows = int(self._file.metadata.num_rows)
            self.names = tuple(str(name) for name in self.schema.names)
        if self.rows < 0 or len(set(self.names)) != len(self.names):
            raise FileFormatError(f"{path}: expected columns of different names, found {quoted(self.names)}")

    def kind(self, name: str) -> str:
        """``number``, ``list`` (of numbers), ``text``, or the type of any other column."""
        types, kind = self._pa.types, self.schema.field(name).type
        if _is_number(types, kind):
            return "number"
        if any(test(kind) for test in (types.is_list, types.is_large_list, types.is_fixed_size_list)):
            return "list" if _is_number(types, kind.value_type) else str(kind)
        return "text" if types.is_string(kind) or types.is_large_string(kind) else str(kind)

    def read(self, names: tuple[str, ...]) -> dict[str, Array]:
        """Columns by name: numbers (rows,), null as NaN; lists (rows, width), float64; text (rows,), objects."""
        kinds = {name: self.kind(name) for name in names}
        for name, kind in kinds.items():
            if kind not in ("number", "list", "text"):
                raise FileFormatError(f"{self.path}: column {quoted(name)}: expected numbers or text, found {kind}")
        values = self._require_small(names)
        widths = {name: self._width(name, values[name]) for name in names if kinds[name] == "list"}
        per_row = sum(TEXT_BYTES if kinds[name] == "text" else 8 * widths.get(name, 1) for name in names)
        require_within(self.rows * per_row, limits().size, f"{self.path}: bytes of its {self.rows} rows")
        columns = {name: np.empty((self.rows, width)) for name, width in widths.items()}
        columns |= {name: np.empty(self.rows, self._dtype(name)) for name in names if name not in widths}
        done = 0
        for batch in self._batches(names, max(1, BATCH_BYTES // max(1, per_row))):
            for name in names:
                column = batch.column(batch.schema.get_field_index(name))
                if column.null_count and columns[name].dtype.kind in "iub":  # a null is NaN
                    columns[name] = columns[name].astype(np.float64)
                place = columns[name][done : done + len(column)]
                if name in widths:
                    place[:] = self._lists(column, name, widths[name])
                else:
                    place[:] = self._text(column) if kinds[name] == "text" else self._numbers(column)
            done += batch.num_rows
        if done != self.rows:
            raise FileFormatError(f"{self.path}: expected {self.rows} rows, found {done}")
        return columns

    def _batches(self, names: tuple[str, ...], rows: int) -> Iterator[Any]:
        """Record batches of at most ``rows``, as the file has them."""
        import pyarrow.parquet as pq

        text = [name for name in names if self.kind(name) == "text"]
        done = 0
        with reading(self.path, "a Parquet file"):
            # Text as indices into its different values: one long text in a million rows is kept once.
            file = pq.ParquetFile(self._pa.OSFile(str(self.path)), read_dictionary=text, pre_buffer=False)
            for batch in file.iter_batches(rows, columns=list(names), use_threads=False):
                done += batch.num_rows
                if done > self.rows:
                    raise FileFormatError(f"{self.path}: expected {self.rows} rows, found {done}")
                yield batch

    def _require_small(self, names: tuple[str, ...]) -> dict[str, int]:
        """How many values the pages of every column hold; raise if they unpack to more than allowed."""
        owners = [name for name in self.names for _ in range(_leaves(self.schema.field(name).type))]
        values, unpacked, pages = dict.fromkeys(names, 0), 0, 0
        with reading(self.path, "a Parquet file"), self.path.open("rb") as file:
            for group in self._groups:
                for chunk, name in zip(group[1], owners, strict=True):
                    for count, size in _pages(file, chunk[3]) if name in values else ():
                        values[name], unpacked, pages = values[name] + count, unpacked + size, pages + 1
                        require_within(pages, limits().pages, f"{self.path}: pages")
        require_within(unpacked, limits().size, f"{self.path}: bytes that it unpacks to")
        require_within(8 * max(values.values()), limits().size, f"{self.path}: bytes of the numbers in a column")
        return values

    def _width(self, name: str, values: int) -> int:
        kind = self.schema.field(name).type
        if self._pa.types.is_fixed_size_list(kind):
            return int(kind.list_size)
        if not self.rows or values % self.rows:
            raise FileFormatError(f"{self.path}: column {quoted(name)}: expected lists of one length in every row")
        return values // self.rows

    def _lists(self, column: Any, name: str, width: int) -> Array:
        with reading(self.path, "a Parquet file"):
            lengths = column.value_lengths().to_numpy(zero_copy_only=False)
            flat = np.asarray(column.flatten().to_numpy(zero_copy_only=False))
        if column.null_count or not (lengths == width).all() or flat.size != len(column) * width:
            raise FileFormatError(f"{self.path}: column {quoted(name)}: expected lists of one length in every row")
        return flat.reshape(len(column), width)

    def _dtype(self, name: str) -> Any:
        """What numpy keeps a column of numbers or text in."""
        types, kind = self._pa.types, self.schema.field(name).type
        if types.is_boolean(kind) or types.is_integer(kind):
            return np.bool_ if types.is_boolean(kind) else np.uint64 if kind == self._pa.uint64() else np.int64
        return np.float64 if types.is_floating(kind) else object

    def _text(self, column: Any) -> Array:
        with reading(self.path, "a Parquet file"):  # which may hold bytes that are no text
            return _objects(column)

    def _numbers(self, column: Any) -> Array:
        with reading(self.path, "a Parquet file"):
            return np.asarray(column.to_numpy(zero_copy_only=False))


def _leaves(kind: Any) -> int:
    """Columns of a Parquet file that make one column of the type ``kind``."""
    return sum(_leaves(kind.field(k).type) for k in range(kind.num_fields)) or 1


def _is_number(types: Any, kind: Any) -> bool:
    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind))


def _objects(column: Any) -> Array:
    """Text (rows,), every different one once; None for a null."""
    known = column.dictionary_encode() if not hasattr(column, "dictionary") else column
    different = np.array([*known.dictionary.to_pylist(), None], dtype=object)
    index = known.indices.fill_null(len(different) - 1).to_numpy(zero_copy_only=False)
    return np.asarray(different[index])


def _row_groups(file: IO[bytes], size: int, path: Path) -> list[dict[int, Any]]:
    """The row groups of a footer that is small and whose schema is flat: pyarrow descends into it without a limit.

    They are not asked of pyarrow, which ends the whole process for some that are damaged.
    """
    file.seek(max(0, size - 8))
    end = file.read(8)
    length = int.from_bytes(end[:4], "little")
    if end[4:] != MAGIC or length + 12 > size:
        raise FileFormatError(f"{path}: not a Parquet file: it has no footer")
    require_within(length, limits().directory // 2, f"{path}: bytes of its footer")
    file.seek(size - 8 - length)
    footer = Thrift(file.read(length)).struct()
    open_groups: list[int] = []
    for element in footer[2]:
        while open_groups and open_groups[-1] == 0:
            open_groups.pop()
        if open_groups:
            open_groups[-1] -= 1
        open_groups.append(int(element.get(5, 0)))
        if len(open_groups) > DEEPEST:
            raise FileFormatError(f"{path}: expected columns of numbers, lists or text, found deeper ones")
    return list(footer[4])


def _pages(file: IO[bytes], chunk: dict[int, Any]) -> Iterator[tuple[int, int]]:
    """How many values every page of a column holds, and the bytes that it unpacks to, by its header."""
    if chunk[5] <= 0:  # values, of which there are none: none of its pages is read
        return
    start, dictionary = chunk[9], chunk.get(11, 0)
    start = dictionary if 0 < dictionary < start else start
    end = start + chunk[7]
    while start < end:
        file.seek(start)
        thrift = Thrift(file.read(min(LONGEST_HEADER, end - start)))
        header = thrift.struct()
        unpacked, packed = header[2], header[3]
        if unpacked < 0 or packed < 0:
            raise ValueError("a page of negative size")
        of_data = header.get(5) or header.get(8) or {}
        yield max(0, of_data.get(1, 0)), unpacked
        start += thrift.at + packed
