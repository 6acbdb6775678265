"""The convex quadratic program of a node, and what its multipliers prove.

The variables are z = (d / radius, p / high), with a p for every neuron whose sign is open. For any tau

    minimise  |d / radius|^2 / 2 + sum_k tau_k z_k (z_k - h_k . z - g_k)
    over      p >= 0, p >= c, p <= chord(c), the signs of the node, and lead <= 0

where h_k . z + g_k is c_k / high_k, has at true points the objective of the closest flip, since there z_k = 0 or
z_k = c_k / high_k. It is a lower bound where H(tau) = diag(1, 0) + sum tau_k (e_k f_k^T + f_k e_k^T), with
f_k = e_k - h_k, is positive definite: the quadratic convex reformulation of A. Billionnet, S. Elloumi and M.-C. Plateau
(2009).

For any lam >= 0 the minimum over all z of the Lagrangian is a lower bound as well. This is what counts, whoever has
found tau and lam: :meth:`Program.proved` and :meth:`Program.proved_empty` are closed forms with their rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

from flipopt.common.checks import Array
from flipopt.proofs.box import UNDERFLOW, Walls
from flipopt.proofs.instance import UNIT, Instance
from flipopt.proofs.ranges import Ranges, Signs

DEFINITE = 1e-8
"""Least eigenvalue of H, its diagonal scaled to 1, of tau that is used; more than a Cholesky factor's rounding."""
TOLERANCE = 1e-10
"""Violation of a constraint, relative to its normal, that is none to the search for multipliers."""
STEPS = 10
"""Of that search, in units of the number of constraints."""
KINDS = 4
"""Of constraints: p >= 0, p >= c, p <= chord, and the sign of a node; the lead comes last."""


@dataclass(frozen=True, eq=False)
class Certificate:
    """What proves a lower bound on a node: multipliers.

    Attributes
    ----------
    radius
        Of the ball that the ranges are of.
    neurons, tau
        Numbers of neurons among all hidden ones, and their tau for the objective |d|^2 / 2 and p in its own units.
    rows, lam
        Numbers of constraints, KINDS times the neuron plus the kind (the lead has the number after all of these, and
        after it come the walls of a box, two for each input), and their multipliers, for d and p in their own units.
    empty
        Whether they prove that there is no point at all.
    """

    radius: float
    neurons: Array
    tau: Array
    rows: Array
    lam: Array
    empty: bool


