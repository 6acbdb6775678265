"""Which classes are confused with which: where the nearest flips lead."""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array
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
    n = len(study.classes)
    counts = np.zeros((n, n), dtype=int)
    np.add.at(counts, (study.predicted[study.found], study.other[study.found]), 1)
    i, j = np.unravel_index(int(counts.argmax()), counts.shape)
    total = int(counts[i].sum())
    distance = float(np.median(study.distance[study.found & (study.predicted == i) & (study.other == j)]))
    answer = (
        f"There are two classes, so that every flip leads to the other one.{_mistakes(study)}"
        if n == 2
        else f"Most often “{study.classes[i]}” would become “{study.classes[j]}”: {counts[i, j]:,} of "
        f"{counted(total, 'input')} of that class ({share(int(counts[i, j]), total)}), half of them within "
        f"{number(distance)}.{_mistakes(study)}"
    )
    kept = np.sort(np.argsort(-(counts.sum(axis=0) + counts.sum(axis=1)), kind="stable")[:MOST_CLASSES])
    return Section("classes", TITLE, answer, how, {"matrix": _matrix(study, counts, kept), "left_out": n - len(kept)})


def _mistakes(study: Study) -> str:
    if study.wrong is None or study.labels is None:
        return ""
    wrong = study.wrong & study.found
    if not wrong.any():
        return " There are no mistakes among the labelled inputs."
    right = int((study.other == study.labels)[wrong].sum())
    total = int(wrong.sum())
    whole = f"{right:,} of {total:,} ({share(right, total)})"
    return f" Where the model is wrong, the class beyond the flip is the true one for {whole}."


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
