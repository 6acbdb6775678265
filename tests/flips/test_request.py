"""What the options of the public verbs mean, for one input and for many."""

from __future__ import annotations

import numpy as np
import pytest

import flipopt as fo
from flipopt.flips.request import Request
from flipopt.solvers import Batch
from tests.cases import moons, three_classes

X = np.array([-0.5, 0.9])

TO_IPOPT = [
    {"norm": 1},
    {"norm": np.inf},
    {"outputs": "probabilities"},
    {"homotopy": 2},
    {"starts": np.array([[0.1, 0.2]])},
    {"constraints": fo.NonlinearConstraint(lambda x: x, lambda x: np.eye(2), -9.0, np.full(2, 9.0))},
]
TO_BATCH = [
    {},
    {"starts": 3},
    {"bounds": (-4, 4)},
    {"frozen": [0]},
    {"one_of": ()},
    {"homotopy": None},
    {"margin": 0.1},
    {"valid": True},
    {"constraints": fo.LinearConstraint(np.eye(2), -9.0, 9.0)},
]


def names(options: dict) -> str:
    return " ".join(options) or "none"


@pytest.mark.parametrize("options", TO_IPOPT, ids=names)
def test_what_a_batch_cannot_take_goes_to_ipopt(options: dict) -> None:
    request = Request.of(moons(), None, **options)
    assert request.solver.name == "ipopt"
    assert not request.batched


@pytest.mark.parametrize("options", TO_BATCH, ids=names)
def test_all_else_goes_to_the_batch_solver(options: dict) -> None:
    request = Request.of(moons(), None, **options)
    assert request.solver == Batch()
    assert request.batched


@pytest.mark.parametrize(
    "options", [{"integers": [0]}, {"one_of": [(0, 1)]}], ids=lambda options: " ".join(options) or "none"
)
def test_relaxed_problems_of_discrete_features_go_to_the_batch_solver_one_row_at_a_time(options: dict) -> None:
    request = Request.of(moons(), None, **options)
    assert request.solver == Batch()
    assert not request.batched


def test_the_single_verb_and_the_table_choose_the_same_solver() -> None:
    for options, solver in (({}, "batch"), ({"norm": 1}, "ipopt"), ({"outputs": "probabilities"}, "ipopt")):
        found = fo.closest_flip_point(moons(), X, **options)
        table = fo.closest_flip_points(moons(), X[None], **options)
        assert found.success
        assert found.solver == solver
        assert found.distance == pytest.approx(table.distance[0], rel=1e-12)
    found = fo.closest_flip_point(three_classes(), np.array([1.0, 2.0]), (1, 2))  # a tie of three
    assert found.solver.startswith("ipopt")


def test_a_solver_that_is_asked_for_is_used() -> None:
    assert fo.closest_flip_point(moons(), X, solver="ipopt").solver == "ipopt"
    assert fo.closest_flip_point(moons(), X, solver="batch").solver == "batch"
    for unable in (
        fo.closest_flip_point(moons(), X, solver="batch", norm=1),
        fo.closest_flip_point(three_classes(), X, (1, 2), source=0, solver="batch"),
    ):
        assert unable.status is fo.Status.UNAVAILABLE
        assert "batch takes" in unable.message
    assert fo.closest_flip_points(moons(), X[None], solver="batch", norm=1).status[0] is fo.Status.UNAVAILABLE


def test_given_points_and_a_homotopy_are_possible_with_the_batch_solver_too() -> None:
    plain = fo.closest_flip_point(moons(), X)
    given = fo.closest_flip_point(moons(), X, solver="batch", starts=np.array([X, plain.x]))
    assert given.starts == 2
    assert given.distance <= plain.distance * (1 + 1e-9)


def test_unknown_options_are_named_with_those_that_exist() -> None:
    with pytest.raises(fo.InputError, match="options: expected bounds, constraints, .*weights, found colour, size$"):
        Request.of(moons(), None, size=3, colour="red")
