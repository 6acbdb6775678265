from __future__ import annotations

import numpy as np

from benchmarks.tiny import Case, draw, reference
from tests.cases import linear


def test_the_reference_knows_the_distance_to_a_plane() -> None:
    for x in (np.array([1.0, 2.0]), np.array([0.5, 1.0, -0.2])):
        normal = np.arange(1.0, len(x) + 1)
        case = Case(linear(normal), x, -np.inf, np.inf)
        np.testing.assert_allclose(reference(case), abs(normal @ x) / np.linalg.norm(normal), rtol=1e-6)


def test_the_reference_stays_within_the_bounds() -> None:
    case = Case(linear(np.array([1.0, 1.0]), -1.0), np.array([1.0, 1.0]), 0.8, 2.0)
    assert reference(case) == np.inf
    corner = Case(linear(np.array([2.0, 1.0]), -1.0), np.array([1.0, 1.0]), 0.2, 2.0)
    np.testing.assert_allclose(reference(corner), np.hypot(0.8, 0.4), rtol=2e-3)  # on a bound, where rays bend


def test_a_case_is_drawn_again_the_same() -> None:
    a, b = draw(3), draw(3)
    np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_array_equal(a.network.weights[0], b.network.weights[0])
    assert a.bounds == (-2.0, 2.0)
