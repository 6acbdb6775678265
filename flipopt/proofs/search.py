"""Branch and bound: is there no flip nearer than the one that is known?

A node is a class and signs of some hidden neurons. The relaxation bounds the distance of its flips from below; a node
whose bound is not within the tolerance of the nearest flip known is split on the neuron whose p breaks p = max(c, 0)
at the highest price. Nodes of all classes wait in one heap, the least bound first, so that it is a bound of all.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from flipopt.common.checks import Array
from flipopt.proofs.ascent import Solution, ascended, complementarity
from flipopt.proofs.instance import Instance
from flipopt.proofs.ranges import Ranges, Signs, ranges_of
from flipopt.proofs.relaxation import KINDS, Certificate, Frame, Program
from flipopt.runs.threads import stop_if_interrupted

HALVINGS = 60
"""Of a bisection towards a flip."""
POLISHED = 1e-9
"""Relative gain of a step to the nearest flip of a linear piece below which it is the last one."""
PAST = (0.0, 1e-12, 1e-9, 1e-6, 1e-4)
"""How far past a point another class is looked for, relative to its distance: flips have a rounding of their own."""
BEHIND = 8
"""By how many times its rounding another class is to lead at the nearest flip of a linear piece."""
REFINED = 3
"""Steps of Newton's method onto the active constraints of a linear piece."""
EMPTY = np.empty(0)
NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Effort:
    """How much a search does.

    Attributes
    ----------
    root_steps, node_steps
        Steps of the ascent in tau, at most: at the root of a class and at other nodes.
    core_seconds
        Whether seconds are those of the core that the search has, and not of the clock: where there is other work.
    """

    root_steps: int = 30
    node_steps: int = 3
    core_seconds: bool = field(default=False, repr=False)  # runs of older versions know the others

    def now(self) -> float:
        """Seconds since some moment."""
        return time.thread_time() if self.core_seconds else time.perf_counter()


@dataclass(eq=False)
class Node:
    """A class and signs.

    Attributes
    ----------
    lead
        Number of the class among the other ones.
    parent, neuron, sign
        Number of the node that was split, on which neuron (counted over all hidden layers), and the sign here; -1, -1
        and 0 for a root.
    signs
        Of all neurons.
    certificate, bound
        What proves that its flips are at least as far as ``bound``, infinite where it has none.
    least
        The largest bound of it and of the nodes that it is a part of.
    branch
        Neuron to split on.
    """

    lead: int
    parent: int
    neuron: int
    sign: int
    signs: Signs
    certificate: Certificate
    bound: float
    least: float = np.inf
    branch: int = -1


