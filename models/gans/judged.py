"""What a trained classifier takes the images of an exported generator for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from flipopt.features.shipped import load_shipped
from flipopt.generative import Generator

JUDGES = {"mnist": "mnist-fcn"}
"""Shipped networks of pixels, for data sets."""
IMAGES, SURE = 2000, 0.9
"""Images that are judged, and the softmax score from which the classifier counts as sure."""


def judged(path: Path, dataset: str) -> dict[str, Any]:
    """Share of a generator's images in [0, 1] that a classifier is sure of, beside that of test images, and how many
    it puts in each class; ready for JSON, and empty without a classifier for the data set."""
    if dataset not in JUDGES:
        return {}
    shipped, G = load_shipped(JUDGES[dataset]), Generator(path)
    images = G.forward(np.random.default_rng(0).standard_normal((IMAGES, G.n_latent)))
    scores = shipped.network.probabilities(images.reshape(IMAGES, -1).astype(np.float64))
    real = shipped.network.probabilities(shipped.X)
    return {
        "judged": {
            "classifier": JUDGES[dataset],
            "images": IMAGES,
            "seed": 0,
            "softmax": SURE,
            "sure": round(float((scores.max(axis=1) > SURE).mean()), 4),
            "sure_of_test_images": round(float((real.max(axis=1) > SURE).mean()), 4),
            "classes": np.bincount(scores.argmax(axis=1), minlength=scores.shape[1]).tolist(),
        }
    }
