"""The limited memory of many problems, against the update of a dense matrix."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flipopt.kernels.limited_memory import gradient_changes, inverse, learn
from tests.strategies import seeds

N, LEAST = 4, 0.1


class Pairs:
    """The arrays of a memory for ``problems``."""

    def __init__(self, problems: int, pairs: int) -> None:
        self.arrays = (np.empty((problems, pairs, N)), np.empty((problems, pairs, N)), np.empty((problems, pairs)))
        self.learnt, self.place = np.zeros(problems, dtype=np.int64), np.arange(problems)

    def learn(self, rows: np.ndarray, s: np.ndarray, y: np.ndarray) -> None:
        learn(*self.arrays, self.learnt, self.place, rows, s, y, LEAST)

    def inverse(self, A: np.ndarray, use: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """H A^T, NaN where it is not asked for, and H r."""
        HA, Hr = np.full(A.shape, np.nan), np.empty_like(r)
        inverse(*self.arrays, self.learnt, self.place, A, use, r, HA, Hr)
        return HA, Hr

    def matrices(self) -> np.ndarray:
        count = len(self.place)
        unit = np.broadcast_to(np.eye(N), (count, N, N)).copy()
        return self.inverse(unit, np.ones((count, N), dtype=bool), np.zeros((count, N)))[0]


def damped(s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Powell's y with s . y >= 0.1 s . s, for the base matrix I."""
    ss, sy = s @ s, s @ y
    if sy >= LEAST * ss:
        return y
    share = (1 - LEAST) * ss / (ss - sy)
    return np.asarray(share * y + (1 - share) * s)


def updated(H: np.ndarray, s: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The BFGS update of the inverse."""
    rho = 1 / (s @ y)
    left = np.eye(N) - rho * np.outer(s, y)
    return np.asarray(left @ H @ left.T + rho * np.outer(s, s))


@given(seeds, st.integers(0, 7), st.integers(1, 4))
def test_the_recursion_is_the_dense_update_with_the_last_pairs(seed: int, learnt: int, pairs: int) -> None:
    rng = np.random.default_rng(seed)
    memory, history = Pairs(3, pairs), [[] for _ in range(3)]  # type: ignore[var-annotated]
    for _ in range(learnt):
        s, y = rng.standard_normal((2, 3, N))
        rows = rng.random(3) < 0.7
        memory.learn(rows, s, y)
        for k in np.flatnonzero(rows):
            history[k].append((s[k], damped(s[k], y[k])))
    found = memory.matrices()
    r = rng.standard_normal((3, N))
    _, Hr = memory.inverse(np.zeros((3, 1, N)), np.zeros((3, 1), dtype=bool), r)
    for k in range(3):
        H, size = np.eye(N), 1.0
        for s_k, y_k in history[k][-pairs:]:
            H = updated(H, s_k, y_k)
            size = max(size, np.abs(H).max())
        # Both are exact but for rounding, relative to the largest matrix on the way, which may be 1e3 or so.
        np.testing.assert_allclose(found[k], H, atol=1e-10 * size)
        np.testing.assert_allclose(Hr[k], H @ r[k], atol=1e-9 * size)


@given(seeds)
def test_the_matrix_stays_positive_definite(seed: int) -> None:
    rng = np.random.default_rng(seed)
    memory = Pairs(5, 3)
    for _ in range(4):
        memory.learn(np.ones(5, dtype=bool), *rng.standard_normal((2, 5, N)))
    H = memory.matrices()
    assert (np.linalg.eigvalsh((H + H.transpose(0, 2, 1)) / 2)[:, 0] > 0).all()


@given(seeds)
def test_the_newest_pair_is_a_secant(seed: int) -> None:
    rng = np.random.default_rng(seed)
    memory = Pairs(1, 5)
    for _ in range(3):
        s = rng.standard_normal((1, N))
        noise = rng.standard_normal((1, N))
        # s . y = s . s: enough curvature not to be damped.
        y = s + noise - s * (noise * s).sum() / (s * s).sum()
        memory.learn(np.ones(1, dtype=bool), s, y)
    size = max(1.0, np.abs(memory.matrices()).max())
    np.testing.assert_allclose(memory.inverse(y[:, None], np.ones((1, 1), dtype=bool), y)[1], s, atol=1e-11 * size)


def test_negative_curvature_is_damped_and_nothing_is_learnt_from_no_step() -> None:
    memory = Pairs(2, 3)
    s = np.array([[1.0, 0, 0, 0], [0, 0, 0, 0]])
    memory.learn(np.ones(2, dtype=bool), s, -5 * s)
    H = memory.matrices()
    # Damping sets s . y to 0.1 s . s, so H is 10 along s and the identity elsewhere.
    np.testing.assert_allclose(H[0], np.diag([1 / LEAST, 1, 1, 1]), rtol=1e-12)
    np.testing.assert_array_equal(H[1], np.eye(N))
    memory.learn(np.ones(2, dtype=bool), np.ones((2, N)), np.full((2, N), np.nan))
    np.testing.assert_array_equal(memory.learnt, [1, 0])


def test_problems_are_found_by_their_places() -> None:
    rng = np.random.default_rng(0)
    memory = Pairs(3, 2)
    memory.learn(np.ones(3, dtype=bool), *rng.standard_normal((2, 3, N)))
    before = memory.matrices()
    memory.place = np.array([2, 0])
    np.testing.assert_array_equal(memory.matrices(), before[[2, 0]])


def test_only_the_rows_in_use_are_written_and_the_given_ones_stay() -> None:
    rng = np.random.default_rng(1)
    memory, V = Pairs(2, 2), rng.standard_normal((2, 3, N))
    memory.learn(np.ones(2, dtype=bool), *rng.standard_normal((2, 2, N)))
    use, before = np.array([[True, False, True], [False, True, False]]), V.copy()
    found, _ = memory.inverse(V, use, V[:, 0])
    np.testing.assert_array_equal(V, before)
    assert np.isnan(found[~use]).all()
    np.testing.assert_array_equal(found[use], memory.inverse(V, np.ones_like(use), V[:, 0])[0][use])


@given(seeds)
def test_gradient_changes_match_rows_by_their_classes(seed: int) -> None:
    """lam_k (grad after - grad before) of class k, wherever its slot is; without one after, - lam_k grad before."""
    rng = np.random.default_rng(seed)
    problems, slots, classes = 3, 3, 5
    row, row_after = (np.array([rng.permutation(classes)[:slots] for _ in range(problems)]) for _ in range(2))
    use, use_after = rng.random((2, problems, slots)) < 0.7
    A, A_after = rng.standard_normal((2, problems, slots, N))
    lam = rng.standard_normal((problems, slots)) * (rng.random((problems, slots)) < 0.8)
    change = np.empty((problems, N))
    gradient_changes(lam, row, use, A, row_after, use_after, A_after, change)
    for b in range(problems):
        before = {k: A[b, slot] for slot, k in enumerate(row[b]) if use[b, slot]}
        after = {k: A_after[b, slot] for slot, k in enumerate(row_after[b]) if use_after[b, slot]}
        weight = dict(zip(row[b], lam[b]))
        expected = sum((weight[k] * (after.get(k, 0.0) - before[k]) for k in before), np.zeros(N))
        np.testing.assert_allclose(change[b], expected, atol=1e-14)
