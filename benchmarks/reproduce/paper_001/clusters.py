"""Spectral clusters of the ships, and what sets them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.reproduce.desk import Case, Images
from benchmarks.reproduce.paper_001.samples import SHIP
from benchmarks.reproduce.record import Sheet
from flipopt.common.checks import Array
from flipopt.regions import Connectivity


@dataclass(frozen=True)
class Clusters:
    """A sentence, a table with a row a cluster, and all figures."""

    summary: str
    sheet: Sheet
    figures: Mapping[str, Any]


def separated(graph: Connectivity, ships: Images, case: Case, counts: Sequence[int]) -> Clusters:
    """Clusters by how ships are joined, each number of them in ``counts``, by what they differ in most."""
    looks = _properties(graph, ships, case)
    rows: list[list[str]] = []
    explained: dict[str, dict[str, float]] = {}
    for k in counts:
        labels = graph.clusters(k)
        explained[str(k)] = {name: _explained(values, labels) for name, values in looks.items()}
        rows += [[str(k), *_row(graph, labels, j, looks)] for j in np.argsort(-np.bincount(labels, minlength=k))]
    said = []
    for count, shares in explained.items():
        name = max(shares, key=lambda name: shares[name])
        said.append(f"{count} clusters differ most in {name} (it explains {100 * shares[name]:.0f}% of the variance)")
    head = ("clusters", "ships", "lines inside, within", "to the others", *(f"mean {name}" for name in looks))
    return Clusters(
        f"Spectral clustering of the graph: {'; '.join(said)}.",
        Sheet(
            "Spectral clusters of the test ships (lines that stay inside, %; means of what the images are like)",
            head,
            rows,
        ),
        {"variance of properties that clusters explain": explained},
    )


def _properties(graph: Connectivity, ships: Images, case: Case) -> dict[str, Array]:
    """What an image is like, by name, (ships,) each; pixels are in [0, 1]."""
    pixels = ships.images / 255
    grey = pixels.mean(axis=3)
    half = grey.shape[1] // 2
    Y = case.network.in_float64.logits(ships.X)
    return {
        "brightness": grey.mean(axis=(1, 2)),
        "contrast": grey.std(axis=(1, 2)),
        "blue less red": (pixels[..., 2] - pixels[..., 0]).mean(axis=(1, 2)),
        "upper half less lower": grey[:, :half].mean(axis=(1, 2)) - grey[:, half:].mean(axis=(1, 2)),
        "left half less right": grey[..., :half].mean(axis=(1, 2)) - grey[..., half:].mean(axis=(1, 2)),
        "lead of ship in logits": Y[:, SHIP] - Y[:, 1 - SHIP],
        "links": graph.degrees.astype(np.float64),
    }


def _explained(values: Array, labels: Array) -> float:
    """The share of the variance that is between clusters (eta squared)."""
    total = ((values - values.mean()) ** 2).sum()
    groups = (values[labels == k] for k in np.unique(labels))
    between = sum(len(group) * (group.mean() - values.mean()) ** 2 for group in groups)
    return float(between / total) if total > 0 else 0.0


def _row(graph: Connectivity, labels: Array, k: int, looks: Mapping[str, Array]) -> list[str]:
    mine = labels == k
    count, rest = int(mine.sum()), int((~mine).sum())
    joined = graph.adjacency[mine]
    within, across = int(joined[:, mine].nnz), int(joined[:, ~mine].nnz)
    inside = f"{100 * within / (count * (count - 1)):.0f}" if count > 1 else ""
    to_others = f"{100 * across / (count * rest):.0f}" if rest else ""
    return [f"{count}", inside, to_others, *(f"{values[mine].mean():.3g}" for values in looks.values())]
