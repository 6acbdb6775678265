"""How a homotopy is followed."""

from __future__ import annotations

from dataclasses import dataclass, fields

from flipopt.common.checks import one_of
from flipopt.common.errors import InputError


@dataclass(frozen=True)
class StepControl:
    """Tuned values of an adaptive path; lengths of steps are in l(t).

    What each is worth, halved and doubled: ``python -m benchmarks homotopy --sensitivity``.
    """

    grow: float = 2.0
    """Largest factor of the step after a stage that succeeds."""
    target: int = 15
    """Forward passes of a stage; the step grows by the square root of how many times fewer it took."""
    shrink: float = 0.4
    """Factor of the step after a stage that fails."""
    shortest: float = 0.02
    """Length, relative to the first step's, below which no shorter step is tried."""
    tolerance: float = 1e-2
    """Of a stage before the last, and of the boundary gap and violations of any point that the path goes on from."""
    iterations: int = 40
    """At most, of a stage before the last."""
    failures: int = 2
    """Stages that fail or end at their limit after which a solver of short steps takes over."""
    away: float = 0.1
    """Radius of the balls around the ends of earlier paths, relative to the distance of the nearest from x."""
    funnel: float = 1e-2
    """First width of the trust region's funnel after a restart: what is lost in a wide one may be found in a narrow."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise InputError(f"{field.name}: expected a positive number, found {value}")
        if not self.shrink < 1 <= self.grow:
            raise InputError(f"shrink, grow: expected shrink < 1 <= grow, found {self.shrink}, {self.grow}")


@dataclass(frozen=True)
class Homotopy:
    """Options of a homotopy over the activations and the output bias of a network."""

    stages: int = 10
    """eta: uniform stages. An adaptive path begins with a step to 1/stages. 1 is the direct solve from x."""
    tau: float = 1e-5
    """Least slope of any neuron at x in the easy network."""
    adaptive: bool = True
    """Step control and recovery (D.4, D.5); without, algorithm 2 (F3) as printed."""
    when: str = "always"
    """always, or needed: only where the direct solve fails or its result is not verified."""
    margin: float = 0.1
    """By how many logits the other classes stay below the two at x, in the easy network (line 13)."""
    smooth: bool = False
    """Relax ReLU and PReLU to an ELU with a leak, whose slope has no jump at 0, instead of to a PReLU."""
    monotone: bool = True
    """Only go forward. Otherwise a failed stage is followed by a step back, to take up another branch (D.5)."""
    restarts: int = 3
    """How often a failed adaptive path is begun again, kept away from where it ended (D.4)."""
    max_stages: int = 100
    """Stages of one path, failed ones included."""
    max_evaluations: int | None = None
    """Network evaluations (forward passes) of all stages together; None for no limit."""
    max_seconds: float | None = None
    """Wall-clock seconds of all stages together; None for no limit."""
    control: StepControl = StepControl()
    """Tuned values of the adaptive path."""

    def __post_init__(self) -> None:
        for name in ("stages", "max_stages"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InputError(f"{name}: expected a whole number >= 1, found {value!r}")
        if not isinstance(self.restarts, int) or self.restarts < 0:
            raise InputError(f"restarts: expected a whole number >= 0, found {self.restarts!r}")
        if not 0 < self.tau <= 1:
            raise InputError(f"tau: expected a number in (0, 1], found {self.tau}")
        if not self.margin >= 0:
            raise InputError(f"margin: expected a number >= 0, found {self.margin}")
        one_of(self.when, ("always", "needed"), "when")
        for name in ("max_evaluations", "max_seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name}: expected a positive number, found {value}")
