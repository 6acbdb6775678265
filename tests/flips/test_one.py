from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import flipopt as fo
from flipopt.problem import FlipProblem, Oracle, Setting, reach
from flipopt.solvers import Answer, Ipopt, Solver
from tests.cases import disc, distance_by_search, linear, moons, three_classes

X = np.array([-0.5, 0.9])


def four_classes() -> fo.DenseNetwork:
    rng = np.random.default_rng(5)
    W = [rng.standard_normal((3, 12)), rng.standard_normal((12, 4))]
    return fo.DenseNetwork(W, [0.5 * rng.standard_normal(12), np.zeros(4)], fo.Erf(1.5))


def test_no_target_means_the_nearest_of_all() -> None:
    net, x = four_classes(), np.array([0.2, -0.1, 0.4])
    source = int(net.predict(x))
    each = [fo.closest_flip_point(net, x, k) for k in range(4) if k != source]
    nearest = fo.closest_flip_point(net, x)
    assert nearest.success
    assert all(flip.success for flip in each)
    assert nearest.distance == pytest.approx(min(flip.distance for flip in each), rel=1e-9)
    assert nearest.classes[0] == source


def test_the_source_is_the_predicted_class_unless_given() -> None:
    found = fo.closest_flip_point(three_classes(), np.array([1.0, 2.0]), 1)
    assert found.classes == (0, 1)
    assert found.distance == pytest.approx(1)
    found = fo.closest_flip_point(three_classes(), np.array([1.0, 2.0]), 2, source=1)
    assert found.classes == (1, 2)


def test_three_classes_tie_to_1e_8() -> None:
    found = fo.closest_flip_point(three_classes(), np.array([1.0, 2.0]), (1, 2))
    assert found.success
    assert found.x == pytest.approx([0, 3], abs=1e-8)
    assert np.ptp(three_classes().logits(found.x)) <= 1e-8


def test_starts_towards_and_seed() -> None:
    options = {"starts": 5, "towards": np.array([[1.0, -0.4], [0.5, -0.3]]), "seed": 3}
    found = fo.closest_flip_point(moons(), X, **options)
    again = fo.closest_flip_point(moons(), X, **options)
    assert (found.x == again.x).all()
    assert (found.starts, found.agreeing) == (again.starts, again.agreeing)
    assert found.starts == 5
    assert 1 <= found.agreeing <= 5
    assert found.distance == pytest.approx(distance_by_search(moons(), X), rel=1e-7)
    given = fo.closest_flip_point(moons(), X, starts=np.array([X, found.x]))
    assert given.starts == 2
    assert given.distance <= found.distance * (1 + 1e-7)


def test_tables_of_nearest_all_and_given_targets() -> None:
    net, rows = four_classes(), np.random.default_rng(0).standard_normal((3, 3))
    sources = net.predict(rows)
    nearest = fo.closest_flip_points(net, rows)
    every = fo.closest_flip_points(net, rows, "all")
    assert len(nearest) == 3
    assert len(every) == 9
    assert (every.row == np.repeat([0, 1, 2], 3)).all()
    assert (every.classes[:, 0] == sources[every.row]).all()
    assert every.nearest().success.all()
    assert every.nearest().distance == pytest.approx(nearest.distance, rel=1e-9)
    assert (every.nearest().classes == nearest.classes).all()
    given = fo.closest_flip_points(net, rows, (sources + 1) % 4)
    assert (given.classes[:, 1] == (sources + 1) % 4).all()


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_table_survives_its_file(tmp_path: Path, rows: int) -> None:
    points = np.random.default_rng(1).uniform(-1, 1, size=(rows, 2))
    table = fo.closest_flip_points(moons(), points)
    table.save(tmp_path / "flips.parquet")
    loaded = fo.FlipTable.load(tmp_path / "flips.parquet")
    assert len(loaded) == rows
    for name in ("row", "classes", "x", "distance", "status", "kkt_residual", "boundary_gap", "evaluations", "message"):
        expected, found = getattr(table, name), getattr(loaded, name)
        assert found.shape == expected.shape, name
        assert all((a == b).all() if np.ndim(a) else a == b for a, b in zip(found, expected)), name


