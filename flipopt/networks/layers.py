"""The layers of a fully connected network: what its files hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_floats
from flipopt.common.errors import InputError
from flipopt.networks.activations import Activation


class Layers:
    """Weights, biases and activations that fit each other, in one precision and read-only."""

    def __init__(
        self,
        weights: Sequence[ArrayLike],
        biases: Sequence[ArrayLike],
        activations: Activation | Sequence[Activation] = (),
    ) -> None:
        W = [as_floats(matrix, f"weights[{k}]") for k, matrix in enumerate(weights)]
        b = [as_floats(vector, f"biases[{k}]") for k, vector in enumerate(biases)]
        if isinstance(activations, Activation):
            activations = [activations] * (len(W) - 1)
        check_layers(W, b, activations)
        dtype = np.result_type(*W, *b)
        self.weights: tuple[Array, ...] = tuple(frozen(matrix, dtype) for matrix in W)
        self.biases: tuple[Array, ...] = tuple(frozen(vector, dtype) for vector in b)
        self.activations: tuple[Activation, ...] = tuple(activations)

    @property
    def n_inputs(self) -> int:
        return int(self.weights[0].shape[0])

    @property
    def n_classes(self) -> int:
        return int(self.weights[-1].shape[1])

    @property
    def n_layers(self) -> int:
        """m, the output layer included."""
        return len(self.weights)

    @property
    def widths(self) -> tuple[int, ...]:
        """n(0), ..., n(m): the inputs, every layer, the classes."""
        return (self.n_inputs, *(matrix.shape[1] for matrix in self.weights))

    @property
    def n_parameters(self) -> int:
        """Trained numbers: weights, biases and the activations' parameters."""
        tuned = (np.size(activation.parameter_value) for activation in self.activations if activation.tunable)
        return sum(array.size for array in (*self.weights, *self.biases)) + sum(tuned)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.weights[0].dtype


def frozen(array: Array, dtype: np.dtype[Any]) -> Array:
    """A read-only C-contiguous array; a copy unless it is one already, so the caller's array is left alone."""
    if array.flags.writeable or array.dtype != dtype or not array.flags.c_contiguous:
        array = np.array(array, dtype=dtype, order="C")
        array.setflags(write=False)
    return array


def check_layers(weights: Sequence[Array], biases: Sequence[Array], activations: Sequence[Activation]) -> None:
    """Every matrix fits the one before it, its bias and its activation."""
    m = len(weights)
    if m == 0:
        raise InputError("weights: expected at least one matrix, found none")
    if len(biases) != m:
        raise InputError(f"biases: expected {m}, one per matrix in weights, found {len(biases)}")
    if len(activations) != m - 1:
        raise InputError(f"activations: expected {m - 1}, one per hidden layer, found {len(activations)}")
    for k, (W, b) in enumerate(zip(weights, biases, strict=True)):
        rows = weights[k - 1].shape[-1] if k else (W.shape[0] if W.ndim else 0)
        if W.ndim != 2 or 0 in W.shape or W.shape[0] != rows:
            raise InputError(f"weights[{k}]: expected shape ({rows or 'n'}, width), found {W.shape}")
        if b.shape != W.shape[1:]:
            raise InputError(f"biases[{k}]: expected shape {W.shape[1:]}, found {b.shape}")
    for k, activation in enumerate(activations):
        if not isinstance(activation, Activation):
            raise InputError(f"activations[{k}]: expected an Activation, found {type(activation).__name__}")
        if activation.shape not in ((), weights[k].shape[1:]):
            raise InputError(
                f"activations[{k}]: expected a parameter of shape () or {weights[k].shape[1:]}, "
                f"found {activation.shape}"
            )
    if weights[-1].shape[1] < 2:
        raise InputError(f"weights[{m - 1}]: expected at least 2 classes (columns), found {weights[-1].shape[1]}")
