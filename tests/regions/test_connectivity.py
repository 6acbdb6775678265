"""Regions whose parts, centres and chains are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import flipopt as fo
from flipopt.regions.connectivity import pairs_at
from tests.cases import linear, moons
from tests.strategies import points


class _Distance(torch.nn.Module):
    """Class 0 within ``width`` of the union of segments, (segments, 2, 2)."""

    def __init__(self, segments: list, width: float) -> None:
        super().__init__()
        ends = torch.tensor(segments, dtype=torch.float64)
        self.start, self.way = torch.nn.Parameter(ends[:, 0]), torch.nn.Parameter(ends[:, 1] - ends[:, 0])
        self.width = width

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        apart = X[:, None] - self.start
        t = ((apart * self.way).sum(-1) / (self.way**2).sum(-1)).clamp(0, 1)
        nearest = (apart - t[..., None] * self.way).norm(dim=-1).min(dim=1).values
        return torch.stack([self.width - nearest, torch.zeros_like(nearest)], dim=1)


def corridors(*segments: tuple, width: float = 0.2) -> fo.TorchNetwork:
    return fo.TorchNetwork(_Distance(list(segments), width), input_shape=(2,))


STAR = corridors(((0, 0), (2, 0)), ((0, 0), (-1, 1.7)), ((0, 0), (-1, -1.7)))
TIPS = np.array([[0.0, 0.0], [2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]])
C = corridors(((2, 2), (0, 2)), ((0, 2), (0, 0)), ((0, 0), (2, 0)))
ALONG_C = np.array([[2.0, 2.0], [1.0, 2.0], [0.0, 2.0], [0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])


def test_a_star_has_a_centre() -> None:
    c = fo.regions.connectivity(STAR, TIPS)
    assert c.centres.tolist() == [0]
    assert c.degrees.tolist() == [3, 1, 1, 1]
    assert (c.n_components, c.n_lines, c.share) == (1, 6, 0.5)
    assert c.least_connected in (1, 2, 3)
    assert c.chain(1, 3) == [1, 0, 3]
    assert (c.adjacency != c.adjacency.T).nnz == 0
    assert c.adjacency.dtype == bool
    assert c.evaluations > 0
    assert c.summary().startswith("50.0% of 6 lines between 4 samples of class")
    assert "chains of them join all; 1 joined to all others" in c.summary()


def test_a_c_is_connected_by_chains_and_has_no_centre() -> None:
    c = fo.regions.connectivity(C, ALONG_C)
    assert c.n_components == 1
    assert len(c.centres) == 0
    assert c.chain(0, 5) == [0, 2, 3, 5]  # 1 and 4 lie on the way and would be lines more
    assert c.chain(1, 2) == [1, 2]
    assert c.chain(4, 4) == [4]


def test_of_chains_with_as_few_lines_the_shortest_is_taken() -> None:
    diamond = corridors(((0, 0), (2, 1)), ((2, 1), (4, 0)), ((0, 0), (2, -3)), ((2, -3), (4, 0)))
    c = fo.regions.connectivity(diamond, np.array([[0.0, 0.0], [2.0, -3.0], [2.0, 1.0], [4.0, 0.0]]))
    assert c.chain(0, 3) == [0, 2, 3]


def test_two_parts_are_two_components_without_a_chain() -> None:
    parts = corridors(((0, 0), (2, 0)), ((0, 3), (2, 3)))
    X = np.array([[0.0, 3.0], [0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [2.0, 3.0]])
    c = fo.regions.connectivity(parts, X)
    assert c.components.tolist() == [1, 0, 0, 0, 1]
    assert c.n_components == 2
    assert "chains of them leave 2 parts; none joined to all others" in c.summary()
    assert c.chain(0, 1) == []
    labels = c.clusters(2)
    assert labels[0] == labels[4] != labels[1] == labels[2] == labels[3]


def test_a_narrow_gap_is_seen() -> None:
    """Outside is from 1.2 to 1.35 only: nine samples, at multiples of 0.375, do not hit it."""
    gap = corridors(((0, 0), (1, 0)), ((1.55, 0), (3, 0)))
    c = fo.regions.connectivity(gap, np.array([[0.0, 0.0], [3.0, 0.0]]))
    assert c.n_components == 2


@pytest.mark.parametrize("mode", ["adaptive", "proved"])
def test_lines_of_a_dense_network_stay_inside_where_a_fine_scan_says_so(mode: str) -> None:
    net = moons()
    X = np.random.default_rng(0).uniform([-1.2, -0.8], [2.2, 1.2], size=(60, 2))
    c = fo.regions.connectivity(net, X, mode, of=0)
    assert len(c.undecided) == 0
    assert (net.predict(X[c.rows]) == 0).all()
    i, j = np.triu_indices(len(c), 1)
    t = np.linspace(0, 1, 1001)[:, None]
    scan = np.array([(net.predict((1 - t) * c.X[a] + t * c.X[b]) == 0).all() for a, b in zip(i, j)])
    np.testing.assert_array_equal(c.adjacency.toarray()[i, j], scan)
    assert 0 < scan.sum() < len(scan)


def test_a_half_space_is_all_centres() -> None:
    net = linear(np.array([1.0, 2.0]))
    X = points(net, 30, 0)
    c = fo.regions.connectivity(net, X[net.predict(X) == 1], "proved")
    assert len(c.centres) == len(c)
    assert c.share == 1.0


def test_a_run_is_gone_on_with(tmp_path: Path) -> None:
    net, X = moons(), np.random.default_rng(0).uniform(-1, 1, size=(40, 2))
    plain = fo.regions.connectivity(net, X, of=0)
    kept = fo.regions.connectivity(net, X, of=0, run=tmp_path)
    chunks = sorted(tmp_path.glob("*.parquet"))
    assert fo.runs.open(tmp_path).done == plain.n_lines
    again = fo.regions.connectivity(net, X, of=0, run=tmp_path)
    assert sorted(tmp_path.glob("*.parquet")) == chunks
    for other in (kept, again):
        assert (plain.adjacency != other.adjacency).nnz == 0
        assert other.evaluations == plain.evaluations
    with pytest.raises(fo.StorageError, match="X is"):
        fo.regions.connectivity(net, 0.99 * X, of=0, run=tmp_path)


def test_processes_find_what_threads_do() -> None:
    net, X = moons(), np.random.default_rng(0).uniform(-1, 1, size=(20, 2))
    both = [fo.regions.connectivity(net, X, of=0, executor=executor) for executor in (None, "processes")]
    assert (both[0].adjacency != both[1].adjacency).nnz == 0


@pytest.mark.parametrize("count", [2, 3, 7, 50])
def test_pairs_are_numbered_row_by_row(count: int) -> None:
    i, j = pairs_at(np.arange(count * (count - 1) // 2), count)
    np.testing.assert_array_equal(np.column_stack([i, j]), np.column_stack(np.triu_indices(count, 1)))


def test_bad_samples_are_refused() -> None:
    net = linear(np.array([1.0, 0.0]))
    good = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 1.0]])
    for X, why in [
        (good[:1], "at least two samples"),
        (np.concatenate([good, good[:1]]), "rows 0 and 3 alike"),
        (np.concatenate([good, [[0.0, 0.0]]]), "row 3 on its boundary"),
        (np.concatenate([good, [[-1.0, 0.0]]]), "3 in class 0, 1 in class 1"),
        (np.concatenate([good, [[np.nan, 0.0]]]), "finite"),
        (good[:, :1], "shape"),
    ]:
        with pytest.raises(fo.InputError, match=why):
            fo.regions.connectivity(net, X)
    c = fo.regions.connectivity(net, np.concatenate([good, [[-1.0, 0.0]]]), of=0)
    assert c.rows.tolist() == [0, 1, 2]
    with pytest.raises(fo.InputError, match="at least two samples"):
        fo.regions.connectivity(net, np.concatenate([good, [[-1.0, 0.0]]]), of=1)
    with pytest.raises(fo.InputError, match="a class below 2"):
        fo.regions.connectivity(net, good, of=2)
    with pytest.raises(fo.InputError, match="expected a sample below 3"):
        c.chain(0, 3)
    with pytest.raises(fo.InputError, match="2 to 2 clusters"):
        c.clusters(3)


def test_what_cannot_be_proved_is_refused() -> None:
    with pytest.raises(fo.InputError, match="mode='adaptive' takes every network"):
        fo.regions.connectivity(STAR, TIPS, "proved")
    with pytest.raises(fo.InputError, match="expected a Sampling in adaptive mode"):
        fo.regions.connectivity(STAR, TIPS, options=fo.paths.Proving())
