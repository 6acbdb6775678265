"""Many inputs at once: which solver they get, their pieces, the nearest class, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from flipopt.problem import flip_problem
from flipopt.results import save_tables
from flipopt.solvers import Batch
from flipopt.verification import verify
from tests.cases import linear, moons, three_classes
from tests.solvers.batch.nets import random_network

COLUMNS = (
    *("row", "classes", "x", "distance", "status", "kkt_residual", "boundary_gap", "evaluations", "message"),
    *("starts", "agreeing", "settled"),
)


def rows(n: int, width: int = 6) -> np.ndarray:
    return np.random.default_rng(7).standard_normal((n, width))


def equal(table: fo.FlipTable, other: fo.FlipTable, but: tuple[str, ...] = ()) -> None:
    for name in COLUMNS:
        if name not in but:
            np.testing.assert_array_equal(getattr(table, name), getattr(other, name), err_msg=name)


# The nearest of all classes


@pytest.fixture(scope="module")
def shipped() -> tuple[fo.DenseNetwork, np.ndarray, fo.FlipTable]:
    images = fo.load_shipped("mnist-net1")
    net, X = images.network, images.X[:12]
    return net, X, fo.closest_flip_points(net, X, "all")


def test_the_nearest_is_the_nearest_of_all(shipped: tuple) -> None:
    net, X, every = shipped
    assert every.success.mean() > 0.95
    near = fo.closest_flip_points(net, X)
    best = every.nearest()
    np.testing.assert_array_equal(near.row, np.arange(12))
    np.testing.assert_array_equal(near.classes, best.classes)
    np.testing.assert_allclose(near.distance, best.distance, rtol=1e-9)
    assert near.success.all()
    assert not near.settled.all()  # something was pruned, and that is said
    assert near.evaluations.sum() < every.evaluations.sum()
    for k in range(3):
        problem = flip_problem(net, X[k], [int(c) for c in near.classes[k]])
        assert verify(problem, near.x[k]).closest()


def test_without_pruning_the_nearest_is_settled() -> None:
    net = random_network(3, (6, 20, 5))
    settled = fo.closest_flip_points(net, rows(8), solver=Batch(prune=False))
    pruned = fo.closest_flip_points(net, rows(8))
    every = fo.closest_flip_points(net, rows(8), "all")
    np.testing.assert_array_equal(settled.settled, every.success.reshape(8, 4).all(axis=1))
    assert settled.settled.any()
    assert (~pruned.settled | settled.settled).all()
    np.testing.assert_allclose(pruned.distance, settled.distance, rtol=1e-9)
    # An entry has the cost of all its classes, and of restarts of those that are close.
    total = every.evaluations.reshape(8, 4).sum(axis=1)
    assert (settled.evaluations > total).all()
    once, each = (
        fo.closest_flip_points(net, rows(8), targets, Batch(prune=False, soften=False))
        for targets in ("nearest", "all")
    )
    np.testing.assert_array_equal(once.evaluations, each.evaluations.reshape(8, 4).sum(axis=1))


def test_given_targets_and_sources_are_used() -> None:
    net = random_network(4)
    X = rows(6)
    i = net.predict(X)
    table = fo.closest_flip_points(net, X, (i + 1) % 4)
    np.testing.assert_array_equal(table.classes, np.column_stack([i, (i + 1) % 4]))
    table = fo.closest_flip_points(net, X, "all", source=2)
    np.testing.assert_array_equal(table.classes, [(2, k) for _ in range(6) for k in (0, 1, 3)])


def test_all_options_reach_the_problems() -> None:
    net, X = linear(np.array([1.0, -2.0, 0.5]), 0.3), rows(4, 3)
    options: dict = {"weights": [1.0, 4.0, 0.25], "frozen": [0], "bounds": (-9.0, 9.0), "margin": 0.1}
    table = fo.closest_flip_points(net, X, **options)
    lead = np.abs(X @ [1.0, -2.0, 0.5] + 0.3)
    # The boundary's own tolerance is 1e-9 in the logits.
    np.testing.assert_allclose(table.distance, lead / np.sqrt(4 / 4 + 0.25 / 0.25), rtol=1e-8, atol=2e-9)
    assert (table.x[:, 0] == X[:, 0]).all()
    near = fo.closest_flip_points(three_classes(), [[1.0, 2.9]], [1], margin=0.5)
    assert near.distance[0] == pytest.approx(np.hypot(1.0, 0.4), rel=1e-8)


# Pieces


def test_the_pieces_are_the_table(tmp_path: Path) -> None:
    net, X = random_network(5), rows(11)
    for targets, starts in (("nearest", 1), ("all", 2), ((net.predict(X) + 1) % 4, 1)):
        solver = Batch(chunk=6)
        whole = fo.closest_flip_points(net, X, targets, solver, starts=starts)
        pieces = list(fo.stream_flip_points(net, X, targets, solver, starts=starts))
        assert len(pieces) > 1
        equal(fo.FlipTable.join(pieces), whole)
        save_tables(fo.stream_flip_points(net, X, targets, solver, starts=starts), tmp_path / "flips.parquet")
        equal(fo.FlipTable.load(tmp_path / "flips.parquet"), whole)
    assert [path.name for path in tmp_path.iterdir()] == ["flips.parquet"]


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "flips.parquet"
    tables = list(fo.stream_flip_points(random_network(5), rows(8), solver=Batch(chunk=6)))

    def broken() -> object:
        yield tables[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_tables(broken(), path)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_pieces_one_at_a_time_are_the_table_too() -> None:
    whole = fo.closest_flip_points(moons(), rows(3, 2), norm=np.inf)
    pieces = list(fo.stream_flip_points(moons(), rows(3, 2), norm=np.inf))
    equal(fo.FlipTable.join(pieces), whole)
    assert [result.solver for result in whole.results] == ["ipopt"] * 3


def test_nothing_to_solve_is_an_empty_table_and_nothing_to_save_an_error(tmp_path: Path) -> None:
    for solver in (None, "ipopt"):
        table = fo.closest_flip_points(random_network(5), np.empty((0, 6)), solver=solver)
        assert len(table) == 0
        assert table.x.shape == (0, 6)
    with pytest.raises(fo.InputError, match="tables: expected at least one table of flip points, found none"):
        save_tables([], tmp_path / "never.parquet")
    assert not (tmp_path / "never.parquet").exists()


def test_one_input_is_a_table_of_one_row() -> None:
    net = random_network(5)
    one = fo.closest_flip_points(net, rows(1)[0])
    equal(one, fo.closest_flip_points(net, rows(1)))
    assert len(one) == 1


def test_progress_is_shown_and_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    net = random_network(5)
    shown = fo.closest_flip_points(net, rows(9), solver=Batch(chunk=6), progress=True)
    equal(shown, fo.closest_flip_points(net, rows(9), solver=Batch(chunk=6)))
    assert "9/9" in capsys.readouterr().out


# Starts


def test_starts_towards_samples_and_their_columns() -> None:
    net, X = random_network(6, (4, 20, 3)), rows(6, 4)
    samples = 3 * rows(40, 4)
    one = fo.closest_flip_points(net, X, "all")
    several = fo.closest_flip_points(net, X, "all", starts=4, towards=samples, seed=1)
    assert (several.starts == 4).all()
    assert ((several.agreeing >= 1) & (several.agreeing <= 4)).all()
    assert (several.agreeing > 1).any()
    both = one.success & several.success
    assert both[one.success].all()
    assert (several.distance[both] <= one.distance[both]).all()
    equal(several, fo.closest_flip_points(net, X, "all", starts=4, towards=samples, seed=1))


# What is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"starts": 0}, "starts: expected a number of points >= 1, or points, found 0"),
        ({"starts": 2.5}, "starts: expected a number of points >= 1, or points, found 2.5"),
        ({"starts": True}, "starts: expected a number of points >= 1, or points, found True"),
        ({"towards": np.ones((2, 3))}, "towards: expected shape"),
        ({"source": 4}, "source: expected a class from 0 to 3, found 4"),
        ({"source": True}, "source: expected a class from 0 to 3, found True"),
        ({"targets": "some"}, "targets: expected 'nearest', 'all' or a class for each row, found 'some'"),
        ({"targets": [0, 1]}, "targets: expected 3 classes, one a row"),
        ({"targets": [1, 1, 1], "source": 1}, "target: expected classes other than the source 1, found 1"),
        ({"targets": [0, 4, 0], "source": 1}, "target: expected a class from 0 to 3, found 4"),
        ({"targets": [0, -1, 0], "source": 1}, "target: expected a class from 0 to 3, found -1"),
        ({"frozen": [0], "bounds": (100.0, 200.0)}, "frozen: .* is frozen outside its bounds"),
        ({"frozen": [6]}, "frozen: expected a mask"),
        ({"weights": np.zeros(6)}, "weights: expected positive numbers"),
        ({"bounds": (1.0, 0.0)}, "bounds"),
        ({"colour": "red"}, "options: expected .*found colour"),
        ({"solver": "snopt"}, "solver: expected a Solver or one of"),
        ({"X": np.ones((3, 4))}, r"X: expected shape \(6,\) or \(batch, 6\), found \(3, 4\)"),
    ],
)
def test_bad_arguments_are_named(options: dict, message: str) -> None:
    with pytest.raises(fo.InputError, match=message):
        fo.closest_flip_points(random_network(5), **({"X": rows(3)} | options))
