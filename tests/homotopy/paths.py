"""Problems and assertions that the tests of paths share."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

import flipopt as fo
from flipopt.problem import Evaluations

A, OFFSET, X = np.array([1.0, -2.0, 0.5]), 0.3, np.array([1.0, -1.0, 0.5])
LEAD = float(A @ X + OFFSET)
"""The classifier ``linear(A, OFFSET)``, a point, and by how much class 0 leads there."""


def random_network(kind: fo.Activation, seed: int, widths: tuple[int, ...] = (4, 10, 10, 3)) -> fo.FlipProblem:
    """A small network and a point of it, to be flipped to the runner-up."""
    rng = np.random.default_rng(seed)
    W = [rng.standard_normal(pair) / np.sqrt(pair[0]) for pair in pairwise(widths)]
    net = fo.DenseNetwork(W, [0.3 * rng.standard_normal(width) for width in widths[1:]], kind)
    x = rng.standard_normal(widths[0])
    runner_up, first = np.argsort(net.logits(x))[-2:]
    return fo.flip_problem(net, x, (first, runner_up))


def assert_speaks_of_the_trained_network(found: fo.FlipResult, problem: fo.FlipProblem) -> None:
    """Whatever the status, the check and the distance are those of the problem that was asked, not of a stage's."""
    assert found.check is not None
    check = fo.verify(problem, found.x)
    for name in ("boundary_gap", "class_margin", "bound_violation", "constraint_violation", "kkt_residual"):
        assert getattr(found.check, name) == getattr(check, name), name
    assert found.success == (found.status is fo.Status.CONVERGED)
    assert not found.success or check.closest()
    if check.on_boundary:
        assert found.distance == problem.distance(found.x)


def assert_recorded(found: fo.FlipResult) -> None:
    """The cost is that of all stages, and the stages lead from 0 to 1."""
    assert sum((stage.evaluations for stage in found.stages), Evaluations()) == found.evaluations
    kept = [stage.t for stage in found.stages if stage.kept]
    assert kept == sorted(kept)
    assert all(0 < stage.t <= 1 for stage in found.stages)
    assert found.stages[-1].t == 1
    if found.success:
        last = found.stages[-1]
        assert last.kept
        assert last.status is found.status
        assert (last.x == found.x).all()
        assert last.distance == found.distance
