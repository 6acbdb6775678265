"""The choice of alpha: how many samples a map leads to the other class, against how far it takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from flipopt.borderline.autoencoders import Architecture
from flipopt.borderline.carrying import as_samples
from flipopt.borderline.deepdig import class_inputs, learn_maps
from flipopt.borderline.learning import FEWEST, Lesson, Training
from flipopt.borderline.samples import as_class
from flipopt.common.checks import Array, as_number, as_sequence, as_whole, optional_package
from flipopt.common.errors import InputError
from flipopt.common.later import later
from flipopt.common.progress import progress_bar
from flipopt.common.tables import Table
from flipopt.explain.matching import percent
from flipopt.networks.wrapping import as_network

ALPHAS = (0.05, 0.15, 0.4, 0.8, 2.0, 6.0, 20.0, 60.0)
"""About evenly spaced on a logarithmic scale, with the paper's 0.8 among them."""
NEARLY = 0.01
"""Success that may be given up for a smaller error."""
NOT_COLUMNS = ("classes_of", "seed")


@dataclass(frozen=True, eq=False)
class Tradeoff(Table):
    """One record a value of alpha: the map of component I that it leads to, on the samples held back for validation.

    Attributes
    ----------
    alpha
        Weight of the class in the loss (1), (alphas,).
    success
        Share of the samples that are led to class t, of those that the network puts in s.
    accuracy
        Share that the network still puts in s: the paper's first criterion.
    error
        Squared error, summed over the numbers of a sample, in the mean over samples.
    variance
        Mean squared distance of all samples of s from their mean.
    collapsed
        Whether the error on all samples is not below the variance.
    classes_of
        (s, t).
    seed
        Of the split, the first weights and the batches: the same for every alpha.
    """

    alpha: Array
    success: Array
    accuracy: Array
    error: Array
    variance: Array
    collapsed: Array
    classes_of: tuple[int, int]
    seed: int

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(name for name in super().names() if name not in NOT_COLUMNS)

    def take(self, rows: Array | slice) -> Self:
        columns = {name: getattr(self, name)[rows] for name in self.names()}
        return type(self)(**columns, classes_of=self.classes_of, seed=self.seed)

    @property
    def chosen(self) -> int | None:
        """The record to take: of those not collapsed whose success is within a percentage point of the best of them,
        the one with the smallest error. None if all have collapsed."""
        success = np.where(self.collapsed, np.nan, self.success)
        if not np.isfinite(success).any():
            return None
        good = success >= np.nanmax(success) - NEARLY
        return int(np.flatnonzero(good)[self.error[good].argmin()])

    def summary(self) -> str:
        """In plain words."""
        k, (s, t) = self.chosen, self.classes_of
        if k is None:
            return f"From class {s} to class {t} every map has collapsed."
        text = (
            f"From class {s} to class {t}: alpha {self.alpha[k]:g} leads {percent(float(self.success[k]))} of the "
            f"samples over, with an error of {self.error[k]:.3g}; their own variance is {self.variance[k]:.3g}."
        )
        lost = self.alpha[self.collapsed]
        return text + f" Collapsed: alpha {', '.join(f'{alpha:g}' for alpha in lost)}." * bool(len(lost))

    def __str__(self) -> str:
        return self.summary()

    def plot(self, path: str | Path) -> None:
        """Draw success against error to ``path``; see :func:`flipopt.report.draw_tradeoff`."""
        later("report.tradeoff:draw_tradeoff")(path, self)


def tradeoff(
    net: Any,
    X: Any,
    labels: ArrayLike | None,
    s: Any,
    t: Any,
    alphas: Sequence[float] = ALPHAS,
    seed: int = 0,
    training: Training | None = None,
    progress: bool = False,
) -> Tradeoff:
    """A map of component I from s to t for every alpha, all trained together, so that one can be chosen by numbers.

    Parameters
    ----------
    net, X, labels, progress
        As in :func:`deepdig`.
    s, t
        The class that samples are led away from, and the one that they are led to; by position or name.
    alphas
        Weights of the class in the loss.
    seed
        Of the split, the first weights and the batches: the same for every alpha.
    training
        How maps are trained. Here none is tried again.
    """
    options = Training() if training is None else training
    if not isinstance(options, Training):
        raise InputError(f"training: expected Training, found {type(options).__name__}")
    network, seed = as_network(net, X, many=True), as_whole(seed, "seed")
    s, t = as_class(network, s, "s"), as_class(network, t, "t")
    if s == t:
        raise InputError(f"t: expected another class than s, found class {t} for both")
    values = [as_number(alpha, "alphas", least=0.0) for alpha in as_sequence(alphas, "alphas", "numbers")]
    inputs, inside = class_inputs(as_samples(network, X, labels, (s, t)), s)
    if len(inputs) < FEWEST or not values:
        found = f"{len(inputs)} samples" if values else "no alphas"
        raise InputError(f"s, alphas: expected a class with {FEWEST} finite samples or more, and alphas, found {found}")
    lessons = [Lesson.split((s, t), 1, alpha, seed, inputs, inside, options.train_share) for alpha in values]
    return _compared(network, lessons, options, progress)


def _compared(network: Any, lessons: list[Lesson], options: Training, progress: bool) -> Tradeoff:
    optional_package("torch", "torch", "tradeoff")
    from flipopt.borderline.frozen import frozen

    once, moved = replace(options, tries=1), [0]
    with progress_bar("tradeoff", len(lessons) * options.steps, "steps", progress) as advance:

        def tell(steps: int) -> None:
            moved[0] += steps
            advance(moved[0])

        logits = frozen(network)
        learned = learn_maps(network, Architecture.of(network), logits, lessons, once, tell)
    found = [one for one in learned if one is not None]
    columns = {
        name: np.array([getattr(one, name) for one in found]) for name in ("success", "accuracy", "error", "collapsed")
    }
    return Tradeoff(
        alpha=np.array([lesson.alpha for lesson in lessons]),
        variance=np.full(len(lessons), lessons[0].variance),
        classes_of=lessons[0].classes,
        seed=lessons[0].source,
        **columns,
    )
