"""The closest flip of a ReLU network as a mixed-integer linear program: a binary for every neuron of unknown sign.

V. Tjeng, K. Xiao and R. Tedrake, Evaluating robustness of neural networks with mixed integer programming (ICLR 2019),
MIPVerify. HiGHS takes linear objectives only, so the 2-norm comes in as t >= g . d for unit vectors g, one more after
every solve (J. E. Kelley 1960). The ranges of the neurons are those of flipopt's own root node; the rest is the
solver's task.
"""

from __future__ import annotations

import time

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

import flipopt as fo
from flipopt.common.checks import Array
from flipopt.proofs.instance import Instance
from flipopt.proofs.ranges import Ranges, ranges_of
from flipopt.proofs.relaxation import Frame

CLOSE = 1e-6
MOST_CUTS = 1000


def nearest_by_cuts(net: fo.DenseNetwork, x: Array, far: float, seconds: float) -> tuple[float, float]:
    """A lower bound on the distance of the closest flip of x, which is at ``far`` at most, and the core seconds taken.

    The limit is on the clock, as HiGHS has it.
    """
    started, used, n = time.perf_counter(), time.process_time(), net.n_inputs
    x = x.astype(np.float64)
    instance = Instance.of(net.in_float64, x, int(net.predict(x)), np.ones(n), np.ones(n, dtype=bool))
    signs = tuple(np.zeros(width, dtype=np.int8) for width in instance.widths)
    ranges = ranges_of(instance, far, signs, instance.rounding(far))
    assert ranges is not None
    frame, end, least = Frame.of(instance, ranges, signs), started + seconds, 1.0
    some = [lead for lead in range(len(instance.others)) if ranges.leads[lead] <= 0]
    for done, lead in enumerate(some):
        share = (end - time.perf_counter()) / (len(some) - done)
        least = min(least, _of_class(instance, frame, ranges, lead, share))
    return far * least, time.process_time() - used


def _of_class(instance: Instance, frame: Frame, ranges: Ranges, lead: int, seconds: float) -> float:
    """A lower bound on |d| / radius, 1 at most. The variables are z, the binaries a, and t."""
    end, program = time.perf_counter() + max(seconds, 0.0), frame.with_lead(instance, lead)
    k, N = len(program.neurons), program.size
    low = np.concatenate([layer.low[layer.open] for layer in ranges.layers]) / program.high
    rows = np.hstack([program.A, np.zeros((len(program.b), k + 1))])
    E = np.eye(k)
    on = np.hstack([np.zeros((k, program.n)), E, -E, np.zeros((k, 1))])  # p <= high a
    off = np.hstack([program.f, np.diag(-low), np.zeros((k, 1))])  # p <= c - low (1 - a)
    A = np.vstack([rows, on, off])
    b = np.concatenate([program.b, np.zeros(k), program.g - low])
    limits = Bounds(np.concatenate([-np.ones(program.n), np.zeros(2 * k + 1)]), np.concatenate([np.ones(N + k), [1.0]]))
    whole = np.concatenate([np.zeros(N), np.ones(k), [0.0]])
    cost, least = np.append(np.zeros(N + k), 1.0), 0.0
    for _ in range(MOST_CUTS):
        left = end - time.perf_counter()
        if left <= 0:
            break
        found = milp(
            cost,
            integrality=whole,
            bounds=limits,
            constraints=LinearConstraint(A, -np.inf, b),
            options={"time_limit": left, "mip_rel_gap": CLOSE},
        )
        if found.status == 2:  # infeasible: no flip in the ball
            return 1.0
        if found.mip_dual_bound is not None:
            least = max(least, float(found.mip_dual_bound))
        if found.x is None:
            break
        d = found.x[: program.n]
        size = float(np.linalg.norm(d))
        if size <= least * (1 + CLOSE):
            break
        A = np.vstack([A, np.concatenate([d / size, np.zeros(2 * k), [-1.0]])])
        b = np.append(b, 0.0)
    return min(least, 1.0)
