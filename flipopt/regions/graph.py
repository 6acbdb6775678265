"""Samples of a class as a graph: two are joined where the line between them stays in the class's region."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from flipopt.common.checks import Array, as_whole, optional_package
from flipopt.common.errors import InputError

EDGES_AT_ONCE = 2**14
"""Edges whose lengths are computed at once."""


@dataclass(frozen=True, eq=False)
class Connectivity:
    """Which samples of a class are joined by a line that stays in the class's region.

    Attributes
    ----------
    adjacency
        Symmetric bool matrix (k, k), sparse: whether the line between two samples stays inside.
    X
        The k samples, (k, n_inputs).
    rows
        Their indices in the X that was handed in, (k,): others where only one class was kept.
    predicted
        The class.
    undecided
        Pairs (u, 2) of which it could not be proved that they stay inside, though no point outside was found; they are
        not joined. Empty in adaptive mode.
    evaluations
        Network evaluations a line, in the mean.
    """

    adjacency: sparse.csr_array
    X: Array = field(repr=False)
    rows: Array = field(repr=False)
    predicted: int
    undecided: Array = field(repr=False)
    evaluations: float

    def __len__(self) -> int:
        return len(self.X)

    def summary(self) -> str:
        """What was found, in a sentence."""
        parts = (
            "chains of them join all" if self.n_components == 1 else f"chains of them leave {self.n_components} parts"
        )
        centres = len(self.centres)
        star = f"{centres} joined to all others" if centres else "none joined to all others"
        doubt = f" {len(self.undecided)} lines could not be decided." if len(self.undecided) else ""
        least = f"the least connected, {self.least_connected}, has {self.degrees.min()} neighbours"
        return (
            f"{self.share:.1%} of {self.n_lines:,} lines between {len(self)} samples of class {self.predicted} stay "
            f"inside; {parts}; {star}; {least}.{doubt}"
        )

    @property
    def n_lines(self) -> int:
        """Pairs of samples."""
        return len(self) * (len(self) - 1) // 2

    @property
    def share(self) -> float:
        """Of the lines, those that stay inside."""
        return float(self.adjacency.nnz / 2 / self.n_lines)

    @cached_property
    def degrees(self) -> Array:
        """How many others a sample is joined to, (k,)."""
        return np.asarray(np.diff(self.adjacency.indptr), dtype=np.int64)

    @cached_property
    def components(self) -> Array:
        """A number for every sample, (k,), the same for those that chains of lines join; 0 for the largest part."""
        _, labels = csgraph.connected_components(self.adjacency, directed=False)
        by_size = np.argsort(-np.bincount(labels), kind="stable")
        return np.asarray(np.argsort(by_size)[labels])

    @property
    def n_components(self) -> int:
        """Parts that no chain of lines joins."""
        return int(self.components.max()) + 1

    @property
    def least_connected(self) -> int:
        """The sample that is joined to the fewest others."""
        return int(self.degrees.argmin())

    @property
    def centres(self) -> Array:
        """The samples that are joined to all others: the region is star-shaped as seen from them."""
        return np.flatnonzero(self.degrees == len(self) - 1)

    def chain(self, a: int, b: int) -> list[int]:
        """Samples from a to b, each joined to the next: the fewest lines, and among those the least length.

        Empty where there is no chain.
        """
        for value, name in ((a, "a"), (b, "b")):
            if as_whole(value, name) >= len(self):
                raise InputError(f"{name}: expected a sample below {len(self)}, found {value}")
        # A chain has fewer than k lines, so that its lengths add up to less than one line more.
        graph = self.lengths.copy()
        graph.data = 1 + graph.data / (len(self) * self.lengths.data.max(initial=1.0))
        cost, before = csgraph.dijkstra(graph, directed=False, indices=a, return_predecessors=True)
        if not np.isfinite(cost[b]):
            return []
        chain = [int(b)]
        while chain[-1] != a:
            chain.append(int(before[chain[-1]]))
        return chain[::-1]

    def clusters(self, k: int, seed: int = 0) -> Array:
        """Labels 0, ..., k - 1 of the samples by spectral clustering of the graph (needs scikit-learn).

        Two samples that are joined at a distance d have the weight exp(-d^2 / (2 s^2)), with the median s of all d.
        """
        if not 1 < as_whole(k, "k") < len(self):
            raise InputError(f"k: expected 2 to {len(self) - 1} clusters, found {k}")
        cluster = optional_package("sklearn.cluster", "sklearn", "clusters")
        weights = self.lengths.copy()
        spread = np.median(weights.data) if weights.nnz else 1.0
        weights.data = np.exp(-((weights.data / spread) ** 2) / 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that there are several components, which are clusters then
            found = cluster.SpectralClustering(k, affinity="precomputed", random_state=seed, assign_labels="cluster_qr")
            return np.asarray(found.fit_predict(sparse.csr_matrix(weights)))

    @cached_property
    def lengths(self) -> sparse.csr_array:
        """The lengths of the lines that stay inside, (k, k), sparse."""
        i, j = self.adjacency.nonzero()
        parts = [slice(first, first + EDGES_AT_ONCE) for first in range(0, len(i), EDGES_AT_ONCE)]
        lengths = [np.linalg.norm(self.X[i[part]] - self.X[j[part]], axis=1) for part in parts]
        return sparse.csr_array((np.concatenate([*lengths, []]), (i, j)), shape=self.adjacency.shape)
