"""Hit-and-run (Smith, Operations Research 32, 1984) in a polytope, along fixed directions in turn."""

from __future__ import annotations

import math

import numpy as np

from flipopt.common.checks import Array
from flipopt.kernels.compiled import OPTIONS, compiled

SMALLEST = 1e-300
"""What rounding may not take a slack below."""
NUMBERS = OPTIONS | {"fastmath": {"contract", "reassoc", "nnan", "nsz"}}
"""Without NaN, so that least and largest ratios vectorise."""


def sweeps(
    directions: Array,
    slopes: Array,
    slack: Array,
    offset: Array,
    centre: Array,
    radius: float,
    normal: bool,
    uniforms: Array,
) -> None:
    """Move the point centre + ``offset`` along every direction in turn, once for each of ``uniforms``; in place.

    Within { A z + b >= 0 } and the ball of ``radius`` (or infinity) around ``centre``, a step is uniform on the segment
    that is inside. With ``normal`` the density is that of N(0, I): a level below that of the point is drawn, and a
    place uniform where the density is above it (slice sampling; Neal, Annals of Statistics 31, 2003).

    Parameters
    ----------
    directions
        (m, d), of length 1.
    slopes
        directions A^T, (m, faces).
    slack
        A z + b, (faces,), > 0; kept up to date.
    uniforms
        Numbers in [0, 1), (sweeps, m, 2).
    """
    faces, d = len(slack), len(offset)
    for sweep in range(uniforms.shape[0]):
        for j in range(len(directions)):
            least, most = 0.0, 0.0
            for f in range(faces):
                ratio = slopes[j, f] / slack[f]
                least, most = min(least, ratio), max(most, ratio)
            low = -1.0 / most if most > 0.0 else -np.inf
            high = -1.0 / least if least < 0.0 else np.inf
            along, square, other = 0.0, 0.0, 0.0
            for e in range(d):
                along += directions[j, e] * offset[e]
                square += offset[e] * offset[e]
                other += directions[j, e] * centre[e]
            if radius < np.inf:  # |offset + t u|^2 <= radius^2
                reach = math.sqrt(max(along * along - square + radius * radius, 0.0))
                low, high = max(low, -along - reach), min(high, -along + reach)
            if normal:  # |z + t u|^2 <= |z|^2 - 2 log(level)
                along += other
                reach = math.sqrt(along * along - 2.0 * math.log(1.0 - uniforms[sweep, j, 0]))
                low, high = max(low, -along - reach), min(high, -along + reach)
            low, high = min(low, 0.0), max(high, 0.0)  # rounding may have left the point outside the ball
            step = low + (high - low) * uniforms[sweep, j, 1]
            for e in range(d):
                offset[e] += step * directions[j, e]
            for f in range(faces):
                slack[f] = max(slack[f] + step * slopes[j, f], SMALLEST)


sweeps = compiled(sweeps, NUMBERS)
