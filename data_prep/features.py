"""Feature files: the wavelet features of a whole data set, its labels, and the map that made them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from data_prep.datasets import Dataset, Split
from flipopt.common.checks import Array
from flipopt.common.files import write_npz
from flipopt.features.wavelets import WaveletFeatures

BATCH = 4096


def write_features(dataset: Dataset, features: WaveletFeatures, path: Path) -> None:
    """Write train_features, train_labels, test_features, test_labels and classes to ``path`` (.npz).

    The fitted map goes beside it, as <stem>.features.npz.
    """
    features.save(path.with_suffix(".features.npz"))
    write_npz(
        path,
        {
            "train_features": _transform(features, dataset.train),
            "train_labels": dataset.train.labels,
            "test_features": _transform(features, dataset.test),
            "test_labels": dataset.test.labels,
            "classes": np.array(dataset.classes),
        },
    )


def _transform(features: WaveletFeatures, split: Split) -> Array:
    """In batches: the full set of coefficients of all images at once need not fit in memory."""
    parts = [features.transform(split.images[at : at + BATCH]) for at in range(0, len(split.images), BATCH)]
    return np.concatenate(parts)
