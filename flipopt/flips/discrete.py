"""Discrete features: whole numbers, and groups of which exactly one is 1. They hold exactly in every point returned.

On a lattice no two classes tie, so what is sought is the nearest allowed point that the network puts in the class j; in
the features that are not discrete it may lie on the boundary.

Where all features are discrete and few points are near, they are examined in the order of their distance, and the first
one in the class is the nearest there is. Otherwise by branch and bound (A. H. Land and A. G. Doig, Econometrica 28,
1960): the features are fixed one after the other, those with the longest steps first, and the flip point of a problem
whose other discrete features may be anything is a lower bound of its distance. That is as certain as the flip points
are closest ones; whole numbers are tried outwards from the relaxed solution until the bound is too large. Numbers with
steps so small that rounding them hardly matters are rounded, not branched on.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count, product

import numpy as np

from flipopt.common.checks import Array
from flipopt.flips.inside import agrees, crossed, settled
from flipopt.flips.lattice import Choice, Lattice
from flipopt.networks.protocol import Network
from flipopt.problem import Evaluations, FlipBatch, FlipProblem, LinearConstraint, Setting
from flipopt.problem.goal import Goal, flip, within
from flipopt.results import FlipResult, Status
from flipopt.solvers import Batch, Ipopt, Solver
from flipopt.verification import ON_BOUNDARY, measures, verify

Solve = Callable[[FlipProblem, Array], FlipResult]
"""A problem and a starting point to its result: for solvers that take one problem at a time."""


@dataclass(frozen=True)
class Search:
    """How far the search goes before it stops and says that nothing is proved."""

    points: int = 200_000
    """Points of the lattice that are examined."""
    growth: float = 1.6
    """Of the cost up to which points are examined next."""
    relaxations: int = 600
    """Problems with some features fixed that are solved."""
    together: int = 32
    """Of these at once."""
    fine: float = 0.01
    """Steps of a whole number up to this share of the relaxed distance are rounded, not branched on."""
    rounded: int = 6
    """Such features at most that are rounded both ways; those with the smallest steps only to the nearest."""
    seconds: float = 30.0
    """After which no further problem is begun; a tenth of it is the limit of one run of IPOPT."""


@dataclass(frozen=True)
class Discrete:
    """The search for one problem between two classes.

    Attributes
    ----------
    network
        In its own precision.
    problem
        Between the classes (i, j), with no regard to which features are discrete.
    lattice
        Their values.
    solver, solve
        Of the relaxed problems; ``solve`` where it takes one at a time.
    beyond
        By how many logits j must lead at the point.
    valid
        Whether the network must put the point in j, not only on its boundary.
    """

    network: Network
    problem: FlipProblem
    lattice: Lattice
    solver: Solver
    solve: Solve
    beyond: float = 0.0
    valid: bool = False
    search: Search = field(default_factory=Search)
    cost: Evaluations = field(default_factory=Evaluations)
    started: float = field(default_factory=time.perf_counter)

    @property
    def target(self) -> int:
        return self.problem.classes[1]

    @property
    def led(self) -> bool:
        """Whether j must lead several classes by ``beyond``: no flip between two classes says that."""
        return self.beyond > 0 and self.network.n_classes > 2

    @property
    def sought(self) -> str:
        """What is sought, in words."""
        return f"in class {self.target}"

    @property
    def goal(self) -> Goal:
        """What the check asks of a point."""
        return within(self.network.n_classes, self.target, self.beyond)

    def accepts(self, X: Array) -> Array:
        """Which of the points X (points, n_inputs) reach the goal for certain."""
        return agrees(self.network, X, np.full(len(X), self.target), self.beyond)

    def relaxed_problem(self, setting: Setting, x: Array) -> FlipProblem:
        """From x (n_inputs,), in which some features are fixed; it may be in a third class by now."""
        if self.led:
            return FlipProblem(setting, x, self.goal)
        i = int(self.network.predict(x))
        classes = [self.problem.classes[0] if i == self.target else i, self.target]
        return FlipProblem(setting, x, flip(self.network.n_classes, classes, beyond=self.beyond))

    def run(self) -> FlipResult:
        """The nearest point, and whether it is proved to be that."""
        if self.lattice.empty:
            return self._result(None, "no whole number, or no member of a group, lies within the bounds")
        found = self._enumerate() if self._few() else None
        return found or self._branch()

    # In the order of the distance

    def _few(self) -> bool:
        """Whether all features are discrete, and few points are as near as the relaxed problem's flip point."""
        if not self._fixed(self.problem.setting, len(self.lattice.choices)).all():
            return False
        if self.lattice.size <= self.search.points:
            return True
        ((distance, _, sure),) = self._relaxed([_Node(0.0, 0, self.problem.x)])
        cost = distance**2 if self.problem.norm == 2 else distance
        return not (sure and np.isfinite(distance) and self.lattice.between(-1.0, cost, self.search.points) is None)

    def _enumerate(self) -> FlipResult | None:
        """The first point in the class j, or None if there are too many before it."""
        lattice, seen, low = self.lattice, 0, -1.0
        high = lattice.least + lattice.step
        while True:
            some = lattice.between(low, min(high, lattice.reach), self.search.points)
            if some is None:
                return None
            for start in range(0, len(some[0]), 4096):
                X = lattice.point(some[0][start : start + 4096])
                sure = self._inside(X)
                if sure.any():
                    seen += start + int(np.argmax(sure)) + 1
                    return self._result(X[int(np.argmax(sure))], f"the nearest of all: {seen} points examined")
            seen += len(some[0])
            if seen >= lattice.size:
                return self._result(None, f"none of the {seen} allowed points is {self.sought}")
            if high >= lattice.reach:
                return None
            low, high = high, lattice.least + self.search.growth * (high - lattice.least)

    def _inside(self, X: Array) -> Array:
        """Which of the points X (points, n_inputs) are allowed and in the class j."""
        self.cost.forward += len(X)
        sure = self.accepts(X)
        setting = self.problem.setting
        some = np.flatnonzero(sure) if setting.constraints else np.arange(0)
        sure[some] = measures.constraint_violation(measures.users(setting, X[some])) <= ON_BOUNDARY
        return sure

    # Branch and bound

    def _branch(self) -> FlipResult:
        tree, best = _Tree(self), _Best()
        tree.push(_Node(0.0, 0, self.problem.x))
        solved, lost = 0, np.inf
        while tree.nodes and solved < self.search.relaxations and self._left() > 0:
            nodes = tree.pop(self.search.together, best.distance)
            if not nodes:
                break
            solved += len(nodes)
            for node, (distance, x_hat, sure) in zip(nodes, self._relaxed(nodes), strict=True):
                bound = max(node.bound, distance) if sure else max(node.bound, self.problem.distance(node.x))
                if np.isinf(distance) and sure:  # nothing is known of the next number
                    tree.next_to(node, node.bound)
                if bound >= best.distance:
                    continue
                if node.depth == len(self.lattice.choices):
                    best = best.nearer(distance, x_hat)
                    lost = lost if sure else min(lost, bound)
                elif np.isfinite(bound):
                    tree.branch(node, bound, x_hat)
                tree.next_to(node, bound)
        open_bound = min((node.bound for node in tree.nodes), default=np.inf)
        proved = min(open_bound, lost) >= best.distance
        return self._found(best, solved, proved, min(open_bound, lost, tree.rounded))

    def _found(self, best: _Best, solved: int, proved: bool, bound: float) -> FlipResult:
        """``bound`` is the least of what is open, of what was not solved and of what was rounded."""
        if best.x is None:
            if proved:
                return self._result(None, f"no allowed point is {self.sought}: {solved} relaxations solved")
            return self._result(None, f"none found after {solved} relaxations", Status.LIMIT)
        gap = max(0.0, 1 - bound / best.distance)
        if proved and gap <= self.search.fine:
            rounded = f", to {gap:.1e}: numbers with small steps are rounded" if gap else ""
            return self._result(best.x, f"nearest by branch and bound, {solved} relaxations solved{rounded}")
        message = f"the best of {solved} relaxations, not proved nearest: nothing is known from {bound:.4g} on"
        return self._result(best.x, message, Status.ON_BOUNDARY)

    def _fixed(self, setting: Setting, depth: int) -> Array:
        """The features that are frozen or belong to one of the first ``depth`` choices, a mask (n_inputs,)."""
        fixed = setting.frozen.copy()
        for choice in self.lattice.choices[:depth]:
            fixed[choice.features] = True
        return fixed

    def _relaxed(self, nodes: list[_Node]) -> list[tuple[float, Array, bool]]:
        """Of nodes of one depth: distance, point, and whether that is certain. The distance is inf if there is none."""
        X, depth = np.stack([node.x for node in nodes]), nodes[0].depth
        inside, fixed = self._inside(X), self._fixed(self.problem.setting, depth)
        results = [(self.problem.distance(X[k]) if inside[k] else np.inf, X[k], True) for k in range(len(X))]
        if fixed.all():
            return results
        setting = self._setting(depth, fixed)
        rows = np.flatnonzero(~inside)
        for row, (x_hat, sure) in zip(rows, self._solutions(setting, X[rows]), strict=True):
            if sure or depth < len(self.lattice.choices):
                results[row] = self.problem.distance(x_hat) if sure else np.inf, x_hat, sure
            else:
                results[row] = self._last_resort(self.relaxed_problem(setting, X[row]))
        return results

    def _left(self) -> float:
        """Seconds that are left."""
        return self.search.seconds - (time.perf_counter() - self.started)

    def _ipopt(self, problem: FlipProblem) -> FlipResult:
        """IPOPT's answer, in a tenth of the time at most: one problem must not take what the others need."""
        seconds = max(min(self._left(), 0.1 * self.search.seconds), 0.01)
        return Ipopt(max_seconds=seconds).solve(problem, problem.x)

    def _last_resort(self, problem: FlipProblem) -> tuple[float, Array, bool]:
        """With all choices made, IPOPT's word on whether there is a flip point at all."""
        result = self._ipopt(problem)
        self._count(result)
        infeasible = result.status is Status.INFEASIBLE
        distance = self.problem.distance(result.x) if np.isfinite(result.distance) else np.inf
        return distance, result.x, result.success or infeasible

    def _setting(self, depth: int, fixed: Array) -> Setting:
        """With the features of the first ``depth`` choices fixed, and the others relaxed."""
        setting, constraints = self.problem.setting, list(self.problem.constraints)
        lower, upper, n = setting.lower.copy(), setting.upper.copy(), len(self.problem.x)
        for choice in self.lattice.choices[depth:]:
            if len(choice.features) > 1:
                lower[choice.features] = np.maximum(lower[choice.features], 0.0)
                upper[choice.features] = np.minimum(upper[choice.features], 1.0)
                members = np.isin(np.arange(n), choice.features).astype(np.float64)
                constraints.append(LinearConstraint(members[None], np.ones(1), np.ones(1)))
        return replace(setting, frozen=fixed, lower=lower, upper=upper, constraints=tuple(constraints))

    def _solutions(self, setting: Setting, X: Array) -> list[tuple[Array, bool]]:
        """The solutions of the relaxed problems from X (problems, n_inputs), and whether they are verified."""
        problems = [self.relaxed_problem(setting, x) for x in X]
        if problems and isinstance(self.solver, Batch) and self.solver.cannot(setting, problems[0].goal) is None:
            classes = np.array([problem.classes for problem in problems])
            batch = FlipBatch(setting, X, classes, beyond=self.beyond)
            found = replace(self.solver, rescue=False).solve_batch(batch)
            self.cost.forward += int(found.forward.sum())
            self.cost.backward += int(found.backward.sum())
            return list(zip(found.x, found.solved, strict=True))
        results = [self._ipopt(problem) if self.led else self.solve(problem, problem.x) for problem in problems]
        for result in results:
            self._count(result)
        return [(result.x, result.success) for result in results]

    def _count(self, result: FlipResult) -> None:
        self.cost.forward += result.evaluations.forward
        self.cost.backward += result.evaluations.backward
        self.cost.hessian += result.evaluations.hessian

    # The result

    def _result(self, x_hat: Array | None, message: str, status: Status | None = None) -> FlipResult:
        problem, solver = self.problem, self.solver.name
        if x_hat is None:
            status = status or Status.INFEASIBLE
            return FlipResult(problem.x, np.nan, problem.classes, status, message, None, self.cost, 0, 0.0, solver)
        status = status or Status.CONVERGED
        fixed = self._fixed(problem.setting, len(self.lattice.choices))
        inside = bool(self._inside(x_hat[None])[0])
        if not fixed.all():
            x_hat, inside = self._finished(x_hat, fixed)
        lower, upper = (np.where(fixed, x_hat, side) for side in (problem.lower, problem.upper))
        check = verify(replace(problem.changed(lower=lower, upper=upper), goal=self.goal), x_hat, self.network)
        if status is Status.CONVERGED and not (check.on_boundary and (inside or not self.valid)):
            status, message = Status.ON_BOUNDARY, f"{message}; not inside the class for certain"
        return FlipResult(
            x_hat, problem.distance(x_hat), problem.classes, status, message, check, self.cost, 0, 0.0, solver
        )

    def _finished(self, x_hat: Array, fixed: Array) -> tuple[Array, bool]:
        """A point whose features ``fixed`` stay, with linear constraints to the last digit, inside the class if asked
        for; and whether it is inside."""
        if not self.problem.classes:
            return x_hat, bool(self._inside(x_hat[None])[0])
        problem = self.problem
        start, classes = np.where(fixed, x_hat, problem.x)[None], np.array([[problem.classes[0], self.target]])
        batch = FlipBatch(replace(problem.setting, frozen=fixed), start, classes, beyond=self.beyond)
        x_hat = settled(batch, x_hat[None])[0]
        inside = bool(self._inside(x_hat[None])[0])
        if inside or not self.valid:
            return x_hat, inside
        (x_hat,), sure = crossed(self.network, batch, x_hat[None])
        return x_hat, bool(sure[0])


