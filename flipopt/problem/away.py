"""Keeping a solve away from points that are known already (appendix E.2 of Yousefzadeh and O'Leary 2020)."""

from __future__ import annotations

import numpy as np

from flipopt.common.checks import Array
from flipopt.problem import NonlinearConstraint


def outside_balls(centres: Array, radius: float) -> NonlinearConstraint:
    """|x_hat - p|^2 >= radius^2 for every row p of ``centres``."""

    def function(x: Array) -> Array:
        return np.asarray(((x - centres) ** 2).sum(axis=1))

    def jacobian(x: Array) -> Array:
        return np.asarray(2 * (x - centres))

    def hessian_product(x: Array, v: Array, d: Array) -> Array:
        return np.asarray(2 * v.sum() * d)

    lower = np.full(len(centres), radius**2)
    return NonlinearConstraint(function, jacobian, lower, np.full(len(centres), np.inf), hessian_product)
