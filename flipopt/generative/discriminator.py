"""Discriminators: what they see in images, layer by layer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_floats, as_rows
from flipopt.generative.graphs import Graph
from flipopt.networks.onnx_graph.runtime import Runtime


class Discriminator(Graph):
    """A discriminator in an ONNX file of one input: images (batch, ...). Read as a :class:`Generator` is.

    One that compares the images of a batch, by their deviation, sees them one at a time (``alone``).

    Parameters
    ----------
    path
        The model, with a dynamic batch and in evaluation mode.
    """

    what = "a discriminator"

    def __init__(self, path: str | Path) -> None:
        self.alone = False
        super().__init__(path)

    def forward(self, X: ArrayLike, to: int | None = None) -> Array:
        """The output for images X, (rows, ...); or with ``to`` the pre-activations of a layer, flat, (rows, units)."""
        return self._at(X, self.output_name if to is None else self.layer(to, "to").name)

    def features(self, X: ArrayLike, at: int) -> Array:
        """d_l of equation (2): what comes out of the activation of a layer, flat, (rows, units)."""
        return self._at(X, self.layer(at, "at").activated)

    def _at(self, X: ArrayLike, target: str) -> Array:
        images = as_floats(X, "X")
        shape = self.input_shape
        if images.shape == shape or images.shape[1:] == shape:
            images = images.reshape(*images.shape[: images.ndim - len(shape)], -1)
        rows = as_rows(images, self.n_inputs, "X")
        batch = np.atleast_2d(rows)
        values = self.run(batch, self.input_name, shape, target)
        values = values.reshape(len(batch), int(np.prod(values.shape[1:])))
        return values[0] if rows.ndim == 1 else values

    def run(self, X: Array, source: str, shape: tuple[int, ...], target: str) -> Array:
        if self.alone and (source, target) not in self._parts:
            self._parts[source, target] = Runtime(self.path, self.part(source, shape, target), [target], 1, threads=1)
        return super().run(X, source, shape, target)

    def _depends(self, name: str) -> None:
        self.alone = True
