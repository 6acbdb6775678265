"""What ``python -m benchmarks batch`` shows: tables for the terminal and the documentation, and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from flipopt.common.writing import atomic_path

Figures = dict[tuple[str, str, str], float]
"""(part, what, name of the figure) to its value."""


@dataclass(frozen=True)
class Sheet:
    """A table: its title, the part of the figures it shows, and the figures that are its columns."""

    title: str
    part: str
    columns: tuple[str, ...]

    def lines(self, figures: Figures) -> list[list[str]]:
        """One a thing that was measured, in this part or in its large sizes."""
        parts = (self.part, f"{self.part}-large")
        mine = {(what, name): value for (part, what, name), value in figures.items() if part in parts}
        things = dict.fromkeys(what for what, _ in mine)
        lines = [[what, *(_text(mine.get((what, name)), name) for name in self.columns)] for what in things]
        return [line for line in lines if any(cell != "" for cell in line[1:])]


CLOSENESS = (
    *("verified", "median ratio to ipopt from x", "at most 1.001 of ipopt from x", "closer than ipopt from x"),
    *("farther than ipopt from x", "within 0.1% of ipopt's best of six", "ms a pair"),
)
PEERS = (
    "solved",
    "median distance",
    "median ratio",
    "closer",
    "farther",
    "closer than flipopt's starts",
    "ms an image",
)
SHEETS = (
    Sheet("300 random pairs against IPOPT", "closeness", CLOSENESS),
    Sheet(
        "Speed",
        "speed",
        ("verified", "ms a pair", "ms a pair by ipopt", "ms an image", "evaluations a pair", "by another solver"),
    ),
    Sheet(
        "With softened networks and without: random pairs (NET1), nearest class (ReLU)",
        "softening",
        ("solved", "median ratio", "closer", "farther", "evaluations", "ms an image"),
    ),
    Sheet("300 random pairs, by problems at once and by inputs", "chunks", ("ms a pair",)),
    Sheet("The same problems, batched otherwise", "independence", ("largest change",)),
    Sheet("One input, median of 39: nearest of all classes, and IPOPT for one class", "single", ("ms",)),
    Sheet(
        "What each tuned value is worth, relative to the default",
        "sensitivity",
        ("time", "evaluations", "verified", "closer", "farther"),
    ),
    Sheet("Nearest of all classes, in turns with DDN: medians of three", "turns", ("ms an image",)),
    Sheet("Number of pairs", "scale", ("ms a pair", "peak MB")),
    Sheet("Nearest of all classes, mnist-net1", "peers-mnist-net1", PEERS),
    Sheet("Nearest of all classes, mnist-fcn (784-50-50-10 ReLU)", "peers-mnist-fcn", PEERS),
    Sheet("Nearest class, cifar-2500 (n = 2500)", "peers-cifar-2500", PEERS),
)


def _text(value: float | None, name: str) -> str:
    if value is None:
        return ""
    if name.startswith("largest"):
        return f"{value:.1e}"
    if name.startswith(("ms", "evaluations", "peak", "time")):
        return f"{value:.3g}" if value < 1000 else f"{value:.0f}"
    if "median" in name or "ratio" in name:
        return f"{value:.6f}" if "ipopt" in name else f"{value:.4g}"
    return f"{100 * value:.1f}%" if value <= 1 else f"{value:g}"


def remarks(figures: Figures) -> list[str]:
    """Ratios that the issue of speed turns on, each from one part of the run."""

    def of(what: str, name: str) -> float:
        return figures[("speed", what, name)]

    if ("speed", "all pairs", "ms a pair") not in figures:
        return []
    lines = [
        f"{what}: {of(what, 'ms a pair by ipopt') / of(what, 'ms a pair'):.0f} times as many a second as IPOPT, "
        "one at a time from x"
        for what in ("all pairs", "nearest pairs")
    ]
    for dtype in ("float64", "float32"):
        network, peak = (of(dtype, f"Gflop/s of a core{where}") for where in (" in the network", ", matrix products"))
        lines.append(
            f"{of(dtype, 'share of the time in the network'):.0%} of the time is spent in the network in {dtype}, "
            f"where a core does {network:.1f} Gflop/s: {network / peak:.0%} of what it does in matrix products alone "
            f"({peak:.1f})"
        )
    return [*lines, f"nearest of all classes: {of('nearest of all', 'ms an image'):.3g} ms an image"]


def show(figures: Figures, console: Console, sheets: Sequence[Sheet] = SHEETS) -> None:
    """The tables in the terminal."""
    for sheet in sheets:
        lines = sheet.lines(figures)
        if lines:
            table = Table("", *sheet.columns, title=sheet.title)
            for line in lines:
                table.add_row(*line)
            console.print(table)
    for remark in remarks(figures):
        console.print(remark)


def write_markdown(path: Path, figures: Figures, sheets: Sequence[Sheet] = SHEETS) -> None:
    """The tables for the documentation."""
    text: list[str] = []
    for sheet in sheets:
        lines = sheet.lines(figures)
        if not lines:
            continue
        text += [f"**{sheet.title}**", "", _row(["", *sheet.columns]), _row(["---"] * (len(sheet.columns) + 1))]
        text += [*map(_row, lines), ""]
    text += [f"- {remark}" for remark in remarks(figures)]
    with atomic_path(path) as temporary:
        temporary.write_text("\n".join(text) + "\n")


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


LEAST_EXCESS = 1e-6
"""Where the picture draws what is not farther than flipopt."""


def draw(path: Path, figures: Figures) -> None:
    """Distance ratio against time for every peer, and time and memory against the number of pairs."""
    import matplotlib.pyplot as plt

    parts = [sheet for sheet in SHEETS if sheet.part.startswith("peers") and sheet.lines(figures)]
    sizes = [(int(what.split()[0]), value) for (part, what, name), value in figures.items()
             if part.startswith("scale") and name == "ms a pair"]  # fmt: skip
    panels = len(parts) + (1 if sizes else 0)
    if panels == 0:
        return
    figure, axes = plt.subplots(1, panels, figsize=(4.6 * panels, 4.2), squeeze=False, layout="constrained")
    for axis, sheet in zip(axes[0], parts, strict=False):
        for k, what in enumerate(dict.fromkeys(what for part, what, _ in figures if part == sheet.part)):
            ratio = figures.get((sheet.part, what, "median ratio"))
            if ratio is None:
                continue
            at = figures[(sheet.part, what, "ms an image")], max(ratio - 1, LEAST_EXCESS)
            axis.loglog(*at, "o", color="tab:red" if what.startswith("flipopt") else "tab:blue")
            shift = (4, 4) if k % 2 else (4, -9)
            axis.annotate(what, at, xytext=shift, textcoords="offset points", fontsize=7)
        axis.set(
            title=sheet.part.removeprefix("peers-"),
            xlabel="ms an image",
            ylabel=f"median excess over flipopt's one start (0 at {LEAST_EXCESS:.0e})",
        )
        axis.margins(x=0.25)
        axis.grid(alpha=0.3)
    if sizes:
        axes[0][-1].semilogx(*zip(*sorted(sizes), strict=True), "o-", color="tab:red")
        axes[0][-1].set(title="cost against size", xlabel="pairs", ylabel="ms a pair")
        axes[0][-1].set_ylim(bottom=0)
        axes[0][-1].grid(alpha=0.3)
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=150, format=path.suffix[1:])
    plt.close(figure)
