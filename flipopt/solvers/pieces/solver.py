"""The descent over linear pieces as a solver of its own."""

from __future__ import annotations

from dataclasses import dataclass

from flipopt.common.checks import Array
from flipopt.problem import Goal, Oracle, Setting
from flipopt.results import Status
from flipopt.solvers.pieces.compiled import OPTIONS, descend_one, piecewise_linear
from flipopt.solvers.pieces.options import PieceOptions
from flipopt.solvers.template import Answer, Capabilities, Solver


@dataclass(frozen=True, kw_only=True)
class Pieces(Solver):
    """Exact descent over the linear pieces of a ReLU or PReLU network (``max_iter`` does not apply)."""

    options: PieceOptions = OPTIONS
    """How far it goes."""

    @property
    def summary(self) -> str:
        return "exact descent over the linear pieces of ReLU networks"

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(smooth_norms_only=True)

    def cannot(self, setting: Setting, goal: Goal | None = None) -> str | None:
        if not piecewise_linear(setting):
            return "pieces takes ReLU and PReLU networks with norm=2, outputs='logits' and no further constraints"
        return super().cannot(setting, goal)

    def _solve(self, oracle: Oracle, u0: Array) -> Answer:
        found = descend_one(oracle, oracle.point(u0), self.options)
        u = u0 if found is None else oracle.variables(found)
        if oracle.limit is not None:
            return Answer(u, Status.LIMIT, f"stopped after {oracle.limit}")
        if found is None:
            return Answer(u, Status.INFEASIBLE, "no better point on the boundary was found from the start")
        return Answer(u, Status.CONVERGED, "no neighbouring piece is closer")