@dataclass(eq=False)
class Search:
    """The nodes so far, and the nearest flip known.

    Attributes
    ----------
    best, d
        Its distance and its coordinates (n,), which are none as long as none is known: then it is searched whether
        there is one within ``best``.
    roots
        Of the others, the number of its root.
    history
        Seconds, lower and upper bound whenever one of them changes.
    """

    instance: Instance
    tol: float
    best: float = np.inf
    d: Array = field(default_factory=lambda: EMPTY)
    effort: Effort = field(default_factory=Effort)
    nodes: list[Node] = field(default_factory=list)
    history: list[tuple[float, float, float]] = field(default_factory=list)
    _heap: list[tuple[float, int]] = field(default_factory=list)
    _closed: float = np.inf
    _started: float = 0.0

    def __post_init__(self) -> None:
        self._started = self.effort.now()

    @property
    def lower(self) -> float:
        """No flip is nearer."""
        waiting = self._heap[0][0] if self._heap else np.inf
        return min(waiting, self._closed, self.best)

    @property
    def proved(self) -> bool:
        """Whether the bounds agree."""
        return self.lower >= self.best * (1 - self.tol)

    @property
    def done(self) -> bool:
        """Whether there is nothing left to split."""
        return len(self.nodes) > 0 and not self._heap

    def begin_at(self, d: Array) -> bool:
        """Take the flip d (n,), or one just behind it, as the nearest known; whether it is one."""
        for past in PAST:
            end = self.instance.inside((1 + past) * d)
            if self._flips(end[None])[0]:
                self._keep(self._crossing(end))
                self._polish(self.d)
                return True
        return False

    def run(self, seconds: float) -> None:
        """Until the bounds agree, or time is up."""
        self._begin()
        self._note()
        while self._heap and not self.proved:
            if self.effort.now() - self._started > seconds:
                break
            stop_if_interrupted()
            _, number = heapq.heappop(self._heap)
            node = self.nodes[number]
            for sign in (1, -1):
                self._examine(node.lead, number, node.branch, sign, _with_sign(node.signs, node.branch, sign))
            self._note()

    def _begin(self) -> None:
        """The roots: every class, those that lead the most at x first to be likely."""
        signs = tuple(np.zeros(width, dtype=np.int8) for width in self.instance.widths)
        ranges: Ranges | None = None
        frame: Frame | None = None
        for lead in np.argsort(self.instance.leads(np.zeros(len(self.instance.R))), kind="stable"):
            if ranges is None or ranges.radius != self.best:
                ranges = self._ranges(signs)
                frame = None if ranges is None else Frame.of(self.instance, ranges, signs)
            self._examine(int(lead), -1, -1, 0, signs, ranges, frame)

    def _ranges(self, signs: Signs) -> Ranges | None:
        return ranges_of(self.instance, self.best, signs, self.instance.rounding(self.best))

    def _examine(
        self,
        lead: int,
        parent: int,
        neuron: int,
        sign: int,
        signs: Signs,
        ranges: Ranges | None = None,
        frame: Frame | None = None,
    ) -> None:
        """Bound a new node, and keep it: to be split later, or closed."""
        radius = self.best
        node = Node(lead, parent, neuron, sign, signs, Certificate(radius, NONE, EMPTY, NONE, EMPTY, True), np.inf)
        self.nodes.append(node)
        ranges = self._ranges(signs) if ranges is None else ranges
        if ranges is None or ranges.leads[lead] > 0:
            return  # nothing in the ball has these signs, or no flip among what has
        before = self.nodes[parent] if parent >= 0 else None
        frame = Frame.of(self.instance, ranges, signs) if frame is None else frame
        program = frame.with_lead(self.instance, lead)
        steps = self.effort.root_steps if before is None else self.effort.node_steps
        tau, guess = (None, None) if before is None else _inherited(program, before.certificate)
        solution = ascended(program, steps, (1 - self.tol) ** 2 / 2, tau, guess)
        if solution is None:
            node.bound, node.least = 0.0, 0.0 if before is None else before.least
            node.branch = int(program.neurons[0])
            heapq.heappush(self._heap, (node.least, len(self.nodes) - 1))
            return
        node.certificate = certificate_of(program, solution)
        if solution.z is None:
            return
        node.bound = min(radius, radius * float(np.sqrt(2 * max(0.0, solution.value))) * (1 - 1e-15))  # NaN: 0
        self._try(program.change(solution.z, solution.lam))
        bound = node.least = node.bound if before is None else max(node.bound, before.least)
        node.branch = _branch(program, solution)
        if node.branch < 0:
            self._try_piece(tuple(np.where(layer.active, 1, -1) for layer in ranges.layers), lead)
            if bound < self.best * (1 - self.tol):
                self._try_tie(program, solution, lead)
        if node.branch < 0 or bound >= self.best * (1 - self.tol):
            self._closed = min(self._closed, bound)
        else:
            heapq.heappush(self._heap, (bound, len(self.nodes) - 1))

    def _note(self) -> None:
        """Close what need not be split any more, and write down bounds that have changed."""
        while self._heap and self._heap[0][0] >= self.best * (1 - self.tol):
            self._closed = min(self._closed, heapq.heappop(self._heap)[0])
        now = self.lower, self.best
        if not self.history or self.history[-1][1:] != now:
            self.history.append((self.effort.now() - self._started, *now))

    def _try(self, d: Array) -> None:
        """Look for a nearer flip on the ray through d."""
        length = float(np.linalg.norm(d))
        if length > 0 and np.isfinite(length):
            ends = np.stack([(self.best / length) * (1 - self.tol / 2) * d, *((1 + past) * d for past in PAST[1:-1])])
            ends = self.instance.inside(ends)
            flipped = self._flips(ends) & (np.linalg.norm(ends, axis=1) < self.best)
            if flipped.any():
                self._keep(self._crossing(ends[flipped][int(flipped[0]) if flipped.sum() > 1 else 0]))
                self._polish(self.d)

    def _flips(self, D: Array) -> Array:
        """Whether another class leads at the changes D (points, n), whatever rounding does."""
        lengths = np.linalg.norm(D, axis=1)
        doubt = self.instance.rounding(float(lengths.max()))[-1]
        return np.asarray((self.instance.leads(D) < -doubt).any(axis=1))

    def _crossing(self, d: Array) -> Array:
        """A flip on the way to d (n,), where another class leads."""
        low, high = 0.0, 1.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self._flips((middle * d)[None])[0] else (middle, high)
        return high * d

    def _keep(self, d: Array) -> None:
        length = float(np.linalg.norm(d)) * self.instance.stretch
        if length < self.best:
            self.best, self.d = length, d

    def _polish(self, d: Array) -> None:
        """From the flip d to the nearest one of its linear piece, and from there on."""
        while True:
            before, lead = self.best, int(np.argmin(self.instance.leads(d)))
            self._try_piece(self._signs_at(d), lead)
            if not self.best < before * (1 - POLISHED):
                return
            d = self.d

    def _try_piece(self, signs: Signs, lead: int) -> None:
        """Look for the nearest flip of a linear piece, and a nearer one still on the way to it."""
        radius = self.best * (1 + self.tol)
        rounding = self.instance.rounding(radius)
        ranges = ranges_of(self.instance, radius, signs, rounding)
        if ranges is None or any(layer.open.any() for layer in ranges.layers):
            return
        program = Program.of(self.instance, ranges, signs, lead)
        b = program.b.copy()
        b[-1] -= BEHIND * rounding[-1][lead] / program.norms[-1]  # so that the other class leads whatever rounding does
        program = replace(program, b=b)
        of = program.definite(EMPTY)
        assert of is not None
        lam, empty = program.solved(of)
        if not empty:
            point = program.change(program.minimiser(of, lam), lam)
            for past in PAST[:-1]:
                end = self.instance.inside((1 + past) * point)
                if self._flips(end[None])[0]:
                    self._keep(self._crossing(end))
                    return

    def _try_tie(self, program: Program, solution: Solution, lead: int) -> None:
        """Take the nearest point of a linear piece where two classes tie and neither need lead behind it.

        Where no neuron of the last hidden layer is active, say, logits are the biases. The point is moved onto its
        active constraints, by the least change, until only rounding is between it and a tie.
        """
        assert solution.z is not None
        active, radius = np.flatnonzero(solution.lam > 0), program.radius
        A, b, d = program.normals(active), program.b[active], program.change(solution.z, solution.lam)
        for _ in range(REFINED):
            d = d + radius * np.linalg.lstsq(A, b - A @ d / radius)[0]
        d = self.instance.inside(d)
        if self.instance.leads(d)[lead] <= self.instance.rounding(self.best)[-1][lead]:
            self._keep(d)

    def _signs_at(self, d: Array) -> Signs:
        instance, signs, c = self.instance, [], self.instance.c0 + d @ self.instance.R
        for k in range(instance.hidden):
            signs.append(np.where(c >= 0, 1, -1).astype(np.int8))
            y = instance.left[k] * c + (instance.right[k] - instance.left[k]) * np.maximum(c, 0)
            c = y @ instance.weights[k] + instance.biases[k]
        return tuple(signs)


