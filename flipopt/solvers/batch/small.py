"""Problems in few variables, searched in full: branch and bound over boxes, for all of them at once.

The boxes of an input cover the ball up to its nearest flip point so far. On each the network's leads are enclosed
(bounds/boxes.py), and with them the distances of the flip points that it may hold. A box that holds none, or none that
is nearer by more than ``gap``, is done with; the others are halved. Where the centre of a box belongs to another class,
or a box is about to be the last, a descent starts there. When no box is left, what is known is the nearest flip to
within ``gap``, proved up to rounding.

Where nothing is known of a network but its values, the boxes are a grid: their centres are looked at, and nothing is
proved.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from flipopt.bounds.boxes import Enclosure, leads_on_boxes
from flipopt.bounds.matrices import OUTWARD
from flipopt.common.checks import Array
from flipopt.common.columns import Columns
from flipopt.networks import DenseNetwork
from flipopt.paths.rays import onto_boundary
from flipopt.problem import FlipBatch
from flipopt.solvers.batch.options import Plan, Small
from flipopt.solvers.batch.outcome import Outcome
from flipopt.solvers.batch.strategy import Strategy
from flipopt.solvers.trust_region import TrustRegion

SEARCHES, ENTRIES = 64, 2**22
"""Inputs that are searched together, and entries of the largest array of boxes that are enclosed together: memory."""
THINNEST = 1e-13
"""Half the width of a box at least, relative to its centre: a feature between equal bounds still has a width."""
FEW, MANY = 8, 500
"""After so many boxes, and whenever there have been twice as many, a descent starts from the most promising one,
whatever its centre says: if no flip is known, and if one is."""
SHORT = 10.0
"""Seconds that one descent in short steps may take."""
GROWTH, REACH = 4.0, 1e3
"""Where no flip is known, the radius is made larger by this factor, up to this many times the size of x, at least 1."""
TINY = 1e-300


@dataclass(frozen=True)
class Boxes(Columns):
    """Of the search each belongs to (boxes,), ``centre`` and ``half`` the widths of the free features (boxes, f); no
    flip in it is nearer than ``lower`` (boxes,)."""

    search: Array
    centre: Array
    half: Array
    lower: Array

    def halves(self, root: Array) -> Boxes:
        """Every box cut in two across its longest side, in units in which weights are 1."""
        rows, side = np.arange(len(self)), (self.half * root).argmax(axis=1)
        half = self.half.copy()
        half[rows, side] /= 2
        step = np.zeros(half.shape)
        step[rows, side] = half[rows, side]
        parts = [Boxes(self.search, self.centre + way * step, half, self.lower) for way in (-1.0, 1.0)]
        return Boxes.join(parts)


def is_small(batch: FlipBatch, options: Small) -> bool:
    """Whether problems have few enough variables."""
    return 0 < len(batch.setting.free) <= options.variables


def brief_plan(plan: Plan) -> Plan:
    """One start and no more, where a search comes after it."""
    smooth, kinked = replace(plan.smooth, restarts=()), replace(plan.kinked, restarts=())
    return replace(plan, attempts=1, rescue=False, smooth=smooth, kinked=kinked)


def search_all(batch: FlipBatch, found: Outcome, strategy: Strategy, groups: Array | None) -> Array:
    """Search all problems; ``found`` is improved in place.

    With ``groups`` (problems,) only the nearest of every group is sought. Returns proved lower bounds on the distance
    of the nearest flip of each problem or of its group, (problems,): NaN where nothing can be proved, inf where there
    is no flip at all.
    """
    entry = np.arange(len(batch)) if groups is None else np.unique(groups, return_inverse=True)[1]
    lower = np.full(len(batch), np.nan)
    for start in range(0, int(entry.max(initial=-1)) + 1, SEARCHES):
        rows = np.flatnonzero((entry >= start) & (entry < start + SEARCHES))
        part = found.take(rows)
        lower[rows] = _Search(batch.take(rows), part, strategy, rows, entry[rows] - start).run()
        found.put(rows, part)
    return lower


class _Search:
    """A search an input and class i, over all its classes j; those of one group share what they have found."""

    def __init__(self, batch: FlipBatch, found: Outcome, strategy: Strategy, rows: Array, group: Array) -> None:
        self.batch, self.found, self.strategy, self.rows = batch, found, strategy, rows
        self.options, self.proves = strategy.plan.small, isinstance(batch.network, DenseNetwork)
        setting, classes = batch.setting, batch.network.n_classes
        self.free, self.root = setting.free, np.sqrt(setting.weights[setting.free])
        keys, first, own = np.unique(group * classes + batch.classes[:, 0], return_index=True, return_inverse=True)
        self.X, self.i, self.group = batch.X[first], batch.classes[first, 0], group[first]
        self.problem_group, self.first = group, first
        self.problem = np.full((len(keys), classes), -1)
        self.problem[own, batch.classes[:, 1]] = np.arange(len(batch))
        self.best = np.full(int(group.max()) + 1, np.inf)
        self._note()
        self.unseen = np.full(len(keys), np.inf)  # what a search has not looked at is no nearer than this
        self.spent, self.starts, self.next = np.zeros((3, len(keys)), dtype=np.int64)
        self.most, self.at_once = self.options.grid, ENTRIES // (classes + len(self.free))
        if isinstance(batch.network, DenseNetwork):
            passes = len(self.free) + classes + 2
            work = 2.0 * sum(W.size for W in batch.network.weights) * passes
            self.most = int(min(self.options.boxes, self.options.operations / work))
            self.at_once = max(16, ENTRIES // (passes * max(batch.network.widths)))

    def run(self) -> Array:
        """Search; (problems,) as :func:`search_all` returns them."""
        radius, until = self._radii(), self.strategy.deadline()
        boxes = self._roots(np.arange(len(self.X)), radius)
        with np.errstate(all="ignore"):  # NaN and overflow leave a box as it is
            while len(boxes):
                boxes, likely = self._bounded(boxes)
                self._descend(boxes, likely)
                boxes = self._within_limits(boxes.take(self._promising(boxes)), time.perf_counter() > until)
                boxes = Boxes.join([boxes.halves(self.root), self._wider(boxes, radius)])
        self.found.forward[self.first] += self.spent
        lower = (1 - self.options.gap) * self.best
        np.minimum.at(lower, self.group, self.unseen)
        return lower[self.problem_group] if self.proves else np.full(len(self.batch), np.nan)

    def _note(self) -> None:
        """The nearest flip of every group."""
        solved = self.found.solved & ~self.found.dropped
        np.minimum.at(self.best, self.problem_group[solved], self.found.distances(self.batch)[solved])

    def _radii(self) -> Array:
        """How far to look at first: up to the nearest flip, or as far as the linearisation at x says, (searches,)."""
        best, self.farthest = self.best[self.group], np.full(len(self.group), np.inf)
        if np.isfinite(best).all():
            return best
        batch = self.batch
        each, j = np.arange(len(batch)), batch.classes[:, 1]
        lead = np.abs(batch.leads(batch.network.logits(batch.X))[each, j])
        slope = np.linalg.norm(batch.network.vjp(batch.X, batch.tie_weights)[:, self.free] / self.root, axis=1)
        size = np.maximum(1.0, np.abs(self.root * batch.X[:, self.free]).max(axis=1))
        estimate = np.clip(np.nan_to_num(lead / np.maximum(slope, TINY), nan=1.0), 1e-3 * size, size)
        least, largest = np.full((2, len(self.best)), np.inf)
        np.minimum.at(least, self.problem_group, estimate + batch.distances(batch.clip(batch.X)))
        np.minimum.at(largest, self.problem_group, size)
        self.farthest = REACH * largest[self.group]
        return np.where(np.isfinite(best), best, least[self.group])

    def _roots(self, searches: Array, radius: Array) -> Boxes:
        """The boxes around the balls of these radii, as far as the bounds go; none where they leave nothing."""
        setting, x = self.batch.setting, self.X[searches][:, self.free]
        reach = radius[:, None] / self.root
        low = np.maximum(x - reach, setting.lower[self.free])
        high = np.minimum(x + reach, setting.upper[self.free])
        some = (low <= high).all(axis=1) & np.isfinite(radius)
        low, high, searches = low[some], high[some], searches[some]
        centre = low / 2 + high / 2
        half = np.maximum((high - low) / 2, THINNEST * (1 + np.abs(centre)))
        return Boxes(searches, centre, half, np.zeros(len(searches)))

    def _wider(self, boxes: Boxes, radius: Array) -> Boxes:
        """The searches that are over short of the nearest flip anew with a larger radius; (searches,) in place."""
        over = np.isinf(self.unseen) & (radius < self.best[self.group])
        over[boxes.search] = False
        searches = np.flatnonzero(over)
        whole = searches[self._covered(searches, radius[searches])]
        radius[whole] = np.inf
        searches = np.setdiff1d(searches, whole)
        ended = searches[radius[searches] >= self.farthest[searches]]
        self.unseen[ended] = radius[ended]
        searches = np.setdiff1d(searches, ended)
        radius[searches] = np.minimum(GROWTH * radius[searches], self.best[self.group[searches]])
        return self._roots(searches, radius[searches])

    def _covered(self, searches: Array, radius: Array) -> Array:
        """Whether the balls of these radii have all that is within the bounds."""
        setting, x = self.batch.setting, self.X[searches][:, self.free]
        reach = radius[:, None] / self.root
        within = (x - reach <= setting.lower[self.free]) & (x + reach >= setting.upper[self.free])
        return np.asarray(within.all(axis=1))

    def _points(self, boxes: Boxes) -> Array:
        """The centres as inputs, (boxes, n_inputs)."""
        points = self.X[boxes.search].copy()
        points[:, self.free] = boxes.centre
        return points

    def _bounded(self, boxes: Boxes) -> tuple[Boxes, Array]:
        """The boxes that may hold a flip, with what is proved of its distance, and its likely class j (boxes,)."""
        np.add.at(self.spent, boxes.search, 1)
        boxes = boxes.take(self._allowed(boxes))
        parts = [boxes.take(slice(k, k + self.at_once)) for k in range(0, len(boxes), self.at_once)]
        bounded = [self._by_leads(part) if self.proves else self._by_distance(part) for part in parts]
        if not bounded:
            return boxes, np.zeros(0, dtype=np.int64)
        boxes, likely = Boxes.join([part for part, _ in bounded]), np.concatenate([j for _, j in bounded])
        kept = self._promising(boxes)
        return boxes.take(kept), likely[kept]

    def _allowed(self, boxes: Boxes) -> Array:
        """Which boxes may hold a point that satisfies the linear constraints."""
        rows = self.batch.setting.linear
        if len(rows.A) == 0:
            return np.ones(len(boxes), dtype=bool)
        middle = (self._points(boxes)[:, None] * rows.A).sum(axis=2)
        reach = (boxes.half[:, None] * np.abs(rows.A[:, self.free])).sum(axis=2) + THINNEST * (1 + np.abs(middle))
        over = (middle - reach > rows.bound) & rows.equations
        return np.asarray(((middle + reach >= rows.bound) & ~over).all(axis=1))

    def _by_distance(self, boxes: Boxes) -> tuple[Boxes, Array]:
        """With the distance of each box from x; no class j is likelier than another."""
        away = np.abs(self.X[boxes.search][:, self.free] - boxes.centre)
        nearest = np.linalg.norm(np.maximum(away - boxes.half, 0.0) * self.root, axis=1)
        return replace(boxes, lower=np.maximum(boxes.lower, nearest)), self.problem[boxes.search].argmax(axis=1)

    def _by_leads(self, boxes: Boxes) -> tuple[Boxes, Array]:
        """With what the leads can be on each box: its flips' distances, and the part of it that may hold any."""
        boxes, likely = self._by_distance(boxes)
        network = cast(DenseNetwork, self.batch.network)
        for i in np.unique(self.i[boxes.search]):
            some = np.flatnonzero(self.i[boxes.search] == i)
            part = boxes.take(some)
            leads = leads_on_boxes(network, int(i), self._points(part), part.half, self.free)
            tie = self._may_tie(part, leads, int(i))
            lower = np.where(tie, self._distances(part, leads), np.inf)
            likely[some] = lower.argmin(axis=1)
            part = replace(part, lower=np.maximum(part.lower, lower.min(axis=1)))
            boxes.put(some, self._cut(part, leads, tie))
        return boxes, likely

    def _may_tie(self, boxes: Boxes, leads: Enclosure, i: int) -> Array:
        """Which flips to class j the boxes may hold, (boxes, n_classes); NaN speaks against none."""
        apart = np.abs(leads.value + self.batch.beyond) > leads.reach
        below = leads.value + leads.reach < self.batch.margin
        below[:, i] = False
        covered = (below.sum(axis=1, keepdims=True) - below) > 0
        return np.asarray((self.problem[boxes.search] >= 0) & ~apart & ~covered)

    def _distances(self, boxes: Boxes, leads: Enclosure) -> Array:
        """No flip to class j in the box is nearer than this, (boxes, n_classes).

        It is on a plane where the affine part of the lead is within its error of a tie.
        """
        e = self._x(boxes)
        at_x = leads.value + self.batch.beyond + (leads.slopes * e[:, :, None]).sum(axis=1)
        steepness = np.linalg.norm(leads.slopes / (boxes.half * self.root)[:, :, None], axis=1)
        off = np.maximum(np.abs(at_x) - leads.error, 0.0) / np.maximum(steepness, TINY)
        return np.asarray(np.nan_to_num(off, posinf=0.0))

    def _cut(self, boxes: Boxes, leads: Enclosure, tie: Array) -> Boxes:
        """The part of each box that may hold a flip to a class of ``tie``, and is no farther than the nearest known."""
        size, value = np.abs(leads.slopes), leads.value + self.batch.beyond
        others = (leads.error + size.sum(axis=1))[:, None] - size
        middle, reach = -value[:, None] / leads.slopes, others / size * OUTWARD + THINNEST
        low = np.where(tie[:, None], np.nan_to_num(middle - reach, nan=-1.0), np.inf).min(axis=2)
        high = np.where(tie[:, None], np.nan_to_num(middle + reach, nan=1.0), -np.inf).max(axis=2)
        x, unit, best = self._x(boxes), boxes.half * self.root, self.best[self.group[boxes.search]]
        away = (np.maximum(np.abs(x) - 1, 0.0) * unit) ** 2
        span = np.sqrt(np.maximum((best**2 - away.sum(axis=1))[:, None] + away, 0.0)) / unit * OUTWARD + THINNEST
        low, high = np.clip(np.fmax(low, x - span), -1, 1), np.clip(np.fmin(high, x + span), -1, 1)
        centre = boxes.centre + (low + high) / 2 * boxes.half
        half = np.maximum((high - low) / 2 * boxes.half * OUTWARD, THINNEST * (1 + np.abs(centre)))
        return replace(boxes, centre=centre, half=half)

    def _x(self, boxes: Boxes) -> Array:
        """The inputs in the coordinates in which a box is [-1, 1]^f, (boxes, f)."""
        return np.asarray((self.X[boxes.search][:, self.free] - boxes.centre) / boxes.half)

    def _promising(self, boxes: Boxes) -> Array:
        """Which boxes may hold a flip that is nearer by more than the gap."""
        enough = (1 - self.options.gap) * self.best[self.group[boxes.search]]
        return np.asarray(np.isfinite(boxes.lower) & (boxes.lower < enough))

    def _within_limits(self, boxes: Boxes, late: bool) -> Boxes:
        """Without the boxes of searches that have had their share."""
        over = late | (self.spent >= self.most)
        stopped = over[boxes.search]
        np.minimum.at(self.unseen, boxes.search[stopped], boxes.lower[stopped])
        return boxes.take(~stopped)

    def _descend(self, boxes: Boxes, likely: Array) -> None:
        """A descent of each search from its nearest centre of another class; now and then from its first box."""
        some = np.flatnonzero(self.starts[boxes.search] < self.options.starts)
        if len(some) == 0:
            return
        boxes, points = boxes.take(some), self._points(boxes.take(some))
        j = self.batch.network.logits(points).argmax(axis=1)
        away = self.batch.setting.distance(points, self.X[boxes.search])
        flipped = (j != self.i[boxes.search]) & (self.problem[boxes.search, j] >= 0)
        flipped &= away < (1 - self.options.gap) * self.best[self.group[boxes.search]]
        rank = np.where(flipped, away, np.where(self._due()[boxes.search], boxes.lower, np.inf))
        order = np.lexsort((rank, ~flipped, boxes.search))
        first = order[np.diff(boxes.search[order], prepend=-1) > 0]
        first = first[np.isfinite(rank[first])]
        self.starts[boxes.search[first[flipped[first]]]] += 1
        self._go_down(self.problem[boxes.search[first], np.where(flipped, j, likely[some])[first]], points[first])

    def _due(self) -> Array:
        """The searches that have taken long enough for a descent from their most promising box."""
        least = np.where(np.isinf(self.best[self.group]), FEW, MANY)
        due = self.proves & (self.spent >= np.maximum(self.next, least))
        self.next[due] = 2 * self.spent[due]
        return np.asarray(due)

    def _go_down(self, problem: Array, points: Array) -> None:
        """Descents of the problems (k,) from the points (k, n_inputs), or where the rays from x through them tie.

        What does not come nearer than it was is tried again in shorter steps.
        """
        if len(problem) == 0:
            return
        batch = self.batch.take(problem)
        there, met, forward = onto_boundary(batch, points)
        start = np.where(met[:, None], there, points)
        end = self.strategy.descended(self.rows[problem], Outcome.starting(start), None)
        end.forward += forward
        came_down = end.solved & (end.distances(batch) <= batch.distances(start))
        for k in np.flatnonzero(met & ~came_down):
            self._in_short_steps(batch, int(k), end, start[k])
        self.found.improve(self.batch, problem, end)
        self._note()

    def _in_short_steps(self, batch: FlipBatch, k: int, end: Outcome, start: Array) -> None:
        """The k-th problem of the batch from the boundary point ``start``, by a solver that never leaves it far."""
        network, seconds = batch.network, min(self.strategy.plan.max_seconds or np.inf, SHORT)
        smooth = isinstance(network, DenseNetwork) and not network.kinked
        solver = TrustRegion(max_seconds=seconds) if smooth else self.strategy.other_solver(seconds)
        result = solver.solve(batch.problem(k), start)
        end.forward[k] += result.evaluations.forward
        end.backward[k] += result.evaluations.backward + result.evaluations.hessian
        end.iterations[k] += result.iterations
        if result.success and not (end.solved[k] and end.distances(batch)[k] <= result.distance):
            end.x[k], end.solved[k], end.dropped[k], end.limited[k], end.late[k] = result.x, True, False, False, False
            end.solver[k], end.words[k] = solver.name, result.message
