from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.paths import write_markdown
from benchmarks.spirals import points, spirals


def test_figures_become_a_table_for_each_set_of_a_part(tmp_path: Path) -> None:
    rows = [
        {"part": "lines", "what": "proved", "figure": "seconds", "value": 90.4973},
        {"part": "lines", "what": "proved", "figure": "lines", "value": 1000.0},
        {"part": "lines", "what": "adaptive", "figure": "lines", "value": 1000.0},
        {"part": "regions", "what": "ships", "figure": "centres", "value": 0.0},
    ]
    write_markdown(tmp_path / "paths.md", rows)
    text = (tmp_path / "paths.md").read_text()
    assert text.splitlines() == [
        "| lines | seconds | lines |",
        "| --- | --- | --- |",
        "| proved | 90.5 | 1,000 |",
        "",
        "| lines | lines |",
        "| --- | --- |",
        "| adaptive | 1,000 |",
        "",
        "| regions | centres |",
        "| --- | --- |",
        "| ships | 0 |",
    ]


def test_spirals_are_told_apart() -> None:
    X, classes = points(500, seed=1)
    assert (spirals("relu").predict(X) == classes).mean() > 0.95
    assert set(np.unique(classes)) == {0, 1}
