"""How the samples were found, and how much of the region they have seen."""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array
from flipopt.generative import Exploration
from flipopt.generative.chains import MIXED
from flipopt.report.audit.section import NONE, Grid, Section, number, share
from flipopt.report.generative import plane
from flipopt.report.generator.asked import FOLDER, by_layer, in_words, words_of
from flipopt.report.generator.study import Explored, Looked

SIDE, MARGIN = 400, 12
"""Of a picture of a tree."""


def tree(study: Explored) -> Section:
    """The tree of every layer in two dimensions."""
    how = (
        "Each sample is joined to the one that it was expanded from; the query is in the middle. Of more than two "
        "dimensions the two principal components of the samples are shown, and steps that look crossed or crowded need "
        "not be so. The paper does not look whether a step stays in the region on its way"
    )
    flat = [one.layer.number for one in study.layers if one.exploration.region.affine is not None]
    if study.how.segments:
        how += "; here points of every step were looked at, and steps refused that leave the region"
    elif flat:
        how += f"; in layer {flat[0]} it does, as the region is convex"
    drawn = [drawing(one.exploration) for one in study.layers]
    cards = [
        {"layer": one.layer.number, "words": words_of(one), "paths": paths}
        for one, (paths, _) in zip(study.layers, drawn, strict=True)
    ]
    shares = [share(shown) for _, shown in drawn]
    answer = f"The two directions that are shown have this much of the samples' spread: {by_layer(study, shares)}."
    return Section(
        "tree", "How the samples were found", answer, f"{how}.", {"cards": cards, "side": SIDE}, folder=FOLDER
    )


def drawing(found: Exploration) -> tuple[dict[str, str], float]:
    """Paths of lines and dots for a picture of SIDE x SIDE, and how much of the spread it shows."""
    places, out, shown = plane(found)
    every = np.concatenate([places, out])
    size = float(np.abs(every).max(initial=0.0)) or 1.0
    at, outside = (SIDE / 2 + points / size * (SIDE / 2 - MARGIN) * [1, -1] for points in (places, out))
    lines = [f"M{_at(at[parent])}L{_at(at[child])}" for child, parent in enumerate(found.tree) if parent >= 0]
    dots = {"inside": at[1:], "outside": outside}
    paths = {name: "".join(f"M{_at(point)}h0" for point in points) for name, points in dots.items()}
    return paths | {"lines": "".join(lines)}, shown


def _at(point: Array) -> str:
    return f"{point[0]:.1f} {point[1]:.1f}"


def reach(study: Explored) -> Section:
    """Distances of the samples beside those of chains that see all of the region."""
    how = (
        "A tree stays near its query, so that its samples speak for that part of the region alone. Hit-and-run goes "
        "through all of it, within the same box around the query: of the first layer, whose region is a polytope known "
        "exactly, without the network; of deeper ones by slices. R-hat compares several chains that start far "
        f"from each other: below {MIXED} they agree, and their points count as spread evenly over the region; the "
        "effective size is how many independent points they are worth."
    )
    near = [_near(one) for one in study.layers if one.nearest is not None and len(one.nearest)]
    facts = {"table": _table(study), "near": near}
    return Section("reach", "How much of the region was seen", _answer(study), how, facts, folder=FOLDER)


def _table(study: Explored) -> Grid:
    rows = []
    for one in study.layers:
        found, chains = one.exploration, one.chains
        more: tuple[str, ...] = (NONE,) * 4
        if chains is not None:
            more = (
                number(chains.reach[0]), number(float(chains.rhat.max()), 4), number(float(chains.ess.min())),
                "mixed" if chains.mixed else "not mixed",
            )  # fmt: skip
        rows.append(
            (
                str(one.layer.number),
                f"{len(found.accepted) - 1:,}",
                f"{len(found.rejected):,}",
                f"{found.crowded:,}",
                number(found.reach[0]),
                number(found.reach[1]),
                f"{found.evaluations:,}",
                *more,
            )
        )
    head = (
        "layer", "samples", "outside", "too near", "mean distance", "largest", "evaluations", "chains: distance",
        "R-hat", "effective", "",
    )  # fmt: skip
    return Grid(head, tuple(rows), worded=True)


def _near(one: Looked) -> str:
    assert one.nearest is not None
    return (
        f"Layer {one.layer.number}: the nearest boundary of the region, that of unit {int(one.nearest.unit[0])}, is "
        f"{number(float(one.nearest.distance[0]))} from the query."
    )


def _answer(study: Explored) -> str:
    found = [(one, one.chains) for one in study.layers if one.chains is not None]
    if not found:
        return "Cannot be said: no chains were run in these layers."
    near = in_words([number(one.exploration.reach[0]) for one, _ in found])
    far = in_words([number(chains.reach[0]) for _, chains in found])
    where = "layer" if len(found) == 1 else "layers"
    words = (
        f"Samples of the tree are {near} from the query on average, where points all over the region are {far}, in "
        f"{where} {in_words([str(one.layer.number) for one, _ in found])}."
    )
    doubtful = [str(one.layer.number) for one, chains in found if not chains.mixed]
    if doubtful:
        where = "layer" if len(doubtful) == 1 else "layers"
        words += f" The chains in {where} {in_words(doubtful)} have not mixed, so that this is a guess there."
    return words
