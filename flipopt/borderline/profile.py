"""The profile of a model: what every pair of classes has of success, distances, IDC and EDC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from flipopt.borderline.correlation import Correlation, pearson
from flipopt.common.checks import Array, as_whole, one_of
from flipopt.common.errors import FileFormatError, InputError
from flipopt.common.later import later
from flipopt.common.parquet import Parquet
from flipopt.common.tables import Table
from flipopt.explain.matching import counted, percent

COUNTS = ("sources", "points", "evaluations")
NOT_COLUMNS = ("class_names",)


@dataclass(frozen=True, eq=False)
class Profile(Table):
    """One record an ordered pair of classes.

    Rates and distances are of the pairs or sources that were drawn; distances are medians, in the 2-norm, from the
    source. A value that could not be had is NaN, and the ``note`` says why.

    Attributes
    ----------
    classes
        (s, t): the class that the boundary is approached from, and the other one, (pairs, 2).
    sources
        Samples of class s.
    rpbs_success, rpbs_yield, rpbs_distance, rpbs_farther
        Of random pairs: instances found, as a share of the pairs searched and of all sources; their distance; and how
        many times as far as the closest flip point that is (median).
    epbs_success, epbs_yield, epbs_distance, epbs_farther
        The same of embedding-nearest pairs.
    given_success, given_yield, given_distance, given_farther
        The same of the instances that were handed in.
    closest_success, closest_converged, closest_distance
        Of closest flip points: share of the sources searched with a point on the boundary, share with a verified
        closest flip point, and their distance.
    points
        Borderline instances that IDC and EDC are measured on.
    idc, idc_low, idc_high, third
        IDC of the instances approached from s, its 95% interval, and the share of points on its lines that are in a
        third class.
    edc1_test, edc1_borderline, edc2_test, edc2_borderline, own_test, own_borderline
        As :class:`EDC` has them, of the instances of both directions together: the same for (s, t) and (t, s).
    evaluations
        Of the network, in all.
    note
        What could not be had, and why; else empty.
    class_names
        Of all classes of the network.
    """

    classes: Array
    sources: Array
    rpbs_success: Array
    rpbs_yield: Array
    rpbs_distance: Array
    rpbs_farther: Array
    epbs_success: Array
    epbs_yield: Array
    epbs_distance: Array
    epbs_farther: Array
    given_success: Array
    given_yield: Array
    given_distance: Array
    given_farther: Array
    closest_success: Array
    closest_converged: Array
    closest_distance: Array
    points: Array
    idc: Array
    idc_low: Array
    idc_high: Array
    third: Array
    edc1_test: Array
    edc1_borderline: Array
    edc2_test: Array
    edc2_borderline: Array
    own_test: Array
    own_borderline: Array
    evaluations: Array
    note: Array
    class_names: tuple[str, ...] = ()

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(name for name in super().names() if name not in NOT_COLUMNS)

    @classmethod
    def measures(cls) -> tuple[str, ...]:
        """Names of the columns of numbers."""
        return tuple(name for name in cls.names() if name not in ("classes", "note"))

    @classmethod
    def of(cls, records: Sequence[dict[str, Any]]) -> Profile:
        """From a record a pair, of some of the columns; the rest is NaN, 0 or empty."""
        kinds = {name: (np.int64, 0) if name in COUNTS else (np.float64, np.nan) for name in cls.measures()}
        columns: dict[str, Any] = {
            name: np.array([record.get(name, default) for record in records], dtype=kind)
            for name, (kind, default) in kinds.items()
        }
        classes = np.array([record["classes"] for record in records], dtype=np.int64).reshape(-1, 2)
        note = np.array([record.get("note", "") for record in records], dtype=object)
        return cls(classes=classes, note=note, **columns)

    def take(self, rows: Array | slice) -> Self:
        return replace(super().take(rows), class_names=self.class_names)

    def named(self, class_names: Sequence[str]) -> Profile:
        """The same with names of all classes; of none, they are called by their numbers."""
        names, most = tuple(str(name) for name in class_names), int(self.classes.max(initial=-1)) + 1
        if names and len(names) < most:
            raise InputError(f"class_names: expected {most} names or more, found {len(names)}")
        return replace(self, class_names=names)

    @property
    def n_classes(self) -> int:
        """Of the network, where its classes have been named; else the largest that occurs, and 1."""
        return len(self.class_names) or int(self.classes.max(initial=-1)) + 1

    def name_of(self, k: int) -> str:
        """Of class k."""
        return self.class_names[k] if k < len(self.class_names) else str(k)

    def matrix(self, name: str) -> Array:
        """A column as (n_classes, n_classes): s down, t across, NaN where there is no such pair."""
        values = getattr(self, one_of(name, self.measures(), "name"))
        matrix = np.full((self.n_classes, self.n_classes), np.nan)
        matrix[self.classes[:, 0], self.classes[:, 1]] = values
        return matrix

    def most_fragile(self, k: int = 5, by: str | None = None, largest: bool = False) -> Profile:
        """The k pairs with the smallest (or ``largest``) value of a column, that first; NaN is left out.

        By default the column is the distance of the closest flip points, or where there are none that of
        embedding-nearest pairs.
        """
        k = as_whole(k, "k", least=1)
        by = by or ("closest_distance" if np.isfinite(self.closest_distance).any() else "epbs_distance")
        values = getattr(self, one_of(by, self.measures(), "by")).astype(np.float64)
        order = np.argsort(-values if largest else values, kind="stable")
        return self.take(order[np.isfinite(values[order])][:k])

    def correlation(self, one: str, other: str) -> Correlation:
        """Pearson's, of two columns over boundaries: the values of both directions are averaged first."""
        matrices = (self.matrix(name) for name in (one, other))
        upper = np.triu_indices(self.n_classes, 1)
        both = [np.stack([matrix[upper], matrix.T[upper]]) for matrix in matrices]
        known = np.isfinite(both).any(axis=1).all(axis=0)
        means = [np.nanmean(values[:, known], axis=0) for values in both]
        return pearson(means[0], means[1])

    def summary(self) -> str:
        """In plain words."""
        if len(self) == 0:
            return "No pairs of classes: there is nothing to say."
        found = [
            f"{words} for {percent(float(np.nanmedian(values)))}"
            for words, values in (
                ("random pairs of samples", self.rpbs_success),
                ("embedding-nearest pairs", self.epbs_success),
                ("the instances handed in", self.given_success),
                ("closest flip points", self.closest_success),
            )
            if np.isfinite(values).any()
        ]
        text = f"{counted(len(self), 'ordered pair')} of {self.n_classes} classes. "
        text += f"The boundary is reached by {', by '.join(found)} (median over the pairs). " if found else ""
        fragile = self.most_fragile(3)
        words = [f"“{self.name_of(s)}” to “{self.name_of(t)}”" for s, t in fragile.classes]
        text += f"The shortest ways lead from {', '.join(words)}. " if words else ""
        if np.isfinite(self.idc).any():
            low, high = np.nanmin(self.idc), np.nanmax(self.idc)
            text += f"IDC is between {low:.3f} and {high:.3f}. "
        noted = int((self.note != "").sum())
        return text.strip() + (
            f" For {counted(noted, 'pair')} something is missing: see the column note." * bool(noted)
        )

    def __str__(self) -> str:
        return self.summary()

    def plot(self, path: str | Path, **options: Any) -> None:
        """Draw heat maps to ``path``; see :func:`flipopt.report.draw_profile`."""
        later("report.borderline:draw_profile")(path, self, **options)

    def to_arrow(self) -> Any:
        """As a pyarrow table, the columns of the file."""
        import pyarrow as pa

        columns = self._columns()
        return pa.table({**columns, "note": pa.array(columns["note"], pa.string())})

    @classmethod
    def from_arrow(cls, table: Any) -> Profile:
        """From a pyarrow table of the same columns."""
        return cls._of_columns({name: table[name].to_numpy() for name in table.column_names})

    @classmethod
    def load(cls, path: str | Path, class_names: Sequence[str] = ()) -> Profile:
        """Read what :meth:`save` wrote, which does not hold the names of the classes."""
        file = Parquet(Path(path))
        wanted = ("i", "j", *cls.measures(), "note")
        missing = [name for name in wanted if name not in file.names]
        if missing:
            raise FileFormatError(f"{path}: expected the columns of a profile, found none called {missing[0]}")
        columns = file.read(wanted)
        for name in wanted[:-1]:
            if columns[name].dtype.kind not in "iuf":
                raise FileFormatError(f"{path}: column {name}: expected numbers, found {file.kind(name)}")
        pairs = np.column_stack([columns["i"], columns["j"]])
        if len(pairs) and not (np.isfinite(pairs).all() and (pairs >= 0).all() and (pairs < 2**15).all()):
            raise FileFormatError(f"{path}: columns i, j: expected classes, found {pairs.min():g} to {pairs.max():g}")
        return cls._of_columns(columns).named(class_names)

    @classmethod
    def _of_columns(cls, columns: dict[str, Array]) -> Profile:
        numbers: dict[str, Any] = {
            name: columns[name].astype(np.int64 if name in COUNTS else np.float64) for name in cls.measures()
        }
        classes = np.column_stack([columns["i"], columns["j"]]).astype(np.int64)
        return cls(classes=classes, note=columns["note"].astype(object), **numbers)
