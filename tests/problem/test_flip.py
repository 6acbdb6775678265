from __future__ import annotations

import numpy as np
import pytest

import flipopt as fo
from flipopt.problem import flip, reach
from tests.cases import linear, three_classes

NET, X = three_classes(), np.array([1.0, 2.0])


def identity(rows: int) -> fo.NonlinearConstraint:
    return fo.NonlinearConstraint(lambda x: x[:rows], lambda x: np.eye(2)[:1], 0.0, 1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": [np.nan, 1.0]}, r"x: expected finite numbers, found nan at index \(0,\)"),
        ({"x": [1.0]}, r"x: expected shape \(2,\) or \(batch, 2\), found \(1,\)"),
        ({"x": [[1.0, 2.0]]}, r"x: expected one point of shape \(2,\), found \(1, 2\)"),
        ({"x": ["a", "b"]}, "x: expected real numbers, found dtype <U1"),
        ({"x": [[1.0], [1.0, 2.0]]}, "x: expected a rectangular array"),
        ({"classes": (0, 3)}, "classes: expected integers from 0 to 2, found 3"),
        ({"classes": (-1, 0)}, "classes: expected integers from 0 to 2, found -1"),
        ({"classes": (0, 1.0)}, "classes: expected integers from 0 to 2, found 1.0"),
        ({"classes": (1, 1)}, r"classes: expected at least two different classes, found \(1, 1\)"),
        ({"classes": (1,)}, r"classes: expected at least two different classes, found \(1,\)"),
        ({"margin": -1.0}, "margin: expected a number >= 0, found -1.0"),
        ({"margin": np.nan}, "margin: expected a number >= 0, found nan"),
        ({"bounds": (1.0, 0.0)}, r"bounds \(lower\): expected at most bounds \(upper\), found 1.0 > 0.0 at index 0"),
        ({"bounds": ([0.0, 0.0, 0.0], 1.0)}, r"bounds \(lower\): expected a number or 2 of them, found \(3,\)"),
        ({"bounds": (0.0, np.nan)}, r"bounds \(upper\): expected numbers, found NaN at index 0"),
        ({"bounds": 3.0}, r"bounds: expected a pair \(lower, upper\), found float"),
        ({"bounds": ()}, r"bounds: expected a pair \(lower, upper\), found tuple"),
        ({"frozen": [2]}, r"frozen: expected a mask of shape \(2,\) or indices below 2, found int64 \(1,\)"),
        ({"frozen": [-1]}, "frozen: expected a mask"),
        ({"frozen": [True]}, r"frozen: expected a mask of shape \(2,\).*found bool \(1,\)"),
        ({"frozen": [0.5]}, "frozen: .*found float64"),
        ({"frozen": [0, 1]}, "frozen: expected at least one feature that may change, found none"),
        ({"frozen": [0], "bounds": (2.0, 3.0)}, "frozen: feature 0 is frozen outside its bounds"),
        ({"weights": [1.0, 0.0]}, "weights: expected positive numbers, found 0.0"),
        ({"weights": [1.0]}, r"weights: expected shape \(2,\), found \(1,\)"),
        ({"weights": [1.0, np.inf]}, "weights: expected finite numbers, found inf"),
        ({"weights": [1.0, 2.0], "norm": 1}, "weights: expected norm=2 with weights, found norm=1"),
        ({"norm": 3}, "norm: expected 1, 2 or inf, found 3"),
        ({"outputs": "scores"}, "outputs: expected one of logits, probabilities, found 'scores'"),
        ({"constraints": [None]}, r"constraints\[0\]: expected a LinearConstraint or Nonlinear.*found NoneType"),
        (
            {"constraints": [fo.LinearConstraint(np.ones((1, 3)), 0.0, 1.0)]},
            r"constraints\[0\]: expected A with 2 columns, found 3",
        ),
        ({"constraints": [identity(2)]}, r"constraints\[0\]: expected function\(x\) of shape \(1,\), found \(2,\)"),
    ],
)
def test_bad_input_is_named(change: dict, message: str) -> None:
    with pytest.raises(fo.InputError, match=message):
        fo.flip_problem(NET, **({"x": X, "classes": (0, 1)} | change))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fo.LinearConstraint(np.ones(3), 0.0, 1.0), r"A: expected shape \(rows, n_inputs\), found \(3,\)"),
        (lambda: fo.LinearConstraint([[np.nan]], 0.0, 1.0), "A: expected finite numbers"),
        (lambda: fo.LinearConstraint(np.ones((1, 2)), 2.0, 1.0), "lower: expected at most upper, found 2.0 > 1.0"),
        (lambda: fo.LinearConstraint(np.ones((1, 2)), [0, 0, 0], 1.0), "lower: expected a number or 1 of them"),
        (lambda: fo.NonlinearConstraint(3, lambda x: x, 0.0, 1.0), "function: expected a function of x, found int"),
        (lambda: fo.NonlinearConstraint(lambda x: x, None, 0.0, 1.0), "jacobian: .*found NoneType"),
        (lambda: reach(3, [0.0, 0.0], 1.0), r"lower: expected a number or 3 of them, found \(2,\)"),
        (lambda: reach(3, [0.0, 0.5, 0.0], [1.0, 0.2, 1.0]), "lower: expected at most upper, .* at index 1"),
    ],
)
def test_bad_constraints_are_named(make, message: str) -> None:
    with pytest.raises(fo.InputError, match=message):
        make()


def test_a_flip_ties_its_classes_and_keeps_the_others_below() -> None:
    goal = flip(4, (2, 0), margin=0.5)
    assert goal.classes == (2, 0)
    y = np.array([5.0, 1.0, 5.0, 4.6])
    values = goal.T @ y
    assert values == pytest.approx([0.0, 4.0, 0.4])
    assert (goal.lower == [0, 0.5, 0.5]).all()
    assert (goal.upper == [0, np.inf, np.inf]).all()
    assert (goal.equations == [True, False, False]).all()


def test_a_flip_of_three_classes_has_two_equations() -> None:
    assert flip(3, (1, 0, 2)).equations.all()
    assert flip(3, (1, 0, 2)).T @ np.ones(3) == pytest.approx([0, 0])


def test_reach_asks_for_the_outputs_themselves() -> None:
    goal = reach(3, [0.5, -np.inf, 0.1], [np.inf, 0.2, 0.1])
    assert (np.eye(3) == goal.T).all()
    assert (goal.equations == [False, False, True]).all()
    assert goal.classes == ()


def test_the_problem_is_in_float64_and_clips_exactly() -> None:
    net = linear(np.ones(2), dtype=np.float32)
    problem = fo.flip_problem(net, np.ones(2, dtype=np.float32), (0, 1), bounds=(None, 2.0), frozen=[1])
    assert problem.network.dtype == np.float64
    assert (problem.clip(np.array([7.0, 7.0])) == [2.0, 1.0]).all()
    assert (problem.lower == -np.inf).all()
    assert (problem.free == [0]).all()


def test_distances_are_in_the_problem_s_norm() -> None:
    x_hat = X + np.array([3.0, -4.0])
    for norm, distance in ((1, 7), (2, 5), (np.inf, 4)):
        assert fo.flip_problem(NET, X, (0, 1), norm=norm).distance(x_hat) == distance
    assert fo.flip_problem(NET, X, (0, 1), weights=[1.0, 0.25]).distance(x_hat) == pytest.approx(np.sqrt(13))