@dataclass(frozen=True, eq=False)
class Program:
    """The program of a node for one class.

    Attributes
    ----------
    n
        Number of the variables d; those of p follow.
    neurons, high
        Number of each p among all hidden neurons, and its upper bound, (k,).
    layer
        Of each p, (k,).
    h, g
        c / high = h . z + g, (k, n + k) and (k,).
    error
        By how much c / high may be off, (k,).
    A, b, slack
        Constraints A z <= b, of unit rows; b may be too small by ``slack``. (m, n + k), (m,) and (m,).
    norms
        What the constraints were divided by, in units of d and p, (m,).
    rows
        Numbers of the constraints, as in a certificate, (m,).
    radius
        Of the ball.
    walls
        Which of the constraints are those of a box, in the span only as far as they are in A.
    """

    n: int
    neurons: Array
    high: Array
    layer: Array
    h: Array
    g: Array
    error: Array
    A: Array
    b: Array
    slack: Array
    norms: Array
    rows: Array
    radius: float
    walls: Walls | None = None

    @classmethod
    def of(cls, instance: Instance, ranges: Ranges, signs: Signs, lead: int) -> Program:
        """For the lead of the given number."""
        return Frame.of(instance, ranges, signs).with_lead(instance, lead)

    @property
    def size(self) -> int:
        """Of z."""
        return self.n + len(self.neurons)

    @cached_property
    def unit(self) -> Array:
        """What multipliers are multiplied with to be those of |d|^2 / 2 with d and p in their own units, (m,)."""
        return self.radius**2 / self.norms

    @property
    def tau_unit(self) -> Array:
        """The same of tau, (k,)."""
        return (self.radius / self.high) ** 2

    @cached_property
    def f(self) -> Array:
        """z_k - h_k . z, (k, n + k)."""
        f = -self.h
        f[np.arange(len(f)), self.n + np.arange(len(f))] += 1
        return f

    def hessian(self, tau: Array) -> Array:
        """H(tau), (n + k, n + k)."""
        H = np.zeros((self.size, self.size))
        H[np.arange(self.n), np.arange(self.n)] = 1
        bend = tau[:, None] * self.f
        H[self.n :] += bend
        H[:, self.n :] += bend.T
        return H

    def definite(self, tau: Array) -> Quadratic | None:
        """The objective for tau, or None if it is not proved to be convex."""
        H = self.hessian(tau)
        diagonal = H.diagonal()
        if not (diagonal > 0).all():
            return None
        s = 1 / np.sqrt(diagonal)
        scaled = H * s[:, None] * s
        factor, failed = dpotrf(scaled - DEFINITE * np.eye(self.size), lower=1, clean=0)
        if failed:
            return None
        q = np.zeros(self.size)
        q[self.n :] = -tau * self.g * s[self.n :]
        return Quadratic(tau, s, scaled, factor, q)

    def solved(self, of: Quadratic, guess: tuple[Array, Array] | None = None) -> tuple[Array, bool]:
        """Multipliers (m,) of about the minimum, and whether they are a direction that says there is no point.

        ``guess`` are numbers of constraints that may be active, and their multipliers as in a certificate.
        """
        from flipopt.kernels.dual_active_set import INFEASIBLE, solve_dual

        A = self.A * of.s
        G, _ = dtrtrs(of.factor, A.T, lower=1)
        M = G.T @ G
        if self.walls is not None:
            M[self.walls.rows, self.walls.rows] += self.walls.products
        norms = np.sqrt(M.diagonal())
        norms[norms == 0] = 1
        M /= norms[:, None] * norms
        b = (self.b - A @ of.minimiser(np.zeros(self.size))) / norms
        m = len(b)
        np.fill_diagonal(M, 1.0)
        lam, working, size = np.zeros(m), np.zeros(m, dtype=np.int64), np.zeros(1, dtype=np.int64)
        if guess is not None:
            _, mine, theirs = np.intersect1d(self.rows, guess[0], return_indices=True)
            lam[mine] = guess[1][theirs] / self.unit[mine] * norms[mine]
            working[: len(mine)], size[0] = mine, len(mine)
        done = solve_dual(M, b, TOLERANCE, STEPS * m, lam, working, size, np.empty((m, m)), np.empty(m))
        return np.maximum(lam, 0.0) / norms, bool(done == INFEASIBLE)

    def minimiser(self, of: Quadratic, lam: Array) -> Array:
        """z (n + k,) of the Lagrangian."""
        return np.asarray(of.s * of.minimiser(of.s * (self.A.T @ lam)))

    def change(self, z: Array, lam: Array) -> Array:
        """d of the instance, (n,), for the z (n + k,) of multipliers."""
        if self.walls is None:
            return self.radius * z[: self.n]
        rest, _ = self.walls.box.orthogonal(self.walls.pressure(lam))
        return np.asarray(self.radius * (self.walls.box.Q @ z[: self.n] - rest))

    def normals(self, some: Array) -> Array:
        """Of some constraints of a program without p, for changes in units of the radius, (some, n) as in
        :meth:`change`."""
        if self.walls is None:
            return np.asarray(self.A[some])
        normals = self.A @ self.walls.box.Q.T
        normals[self.walls.rows] = self.walls.signs[:, None] * np.eye(len(self.walls.box.Q))[self.walls.places]
        return np.asarray(normals[some])

    def _pressed(self, lam: Array) -> float:
        """An upper bound on the norm of what the walls do to changes orthogonal to the span."""
        return 0.0 if self.walls is None else self.walls.box.orthogonal(self.walls.pressure(lam))[1]

    def proved(self, of: Quadratic, lam: Array) -> float:
        """A lower bound on the minimum of |d / radius|^2 / 2, whatever tau and lam >= 0 are.

        With phi(z) = z . H z / 2 + g . z and the least eigenvalue mu of H, min phi >= phi(z) - |H z + g|^2 / (2 mu) at
        every z; the factor of H - DEFINITE I proves that mu is at least half of DEFINITE (S. M. Rump, Verification of
        positive definiteness, BIT 46 (2006), 433-452).
        """
        A = self.A * of.s
        step = A.T @ lam
        g, terms = of.q + step, np.abs(of.q) + np.abs(A).T @ lam
        z = of.minimiser(step)
        z -= of.solve(of.H @ z + g)  # the factor is that of another matrix
        bent = of.H @ z
        sizes, rounding = np.abs(of.H) @ np.abs(z), (self.size + len(self.b) + 16) * UNIT
        rest = np.linalg.norm(bent + g) + rounding * np.linalg.norm(sizes + terms)
        value = z @ bent / 2 + g @ z - lam @ self.b - self._pressed(lam) ** 2 / 2 * (1 + 4 * UNIT)
        doubt = np.abs(z) @ (sizes + terms) + lam @ np.abs(self.b)
        off = lam @ self.slack + of.tau @ self.error
        return float(value - rest * rest / DEFINITE - off * (1 + rounding) - rounding * doubt)

    def proved_empty(self, lam: Array) -> bool:
        """Whether lam >= 0 prove that no point satisfies the constraints: a certificate of Farkas.

        lam . (A z - b) <= 0 at such points, where |d / radius| <= 1 and 0 <= p <= high.
        """
        a, rounding = self.A.T @ lam, (self.size + len(self.b) + 16) * UNIT
        steepest = np.hypot(np.linalg.norm(a[: self.n]), self._pressed(lam)) * (1 + 4 * UNIT)
        least = -steepest + np.minimum(a[self.n :], 0).sum() - lam @ self.b
        doubt = np.abs(self.A).T @ lam
        return bool(least - lam @ self.slack - rounding * (doubt.sum() + lam @ np.abs(self.b)) > UNDERFLOW)


