"""The full-space formulation: the same flips as in the inputs alone."""

from __future__ import annotations

import numpy as np
import pytest

import flipopt as fo
from flipopt.solvers import Ipopt
from flipopt.solvers.full_space import FullSpace
from tests.cases import linear, three_classes
from tests.solvers.batch.nets import random_batch, random_network


def test_a_plane_is_reached_by_the_shortest_way() -> None:
    a = np.array([1.0, -2.0, 0.5])
    x = np.array([1.0, 0.3, -0.2])
    net = linear(a, 0.3)
    i = int(net.predict(x))
    flip = FullSpace().solve(fo.flip_problem(net, x, (i, 1 - i)))
    assert flip.success, flip.message
    assert flip.distance == pytest.approx(abs(a @ x + 0.3) / np.linalg.norm(a), rel=1e-9)
    assert flip.solver == "full-space"


@pytest.mark.parametrize(
    "activation",
    [fo.Erf(np.linspace(1.0, 2.0, 12)), fo.Tanh(), fo.ELU(0.7), fo.Identity()],
    ids=lambda a: type(a).__name__,
)
def test_the_same_flips_as_in_the_inputs_alone(activation: fo.Activation) -> None:
    batch = random_batch(random_network(5, (5, 12, 4), activation), 5, problems=4)
    solved = 0
    for k in range(len(batch)):
        reduced = Ipopt().solve(batch.problem(k))
        full = FullSpace().solve(batch.problem(k), reduced.x)
        if not reduced.success:
            continue
        assert full.success, full.message
        assert full.distance == pytest.approx(reduced.distance, rel=1e-6)
        assert full.evaluations.forward > 0
        solved += 1
    assert solved >= 3


def test_relu_bounds_and_frozen_features() -> None:
    batch = random_batch(random_network(6, activation=fo.PReLU(0.2)), 6, problems=3, bounds=(-4.0, 4.0), frozen=[1])
    on_boundary = 0
    for k in range(len(batch)):
        flip = FullSpace().solve(batch.problem(k))
        assert flip.x[1] == batch.X[k, 1]
        assert (np.abs(flip.x[[0, 2, 3, 4]]) <= 4).all()
        on_boundary += flip.check is not None and flip.check.on_boundary
    assert on_boundary >= 2


def test_limits_and_what_it_cannot_take() -> None:
    net, x = three_classes(), np.array([1.0, 2.0])
    i = int(net.predict(x))
    j = (i + 1) % 3
    short = FullSpace(max_iter=1, refine=False).solve(fo.flip_problem(random_network(7), np.ones(6), (0, 1)))
    assert not short.success
    for problem, reason in (
        (fo.flip_problem(net, x, (i, j), norm=1), "takes only norm=2"),
        (fo.flip_problem(net, x, (i, j), outputs="probabilities"), "in the logits"),
    ):
        refused = FullSpace().solve(problem)
        assert refused.status is fo.Status.UNAVAILABLE
        assert reason in refused.message
