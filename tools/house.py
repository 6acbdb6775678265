"""The rooms of the library, what they import of each other, and a picture of it: ``python tools/house.py``.

The picture is made from the source alone, nothing is imported. tests/test_imports.py holds the library to the order.
"""

from __future__ import annotations

import ast
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "house.png"

ROOMS = (
    "common", "kernels", "runs", "networks", "bounds", "features", "problem", "paths", "verification", "results",
    "solvers", "homotopy", "flips", "proofs", "regions", "explain", "borderline", "generative", "disagreement",
    "comparison", "report", "cli",
)  # fmt: skip
"""From the ground up; each imports only from itself and from those before it. Some are not built yet."""
SOLVERS = (
    "starts", "walk", "pieces", "refinement", "template", "pieces.solver", "trust_region", "ipopt", "nlopt", "scipy",
    "full_space", "batch", "registry",
)  # fmt: skip
"""The same for the files and folders of solvers/; a file that is named with its folder has a place of its own."""


def modules() -> dict[str, Path]:
    """Every module of the library by its full name."""
    found = {}
    for path in sorted((ROOT / "flipopt").rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path) -> Iterator[str]:
    """Full names of all that a file imports, wherever in the file; ``from a import b`` gives a.b."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            yield from (f"{start}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def graph() -> dict[str, set[str]]:
    """The modules of the library that each of them imports."""
    known = modules()
    return {
        name: {full if full in known else full.rpartition(".")[0] for full in imported(path)} & known.keys()
        for name, path in known.items()
    }


def room(module: str) -> str:
    """The first folder that a module is in; empty for the package itself."""
    return [*module.split("."), ""][1]


def place(module: str, order: tuple[str, ...]) -> int | None:
    """Where in an order of names below a folder a module's name is; the longest name that it begins with counts."""
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((order.index(name) for name in names if name in order), None)


def cycle(edges: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, the first again at the end; empty if there are none."""
    done: set[str] = set()

    def search(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name not in done:
            for other in sorted(edges[name]):
                if found := search(other, [*path, name]):
                    return found
            done.add(name)
        return []

    return next((found for name in sorted(edges) if (found := search(name, []))), [])


def draw(path: Path) -> None:
    """Rooms from top to bottom with their size, and a matrix of who imports whom."""
    from matplotlib.figure import Figure

    files, edges = modules(), graph()
    rooms = [name for name in ROOMS if any(room(module) == name for module in files)]
    lines = Counter(dict.fromkeys(rooms, 0))
    for module, file in files.items():
        lines[room(module)] += len(file.read_text().splitlines())
    counts = Counter((room(one), room(other)) for one, others in edges.items() for other in others)
    figure = Figure(figsize=(13, 0.5 * len(rooms) + 1.6), layout="constrained")
    words, matrix = figure.subplots(1, 2, sharey=True, width_ratios=(1.12, 1))
    figure.suptitle(f"The house: {sum(lines[name] for name in rooms):,} lines; rooms import only from above")
    _draw_rooms(words, rooms, lines, files)
    _draw_matrix(matrix, rooms, counts)
    words.set_ylim(len(rooms) - 0.4, -0.6)
    figure.savefig(path, dpi=150)


def _draw_rooms(axis: Any, rooms: list[str], lines: Counter[str], files: dict[str, Path]) -> None:
    """A line a room: name, the first sentence of its docstring, a bar of its lines of code."""
    largest = max(lines[name] for name in rooms)
    for y, name in enumerate(rooms):
        text = ast.get_docstring(ast.parse(files[f"flipopt.{name}"].read_text())) or ""
        axis.axhspan(y - 0.5, y + 0.5, color="#f3f6fa" if y % 2 == 0 else "white", lw=0)
        axis.text(0.01, y, f"{name}/", va="center", weight="bold", family="monospace", fontsize=11)
        first = text.replace("\n", " ").replace("`", "").split(". ")[0].rstrip(".")
        axis.text(0.2, y, "\n".join(textwrap.wrap(first, 56)[:2]), va="center", fontsize=8, color="#333")
        axis.barh(y, 0.19 * lines[name] / largest, left=0.74, height=0.42, color="#4878a8")
        axis.text(0.75 + 0.19 * lines[name] / largest, y, f"{lines[name]:,}", va="center", fontsize=8, color="#333")
    axis.text(0.74, -0.75, "lines", fontsize=8, color="#333")
    axis.set_xlim(0, 1)
    axis.axis("off")


def _draw_matrix(axis: Any, rooms: list[str], counts: Counter[tuple[str, str]]) -> None:
    """A dot where the room of the row imports from that of the column, its area the number of imports."""
    for y, name in enumerate(rooms):
        axis.axhspan(y - 0.5, y + 0.5, color="#f3f6fa" if y % 2 == 0 else "white", lw=0)
        axis.fill([y - 0.5, y + 0.5, y + 0.5, y - 0.5], [y - 0.5, y - 0.5, y + 0.5, y + 0.5], color="#d9e2ec", lw=0)
        for x, other in enumerate(rooms):
            if x != y and counts[name, other]:
                wrong = x > y
                axis.scatter(x, y, s=110 + 14 * counts[name, other], color="#c0392b" if wrong else "#4878a8", lw=0)
                axis.text(x, y, counts[name, other], ha="center", va="center", fontsize=7, color="white", weight="bold")
    axis.set_xticks(range(len(rooms)), rooms, rotation=45, ha="left", family="monospace", fontsize=9)
    axis.xaxis.tick_top()
    axis.set_xlim(-0.5, len(rooms) - 0.5)
    axis.tick_params(length=0)
    axis.tick_params(axis="y", labelleft=False)
    axis.spines[:].set_visible(False)
    axis.set_xlabel("imports of the room on the left from the room above, in modules", fontsize=8, color="#333")


if __name__ == "__main__":
    draw(PICTURE)
    print(f"written to {PICTURE.relative_to(ROOT)}")
