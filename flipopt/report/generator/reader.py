"""A classifier that says what it takes the images for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.explain.matching import class_names as named
from flipopt.features.wavelets import WaveletFeatures
from flipopt.networks.protocol import Network
from flipopt.networks.wrapping import as_network
from flipopt.report.audit.pictures import Pictures
from flipopt.report.generator.seen import as_drawn


@dataclass(frozen=True, eq=False)
class Reader:
    """A network that takes images with pixels from 0 to 1, or wavelet ``features`` of them."""

    network: Network
    names: tuple[str, ...]
    features: WaveletFeatures | None
    pictures: Pictures | None
    swapped: bool
    """Whether the network wants the channels last and the generator has them first."""

    @classmethod
    def of(
        cls,
        classifier: Any,
        names: Sequence[str] | None,
        features: WaveletFeatures | None,
        image_shape: tuple[int, ...],
        pictures: Pictures | None,
    ) -> Reader:
        """An error unless the network takes such images."""
        network, pixels = as_network(classifier, np.zeros((1, *image_shape)), many=True), int(np.prod(image_shape))
        wanted = int(np.prod(features.shape)) if features is not None else network.n_inputs
        if wanted != pixels or (features is not None and pictures is None):
            raise InputError(f"classifier: expected one of images {image_shape}, found one of {wanted} pixels")
        sides = tuple(getattr(network, "input_shape", ()))
        swapped = len(sides) == 3 and sides != image_shape and sides == (*image_shape[1:], image_shape[0])
        return cls(network, tuple(named(names, network)), features, pictures, swapped)

    def probabilities(self, images: Array) -> Array:
        """Of images (rows, \\*image_shape) with pixels from 0 to 1, (rows, classes)."""
        if self.features is not None:
            assert self.pictures is not None
            return np.asarray(self.network.probabilities(self.features.transform(as_drawn(images, self.pictures))))
        rows = np.moveaxis(images, 1, 3) if self.swapped else images
        return np.asarray(self.network.probabilities(rows.reshape(len(rows), -1).astype(np.float64)))

    def classes_of(self, images: Array) -> Array:
        """The class of each of them, (rows,)."""
        return np.asarray(self.probabilities(images).argmax(axis=1))
