"""Training on a part of the data, or with further points: the files that flipopt.explain writes."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from data_prep.datasets import Split
from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError
from flipopt.common.files import read_npz
from models.recipes import Recipe
from models.training import TrainingData


def only_rows(data: TrainingData, recipe: Recipe, path: Path) -> TrainingData:
    """The training data at the ``rows`` in an npz file; they must be those of the file, by number and labels."""
    arrays = read_npz(path, required=("rows", "labels", "of"))
    rows, count = arrays["rows"], len(data.train.labels)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(np.unique(rows)) != len(rows) or arrays["of"] != count:
        raise FileFormatError(
            f"{path}: expected different rows of the {count} that {recipe.name} is trained on, found {rows.dtype} "
            f"{rows.shape} of {arrays['of']}"
        )
    if len(rows) < recipe.batch or rows.min() < 0 or rows.max() >= count:
        raise FileFormatError(
            f"{path}: expected {recipe.batch} rows or more from 0 to {count - 1}, found {_range(rows)}"
        )
    if not np.array_equal(data.train.labels[rows], arrays["labels"]):
        raise FileFormatError(f"{path}: expected rows of the training data of {recipe.name}, found other labels")
    train = Split(data.train.images[rows], data.train.labels[rows])
    facts = {"file": path.name, "rows": len(rows), "crc32": zlib.crc32(rows.astype("<i8").tobytes())}
    return replace(data, train=train, changes={**data.changes, "subset": facts})


def with_points(data: TrainingData, path: Path) -> TrainingData:
    """The training data and the points ``X`` with ``labels`` in an npz file, inputs of the network each."""
    arrays = read_npz(path, required=("X", "labels"))
    X, labels, classes = arrays["X"], arrays["labels"], len(data.dataset.classes)
    if X.ndim != 2 or X.shape[1] != data.n_inputs or X.dtype.kind != "f":
        raise FileFormatError(f"{path}: expected X of shape (points, {data.n_inputs}), found {X.dtype} {X.shape}")
    if labels.shape != X.shape[:1] or labels.dtype.kind not in "iu" or len(labels) == 0:
        raise FileFormatError(f"{path}: expected a class for each point of X, found {labels.dtype} {labels.shape}")
    if labels.min() < 0 or labels.max() >= classes:
        raise FileFormatError(f"{path}: expected classes from 0 to {classes - 1}, found {_range(labels)}")
    facts = {"file": path.name, "points": len(X), "crc32": zlib.crc32(X.tobytes() + labels.astype("<i8").tobytes())}
    return replace(data, extra=(X, labels.astype(np.int64)), changes={**data.changes, "extra": facts})


def _range(values: Array) -> str:
    return f"{len(values)} from {values.min()} to {values.max()}" if len(values) else "none"
