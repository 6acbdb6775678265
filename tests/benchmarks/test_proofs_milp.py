from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from benchmarks import proofs_milp
from flipopt.common import checks
from flipopt.common.errors import MissingPackageError


def _row(number: int, ours: tuple[float, float], scip: tuple[float, float], part: str = "random") -> dict[str, object]:
    row: dict[str, object] = dict.fromkeys(proofs_milp.WHOLE, 1)
    row |= dict(zip(("ours_lower", "ours_upper", "scip_lower", "scip_upper"), (*ours, *scip), strict=True))
    return row | {"part": part, "number": number, "ours_seconds": 0.1, "scip_seconds": 2.0 * number}


def test_the_summary_counts_what_is_proved_and_what_agrees() -> None:
    rows = [
        _row(0, (1.0, 1.0), (1.0, 1.0 + 1e-8)),
        _row(1, (1.0, 1.0), (1.1, 1.1)),  # proved by both, and they do not agree
        _row(2, (2.0, 2.0), (1.0, 2.0)),  # SCIP was stopped
    ]
    found = {(row["what"], row["figure"]): row["value"] for row in proofs_milp.summary(rows)}
    assert found["flipopt", "proved to 1e-6"] == 3
    assert found["SCIP", "proved to 1e-6"] == 2
    assert found["SCIP", "agree to 1e-6"] == 1
    assert found["SCIP", "largest difference"] == pytest.approx(0.1)
    assert found["SCIP", "lower bound over the distance, least"] == 0.5
    assert found["SCIP", "core seconds in all"] == 6


def test_small_networks_are_drawn_again_the_same() -> None:
    for one, other in zip(islice(proofs_milp.CASES["random"](), 4), islice(proofs_milp.CASES["random"](), 4)):
        assert one[0] == other[0]
        np.testing.assert_array_equal(one[1].weights[0], other[1].weights[0])
        np.testing.assert_array_equal(one[2], other[2])
        assert sum(one[1].widths[1:-1]) <= 20


def test_rows_are_solved_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyscipopt")
    path, console = tmp_path / "rows.csv", Console(quiet=True)
    monkeypatch.setattr(proofs_milp, "SHARES", {"random": 1.0})
    proofs_milp.run(path, images=0, instances=2, seconds=1.0, console=console)
    rows = path.read_text()
    assert len(rows.splitlines()) == 3
    found = proofs_milp.summary(proofs_milp.read_rows(path, proofs_milp.WHOLE, proofs_milp.REAL))
    assert {(row["what"], row["value"]) for row in found if row["figure"] == "agree to 1e-6"} == {("SCIP", 2.0)}
    monkeypatch.setattr(proofs_milp, "solved", None)  # nothing is solved anew
    proofs_milp.run(path, images=0, instances=2, seconds=1.0, console=console)
    assert path.read_text() == rows
    assert "agree to 1e-6" in path.with_suffix(".md").read_text()


def test_without_the_solver_it_is_said_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"pyscipopt: pip install 'flipopt\[bench\]'"):
        proofs_milp.run(tmp_path / "rows.csv", images=1, instances=0, seconds=1.0, console=Console(quiet=True))
    assert not list(tmp_path.iterdir())
