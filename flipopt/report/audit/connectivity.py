"""Whether the region of a class is connected: lines between samples of it."""

from __future__ import annotations

import numpy as np

from flipopt.common.progress import progress_bar
from flipopt.regions import Connectivity
from flipopt.regions import connectivity as region_connectivity
from flipopt.report.audit.section import Grid, Section, counted, share
from flipopt.report.audit.study import Study

TITLE = "Whether the regions of the classes are connected"
MOST_CLASSES = 20
"""Those with most inputs are looked at."""


def connectivity(study: Study, sample: int, seed: int, progress: bool) -> tuple[Section, list[tuple[int, str]]]:
    """Lines between up to ``sample`` inputs of every class, and entries that stand alone, with words about each."""
    how = (
        f"All pairs of up to {counted(sample, 'input')} of a class, drawn at random: whether the line between the two "
        "stays in the class at all points looked at, closer together where the network curves. Parts are what no chain "
        "of such lines joins; a centre is joined to all."
    )
    rng, regions = np.random.default_rng(seed), {}
    often = np.argsort(-np.bincount(study.predicted[study.sound], minlength=len(study.classes)), kind="stable")
    samples = {int(k): _sample(study, int(k), sample, rng) for k in often[:MOST_CLASSES]}
    chosen = {k: entries for k, entries in samples.items() if len(entries) > 1}
    with progress_bar("connectivity", len(chosen), "classes", progress) as advance:
        for done, (k, entries) in enumerate(sorted(chosen.items()), 1):
            regions[k] = region_connectivity(study.network, study.X[entries])
            advance(done)
    if not regions:
        answer = "Cannot be said: no class has two different inputs."
        return Section("connectivity", TITLE, answer, how), []
    facts = {"classes": _table(study, regions, chosen)}
    return Section("connectivity", TITLE, _answer(study, regions), how, facts), _alone(study, regions, chosen)


def _sample(study: Study, k: int, most: int, rng: np.random.Generator) -> np.ndarray:
    """Up to so many different entries of class k, none of them on its boundary."""
    top = np.partition(study.probabilities, -2, axis=1)[:, -2:]
    mine = np.flatnonzero(study.sound & (study.predicted == k) & (top[:, 1] > top[:, 0]))
    _, first = np.unique(study.X[mine], axis=0, return_index=True)
    different = mine[np.sort(first)]
    return np.sort(rng.permutation(different)[:most])


def _answer(study: Study, regions: dict[int, Connectivity]) -> str:
    lines = sum(region.n_lines for region in regions.values())
    inside = sum(region.share * region.n_lines for region in regions.values())
    least = min(regions, key=lambda k: regions[k].share)
    apart = [study.classes[k] for k, region in regions.items() if region.n_components > 1]
    words = f"{share(inside, lines)} of {counted(lines, 'line')} between inputs of a class stay in it"
    if len(regions) > 1:
        words += f", the fewest in “{study.classes[least]}” ({share(regions[least].share)})"
    if apart:
        return f"{words}; {counted(len(apart), 'class', 'classes')} of {len(regions)} fall into parts."
    return f"{words}; in every class chains of such lines join all."


def _table(study: Study, regions: dict[int, Connectivity], chosen: dict[int, np.ndarray]) -> Grid:
    rows = tuple(
        (
            study.classes[k],
            f"{len(region)}",
            f"{region.n_lines:,}",
            share(region.share),
            f"{region.n_components}",
            f"{len(region.centres)}",
            f"row {study.row[chosen[k][region.least_connected]]} ({int(region.degrees.min())})",
        )
        for k, region in regions.items()
    )
    return Grid(("class", "inputs", "lines", "inside", "parts", "centres", "least connected (to)"), rows)


def _alone(study: Study, regions: dict[int, Connectivity], chosen: dict[int, np.ndarray]) -> list[tuple[int, str]]:
    """The least connected input of every class, the loneliest first, where it is joined to less than half."""
    found = []
    for k, region in regions.items():
        joined = int(region.degrees.min()) / (len(region) - 1)
        if joined < 0.5:
            others = f"{int(region.degrees.min())} of {len(region) - 1} others of “{study.classes[k]}”"
            words = f"lines inside the class lead to {others} only"
            found.append((joined, int(chosen[k][region.least_connected]), words))
    return [(entry, words) for _, entry, words in sorted(found)]
