"""The limited memory, against the update of a dense matrix."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flipopt.solvers.batch.limited_memory import LEAST_CURVATURE, Memory
from tests.strategies import seeds

N = 4


def damped(s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Powell's y with s . y >= 0.1 s . s, for the base matrix I."""
    ss, sy = s @ s, s @ y
    if sy >= LEAST_CURVATURE * ss:
        return y
    share = (1 - LEAST_CURVATURE) * ss / (ss - sy)
    return np.asarray(share * y + (1 - share) * s)


def updated(H: np.ndarray, s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The BFGS update of the inverse."""
    rho = 1 / (s @ y)
    left = np.eye(N) - rho * np.outer(s, y)
    return np.asarray(left @ H @ left.T + rho * np.outer(s, s))


def matrices(memory: Memory, problems: int) -> np.ndarray:
    return memory.inverse(np.broadcast_to(np.eye(N), (problems, N, N)), np.ones((problems, N), dtype=bool))


@given(seeds, st.integers(0, 7), st.integers(1, 4))
def test_the_recursion_is_the_dense_update_with_the_last_pairs(seed: int, learnt: int, pairs: int) -> None:
    rng = np.random.default_rng(seed)
    memory, history = Memory(3, N, pairs), [[] for _ in range(3)]  # type: ignore[var-annotated]
    for _ in range(learnt):
        s, y = rng.standard_normal((2, 3, N))
        rows = rng.random(3) < 0.7
        memory.learn(rows, s, y)
        for k in np.flatnonzero(rows):
            history[k].append((s[k], damped(s[k], y[k])))
    found = matrices(memory, 3)
    for k in range(3):
        H = np.eye(N)
        for s_k, y_k in history[k][-pairs:]:
            H = updated(H, s_k, y_k)
        # Both are exact but for rounding, which pairs of little curvature enlarge; H may be 1e3 or so.
        np.testing.assert_allclose(found[k], H, atol=1e-9 * max(1.0, np.abs(H).max()))
        assert np.linalg.eigvalsh(found[k])[0] > 0


@given(seeds)
def test_the_newest_pair_is_a_secant(seed: int) -> None:
    rng = np.random.default_rng(seed)
    memory = Memory(1, N, 5)
    for _ in range(3):
        s = rng.standard_normal((1, N))
        noise = rng.standard_normal((1, N))
        # s . y = s . s: enough curvature not to be damped.
        y = s + noise - s * (noise * s).sum() / (s * s).sum()
        memory.learn(np.ones(1, dtype=bool), s, y)
    np.testing.assert_allclose(memory.inverse(y[:, None], np.ones((1, 1), dtype=bool))[:, 0], s, atol=1e-9)


def test_negative_curvature_is_damped_and_nothing_is_learnt_from_no_step() -> None:
    memory = Memory(2, N, 3)
    s = np.array([[1.0, 0, 0, 0], [0, 0, 0, 0]])
    memory.learn(np.ones(2, dtype=bool), s, -5 * s)
    H = matrices(memory, 2)
    # Damping sets s . y to 0.1 s . s, so H is 10 along s and the identity elsewhere.
    np.testing.assert_allclose(H[0], np.diag([1 / LEAST_CURVATURE, 1, 1, 1]), rtol=1e-12)
    np.testing.assert_array_equal(H[1], np.eye(N))


def test_problems_that_leave_take_their_pairs_along() -> None:
    rng = np.random.default_rng(0)
    memory = Memory(3, N, 2)
    memory.learn(np.ones(3, dtype=bool), *rng.standard_normal((2, 3, N)))
    before = matrices(memory, 3)
    memory.keep(np.array([0, 2]))
    np.testing.assert_array_equal(matrices(memory, 2), before[[0, 2]])


def test_what_is_not_wanted_is_left_alone() -> None:
    rng = np.random.default_rng(1)
    memory, V = Memory(2, N, 2), rng.standard_normal((2, 3, N))
    memory.learn(np.ones(2, dtype=bool), *rng.standard_normal((2, 2, N)))
    wanted = np.array([[True, False, True], [False, True, False]])
    found, before = memory.inverse(V, wanted), V.copy()
    np.testing.assert_array_equal(V, before)
    np.testing.assert_array_equal(found[~wanted], V[~wanted])
    np.testing.assert_array_equal(found[wanted], memory.inverse(V, np.ones_like(wanted))[wanted])
    assert not np.isclose(found[wanted], V[wanted]).all(axis=1).any()
