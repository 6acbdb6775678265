"""Images between two classes: a generator's, on lines between latent vectors, equation (1) of Vlaar (004)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_floats, as_number, as_whole, rectangular
from flipopt.common.errors import InputError
from flipopt.common.tables import Table
from flipopt.disagreement.study import networks_on

AT_ONCE = 256
"""Latent vectors that are drawn together."""
Inputs = Callable[[Array], Array]
"""From a generator's images (batch, \\*image_shape) to what models take."""


class Images(Protocol):
    """What is asked of a generator: a :class:`flipopt.generative.Generator`, or a class of one's own."""

    @property
    def n_latent(self) -> int: ...

    def forward(self, z: Array, /) -> Array:
        """Images (batch, \\*image_shape) of latent vectors (batch, n_latent)."""


def pairs(classes: int = 10, times: int = 3, seed: int = 0) -> Array:
    """Pairs (i, j) of different classes, i < j, in which every class is the same number of ``times``, (pairs, 2).

    The classes are put on a circle in an order that the seed decides. Each goes with its next neighbours on both sides,
    and, if ``times`` is odd, with the one opposite.
    """
    classes, times = as_whole(classes, "classes", least=2), as_whole(times, "times", least=1)
    if times >= classes or classes * times % 2:
        raise InputError(
            f"times: expected less than {classes} classes, and an even number of ends, found {times} times {classes}"
        )
    circle = np.random.default_rng(as_whole(seed, "seed")).permutation(classes)
    steps = [*range(1, times // 2 + 1)]
    found = {frozenset((k, (k + step) % classes)) for step in steps for k in range(classes)}
    found |= {frozenset((k, k + classes // 2)) for k in range(classes // 2)} if times % 2 else set()
    ends = circle[np.array([sorted(pair) for pair in found])]
    ends.sort(axis=1)
    return np.asarray(ends[np.lexsort(ends.T[::-1])])


@dataclass(frozen=True, eq=False)
class Latents(Table):
    """A latent vector a class, a record each.

    Attributes
    ----------
    label
        The class.
    z
        The vector, (classes, d).
    softmax
        Of the class, for its image: the mean over the models that judged it.
    drawn
        How many vectors had been drawn before it.
    """

    label: Array
    z: Array
    softmax: Array
    drawn: Array


def choose_latents(
    generator: Images,
    models: Any,
    seed: int = 0,
    least: float = 0.95,
    most: int = 20_000,
    inputs: Inputs | None = None,
) -> Latents:
    """A latent vector of every class, by a rule: the first that is drawn and seen clearly as it.

    Vectors are drawn from a normal distribution, one after the other as the seed decides. Each class takes the first
    whose image has it with a softmax of at least ``least``, the mean over ``models``. So another seed gives another
    set of the same kind. (To take the most certain of many would make the images between them easier than most.)

    Parameters
    ----------
    generator
        Makes the images.
    models
        Classifiers that judge them, which should be others than those that are studied.
    seed, least, most
        Of the rule; and how many vectors are drawn at most before the search is given up.
    inputs
        From the generator's images to what the models take; by default they are taken as they are.
    """
    rng, drawn = np.random.default_rng(as_whole(seed, "seed")), 0
    least, most = as_number(least, "least", least=0.0, below=1.0), as_whole(most, "most", least=1)
    found: dict[int, tuple[Array, float, int]] = {}
    classes = 0
    while drawn < most:
        Z = rng.standard_normal((AT_ONCE, generator.n_latent))[: most - drawn]
        nets, rows = networks_on(models, shown(generator, Z, inputs))
        P = np.mean([net.probabilities(X) for net, X in zip(nets, rows, strict=True)], axis=0)
        classes, top = P.shape[1], P.argmax(axis=1)
        for k in np.flatnonzero(P.max(axis=1) >= least):
            found.setdefault(int(top[k]), (Z[k], float(P[k, top[k]]), drawn + int(k)))
        drawn += len(Z)
        if len(found) == classes:
            break
    missing = [str(k) for k in range(classes) if k not in found]
    if missing:
        raise InputError(
            f"generator: expected an image of every class with a softmax of {least:g} among {drawn:,}, found none of "
            f"class {', '.join(missing)}"
        )
    z, softmax, place = zip(*(found[k] for k in range(classes)), strict=True)
    return Latents(np.arange(classes), np.stack(z), np.array(softmax), np.array(place))


@dataclass(frozen=True, eq=False)
class Interpolations(Table):
    """Images on lines between latent vectors, one record an image; line by line, and along each.

    Attributes
    ----------
    line
        Which pair of latent vectors, (images,).
    classes
        The numbers (i, j) of the two, (images, 2).
    alpha
        Where between them, (images,).
    images
        What models take, (images, \\*shape).
    generator, latents, inputs
        What made them.
    """

    line: Array
    classes: Array
    alpha: Array
    images: Array = field(repr=False)
    generator: Images = field(repr=False)
    latents: Array = field(repr=False)
    inputs: Inputs | None = field(default=None, repr=False)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return "line", "classes", "alpha"

    @property
    def pairs(self) -> Array:
        """(i, j) of every line, (lines, 2)."""
        return np.asarray(self.classes[np.unique(self.line, return_index=True)[1]])

    @property
    def ends(self) -> tuple[Array, Array]:
        """The latent vectors at both ends of the lines, (lines, d) each."""
        return self.latents[self.pairs[:, 0]], self.latents[self.pairs[:, 1]]

    def at(self, Z: Array) -> Array:
        """What models are given of latent vectors (batch, d), (batch, \\*shape)."""
        return shown(self.generator, Z, self.inputs)

    def take(self, rows: Array | slice) -> Interpolations:
        """Some of the images."""
        chosen = {name: getattr(self, name)[rows] for name in (*self.names(), "images")}
        return replace(self, **chosen)


def interpolations(
    generator: Images,
    latents: ArrayLike | Latents,
    pairs: ArrayLike | None = None,
    alphas: int | Sequence[float] = 11,
    inputs: Inputs | None = None,
) -> Interpolations:
    """Images of z = (1 - alpha) z_i + alpha z_j for pairs (i, j) of latent vectors: equation (1).

    Parameters
    ----------
    generator
        A :class:`flipopt.generative.Generator`, or anything with ``n_latent`` and ``forward``.
    latents
        One a class, (classes, d), as :func:`choose_latents` finds them.
    pairs
        (lines, 2); by default those of :func:`pairs`, in which every class is three times.
    alphas
        Values from 0 to 1, or how many, equally spaced.
    inputs
        From the generator's images to what models take; by default as they are.
    """
    Z = as_floats(latents.z if isinstance(latents, Latents) else latents, "latents").astype(np.float64)
    if Z.ndim != 2 or Z.shape[1] != generator.n_latent or len(Z) < 2:
        raise InputError(f"latents: expected at least two rows of {generator.n_latent} numbers, found {Z.shape}")
    ends = _as_pairs(pairs, len(Z))
    along = np.linspace(0, 1, as_whole(alphas, "alphas", least=2)) if isinstance(alphas, int) else _as_alphas(alphas)
    line, alpha = np.repeat(np.arange(len(ends)), len(along)), np.tile(along, len(ends))
    i, j = ends[line].T
    between = (1 - alpha)[:, None] * Z[i] + alpha[:, None] * Z[j]
    return Interpolations(line, ends[line], alpha, shown(generator, between, inputs), generator, Z, inputs)


def shown(generator: Images, Z: Array, inputs: Inputs | None) -> Array:
    """What models are given of latent vectors (batch, d)."""
    parts = [generator.forward(Z[first : first + AT_ONCE]) for first in range(0, len(Z), AT_ONCE)]
    images = np.concatenate(parts)
    if inputs is None:
        return images
    made = as_floats(inputs(images), "inputs: what it returns")
    if made.ndim < 2 or len(made) != len(images):
        raise InputError(f"inputs: expected a row for each of {len(images)} images, found shape {made.shape}")
    return made


def _as_pairs(values: Any, count: int) -> Array:
    if values is None:
        values = pairs(count, 3 if count * 3 % 2 == 0 and count > 3 else count - 1)
    ends = rectangular(values, "pairs", "(i, j) of each line")
    whole = ends.ndim == 2 and ends.shape[1] == 2 and len(ends) > 0 and ends.dtype.kind in "iu"
    if not whole or ends.min() < 0 or ends.max() >= count or (ends[:, 0] == ends[:, 1]).any():
        raise InputError(
            f"pairs: expected two different numbers from 0 to {count - 1} a line, found {ends.dtype} {ends.shape}"
        )
    return ends.astype(np.int64)


def _as_alphas(values: Any) -> Array:
    along = as_floats(values, "alphas").astype(np.float64)
    if along.ndim != 1 or not len(along) or along.min() < 0 or along.max() > 1 or (np.diff(along) <= 0).any():
        raise InputError(f"alphas: expected rising numbers from 0 to 1, found {np.shape(values)}")
    return along
