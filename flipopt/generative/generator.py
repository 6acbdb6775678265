"""Generators: from latent vectors to images, layer by layer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_floats, as_rows
from flipopt.common.errors import InputError
from flipopt.generative.graphs import Graph
from flipopt.generative.layers import Layer


class Generator(Graph):
    """A generator in an ONNX file of one input: latent vectors (batch, d), also with sides of 1 as (batch, d, 1, 1).

    Its layers are the tensors that go into an activation, after batch normalisation, numbered from 1 (``layers``). The
    file is read as one from a stranger: with limits, and tried on a few rows. Forward passes need no torch.

    Parameters
    ----------
    path
        The model, with a dynamic batch and in evaluation mode. External data are read from the same folder only.
    """

    what = "a generator"

    def _check_input(self) -> None:
        if sum(side > 1 for side in self.input_shape) > 1:
            shape = ("batch", *self.input_shape)
            raise self.refusal(f"expected latent vectors, (batch, d) or (batch, d, 1, 1), found an input {shape}")

    @property
    def n_latent(self) -> int:
        """Numbers of a latent vector, d."""
        return self.n_inputs

    @property
    def image_shape(self) -> tuple[int, ...]:
        """Of one image."""
        return self.output_shape

    def forward(self, z: ArrayLike, to: int | None = None) -> Array:
        """Images of z (rows, d), (rows, \\*image_shape); or with ``to`` the pre-activations f_l:1(z) of a layer, flat,
        (rows, units). One latent vector (d,) gives one image or (units,)."""
        points = self.latents(z)
        target = self.output_name if to is None else self.layer(to, "to").name
        values = self.run(np.atleast_2d(points), self.input_name, self.input_shape, target)
        values = values if to is None else values.reshape(len(values), self.layer(to).units)
        return values[0] if points.ndim == 1 else values

    def activate(self, h: ArrayLike, at: int) -> Array:
        """The activations (rows, units) of pre-activations h of the layer ``at``."""
        layer = self.layer(at, "at")
        rows = as_rows(h, layer.units, "h")
        values = self.run(np.atleast_2d(rows), layer.name, layer.shape, layer.activated)
        return values.reshape(rows.shape)

    def decode(self, h: ArrayLike, frm: int, mask: ArrayLike | None = None, activated: bool = False) -> Array:
        """Images from the units h (rows, units) of the layer ``frm``: f_L:l+1.

        Parameters
        ----------
        h
            Pre-activations, so that ``decode(forward(z, to=l), frm=l)`` is ``forward(z)``; with ``activated`` what came
            out of the activation.
        frm
            The layer's number. All of the image must go through it.
        mask
            What activations are multiplied by, (units,) or (rows, units): 0 puts a unit's activation out (Algorithm 1,
            line 5).
        activated
            Whether h are activations.
        """
        layer = self.layer(frm, "frm")
        rows = as_rows(h, layer.units, "h")
        batch = np.atleast_2d(rows)
        single = rows.ndim == 1
        if mask is not None:
            weights = as_rows(mask, layer.units, "mask")
            if weights.ndim == 2 and len(batch) not in (1, len(weights)):
                raise InputError(f"mask: expected one row, or {len(batch)} as h has, found {len(weights)}")
            batch = (batch if activated else self.activate(batch, frm)) * weights
            activated, single = True, single and weights.ndim == 1
        images = self.run(batch, layer.activated if activated else layer.name, layer.shape, self.output_name)
        return images[0] if single else images

    def latents(self, z: Any, name: str = "z") -> Array:
        """Latent vectors as floats (d,) or (rows, d); also in the shape of the file's input."""
        points = as_floats(z, name)
        if len(self.input_shape) > 1 and points.ndim > 2 and points.shape[1:] == self.input_shape:
            points = points.reshape(len(points), -1)
        return as_rows(points, self.n_latent, name)

    def latent(self, z: Any, name: str = "z0") -> Array:
        """One latent vector (d,), float64."""
        points = self.latents(z, name)
        if points.ndim == 2 and len(points) == 1:
            points = points[0]
        if points.ndim != 1:
            raise InputError(f"{name}: expected one latent vector of shape ({self.n_latent},), found {points.shape}")
        return points.astype(np.float64)

    def __repr__(self) -> str:
        units = ", ".join(str(layer.units) for layer in self.layers)
        return f"Generator({str(self.path)!r}): {self.n_latent} latent numbers, layers of {units} units"


def as_mask(mask: Any, layer: Layer) -> Array:
    """The units of a layer that are meant, (units,) bool: None for all, a mask of 0 and 1, or their indices."""
    if mask is None:
        return np.ones(layer.units, dtype=bool)
    array = np.asarray(mask)
    if array.shape == (layer.units,) and array.dtype.kind in "biuf" and np.isin(array, (0, 1)).all():
        return array.astype(bool)
    array = array.astype(np.int64) if array.size == 0 else array
    whole = array.ndim == 1 and array.dtype.kind in "iu"
    if whole and array.min(initial=0) >= 0 and array.max(initial=0) < layer.units:
        chosen = np.zeros(layer.units, dtype=bool)
        chosen[array] = True
        return chosen
    raise InputError(
        f"mask: expected {layer.units} booleans, one a unit, or indices of units, found {array.dtype} {array.shape}"
    )
