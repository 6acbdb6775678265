from __future__ import annotations

import csv
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import main


@pytest.mark.slow
def test_a_smoke_run_writes_every_row(tmp_path: Path) -> None:
    out = tmp_path / "network.csv"
    result = CliRunner().invoke(main, ["network", "--quick", "--out", str(out)])
    assert result.exit_code == 0, result.output
    with out.open() as stream:
        rows = list(csv.DictReader(stream))
    cases = {(row["method"], row["dtype"], int(row["batch"])) for row in rows}
    assert len(cases) == len(rows) == 16
    assert {batch for _, _, batch in cases} == {1, 32, 512, 4096}
    assert all(float(row["us_per_sample"]) > 0 and row["cpu"] and row["commit"] for row in rows)
    assert "GFLOP/s" in result.output
