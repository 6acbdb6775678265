"""Tables of flips by hand: what analyses are given, with known answers."""

from __future__ import annotations

import numpy as np

import flipopt as fo


def table(row, classes, x, distance, status=None) -> fo.FlipTable:
    """A table of entries; the status is CONVERGED unless given."""
    entries = len(row)
    found = [fo.Status.CONVERGED] * entries if status is None else status
    return fo.FlipTable(
        row=np.asarray(row, dtype=np.int64),
        classes=np.asarray(classes, dtype=np.int64).reshape(entries, 2),
        x=np.asarray(x, dtype=np.float64),
        distance=np.asarray(distance, dtype=np.float64),
        status=np.array(found, dtype=object),
        **{name: np.zeros(entries) for name in ("kkt_residual", "boundary_gap", "elapsed")},
        **{name: np.ones(entries, dtype=np.int64) for name in ("evaluations", "starts", "agreeing")},
        message=np.array([""] * entries, dtype=object),
        settled=np.ones(entries, dtype=bool),
        lower_bound=np.full(entries, np.nan),
        solver=np.array(["by hand"] * entries, dtype=object),
    )


def plane(w: np.ndarray, X: np.ndarray, offset: float = 0.0) -> tuple[fo.DenseNetwork, fo.FlipTable]:
    """Two classes with y_0 - y_1 = w . x + offset, and the flips of X, which are projections on a plane."""
    net = fo.DenseNetwork([np.column_stack([w, np.zeros_like(w)])], [np.array([offset, 0.0])])
    lead = X @ w + offset
    i = (lead <= 0).astype(int)
    flips = table(
        np.arange(len(X)),
        np.column_stack([i, 1 - i]),
        X - lead[:, None] * w / (w @ w),
        np.abs(lead) / np.linalg.norm(w),
    )
    return net, flips
