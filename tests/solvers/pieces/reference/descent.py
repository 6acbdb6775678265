"""Descent over the linear pieces of a ReLU network: exact, and finite.

Where the signs of all hidden neurons are fixed, the network is affine and the flip problem a strictly convex quadratic
program: the point closest to x in a polyhedron, whose walls c_k(z) = 0 separate it from the next pieces. Its solution
is found exactly. Its multipliers tell which walls should be crossed (networks/linear_pieces.py); the solution stays
feasible in the piece behind such a wall, so the distance can only fall, and a piece is never met twice at different
distances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.networks import DenseNetwork
from flipopt.networks.linear_pieces import Piece, at_kinks
from flipopt.problem import LimitReached, Oracle
from tests.solvers.pieces.reference.least_distance import least_distance

PIECES = 500
"""Pieces after which the descent stops where it is."""
WALLS_AT_ONCE = 8
"""Walls added to a quadratic program before it is solved again; most walls are never met."""
ROUNDS = 100
"""Of adding walls, in one piece."""
ON_WALL = 1e-9
"""|c_k|, relative to its layer, of a neuron that may change sides."""
THROUGH_WALL = 1e-11
"""How far beyond a wall a solution may be, relative to the layer."""
DECREASE = 1e-12
"""Of the squared distance, relative, that counts as one."""
PROMISE = 1e-9
"""Slope of the squared distance behind a wall, relative to its gradient, for which the wall is crossed."""
GAP = 1e-12
"""Violation of the goal, relative as in the check, of a point on the boundary."""
NEWTON_STEPS = 20
"""To the boundary."""
APPROACHES = 6
"""Descents on the violation if Newton's method fails."""
ELASTIC = 0.1
"""In such a descent, a violation that a step of this length would mend counts as much as a distance of 1."""
FAR = 10.0
"""Points farther away than this many times the points' own size are not looked for."""

Neuron = tuple[int, int]
"""Hidden layer, counted from 0, and index."""


def descend(oracle: Oracle, start: Array) -> Array | None:
    """A local minimum over the pieces reached from ``start`` (n_inputs,), or None if no better point was found.

    The start may be off the boundary. The oracle counts what is used; at one of its limits the best point so far is
    returned.
    """
    search = _Search(oracle, oracle.problem.x)
    try:
        z = search.on_boundary(start)
        if z is not None:
            search.best = None if z is start else z
            search.descend(z)
    except LimitReached:
        pass
    return search.best


@dataclass(frozen=True, eq=False)
class _State:
    """The solution z of a piece.

    Per hidden layer: ``positive``, the sides of the piece, ``layers``, c at z, and ``mu``, the multipliers of c, all
    (n(k),). v (n_classes,) holds those of the goal: v . y is what they say of the logits.
    """

    piece: Piece
    positive: list[Array]
    z: Array
    layers: list[Array]
    v: Array
    mu: list[Array]
    walls: list[Neuron]
    objective: float

    def behind(self, wall: Neuron) -> list[Array]:
        """The sides of the piece behind a wall."""
        positive = [side.copy() for side in self.positive]
        positive[wall[0]][wall[1]] ^= True
        return positive


