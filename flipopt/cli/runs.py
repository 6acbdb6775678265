"""``flipopt runs``: the state of a run that is kept in a folder."""

from __future__ import annotations

import time
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flipopt.results import Status
from flipopt.runs.store import OPEN, Run


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def runs(folder: Path) -> None:
    """State, rates and failures of the run in FOLDER, as `flipopt solve --run FOLDER` keeps it."""
    console, run = Console(), Run(folder)
    table = Table(show_header=False, box=None)
    for name, value in _facts(run).items():
        table.add_row(name, escape(value))
    console.print(table)
    damaged = [chunk for chunk in run.chunks if not chunk.sound]
    if damaged:
        console.print(f"{len(damaged)} chunks are damaged and will be computed again: {escape(damaged[0].path.name)}")
        return
    statuses = run.counts("status")
    if not statuses:
        return
    summary = Table("status", "entries", "meaning")
    for status in Status:
        if statuses[status.name]:
            summary.add_row(status.name, f"{statuses[status.name]:,}", status.message)
    console.print(summary)


def _facts(run: Run) -> dict[str, str]:
    done, manifest = run.done, run.manifest
    size = sum(chunk.path.stat().st_size for chunk in run.chunks)
    facts = {
        "run": f"{manifest['kind']} in {run.folder}",
        "state": f"{_share(run, done)}, {_state(run, done)}",
        "kept": f"{len(run.chunks)} chunks, {size / 1e6:.1f} MB",
        "begun": f"{manifest.get('created', '')}, {manifest.get('versions', '')}",
    }
    if pace := [entry for entry in run.pace() if entry[1] > 0]:
        items, seconds = sum(entry[0] for entry in pace), sum(entry[1] for entry in pace)
        facts["rate"] = f"{items / seconds:.4g} rows a second of a worker"
        if done < run.total < OPEN:
            facts["left"] = f"{_hours((run.total - done) * seconds / items)} of a worker"
        facts["last"] = f"chunk finished {_hours(time.time() - max(entry[2] for entry in pace))} ago"
    return facts


def _share(run: Run, done: int) -> str:
    if run.total == OPEN:
        return f"{done:,} rows on the way to their file"
    return f"{done:,} of {run.total:,} rows ({done / max(run.total, 1):.1%})"


def _state(run: Run, done: int) -> str:
    if done == run.total:
        return "complete"
    return "a process works on it" if run.busy else "stopped: the same command, or call, goes on"


def _hours(seconds: float) -> str:
    if seconds < 120:
        return f"{max(seconds, 0):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
