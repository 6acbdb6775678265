"""The flip problem: its facts, and the counted functions a solver sees."""

from flipopt.problem.constraints import Constraint, LinearConstraint, NonlinearConstraint
from flipopt.problem.flip import FlipProblem, flip_problem
from flipopt.problem.flips import FlipBatch, flip_batch
from flipopt.problem.goal import Goal, flip, reach
from flipopt.problem.oracle import Evaluations, LimitReached, Oracle, logit_scale, size_of
from flipopt.problem.reduction import Reduced, Span
from flipopt.problem.scaling import scale_of
from flipopt.problem.setting import Setting, in_float64

__all__ = [
    "Constraint",
    "Evaluations",
    "FlipBatch",
    "FlipProblem",
    "Goal",
    "LimitReached",
    "LinearConstraint",
    "NonlinearConstraint",
    "Oracle",
    "Reduced",
    "Setting",
    "Span",
    "flip",
    "flip_batch",
    "flip_problem",
    "in_float64",
    "logit_scale",
    "reach",
    "scale_of",
    "size_of",
]
