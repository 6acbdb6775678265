"""The multipliers of many small projections at once.

    minimise lam . K lam / 2 - q . lam   such that   lam_k >= 0, but for some that are free

K = A H A^T is the Gram matrix of a problem's few watched rows, so the systems have one to six unknowns: a compiled loop
over the problems with Lawson and Hanson's active-set method in each, where one call of LAPACK would cost more.
"""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array


def multipliers(K: Array, q: Array, use: Array, free: Array | None = None) -> Array:
    """lam (problems, rows) for K (problems, rows, rows), q and the mask ``use`` of rows (problems, rows).

    ``free`` (rows,) tells which of them may have either sign: by default the first.
    """
    from flipopt.kernels.projections_loop import nonnegative_multipliers

    lam, signless = np.zeros_like(q), np.arange(q.shape[1]) == 0 if free is None else free
    nonnegative_multipliers(*map(np.ascontiguousarray, (K, q, use)), signless, lam)
    return lam
