"""A user's own network and points in a comparison, and the command for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import flipopt as fo
from flipopt.cli.main import main
from flipopt.comparison.optima import proved_optima
from flipopt.comparison.own import own_problems
from flipopt.comparison.rows import read_rows
from tests.proofs.cases import distance_by_pieces, network
from tests.solvers.batch.nets import random_network


@pytest.fixture
def own(tmp_path: Path) -> tuple[str, str]:
    random_network(2).save(tmp_path / "net.npz")
    np.save(tmp_path / "points.npy", np.random.default_rng(0).standard_normal((4, 6)))
    return str(tmp_path / "net.npz"), str(tmp_path / "points.npy")


def test_problems_are_flips_to_the_nearest_class_or_to_a_given_one(own: tuple[str, str]) -> None:
    net, data = own
    network, X = fo.load_network(net), np.load(data)
    nearest = own_problems(net, data, 3)
    table = fo.closest_flip_points(network, X[:3])
    assert [flip[1:] for flip in nearest.flips] == [tuple(pair) for pair in table.classes]
    assert [entry.family for entry in nearest.entries()] == ["net.npz"] * 3
    instance = nearest.make(nearest.entries()[1].name)
    np.testing.assert_array_equal(instance.problem.x, X[1])
    assert instance.problem.classes == nearest.flips[1][1:]
    given = own_problems(net, data, 4, target="2")
    assert {flip[2] for flip in given.flips} == {2}
    assert len(given.flips) == int((network.predict(X) != 2).sum())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "guess"], "--methods: expected some of ipopt; ipopt from x"),
        (["--target", "9"], "--target: expected nearest or a class from 0 to 3, found '9'"),
        (["--out", "nowhere/compare.csv"], "--out: expected a folder that exists"),
    ],
)
def test_mistakes_are_one_line(own: tuple[str, str], arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["compare", *own, *arguments])
    assert result.exit_code == 1
    assert message in result.output
    assert "Traceback" not in result.output


def test_the_command_compares_and_goes_on_where_it_was(own: tuple[str, str], tmp_path: Path) -> None:
    out = tmp_path / "compare.csv"
    command = ["compare", *own, "--rows", "2", "--methods", "ipopt; ipopt, exact Hessian; pieces", "--out", str(out)]
    result = CliRunner().invoke(main, command, env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    rows = read_rows(out)
    assert [row["method"] for row in rows[:3]] == ["ipopt", "ipopt, exact Hessian", "pieces"]
    assert len(rows) == 6
    assert {row["status"] for row in rows if row["method"] == "pieces"} == {"UNAVAILABLE"}
    assert all(row["feasible"] for row in rows if row["method"] == "ipopt")
    assert "within 1e-3" in result.output
    assert out.with_suffix(".html").exists()
    assert out.with_suffix(".png").exists()
    before = out.read_text()
    assert CliRunner().invoke(main, command).exit_code == 0
    assert out.read_text() == before


def test_gaps_to_proved_optima(tmp_path: Path) -> None:
    net, X = network(5, (2, 4, 3, 3)), np.random.default_rng(5).standard_normal((3, 2))
    net.save(tmp_path / "relu.npz")
    np.save(tmp_path / "X.npy", X)
    own = str(tmp_path / "relu.npz"), str(tmp_path / "X.npy")
    problems = own_problems(*own, 3)
    optima = proved_optima(problems, 10.0)
    assert list(optima) == [entry.name for entry in problems.entries()]
    np.testing.assert_allclose(list(optima.values()), [distance_by_pieces(net, x) for x in X], rtol=1e-6)
    far = own_problems(*own, 3, target=str(int(np.delete(np.arange(3), problems.flips[0][1:])[0])))
    assert len(proved_optima(far, 10.0)) < 3  # of the nearest class alone there are proofs
    out = str(tmp_path / "compare.csv")
    command = ["compare", *own, "--rows", "2", "--methods", "batch", "--prove", "10", "--out", out]
    result = CliRunner().invoke(main, command, env={"COLUMNS": "160"})
    assert result.exit_code == 0, result.output
    assert "proved within 1e-6" in result.output
    assert "2 of 2" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prove", "5"], "expected ReLU, PReLU or identity in every hidden layer, found"),
        (["--prove", "-1"], "--prove"),
    ],
)
def test_what_cannot_be_proved_is_refused(own: tuple[str, str], arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["compare", *own, *arguments])
    assert result.exit_code != 0
    assert message in result.output
    assert "Traceback" not in result.output


def test_proofs_are_of_the_nearest_class(tmp_path: Path) -> None:
    network(5, (2, 4, 3, 3)).save(tmp_path / "relu.npz")
    np.save(tmp_path / "X.npy", np.zeros((1, 2)))
    command = ["compare", str(tmp_path / "relu.npz"), str(tmp_path / "X.npy"), "--target", "1", "--prove", "5"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 1
    assert "--prove: expected --target nearest" in result.output
