"""How a homotopy is followed."""

from __future__ import annotations

from dataclasses import dataclass

from flipopt.common.checks import one_of
from flipopt.common.errors import InputError


@dataclass(frozen=True)
class Homotopy:
    """Options of a homotopy over the activations and the output bias of a network."""

    stages: int = 10
    """eta: uniform stages. An adaptive path begins with a step that is not shorter than 1/stages. 1 is the direct solve
    from x."""
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
