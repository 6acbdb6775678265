"""Correlations between measures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from flipopt.common.checks import as_floats
from flipopt.common.errors import InputError


@dataclass(frozen=True)
class Correlation:
    """Pearson's coefficient ``r``; the probability ``p`` of one as large in size if there were none; of ``n`` pairs."""

    r: float
    p: float
    n: int

    def __str__(self) -> str:
        return f"r = {self.r:.4f} (p = {self.p:.3g}, n = {self.n})"


def pearson(x: ArrayLike, y: ArrayLike) -> Correlation:
    """Pearson's correlation of x and y, (n,) each; pairs with a NaN are left out.

    The p-value is two-sided, by Student's t with n - 2 degrees of freedom; it and r are NaN where n < 3 or where x or y
    does not vary.
    """
    a, b = (as_floats(values, name, finite=False).astype(np.float64) for values, name in ((x, "x"), (y, "y")))
    if a.ndim != 1 or a.shape != b.shape:
        raise InputError(f"x, y: expected two arrays of one length, found shapes {a.shape} and {b.shape}")
    known = np.isfinite(a) & np.isfinite(b)
    a, b = a[known], b[known]
    n = len(a)
    if n < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return Correlation(np.nan, np.nan, n)
    u, v = a - a.mean(), b - b.mean()
    r = float(np.clip((u / np.linalg.norm(u)) @ (v / np.linalg.norm(v)), -1, 1))
    with np.errstate(divide="ignore"):
        student = abs(r) * np.sqrt((n - 2) / np.float64((1 - r) * (1 + r)))
    return Correlation(r, float(2 * special.stdtr(n - 2, -student)), n)
