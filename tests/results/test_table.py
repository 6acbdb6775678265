"""The table of many flip points: what its columns hold, its parts, and its file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import flipopt as fo
from flipopt.problem import Evaluations
from flipopt.results import save_tables


def result(distance: float, verified: bool = True, solver: str = "ipopt", iterations: int = 3) -> fo.FlipResult:
    status = fo.Status.CONVERGED if verified else fo.Status.LIMIT
    x = np.array([distance, 1.0])
    return fo.FlipResult(x, distance, (0, 2), status, "as told", None, Evaluations(5, 4), iterations, 0.5, solver)


@pytest.fixture
def table() -> fo.FlipTable:
    found = [result(3.0), result(1.0, False, "batch"), result(2.0, solver="pieces"), result(np.nan, False, "batch")]
    return fo.FlipTable.of([0, 0, 0, 4], found, 2)


@pytest.fixture
def checked(table: fo.FlipTable) -> fo.FlipTable:
    """With what the check of a point on the boundary finds, as tables have it that the package makes."""
    nothing = np.isnan(table.distance)
    return replace(table, kkt_residual=np.where(nothing, np.nan, 1e-9), boundary_gap=np.where(nothing, np.nan, 0.0))


def same(table: fo.FlipTable, other: fo.FlipTable) -> None:
    for name in fo.FlipTable.names():
        found, expected = getattr(table, name), getattr(other, name)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape), name
        np.testing.assert_array_equal(found, expected, err_msg=name)


def test_a_table_is_described_in_a_line(table: fo.FlipTable) -> None:
    assert repr(table) == "FlipTable(4 entries: 2 CONVERGED, 2 LIMIT; median distance 2)"
    assert repr(table[:0]) == "FlipTable(0 entries)"


def test_results_become_columns(table: fo.FlipTable) -> None:
    assert len(table) == 4
    assert table.solver.tolist() == ["ipopt", "batch", "pieces", "batch"]
    assert table.success.tolist() == [True, False, True, False]
    assert table.evaluations.tolist() == [9] * 4
    assert table.classes.tolist() == [[0, 2]] * 4
    assert np.isnan(table.kkt_residual).all()


def test_the_nearest_of_a_row_is_verified_if_any_is(table: fo.FlipTable) -> None:
    nearest = table.nearest()
    assert nearest.row.tolist() == [0, 4]
    assert nearest.solver.tolist() == ["pieces", "batch"]
    assert [found.solver for found in nearest.results] == ["pieces", "batch"]
    assert len(fo.FlipTable.of([], [], 2).nearest()) == 0


@pytest.mark.parametrize("part", [slice(1, 3), [1, 2], np.array([1, 2]), np.array([False, True, True, False])])
def test_a_part_is_a_table(table: fo.FlipTable, part: object) -> None:
    found = table[part]  # type: ignore[index]
    assert found.distance.tolist() == [1.0, 2.0]
    assert found.x.shape == (2, 2)
    assert found.results == table.results[1:3]


@pytest.mark.parametrize("wrong", [0, np.int64(1), True, "row", np.zeros((1, 1), dtype=int)])
def test_a_part_is_not_named_by_a_number(table: fo.FlipTable, wrong: object) -> None:
    with pytest.raises(fo.InputError, match="expected a mask, indices or a slice, found"):
        table[wrong]  # type: ignore[index]


def test_tables_are_joined_in_order(table: fo.FlipTable) -> None:
    same(fo.FlipTable.join([table[:1], table[1:]]), table)


@pytest.mark.parametrize("entries", [0, 1, 4])
def test_a_file_holds_every_column(checked: fo.FlipTable, tmp_path: Path, entries: int) -> None:
    checked[:entries].save(tmp_path / "flips.parquet")
    loaded = fo.FlipTable.load(tmp_path / "flips.parquet")
    same(loaded, checked[:entries])
    assert loaded.results == ()


def test_a_file_may_begin_with_an_empty_table(checked: fo.FlipTable, tmp_path: Path) -> None:
    save_tables([checked[:0], checked[:3], checked[3:]], tmp_path / "flips.parquet")
    same(fo.FlipTable.load(tmp_path / "flips.parquet"), checked)


def test_a_file_that_does_not_name_the_solvers_is_read(checked: fo.FlipTable, tmp_path: Path) -> None:
    path = tmp_path / "flips.parquet"
    checked.save(path)
    pq.write_table(pq.read_table(path).drop_columns(["solver"]), path)
    loaded = fo.FlipTable.load(path)
    assert loaded.solver.tolist() == [""] * 4
    np.testing.assert_array_equal(loaded.distance, checked.distance)


def test_the_file_has_the_documented_columns(checked: fo.FlipTable, tmp_path: Path) -> None:
    checked.save(tmp_path / "flips.parquet")
    schema = pq.read_schema(tmp_path / "flips.parquet")
    lines = (Path(__file__).parents[2] / "docs/reference/files.md").read_text().split("## Flip points")[1].splitlines()
    cells = [[cell.strip(" `") for cell in line.split("|")[1:3]] for line in lines if line.startswith("| `")]
    assert cells[:-1] == [[field.name, str(field.type)] for field in schema][:-1]
    assert cells[-1] == ["x", "fixed-size list of double"]
    assert schema.field("x").type.equals(pa.list_(pa.float64(), 2))