def test_broken_tables_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "flips.parquet"
    with pytest.raises(fo.FileFormatError, match="no such file"):
        fo.FlipTable.load(path)
    path.write_bytes(b"")
    with pytest.raises(fo.FileFormatError, match="the file is empty"):
        fo.FlipTable.load(path)
    path.write_bytes(np.random.default_rng(0).bytes(2000))
    with pytest.raises(fo.FileFormatError, match="not a Parquet file"):
        fo.FlipTable.load(path)
    fo.closest_flip_points(moons(), X).save(path)
    whole, table = path.read_bytes(), pq.read_table(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(fo.FileFormatError, match="not a Parquet file"):
        fo.FlipTable.load(path)
    for name in set(table.column_names) - {"solver", "lower_bound"}:
        pq.write_table(table.drop_columns([name]), path)
        with pytest.raises(fo.FileFormatError, match=f"lacks the columns {name}"):
            fo.FlipTable.load(path)
    for name, wrong in (("status", pa.array(["DONE"])), ("distance", pa.array(["far"])), ("x", pa.array([1.0]))):
        pq.write_table(table.set_column(table.column_names.index(name), name, wrong), path)
        with pytest.raises(fo.FileFormatError, match="not a table of flip points"):
            fo.FlipTable.load(path)


def test_least_change_reaches_the_probabilities_asked_for() -> None:
    net = moons()
    source = int(net.predict(X))
    wanted = np.full(2, -np.inf)
    wanted[1 - source] = 0.7
    found = fo.least_change(net, X, wanted, np.inf)
    assert found.success, found.message
    assert net.probabilities(found.x)[1 - source] >= 0.7 - 1e-8
    assert found.distance > fo.closest_flip_point(net, X).distance
    assert found.classes == ()
    # The boundary on the way is one start, x the other; all three solves are paid for.
    problem = FlipProblem(Setting.of(net, outputs="probabilities"), X, reach(2, wanted, np.inf))
    flip = fo.closest_flip_point(net, X, 1 - source)
    each = [Ipopt().solve(problem, start).evaluations for start in (X, flip.x)]
    assert found.evaluations == sum(each, flip.evaluations)


def test_least_change_of_a_point_that_is_there_already_is_none() -> None:
    found = fo.least_change(moons(), X, -np.inf, np.inf)
    assert found.distance == pytest.approx(0, abs=1e-6)


def test_a_point_on_the_boundary_has_distance_zero() -> None:
    found = fo.closest_flip_point(linear(np.ones(2)), np.zeros(2))
    assert found.success, found.message
    assert found.distance == pytest.approx(0, abs=1e-8)


def test_further_flip_points_finds_both_sides() -> None:
    # Between two lines, x_0 = -1.2 and x_0 = 1, of a one-dimensional band.
    W = [np.array([[1.0, 1.0]]), np.array([[1.0, 0.0], [-1.0, 0.0]])]
    net = fo.DenseNetwork(W, [np.array([1.2, -1.0]), np.array([-1.0, 0.0])], fo.Erf(0.5))
    x = np.array([0.1])
    # The search is random: it is asked for more than there are, and so tries more often.
    found = fo.further_flip_points(net, x, 1, 4, starts=2)
    assert len(found) == 2
    assert all(flip.success for flip in found)
    assert found[0].distance < found[1].distance
    assert found[0].x[0] * found[1].x[0] < 0


def test_further_flip_points_stay_apart() -> None:
    net, radius = moons(), 0.3
    found = fo.further_flip_points(net, X, 1 - int(net.predict(X)), 4, radius=radius)
    assert 2 <= len(found) <= 4
    assert all(flip.success for flip in found)
    assert found[0].distance == pytest.approx(distance_by_search(net, X), rel=1e-7)
    apart = [np.linalg.norm(a.x - b.x) for a, b in combinations(found, 2)]
    assert min(apart) > 0.1 * radius * found[0].distance
    assert [flip.distance for flip in found] == sorted(flip.distance for flip in found)


def test_a_disc_has_one_closest_flip_point_however_many_are_asked_for() -> None:
    found = fo.further_flip_points(disc(1.0), np.array([0.3, 0.0]), 1, 3)
    assert len(found) == 1
    assert found[0].distance == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": 0, "source": 0}, "target: expected classes other than the source 0, found 0"),
        ({"target": 2}, "target: expected a class from 0 to 1, found 2"),
        ({"target": True}, "target: expected a class from 0 to 1, found True"),
        ({"target": ()}, "target: expected classes other than the source"),
        ({"source": -1}, "source: expected a class from 0 to 1, found -1"),
        ({"solver": "snopt"}, "solver: expected a Solver or one of"),
        ({"x": [1.0, np.nan]}, "x: expected finite numbers"),
        ({"x": np.ones((1, 2))}, "x: expected one point"),
    ],
)
def test_bad_arguments_are_named(options: dict, message: str) -> None:
    with pytest.raises(fo.InputError, match=message):
        fo.closest_flip_point(moons(), **({"x": X} | options))


