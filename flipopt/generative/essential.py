"""BerOpt, Algorithm 1 of Jeon, Jeong and Choi (003): which units of a layer the image of a query needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_number, as_whole, one_of
from flipopt.common.errors import FileFormatError, InputError
from flipopt.common.progress import Advance, progress_bar
from flipopt.common.tables import Table
from flipopt.generative.generator import Generator
from flipopt.generative.masking import Estimator, Masking, concrete, score, sigmoid
from flipopt.networks.onnx_network import has_torch

START = 2.0
"""Logit of every active unit's theta at the start, 0.88: it matters, as far as anything is known."""
SPREAD, HALVINGS = 1e4, 7
"""lambda is searched for between guess / SPREAD and guess * SPREAD, by halving the logarithm so often."""
DECAY = (0.9, 0.999)
"""Of the moments in Adam (Kingma and Ba, ICLR 2015), the values of that paper."""


@dataclass(frozen=True)
class BerOpt:
    """How theta is optimised.

    Attributes
    ----------
    estimator
        "concrete" relaxes masks and needs torch; "score" needs forward passes alone, and more of them; "auto" is
        "concrete" where torch is installed and knows the operators.
    steps
        Updates of theta (line 3).
    samples
        Masks of a step (line 4).
    rate
        Length of a step of Adam in the logits of theta.
    temperature
        Of the Concrete relaxation. 0.1 is that of the work which the paper cites for its masks.
    threshold
        p: units with theta above it are essential.
    reduce
        Whether these are reduced one by one at the end, which takes most of the images where there are thousands.
    """

    estimator: Literal["auto", "concrete", "score"] = "auto"
    steps: int = 300
    samples: int = 8
    rate: float = 0.1
    temperature: float = 0.1
    threshold: float = 0.5
    reduce: bool = True

    def __post_init__(self) -> None:
        one_of(self.estimator, ("auto", "concrete", "score"), "estimator")
        as_whole(self.steps, "steps", least=1)
        as_whole(self.samples, "samples", least=2)
        for name in ("rate", "temperature"):
            if as_number(getattr(self, name), name, least=0.0) == 0:
                raise InputError(f"{name}: expected a number > 0, found 0")
        as_number(self.threshold, "threshold", least=0.0, below=1.0)


@dataclass(eq=False)
class Curve(Table):
    """The course of an optimisation, a record a step: equation (1) and its two parts.

    Attributes
    ----------
    loss
        error + lambda * units.
    error
        Mean of ``|x_m - x_0|^2`` over the masks of the step.
    units
        ``|theta|_1``, the expected number of units.
    """

    loss: Array
    error: Array
    units: Array


@dataclass(frozen=True, eq=False)
class Essential:
    """The units of a layer that the image of a query needs.

    Attributes
    ----------
    theta
        The optimised Bernoulli parameters (units,); 0 for inactive units, which change nothing.
    mask
        The essential units, theta > p, (units,) bool: the SSGBS of Definition 6, as nearly as Algorithm 1 finds it.
    smallest
        What is left of them when units are removed as long as the error stays within the target, or without one within
        that of ``mask``, (units,) bool. None of its units can be removed by itself. ``mask`` with ``reduce=False``.
    error, smallest_error
        ``|x_m - x_0| / |x_0|`` with these units alone.
    target_error
        What was asked for, or None.
    lam
        lambda of equation (1).
    active
        How many units are not 0 at the query.
    curve
        The course of the optimisation with that lambda.
    evaluations
        Images that were made, of all lambdas together.
    estimator
        "concrete" or "score".
    """

    theta: Array = field(repr=False)
    mask: Array = field(repr=False)
    smallest: Array = field(repr=False)
    error: float
    smallest_error: float
    target_error: float | None
    lam: float
    active: int
    curve: Curve = field(repr=False)
    evaluations: int
    estimator: str

    @property
    def success(self) -> bool:
        """Whether the error of ``mask`` is within the target, if there was one."""
        return self.target_error is None or self.error <= self.target_error

    def summary(self) -> str:
        """In plain words."""
        asked = "" if self.target_error is None else f", at most {self.target_error:.3g} being asked for"
        return (
            f"{self.mask.sum():,} of {self.active:,} active units ({len(self.mask):,} in all) make the image with a "
            f"relative error of {self.error:.3g}{asked}; {self.smallest.sum():,} of them are enough for "
            f"{self.smallest_error:.3g}. lambda {self.lam:.3g}, {self.evaluations:,} images, estimator "
            f"{self.estimator}."
        )

    def __str__(self) -> str:
        return self.summary()


