"""Whether the gradient that the KKT residual uses is that of the outputs: differences along directions of our own.

With F = v . o the combination of outputs whose gradient G balances that of the objective, F(x_hat + s) - F(x_hat) is
compared with G . s for two short steps s: along G itself, which a gradient of another length or direction does not
pass, and along a random direction, which one that lacks a part does not. Their length is a share of the flip's
distance, and so long that the rounding of F does not matter.

Where they differ, the reason may be curvature or a kink, so there are further looks: differences both ways, shorter and
longer ones, and, as the pieces that meet at a kink have gradients between which differences may lie anywhere, a few
points next to x_hat, at each of which the gradient of F there is compared. The best look counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.columns import Columns
from flipopt.problem.setting import Setting
from flipopt.verification.normals import Lengths
from flipopt.verification.tolerances import CONFIRMED, ROUNDING

STEP = 1e-5
"""Length of a step, relative to the distance."""
ABOVE_ROUNDING = 1e4
"""It is at least so many times the distance that rounding hides."""
OTHER_STEPS = (1.0, 1 / 32, 32.0)
"""Of further looks, relative to the first."""
ASIDE, SHORT = 1e-3, 1e-2
"""How far next to x_hat, relative to the distance, and the steps there, relative to the others."""
LOOKS_ASIDE = 4
"""Other points: a short step seldom meets a kink at one of them, and hardly ever at all."""


@dataclass(frozen=True, eq=False)
class Combination(Columns):
    """One combination v (points, n_classes) of the outputs at each of the points X (points, n_inputs).

    ``value`` (points,) and ``gradient`` (points, n_inputs) are what the network says; ``reach`` (points,) is the length
    that steps are relative to, and ``noise`` (points,) the rounding of the value.
    """

    X: Array
    v: Array
    value: Array
    gradient: Array
    reach: Array
    noise: Array

    @classmethod
    def of(cls, X: Array, v: Array, outputs: Array, gradient: Array, lengths: Lengths, noise: Array) -> Combination:
        rounding = ROUNDING * noise * np.abs(v).sum(axis=1)
        reach = np.where(lengths.reach > 0, lengths.reach, 1.0)
        return cls(X, v, (v * outputs).sum(axis=1), gradient, reach, rounding)


def slope_error(setting: Setting, at: Combination) -> Array:
    """How far the gradients are from differences of the values, relative to their length, (points,)."""
    error = _look(setting, at, 1.0, central=False)
    looks: list[Callable[[Combination], Array]] = [
        partial(_look, setting, share=share, central=True) for share in OTHER_STEPS
    ]
    if getattr(setting.network, "kinked", True):  # or not known
        looks += [partial(_look_aside, setting, k=k) for k in range(LOOKS_ASIDE)]
    sound = np.isfinite(at.v).all(axis=1) & np.isfinite(at.X).all(axis=1)
    for look in looks:
        left = np.flatnonzero(~(error <= CONFIRMED) & sound)
        if len(left) == 0:
            break
        error[left] = np.minimum(error[left], look(at.take(left)))
    return error


def _look(setting: Setting, at: Combination, share: float, central: bool) -> Array:
    """The error along the two directions, (points,)."""
    root, free = np.sqrt(setting.weights), ~setting.frozen
    sound = np.asarray(np.isfinite(at.gradient).all(axis=1))
    slope = np.where(free & sound[:, None], at.gradient / root, 0.0)
    steepness = np.linalg.norm(slope, axis=1)
    some = np.where(steepness > 0, steepness, 1.0)
    h = share * (STEP * at.reach + np.where(steepness > 0, ABOVE_ROUNDING * at.noise / some, 0.0))
    normal, random = h[:, None] * slope / (some[:, None] * root), h[:, None] * _random(free, 0) / root
    ahead, behind = _ends(setting, np.tile(at.X, (2, 1)), np.concatenate([normal, random]), central)
    G, v, noise = np.tile(at.gradient, (2, 1)), np.tile(at.v, (2, 1)), np.tile(at.noise, 2)
    up = (v * _outputs(setting, ahead)).sum(axis=1)
    down = (v * _outputs(setting, behind)).sum(axis=1) if central else np.tile(at.value, 2)
    long = np.concatenate([steepness * h, steepness * h / np.sqrt(free.sum())])  # what a step changes, more or less
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        off = np.maximum(np.abs(up - down - (G * (ahead - behind)).sum(axis=1)) - 2 * noise, 0.0)
        error = np.where(off == 0, 0.0, off / long)
    return np.where(sound, np.nan_to_num(error, nan=np.inf).reshape(2, -1).max(axis=0), np.inf)


def _look_aside(setting: Setting, at: Combination, k: int) -> Array:
    """The error at points next to those given."""
    step = ASIDE * at.reach[:, None] * _random(~setting.frozen, 1 + k) / np.sqrt(setting.weights)
    X = _ends(setting, at.X, step, central=False)[0]
    beside = replace(at, X=X, gradient=setting.network.vjp(X, at.v, setting.outputs))
    return _look(setting, beside, SHORT, central=True)


def _outputs(setting: Setting, X: Array) -> Array:
    """At X (points, n_inputs)."""
    return setting.network.logits(X) if setting.outputs == "logits" else setting.network.probabilities(X)


def _ends(setting: Setting, X: Array, step: Array, central: bool) -> tuple[Array, Array]:
    """X + step and X - step within the bounds; or, of one side only, the one on which there is more room, and X."""
    ahead, behind = X + step, X - step
    if setting.bounded:
        ahead, behind = setting.clip(ahead, X), setting.clip(behind, X)
    if central:
        return ahead, behind
    if setting.bounded:
        room = [np.linalg.norm(end - X, axis=1, keepdims=True) for end in (ahead, behind)]
        ahead = np.where(room[0] >= room[1], ahead, behind)
    return ahead, X


def _random(free: Array, seed: int) -> Array:
    """A unit vector (n_inputs,) in the free features, the same for every point: none depends on its batch."""
    z = free * np.random.default_rng(seed).standard_normal(len(free))
    return np.asarray(z / np.linalg.norm(z))
