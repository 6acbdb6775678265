from __future__ import annotations

import numpy as np
import pytest

from benchmarks.proofs_milp import nearest_by_cuts
from tests.proofs.cases import distance_by_pieces, network


@pytest.mark.parametrize("seed", [1, 5, 8])
def test_a_mixed_integer_program_agrees_with_the_enumeration_of_pieces(seed: int) -> None:
    net, x = network(seed, (2, 4, 3, 3)), np.random.default_rng(seed).standard_normal(2)
    true = distance_by_pieces(net, x)
    lower, _ = nearest_by_cuts(net, x, 1.5 * true, seconds=60.0)
    assert lower == pytest.approx(true, rel=1e-4)
    assert lower <= true * (1 + 1e-5)
