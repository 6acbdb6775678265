"""The rows of a comparison: one a problem and method, appended as they come, so that a stopped run can go on."""

from __future__ import annotations

import csv
import platform
import subprocess
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from flipopt.common.errors import FileFormatError
from flipopt.common.files import atomic_path
from flipopt.runs.threads import cores

Row = dict[str, Any]

COLUMNS = (
    "family", "problem", "n", "method", "status", "feasible", "distance", "ratio", "boundary_gap", "kkt_residual",
    "forward", "backward", "hessian", "iterations", "seconds", "message", "cpu", "cores", "versions", "commit",
)  # fmt: skip
WHOLE = ("n", "forward", "backward", "hessian", "iterations")
REAL = ("distance", "ratio", "boundary_gap", "kkt_residual", "seconds")
PACKAGES = ("flipopt", "numpy", "scipy", "casadi", "nlopt", "torch", "foolbox", "adv-lib", "openturns")


def facts() -> Row:
    """Processor, cores, versions and commit: they go into every row."""
    versions = [f"python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return {
        "cpu": cpu(),
        "cores": cores(),
        "versions": "; ".join(versions),
        "commit": commit(),
    }


def commit() -> str:
    """The commit of the checkout that this is, or unknown."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def cpu() -> str:
    """The name of the processor."""
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def read_rows(path: Path) -> list[Row]:
    """The rows of a file, with their numbers as numbers; none if there is no file yet.

    A last line that a killed run has left unfinished is passed over.
    """
    if not path.exists():
        return []
    return [_parsed(path, row) for row in _texts(path)]


def _texts(path: Path) -> list[dict[str, str]]:
    """The finished lines of a file, by column."""
    text = path.read_text()
    lines = text[: text.rfind("\n") + 1].splitlines()
    if lines and tuple(next(csv.reader(lines[:1]))) != COLUMNS:
        raise FileFormatError(f"{path}: expected the columns of a comparison ({', '.join(COLUMNS)})")
    return list(csv.DictReader(lines))


def write_ratios(path: Path, best: Mapping[str, float]) -> None:
    """Put the ratio of every distance to the ``best`` one of its problem into a file of rows.

    It is not known before all methods have had their turn, so rows are appended without it.
    """
    rows = _texts(path)
    for row in rows:
        row["ratio"] = f"{float(row['distance']) / best.get(row['problem'], np.nan):.9g}"
    with atomic_path(path) as temporary, temporary.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def _parsed(path: Path, row: dict[str, str]) -> Row:
    try:
        numbers = {name: int(row[name]) for name in WHOLE} | {name: float(row[name]) for name in REAL}
    except (TypeError, ValueError) as error:
        raise FileFormatError(f"{path}: problem {row.get('problem')}, method {row.get('method')}: {error}") from error
    return row | numbers | {"feasible": row["feasible"] == "True"}


class Appender:
    """Appends rows to a file, each of them whole or not at all."""

    def __init__(self, path: Path) -> None:
        if path.exists():
            self._cut_unfinished(path)
        self.stream = path.open("a", newline="")
        self.writer = csv.DictWriter(self.stream, COLUMNS)
        if self.stream.tell() == 0:
            self.writer.writeheader()
        self.facts = facts()

    def _cut_unfinished(self, path: Path) -> None:
        """Remove a last line without an end, which a killed run has left."""
        with path.open("rb+") as stream:
            stream.truncate(stream.read().rfind(b"\n") + 1)

    def add(self, rows: Iterable[Row]) -> None:
        self.writer.writerows(row | self.facts for row in rows)
        self.stream.flush()

    def __enter__(self) -> Appender:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()


def empty_row(family: str, problem: str, n: int, method: str, status: str, message: str, seconds: float) -> Row:
    """The row of a method that has left nothing but a message."""
    nothing = dict.fromkeys(("distance", "ratio", "boundary_gap", "kkt_residual"), np.nan)
    zeros = dict.fromkeys(("forward", "backward", "hessian", "iterations"), 0)
    head = {"family": family, "problem": problem, "n": n, "method": method, "status": status, "feasible": False}
    return head | nothing | zeros | {"seconds": round(seconds, 4), "message": message}
