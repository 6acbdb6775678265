"""The link to flip points: a generative boundary is where the two logits (f_i, 0) tie, and the nearest point of it is
a closest flip point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_point, as_whole, optional_package
from flipopt.common.tables import Table
from flipopt.flips.one import closest_flip_point
from flipopt.generative.exact import affine, in_float64, torch_part
from flipopt.generative.generator import as_mask
from flipopt.generative.graphs import Graph
from flipopt.results.status import Status

if TYPE_CHECKING:
    from flipopt.networks.pytorch import TorchNetwork

STEP = np.finfo(float).eps ** (1 / 3)
"""Of central differences, relative to the point."""


@dataclass(eq=False)
class Boundaries(Table):
    """The generative boundaries nearest to a point, a record each, the nearest first.

    Attributes
    ----------
    unit
        The unit of the layer that is 0 there.
    distance
        Of the nearest point of the boundary; infinite where none was found.
    estimate
        ``|f_i| / |grad f_i|`` at the point itself, which is the distance where the layer is affine.
    status
        What the check says of it: CONVERGED, or ON_BOUNDARY for a point that is not proved to be the closest.
    z
        The nearest points, (records, d).
    """

    unit: Array
    distance: Array
    estimate: Array
    status: Array
    z: Array


def nearest_boundaries(
    G: Graph, z: ArrayLike, layer: int, mask: ArrayLike | None = None, candidates: int = 5, seed: int = 0
) -> Boundaries:
    """The generative boundaries of a layer that are nearest to z: how far it is from leaving its region, and by which.

    In an affine layer, as the first one is, the distance to { a z + b = 0 } is ``|a z + b| / |a|``. In a deeper one the
    boundaries that are nearest to first order are candidates, and each is a flip problem for the package's own solvers,
    which needs torch.

    Parameters
    ----------
    G
        A :class:`Generator`; or a :class:`Discriminator`, which may be any classifier in ONNX: then z is an image.
    z
        The point, (d,).
    layer
        The layer's number, from 1.
    mask
        The units that count, (units,) bool or indices; by default all.
    candidates
        Boundaries that are looked at, at most.
    seed
        Of the solver's starts.
    """
    found = G.layer(layer)
    point = as_point(z, G.n_inputs, "z")
    units = np.flatnonzero(as_mask(mask, found))
    values = in_float64(G, found.number)(point[None])[0, units]
    flat = affine(G, found.number)
    slopes = _slopes(G, found.number, point)[units] if flat is None else flat[0][units]
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = np.abs(values) / np.linalg.norm(slopes, axis=1)
    estimate = np.where(np.isnan(estimate), 0.0, estimate)  # 0 / 0: a unit that is 0 around the point
    few = np.argsort(estimate, kind="stable")[: as_whole(candidates, "candidates", least=1)]
    few = few[np.isfinite(estimate[few])]  # a unit that does not change has no boundary
    if flat is not None:
        squares = np.maximum((slopes[few] ** 2).sum(axis=1), np.finfo(float).tiny)
        points = point - (values[few] / squares)[:, None] * slopes[few]
        status = np.full(len(few), Status.CONVERGED, dtype=object)
        return Boundaries(units[few], estimate[few], estimate[few], status, points)
    flips = [closest_flip_point(_tie(G, found.number, int(unit)), point, seed=seed) for unit in units[few]]
    distance = np.array([flip.distance for flip in flips])
    order = np.argsort(distance, kind="stable")
    status = np.array([flip.status for flip in flips], dtype=object)
    points = np.array([flip.x for flip in flips]).reshape(-1, len(point))
    return Boundaries(units[few][order], distance[order], estimate[few][order], status[order], points[order])


def _slopes(G: Graph, number: int, z: Array) -> Array:
    """The gradients of the units of a layer (units, d), by central differences in float64."""
    h = STEP * max(1.0, float(np.abs(z).max()))
    steps = h * np.eye(len(z))
    values = in_float64(G, number)(np.concatenate([z + steps, z - steps]))
    return np.asarray((values[: len(z)] - values[len(z) :]).T / (2 * h))


def _tie(G: Graph, number: int, unit: int) -> TorchNetwork:
    """The classifier with logits (f_i, 0), in float64."""
    torch = optional_package("torch", "torch", "the nearest boundary of a layer that is not affine")
    from flipopt.networks.pytorch import TorchNetwork

    layer = G.layer(number)
    graph = torch_part(G.path, G.part(G.input_name, G.input_shape, layer.name), layer.name)[0].double()

    class Tie(torch.nn.Module):  # type: ignore[name-defined, misc]
        """(f_i, 0) of rows (batch, d)."""

        def __init__(self) -> None:
            super().__init__()
            self.graph = graph

        def forward(self, X: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
            values = self.graph.evaluate(X.reshape(-1, *G.input_shape), layer.name).reshape(len(X), -1)[:, unit]
            return torch.stack([values, torch.zeros_like(values)], dim=1)

    return TorchNetwork(Tie(), (G.n_inputs,))
