"""Figure 1: an image rebuilt from fewer and fewer wavelet coefficients."""

from __future__ import annotations

import numpy as np

from benchmarks.reproduce import pictures
from benchmarks.reproduce.desk import Case, Desk
from benchmarks.reproduce.paper_001.samples import SHIP, Part
from benchmarks.reproduce.record import Picture, setting
from flipopt.common.checks import Array
from flipopt.features.wavelets import WaveletFeatures

COUNTS = (4096, 2200, 1000, 500, 200)
"""Coefficients; the first are all."""
FILE = "001-figure-1.png"


def reconstructions(desk: Desk, case: Case) -> Part:
    """The first ship of the training set from fewer coefficients, in the order of one pivoted QR."""
    recipe, image = case.recipe, case.train.images[np.flatnonzero(case.train.labels == SHIP)[0]]
    chosen = WaveletFeatures.fit(
        case.train.images, COUNTS[1], level=recipe.wavelet_level, dimensions=recipe.wavelet_dimensions
    )
    total = chosen.wavelet_transform.n_coefficients
    rebuilt = [image / 255, *(_rebuilt(chosen, count, image) for count in COUNTS[1:])]
    errors = [float(np.linalg.norm(some - rebuilt[0]) / np.linalg.norm(rebuilt[0])) for some in rebuilt]
    _draw(desk, rebuilt, errors)
    taken = set(chosen.selected[: case.features.n_features].tolist())
    shared = len(taken & set(case.features.selected.tolist()))
    counts = (total, *COUNTS[1:])
    return Part(
        numbers=[
            setting(
                f"001.figure_1_reconstructions.{k}",
                f"coefficients of panel {k + 1}",
                count,
                f"Taken over; the image rebuilt from them is {100 * error:.1f}% off in the 2-norm of its pixels.",
            )
            for k, (count, error) in enumerate(zip(counts, errors, strict=True))
        ],
        pictures=[Picture(FILE, _caption(errors))],
        figures={
            "relative pixel error of the first training ship": dict(zip(map(str, counts), errors, strict=True)),
            "of the network's coefficients, those among as many first pivots": shared,
        },
    )


def _rebuilt(chosen: WaveletFeatures, count: int, image: Array) -> Array:
    """Pixels (\\*shape) of the first ``count`` coefficients of an image; all others are 0."""
    fewer = WaveletFeatures(chosen.wavelet_transform, chosen.selected[:count])
    return fewer.inverse_transform(fewer.transform(image))


def _caption(errors: list[float]) -> str:
    said = ", ".join(f"{count:,} ({100 * error:.0f}%)" for count, error in zip(COUNTS[1:], errors[1:], strict=True))
    return (
        f"The first ship of CIFAR-10's training set (left, all {COUNTS[0]:,} coefficients), and rebuilt from its most "
        f"significant 3-D Haar coefficients: {said}. In brackets, how far the pixels are off, relative to the image. "
        "The coefficients are the first pivots of a QR factorisation of all training images' coefficients. Those left "
        f"out are 0, which makes patches black, blue or yellow. The network sees {COUNTS[-1]} coefficients only."
    )


def _draw(desk: Desk, rebuilt: list[Array], errors: list[float]) -> None:
    drawn = pictures.figure(2.0 * len(rebuilt), 2.6)
    panels = drawn.subplots(1, len(rebuilt))
    for axis, count, image, error in zip(panels, COUNTS, rebuilt, errors, strict=True):
        pictures.show_image(axis, image, f"{count:,} coefficients\n{100 * error:.0f}% off")
    pictures.save(drawn, desk.picture(FILE))