def test_bad_arguments_of_tables_are_named() -> None:
    with pytest.raises(fo.InputError, match=r"targets: expected 1 classes, one a row, found int64 \(2,\)"):
        fo.closest_flip_points(moons(), X, [0, 1])
    with pytest.raises(fo.InputError, match="targets: expected 1 classes, one a row, found float64"):
        fo.closest_flip_points(moons(), X, [0.0])
    with pytest.raises(fo.InputError, match="targets: expected 'nearest', 'all' or a class for each row"):
        fo.closest_flip_points(moons(), X, "some")
    with pytest.raises(fo.InputError, match="options: expected .*found colour"):
        fo.closest_flip_points(moons(), X, colour="red")
    with pytest.raises(TypeError, match="colour"):
        fo.closest_flip_point(moons(), X, colour="red")  # type: ignore[call-arg]


# Homotopy


@dataclass(frozen=True, kw_only=True)
class Fails(Solver):
    """From everywhere but the end of a path; there it leaves the work to the refinement."""

    def _solve(self, oracle: Oracle, u0: np.ndarray) -> Answer:
        oracle.constraints(u0)
        trained = oracle.problem.network.activations == moons().activations
        return Answer(np.full(2, np.nan) if trained else u0, fo.Status.INFEASIBLE, "cannot")


def test_a_homotopy_is_a_start_among_others() -> None:
    plain = fo.closest_flip_point(moons(), X)
    found = fo.closest_flip_point(moons(), X, homotopy=fo.Homotopy())
    assert found.success, found.message
    assert found.distance == pytest.approx(plain.distance, rel=1e-7)
    assert found.stages
    assert found.starts == 1
    assert not plain.stages
    several = fo.closest_flip_point(moons(), X, homotopy=fo.Homotopy(), starts=3)
    assert several.starts == 3
    assert several.evaluations.forward > found.evaluations.forward
    given = fo.closest_flip_point(moons(), X, homotopy=fo.Homotopy(), starts=plain.x[None])
    assert given.starts == 2
    assert given.agreeing == 2


def test_a_number_of_stages_is_a_homotopy() -> None:
    assert fo.closest_flip_point(moons(), X, homotopy=10).stages
    one = fo.closest_flip_point(moons(), X, homotopy=1)
    direct = fo.closest_flip_point(moons(), X, starts=X[None])
    np.testing.assert_array_equal(one.x, direct.x)
    assert [stage.t for stage in one.stages] == [1.0]
    assert fo.closest_flip_point(moons(), X, homotopy=np.int64(10)).stages


def test_a_homotopy_when_needed_is_followed_only_after_a_failure() -> None:
    needed = fo.Homotopy(when="needed")
    found = fo.closest_flip_point(moons(), X, homotopy=needed)
    assert found.success
    assert found.stages == ()
    assert found.evaluations == fo.closest_flip_point(moons(), X, solver="ipopt").evaluations
    assert not fo.closest_flip_point(moons(), X, solver=Fails()).success
    found = fo.closest_flip_point(moons(), X, solver=Fails(), homotopy=needed)
    assert found.stages
    assert found.success, found.message
    assert found.starts == 2
    assert found.distance >= distance_by_search(moons(), X) * (1 - 1e-7)


def test_the_nearest_of_all_classes_by_homotopy() -> None:
    net, x = four_classes(), np.array([0.2, -0.1, 0.4])
    found = fo.closest_flip_point(net, x, homotopy=5)
    assert found.success, found.message
    assert found.distance == pytest.approx(fo.closest_flip_point(net, x).distance, rel=1e-6)
    table = fo.closest_flip_points(net, x, "all", homotopy=fo.Homotopy(5, adaptive=False))
    assert len(table) == 3
    assert all(len(result.stages) == 5 for result in table.results)
    assert table.nearest().distance[0] == pytest.approx(found.distance, rel=1e-6)


@pytest.mark.parametrize("homotopy", [True, "yes", 2.5, 0])
def test_what_is_no_homotopy_is_named(homotopy: object) -> None:
    with pytest.raises(fo.InputError, match="homotopy: expected a Homotopy|stages: expected a whole number >= 1"):
        fo.closest_flip_point(moons(), X, homotopy=homotopy)  # type: ignore[arg-type]


def test_where_there_is_no_path_it_is_said() -> None:
    with pytest.raises(fo.InputError, match="homotopy: expected None with integers or one_of"):
        fo.closest_flip_point(moons(), X, homotopy=5, integers=[0])
    with pytest.raises(fo.InputError, match="homotopy: expected a DenseNetwork.*found TorchNetwork"):
        fo.closest_flip_point(disc(1.0), np.array([0.3, 0.1]), homotopy=5)
