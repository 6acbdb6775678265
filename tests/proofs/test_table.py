from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import flipopt as fo
from tests.proofs.cases import distance_by_pieces, network


def test_distances_are_proved_and_a_flip_that_is_too_far_is_replaced(tmp_path: Path) -> None:
    net, X = network(5, (2, 4, 3, 3)), np.random.default_rng(5).standard_normal((3, 2))
    true = np.array([distance_by_pieces(net, x) for x in X])
    flips = fo.closest_flip_points(net, X)
    assert np.isnan(flips.lower_bound).all()
    assert not flips.proved.any()
    worse = replace(flips, x=X + 1.5 * (flips.x - X), distance=1.5 * flips.distance)
    proved = fo.proofs.prove_flips(net, X, worse)
    assert proved.proved.all()
    np.testing.assert_allclose(proved.distance, true, rtol=2e-6)
    assert (proved.lower_bound <= true * (1 + 1e-9)).all()
    assert (proved.solver == "proofs").all()
    assert (proved.boundary_gap < 1e-8).all()
    np.testing.assert_array_equal(flips.distance * 1.5, worse.distance)  # what was given stays as it is

    proved.save(tmp_path / "flips.parquet")
    np.testing.assert_array_equal(fo.FlipTable.load(tmp_path / "flips.parquet").proved, [True] * 3)
    older = pq.read_table(tmp_path / "flips.parquet").drop_columns(["lower_bound"])
    pq.write_table(older, tmp_path / "older.parquet")
    for loaded in (fo.FlipTable.load(tmp_path / "older.parquet"), fo.FlipTable.from_arrow(older)):
        assert np.isnan(loaded.lower_bound).all()
        assert not loaded.proved.any()


def test_a_smooth_network_has_lower_bounds() -> None:
    rng = np.random.default_rng(0)
    net = fo.DenseNetwork(
        [rng.standard_normal((3, 5)), rng.standard_normal((5, 3))], [np.zeros(5), np.zeros(3)], fo.Erf(1.0)
    )
    X, weights = rng.standard_normal((2, 3)), np.array([4.0, 9.0, 16.0])
    flips = fo.closest_flip_points(net, X, weights=weights)
    bounded = fo.proofs.prove_flips(net, X, flips, weights=weights)
    np.testing.assert_allclose(bounded.lower_bound, 2 * fo.bounds.lower(net, X))
    assert (bounded.lower_bound <= bounded.distance).all()
    np.testing.assert_array_equal(bounded.x, flips.x)


def test_results_say_what_is_proved() -> None:
    net, x = network(1, (2, 4, 3)), np.array([[0.3, -0.2]])
    flips = fo.closest_flip_points(net, x, solver="scipy")
    proved = fo.proofs.prove_flips(net, x, flips)
    for result, bound in zip(proved.results, proved.lower_bound, strict=False):
        assert result.lower_bound == bound
        assert result.proved == proved.proved[0]


def test_a_table_of_other_rows_is_refused() -> None:
    net, X = network(1, (2, 4, 3)), np.random.default_rng(1).standard_normal((2, 2))
    with pytest.raises(fo.FlipoptError, match="flips: expected the nearest for each of 2 rows"):
        fo.proofs.prove_flips(net, X, fo.closest_flip_points(net, X, "all"))
