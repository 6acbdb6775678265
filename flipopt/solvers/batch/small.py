"""Problems in few variables, searched in full: branch and bound over boxes, for all of them at once.

The boxes of an input cover the ball up to its nearest flip point so far. On each the network's leads are enclosed
(bounds/boxes.py), and with them the distances of the flip points that it may hold. A box that holds none, or none that
is nearer by more than ``gap``, is done with; the others are halved. Where the centre of a box belongs to another class,
or a box is about to be the last, a descent starts there. When no box is left, what is known is the nearest flip to
within ``gap``, proved up to rounding.

Where nothing is known of a network but its values, the boxes are a grid: their centres are looked at, nothing is proved.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from flipopt.bounds.boxes import leads_on_boxes
from flipopt.common.checks import Array
from flipopt.common.columns import Columns
from flipopt.networks import DenseNetwork
from flipopt.paths.rays import onto_boundary
from flipopt.problem import FlipBatch
from flipopt.solvers.batch.options import Small
from flipopt.solvers.batch.outcome import Outcome
from flipopt.solvers.batch.strategy import Strategy

SEARCHES, BOXES_AT_ONCE = 128, 4096
"""Inputs that are searched together, and boxes whose leads are enclosed together: what fits memory and caches."""
THINNEST = 1e-13
"""Half the width of a box at least, relative to its centre: a feature between equal bounds still has a width."""
FOLLOWED = 3
"""Every so many halvings the most promising box is followed by a descent, whatever its centre says."""
GROWTH, REACH = 4.0, 1e4
"""Where no flip is known, the radius is made larger by this factor, up to this many times the linear estimate."""


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
        self.spent, self.starts = np.zeros((2, len(keys)), dtype=np.int64)
        operations = 2 * sum(W.size for W in getattr(batch.network, "weights", ()))
        most = self.options.boxes if self.proves else self.options.grid
        self.most = int(min(most, self.options.operations / max(1, operations * (len(self.free) + 2))))

    def run(self) -> Array:
        radius = self._radii()
        boxes, level, until = self._roots(np.arange(len(self.X)), radius), 0, self.strategy.deadline()
        while len(boxes):
            boxes, likely = self._bounded(boxes)
            self._descend(boxes, likely, level)
            boxes = self._within_limits(boxes.take(self._promising(boxes)), time.perf_counter() > until)
            boxes = Boxes.join([boxes.halves(self.root), self._wider(boxes, radius)])
            level += 1
        self.found.forward[self.first] += self.spent
        known = np.where(np.isfinite(self.best), (1 - self.options.gap) * self.best, np.inf)
        np.minimum.at(known, self.group, self.unseen)
        return known[self.problem_group] if self.proves else np.full(len(self.batch), np.nan)

    def _note(self) -> None:
        """The nearest flip of every group."""
        solved = self.found.solved & ~self.found.dropped
        np.minimum.at(self.best, self.problem_group[solved], self.found.distances(self.batch)[solved])

    def _radii(self) -> Array:
        """How far to look at first: up to the nearest flip, or as far as the linearisation at x says, (searches,)."""
        best = self.best[self.group]
        if np.isfinite(best).all():
            return best
        batch = self.batch
        each, j = np.arange(len(batch)), batch.classes[:, 1]
        lead = np.abs(batch.leads(batch.network.logits(batch.X))[each, j])
        slope = np.linalg.norm(batch.network.vjp(batch.X, batch.tie_weights)[:, self.free] / self.root, axis=1)
        size = np.maximum(1.0, np.abs(self.root * batch.X[:, self.free]).max(axis=1))
        estimate, least = np.clip(lead / np.maximum(slope, 1e-300), 1e-3 * size, size), np.full(len(self.best), np.inf)
        np.minimum.at(least, self.problem_group, np.nan_to_num(estimate, nan=1.0))
        self.farthest = REACH * least[self.group]
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
        """The searches that are over without a flip anew with a larger radius, unless the bounds are reached."""
        over = np.ones(len(self.X), dtype=bool)
        over[boxes.search] = False
        over &= np.isinf(self.best[self.group]) & np.isinf(self.unseen) & np.isfinite(radius)
        searches, setting = np.flatnonzero(over), self.batch.setting
        reach, x = radius[searches][:, None] / self.root, self.X[searches][:, self.free]
        within = (x - reach <= setting.lower[self.free]) & (x + reach >= setting.upper[self.free])
        all_seen = within.all(axis=1)
        radius[searches[all_seen]] = np.inf
        searches = searches[~all_seen]
        ended = searches[radius[searches] >= self.farthest[searches]] if len(searches) else searches
        self.unseen[ended] = radius[ended]
        searches = np.setdiff1d(searches, ended)
        radius[searches] *= GROWTH
        return self._roots(searches, radius[searches])

    def _points(self, boxes: Boxes) -> Array:
        """The centres as inputs, (boxes, n_inputs)."""
        points = self.X[boxes.search].copy()
        points[:, self.free] = boxes.centre
        return points

    def _bounded(self, boxes: Boxes) -> tuple[Boxes, Array]:
        """The boxes that may hold a flip, with what is proved of its distance, and its likely class j (boxes,)."""
        np.add.at(self.spent, boxes.search, 1)
        boxes = boxes.take(self._allowed(boxes))
        parts = [boxes.take(slice(k, k + BOXES_AT_ONCE)) for k in range(0, len(boxes), BOXES_AT_ONCE)]
        lowers = [self._lower(part) for part in parts]
        if not lowers:
            return boxes, np.zeros(0, dtype=np.int64)
        lower = np.concatenate(lowers)
        likely = lower.argmin(axis=1)
        lower = np.maximum(lower.min(axis=1), boxes.lower)
        kept = np.isfinite(lower)
        boxes = Boxes(boxes.search, boxes.centre, boxes.half, lower).take(kept)
        return boxes, likely[kept]

    def _allowed(self, boxes: Boxes) -> Array:
        """Which boxes may hold a point that satisfies the linear constraints."""
        rows = self.batch.setting.linear
        if len(rows.A) == 0:
            return np.ones(len(boxes), dtype=bool)
        middle = (self._points(boxes)[:, None] * rows.A).sum(axis=2)
        reach = (boxes.half[:, None] * np.abs(rows.A[:, self.free])).sum(axis=2) + THINNEST * (1 + np.abs(middle))
        return np.asarray(((middle + reach >= rows.bound) & ((middle - reach <= rows.bound) | ~rows.equations)).all(axis=1))

    def _lower(self, boxes: Boxes) -> Array:
        """No flip to class j in the box is nearer than this, (boxes, n_classes); inf where there is none."""
        away = np.abs(self.X[boxes.search][:, self.free] - boxes.centre)
        nearest = np.linalg.norm(np.maximum(away - boxes.half, 0.0) * self.root, axis=1)
        lower = np.where(self.problem[boxes.search] >= 0, nearest[:, None], np.inf)
        if self.proves:
            for i in np.unique(self.i[boxes.search]):
                some = np.flatnonzero(self.i[boxes.search] == i)
                lower[some] = np.maximum(lower[some], self._lower_by_leads(boxes.take(some), int(i)))
        return lower

    def _lower_by_leads(self, boxes: Boxes, i: int) -> Array:
        """The same by what the leads over class i can be on the boxes."""
        leads = leads_on_boxes(self.batch.network, i, self._points(boxes), boxes.half, self.free)  # type: ignore[arg-type]
        reach, beyond = leads.reach, self.batch.beyond
        tie = ~(np.abs(leads.value + beyond) > reach)  # NaN says nothing
        below = leads.value + reach < self.batch.margin
        below[:, i] = False
        tie &= (below.sum(axis=1, keepdims=True) - below) == 0
        # A flip in the box is on the plane where the affine part is within the error of a tie.
        x = (self.X[boxes.search][:, self.free] - boxes.centre) / boxes.half
        at_x = leads.value + beyond + (leads.slopes * x[:, :, None]).sum(axis=1)
        steepness = np.linalg.norm(leads.slopes / (boxes.half * self.root)[:, :, None], axis=1)
        off = np.maximum(np.abs(at_x) - leads.error, 0.0)
        return np.where(tie, np.nan_to_num(off / np.maximum(steepness, 1e-300), posinf=0.0), np.inf)

    def _promising(self, boxes: Boxes) -> Array:
        return np.asarray(boxes.lower < (1 - self.options.gap) * self.best[self.group[boxes.search]])

    def _within_limits(self, boxes: Boxes, late: bool) -> Boxes:
        """Without the boxes of searches that have had their share."""
        over = late | (self.spent >= self.most)
        stopped = over[boxes.search]
        np.minimum.at(self.unseen, boxes.search[stopped], boxes.lower[stopped])
        return boxes.take(~stopped)

    def _descend(self, boxes: Boxes, likely: Array, level: int) -> None:
        """Descents from the nearest centre of another class of each search; now and then from its first box."""
        some = np.flatnonzero(self._promising(boxes) & (self.starts[boxes.search] < self.options.starts))
        if len(some) == 0:
            return
        boxes, likely = boxes.take(some), likely[some]
        points = self._points(boxes)
        leads = self.batch.network.logits(points)
        j = leads.argmax(axis=1)
        flipped = (j != self.i[boxes.search]) & (self.problem[boxes.search, j] >= 0)
        away = np.linalg.norm((points - self.X[boxes.search])[:, self.free] * self.root, axis=1)
        flipped &= away < (1 - self.options.gap) * self.best[self.group[boxes.search]]
        follow = self.proves and level % FOLLOWED == FOLLOWED - 1
        rank = np.where(flipped, away, boxes.lower if follow else np.inf)
        order = np.lexsort((rank, ~flipped, boxes.search))
        first = order[np.diff(boxes.search[order], prepend=-1) > 0]
        first = first[np.isfinite(rank[first])]
        problem = self.problem[boxes.search[first], np.where(flipped, j, likely)[first]]
        self.starts[boxes.search[first]] += 1
        self._go_down(problem, points[first])

    def _go_down(self, problem: Array, points: Array) -> None:
        """Descents of the problems (k,) from the points (k, n_inputs), where the ray from x through them ties if it does."""
        if len(problem) == 0:
            return
        there, met, forward = onto_boundary(self.batch.take(problem), points)
        start = Outcome.starting(np.where(met[:, None], there, points))
        start.forward += forward
        end = self.strategy.descended(self.rows[problem], start, None)
        self.found.improve(self.batch, problem, end)
        self._note()
