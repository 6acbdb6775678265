"""Rows of a file that may be days in the making: kept at once in a run beside it, and in the file itself soon after.

The run, FILE.run, has chunks of rows that are not in the file yet. They go when the file has been written whole with
them; the manifest stays, so that rows of other settings are refused as long as it is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flipopt.common.writing import require_writable_name, storing
from flipopt.runs.locks import exclusive
from flipopt.runs.rows import Row, Sheet
from flipopt.runs.store import OPEN, Run

SETTLED = 60.0
"""Seconds after which rows go from the run to the file while there are more to come."""

Add = Callable[[Iterable[Row]], None]


@contextmanager
def keeping(
    path: Path,
    sheet: Sheet,
    kind: str,
    what: Mapping[str, Any] | None = None,
    tell: Callable[[str], object] = lambda words: None,
) -> Iterator[Add]:
    """A function that adds rows to the file ``path``: whatever ends the process, they are known the next time.

    Inside the block the file has all rows that are known, and nobody else adds to it; another process is waited for.
    Rows of another ``kind``, or where ``what`` is computed was something else, are refused.
    """
    require_writable_name(path)
    folder = path.with_name(f"{path.name}.run")
    otherwise = f"choose another file than {path.name}, or delete it and this folder"
    run = Run.begin(folder, kind, what or {}, OPEN, 1, otherwise)

    def waiting() -> None:
        tell(f"{path}: waiting for another process that works on it")

    with exclusive(run.lock, waiting):
        for chunk in run.repair():
            tell(f"{chunk.path}: damaged, its rows are computed again")
        ledger = _Ledger(run, path, sheet)
        ledger.settle()
        try:
            yield ledger.add
        finally:
            ledger.settle()


class _Ledger:
    """All rows as text, and how many of them only the run has."""

    def __init__(self, run: Run, path: Path, sheet: Sheet) -> None:
        self.run, self.path, self.sheet = run, path, sheet
        self.rows = sheet.read(path)
        known = {sheet.name(row) for row in self.rows}  # a process may end when the file is written and chunks are left
        kept = [row for table in run.tables() for row in table.to_pylist()]
        self.rows += [row for row in kept if sheet.name(row) not in known]
        self.pending = len(kept)
        self.settled = self.added = time.monotonic()

    def add(self, rows: Iterable[Row]) -> None:
        """Keep rows: when this returns they are on the disk."""
        import pyarrow as pa

        new = [{name: str(row[name]) for name in self.sheet.columns} for row in rows]
        if not new:
            return
        now = time.monotonic()
        self.run.add(range(self.pending, self.pending + len(new)), pa.Table.from_pylist(new), now - self.added)
        self.rows += new
        self.pending, self.added = self.pending + len(new), now
        if now - self.settled > SETTLED:
            self.settle()

    def settle(self) -> None:
        """Write the file whole, if the run has rows for it, and then empty the run."""
        if self.pending:
            self.sheet.write(self.path, self.rows)
            for chunk in self.run.chunks:
                with storing(chunk.path):
                    chunk.path.unlink(missing_ok=True)
        self.pending, self.settled = 0, time.monotonic()
