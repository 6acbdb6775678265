"""Saved proofs as files from strangers, and their trees: the part of the checker that needs no arithmetic.

A file of version 2 has bounds on features as well: the numbers of those that have one, and its value, on either side.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError
from flipopt.common.files import read_npz
from flipopt.networks.dense import DenseNetwork

LISTS = {"parent": "i", "target": "i", "neuron": "i", "sign": "i", "leaf": "b"}
LEAVES = {"radius": "f", "taus": "i", "lams": "i"}
ENTRIES = {"neurons": "i", "tau": "f", "rows": "i", "lam": "f"}
SINGLE = {"version": "i", "source": "i", "lower": "f"}
LEAST = 1e-140
"""Of claims."""
SIDES = {"floor": "floors", "ceiling": "ceilings"}
"""Of a file of version 2: values, and the features that they are of."""


class RejectedError(Exception):
    """What a proof lacks."""


def require(holds: Any, why: str) -> None:
    """Reject the proof otherwise."""
    if not holds:
        raise RejectedError(why)


def read(path: Path, net: DenseNetwork) -> dict[str, Any]:
    """The arrays of the right kinds and shapes."""
    shapes = {name: (kind, "nodes") for name, kind in LISTS.items()} | {
        "x": ("f", "inputs"), "weights": ("f", "inputs"), "free": ("b", "inputs")
    }  # fmt: skip
    file = read_npz(path, (*shapes, *LEAVES, *ENTRIES, *SINGLE))
    for name in (*shapes, *LEAVES, *ENTRIES):
        kind = {**LISTS, **LEAVES, **ENTRIES, "x": "f", "weights": "f", "free": "b"}[name]
        if file[name].ndim != 1 or file[name].dtype.kind != kind:
            raise FileFormatError(f"{path}: {name}: expected a list of kind {kind!r}, found {file[name].dtype}")
    for name, kind in SINGLE.items():
        if file[name].shape != () or file[name].dtype.kind != kind:
            raise FileFormatError(f"{path}: {name}: expected a number of kind {kind!r}, found {file[name].dtype}")
    if file["version"] not in (1, 2):
        raise FileFormatError(f"{path}: version: expected 1 or 2, found {file['version']}")
    nodes, leaves = len(file["parent"]), int(file["leaf"].sum())
    expected = dict.fromkeys(LISTS, nodes) | dict.fromkeys(LEAVES, leaves)
    expected |= dict.fromkeys(("x", "weights", "free"), net.n_inputs)
    for name, length in expected.items():
        if len(file[name]) != length:
            raise FileFormatError(f"{path}: {name}: expected {length} entries, found {len(file[name])}")
    for counts, entries in (("taus", ("neurons", "tau")), ("lams", ("rows", "lam"))):
        least, total = file[counts].min(initial=0), int(file[counts].sum(dtype=object)) if leaves else 0
        if least < 0 or any(len(file[name]) != total for name in entries):
            raise FileFormatError(f"{path}: {counts}: expected the numbers of {' and '.join(entries)}")
    low, high = _bounds(path, file, net.n_inputs)
    file = {name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in file.items()}
    return {**file, "lower": float(file["lower"]), "low": low, "high": high}


def _bounds(path: Path, file: dict[str, Any], n: int) -> tuple[Array, Array]:
    """Of all features, (n,), infinite where there are none."""
    low, high = np.full(n, -np.inf), np.full(n, np.inf)
    if file["version"] == 1:
        return low, high
    for bound, (value, where) in zip((low, high), SIDES.items(), strict=True):
        if any(name not in file or file[name].ndim != 1 for name in (value, where)):
            raise FileFormatError(f"{path}: lacks a list {value} or {where}, which a proof with bounds has")
        values, places = file[value], file[where]
        if values.dtype.kind != "f" or places.dtype.kind != "i" or len(values) != len(places):
            raise FileFormatError(f"{path}: {value}: expected a number for each of {where}")
        if len(np.unique(places)) != len(places) or not ((places >= 0) & (places < n)).all():
            raise FileFormatError(f"{path}: {where}: expected different features from 0 to {n - 1}")
        bound[places] = values
    return low, high


def check_tree(file: dict[str, Any], net: DenseNetwork) -> None:
    """The leaves cover every other class and all signs."""
    hidden, nodes = sum(net.widths[1:-1]), len(file["parent"])
    parent, target, neuron, sign, leaf = (file[name] for name in LISTS)
    require(file["lower"] >= 0, "it claims a negative distance")
    require(file["lower"] == 0 or file["lower"] > LEAST, "it claims a distance whose square is next to underflow")
    require((file["weights"] > 0).all(), "a weight is not positive")
    inside = (file["low"] <= file["x"]) & (file["x"] <= file["high"])
    require(inside[file["free"]].all(), "the input is not within the bounds")
    require(0 <= file["source"] < net.n_classes, "there is no such class")
    require((file["tau"] >= 0).all() and (file["lam"] >= 0).all(), "a multiplier is negative")
    roots = np.flatnonzero(parent < 0)
    others = [k for k in range(net.n_classes) if k != file["source"]]
    require(sorted(target[roots].tolist()) == others, "a class has no root, or several")
    inner = parent >= 0
    require((parent[inner] < np.flatnonzero(inner)).all(), "a node comes before its parent")
    require(not leaf[parent[inner]].any(), "a leaf is split")
    require((target[inner] == target[parent[inner]]).all(), "a node is of another class than its parent")
    require(((neuron[inner] >= 0) & (neuron[inner] < hidden)).all(), "there is no such neuron")
    below: list[list[int]] = [[] for _ in range(nodes)]
    for number in np.flatnonzero(inner):
        below[parent[number]].append(int(number))
    for number in np.flatnonzero(~leaf):
        pair = below[number]
        complete = len(pair) == 2 and neuron[pair[0]] == neuron[pair[1]] and sorted(sign[pair].tolist()) == [-1, 1]
        require(complete, f"node {number} is not split into both signs of a neuron")


def signs_on_the_way(file: dict[str, Any], number: int) -> dict[int, int]:
    """Signs by neuron on the way to a node."""
    signs: dict[int, int] = {}
    while file["parent"][number] >= 0:
        neuron, sign = int(file["neuron"][number]), int(file["sign"][number])
        signs[neuron] = sign if signs.get(neuron, sign) == sign else 2  # 2: both, which is nowhere but at 0
        number = int(file["parent"][number])
    return {neuron: sign for neuron, sign in signs.items() if sign != 2}
