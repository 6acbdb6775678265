from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.proofs_oracle import least_distance
from flipopt.kernels.dual_active_set import INFEASIBLE, OPTIMAL, solve_dual
from tests.strategies import examples, seeds


def solved(G: np.ndarray, b: np.ndarray, working: list[int] | None = None) -> tuple[int, np.ndarray]:
    """Multipliers of min |z|^2 / 2 such that b + G^T z >= 0, for unit columns of G."""
    m = len(b)
    lam, active, size = np.zeros(m), np.zeros(m, dtype=np.int64), np.zeros(1, dtype=np.int64)
    if working:
        active[: len(working)], size[0], lam[working] = working, len(working), 1.0
    done = solve_dual(G.T @ G, b, 1e-12, 20 * m, lam, active, size, np.empty((m, m)), np.empty(m))
    return done, lam


def program(seed: int, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((n, m))
    return G / np.linalg.norm(G, axis=0), rng.standard_normal(m)


@given(seeds, st.integers(1, 6), st.integers(1, 12))
def test_the_solution_is_the_nearest_point_or_a_certificate_that_there_is_none(seed: int, n: int, m: int) -> None:
    G, b = program(seed, n, m)
    done, lam = solved(G, b)
    assert (lam >= 0).all()
    nearest = least_distance(G.T, -b)
    if done == INFEASIBLE:
        assert np.linalg.norm(G @ lam) <= 1e-6 * lam.sum()
        assert lam @ b < 0
        assert nearest == np.inf or nearest > 1e4
    else:
        assert done == OPTIMAL
        assert np.linalg.norm(G @ lam) == pytest.approx(nearest, rel=1e-6)


@examples(20)
@given(seeds, st.integers(0, 2**12))
def test_any_working_set_to_begin_with_leads_to_the_same_solution(seed: int, chosen: int) -> None:
    G, b = program(seed, 6, 8)
    working = [k for k in range(8) if chosen >> k & 1]
    done, lam = solved(G, b)
    again, other = solved(G, b, working)
    assert again == done
    if done == OPTIMAL:
        assert G @ other == pytest.approx(G @ lam, abs=1e-7)


def test_a_constraint_that_is_there_twice_does_no_harm() -> None:
    G, b = program(3, 4, 5)
    done, lam = solved(np.hstack([G, G]), np.append(b, b), [0, 5])
    alone = solved(G, b)[1]
    assert done == OPTIMAL
    assert np.hstack([G, G]) @ lam == pytest.approx(G @ alone, abs=1e-9)