@dataclass(frozen=True, eq=False)
class Quadratic:
    """A convex objective in the variables z / s, by which H has a diagonal of 1.

    ``factor`` is the Cholesky factor of H less DEFINITE times the identity, a lower bound of the objective.
    """

    tau: Array
    s: Array
    H: Array
    factor: Array
    q: Array

    def minimiser(self, step: Array) -> Array:
        """Of the objective plus ``step`` . z."""
        return -self.solve(self.q + step)

    def solve(self, right: Array) -> Array:
        x, _ = dpotrs(self.factor, right, lower=1)
        return np.asarray(x)


@dataclass(frozen=True, eq=False)
class Frame:
    """All of a program but its lead, which the classes have in common; ``leads`` and ``lead0`` are maps of z."""

    program: Program
    leads: Array
    lead0: Array
    rounding: Array

    @classmethod
    def of(cls, instance: Instance, ranges: Ranges, signs: Signs) -> Frame:
        """The maps from z to every c, layer after layer."""
        n, r = len(instance.span), ranges.radius
        opened = [np.flatnonzero(layer.open) for layer in ranges.layers]
        N, begin, number = n + sum(map(len, opened)), n, 0
        C, c0 = np.zeros((len(instance.c0), N)), instance.c0
        C[:, :n] = r * instance.span.T
        h, g, error, high, neurons, layers = [], [], [], [], [], []
        A, b, slack, rows = [], [], [], []
        for k, layer in enumerate(ranges.layers):
            own, u, low = opened[k], layer.high[opened[k]], layer.low[opened[k]]
            off, slope = ranges.rounding[k][own], u / (u - low)
            P, p0 = np.where(layer.active[:, None], C, 0.0), np.where(layer.active, c0, 0.0)
            E = np.zeros((len(own), N))
            E[np.arange(len(own)), begin + np.arange(len(own))] = u
            P[own] = E
            A += [-E, C[own] - E, E - slope[:, None] * C[own]]
            b += [np.zeros(len(own)), -c0[own], slope * (c0[own] - low)]
            slack += [np.zeros(len(own)), off, slope * off + 8 * UNIT * slope * (np.abs(c0[own]) - low)]
            rows += [KINDS * (number + own) + kind for kind in range(3)]
            for sign in (1, -1):
                held = np.flatnonzero(signs[k] == sign)
                A.append(-sign * C[held])
                b.append(sign * c0[held])
                slack.append(ranges.rounding[k][held])
                rows.append(KINDS * (number + held) + 3)
            h.append(C[own] / u[:, None])
            g.append(c0[own] / u)
            error.append(off / u * (1 + 8 * UNIT) + 8 * UNIT * (np.abs(g[-1]) + np.abs(h[-1]).sum(axis=1) + 1))
            high.append(u)
            neurons.append(number + own)
            layers.append(np.full(len(own), k))
            left, right, W = instance.left[k], instance.right[k], instance.weights[k].T
            C = W @ (left[:, None] * C + (right - left)[:, None] * P)
            c0 = W @ (left * c0 + (right - left) * p0) + instance.biases[k]
            begin, number = begin + len(own), number + len(left)

        lead, walls = KINDS * number, None
        if instance.box is not None:
            walls = Walls.within(instance.box, r, sum(map(len, A)))
            A.append(np.concatenate([walls.normals, np.zeros((len(walls), N - n))], axis=1))
            b.append(walls.right)
            slack.append(np.full(len(walls), instance.box.excess * r))
            rows.append(lead + 1 + walls.numbers)

        def joined(parts: list[Array], empty: Array) -> Array:
            return np.concatenate([empty, *parts])

        none, whole = np.empty(0), np.empty(0, dtype=np.int64)
        program = Program(
            n,
            joined(neurons, whole),
            joined(high, none),
            joined(layers, whole),
            joined(h, np.empty((0, N))),
            joined(g, none),
            joined(error, none),
            joined(A, np.empty((0, N))),
            joined(b, none),
            joined(slack, none),
            none,
            joined([*rows, np.array([lead])], whole),
            r,
            walls,
        )
        return cls(program, C, c0, ranges.rounding[-1])

    def with_lead(self, instance: Instance, lead: int) -> Program:
        """The program of the class whose lead has this number."""
        of = self.program
        A = np.concatenate([of.A, self.leads[[lead]]])
        b = np.append(of.b, -self.lead0[lead])
        slack = np.append(of.slack, self.rounding[lead])
        norms = np.linalg.norm(A, axis=1)
        if of.walls is not None:
            norms[of.walls.rows] = of.radius
        norms[norms == 0] = 1
        A, b, slack = A / norms[:, None], b / norms, slack / norms
        slack += 8 * UNIT * (np.abs(b) + np.abs(A).sum(axis=1))
        return replace(of, A=A, b=b, slack=slack, norms=norms)
