"""Networks as files: npz, ONNX, and the CSV folders of the papers' MATLAB code. All are read as untrusted input."""

from __future__ import annotations

from pathlib import Path

from flipopt.common.errors import FileFormatError, FlipoptError, InputError
from flipopt.networks.dense import DenseNetwork
from flipopt.networks.files import csv, npz, onnx


def load_network(path: str | Path) -> DenseNetwork:
    """Read a dense network from ``net.npz``, ``net.onnx`` or a folder of W1.csv, B1.csv, ..., sigma.csv.

    Its precision is the file's; points in float64 are evaluated in float64 whatever it is.
    """
    path = Path(path)
    if path.is_dir():
        read = csv.read
    elif path.suffix == ".npz":
        read = npz.read
    elif path.suffix == ".onnx":
        read = onnx.read
    else:
        missing = "" if path.exists() else " (and there is no such file)"
        raise FileFormatError(f"{path}: expected a .npz file, a .onnx file or a folder of CSV files{missing}")
    try:
        return read(path)
    except FileFormatError:
        raise
    except FlipoptError as error:  # the arrays were read, but make no network
        raise FileFormatError(f"{path}: {error}") from error


def save_network(net: DenseNetwork, path: str | Path) -> None:
    """Write ``net`` to ``path``: .npz, .onnx, or (no suffix) a folder of CSV files."""
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError(f"path: expected a folder that exists, found {path.parent}")
    writers = {".npz": npz.write, ".onnx": onnx.write, "": csv.write}
    if path.suffix not in writers:
        raise InputError(f"path: expected a name ending in .npz or .onnx, or without suffix for CSV, found {path.name}")
    writers[path.suffix](net, path)


__all__ = ["load_network", "save_network"]
