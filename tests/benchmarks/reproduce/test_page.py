"""The committed page is what its records say, and it has every number of the papers."""

from __future__ import annotations

import re

import pytest

from benchmarks.reproduce import page
from benchmarks.reproduce.published import published
from benchmarks.reproduce.record import Claim, Number, Record, Sheet
from benchmarks.reproduce.run import RESULTS, STUDIES

RECORDS = page.read(RESULTS, list(STUDIES))
TEXT = page.PAGE.read_text()


def test_the_page_is_generated_from_the_records() -> None:
    assert page.render(RECORDS) == TEXT


@pytest.mark.parametrize("name", list(published()))
def test_every_published_number_is_on_the_page_with_ours_beside_it(name: str) -> None:
    found = [number for record in RECORDS for number in record["numbers"] if number["name"] == name]
    if not found:
        explained = any(part in name and words in TEXT for part, words in page.NOT_RUN.items())
        assert explained or len(RECORDS) < len(STUDIES), "all studies have been run"
        assert f"| `{name}` | {page.printed(published()[name])} | — |" in TEXT
        return
    assert len(found) == 1
    row = page.number_row(found[0])
    assert found[0]["published"] == published()[name]
    assert found[0]["ours"] is not None or "Not run: " in found[0]["why"]
    assert f"| {row[0]} | {row[1]} | {row[2]} | {row[3]} |" in TEXT.replace("\\|", "|")


def test_records_come_from_full_runs_of_known_studies() -> None:
    known = [record["study"] for record in RECORDS]
    assert known == [name for name in STUDIES if name in known]
    for record in RECORDS:
        assert record["command"] == f"python -m benchmarks reproduce {record['study']}"
        assert record["seconds"] > 0 or all("Not run: " in number["why"] for number in record["numbers"])
        assert record["cores"] >= 1
        assert record["seeds"]
        assert record["setup"]


def test_pictures_are_there_and_said_to_be() -> None:
    named = {picture["file"] for record in RECORDS for picture in record["pictures"]}
    assert named == {path.name for path in RESULTS.glob("*.png")}
    for file in named:
        assert f"({page.RESULTS}/{file})" in TEXT


def test_what_differs_in_direction_is_in_the_first_paragraph() -> None:
    first = TEXT.split("\n\n")[1]
    for record in RECORDS:
        for claim in record["claims"]:
            assert (claim["text"] in first) == (claim["verdict"] != "holds")
            assert claim["verdict"] == "holds" or len(claim["holds"]) > 1, "a second seed or network confirms it"


def made(*claims: Claim, numbers: tuple[Number, ...] = ()) -> dict:
    record = Record("A title", "A summary.", {"x": 1}, [0, 1], numbers, claims, sheets=[Sheet("S", ["a|b"], [["1"]])])
    facts = {"study": "002-toy", "command": "c", "quick": False, "seconds": 200.0, "cores": 2, "cpu": "some"}
    return {**facts, **record.to_json()}


def test_a_section_has_claims_numbers_sheets_and_how_it_was_made() -> None:
    claims = (Claim("all is well", "Figure 1", "it is not.", {"seed 0": True, "seed 1": False}),)
    number = Number("002.table_1.NET1.2", "accuracy, %", 97.912, "because.", 0.05, 5, "seeds")
    text = page.render([made(*claims, numbers=(number,))])
    assert "1 do not hold here in direction" in text.split("\n\n")[1]
    assert "| all is well | Figure 1 | holds for seed 0, not for seed 1 | it is not. |" in text
    assert "| accuracy, % | 97.98 | 97.912 ± 0.050 (5 seeds) | yes | because. |" in text
    assert "| a\\|b |" in text
    assert "3 minutes on 2 cores (some); seeds 0, 1" in text
    assert "| `002.table_1.NET1.0` | 100 | — |" in text
    assert "| `002.table_1.NET1.2` |" not in text


def test_a_page_on_which_all_claims_hold_says_so() -> None:
    text = page.render([made(Claim("a", "b", "c.", {"seed 0": True, "seed 1": True}))])
    assert re.search(r"All 1 claims\*\* of the papers .* hold", text)


@pytest.mark.parametrize(
    ("name", "ours", "shown"),
    [
        ("002.table_1.NET1.2", 97.9, "97.900"),
        ("001.section_6.least_connected_ship_links", 147.0, "147.0"),
        ("002.figure_4.subset_size", 12345.0, "12,345.0"),
    ],
)
def test_ours_has_a_digit_more_than_what_is_published(name: str, ours: float, shown: str) -> None:
    assert page.ours(made(numbers=(Number(name, "", ours, ""),))["numbers"][0]) == shown


def test_a_small_spread_shows() -> None:
    number = Number("002.table_1.NET1.0", "", 99.97, "", 0.004, 5, "seeds")
    assert page.ours(made(numbers=(number,))["numbers"][0]) == "99.970 ± 0.004 (5 seeds)"
