"""The npz format.

========================  ==============================================================================
``format``                the string ``flipopt-network-1``
``W1``, ..., ``Wm``       weights, (n(k-1), n(k)), float32 or float64
``b1``, ..., ``bm``       biases, (n(k),)
``activations``           m - 1 strings: erf, prelu, relu, elu, tanh or identity
``parameter1``, ...       sigma or alpha of layer k, () or (n(k),), for those that have one
========================  ==============================================================================
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError, InputError
from flipopt.common.files import read_npz, write_npz
from flipopt.common.quoting import listed, quoted
from flipopt.networks.activations import ACTIVATIONS, Activation
from flipopt.networks.layers import Layers

FORMAT = "flipopt-network-1"
NAMES = {kind: name for name, kind in ACTIVATIONS.items()}


def write(net: Layers, path: Path) -> None:
    """Write ``net`` to an npz file."""
    for k, activation in enumerate(net.activations, 1):
        if type(activation) not in NAMES:
            raise InputError(f"net: {type(activation).__name__} (layer {k}) cannot be written to npz")
    arrays: dict[str, Array] = {
        "format": np.array(FORMAT),
        "activations": np.array([NAMES[type(activation)] for activation in net.activations], dtype="U16"),
    }
    for k, (W, b) in enumerate(zip(net.weights, net.biases, strict=True), 1):
        arrays[f"W{k}"], arrays[f"b{k}"] = W, b
    for k, activation in enumerate(net.activations, 1):
        if activation.tunable:
            arrays[f"parameter{k}"] = np.asarray(activation.parameter_value)
    write_npz(path, arrays)


def read(path: Path) -> Layers:
    """The network of an npz file."""
    arrays = read_npz(path, required=("format", "activations", "W1", "b1"))
    if str(arrays["format"]) != FORMAT:
        raise FileFormatError(f"{path}: expected format {FORMAT}, found {quoted(arrays['format'])}")
    m = sum(name.startswith("W") for name in arrays)
    needed = [f"{letter}{k}" for k in range(1, m + 1) for letter in "Wb"]
    missing = [name for name in needed if name not in arrays]
    if missing:
        raise FileFormatError(f"{path}: holds {m} weight matrices but lacks {listed(missing)}")
    names = arrays["activations"]
    if names.dtype.kind != "U" or names.shape != (m - 1,):
        raise FileFormatError(f"{path}: activations: expected {m - 1} strings, found {names.dtype} {names.shape}")
    activations = [_activation(path, str(name), k, arrays) for k, name in enumerate(names, 1)]
    W, b = ([arrays[f"{letter}{k}"] for k in range(1, m + 1)] for letter in "Wb")
    for array in (*W, *b):
        array.setflags(write=False)  # so that no copy is made
    return Layers(W, b, activations)


def _activation(path: Path, name: str, k: int, arrays: dict[str, Array]) -> Activation:
    if name not in ACTIVATIONS:
        raise FileFormatError(f"{path}: layer {k}: unknown activation {quoted(name)}")
    kind = ACTIVATIONS[name]
    if not kind.tunable:
        return kind()
    if f"parameter{k}" not in arrays:
        raise FileFormatError(f"{path}: layer {k}: {name} needs parameter{k}, which is not there")
    return kind(arrays[f"parameter{k}"])  # type: ignore[call-arg]
