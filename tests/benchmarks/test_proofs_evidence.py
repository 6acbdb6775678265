from __future__ import annotations

import numpy as np
import pytest

import flipopt as fo
from benchmarks.proofs_evidence import EXCESS, too_far
from tests.proofs.cases import network


@pytest.mark.parametrize("seed", [1, 5, 8])
def test_a_point_that_is_too_far_is_on_the_boundary(seed: int) -> None:
    net, x = network(seed, (2, 4, 3, 3)), np.random.default_rng(seed).standard_normal(2)
    flip = fo.closest_flip_point(net, x)
    point = too_far(net, x, flip.x, seed)
    assert np.linalg.norm(point - x) == pytest.approx((1 + EXCESS) * flip.distance, rel=1e-5)
    first, second = np.sort(net.logits(point))[::-1][:2]
    assert first - second < 1e-9
    assert fo.proofs.strong_minimum(net, x, point, samples=500).refuted
