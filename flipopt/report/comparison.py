"""A comparison of methods as one self-contained page, and as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.writing import atomic_path
from flipopt.comparison.profiles import curve
from flipopt.comparison.table import Comparison
from flipopt.report.rendering import write_html

if TYPE_CHECKING:
    from rich.console import Console

COLOURS, STYLES = 10, ("-", "--", ":")
"""Colours of matplotlib's cycle; further methods are dashed, and then dotted."""
WITHIN = 1e-6
"""A gap to the proved optimum up to which a method has found it: what the proofs are good for."""
LEAST_EXCESS = 1e-7
"""A distance within this of the best known, relative, is drawn here."""


def write_page(path: str | Path, comparison: Comparison) -> None:
    """One .html file with profiles, distances and a table; it needs no other file and no network."""
    data = {
        "summary": summary(comparison),
        "methods": comparison.methods,
        "problems": [
            {"name": name, "family": family, "n": int(n), "best": best}
            for name, family, n, best in zip(
                comparison.problems, comparison.families, comparison.n, comparison.best, strict=True
            )
        ],
        **{name: getattr(comparison, name) for name in ("distance", "seconds", "evaluations", "proved")},
    }
    write_html(path, "comparison.html", data)


def summary(comparison: Comparison) -> str:
    """What was compared, in a sentence."""
    families, proved = len(set(comparison.families)), int(np.isfinite(comparison.proved).sum())
    words = (
        f"{len(comparison.methods)} methods on {len(comparison.problems)} problems of {families} "
        f"{'family' if families == 1 else 'families'}. Every point was verified by flipopt's own check."
    )
    return f"{words} The least distance of {proved} of them is proved." if proved else words


STANDINGS = ("method", "within 1e-3", "within 1e-6", "median ratio", "evaluations", "seconds", "failed")
GAPS = ("gap to the proved", "proved within 1e-6")
"""Further columns where optima are proved: the median gap of the points that there are, and how many have none."""


def headings(comparison: Comparison) -> tuple[str, ...]:
    """Of the columns of the standings."""
    return STANDINGS + (GAPS if np.isfinite(comparison.proved).any() else ())


def show_standings(console: Console, comparison: Comparison) -> None:
    """The standings as a table in the terminal."""
    from rich.table import Table

    table = Table(title=f"{len(comparison.problems)} problems, verified by one check")
    for heading in headings(comparison):
        table.add_column(heading, justify="left" if heading == "method" else "right", no_wrap=heading == "method")
    for line in standings(comparison):
        table.add_row(*line)
    console.print(table)


def standings(comparison: Comparison) -> list[tuple[str, ...]]:
    """One line a method, best first: shares solved, median ratio, median cost of the problems it takes, failures; and
    the gap to the proved optima, if there are any."""
    within = [np.isfinite(comparison.cost("seconds", tolerance)) for tolerance in (1e-3, 1e-6)]
    ratios, lines = comparison.ratio, []
    for m, name in enumerate(comparison.methods):
        ran = comparison.status[:, m] != ""
        loose, tight = (solved[ran, m] for solved in within)
        ratio, taken = ratios[ran, m], ran & (comparison.status[:, m] != "UNAVAILABLE")
        verified = np.isfinite(ratio)
        cells = (
            f"{loose.mean():.0%}",
            f"{tight.mean():.0%}",
            f"{np.median(ratio[verified]):.6f}" if verified.any() else "-",
            f"{np.median(comparison.evaluations[taken, m]):.0f}" if taken.any() else "-",
            f"{np.median(comparison.seconds[taken, m]):.3g}" if taken.any() else "-",
            f"{(~verified).sum()} of {ran.sum()}",
            *_gaps(comparison, m),
        )
        lines.append((loose.mean(), tight.mean(), (name, *cells)))
    return [cells for *_, cells in sorted(lines, key=lambda line: line[:2], reverse=True)]


def _gaps(comparison: Comparison, m: int) -> tuple[str, ...]:
    """The cells under GAPS of a method."""
    proved = np.isfinite(comparison.proved) & (comparison.status[:, m] != "")
    if not np.isfinite(comparison.proved).any():
        return ()
    gap = comparison.gap[proved, m]
    median = f"{np.median(gap[np.isfinite(gap)]):.1e}" if np.isfinite(gap).any() else "-"
    return median, f"{(gap <= WITHIN).sum()} of {proved.sum()}"


def draw_comparison(path: str | Path, comparison: Comparison, tolerance: float = 1e-3) -> None:
    """Performance and data profiles by evaluations and by time, and the distances, in one picture."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 11), layout="constrained")
    axes = figure.subplots(3, 2, height_ratios=(1, 1, 1.1))
    for column, unit in enumerate(("evaluations", "seconds")):
        top, middle = axes[0, column], axes[1, column]
        _draw_profile(top, comparison, comparison.performance(unit, tolerance))
        top.set(title=f"Performance profile, {unit}", xlabel="factor of the cheapest", ylabel="share solved")
        _draw_profile(middle, comparison, comparison.data(unit, tolerance))
        middle.set(title=f"Data profile, {unit}", xlabel=f"{unit} / (n + 1)", ylabel="share solved")
    _draw_distances(axes[2, 0], comparison)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    axes[2, 1].axis("off")
    axes[2, 1].legend(handles, labels, loc="center", ncols=2, fontsize=9, title=f"solved: within {tolerance:g}")
    with atomic_path(path) as temporary:
        figure.savefig(temporary, dpi=130, format=Path(path).suffix[1:])


def _draw_profile(axis: Any, comparison: Comparison, ratios: Array) -> None:
    finite = ratios[np.isfinite(ratios)]
    low, high = (finite.min(), finite.max()) if len(finite) else (1.0, 10.0)
    for m, name in enumerate(comparison.methods):
        at, share = curve(ratios[:, m])
        x = np.concatenate([[low], at, [max(high, low * 1.1)]])
        y = np.concatenate([[0.0], share, share[-1:] if len(share) else [0.0]])
        style = STYLES[m // COLOURS % len(STYLES)]
        axis.step(x, y, where="post", label=name, color=f"C{m % COLOURS}", ls=style, lw=1.4)
    axis.set_xscale("log")
    axis.set_ylim(-0.02, 1.02)
    axis.grid(alpha=0.3)


def _draw_distances(axis: Any, comparison: Comparison) -> None:
    """Box plots of the distances over the best known, whiskers at 5 and 95%."""
    excess = [np.maximum(column[np.isfinite(column)] - 1, LEAST_EXCESS) for column in comparison.ratio.T]
    axis.boxplot(excess, orientation="horizontal", whis=(5, 95), showfliers=False, widths=0.6)
    axis.set_yticks(range(1, len(excess) + 1), comparison.methods, fontsize=8)
    axis.set_xlim(LEAST_EXCESS / 2, 2 * max([LEAST_EXCESS, *(column.max() for column in excess if len(column))]))
    axis.set_xscale("log")
    axis.invert_yaxis()
    axis.grid(alpha=0.3, axis="x")
    axis.set(
        title="Distance over the best known, less 1", xlabel=f"verified points only; {LEAST_EXCESS:g} or less is 0"
    )
