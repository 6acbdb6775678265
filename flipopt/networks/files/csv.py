"""The CSV folder of the papers' MATLAB code: W1.csv, B1.csv, ..., Wm.csv, Bm.csv and sigma.csv, erf networks only.

W(k) is (n(k-1), n(k)), B(k) one row or column, and sigma.csv holds one number for each of the m - 1 hidden layers.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError, InputError
from flipopt.common.files import reading, require_neighbour
from flipopt.common.limits import limits, require_within
from flipopt.networks.activations import Erf
from flipopt.networks.layers import Layers


def write(net: Layers, path: Path) -> None:
    """Write an erf network to a new folder, whole or not at all."""
    sigmas = [activation.sigma for activation in net.activations if isinstance(activation, Erf)]
    if len(sigmas) != net.n_layers - 1 or any(np.ndim(sigma) for sigma in sigmas):
        raise InputError("net: the CSV format holds erf layers with one sigma each; use .npz for this network")
    if path.exists():
        raise InputError(f"path: {path} exists already; a CSV folder is written only where there is nothing")
    folder = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        for k, (W, b) in enumerate(zip(net.weights, net.biases, strict=True), 1):
            np.savetxt(folder / f"W{k}.csv", W, delimiter=",", fmt="%.17g")
            np.savetxt(folder / f"B{k}.csv", b[None, :], delimiter=",", fmt="%.17g")
        np.savetxt(folder / "sigma.csv", np.array(sigmas)[None, :], delimiter=",", fmt="%.17g")
        folder.chmod(0o755)
        os.rename(folder, path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def read(path: Path) -> Layers:
    """The erf network of a CSV folder, in float64."""
    m = 0
    while (path / f"W{m + 1}.csv").exists():
        m += 1
    if m == 0:
        raise FileFormatError(f"{path}: a network folder holds W1.csv, B1.csv, ..., sigma.csv; there is no W1.csv")
    names = [f"{letter}{k}.csv" for k in range(1, m + 1) for letter in "WB"] + ["sigma.csv"] * (m > 1)
    size = sum(require_neighbour(path / name) for name in names)
    require_within(size, limits().text, f"{path}: bytes in its files")
    W = [_table(path / f"W{k}.csv") for k in range(1, m + 1)]
    b = [_vector(path / f"B{k}.csv") for k in range(1, m + 1)]
    sigma = _vector(path / "sigma.csv") if m > 1 else np.empty(0)
    if len(sigma) != m - 1:
        raise FileFormatError(f"{path / 'sigma.csv'}: expected {m - 1} numbers, found {len(sigma)}")
    return Layers(W, b, [Erf(float(value)) for value in sigma])


def _table(path: Path) -> Array:
    with reading(path, "a table of numbers"):
        table = np.loadtxt(path, delimiter=",", ndmin=2, encoding="utf-8")
    if table.size == 0:
        raise FileFormatError(f"{path}: holds no numbers")
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        raise FileFormatError(f"{path}: row {row + 1}, column {column + 1} is {table[row, column]}")
    return table


def _vector(path: Path) -> Array:
    table = _table(path)
    if 1 not in table.shape:
        raise FileFormatError(f"{path}: expected one row or one column, found shape {table.shape}")
    return table.reshape(-1)
