"""Which classes are confused with which: where the nearest flips lead."""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array
from flipopt.explain import Alternate, alternate
from flipopt.report.audit.section import Section, counted, number, share
from flipopt.report.audit.study import Study

TITLE = "Which classes are confused with which"
MOST_CLASSES = 24
"""In the matrix; of more classes those with most inputs are shown."""


def classes(study: Study) -> Section:
    """The matrix of nearest flips: from the predicted class to the class beyond."""
    how = (
        "For every input the class on the other side of its nearest flip; rows are the model's own classes, columns "
        "the classes beyond, and a cell counts inputs. Click one to see them in the table of inputs."
    )
    if not study.found.any():
        return Section("classes", TITLE, "No flip point was found, so nothing can be said.", how)
    truth = np.maximum(study.predicted, 0) if study.labels is None else study.labels
    n = len(study.classes)
    found = alternate(study.numbered, truth, [str(k) for k in range(n)])
    counts = found.matrix
    kept = np.sort(np.argsort(-(counts.sum(axis=0) + counts.sum(axis=1)), kind="stable")[:MOST_CLASSES])
    facts = {"matrix": _matrix(study, counts, kept), "left_out": n - len(kept)}
    words = _commonest(study, counts) + ("" if study.labels is None else _mistakes(found))
    return Section("classes", TITLE, words, how, facts)


def _commonest(study: Study, counts: Array) -> str:
    if len(study.classes) == 2:
        return "There are two classes, so that every flip leads to the other one."
    i, j = np.unravel_index(int(counts.argmax()), counts.shape)
    distance = float(np.median(study.distance[study.found & (study.predicted == i) & (study.other == j)]))
    total = int(counts[i].sum())
    return (
        f"Most often “{study.classes[i]}” would become “{study.classes[j]}”: {counts[i, j]:,} of "
        f"{counted(total, 'input')} of that class ({share(int(counts[i, j]), total)}), half of them within "
        f"{number(distance)}."
    )


def _mistakes(found: Alternate) -> str:
    if found.mistakes == 0:
        return " There are no mistakes among the labelled inputs."
    whole = f"{int(found.right.sum()):,} of {found.mistakes:,} ({share(found.share)}"
    low, high = found.interval
    return (
        f" Where the model is wrong, the class beyond the flip is the true one for {whole}; 95% interval "
        f"{share(low)} to {share(high)})."
    )


def _matrix(study: Study, counts: Array, kept: Array) -> dict[str, object]:
    lines = []
    for i in kept:
        largest = max(1, int(counts[i].max()))
        cells = [
            {"i": int(i), "j": int(j), "count": int(counts[i, j]), "shade": round(int(counts[i, j]) / largest, 2)}
            for j in kept
        ]
        lines.append({"name": study.classes[i], "cells": cells})
    return {"names": [study.classes[k] for k in kept], "lines": lines}
