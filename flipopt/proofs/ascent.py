"""The best tau of a relaxation: the dual of a semidefinite one, ascended by affine scaling.

The minimum of the program is a concave function of tau with the derivatives z_k (z_k - h_k . z - g_k) at its minimiser.
The set of tau with H(tau) positive definite has the barrier -log det H(tau), whose Hessian is
2 (E E^T o F F^T + E F^T o F E^T) in the metric of H^-1, with rows e_k and f_k of E and F. A step of length below 1 in
it stays inside (I. I. Dikin 1967).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dposv

from flipopt.common.checks import Array
from flipopt.proofs.relaxation import Program, Quadratic

FIRST, LONGEST, GROWTH, SHORTEST = 0.9, 0.95, 1.3, 0.05
"""Lengths of steps: the first, the largest, the factor after one that gains, and what is too short."""
GAIN = 2e-3
"""Share of the value that a step gains, below which it is the last."""
INHERITED, HALVINGS = 10, 60
"""How often a tau that is not convex is halved: one that is given, and one from scratch."""
LARGEST = 1e4
"""Share of the first guess of tau to begin with, in units of 1 / |f|^2."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Of a program: ``value`` is a lower bound that is proved, infinite where there is no point; z is None then."""

    value: float
    of: Quadratic
    lam: Array
    z: Array | None


def ascended(
    program: Program, steps: int, enough: float, tau: Array | None, guess: tuple[Array, Array] | None = None
) -> Solution | None:
    """The best of some steps from ``tau``, or from one that is found here; a value that is ``enough`` ends it.

    None where no tau is found for which the program is convex, in numbers that are out of all proportion.
    """
    of = _definite(program, tau)
    if of is None:
        return None
    best = _solution(program, of, guess)
    length = FIRST
    for _ in range(steps if len(of.tau) else 0):
        if best.z is None or best.value >= enough:
            break
        slope = complementarity(program, best.z)
        step, size = _step(program, best.of, slope)
        if not size > 1e-14:
            break
        next_of = program.definite(best.of.tau + length / size * step)
        found = None if next_of is None else _solution(program, next_of, (program.rows, program.unit * best.lam))
        if found is not None and found.value > best.value:
            gain, best, length = found.value - best.value, found, min(LONGEST, GROWTH * length)
            if gain < GAIN * abs(best.value):
                break
        else:
            length /= 2
            if length < SHORTEST:
                break
    return best


def complementarity(program: Program, z: Array) -> Array:
    """z_k (z_k - h_k . z - g_k), (k,): 0 at points of the network."""
    return np.asarray(z[program.n :] * (program.f @ z - program.g))


def _solution(program: Program, of: Quadratic, guess: tuple[Array, Array] | None) -> Solution:
    if guess is not None:
        there = guess[1] > 0
        guess = guess[0][there], guess[1][there]
    lam, empty = program.solved(of, guess)
    if empty and program.proved_empty(lam):
        return Solution(np.inf, of, lam, None)
    if empty:
        lam = np.zeros_like(lam)
    return Solution(program.proved(of, lam), of, lam, program.minimiser(of, lam))


def _step(program: Program, of: Quadratic, slope: Array) -> tuple[Array, float]:
    """The steepest way up in the metric of the barrier, and its length in it."""
    inverse: Array = of.s[:, None] * of.solve(np.eye(program.size)) * of.s
    own, f = slice(program.n, None), program.f
    ee, ef = inverse[own, own], inverse[own] @ f.T
    metric = 2 * (ee * (f @ inverse @ f.T) + ef * ef.T)
    metric[np.diag_indices(len(metric))] *= 1 + 1e-9
    _, step, failed = dposv(metric, slope, lower=1)
    if failed:
        return slope, 0.0
    return np.asarray(step), float(np.sqrt(max(slope @ step, 0.0)))


def _definite(program: Program, tau: Array | None) -> Quadratic | None:
    """The objective for tau, or for less of it, later layers first, where it is not convex; or for one from scratch."""
    if tau is not None and (tau > 0).all():
        for _ in range(INHERITED):
            of = program.definite(tau)
            if of is not None:
                return of
            tau = tau * 0.5 ** (program.layer + 1)
    tau = _first_tau(program)
    for _ in range(HALVINGS):
        of = program.definite(tau)
        if of is not None:
            return of
        tau = tau * 0.5 ** (program.layer + 1)
    return None


def _first_tau(program: Program) -> Array:
    """Layer by layer: the largest share of 1 / |f|^2 at which H is definite, and half of that for the next."""
    if len(program.layer) == 0:
        return np.empty(0)
    first = program.layer == program.layer[0]
    u = program.high[first]
    h = program.h[first, : program.n] * u[:, None]
    full = 0.5 / np.maximum((program.f**2).sum(axis=1), 1e-300)
    full[first] = u**2 / np.maximum(np.linalg.eigvalsh(h @ h.T)[-1], 1e-300)
    tau = np.where(first, full, 1e-12 * full)
    share = LARGEST
    for layer in np.unique(program.layer)[1:]:
        own, later = program.layer == layer, program.layer > layer
        for _ in range(HALVINGS):
            share /= 4
            tau = np.where(own, full * share, np.where(later, full * share * 1e-9, tau))
            if program.definite(tau) is not None:
                break
        tau = np.where(own | later, tau / 2, tau)
        share *= 4
    return np.asarray(tau)
