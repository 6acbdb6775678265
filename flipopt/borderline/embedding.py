"""Pictures of the embedding space: its first principal components."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flipopt.borderline.instances import Instances
from flipopt.borderline.samples import embedded
from flipopt.common.checks import Array, as_whole
from flipopt.common.errors import InputError
from flipopt.networks.points import as_points
from flipopt.networks.protocol import Network
from flipopt.networks.wrapping import as_network


@dataclass(frozen=True, eq=False)
class Embedding:
    """The first principal components of a network's embedding, as some samples have it.

    Attributes
    ----------
    network
        Whose last hidden layer it is.
    mean
        Of the embeddings, (width,).
    components
        Directions of unit length, (dimensions, width), the largest variance first; the largest entry is positive.
    share
        Of the variance that each has, (dimensions,).
    """

    network: Network = field(repr=False)
    mean: Array = field(repr=False)
    components: Array = field(repr=False)
    share: Array

    def places(self, points: Any) -> Array:
        """Coordinates (rows, dimensions) of points (rows, n_inputs), or of the :class:`Instances` that were found."""
        points = points.found.x if isinstance(points, Instances) else points
        X = np.atleast_2d(as_points(points, self.network, "points"))
        return np.asarray((embedded(self.network, X) - self.mean) @ self.components.T)


def embed(net: Any, X: Any, dimensions: int = 2) -> Embedding:
    """Principal components of the embeddings of X, to be fitted on training samples and then asked for any points.

    Parameters
    ----------
    net
        Any network.
    X
        Samples (rows, n_inputs), two at least, of those classes that the picture is of.
    dimensions
        Components, at most as many as the embedding is wide.
    """
    network = as_network(net, X, many=True)
    E = embedded(network, np.atleast_2d(as_points(X, network, "X")))
    if len(E) < 2:
        raise InputError(f"X: expected at least two samples, found {len(E)}")
    if as_whole(dimensions, "dimensions", least=1) > min(E.shape):
        raise InputError(f"dimensions: expected at most {min(E.shape)}, found {dimensions}")
    mean = E.mean(axis=0)
    _, sizes, V = np.linalg.svd(E - mean, full_matrices=False)
    components = V[:dimensions]
    largest = components[np.arange(dimensions), np.abs(components).argmax(axis=1)]
    share = sizes[:dimensions] ** 2 / max(float((sizes**2).sum()), np.finfo(np.float64).tiny)
    return Embedding(network, mean, components * np.sign(largest)[:, None], share)
