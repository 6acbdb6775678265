"""How long a user waits for the first flip point: one row of four features, in a new process.

Once with nothing compiled, as right after an installation, and then with what the first process has kept on disk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.machine import facts
from flipopt.runs.rows import write_rows

COLUMNS = ("cache", "import_seconds", "first_seconds", "second_seconds", "cpu_seconds")
PROGRAM = """
import json, time
times = [time.perf_counter()]
import numpy as np
import flipopt as fo
times.append(time.perf_counter())
rng = np.random.default_rng(0)
net = fo.DenseNetwork([rng.standard_normal((4, 8)), rng.standard_normal((8, 2))], [np.zeros(8), np.zeros(2)], fo.Tanh())
for x in rng.standard_normal((2, 4)):
    assert fo.closest_flip_point(net, x, bounds=(-5.0, 5.0)).success
    times.append(time.perf_counter())
print(json.dumps([*np.diff(times), time.process_time()]))
"""


def run(out: Path) -> list[dict[str, Any]]:
    """Two processes, the second with the machine code of the first; rows to ``out`` (.csv)."""
    machine, rows = facts(), []
    with tempfile.TemporaryDirectory() as folder:
        for cache in ("empty", "kept"):
            environment = os.environ | {"NUMBA_CACHE_DIR": folder}
            process = subprocess.run(
                [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
            )
            seconds = [round(value, 3) for value in json.loads(process.stdout)]
            rows.append(dict(zip(COLUMNS, (cache, *seconds), strict=True)) | machine)
    write_rows(out, (*COLUMNS, *machine), rows)
    return rows


def show(rows: list[dict[str, Any]], console: Console) -> None:
    """The rows as a table."""
    table = Table("cache", "import s", "first call s", "second call s", "CPU s")
    for row in rows:
        table.add_row(*(str(row[name]) for name in COLUMNS))
    console.print(table)
