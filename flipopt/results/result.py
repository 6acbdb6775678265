"""What the solve of one problem returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.later import later
from flipopt.problem import Evaluations
from flipopt.results.html import result_html
from flipopt.results.status import Status
from flipopt.verification import Verification

PROVED = 1e-6
"""A distance that is above its lower bound by this share at most is proved."""


@dataclass(frozen=True)
class Stage:
    """One stage of a homotopy: a flip point of a network between the easy one (t = 0) and the trained one (t = 1).

    Attributes
    ----------
    t, step
        Where on the path, and how far from the stage before.
    x
        The point that the solver found, (n_inputs,).
    distance, moved
        From the input, in the problem's norm, and from the last point that was kept, in the 2-norm.
    boundary_gap, kkt_residual
        What the check found at the point, for the network of this stage.
    status, solver, evaluations
        Of the solve.
    kept
        Whether the path went on from this point.
    decision
        What was made of it.
    """

    t: float
    step: float
    x: Array = field(repr=False)
    distance: float
    moved: float
    boundary_gap: float
    kkt_residual: float
    status: Status
    solver: str
    evaluations: Evaluations
    kept: bool
    decision: str


@dataclass(frozen=True)
class FlipResult:
    """A flip point and everything known about it.

    Attributes
    ----------
    x
        The point x_hat, (n_inputs,), float64.
    distance
        d(x_hat, x) in the problem's norm; NaN if the point is not on the boundary.
    classes
        (i, j), or more classes if more of them tie.
    status, message
        The check's verdict, and what the solver said.
    check
        The :class:`~flipopt.verification.Verification`; None if there was no point to check.
    evaluations, elapsed
        The whole cost, of every start and of every class that was tried: network evaluations and seconds.
    iterations
        Of the solver, in the run that found this point.
    solver
        Its name.
    multipliers
        Of the goal's rows, as the check found them.
    starts, agreeing
        Starting points tried, and how many of them led to this distance.
    stages
        What each :class:`Stage` of a homotopy did; empty without one.
    settled
        False if this is the nearest of several classes and one of them was not solved.
    lower_bound
        No flip is nearer than this, proved; NaN where nothing was proved, see :func:`flipopt.proofs.prove_flips`.
    """

    x: Array
    distance: float
    classes: tuple[int, ...]
    status: Status
    message: str
    check: Verification | None
    evaluations: Evaluations
    iterations: int
    elapsed: float
    solver: str
    starts: int = 1
    agreeing: int = 1
    stages: tuple[Stage, ...] = ()
    settled: bool = True
    lower_bound: float = np.nan

    @property
    def success(self) -> bool:
        """Verified as a closest flip point."""
        return self.status is Status.CONVERGED

    @property
    def proved(self) -> bool:
        """Whether the lower bound says that no flip is nearer by more than a millionth of the distance."""
        return bool(self.lower_bound >= self.distance * (1 - PROVED))

    def plot(self, path: str | Path | None = None, **options: Any) -> Any:
        """Draw the point: a matplotlib figure, written to ``path`` if one is given.

        With the input ``x=`` what changed is drawn, with ``network=`` too the probabilities on the way; ``shape=`` is
        that of inputs that are images. See :func:`flipopt.report.plot_flip`.
        """
        return later("report.plots:plot_flip")(self, path, **options)

    def _repr_html_(self) -> str:
        return result_html(self)

    @property
    def multipliers(self) -> Array:
        return self.check.multipliers if self.check is not None else np.empty(0)
