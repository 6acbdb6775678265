"""Which part of the work comes next: as much as a worker does in a few seconds, by the rate measured so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

KEPT, SHOWN = 10.0, 1.0
"""Seconds that a part should take: where it is kept on disk, what a crash may cost; else, till the bar moves."""


class Schedule:
    """Hands out the items that are missing in parts whose limits are multiples of ``step``.

    What belongs to one step is always computed together, so what is computed does not depend on the rates. No part has
    more than ``most`` items, or the one step that it has at least.
    """

    def __init__(self, missing: Iterable[range], step: int, most: int, seconds: float = KEPT) -> None:
        self.missing = deque(part for part in missing if len(part))
        self.step, self.most = step, max(step, most)
        self.items, self.seconds, self.wanted = 0, 0.0, seconds

    @property
    def left(self) -> int:
        """Items that have not been handed out."""
        return sum(len(part) for part in self.missing)

    def take(self, workers: int) -> range | None:
        """The next part for one of so many workers; None if there is none."""
        if not self.missing:
            return None
        size = self._size(workers)
        part = self.missing.popleft()
        if size < len(part):
            self.missing.appendleft(part[size:])
        return part[:size]

    def finished(self, part: range, seconds: float) -> None:
        """A worker has done a part in so many seconds."""
        self.items += len(part)
        self.seconds += seconds

    def give_back(self, part: range) -> None:
        """A part whose worker was lost."""
        self.missing.appendleft(part)

    def _size(self, workers: int) -> int:
        """Towards the end parts become smaller, so that all workers end together."""
        wanted = self.wanted * self.items / self.seconds if self.seconds > 0 else self.step
        fair = self.left / (2 * workers)
        return max(1, int(min(wanted, fair, self.most)) // self.step) * self.step
