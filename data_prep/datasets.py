"""Data sets in memory: uint8 images and integer labels, in the files' own order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from data_prep.readers import CIFAR_CLASSES, FASHION_CLASSES, Bytes, read_cifar_batch, read_idx
from data_prep.sources import source
from flipopt.common.errors import FileFormatError, InputError

Labels = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Images (n, height, width[, 3]) as uint8 and labels (n,)."""

    images: Bytes
    labels: Labels


@dataclass(frozen=True)
class Dataset:
    """A training and a test split; label k is ``classes[k]``."""

    name: str
    train: Split
    test: Split
    classes: tuple[str, ...]

    def only(self, names: Sequence[str]) -> Dataset:
        """The images of the named classes, relabelled 0, 1, ... in the order named."""
        unknown = [name for name in names if name not in self.classes]
        if unknown:
            raise InputError(f"classes: expected names among {', '.join(self.classes)}, found {', '.join(unknown)}")
        old = [self.classes.index(name) for name in names]
        return Dataset(self.name, _only(self.train, old), _only(self.test, old), tuple(names))


def load_dataset(name: str) -> Dataset:
    """Read ``mnist``, ``fashion-mnist`` or ``cifar-10``, downloading it first where it is not on this machine."""
    folder = source(name).fetch()
    if name == "cifar-10":
        return _load_cifar(folder / "cifar-10-batches-bin")
    classes = FASHION_CLASSES if name == "fashion-mnist" else tuple(str(k) for k in range(10))
    return Dataset(name, _load_idx(folder, "train"), _load_idx(folder, "t10k"), classes)


def mirrored(split: Split) -> Split:
    """The split with every image's left-right mirror image appended (002, section 6.2)."""
    return Split(np.concatenate([split.images, split.images[:, :, ::-1]]), np.concatenate([split.labels, split.labels]))


def _load_idx(folder: Path, part: str) -> Split:
    images = read_idx(folder / f"{part}-images-idx3-ubyte.gz")
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte.gz")
    if images.ndim != 3 or labels.shape != images.shape[:1]:
        raise FileFormatError(f"{folder}: {part} has images {images.shape} but labels {labels.shape}")
    return Split(images, labels.astype(np.int64))


def _load_cifar(folder: Path) -> Dataset:
    batches = [read_cifar_batch(folder / f"data_batch_{batch}.bin") for batch in range(1, 6)]
    train = Split(
        np.concatenate([images for images, _ in batches]),
        np.concatenate([labels for _, labels in batches]).astype(np.int64),
    )
    images, labels = read_cifar_batch(folder / "test_batch.bin")
    return Dataset("cifar-10", train, Split(images, labels.astype(np.int64)), CIFAR_CLASSES)


def _only(split: Split, old: list[int]) -> Split:
    keep = np.isin(split.labels, old)
    new = np.full(max(old) + 1, -1)
    new[old] = np.arange(len(old))
    return Split(split.images[keep], new[split.labels[keep]])
