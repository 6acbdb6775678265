"""DeepDIG (Karimi, Derr and Tang, 000): borderline instances by way of two autoencoders for every direction."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.borderline.autoencoders import Architecture, Autoencoder
from flipopt.borderline.carrying import as_samples, carried_all
from flipopt.borderline.dug import DeepDig
from flipopt.borderline.learning import Learned, Lesson, Training, learn
from flipopt.borderline.maps import Trained
from flipopt.borderline.refinement import Refinement
from flipopt.borderline.samples import Samples, predictions
from flipopt.borderline.sweep import asked_pairs, sampled_pairs
from flipopt.common.checks import Array, as_number, as_sequence, as_whole, one_of, optional_package
from flipopt.common.errors import InputError
from flipopt.common.progress import progress_bar
from flipopt.networks.wrapping import as_network
from flipopt.runs.computing import compute
from flipopt.runs.executors import Threads, as_executor, in_turn
from flipopt.runs.fingerprint import fingerprint
from flipopt.runs.store import Run
from flipopt.runs.work import Executor, Work

KIND = "DeepDIG"


@dataclass(frozen=True)
class DeepDigOptions(Training):
    """How autoencoders are trained, and how many; see :class:`Training` for the rest.

    Attributes
    ----------
    alpha
        Weight of the class in the losses (1) and (2); :func:`tradeoff` helps to choose it.
    seeds
        Every direction has its two maps for each of them.
    maps_at_once
        Directions that are trained together. A run keeps what was trained together when it is done.
    count
        Sources of a direction that are carried on to the boundary, at most: drawn by the seed. Maps learn from all.
    """

    alpha: float = 0.8
    seeds: tuple[int, ...] = (0,)
    maps_at_once: int = 4
    count: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        as_number(self.alpha, "alpha", least=0.0)
        as_whole(self.maps_at_once, "maps_at_once", least=1)
        if self.count is not None:
            as_whole(self.count, "count", least=1)
        seeds = tuple(as_whole(seed, "seeds") for seed in as_sequence(self.seeds, "seeds", "whole numbers"))
        if not seeds or len(set(seeds)) != len(seeds):
            raise InputError(f"seeds: expected different whole numbers, found {self.seeds!r}")


def deepdig(
    net: Any,
    X: Any,
    labels: ArrayLike | None = None,
    pairs: Any = "all",
    options: DeepDigOptions | None = None,
    refinement: Refinement | None = None,
    run: str | Path | None = None,
    executor: Any = None,
    progress: bool = False,
) -> DeepDig:
    """Borderline instances by DeepDIG: every sample led to the other class and back by autoencoders, and Algorithm 1
    between the two that they make.

    The maps of several directions are trained together. Needs torch; :func:`carry` does without it what is left once
    the maps are there.

    Parameters
    ----------
    net
        A network with a form in torch: dense layers, a torch module, or an ONNX graph with derivatives.
    X, labels
        Samples (rows, n_inputs), with numbers from 0 to 1, and their classes (rows,): positions, or names where the
        network has them; by default the classes that it predicts. Rows that are not finite have a status that says so.
    pairs
        "all" pairs of classes that have samples which the network puts there too, or a list of pairs (s, t), by
        position or name. Both directions of a pair are followed.
    options
        A :class:`DeepDigOptions`.
    refinement
        How lines are halved, a :class:`Refinement`.
    run
        A folder in which maps are kept as they are done. If a run of the same call is there, it is gone on with.
    executor
        Who trains: None, threads of this process; "processes"; or a dask.distributed Client or its address. One core
        trains ``maps_at_once`` directions at a time; what comes out does not depend on who does it.
    progress
        Whether to show a bar.
    """
    options = DeepDigOptions() if options is None else options
    how = Refinement() if refinement is None else refinement
    for value, name, kind in ((options, "options", DeepDigOptions), (how, "refinement", Refinement)):
        if not isinstance(value, kind):
            raise InputError(f"{name}: expected {kind.__name__}, found {type(value).__name__}")
    network = as_network(net, X, many=True)
    wanted = None if isinstance(pairs, str) and one_of(pairs, ("all",), "pairs") else asked_pairs(network, pairs)
    among = None if wanted is None else sorted(set(wanted.reshape(-1).tolist()))
    samples = as_samples(network, X, labels, among)
    units = [
        (int(s), int(t), seed)
        for a, b in sampled_pairs(samples, wanted)
        for seed in options.seeds
        for s, t in ((a, b), (b, a))
    ]
    task = Components(samples, np.array(units), options)
    optional_package("torch", "torch", "deepdig")
    _ = task.logits  # an error of a network that has none comes now
    found = Trained.join(_trained(task, run, as_executor(executor), progress))
    autoencoders = found.autoencoders(task.architecture)
    instances, seeds = carried_all(samples, units, autoencoders, options.count, how, progress)
    return DeepDig(instances, seeds, found.maps, autoencoders)


@dataclass(eq=False)
class Components:
    """What a worker does: components I and II of some directions together.

    Attributes
    ----------
    samples
        All samples.
    units
        (s, t, seed) of every direction, (directions, 3).
    options
        How maps are trained.
    tell
        Hears of so many steps of maps done, if anybody is here to listen.
    """

    samples: Samples
    units: Array
    options: DeepDigOptions
    tell: Callable[[int], None] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """For another process: without what cannot be sent there."""
        return {name: value for name, value in vars(self).items() if name != "logits"} | {"tell": None}

    @cached_property
    def logits(self) -> Any:
        """The network in torch."""
        from flipopt.borderline.frozen import frozen

        return frozen(self.samples.network)

    @cached_property
    def architecture(self) -> Architecture:
        """Of every map."""
        return Architecture.of(self.samples.network)

    def __call__(self, part: range) -> Trained:
        units = [tuple(int(k) for k in unit) for unit in self.units[part.start : part.stop]]
        left = [2 * len(units) * self.options.steps]

        def tell(steps: int) -> None:
            left[0] -= steps
            if self.tell:
                self.tell(steps)

        first = [self._first(s, t, seed) for s, t, seed in units]
        ahead = self._learned(first, tell)
        second = [self._second(lesson, one) for lesson, one in zip(first, ahead, strict=True)]
        back = self._learned(second, tell)
        tell(left[0])  # of maps that there was nothing to train of
        steps = self.options.steps
        return Trained.join([Trained.of(first, ahead, steps), Trained.of(second, back, steps)])

    def _learned(self, lessons: list[Lesson], tell: Callable[[int], None]) -> list[Learned | None]:
        return learn_maps(self.samples.network, self.architecture, self.logits, lessons, self.options, tell)

    def _first(self, s: int, t: int, seed: int) -> Lesson:
        """Component I: from all samples of class s that are finite."""
        X, inside = class_inputs(self.samples, s)
        return Lesson.split((s, t), 1, self.options.alpha, seed, X, inside, self.options.train_share)

    def _second(self, lesson: Lesson, found: Learned | None) -> Lesson:
        """Component II: from what component I makes of samples in class s, where that is in class t."""
        s, t = lesson.classes
        Y = lesson.inputs[:0]
        if found is not None:
            Y = Autoencoder.of(self.architecture, found.parts).apply(lesson.inputs[lesson.asked])
            Y = Y[predictions(self.samples.network, Y, np.arange(len(Y))) == t]
        every = np.ones(len(Y), dtype=bool)
        return Lesson.split((s, t), 2, lesson.alpha, lesson.source, Y, every, self.options.train_share)


def class_inputs(samples: Samples, s: int) -> tuple[Array, Array]:
    """The finite samples of class s (inputs, n_inputs), float32, and which of them the network puts there (inputs,)."""
    rows = samples.sources(s)
    rows = rows[np.isfinite(samples.X[rows]).all(axis=1)]
    return np.ascontiguousarray(samples.X[rows], dtype=np.float32), samples.predicted[rows] == s


def learn_maps(
    network: Any,
    architecture: Architecture,
    logits: Any,
    lessons: list[Lesson],
    options: Training,
    tell: Callable[[int], None],
) -> list[Learned | None]:
    """As :func:`learn`, by torch; ``tell`` hears of the steps of a first try."""
    from flipopt.borderline.adversarial import train

    def silent(steps: int) -> None:
        pass

    def trained(some: Any) -> list[list[Array]]:
        return train(logits, architecture, some, options, silent if some[0].attempt else tell)

    return learn(network, architecture, lessons, trained, options.tries)


def _trained(task: Components, run: str | Path | None, who: Executor, progress: bool) -> list[Trained]:
    """The maps of all directions, in order."""
    size, here = task.options.maps_at_once, isinstance(who, Threads)
    work, each = Work(task, lambda part: part, len(task.units), size, size), 2 * task.options.steps
    kept = None if run is None else Run.begin(run, KIND, _description(task), len(task.units), size)
    bar = _Bar(0 if kept is None else kept.done * each, len(task.units) * each)
    with bar.shown(progress):
        task.tell = bar.moved if here else None

        def done(part: Trained) -> Trained:
            if not here:
                bar.moved(len(part.maps) * task.options.steps)
            return part

        if kept is None:
            return [done(part) for part in in_turn(who, work)]
        compute(kept, work, who, lambda part: done(part).to_arrow(), "directions")
    return [Trained.from_arrow(table) for table in kept.tables()]


class _Bar:
    """A progress bar of steps that several threads move."""

    def __init__(self, done: int, total: int) -> None:
        self.before = self.done = self.seen = done
        self.total, self.lock = total, threading.Lock()
        self.advance: Any = None

    def shown(self, progress: bool) -> Any:
        """While the block runs, if there is to be one."""
        from contextlib import contextmanager

        @contextmanager
        def showing() -> Iterator[None]:
            with progress_bar(KIND, self.total, "steps", progress, before=self.before) as self.advance:
                self.advance(self.done)
                yield

        return showing()

    def moved(self, steps: int) -> None:
        """So many more are done."""
        with self.lock:
            self.done += steps
            if self.done - self.seen >= self.total / 1000 or self.done >= self.total:
                self.seen = self.done
                self.advance(self.done)


def _description(task: Components) -> dict[str, Any]:
    """What is computed, by name. How many sources are carried on is no part of it."""
    things = {
        "network": task.samples.network,
        "X": task.samples.X,
        "labels": task.samples.labels,
        "directions": task.units,
    }
    options = {name: value for name, value in vars(task.options).items() if name not in ("count", "seeds")}
    return {name: fingerprint(value) for name, value in things.items()} | {"options": repr(options)}
