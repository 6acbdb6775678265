"""The order in which rooms may import each other, no circles, no long files, and a light ``import flipopt``."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tools.house import ROOMS, ROOT, SOLVERS, cycle, graph, imported, modules, place, room

MODULES, EDGES = modules(), graph()
INSIDE = sorted(MODULES.keys() - {"flipopt"})
IN_SOLVERS = [name.removeprefix("flipopt.solvers.") for name in INSIDE if name.startswith("flipopt.solvers.")]
LONGEST = 450


def test_every_module_is_in_a_room() -> None:
    assert {room(name) for name in INSIDE} <= set(ROOMS)
    assert [name for name in IN_SOLVERS if place(name, SOLVERS) is None] == []


@pytest.mark.parametrize("name", INSIDE)
def test_rooms_import_only_from_themselves_and_from_those_above(name: str) -> None:
    allowed = {*ROOMS[: ROOMS.index(room(name)) + 1], *([""] if room(name) == "cli" else [])}
    assert {other for other in EDGES[name] if room(other) not in allowed} == set()


@pytest.mark.parametrize("name", IN_SOLVERS)
def test_solvers_import_each_other_in_one_direction(name: str) -> None:
    here = place(name, SOLVERS)
    others = [other for other in EDGES[f"flipopt.solvers.{name}"] if room(other) == "solvers"]
    late = [other for other in others if place(other.removeprefix("flipopt.solvers."), SOLVERS) not in range(here + 1)]
    assert late == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert cycle(EDGES) == []


def test_a_circle_would_be_found() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_file_is_long(name: str) -> None:
    lines = len(MODULES[name].read_text().splitlines())
    assert lines <= LONGEST


def test_imports_are_written_in_full_and_never_of_the_programs() -> None:
    roots = {full.split(".")[0] for path in MODULES.values() for full in imported(path)}
    assert "" not in roots  # of a relative import
    assert not roots & {"models", "data_prep", "benchmarks", "tests", "tools"}


def test_importing_flipopt_loads_nothing_heavy() -> None:
    heavy = "torch casadi matplotlib nlopt onnxruntime pandas sklearn numba rich pyarrow"
    script = f"import sys, flipopt; print([name for name in '{heavy}'.split() if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