def certificate_of(program: Program, solution: Solution) -> Certificate:
    """Its multipliers, in units that do not depend on the program."""
    some = solution.lam > 0
    return Certificate(
        program.radius,
        program.neurons,
        program.tau_unit * solution.of.tau,
        program.rows[some],
        (program.unit * solution.lam)[some],
        solution.z is None,
    )


def _inherited(program: Program, parent: Certificate) -> tuple[Array, tuple[Array, Array]]:
    """tau and multipliers to begin with; a tau of 0 where the parent had none."""
    tau = np.zeros(len(program.neurons))
    _, mine, theirs = np.intersect1d(program.neurons, parent.neurons, return_indices=True)
    tau[mine] = (parent.tau[theirs] / program.tau_unit[mine]) if len(mine) else tau[mine]
    return tau, (parent.rows, parent.lam)


def _branch(program: Program, solution: Solution) -> int:
    """The neuron whose p costs the most by not being max(c, 0); -1 where there is none to split."""
    z = solution.z
    if z is None or len(program.neurons) == 0:
        return -1
    c = program.h @ z + program.g
    gap = np.maximum(z[program.n :] - np.maximum(c, 0), 0)
    chord = np.zeros(len(program.neurons))
    places = {int(row): place for place, row in enumerate(program.rows)}
    for k, neuron in enumerate(program.neurons):
        at = places[KINDS * int(neuron) + 2]
        chord[k] = solution.lam[at] / program.norms[at] * program.high[k]
    score = solution.of.tau * complementarity(program, z) + (chord + 1e-9) * gap
    return int(program.neurons[np.argmax(score)])


def _with_sign(signs: Sequence[Array], neuron: int, sign: int) -> Signs:
    """The signs with one more of them."""
    changed = []
    for layer in signs:
        if 0 <= neuron < len(layer):
            layer = layer.copy()
            layer[neuron] = sign
        neuron -= len(layer)
        changed.append(layer)
    return tuple(changed)
