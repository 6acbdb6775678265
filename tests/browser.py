"""Pages in a real browser: what a script finds after it has used them, what they fetch, and their errors."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--virtual-time-budget=5000", "--dump-dom",
)  # fmt: skip
WATCH = """<script>
window.faults = [];
window.addEventListener("error", (event) => window.faults.push(String(event.message)));
for (const level of ["error", "warn"]) console[level] = (...words) => window.faults.push(words.join(" "));
</script>"""
TELL = """
const asked = performance.getEntriesByType("resource").map((entry) => entry.name);
report.fetched = asked.filter((name) => !name.startsWith("data:"));
report.faults = window.faults;
const told = document.createElement("pre");
told.id = "told";
told.textContent = JSON.stringify(report);
document.body.append(told);
"""

needs_browser = pytest.mark.skipif(
    BROWSER is None and "CI_BROWSER" not in os.environ, reason="no chromium here; .ci/run installs it and runs this"
)


def outcome(page: Path, act: str, width: int = 1200) -> dict[str, Any]:
    """What the script ``act`` puts in ``report``, with ``faults`` and what was ``fetched``, from a page on disk."""
    assert BROWSER is not None
    script = f"<script>const report = {{}};{act}{TELL}</script>"
    text = page.read_text().replace("<head>", f"<head>{WATCH}", 1)
    before, _, after = text.rpartition("</body>")
    watched = page.with_name(f"watched-{page.name}")
    watched.write_text(f"{before}{script}</body>{after}")
    profile = page.parent / "profile"
    command = [BROWSER, *FLAGS, f"--window-size={width},2000", f"--user-data-dir={profile}", watched.as_uri()]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r'<pre id="told">(.*?)</pre>', ran.stdout, re.DOTALL)
    assert found, ran.stdout[-2000:] + ran.stderr[-2000:]
    told: dict[str, Any] = json.loads(unescape(found[1]))
    return told
