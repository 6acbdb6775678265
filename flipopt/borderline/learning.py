"""What a map is to learn and how long; what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from flipopt.borderline.autoencoders import Architecture, Autoencoder
from flipopt.borderline.samples import predictions
from flipopt.common.checks import Array, as_number, as_whole, one_of
from flipopt.common.errors import InputError
from flipopt.networks.protocol import Network

FEWEST = 2
"""Inputs that a map can be learned from: one to learn, one to look at."""


@dataclass(frozen=True)
class Training:
    """How a map is trained: section 5.2 of the paper.

    Attributes
    ----------
    loss
        "literal", equations (1) and (2): the squared error summed over pixels plus alpha times the cross entropy;
        "authors", what their code computes: binary cross entropies, that of pixels in the mean over them, that of the
        classes over those.
    steps, batch
        Steps of Adam, and inputs of each.
    learning_rate, decay, decay_every
        Of Adam, times ``decay`` every so many steps.
    train_share
        Share of the inputs that a map is trained on; the others validate it.
    tries
        How often a map that collapsed is trained, from other weights, before the best one is taken as it is.
    """

    loss: str = "literal"
    steps: int = 5000
    batch: int = 128
    learning_rate: float = 0.01
    decay: float = 0.95
    decay_every: int = 1000
    train_share: float = 0.8
    tries: int = 3

    def __post_init__(self) -> None:
        one_of(self.loss, ("literal", "authors"), "loss")
        for name in ("steps", "batch", "decay_every", "tries"):
            as_whole(getattr(self, name), name, least=1)
        for name in ("learning_rate", "decay", "train_share"):
            as_number(getattr(self, name), name, least=0.0)
        if not 0 < self.train_share < 1:
            raise InputError(f"train_share: expected a number between 0 and 1, found {self.train_share!r}")


@dataclass(frozen=True, eq=False)
class Lesson:
    """What one map is to learn.

    Attributes
    ----------
    classes, component
        (s, t), and 1 for a map that leads from s to t, 2 for one that leads back.
    alpha
        Weight of the class in the loss.
    source
        The seed that the caller chose; what is drawn from it depends on the classes and the component too.
    inputs
        (inputs, n_inputs), float32.
    asked
        Which of them are in the class that the map is to lead away from, (inputs,) bool.
    learned, held
        Indices of those that it is trained on, and of those that validate it.
    attempt
        0, 1, ...: how often it has been tried.
    """

    classes: tuple[int, int]
    component: int
    alpha: float
    source: int
    inputs: Array
    asked: Array
    learned: Array
    held: Array
    attempt: int = 0

    @classmethod
    def split(
        cls,
        classes: tuple[int, int],
        component: int,
        alpha: float,
        source: int,
        inputs: Array,
        asked: Array,
        share: float,
    ) -> Lesson:
        """With the share of the inputs to learn from drawn by the seed."""
        order = np.random.default_rng([source, *classes, component]).permutation(len(inputs))
        first = min(max(1, round(share * len(inputs))), max(1, len(inputs) - 1))
        return cls(classes, component, alpha, source, inputs, asked, np.sort(order[:first]), np.sort(order[first:]))

    @property
    def target(self) -> int:
        """The class that the map is to lead to."""
        return self.classes[2 - self.component]

    @property
    def seed(self) -> int:
        """Of the first weights and the batches."""
        words = [self.source, *self.classes, self.component, self.attempt]
        return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> 1)

    @property
    def variance(self) -> float:
        """Mean squared distance of the inputs from their mean: what a map to one image would be off by."""
        X = self.inputs.astype(np.float64)
        return float(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean()) if len(X) else np.nan


@dataclass(frozen=True, eq=False)
class Learned:
    """A map and how good it is.

    Attributes
    ----------
    parts
        Its weights and biases in turn.
    accuracy, accuracy_all
        Share of the inputs that are predicted as s after it, of those held back and of all.
    success, success_all
        Share predicted as the class that it leads to, of those that were in the other one.
    error, error_all
        Squared error of an input, summed over its numbers: the mean over inputs.
    collapsed
        Whether its outputs no longer resemble their inputs: ``error_all`` is not below the inputs' own variance.
    tries, seconds
        How often it was tried, and the seconds that it took.
    """

    parts: list[Array]
    accuracy: float
    accuracy_all: float
    success: float
    success_all: float
    error: float
    error_all: float
    collapsed: bool
    tries: int = 1
    seconds: float = 0.0

    @property
    def order(self) -> tuple[bool, float]:
        """The best of several has the largest."""
        return not self.collapsed, np.nan_to_num(self.success, nan=-1.0)


Train = Callable[[Sequence[Lesson]], list[list[Array]]]
"""From lessons to the weights and biases of their maps."""


def learn(
    network: Network, architecture: Architecture, lessons: Sequence[Lesson], train: Train, tries: int
) -> list[Learned | None]:
    """A :class:`Learned` for every lesson, None where there is too little to learn from; collapsed maps are tried again
    together."""
    best: dict[int, Learned] = {}
    left = [k for k, lesson in enumerate(lessons) if len(lesson.inputs) >= FEWEST]
    for attempt in range(tries):
        if not left:
            break
        again = [_at(lessons[k], attempt) for k in left]
        started = perf_counter()
        trained = train(again)
        seconds = (perf_counter() - started) / len(left)
        for k, lesson, parts in zip(left, again, trained, strict=True):
            found, before = _examined(network, architecture, lesson, parts), best.get(k)
            spent = seconds + (before.seconds if before else 0.0)
            kept = found if before is None or found.order > before.order else before
            best[k] = _timed(kept, attempt + 1, spent)
        left = [k for k in left if best[k].collapsed]
    return [best.get(k) for k in range(len(lessons))]


def _at(lesson: Lesson, attempt: int) -> Lesson:
    return replace(lesson, attempt=attempt)


def _timed(found: Learned, tries: int, seconds: float) -> Learned:
    return replace(found, tries=tries, seconds=seconds)


def _examined(network: Network, architecture: Architecture, lesson: Lesson, parts: list[Array]) -> Learned:
    """How good a trained map is."""
    Y = Autoencoder.of(architecture, parts).apply(lesson.inputs)
    off = ((Y.astype(np.float64) - lesson.inputs) ** 2).sum(axis=1)
    predicted = predictions(network, Y, np.arange(len(Y)))
    inside, there = predicted == lesson.classes[0], predicted == lesson.target
    measures: dict[str, Any] = {}
    for name, rows in (("", lesson.held), ("_all", np.arange(len(Y)))):
        asked = rows[lesson.asked[rows]]
        measures[f"accuracy{name}"] = float(inside[rows].mean())
        measures[f"success{name}"] = float(there[asked].mean()) if len(asked) else np.nan
        measures[f"error{name}"] = float(off[rows].mean())
    return Learned(parts, collapsed=not measures["error_all"] < lesson.variance, **measures)
