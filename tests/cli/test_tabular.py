"""``flipopt solve`` on tables: names, constraints from a file, bad rows, CSV in and out."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import flipopt as fo
from flipopt.cli.main import main
from flipopt.cli.tabular import read_constraints, write_csv

NAMES = ("income", "age", "rent", "own")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["solve", "net.npz", "people.csv", *arguments], env={"COLUMNS": "120"})


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> fo.DenseNetwork:
    """A network of people, one of whom has no age, and a file of constraints."""
    rng, units = np.random.default_rng(3), np.array([3e4, 10.0, 1.0, 1.0])
    W = [rng.standard_normal((4, 6)) / units[:, None], rng.standard_normal((6, 2))]
    network = fo.DenseNetwork(
        W, [rng.standard_normal(6) - np.array([2.0, 4.0, 0, 0]) @ (W[0] * units[:, None]), np.zeros(2)], fo.Tanh()
    )
    monkeypatch.chdir(tmp_path)
    network.save("net.npz")
    people = ["61230,45,1,0", "40110,,0,1", "88000,31,0,1", "52000.5,60,1,0"]
    Path("people.csv").write_text("\n".join([",".join(NAMES), *people]) + "\n")
    Path("limits.json").write_text(json.dumps([{"coefficients": {"income": 1, "age": 100}, "upper": 200000}]))
    return network


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open() as file:
        return list(csv.DictReader(file))


def test_a_table_in_and_out(net: fo.DenseNetwork) -> None:
    options = [
        "--integers",
        "age",
        "--one-of",
        "rent,own",
        "--constraints",
        "limits.json",
        "--bounds",
        "-1000",
        "300000",
    ]
    result = run("--out", "flips.csv", "--scaled", "--valid", *options)
    assert result.exit_code == 0, result.output
    assert "row 1: age is no number" in result.output
    assert "1 rows have something that is no number" in result.output
    rows = rows_of("flips.csv")
    assert list(rows[0]) == [*NAMES, "class", "distance", "status", "row"]
    assert [row["row"] for row in rows] == ["0", "1", "2", "3"]
    assert (rows[1]["status"], rows[1]["age"]) == ("NUMERICAL_ERROR", "")
    for row in (rows[0], *rows[2:]):
        point = np.array([float(row[name]) for name in NAMES])
        assert row["status"] == "CONVERGED"
        assert net.predict(point) == int(row["class"])
        assert point[1] == np.round(point[1])
        assert sorted(point[2:]) == [0.0, 1.0]
        assert point[0] + 100 * point[1] <= 200000


def test_features_are_named_and_a_probability_is_reached(net: fo.DenseNetwork) -> None:
    result = run("--out", "flips.parquet", "--scaled", "--in-range", "--frozen", "own,1", "--valid", "0.55")
    assert result.exit_code == 0, result.output
    table = fo.FlipTable.load("flips.parquet")
    assert table.row.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(table.x[:, 1], [45, np.nan, 31, 60])
    z = net.probabilities(table.x[table.success])
    assert len(z) > 0
    assert z.max(axis=1) == pytest.approx(np.full(len(z), 0.55), abs=1e-9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "limits.json: not a JSON file"),
        ("{}", "limits.json: expected a list of constraints, found dict"),
        ("[]", "expected a list of constraints"),
        ('[{"lower": 1}]', "constraint 0: expected an object with coefficients, lower and upper"),
        ('[{"coefficients": {"age": 1}}]', "constraint 0: expected a coefficient other than 0, and lower or upper"),
        ('[{"coefficients": {"size": 1}, "upper": 1}]', "expected indices below 4 or names such as income"),
        ('[{"coefficients": {"age": "x"}, "upper": 1}]', "coefficient of age: expected a number"),
        ('[{"coefficients": {"age": 1}, "lower": 2, "upper": 1}]', "expected lower <= upper"),
        ('[{"coefficients": {"age": NaN}, "upper": 1}]', "coefficient of age: expected a number"),
    ],
)
def test_mistakes_in_constraints_are_named(net: fo.DenseNetwork, text: str, message: str) -> None:
    Path("limits.json").write_text(text)
    result = run("--out", "flips.csv", "--constraints", "limits.json")
    assert result.exit_code == 1
    assert message in " ".join(result.output.split())
    assert not Path("flips.csv").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--valid", "much"], "--valid: expected nothing or a probability"),
        (["--valid", "0.2"], "valid: expected True, False or a probability"),
        (["--integers", "size"], "--integers: expected indices below 4 or names"),
        (["--one-of", "rent,size"], "--one-of: expected indices below 4 or names"),
        (["--in-range", "--bounds", "0", "1"], "--in-range: expected no --bounds"),
    ],
)
def test_mistakes_in_options_are_named(net: fo.DenseNetwork, options: list[str], message: str) -> None:
    result = run("--out", "flips.csv", *options)
    assert result.exit_code == 1
    assert message in " ".join(result.output.split())


def test_numbers_too_long_and_names_of_its_own_columns_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "constraints.json"
    path.write_text('[{"coefficients": {"a": 1}, "lower": 1' + "0" * 400 + "}]")
    with pytest.raises(fo.FileFormatError, match="lower: expected a number below 1e308"):
        read_constraints(path, ("a", "b"))
    with pytest.raises(fo.InputError, match="found 'status'"):
        write_csv([], tmp_path / "out.csv", ("a", "status"))
    assert not (tmp_path / "out.csv").exists()
