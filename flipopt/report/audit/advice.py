"""What to do with it: which inputs to distrust, to label and to collect more of, by row and with the reason."""

from __future__ import annotations

from typing import Any

import numpy as np

from flipopt.report.audit.section import Section, counted, number, share
from flipopt.report.audit.study import Study

MOST = 10
"""Rows a list."""


def advice(study: Study, sparse: list[tuple[int, str]]) -> Section:
    """Lists of rows with reasons; ``sparse`` are entries that few lines join to others of their class, and words."""
    title, how = "What to do with it", "From the distances, classes and lines above; a row number leads to its flip."
    groups = [group for group in (_distrust(study), _label(study), _collect(study, sparse), _repair(study)) if group]
    if not groups:
        return Section("advice", title, "No flip point was found, so there is nothing to advise.", how)
    names = [f"{group['verb']} {counted(len(group['items']), 'input')}" for group in groups]
    return Section("advice", title, f"{'; '.join(names).capitalize()}: the rows are below.", how, {"groups": groups})


def entries(section: Section, study: Study) -> list[int]:
    """The entries that the advice names, so that their flips are stored."""
    place = {int(row): k for k, row in enumerate(study.row)}
    return [place[item["row"]] for group in section.facts.get("groups", ()) for item in group["items"]]


def _item(study: Study, k: int, reason: str) -> dict[str, Any]:
    return {"row": int(study.row[k]), "reason": reason}


def _distrust(study: Study) -> dict[str, Any] | None:
    """Decisions that the least change turns, mistakes aside, which are known to be wrong."""
    near = [int(k) for k in study.by_distance if study.wrong is None or not study.wrong[k]][:MOST]
    if not near:
        return None
    why = "The least change turns these decisions, whatever the softmax says. Let a person decide such inputs."
    tenth = study.by_distance[: max(1, len(study.by_distance) // 10)]
    if study.wrong is not None and study.wrong.any() and len(tenth) > 1:
        mistakes, all_mistakes = int(study.wrong[tenth].sum()), int((study.wrong & study.found).sum())
        why += (
            f" Of the tenth of all inputs with the nearest flips, {share(mistakes, len(tenth))} are mistakes, of all "
            f"inputs {share(all_mistakes, int(study.found.sum()))}."
        )
    items = [
        _item(
            study,
            k,
            f"“{study.classes[study.predicted[k]]}” with softmax {share(float(study.softmax[k]))}, but "
            f"“{study.classes[study.other[k]]}” at a distance of {number(float(study.distance[k]))}",
        )
        for k in near
    ]
    return {"verb": "distrust", "title": "Distrust", "why": why, "items": items}


def _label(study: Study) -> dict[str, Any] | None:
    """Labels to check: mistakes that are far from a flip. Without labels: the nearest flip of every pair of classes."""
    if study.wrong is None or study.labels is None:
        return _unlabelled(study)
    far = [int(k) for k in study.by_distance[::-1] if study.wrong[k]][:MOST]
    if not far:
        return None
    items = [
        _item(
            study,
            k,
            f"labelled “{study.classes[study.labels[k]]}”, the model says “{study.classes[study.predicted[k]]}” "
            f"and changes its mind only at {number(float(study.distance[k]))} "
            f"(farther than {share(float((study.distance[study.found] < study.distance[k]).mean()))} of all inputs)",
        )
        for k in far
    ]
    why = (
        "The mistakes that are farthest from a flip: the model is sure, so either the label is wrong, or it has seen "
        "nothing like these."
    )
    if study.distance[far[0]] < np.quantile(study.distance[study.found], 0.25):
        why = (
            "All mistakes are nearer to a flip than three quarters of the inputs: the model is unsure of them. These "
            "are the farthest, where a wrong label is likeliest."
        )
    return {"verb": "check the labels of", "title": "Check the label", "why": why, "items": items}


def _unlabelled(study: Study) -> dict[str, Any] | None:
    first: dict[tuple[int, int], int] = {}
    for k in study.by_distance:
        first.setdefault((int(study.predicted[k]), int(study.other[k])), int(k))
    items = [
        _item(
            study,
            k,
            f"nearest between “{study.classes[i]}” and “{study.classes[j]}”, {number(float(study.distance[k]))}",
        )
        for (i, j), k in list(first.items())[:MOST]
    ]
    why = "The nearest input of each pair of classes: a label there says most about where the boundary should be."
    return {"verb": "label", "title": "Label", "why": why, "items": items} if items else None


def _collect(study: Study, sparse: list[tuple[int, str]]) -> dict[str, Any] | None:
    """Pairs of classes whose flips are many and near, by the nearest input of each, and inputs that stand alone."""
    pairs: dict[tuple[int, int], list[int]] = {}
    for k in study.by_distance:
        i, j = sorted((int(study.predicted[k]), int(study.other[k])))
        pairs.setdefault((i, j), []).append(int(k))
    close = float(np.median(study.distance[study.found])) if study.found.any() else 0.0
    crowded = sorted(pairs.items(), key=lambda pair: -sum(study.distance[k] <= close for k in pair[1]))[: MOST // 2]
    items = []
    for (i, j), members in crowded:
        near = sum(study.distance[k] <= close for k in members)
        words = (
            f"between “{study.classes[i]}” and “{study.classes[j]}”: {counted(near, 'flip')} within {number(close)}, "
        )
        items.append(_item(study, members[0], words + "this input's is the nearest"))
    items += [_item(study, k, words) for k, words in sparse[: MOST - len(items)]]
    why = "Where flips crowd, or an input stands alone in its class, more training data of that kind would help most."
    return (
        {"verb": "collect more like", "title": "Collect more of these", "why": why, "items": items} if items else None
    )


def _repair(study: Study) -> dict[str, Any] | None:
    bad = np.flatnonzero(~study.sound)
    items = [
        _item(study, int(k), f"{study.features[int(np.argmax(~np.isfinite(study.X[k])))]} is no number")
        for k in bad[:MOST]
    ]
    why = f"{counted(len(bad), 'row')} with something that is no number; these were left out of everything else."
    return {"verb": "repair", "title": "Repair", "why": why, "items": items} if items else None