def essential(
    G: Generator,
    z0: ArrayLike,
    layer: int,
    lam: float | None = None,
    target_error: float | None = None,
    options: BerOpt | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Essential:
    """The essential units of a layer for a query, by BerOpt (Algorithm 1).

    Masks m ~ Ber(theta) multiply the activated units of the layer at z0, and theta minimises equation (1) with the
    expectation that is lost there in print: ``E |f_L:l+1(h_0 * m) - G(z0)|^2 + lambda |theta|_1``.

    Parameters
    ----------
    G
        The generator. All of the image must go through the layer.
    z0
        The query, a latent vector (d,).
    layer
        The layer's number, from 1.
    lam
        lambda.
    target_error
        Instead of lambda: the largest relative error ``|x_m - x_0| / |x_0|`` that the essential units may have by
        themselves. lambda is searched for; the largest that keeps it is taken. One of the two must be given, or the
        target is 0.1.
    options
        A :class:`BerOpt`.
    seed
        Of the masks.
    progress
        Whether to show a bar.
    """
    how = BerOpt() if options is None else options
    if not isinstance(how, BerOpt):
        raise InputError(f"options: expected BerOpt, found {type(how).__name__}")
    if lam is not None and target_error is not None:
        raise InputError("lam, target_error: expected one of the two, found both")
    masking = Masking(G, G.latent(z0), G.layer(layer).number)
    name, estimate = _estimator(masking, how)
    seed = as_whole(seed, "seed")
    total = how.steps * (1 if lam is not None else HALVINGS)
    with progress_bar(f"BerOpt, layer {masking.layer.number}", total, "steps", progress) as advance:
        descent = Descent(masking, estimate, how, seed, advance)
        if lam is not None:
            lam = as_number(lam, "lam", least=0.0)
            a, curve = descent.minimised(lam)
        else:
            target_error = as_number(0.1 if target_error is None else target_error, "target_error", least=0.0)
            lam, a, curve = _searched(descent, target_error)
    kept = sigmoid(a) > how.threshold
    error = float(masking.relative(kept[None])[0])
    most = error if target_error is None else max(target_error, error)
    fewer = reduced(masking, kept, most) if how.reduce else kept
    smallest_error = float(masking.relative(fewer[None])[0])
    theta, masks = np.zeros(masking.layer.units), np.zeros((2, masking.layer.units), dtype=bool)
    theta[masking.active], masks[:, masking.active] = sigmoid(a), (kept, fewer)
    return Essential(
        theta, masks[0], masks[1], error, smallest_error, target_error, lam, len(masking.active), curve,
        masking.evaluations, name,
    )  # fmt: skip


def _estimator(masking: Masking, how: BerOpt) -> tuple[str, Estimator]:
    """The one that was asked for; by default the relaxation, where torch is there and the graph has a form in it."""
    if how.estimator == "concrete" or (how.estimator == "auto" and has_torch()):
        try:
            return "concrete", concrete(masking, how.samples, how.temperature)
        except FileFormatError:  # an operator without a translation
            if how.estimator == "concrete":
                raise
    return "score", score(masking, how.samples)


@dataclass
class Descent:
    """Algorithm 1 for one lambda after another, by the same masks; ``done`` steps in all."""

    masking: Masking
    estimate: Estimator
    how: BerOpt
    seed: int
    advance: Advance
    done: int = 0

    def minimised(self, lam: float) -> tuple[Array, Curve]:
        """By Adam, with theta = sigmoid(a) so that it stays within 0 and 1: the logits a, and the course."""
        rng = np.random.default_rng(self.seed)
        a = np.full(len(self.masking.active), START)
        first, second = np.zeros_like(a), np.zeros_like(a)
        course = np.empty((self.how.steps, 3))
        for step in range(self.how.steps):
            theta = sigmoid(a)
            gradient, error = self.estimate(a, rng)
            gradient = gradient + lam * theta * (1 - theta)
            course[step] = error + lam * theta.sum(), error, theta.sum()
            first = DECAY[0] * first + (1 - DECAY[0]) * gradient
            second = DECAY[1] * second + (1 - DECAY[1]) * gradient**2
            mean, square = first / (1 - DECAY[0] ** (step + 1)), second / (1 - DECAY[1] ** (step + 1))
            a = a - self.how.rate * mean / (np.sqrt(square) + np.finfo(float).tiny ** 0.5)
            self.done += 1
            self.advance(self.done)
        return a, Curve(*course.T)


def _searched(descent: Descent, target: float) -> tuple[float, Array, Curve]:
    """The largest lambda, to a seventh, whose essential units have an error within the target.

    If none has, the least in the range.
    """
    masking, threshold = descent.masking, descent.how.threshold
    guess = max((target * masking.size) ** 2, np.finfo(float).tiny) / max(len(masking.active), 1)
    low, high = np.log(guess / SPREAD), np.log(guess * SPREAD)
    best: tuple[float, Array, Curve] | None = None
    middle = np.log(guess)
    for _ in range(HALVINGS):
        lam = float(np.exp(middle))
        a, curve = descent.minimised(lam)
        error = float(masking.relative((sigmoid(a) > threshold)[None])[0])
        if error <= target:
            best, low = (lam, a, curve), middle
        else:
            high = middle
        middle = (low + high) / 2
    if best is None:
        lam = float(np.exp(low))
        best = (lam, *descent.minimised(lam))
    return best


def reduced(masking: Masking, kept: Array, most: float) -> Array:
    """Units of ``kept`` (active,) that are left when others are removed while the relative error is at most ``most``.

    In every round units are removed in the order of the harm that each does by itself, as many as can be together by
    halving; the last round finds none that can be removed alone.
    """
    kept = kept.copy()
    while kept.any():
        units = np.flatnonzero(kept)
        without = np.repeat(kept[None], len(units), axis=0)
        without[np.arange(len(units)), units] = False
        harm = masking.relative(without)
        order = units[np.argsort(harm, kind="stable")]
        if harm.min() > most:
            break
        low, high = 1, len(order)  # low can be removed together; more than high cannot
        while low < high:
            middle = (low + high + 1) // 2
            fewer = kept.copy()
            fewer[order[:middle]] = False
            fits = masking.relative(fewer[None])[0] <= most
            low, high = (middle, high) if fits else (low, middle - 1)
        kept[order[:low]] = False
    return kept
