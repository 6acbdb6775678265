"""The page of a comparison in a real browser: nothing fetched, no errors, and a hidden method is left out."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from flipopt.comparison.table import Comparison
from flipopt.report.comparison import write_page
from tests.comparison.test_table import ROWS

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--virtual-time-budget=5000", "--dump-dom",
)  # fmt: skip
WATCH = """<script>
window.faults = [];
window.addEventListener("error", (event) => window.faults.push(String(event.message)));
console.error = (...words) => window.faults.push(words.join(" "));
</script>"""
ACT = """<script>
const heights = () => Object.fromEntries([...document.querySelectorAll("#performance path")].map(
  (line) => [line.dataset.method, line.getAttribute("d")]));
const report = {before: heights()};
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
report.families = [...document.querySelectorAll("#families th")].map((cell) => cell.textContent);
report.fetched = performance.getEntriesByType("resource").map((entry) => entry.name);
report.faults = window.faults;
const out = document.createElement("pre");
out.id = "report";
out.textContent = JSON.stringify(report);
document.body.append(out);
</script>"""


@pytest.mark.skipif(
    BROWSER is None and "CI_BROWSER" not in os.environ, reason="no chromium here; .ci/run installs it and runs this"
)
def test_a_method_is_hidden_by_a_click_and_nothing_is_fetched(tmp_path: Path) -> None:
    assert BROWSER is not None
    page = tmp_path / "page.html"
    write_page(page, Comparison.of(ROWS))
    text = page.read_text().replace("<head>", f"<head>{WATCH}", 1).replace("</body>", f"{ACT}</body>", 1)
    page.write_text(text)
    command = [BROWSER, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", page.as_uri()]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r'<pre id="report">(.*?)</pre>', ran.stdout, re.DOTALL)
    assert found, ran.stdout[-2000:] + ran.stderr[-2000:]
    report = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert report["faults"] == []
    assert [name for name in report["fetched"] if not name.startswith("data:")] == []
    assert set(report["before"]) == {"a", "b"}
    assert set(report["hidden"]) == {"a"}
    assert report["pressed"] == "false"
    # On plane-0 b is cheaper by 2: without it a is at 1 there.
    assert report["hidden"]["a"] != report["before"]["a"]
    assert report["again"] == report["before"]
    assert report["label"] == "τ, in seconds"
    assert report["families"] == ["method", "sphere"]