@dataclass(frozen=True)
class DiscreteReach(Discrete):
    """The same for a range of outputs: the goal of the problem itself."""

    @property
    def sought(self) -> str:
        return "where the outputs are in their range"

    @property
    def goal(self) -> Goal:
        return self.problem.goal

    def accepts(self, X: Array) -> Array:
        goal, network = self.problem.goal, self.problem.network
        outputs = network.logits(X) if self.problem.outputs == "logits" else network.probabilities(X)
        values = outputs @ goal.T.T
        return np.asarray(((values >= goal.lower) & (values <= goal.upper)).all(axis=1))

    def relaxed_problem(self, setting: Setting, x: Array) -> FlipProblem:
        return FlipProblem(setting, x, self.problem.goal)


@dataclass(frozen=True, eq=False)
class _Node:
    """The first ``depth`` choices fixed in x (n_inputs,); ``option`` of the last one, and which way the next one is."""

    bound: float
    depth: int
    x: Array
    option: int = 0
    way: int = 0


@dataclass(frozen=True, eq=False)
class _Best:
    """The nearest point so far."""

    distance: float = np.inf
    x: Array | None = None

    def nearer(self, distance: float, x: Array) -> _Best:
        return _Best(distance, x) if distance < self.distance else self


class _Tree:
    """The nodes that are open, those with the least bounds first, and of equal ones the deepest."""

    def __init__(self, discrete: Discrete) -> None:
        self.lattice, self.search = discrete.lattice, discrete.search
        self.setting = discrete.problem.setting
        self.heap: list[tuple[float, int, int, _Node]] = []
        self.number = count()
        self.ordered = [np.argsort(choice.values[:, 0]) for choice in self.lattice.choices]
        self.rounded = np.inf

    @property
    def nodes(self) -> list[_Node]:
        return [entry[-1] for entry in self.heap]

    def push(self, node: _Node) -> None:
        heapq.heappush(self.heap, (node.bound, -node.depth, next(self.number), node))

    def pop(self, most: int, distance: float) -> list[_Node]:
        """Up to so many nodes of one depth whose bounds are below the distance."""
        nodes: list[_Node] = []
        while self.heap and len(nodes) < most and self.heap[0][0] < distance:
            if nodes and self.heap[0][-1].depth != nodes[0].depth:
                break
            nodes.append(heapq.heappop(self.heap)[-1])
        return nodes

    def branch(self, node: _Node, bound: float, x_hat: Array) -> None:
        """The options of the next choice, or of all that are left where their steps are small."""
        left = self.lattice.choices[node.depth :]
        if all(self._fine(choice, bound) for choice in left):
            self.rounded = min(self.rounded, bound)
            self._round(node, bound, x_hat, left)
            return
        choice = left[0]
        if len(choice.features) > 1:
            for option in range(len(choice.cost)):
                self.push(self._child(node, bound, choice, option, 0))
            return
        values = choice.values[self.ordered[node.depth], 0]
        above = int(np.searchsorted(values, x_hat[choice.features[0]]))
        for at, way in ((above - 1, -1), (above, 1)):
            if 0 <= at < len(values):
                self.push(self._child(node, bound, choice, at, way))

    def next_to(self, node: _Node, bound: float) -> None:
        """The next whole number on the same side: it is no nearer."""
        if node.way == 0:
            return
        choice, at = self.lattice.choices[node.depth - 1], node.option + node.way
        if 0 <= at < len(choice.cost):
            x = node.x.copy()
            x[choice.features] = choice.values[self.ordered[node.depth - 1][at]]
            self.push(replace(node, bound=bound, x=x, option=at))

    def _child(self, node: _Node, bound: float, choice: Choice, at: int, way: int) -> _Node:
        x = node.x.copy()
        x[choice.features] = choice.values[self.ordered[node.depth][at] if way else at]
        return _Node(bound, node.depth + 1, x, at, way)

    def _fine(self, choice: Choice, bound: float) -> bool:
        step = np.sqrt(self.setting.weights[choice.features[0]])
        return len(choice.features) == 1 and len(choice.cost) > 2 and float(step) <= self.search.fine * bound

    def _round(self, node: _Node, bound: float, x_hat: Array, left: tuple[Choice, ...]) -> None:
        """All that is left rounded to either side."""
        sides = []
        for k, choice in enumerate(left):
            values = np.sort(choice.values[:, 0])
            above = int(np.clip(np.searchsorted(values, x_hat[choice.features[0]]), 1, len(values) - 1))
            pair = values[above - 1 : above + 1]
            near = pair[np.abs(pair - x_hat[choice.features[0]]).argmin()]
            sides.append(pair if k < self.search.rounded else np.array([near]))
        for combination in product(*sides):
            x = node.x.copy()
            for choice, value in zip(left, combination, strict=True):
                x[choice.features] = value
            self.push(_Node(bound, len(self.lattice.choices), x))
