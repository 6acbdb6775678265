"""DeepDIG with autoencoders that are there: samples led to the other class and back, and Algorithm 1 between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flipopt.borderline.autoencoders import Autoencoder
from flipopt.borderline.instances import Instances, Outcome, nothing_found
from flipopt.borderline.refinement import Refinement, refine_pairs
from flipopt.borderline.samples import Samples, pair_generator, predictions
from flipopt.common.checks import Array, as_whole
from flipopt.common.errors import InputError
from flipopt.common.progress import progress_bar

Key = tuple[int, int, int, int]
"""(s, t, component, seed) of an autoencoder."""
BEYOND = 1e-6
"""How far pixels may be outside of [0, 1], from rounding."""


def as_samples(network: Any, X: Any, labels: Any, among: Sequence[int] | None) -> Samples:
    """Samples whose numbers are those that a sigmoid can make; rows that are not finite are left to their status."""
    samples = Samples.of(network, X, labels, among=among)
    with np.errstate(invalid="ignore"):
        outside = (samples.X < -BEYOND) | (samples.X > 1 + BEYOND)
    outside &= np.isfinite(samples.X)
    if outside.any():
        raise InputError(
            f"X: expected numbers from 0 to 1, as the autoencoders end in a sigmoid, found {samples.X[outside][0]:g}"
        )
    return samples


def carried_all(
    samples: Samples,
    units: Sequence[tuple[int, int, int]],
    autoencoders: Mapping[Key, Autoencoder],
    count: int | None,
    how: Refinement,
    progress: bool = False,
) -> tuple[Instances, Array]:
    """The instances of every unit (s, t, seed), joined, and the seed of each, (records,)."""
    found = []
    with progress_bar("refinement", len(units), "directions", progress) as advance:
        for done, (s, t, seed) in enumerate(units, 1):
            maps = [autoencoders.get((s, t, component, seed)) for component in (1, 2)]
            rows = np.sort(samples.drawn(s, t, count, pair_generator(seed, s, t)))
            found.append(carried(samples, s, t, rows, (maps[0], maps[1]), how))
            advance(done)
    seeds = [np.full(len(some), seed) for some, (_, _, seed) in zip(found, units, strict=True)]
    return Instances.join(found), np.concatenate(seeds)


def carried(
    samples: Samples,
    s: int,
    t: int,
    rows: Array,
    maps: tuple[Autoencoder | None, Autoencoder | None],
    how: Refinement,
) -> Instances:
    """A record for each of the ``rows`` of class s: x_t = A1(x), x_s = A2(x_t), and the line from x_s to x_t.

    A row that a component does not lead to its class has a status that says so. Distances are from the rows themselves.
    """
    network, status = samples.network, np.full(len(rows), Outcome.LOST_I, dtype=object)
    status[samples.predicted[rows] != s] = Outcome.NOT_S
    status[~np.isfinite(samples.X[rows]).all(axis=1)] = Outcome.NOT_FINITE
    live, T = _led(network, samples.X[rows], np.flatnonzero(status == Outcome.LOST_I), maps[0], t)
    status[live] = Outcome.LOST_II
    there, S = _led(network, T, np.arange(len(T)), maps[1], s)
    live, T = live[there], T[there]
    classes = np.tile([s, t], (len(rows), 1))
    found = nothing_found(rows, np.full(len(rows), -1), classes, status, network.n_inputs)
    ends, names = (np.full(len(live), s), np.full(len(live), t)), (rows[live], np.full(len(live), -1))
    found.put(live, refine_pairs(network, S, T, ends, names, how))
    return found.measured_from(samples.X)


def _led(network: Any, X: Array, rows: Array, autoencoder: Autoencoder | None, wanted: int) -> tuple[Array, Array]:
    """Those of the ``rows`` of X that end in the class that is wanted, and what the autoencoder makes of them."""
    if autoencoder is None or len(rows) == 0:
        return rows[:0], np.empty((0, X.shape[1]), dtype=np.float32)
    Y = autoencoder.apply(X[rows])
    there = predictions(network, Y, np.arange(len(Y))) == wanted
    return rows[there], Y[there]


def as_autoencoders(found: Mapping[Any, Any], n_inputs: int) -> dict[Key, Autoencoder]:
    """From a mapping of (s, t, component), or (s, t, component, seed), to autoencoders or to their files."""
    autoencoders: dict[Key, Autoencoder] = {}
    for key, value in found.items():
        words = tuple(key) if isinstance(key, tuple) else ()
        if len(words) not in (3, 4):
            raise InputError(f"maps: expected keys (s, t, component) or (s, t, component, seed), found {key!r}")
        s, t, component, seed = (as_whole(word, "maps") for word in (*words, 0)[:4])
        if component not in (1, 2):
            raise InputError(f"maps: expected component 1 or 2, found {component}")
        one = Autoencoder.read(value, n_inputs) if isinstance(value, str | Path) else value
        if not isinstance(one, Autoencoder) or one.n_inputs != n_inputs:
            raise InputError(f"maps: expected autoencoders of {n_inputs} numbers, or their files, found {value!r:.60}")
        autoencoders[s, t, component, seed] = one
    return autoencoders
