from __future__ import annotations

import numpy as np
import pytest

import flipopt as fo
from benchmarks.proofs_scip import nearest
from tests.proofs.cases import distance_by_pieces, network

pytest.importorskip("pyscipopt")


@pytest.mark.parametrize(("seed", "alpha"), [(1, 0.0), (5, 0.0), (8, 0.3)])
def test_the_mixed_integer_program_agrees_with_the_enumeration_of_pieces(seed: int, alpha: float) -> None:
    net, x = network(seed, (2, 4, 3, 3), alpha), np.random.default_rng(seed).standard_normal(2)
    true = distance_by_pieces(net, x)
    found = nearest(net, x, 1.5 * true, seconds=60.0)
    assert found.lower == pytest.approx(true, rel=1e-6)
    assert found.upper == pytest.approx(true, rel=1e-6)
    assert found.nodes > 0


def test_a_flip_that_is_known_is_proved_or_replaced() -> None:
    net, x = network(1), np.random.default_rng(1).standard_normal(2)
    true = distance_by_pieces(net, x)
    known = nearest(net, x, true * (1 + 1e-9), seconds=60.0, close=1e-6)
    assert known.lower == pytest.approx(true * (1 - 1e-6), rel=1e-8)
    assert known.upper == pytest.approx(true, rel=1e-8)
    replaced = nearest(net, x, true * (1 + 1e-2), seconds=60.0, close=1e-6)
    assert replaced.upper == pytest.approx(true, rel=1e-6)


def test_the_bound_of_an_image_is_no_larger_than_the_distance_and_grows_with_time() -> None:
    shipped = fo.load_shipped("mnist-fcn")
    x, far = shipped.X[1], float(fo.closest_flip_points(shipped.network, shipped.X[1:2]).distance[0])
    short, none = (nearest(shipped.network, x, far, seconds=seconds, close=1e-6) for seconds in (0.3, 0.0))
    assert none.lower == 0
    assert none.lower <= short.lower <= far
    assert none.upper == short.upper == far
    assert short.binaries == none.binaries <= 100
