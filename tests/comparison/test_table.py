"""Rows as matrices, and the pages made of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from flipopt.comparison.rows import COLUMNS, empty_row, read_rows, write_ratios
from flipopt.comparison.table import Comparison
from flipopt.report.comparison import draw_comparison, headings, standings, summary, write_page
from flipopt.runs.rows import write_rows


def row(problem: str, method: str, distance: float = np.nan, status: str = "CONVERGED", evaluations: int = 10) -> dict:
    made = empty_row(problem.split("-")[0], problem, 4, method, status, "", 0.5)
    feasible = bool(np.isfinite(distance))
    return made | {"distance": distance, "feasible": feasible, "forward": evaluations, "backward": 2, "commit": "abc"}


ROWS = [
    row("plane-0", "a", 1.0),
    row("plane-0", "b", 1.0000005, evaluations=4),
    row("plane-1", "a", 2.0),
    row("plane-1", "b", status="CRASHED"),
    row("sphere-0", "a", status="LIMIT"),
    row("sphere-0", "b", 3.3, "BEYOND"),
]


def test_rows_become_matrices() -> None:
    table = Comparison.of(ROWS, {"sphere-0": 3.0, "elsewhere": 0.1})
    assert table.problems == ["plane-0", "plane-1", "sphere-0"]
    assert table.families == ["plane", "plane", "sphere"]
    assert table.best.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(table.distance, [[1.0, 1.0000005], [2.0, np.nan], [np.nan, 3.3]])
    assert table.status[1, 1] == "CRASHED"
    assert table.evaluations[0].tolist() == [12, 6]
    np.testing.assert_allclose(table.ratio[2, 1], 1.1)
    loose, tight = (table.performance("evaluations", tolerance) for tolerance in (1e-3, 1e-9))
    assert loose.tolist() == [[2, 1], [1, np.inf], [np.inf, np.inf]]
    assert tight.tolist() == [[1, np.inf], [1, np.inf], [np.inf, np.inf]]
    assert table.data("evaluations", 1e-3)[0].tolist() == [12 / 5, 6 / 5]


def test_gaps_to_proved_optima() -> None:
    plain, table = Comparison.of(ROWS), Comparison.of(ROWS, proved={"plane-0": 1.0, "sphere-0": 3.0, "elsewhere": 1.0})
    np.testing.assert_array_equal(table.proved, [1.0, np.nan, 3.0])
    np.testing.assert_allclose(table.gap, [[0, 5e-7], [np.nan, np.nan], [np.nan, 0.1]], atol=1e-12)
    assert table.best.tolist() == [1, 2, 3]
    assert (Comparison.of(ROWS, proved={"plane-0": 1.1}).gap[0] == 0).all()  # rounding, say
    assert headings(table) == (*headings(plain), "gap to the proved", "proved within 1e-6")
    lines = {line[0]: line[len(headings(plain)) :] for line in standings(table)}
    assert lines == {"a": ("0.0e+00", "1 of 2"), "b": ("5.0e-02", "1 of 2")}
    assert {len(line) for line in standings(plain)} == {len(headings(plain))}
    assert "The least distance of 2 of them is proved." in summary(table)
    assert "proved" not in summary(plain)


def test_ratios_are_put_into_a_file_of_rows(tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    write_rows(out, COLUMNS, ROWS)
    before = read_rows(out)
    assert np.isnan([made["ratio"] for made in before]).all()
    table = Comparison.of(before, {"sphere-0": 3.0})
    write_ratios(out, table.best_known)
    after = read_rows(out)
    np.testing.assert_allclose([made["ratio"] for made in after], [1, 1.0000005, 1, np.nan, np.nan, 1.1], rtol=1e-8)
    assert [str(made | {"ratio": 0}) for made in after] == [str(made | {"ratio": 0}) for made in before]


def test_costs_are_in_a_unit_that_is_known() -> None:
    with pytest.raises(fo.InputError, match="unit: expected seconds or evaluations, found 'joules'"):
        Comparison.of(ROWS).cost("joules", 1e-3)


def test_the_page_holds_its_data_and_fetches_nothing(tmp_path: Path) -> None:
    rows = [*ROWS, row("plane-0", "</script><b>", 1.0)]
    write_page(tmp_path / "page.html", Comparison.of(rows))
    text = (tmp_path / "page.html").read_text()
    assert text.count("</script>") == 1
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)
    found = re.search(r"const DATA = (.*);\n", text)
    assert found
    data = json.loads(found[1])
    assert data["methods"] == ["a", "b", "</script><b>"]
    assert data["distance"][1] == [2.0, None, None]
    assert data["problems"][2] == {"name": "sphere-0", "family": "sphere", "n": 4, "best": 3.3}
    assert data["summary"].startswith("3 methods on 3 problems of 2 families")


def test_the_picture_is_drawn_whatever_is_missing(tmp_path: Path) -> None:
    draw_comparison(tmp_path / "a.png", Comparison.of(ROWS))
    draw_comparison(tmp_path / "b.png", Comparison.of([row("plane-0", "a", status="LIMIT")]))
    assert (tmp_path / "a.png").stat().st_size > 20_000
    assert (tmp_path / "b.png").exists()
