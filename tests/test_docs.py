"""The documentation: its code runs, and its links lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from flipopt.solvers import SOLVERS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
RUNNABLE = sorted(
    [
        ROOT / "README.md",
        *(DOCS / "tutorial").glob("*.md"),
        *(DOCS / "howto").glob("*.md"),
        *(DOCS / "explanation" / name for name in ("batch.md", "homotopy.md", "proofs.md")),
    ]
)
PAGES = [ROOT / "README.md", *(path for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts)]
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def python_blocks(path: Path) -> Iterator[tuple[int, str]]:
    """Line before the first of each block, and the block."""
    text = path.read_text()
    for match in BLOCK.finditer(text):
        if match[1] == "python":
            yield text.count("\n", 0, match.start(2)), match[2]


@pytest.fixture
def same_solvers() -> Iterator[None]:
    """A page may register a solver; the other tests must not see it."""
    before = dict(SOLVERS)
    yield
    SOLVERS.clear()
    SOLVERS.update(before)


def test_there_are_pages_to_run() -> None:
    assert len(RUNNABLE) >= 5
    assert all(any(python_blocks(path)) for path in RUNNABLE)


@pytest.mark.usefixtures("same_solvers")
@pytest.mark.parametrize("path", RUNNABLE, ids=name)
def test_the_code_of_a_page_runs_from_top_to_bottom(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": f"page_{path.stem}"}
    for line, block in python_blocks(path):
        # Blank lines before the block let a traceback name the line of the page.
        exec(compile("\n" * line + block, str(path), "exec", dont_inherit=True), namespace)


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_relative_links_lead_to_files(path: Path) -> None:
    prose = BLOCK.sub("", path.read_text())
    targets = [target.split("#")[0] for target in LINK.findall(prose) if not re.match(r"\w+:", target)]
    missing = [target for target in targets if target and not (path.parent / target).exists()]
    assert missing == []
