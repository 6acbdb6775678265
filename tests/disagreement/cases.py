"""Answers that give chosen counts. The people here are simulated, and stand for nobody."""

from __future__ import annotations

import numpy as np

IMAGES, MODELS, PEOPLE = 165, 9, 10
COUNTS = {97.5: (47, 25, 10), 98.0: (36, 19, 15), 98.5: (30, 12, 14)}
"""Images on which models disagree, of type A and of type C, by accuracy: Table 3 of Vlaar, of 165 images."""
CERTAINTIES = {0.9: 3, 0.8: 9, 0.7: 7, 0.6: 6, 0.5: 6, 0.4: 1}
"""Images by the certainty of ten people on them, of those on which these disagree: Table 5."""


def simulated_people() -> np.ndarray:
    """Labels (people, images) with the certainties of Table 5, on the first images; after these all agree on 7."""
    labels = np.full((PEOPLE, IMAGES), 7)
    levels = [level for level, count in CERTAINTIES.items() for _ in range(count)]
    for image, level in enumerate(levels):
        others = PEOPLE - round(level * PEOPLE)
        # Others are split so finely that 7 stays the most frequent.
        labels[:others, image] = np.arange(others) // 2 if level < 0.6 else 1
    return labels


def predictions(disagree: int, type_a: int, type_c: int, models: int = MODELS) -> np.ndarray:
    """Classes (models, images): one model is alone with 3 on the images that the counts ask for, all else is 7."""
    predicted = np.full((models, IMAGES), 7)
    hard = sum(CERTAINTIES.values())
    both = disagree - type_a
    assert hard - both == type_c
    for k, image in enumerate([*range(both), *range(hard, hard + type_a)]):
        predicted[k % models, image] = 3
    return predicted
