"""The order in which modules may import each other, and what ``import flipopt`` must not load."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ORDER = (
    "errors",
    "checks",
    "files",
    "points",
    "parallel",
    "compiled",
    "dual_loop",
    "dual",
    "erf",
    "activations",
    "networks",
    "kinks",
    "lipschitz",
    "features",
    "problem",
    "verification",
    "batch_verification",
    "result",
    "solvers",
    "discrete",
    "starts",
    "away",
    "homotopy",
    "closest",
    "many",
    "shipped",
    "comparison",
    "report",
    "cli",
)
"""Rooms of the library; each imports only from itself and those before it (docs/development/architecture.md)."""


def imported(path: Path) -> set[str]:
    """First-level flipopt modules that a file imports, wherever in the file."""
    rooms: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts == ["flipopt"]:
                rooms |= {alias.name for alias in node.names if alias.name in ORDER}
            elif parts[0] == "flipopt":
                rooms.add(parts[1])
        elif isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("flipopt.")}
    return rooms


def room(path: Path) -> str:
    return path.relative_to(ROOT / "flipopt").parts[0].removesuffix(".py")


MODULES = [path for path in sorted((ROOT / "flipopt").rglob("*.py")) if path != ROOT / "flipopt" / "__init__.py"]


def test_every_room_has_its_place() -> None:
    assert {room(path) for path in MODULES} == set(ORDER)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_data_flows_one_way(path: Path) -> None:
    allowed = set(ORDER[: ORDER.index(room(path)) + 1])
    assert imported(path) <= allowed


def test_the_library_never_imports_the_programs() -> None:
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not {name.split(".")[0] for name in names} & {"models", "data_prep", "benchmarks", "tests"}, path


def test_importing_flipopt_loads_nothing_heavy() -> None:
    heavy = "torch casadi matplotlib nlopt onnxruntime pandas sklearn numba"
    script = f"import sys, flipopt; print([name for name in '{heavy}'.split() if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
