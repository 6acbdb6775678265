"""The page of a comparison in a real browser: nothing fetched, no errors, and a hidden method is left out."""

from __future__ import annotations

from pathlib import Path

from flipopt.comparison.table import Comparison
from flipopt.report.audit.section import NONE
from flipopt.report.comparison import write_page
from tests.browser import needs_browser, outcome
from tests.comparison.test_table import ROWS

ACT = """
const heights = () => Object.fromEntries([...document.querySelectorAll("#performance path")].map(
  (line) => [line.dataset.method, line.getAttribute("d")]));
report.before = heights();
document.querySelector('#legend button[data-method="b"]').click();
report.hidden = heights();
report.pressed = document.querySelector('#legend button[data-method="b"]').getAttribute("aria-pressed");
document.querySelector('#legend button[data-method="b"]').click();
report.again = heights();
document.getElementById("unit").value = "seconds";
document.getElementById("unit").dispatchEvent(new Event("change"));
const texts = [...document.querySelectorAll("#performance text")].map((text) => text.textContent);
report.label = texts.find((text) => text.startsWith("τ"));
document.getElementById("family").value = "sphere";
document.getElementById("family").dispatchEvent(new Event("change"));
report.proofs = document.getElementById("optima").hidden;
report.families = [...document.querySelectorAll("#families th")].map((cell) => cell.textContent);
"""


@needs_browser
def test_a_method_is_hidden_by_a_click_and_nothing_is_fetched(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    write_page(page, Comparison.of(ROWS))
    report = outcome(page, ACT)
    assert report["faults"] == []
    assert report["fetched"] == []
    assert set(report["before"]) == {"a", "b"}
    assert set(report["hidden"]) == {"a"}
    assert report["pressed"] == "false"
    # On plane-0 b is cheaper by 2: without it a is at 1 there.
    assert report["hidden"]["a"] != report["before"]["a"]
    assert report["again"] == report["before"]
    assert report["label"] == "τ, in seconds"
    assert report["families"] == ["method", "sphere"]
    assert report["proofs"]  # hidden: there are none


GAPS = """
const texts = (row) => [...row.children].map((cell) => cell.textContent);
const cells = () => [...document.querySelectorAll("#gaps tr")].map(texts);
report.hidden = document.getElementById("optima").hidden;
report.all = cells();
document.getElementById("family").value = "sphere";
document.getElementById("family").dispatchEvent(new Event("change"));
report.sphere = cells();
"""


@needs_browser
def test_gaps_to_proved_optima_have_a_table(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    write_page(page, Comparison.of(ROWS, proved={"plane-0": 1.0, "sphere-0": 3.0}))
    report = outcome(page, GAPS)
    assert report["faults"] == []
    assert not report["hidden"]
    head = ["method", "median gap", "largest gap", "within 1e-6", "no point"]
    assert report["all"] == [head, ["a", "0", "0", "1 of 2", "1"], ["b", "5.0e-2", "1.0e-1", "1 of 2", "0"]]
    assert report["sphere"] == [head, ["a", NONE, NONE, "0 of 1", "1"], ["b", "1.0e-1", "1.0e-1", "0 of 1", "0"]]
