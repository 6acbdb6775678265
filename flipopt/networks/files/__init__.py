"""Layers as files: npz, ONNX, and the CSV folders of the papers' MATLAB code. All are read as untrusted input."""

from __future__ import annotations

from pathlib import Path

from flipopt.common.errors import FileFormatError, FlipoptError, InputError
from flipopt.networks.files import csv, npz, onnx
from flipopt.networks.layers import Layers

__all__ = ["read_layers", "write_layers"]


def read_layers(path: str | Path) -> Layers:
    """The layers in ``net.npz``, ``net.onnx`` or a folder of W1.csv, B1.csv, ..., sigma.csv."""
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


def write_layers(layers: Layers, path: str | Path) -> None:
    """Write to ``path``: .npz, .onnx, or (no suffix) a folder of CSV files."""
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError(f"path: expected a folder that exists, found {path.parent}")
    writers = {".npz": npz.write, ".onnx": onnx.write, "": csv.write}
    if path.suffix not in writers:
        raise InputError(f"path: expected a name ending in .npz or .onnx, or without suffix for CSV, found {path.name}")
    writers[path.suffix](layers, path)