class _Search:
    """A descent towards ``center``; distances are those of u = sqrt(w) z, in which the weights are 1.

    With ``elastic`` > 0 the goal may be violated, by elastic t, and |t|^2 is added to the squared distance.
    """

    def __init__(self, oracle: Oracle, center: Array, elastic: float = 0.0) -> None:
        problem = oracle.problem
        assert isinstance(problem.network, DenseNetwork)
        self.oracle, self.problem, self.net = oracle, problem, problem.network
        goal, equations = problem.goal, problem.goal.equations
        at_lower = np.flatnonzero(np.isfinite(goal.lower))
        at_upper = np.flatnonzero(np.isfinite(goal.upper) & ~equations)
        # The goal as D y = bound in some rows and D y >= bound in the others.
        self.D = np.concatenate([goal.T[at_lower], -goal.T[at_upper]])
        self.bound = np.concatenate([goal.lower[at_lower], -goal.upper[at_upper]])
        self.equations = np.concatenate([equations[at_lower], np.zeros(len(at_upper), dtype=bool)])
        self.root = np.sqrt(problem.weights)
        self.slack = elastic * np.eye(len(self.D)) if elastic else np.empty((len(self.D), 0))
        t = np.zeros(self.slack.shape[1])
        self.origin = np.append(self.root * center, t)
        self.lower = np.append(self.root * np.where(problem.frozen, problem.x, problem.lower), t - np.inf)
        self.upper = np.append(self.root * np.where(problem.frozen, problem.x, problem.upper), t + np.inf)
        self.best: Array | None = None

    # The descent

    def descend(self, z: Array) -> _State | None:
        """The last piece of a descent from z, feasible; its solution is left in ``best``.

        Where many walls meet, the distance may stay the same from piece to piece; then every piece that multipliers
        point at is tried once, the most promising first.
        """
        last, state = None, self.solve([np.asarray(c >= 0) for c in self.forward(z)[:-1]], z, [], self.far(z))
        visited: set[bytes] = set()
        pending: list[tuple[_State, Neuron]] = []
        for _ in range(PIECES):
            if state is not None:
                visited.add(_key(state.positive))
                last, self.best = state, state.z
                crossings = self.crossings(state)
                if not crossings:
                    break  # a local minimum
                pending += [(state, wall) for wall in crossings]
            while pending and _key(pending[-1][0].behind(pending[-1][1])) in visited:
                pending.pop()
            if not pending:
                break
            before, wall = pending.pop()
            positive = before.behind(wall)
            visited.add(_key(positive))
            state = self.solve(positive, before.z, before.walls, before.objective)
            if state is not None and state.objective < before.objective * (1 - DECREASE):
                visited, pending = set(), []
        return last

    def crossings(self, state: _State) -> list[Neuron]:
        """The walls at z behind which the multipliers promise a decrease, the most promising last.

        With delta = s w + mu, as in networks/linear_pieces.py, the multiplier behind the wall is delta - s_behind w. It
        must push away from the wall there; ``excess`` is how much it pushes back.
        """
        found = []
        near = at_kinks(self.net, state.layers, ON_WALL)
        for k, w in enumerate(state.piece.sensitivities(state.v, state.mu)):
            left, right = self.net.one_sided_slopes[k]
            excess = np.where(state.positive[k], state.mu[k], -state.mu[k]) + (right - left) * w
            for j in np.flatnonzero(near[k] & (excess > 0)):
                steepness = float(np.linalg.norm(self.gradients(state.piece, [(k, int(j))])))
                found.append((float(excess[j]) * steepness, (k, int(j))))
        return [wall for promise, wall in sorted(found) if promise > PROMISE * np.sqrt(2 * state.objective)]

    # One piece

    def solve(self, positive: list[Array], z0: Array, walls: list[Neuron], cap: float) -> _State | None:
        """The solution in the piece with these sides, or None if there is none with an objective of at most ``cap``.

        z0 is a point to linearise at, ``walls`` are those to begin with; others are added when a solution is behind
        them.
        """
        sides = zip(positive, self.net.one_sided_slopes, strict=True)
        piece = Piece(self.net, tuple(np.where(side, right, left) for side, (left, right) in sides))
        at_z0, u0, n = self.forward(z0, piece), self.root * z0, len(z0)
        A, b = self.goal_rows(piece, at_z0[-1], u0)
        lam, C, new, walls = np.zeros(len(b)), np.empty((0, n)), walls, []
        for _ in range(ROUNDS):
            walls = walls + new
            C = np.concatenate([C, self.gradients(piece, new)])
            sign = np.array([1.0 if positive[k][j] else -1.0 for k, j in walls])
            at_wall = C @ u0 - np.array([at_z0[k][j] for k, j in walls])  # where C u is on the walls
            rows = np.block([[A, self.slack], [sign[:, None] * C, np.zeros((len(C), self.slack.shape[1]))]])
            equations = np.append(self.equations, np.zeros(len(C), dtype=bool))
            lam = np.append(lam, np.zeros(len(rows) - len(lam)))
            found = least_distance(
                self.origin, rows, np.append(b, sign * at_wall), equations, self.lower, self.upper, lam, cap
            )
            if found is None:
                return None
            u, lam = found
            z = self.problem.clip(u[:n] / self.root)
            layers = self.forward(z, piece)
            new = self.beyond(positive, layers, walls)
            if not new:
                break
        else:
            return None
        mu = [np.zeros(len(side)) for side in positive]
        for (k, j), multiplier in zip(walls, sign * lam[len(b) :], strict=True):
            mu[k][j] = multiplier
        active = [wall for wall, multiplier in zip(walls, lam[len(b) :], strict=True) if multiplier > 0]
        objective = float(np.sum((u - self.origin) ** 2)) / 2
        return _State(piece, positive, z, layers, lam[: len(b)] @ self.D, mu, active, objective)

    def goal_rows(self, piece: Piece, Y: Array, u0: Array) -> tuple[Array, Array]:
        """A and b of the goal A u = b or A u >= b in a piece, whose logits at u0 are Y."""
        self.oracle.evaluations.backward += len(self.D)
        A = piece.gradients(self.net.n_layers, self.D) / self.root
        return A, self.bound - self.D @ Y + A @ u0

    def gradients(self, piece: Piece, neurons: list[Neuron]) -> Array:
        """The gradients of neurons' c by u, (neurons, n_inputs)."""
        self.oracle.evaluations.backward += len(neurons)
        units = [np.eye(1, len(piece.slopes[k]), j) for k, j in neurons]
        rows = [piece.gradients(k + 1, unit) / self.root for (k, _), unit in zip(neurons, units, strict=True)]
        return np.concatenate(rows) if rows else np.empty((0, len(self.root)))

    def beyond(self, positive: list[Array], layers: list[Array], known: list[Neuron]) -> list[Neuron]:
        """The walls, other than the known, that a point is beyond by the most."""
        found = []
        for k, (side, (left, right)) in enumerate(zip(positive, self.net.one_sided_slopes, strict=True)):
            excess = np.where(side, -layers[k], layers[k]) / max(1.0, float(np.abs(layers[k]).max()))
            found += [(excess[j], (k, int(j))) for j in np.flatnonzero((left != right) & (excess > THROUGH_WALL))]
        return [wall for _, wall in sorted(found, reverse=True) if wall not in known][:WALLS_AT_ONCE]

    # The way to the boundary

    def on_boundary(self, start: Array) -> Array | None:
        """A feasible point near ``start``, which is returned itself if it is one, or None.

        Newton's method jumps from piece to piece and may do so forever; a descent on the violation does not.
        """
        z, center = self.newton(start), start
        for _ in range(APPROACHES):
            if z is not None:
                break
            state = self.approach(center)
            if state is None:
                break
            center = state.z
            inside = self.solve(state.positive, center, state.walls, self.far(center))
            z = self.newton(center) if inside is None else inside.z
        return z

    def approach(self, z: Array) -> _State | None:
        """The end of a descent from z towards z, in which the goal's violation is a penalty."""
        self.oracle.evaluations.backward += 1
        rows = Piece.at(self.net, self.forward(z)).gradients(self.net.n_layers, self.D[:1]) / self.root
        steepness = float(np.linalg.norm(rows))
        return _Search(self.oracle, z, ELASTIC * (steepness or 1.0)).descend(z)

    def newton(self, z: Array) -> Array | None:
        """Steps to the closest point at which the linearised goal holds, until the goal does."""
        n = len(z)
        for _ in range(NEWTON_STEPS):
            layers = self.forward(z)
            if self.violation(layers[-1]) <= GAP:
                return z
            u, lam = self.root * z, np.zeros(len(self.D))
            A, b = self.goal_rows(Piece.at(self.net, layers), layers[-1], u)
            found = least_distance(u, A, b, self.equations, self.lower[:n], self.upper[:n], lam, self.far(z))
            if found is None:
                return None
            z = self.problem.clip(found[0] / self.root)
        return None

    def far(self, z: Array) -> float:
        """An objective that is too large to be of interest."""
        return float((FAR * (1 + np.linalg.norm(self.root * z) + np.linalg.norm(self.origin))) ** 2)

    def violation(self, Y: Array) -> float:
        """The largest violation of the goal at logits Y, relative to the row's largest output as in the check."""
        excess = self.bound - self.D @ Y
        scale = np.maximum(1.0, (np.abs(self.D) * np.abs(Y)).max(axis=1, initial=0.0))
        return float((np.where(self.equations, np.abs(excess), excess) / scale).max(initial=0.0))

    def forward(self, z: Array, piece: Piece | None = None) -> list[Array]:
        """c of every layer, of the network or of one piece, at the cost of a forward pass either way."""
        self.oracle.count_forward()
        return self.net.pre_activations(z) if piece is None else piece.layers(z)


def _key(positive: list[Array]) -> bytes:
    return np.packbits(np.concatenate(positive)).tobytes()
