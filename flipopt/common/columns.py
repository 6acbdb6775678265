"""Records kept as one array a field: the base of everything that has an entry a problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Self

import numpy as np

from flipopt.common.checks import Array


class Columns:
    """A dataclass whose fields are arrays with one entry a record along their first axis."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Of the fields."""
        return tuple(field.name for field in fields(cls))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(getattr(self, self.names()[0]))

    def take(self, rows: Array | slice) -> Self:
        """The records at ``rows``: indices, which may repeat, a mask or a slice."""
        return type(self)(**{name: getattr(self, name)[rows] for name in self.names()})

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The records of all parts, one after the other."""
        return cls(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in cls.names()})

    def put(self, rows: Array, part: Self) -> None:
        """Replace the records at the indices ``rows`` by those of ``part``; in place."""
        for name in self.names():
            getattr(self, name)[rows] = getattr(part, name)

    def merge(self, rows: Array, other: Self) -> None:
        """Replace the records in the mask ``rows`` by those of ``other`` in the same places; in place."""
        for name in self.names():
            getattr(self, name)[rows] = getattr(other, name)[rows]
