"""The tuned values of the batch solver, each with what it is worth: ``python -m benchmarks batch --parts sensitivity``.

All were chosen on test images beyond the first thousand of MNIST and CIFAR-10, which the benchmarks do not use; starts
and factors of :class:`Kinked` on MNIST training images, with the proved minima of flipopt.proofs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from flipopt.solvers.pieces.options import PieceOptions

Softening = tuple[float, ...]
"""How much softer each of the networks is that a start passes through, one after the other: shares of an erf's width,
or of the size of pre-activations where kinks are rounded off."""


@dataclass(frozen=True)
class Start:
    """A further start."""

    reflect: float = 0.0
    """Begin at x reflected: so many times its distance behind x, as seen from the flip point that is known; if
    negative, beyond the flip point."""
    soften: Softening = ()
    """What it passes through."""


@dataclass(frozen=True, kw_only=True)
class Steps:
    """Of the SQP iteration (sqp.py). The textbook's values of a trust region are constants there."""

    near: float = 0.1
    """The descent begins where the normal step is at most this share of the distance."""
    normal_fall: float = 0.3
    """Of the normal step taken, by which it must shorten in a step that does not lower the merit function."""
    pairs: int = 30
    """Of the limited memory, for up to 300 variables; in proportion fewer for more, since they fill the caches."""
    watched: float = 0.01
    """A third class has a row if its lead is below this, relative to the largest logit."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Which networks and starts a problem passes through, and when it is given up."""

    soften: Softening
    """What the first start passes through."""
    restarts: tuple[Start, ...]
    """The next starts, which should end elsewhere."""
    close: float = 1.15
    """For the nearest of all classes: those that end within this factor of the nearest are restarted; in softened
    networks those that the linearisation at x puts within it are never given up."""
    hopeless: float = 1.35
    """A class whose softened boundary is so many times farther than another's is given up; before it has met its
    boundary, twice that."""
    budget: int = 300
    """Evaluations of an input up to which it is restarted more than once, for the nearest of all classes."""


@dataclass(frozen=True, kw_only=True)
class Smooth(Schedule):
    """Of problems without kinks."""

    soften: Softening = (0.5,)
    restarts: tuple[Start, ...] = (Start(0.25), Start(0.0, (2.0,)), Start(), Start(4.0))


@dataclass(frozen=True, kw_only=True)
class Kinked(Schedule):
    """Of ReLU networks, whose kinks are rounded off first; what is restarted has its neighbouring minima looked for."""

    soften: Softening = (0.2, 0.05)
    restarts: tuple[Start, ...] = (Start(0.0, (0.02,)), Start(1.0, (0.05,)))
    close: float = 1.2
    hopeless: float = 1.6
    budget: int = 100_000
    around: float = 1.05
    """For the nearest of all classes: the ends of all starts within this factor of the nearest have their neighbouring
    minima looked for."""
    fall: float = 0.7
    """Share of its distance to which the descent over pieces may bring a problem: if another one is nearer than that,
    it is given up."""
    pieces: PieceOptions = field(default_factory=PieceOptions)
    """Of the descent over pieces."""


@dataclass(frozen=True, kw_only=True)
class Rounded(Schedule):
    """Of other networks with kinks, such as convolutional ones: their kinks are rounded off less and less."""

    soften: Softening = (0.1, 0.03, 0.005, 0.0005)
    restarts: tuple[Start, ...] = (Start(0.0, (0.2, 0.03, 0.005, 0.0005)),)
    close: float = 1.05
    tolerance: float = 1e-2
    """KKT residual at which the problem of a rounded network ends."""
    few: int = 20
    """Kinks near the end up to which the steps go on without any rounding."""
    apart: tuple[float, ...] = (1.35, 1.15, 1.05, 1.02)
    """As ``hopeless``, of one rounded network after the other; the last holds for all that follow."""


@dataclass(frozen=True, kw_only=True)
class Small:
    """Of problems in few variables, which are searched in full (small.py)."""

    variables: int = 5
    """Features that may change, at most; 0 searches none."""
    gap: float = 5e-4
    """The nearest flip is sought to within this share of its distance."""
    boxes: int = 20_000
    """Of an input at most; what is left then is not settled."""
    operations: float = 1e9
    """Floating-point operations of an input at most, about."""
    grid: int = 2_000
    """Points of an input that are looked at where nothing is known of the network but its values."""
    starts: int = 12
    """Descents of an input from what is seen on the way."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the engine needs to know of a :class:`~flipopt.solvers.Batch`; the fields are explained there."""

    tolerance: float
    iterations: int
    max_seconds: float | None
    attempts: int
    soften: bool
    rescue: bool
    rescue_seconds: float
    prune: bool
    steps: Steps
    smooth: Smooth
    kinked: Kinked
    rounded: Rounded
    small: Small
