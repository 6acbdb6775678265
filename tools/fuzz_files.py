"""Load mutants of every kind of file, and report what is neither read nor refused with a FlipoptError.

    python tools/fuzz_files.py --mutants 20000 --seed 7 --out benchmarks/results/fuzz.csv

Mutant k of a seed is always the same. A worker process loads one after the other, with 2 GB of memory beyond what it
has at its start and 10 seconds for each; a worker that dies is a finding, and the next one goes on after it. A file
that is opened outside of the mutant's folder is one too: by Python (an audit hook) or by a library (secrets in the
working directory and beside the folder are watched, on Linux). With --out, rows are appended as they come, and a run
that was stopped goes on.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import json
import os
import resource
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

MEMORY, SECONDS, PATIENCE = 2 * 10**9, 10, 30
"""Bytes and seconds of a mutant, and seconds until a worker that no longer answers is ended."""
COLUMNS = ("seed", "mutant", "kind", "outcome", "place", "seconds", "megabytes", "opened")
GOOD = ("read", "FileFormatError", "InputError", "LimitError", "ControlFlowError", "NotDenseError", "DerivativeError")
OPENED, LOOKED = 0x20, 0x1
"""inotify's IN_OPEN and IN_ACCESS."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", help="beginnings of names of kinds; all without")
    parser.add_argument("--out", type=Path, help="a .csv file with a row a mutant")
    parser.add_argument("--table", type=Path, help="a .csv file with a row a kind")
    parser.add_argument("--only", type=int, help="this one mutant, with its traceback")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only is not None:
        show(asked.seed, asked.only)
    elif asked.worker is not None:
        work(asked.seed, asked.worker, asked.mutants, asked.kinds)
    else:
        rows = list(run(asked.seed, asked.mutants, asked.kinds, asked.out))
        figures = table(rows)
        if asked.table is not None:
            with asked.table.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(figures[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(figures)
        sys.exit(report(rows, figures))


def run(seed: int, mutants: int, kinds: list[str] | None, out: Path | None) -> Iterator[dict[str, Any]]:
    """A row a mutant, those of an earlier run that was stopped first."""
    done: list[dict[str, Any]] = []
    if out is not None and out.exists():
        with out.open(newline="") as file:
            done = [row for row in csv.DictReader(file) if int(row["seed"]) == seed]
    yield from done
    at = 1 + max((int(row["mutant"]) for row in done), default=-1)
    new = out is not None and not out.exists()
    with open(os.devnull if out is None else out, "a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        while at < mutants:
            for row in worked(seed, at, mutants, kinds):
                at = row["mutant"] + 1
                if row["outcome"] != "skipped":
                    writer.writerow(row)
                    file.flush()
                    yield row


def worked(seed: int, start: int, mutants: int, kinds: list[str] | None) -> Iterator[dict[str, Any]]:
    """What one worker says until it is done or dies; its death is the row of the mutant that it was at."""
    command = [sys.executable, __file__, "--worker", str(start), "--seed", str(seed), "--mutants", str(mutants)]
    at = start
    with subprocess.Popen(
        command + (["--kinds", *kinds] if kinds else []), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as worker:
        assert worker.stdout is not None
        if worker.stdout.readline().strip() != b"ready":
            raise RuntimeError(f"the worker does not start: {' '.join(command)}")
        watch = selectors.DefaultSelector()
        watch.register(worker.stdout, selectors.EVENT_READ)
        while True:
            answered = watch.select(PATIENCE)
            line = worker.stdout.readline() if answered else b""
            if not line:
                if not answered:
                    worker.kill()
                break
            row = json.loads(line)
            at = row["mutant"] + 1
            yield row
        code = worker.wait()
    if at < mutants:
        end = "hangs" if not answered else f"dies by {signal.Signals(-code).name}" if code < 0 else f"exits with {code}"
        yield dict(zip(COLUMNS, (seed, at, kind_of(at, kinds), end, "", PATIENCE, 0, ""), strict=True))


def work(seed: int, start: int, mutants: int, kinds: list[str] | None) -> None:
    """Load mutants and print a row of each as JSON."""
    from tools.mutants import KINDS

    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        home = Path(name).resolve()
        watched = watch_secrets(home)
        for kind in KINDS.values():  # what is imported late is imported now
            with folder_of(home) as folder:
                kind.load(kind.build(folder))
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        opened = watch_opens()
        print("ready", flush=True)
        for mutant in range(start, mutants):
            kind = kind_of(mutant, kinds)
            row = {"seed": seed, "mutant": mutant, "kind": kind, "outcome": "skipped"}
            if kind:
                row |= one(seed, mutant, kind, home, opened, watched)
            print(json.dumps(row), flush=True)


def one(seed: int, mutant: int, kind: str, home: Path, opened: set[str], watched: Any) -> dict[str, Any]:
    """Load one mutant."""
    import numpy as np

    from tools.mutants import KINDS
    from tools.mutants import mutant as make

    with folder_of(home) as folder:
        path = make(KINDS[kind], folder, np.random.default_rng([seed, mutant]))
        before = reset_peak()
        watched()
        opened.clear()
        start = time.perf_counter()
        outcome, place = "read", ""
        signal.signal(signal.SIGALRM, too_late)
        signal.alarm(SECONDS)
        try:
            KINDS[kind].load(path)
        except BaseException as error:
            outcome, place = type(error).__name__, places(error)
        finally:
            signal.alarm(0)
        seconds = time.perf_counter() - start
        others = [*(name for name in sorted(opened) if not name.startswith(str(folder))), *watched()]
    if outcome in GOOD:
        place = ""
    return {
        "outcome": outcome,
        "place": place,
        "seconds": round(seconds, 3),
        "megabytes": round(peak() - before),
        "opened": " ".join(others),
    }


def too_late(*_: object) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def places(error: BaseException) -> str:
    """The last line of flipopt and the last of all that an error went through, and what it says."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"{os.sep}flipopt{os.sep}" in frame.filename][-1:]
    shown = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in [*ours, *frames[-1:]]]
    return f"{' '.join(dict.fromkeys(shown))} {str(error)[:80]!r}"


def kind_of(mutant: int, kinds: list[str] | None) -> str:
    """The kind of a mutant; empty if it is not asked for."""
    from tools.mutants import KINDS

    name = list(KINDS)[mutant % len(KINDS)]
    return name if not kinds or any(name.startswith(kind) for kind in kinds) else ""


@contextmanager
def folder_of(home: Path) -> Iterator[Path]:
    """An empty folder for a mutant."""
    folder = home / "mutant"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def watch_opens() -> set[str]:
    """The files that Python opens from now on, but for those of packages."""
    opened: set[str] = set()
    known = (sys.prefix, sys.base_prefix, str(ROOT), "/proc/", "/sys/", "/dev/null", "/usr/lib")

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if not path.startswith(known):
                opened.add(path)

    sys.addaudithook(hook)
    return opened


def watch_secrets(home: Path) -> Any:
    """Put secrets into the working directory and beside the mutants; what was opened of them since last asked."""
    secret = b"\0" * 4096
    work_here = home / "here"
    work_here.mkdir()
    os.chdir(work_here)
    for place in (home, work_here):
        (place / "secret.bin").write_bytes(secret)
    if not sys.platform.startswith("linux"):
        return list
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.inotify_init1(os.O_NONBLOCK)
    for place in (home / "secret.bin", work_here):
        libc.inotify_add_watch(handle, os.fsencode(place), OPENED | LOOKED)

    def look() -> list[str]:
        try:
            return ["a secret"] if os.read(handle, 2**16) else []
        except BlockingIOError:
            return []

    return look


def reset_peak() -> float:
    """Forget the most memory that this process had; what it has now, in megabytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM"))


def is_finding(row: dict[str, Any]) -> bool:
    """Whether a mutant was neither read nor refused, or took too much, or something outside was opened."""
    large = float(row["seconds"]) > SECONDS or float(row["megabytes"]) * 1e6 > MEMORY
    return row["outcome"] not in GOOD or large or bool(row["opened"])


def table(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many mutants of each kind were read, refused and neither, and the most that one of them took."""
    from tools.mutants import KINDS

    return [
        {
            "kind": kind,
            "seed": some[0]["seed"],
            "mutants": len(some),
            "read": sum(row["outcome"] == "read" for row in some),
            "refused": sum(row["outcome"] in GOOD[1:] for row in some),
            "findings": sum(map(is_finding, some)),
            "seconds": max(float(row["seconds"]) for row in some),
            "megabytes": max(round(float(row["megabytes"])) for row in some),
        }
        for kind in KINDS
        if (some := [row for row in rows if row["kind"] == kind])
    ]


def report(rows: list[dict[str, Any]], figures: list[dict[str, Any]]) -> int:
    """Print the table, and the findings by place; 1 if there are any."""
    for line in ([dict(zip(figures[0], figures[0], strict=True))] if figures else []) + figures:
        print(f"{line['kind']:34}" + "".join(f"{line[name]:>10}" for name in line if name != "kind"))
    findings = [row for row in rows if is_finding(row)]
    groups = Counter((row["outcome"], row["place"], row["opened"]) for row in findings)
    for (outcome, place, opened), count in groups.most_common():
        first = next(r for r in findings if (r["outcome"], r["place"], r["opened"]) == (outcome, place, opened))
        print(f"{count:6} {outcome} {place} {opened} (first: mutant {first['mutant']}, {first['kind']})")
    print(f"{len(rows)} mutants, {len(findings)} findings")
    return int(bool(findings))


def show(seed: int, mutant: int) -> None:
    """Load one mutant, and let what it raises be seen; the file stays."""
    import numpy as np

    from tools.mutants import KINDS
    from tools.mutants import mutant as make

    folder = Path(tempfile.mkdtemp())
    kind = KINDS[kind_of(mutant, None)]
    path = make(kind, folder, np.random.default_rng([seed, mutant]))
    print(kind_of(mutant, None), path)
    kind.load(path)


if __name__ == "__main__":
    main()
