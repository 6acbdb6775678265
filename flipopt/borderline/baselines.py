"""The paper's two baselines: Algorithm 1 between training samples, paired at random or by their embeddings."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from flipopt.borderline.instances import Instances
from flipopt.borderline.refinement import Refinement, refine_pairs
from flipopt.borderline.samples import ROWS, Samples, pair_generator
from flipopt.common.checks import Array, as_whole
from flipopt.flips.request import known


def rpbs(
    net: Any,
    X: Any,
    labels: ArrayLike | None,
    s: Any,
    t: Any,
    count: int | None = None,
    seed: int = 0,
    **options: Any,
) -> Instances:
    """Random pair borderline search: samples of class s and of class t, paired at random, and Algorithm 1 between them.

    Parameters
    ----------
    net
        Any network.
    X, labels
        Samples (rows, n_inputs) and their classes (rows,): positions, or names where the network has them. Without
        labels (None) those that it predicts. A source that the network does not put in s has a status that says so; it
        counts for the yield, not for the success rate. Partners are samples of class t that it puts there.
    s, t
        The class that the boundary is approached from, and the other one; by position or name.
    count
        Pairs. By default every source has one. Sources and partners are drawn without repetition as far as they go.
    seed
        Of the pairs; those of other classes do not depend on each other.
    options
        ``beta``, ``strict``, ``iterations`` and ``chunk`` of :func:`refine`.
    """
    how = refinement(options)
    return random_pairs(*Samples.both(net, X, labels, s, t), count, seed, how)


def epbs(
    net: Any,
    X: Any,
    labels: ArrayLike | None,
    s: Any,
    t: Any,
    count: int | None = None,
    as_coded: bool = False,
    seed: int = 0,
    **options: Any,
) -> Instances:
    """Embedding-nearest pair borderline search: each sample of class s with the sample of class t whose last hidden
    layer is the nearest, and Algorithm 1 between them.

    Parameters
    ----------
    net, X, labels, s, t, options
        As in :func:`rpbs`.
    count
        Sources, at most; by default all.
    as_coded
        Pair every source with the same sample, the first of class t. That is what the authors' code does (a norm
        without an axis), and what their published figures are of.
    seed
        Of the choice of sources.
    """
    how = refinement(options)
    return nearest_pairs(*Samples.both(net, X, labels, s, t), count, seed, how, as_coded)


def random_pairs(samples: Samples, s: int, t: int, count: int | None, seed: int, how: Refinement) -> Instances:
    """As :func:`rpbs`, of samples that are known."""
    rng = pair_generator(seed, s, t)
    order, partners = samples.drawn(s, t, None, rng), samples.partners(t)
    count = len(order) if count is None else as_whole(count, "count", least=1)
    again = [rng.permutation(order) for _ in range(count // len(order))]
    sources = np.concatenate([order, *again])[:count]
    rounds = [rng.permutation(partners) for _ in range(-(-count // len(partners)))]
    return _refined(samples, s, t, sources, np.concatenate(rounds)[:count], how)


def nearest_pairs(
    samples: Samples, s: int, t: int, count: int | None, seed: int, how: Refinement, as_coded: bool = False
) -> Instances:
    """As :func:`epbs`, of samples that are known."""
    sources, partners = samples.drawn(s, t, count, pair_generator(seed, s, t)), samples.partners(t)
    if as_coded:
        return _refined(samples, s, t, sources, np.full(len(sources), partners[0]), how)
    E = np.nan_to_num(samples.embedding)
    parts = [sources[first : first + ROWS] for first in range(0, len(sources), ROWS)]
    nearest = [cdist(E[part], E[partners], "sqeuclidean").argmin(axis=1) for part in parts]
    return _refined(samples, s, t, sources, partners[np.concatenate(nearest)], how)


def refinement(options: dict[str, Any]) -> Refinement:
    """From the keywords of a caller."""
    known("options", options, [field.name for field in fields(Refinement)])
    return Refinement(**options)


def _refined(samples: Samples, s: int, t: int, sources: Array, partners: Array, how: Refinement) -> Instances:
    """Algorithm 1 between rows of the samples, in the order of the sources."""
    order = np.argsort(sources, kind="stable")
    rows = sources[order], partners[order]
    S, T = (samples.X[part] for part in rows)
    return refine_pairs(samples.network, S, T, (np.full(len(S), s), np.full(len(S), t)), rows, how)
