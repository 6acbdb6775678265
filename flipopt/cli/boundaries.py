"""What `flipopt borderline` and `flipopt characterise` share: options, what is asked for, the list in the terminal."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flipopt.borderline import DeepDigOptions, Instances, Measuring, Profile, carry, deepdig
from flipopt.borderline.dug import MANIFEST
from flipopt.cli.auditing import Audited, read_audited
from flipopt.common.errors import InputError
from flipopt.common.quoting import plain
from flipopt.explain.matching import as_labels, class_names
from flipopt.report.audit.boundaries import missing
from flipopt.runs.stopping import advise

MOST_ROWS, GIVEN = 10, "given_success"
"""Pairs that are listed, and the column that only DeepDIG fills."""
LONGEST = 300
"""Characters of a reason why something is missing."""
SHOWN = (
    ("closest_distance", "closest flip", "{:.3g}"),
    ("rpbs_success", "RPBS", "{:.0%}"),
    ("epbs_success", "EPBS", "{:.0%}"),
    (GIVEN, "DeepDIG", "{:.0%}"),
    ("idc", "IDC", "{:.3f}"),
    ("edc1_borderline", "EDC1", "{:.2f}"),
    ("edc2_borderline", "EDC2", "{:.0f}%"),
)
"""Columns of the list: names, heads and forms."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A network with its samples, the names and numbers of its classes, and what of them is measured how.

    ``labels`` (rows,) are positions; ``pairs`` is "all" or a list of pairs of positions; ``maps`` is the folder of
    DeepDIG's autoencoders, which take so many ``steps`` if they are still to be trained.
    """

    given: Audited
    classes: tuple[str, ...]
    labels: Any
    pairs: Any
    measuring: Measuring
    maps: Path | None
    steps: int
    run: Path | None
    executor: str

    @classmethod
    def read(
        cls,
        net: str,
        data: Path | None,
        labels: str | None,
        pair: tuple[tuple[str, str], ...],
        all_pairs: bool,
        folder: Path | None,
        executor: str,
        names: str | None,
        rows: int | None,
        samples: int,
        flips: int,
        on: str,
        maps: Path | None,
        steps: int,
        starts: int,
        bounds: tuple[float, float] | None,
        seed: int,
        images: Path | None = None,
        shape: str | None = None,
    ) -> Asked:
        """From the arguments of a command."""
        if pair and all_pairs:
            raise InputError("--all-pairs: expected no --pair beside it")
        kept = " and ".join(str(place) for place in (maps, folder) if place is not None)
        how = "nothing was written; with --run FOLDER what is finished is kept"
        advise(f"what is finished is kept in {kept}, and the same command goes on" if kept else how)
        options = Measuring(pairs=samples, flips=flips, on=on, starts=starts, bounds=bounds or None, seed=seed)
        given = read_audited(net, data, labels, images, shape, names, None, rows)
        classes = tuple(plain(name) for name in class_names(given.classes, given.network))
        truth = None
        if given.labels is not None:
            truth = as_labels(given.labels, len(given.X), classes, given.network.n_classes)
        pairs = [[_class(k, classes) for k in two] for two in pair] or "all"
        return cls(given, classes, truth, pairs, options, maps, steps, folder, executor)

    def instances(self, console: Console) -> Instances | None:
        """What DeepDIG finds, if it was asked for: by the autoencoders in the folder, which are trained if there are
        none."""
        if self.maps is None:
            return None
        about = (self.given.network, self.given.X, self.labels, self.pairs)
        if not (self.maps / MANIFEST).exists():
            options = DeepDigOptions(steps=self.steps, seeds=(self.measuring.seed,), count=self.measuring.pairs)
            unfinished = self.maps / "unfinished"
            found = deepdig(*about, options, run=unfinished, executor=self.executor, progress=True)
            found.save(self.maps)
            shutil.rmtree(unfinished)
            console.print(f"autoencoders in {self.maps}", highlight=False)
        else:
            net, X, labels, pairs = about
            found = carry(net, self.maps, X, labels, pairs, self.measuring.pairs, progress=True)
        console.print(found.summary(), markup=False, highlight=False)
        return found.instances


def boundary_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that both commands have."""
    labels = "Classes of the rows: a .npy, .npz, .csv or .parquet file, or a column of DATA.  [default: predicted]"
    run = "A folder that keeps every boundary that is finished: the same command goes on where it was stopped."
    folder, on = click.Path(path_type=Path, file_okay=False), click.Choice(["rpbs", "epbs", "closest"])
    who, names = "threads|processes|ADDRESS", "Of the classes: a,b,c, or a file with one a line."
    work = f"Who does the work; {who.split('|')[-1]} is that of a Dask scheduler."
    few = "Sources of a direction for RPBS and EPBS, at most."
    closest = "Sources of a direction for closest flip points; 0: none."
    maps = "DeepDIG too, and IDC and EDC on what it finds: by the autoencoders in this folder, trained if it has none."
    limits = "Lower and upper bound of every feature of a closest flip point."
    options = (
        click.option("--labels", help=labels),
        click.option("--pair", nargs=2, multiple=True, metavar="S T", help="Two classes; may be given several times."),
        click.option("--all-pairs", is_flag=True, help="All pairs of classes that have samples: the default."),
        click.option("--run", "folder", type=folder, help=run),
        click.option("--executor", default="threads", show_default=True, metavar=who, help=work),
        click.option("--names", help=names),
        click.option("--rows", type=click.IntRange(min=1), help="Only the first rows of the data."),
        click.option("--samples", default=200, show_default=True, help=few),
        click.option("--flips", default=50, show_default=True, help=closest),
        click.option("--on", type=on, default="epbs", show_default=True, help="What IDC and EDC are measured on."),
        click.option("--maps", type=folder, help=maps),
        click.option("--steps", default=DeepDigOptions.steps, show_default=True, help="To train an autoencoder."),
        click.option("--starts", default=200, show_default=True, help="Start points of IDC, at most."),
        click.option("--bounds", nargs=2, type=float, help=limits),
        click.option("--seed", default=0, show_default=True, help="Of all choices."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _class(text: str, classes: tuple[str, ...]) -> int:
    """A class by its name or number."""
    if text in classes:
        return classes.index(text)
    if text.isdigit() and int(text) < len(classes):
        return int(text)
    raise InputError(f"--pair: expected classes by name or from 0 to {len(classes) - 1}, found {text!r}")


def show(console: Console, found: Profile) -> None:
    """The most fragile pairs, and everything in a few sentences."""
    shown = [column for column in SHOWN if column[0] != GIVEN or np.isfinite(found.given_success).any()]
    table = Table("from", "to", *(head for _, head, _ in shown), title="The most fragile pairs")
    some = found.most_fragile(MOST_ROWS)
    for k, (s, t) in enumerate(some.classes):
        values = [(float(getattr(some, name)[k]), form) for name, _, form in shown]
        cells = ["" if np.isnan(value) else form.format(value) for value, form in values]
        table.add_row(*(escape(found.name_of(int(c))) for c in (s, t)), *cells)
    console.print(table)
    console.print(found.summary(), markup=False, highlight=False)
    for words in missing(found):
        console.print(plain(words, LONGEST), markup=False, highlight=False)
