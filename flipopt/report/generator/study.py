"""What the page is made of: units, samples and measures of every layer that is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_number, as_sequence, as_whole
from flipopt.common.errors import InputError
from flipopt.generative import (
    Baselines,
    Boundaries,
    Chains,
    Comparison,
    Deviation,
    Discriminator,
    Essential,
    Exploration,
    Generator,
    Layer,
    baselines,
    compare,
    deviation,
    essential,
    explore,
    hit_and_run,
    nearest_boundaries,
)
from flipopt.generative.balls import at_radii
from flipopt.generative.diagnostics import LEAST
from flipopt.report.audit.pictures import Pictures
from flipopt.report.generator.reader import Reader
from flipopt.report.generator.seen import as_pictures, in_unit, value_range

CHAINS = 8
"""Of hit-and-run in layers that are not affine."""
SHOWN = 36
"""Images of a sheet."""


@dataclass(frozen=True)
class Exploring:
    """How the regions of a query are found and sampled, in all layers alike.

    Attributes
    ----------
    target_error
        Relative error of the image that the essential units may have by themselves.
    interval, delta, expansions, segments
        Of GB-RRT: ``segments`` is its ``check_segments``.
    samples
        How many samples, and points of other kinds, are compared at most.
    points
        Of hit-and-run, which says how large each region is; 0 for none.
    seed
        Of all choices.
    """

    target_error: float = 0.1
    interval: float = 1.0
    delta: float | None = None
    expansions: int = 1000
    segments: bool = False
    samples: int = 500
    points: int = 400
    seed: int = 0

    def __post_init__(self) -> None:
        as_number(self.target_error, "target_error", least=0.0)
        for name in ("interval", "delta"):
            value = getattr(self, name)
            if value is not None and as_number(value, name, least=0.0) == 0:
                raise InputError(f"{name}: expected a number > 0, found 0")
        as_whole(self.expansions, "expansions", least=1)
        as_whole(self.samples, "samples", least=2)
        as_whole(self.points, "points", least=LEAST * CHAINS if self.points else 0)
        as_whole(self.seed, "seed")


@dataclass(frozen=True, eq=False)
class Looked:
    """A layer that was looked at.

    Attributes
    ----------
    layer, essential, exploration
        The layer, the units that the image needs, and samples of their region.
    others, comparison
        Points to compare with, by name, and what all of them come to.
    deviation
        Of the images of the samples that are compared.
    sheets
        Some images (k, \\*image_shape) of the samples, ``"e-gbas"``, and of ``"matched"`` points.
    classes
        Share of the samples and of the matched points that the classifier puts in the query's class, if there is one.
    chains
        Hit-and-run in the region, or None.
    nearest
        The nearest boundary of the region where the layer is affine, or None.
    """

    layer: Layer
    essential: Essential
    exploration: Exploration
    others: Baselines = field(repr=False)
    comparison: Comparison = field(repr=False)
    deviation: Deviation = field(repr=False)
    sheets: dict[str, Array] = field(repr=False)
    classes: dict[str, float] | None
    chains: Chains | None
    nearest: Boundaries | None


@dataclass(frozen=True, eq=False)
class Explored:
    """A query of a generator in several layers.

    Attributes
    ----------
    generator, query
        The generator and the latent vector (d,).
    image
        Of the query, (\\*image_shape).
    layers
        What was found in each, a :class:`Looked`.
    how
        With which settings.
    discriminator, reader
        Who else looked at the images, or None.
    pictures
        How the images are drawn; None if they are none.
    span
        Least and largest value that a pixel may have.
    """

    generator: Generator
    query: Array
    image: Array
    layers: tuple[Looked, ...]
    how: Exploring
    discriminator: Discriminator | None
    reader: Reader | None
    pictures: Pictures | None
    span: tuple[float, float]


def study(
    G: Generator,
    z0: ArrayLike,
    layers: Sequence[int] | None = None,
    *,
    how: Exploring | None = None,
    discriminator: Discriminator | None = None,
    classifier: Any = None,
    class_names: Sequence[str] | None = None,
    features: Any = None,
    shape: Sequence[int] | None = None,
    progress: bool = False,
) -> Explored:
    """Look at a query of a generator in several layers; see :func:`write_generator_report` for the arguments."""
    plan = Exploring() if how is None else how
    if not isinstance(plan, Exploring):
        raise InputError(f"how: expected Exploring, found {type(how).__name__}")
    query, chosen = G.latent(z0), layers_of(G, layers)
    image = G.forward(query)
    span = value_range(image)
    pictures = as_pictures(G.image_shape, shape, span)
    if discriminator is not None and discriminator.n_inputs != image.size:
        raise InputError(
            f"discriminator: expected one of images {G.image_shape}, found one of {discriminator.input_shape}"
        )
    reader = None if classifier is None else Reader.of(classifier, class_names, features, G.image_shape, pictures)
    about = Asked(G, query, plan, discriminator, reader, span, progress)
    found = tuple(about.looked(layer) for layer in chosen)
    return Explored(G, query, image, found, plan, discriminator, reader, pictures, span)


def layers_of(G: Generator, numbers: Sequence[int] | None) -> tuple[Layer, ...]:
    """The layers of these numbers, each once and in order; by default all but one that makes the pixels themselves.

    All of the image must go through each of them.
    """
    if numbers is None:
        last, pixels = G.layers[-1], int(np.prod(G.image_shape))
        found = G.layers[:-1] if last.units == pixels and len(G.layers) > 1 else G.layers
    else:
        few = as_sequence(numbers, "layers", "numbers of layers")
        found = tuple(G.layer(k) for k in sorted({as_whole(k, "layers", least=1) for k in few}))
    if not found:
        raise InputError("layers: expected at least one number, found none")
    for layer in found:
        G.part(layer.activated, layer.shape, G.output_name)
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked of every layer."""

    G: Generator
    query: Array
    how: Exploring
    discriminator: Discriminator | None
    reader: Reader | None
    span: tuple[float, float]
    progress: bool

    def looked(self, layer: Layer) -> Looked:
        """Algorithm 3 in a layer, and all that is measured of it."""
        G, how = self.G, self.how
        units = essential(
            G, self.query, layer.number, target_error=how.target_error, seed=how.seed, progress=self.progress
        )
        tree = explore(
            G, self.query, layer.number, units.mask, how.interval, how.delta, how.expansions,
            check_segments=how.segments, seed=how.seed, progress=self.progress,
        )  # fmt: skip
        others = self._others(tree)
        some = {name: others.points[name] for name in ("e-gbas", "matched")}
        flat = tree.region.affine is not None
        near = nearest_boundaries(G, self.query, layer.number, units.mask, 1) if flat and units.mask.any() else None
        return Looked(
            layer, units, tree, others, compare(others, self.discriminator), deviation(G, some["e-gbas"]),
            {name: G.forward(_few(points)) for name, points in some.items()},
            None if self.reader is None else {name: self._alike(points) for name, points in some.items()},
            self._chains(tree, flat), near,
        )  # fmt: skip

    def _others(self, tree: Exploration) -> Baselines:
        """The paper's baselines and the control; of a region that was never left the control alone."""
        if len(tree.rejected):
            return baselines(tree, self.how.samples, seed=self.how.seed)
        few, centre = _few(tree.accepted, self.how.samples), tree.accepted.mean(axis=0)
        matched = at_radii(centre, np.linalg.norm(few - centre, axis=1), self.how.seed)
        return Baselines(tree.region, {"e-gbas": few, "matched": matched}, centre, np.nan, np.nan)

    def _alike(self, points: Array) -> float:
        """Share of points whose image is in the class of the query's."""
        assert self.reader is not None
        own = self.reader.classes_of(in_unit(self.G.forward(self.query[None]), self.span))[0]
        return float((self.reader.classes_of(in_unit(self.G.forward(points), self.span)) == own).mean())

    def _chains(self, tree: Exploration, flat: bool) -> Chains | None:
        how = self.how
        if how.points == 0:
            return None
        if flat:
            return hit_and_run(tree.region, how.points, radius=how.interval, seed=how.seed)
        return hit_and_run(tree.region, how.points, radius=how.interval, chains=CHAINS, starts=tree, seed=how.seed)


def _few(points: Array, most: int = SHOWN) -> Array:
    """At most so many of the points, at even steps."""
    return np.asarray(points[np.unique(np.linspace(0, len(points) - 1, min(most, len(points))).astype(int))])
