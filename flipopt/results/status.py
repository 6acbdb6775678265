"""How a solve ended: a status that carries its message."""

from __future__ import annotations

from enum import Enum


class Status(Enum):
    """How a solve ended, by flipopt's own check and not by the solver's word."""

    CONVERGED = "a closest flip point: on the boundary and stationary"
    ON_BOUNDARY = "on the boundary, but not proved closest"
    INFEASIBLE = "the solver found no point that satisfies the constraints"
    LIMIT = "stopped by a limit on iterations, evaluations or time"
    NUMERICAL_ERROR = "the solver failed, or its point does not stand up to the check"
    UNAVAILABLE = "the solver is not installed or cannot take this problem"

    @property
    def message(self) -> str:
        return self.value
