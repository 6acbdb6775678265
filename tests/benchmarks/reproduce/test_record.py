from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.reproduce.published import last_digit, published
from benchmarks.reproduce.record import Claim, Number, Record, over_seeds, setting, write

MEASURED = "002.table_1.NET1.2"  # 97.98
LIMIT = "001.solvers_disagree_percent_below"  # 5


def test_every_number_of_the_papers_has_a_name() -> None:
    names = published()
    assert sum(name.startswith("001.") for name in names) == 36
    assert sum(name.startswith("002.") for name in names) == 74
    assert sum(name.startswith("003.") for name in names) == 81
    assert names["002.table_2.distance_to_class.8"] == 0.16
    assert names["001.setup.hidden.0"] == 700


@given(st.integers(0, 6), st.integers(1, 10**6))
def test_the_last_digit_is_that_of_the_shortest_text(digits: int, whole: int) -> None:
    value = round(whole + 0.1**digits, digits) if digits else float(whole)
    assert last_digit(value) == pytest.approx(0.1**digits)
    assert last_digit(whole) == 1.0


def test_a_measured_number_is_the_same_to_half_a_digit_or_two_deviations() -> None:
    assert Number(MEASURED, "", 97.9849, "").same
    assert not Number(MEASURED, "", 97.9851, "").same
    assert not Number(MEASURED, "", 97.88, "", spread=0.04, count=5).same
    assert Number(MEASURED, "", 97.88, "", spread=0.06, count=5).same
    assert Number(MEASURED, "", None, "").same is None
    assert Number(MEASURED, "", math.nan, "").same is None


def test_a_setting_must_be_equal_and_a_limit_be_kept() -> None:
    assert setting("002.setup_mnist.inputs", "", 100).same
    assert not setting("002.setup_mnist.inputs", "", 101).same
    assert Number(LIMIT, "", 5.0, "", kind="at most").same
    assert not Number(LIMIT, "", 5.01, "", kind="at most").same


def test_a_number_that_nobody_published_is_refused() -> None:
    with pytest.raises(KeyError, match=r"002\.table_9"):
        Number("002.table_9", "", 1.0, "")


def test_several_values_have_a_mean_and_a_deviation() -> None:
    number = over_seeds(MEASURED, "", [97.0, 98.0, 99.0], "")
    assert (number.ours, number.spread, number.count) == (98.0, 1.0, 3)
    assert over_seeds(MEASURED, "", [97.0], "").spread is None


@pytest.mark.parametrize(
    ("holds", "verdict"), [((True, True), "holds"), ((True, False), "mixed"), ((False, False), "does not hold")]
)
def test_a_claim_holds_where_it_holds_everywhere(holds: tuple[bool, bool], verdict: str) -> None:
    assert Claim("", "", "", {f"seed {k}": value for k, value in enumerate(holds)}).verdict == verdict


def test_a_record_is_written_as_plain_json(tmp_path: Path) -> None:
    values = np.array([1.0, math.nan, 1 / 3])
    record = Record("title", "summary", {"rows": np.int64(3)}, [0], figures={"values": values, "flag": np.bool_(True)})
    write(tmp_path / "a.json", record, {"study": "a"})
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["figures"] == {"values": [1.0, None, 0.333333], "flag": True}
    assert (found["study"], found["setup"]) == ("a", {"rows": 3})
