"""The closest flip of a ReLU network as a mixed-integer program, by SCIP: a binary for every neuron of unknown sign.

V. Tjeng, K. Xiao and R. Tedrake, Evaluating robustness of neural networks with mixed integer programming (ICLR 2019),
MIPVerify: p <= high a and p <= c - low (1 - a). The 2-norm is a second-order cone, |d| <= t, and t is minimised. SCIP
is given what flipopt's own search begins with: a flip, the ranges of the neurons in its ball, and the coordinates d of
the span of the first layer in place of all inputs.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import flipopt as fo
from flipopt.common.checks import Array, optional_package
from flipopt.proofs.instance import Instance
from flipopt.proofs.ranges import Ranges, ranges_of
from flipopt.proofs.relaxation import Frame, Program

FIRST = 2.0
"""Core seconds of every class in the first round; twice as many in each that follows."""
SETTINGS = {
    "timing/clocktype": 1,  # core seconds
    "numerics/feastol": 1e-9,
    "numerics/dualfeastol": 1e-9,
    "limits/gap": 1e-8,
    "randomization/randomseedshift": 0,
}


@dataclass(frozen=True)
class Nearest:
    """What SCIP says of the distance, in core seconds; ``upper`` is that of what is known if it finds nothing nearer.

    ``binaries`` are those of one class.
    """

    lower: float
    upper: float
    seconds: float
    nodes: int
    binaries: int


def nearest(net: fo.DenseNetwork, x: Array, far: float, seconds: float, close: float | None = None) -> Nearest:
    """Bounds on the distance of the closest flip of x (n_inputs,), which is at ``far`` at most.

    With ``close`` a flip at ``far`` is taken as known, and those nearer by no more than that share do not count. The
    classes take turns, as some may be settled at once.
    """
    started, n = time.process_time(), net.n_inputs
    x = x.astype(np.float64)
    instance = Instance.of(net.in_float64, x, int(net.predict(x)), np.ones(n), np.ones(n, dtype=bool))
    signs = tuple(np.zeros(width, dtype=np.int8) for width in instance.widths)
    ranges = ranges_of(instance, far, signs, instance.rounding(far))
    assert ranges is not None
    frame, most = Frame.of(instance, ranges, signs), 1.0 if close is None else 1.0 - close
    some = np.flatnonzero(ranges.leads <= 0)
    classes = [_Class(frame.with_lead(instance, int(lead)), _lows(ranges), most) for lead in some]
    waiting, turn = list(classes), FIRST
    while waiting and time.process_time() - started < seconds:
        for one in waiting:
            one.go_on(min(turn, one.seconds + seconds - (time.process_time() - started)))
        waiting, turn = [one for one in waiting if not one.done], 2 * turn
    lower, upper = min([most, *(one.lower for one in classes)]), min([1.0, *(one.upper for one in classes)])
    nodes = sum(one.model.getNTotalNodes() for one in classes)
    used = time.process_time() - started
    return Nearest(float(far * lower), float(far * upper), used, nodes, len(frame.program.neurons))


def _lows(ranges: Ranges) -> Array:
    return np.concatenate([layer.low[layer.open] for layer in ranges.layers])


class _Class:
    """The program of a class, in units of the ball, and how far SCIP is with it.

    Its bounds are ``most`` and 1 where no flip of the class is nearer than ``most``.
    """

    def __init__(self, program: Program, low: Array, most: float) -> None:
        self.model = model_of(program, low / program.high)
        if most < 1:
            self.model.setObjlimit(most)
        self.most, self.lower, self.upper, self.seconds, self.done = most, 0.0, 1.0, 0.0, False

    def go_on(self, seconds: float) -> None:
        """Up to so many core seconds in all."""
        if seconds <= self.seconds:
            return
        self.model.setParam("limits/time", seconds)
        self.model.optimize()
        self.seconds = self.model.getSolvingTime()
        status = self.model.getStatus()
        self.done = status != "timelimit"
        if self.model.getNSols():
            self.upper = min(1.0, self.model.getPrimalbound())
        if status == "infeasible":
            self.lower = self.most
        elif status in ("optimal", "gaplimit", "timelimit"):
            self.lower = min(self.most, self.upper, max(0.0, self.model.getDualbound()))


def model_of(program: Program, low: Array) -> Any:
    """SCIP's model of a class; ``low`` (k,) are the least c / high of the open neurons.

    The variables are z = (d / radius, p / high), the binaries a, and t.
    """
    scip = optional_package("pyscipopt", "bench", "the mixed-integer solver beside the proofs")
    model, k = scip.Model(), len(program.neurons)
    model.hideOutput()
    model.setParams(SETTINGS)
    d = [model.addVar(lb=-1.0, ub=1.0) for _ in range(program.n)]
    p = [model.addVar(lb=0.0, ub=1.0) for _ in range(k)]
    a = [model.addVar(vtype="B") for _ in range(k)]
    t = model.addVar(lb=0.0, ub=1.0)

    def times(row: Array) -> Any:
        return scip.quicksum(float(value) * z for value, z in zip(row, [*d, *p], strict=True) if value)

    for row, right in zip(program.A, program.b, strict=True):  # the triangles, and lead <= 0
        model.addCons(times(row) <= float(right))
    for j in range(k):
        model.addCons(p[j] <= a[j])
        model.addCons(times(program.f[j]) - float(low[j]) * a[j] <= float(program.g[j] - low[j]))
    model.addCons(scip.quicksum(part * part for part in d) <= t * t)
    model.setObjective(t)
    return model
