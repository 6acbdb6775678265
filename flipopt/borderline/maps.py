"""The autoencoders of DeepDIG in a table: what each has learned, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Self

import numpy as np

from flipopt.borderline.autoencoders import Architecture, Autoencoder
from flipopt.borderline.learning import Learned, Lesson
from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError
from flipopt.common.tables import Table
from flipopt.explain.matching import counted, percent

WHOLE = ("component", "seed", "inputs", "tries", "steps")
REAL = (
    "alpha",
    "accuracy",
    "accuracy_all",
    "success",
    "success_all",
    "error",
    "error_all",
    "variance",
    "seconds",
)
ROMAN = {1: "I", 2: "II"}


class MapStatus(Enum):
    """How the training of a map ended: a status that carries its message."""

    TRAINED = "trained"
    COLLAPSED = "collapsed: its outputs are as far from its inputs as one and the same image would be"
    TOO_FEW = "not trained: fewer than two inputs to learn from"

    @property
    def message(self) -> str:
        return self.value


@dataclass(frozen=True, eq=False)
class Maps(Table):
    """One record an autoencoder. The measures without ``_all`` are of the inputs held back for validation.

    Attributes
    ----------
    classes
        (s, t), (maps, 2).
    component
        1: from samples of class s to class t; 2: from what that has made back to class s.
    seed
        The seed that the caller chose.
    alpha
        Weight of the class in the loss.
    inputs
        Samples of class s; for component II those that the network puts in s and component I has led to t.
    tries
        How often it was trained, from other weights each time.
    accuracy, accuracy_all
        Share of the inputs that are predicted as s after the map: near 0 for component I and near 1 for II (Tables 3
        to 5 of the paper).
    success, success_all
        Share that are in the class that the map leads to, of those that were in the other one before.
    error, error_all
        Squared error of the map: summed over the numbers of an input, in the mean over inputs.
    variance
        Mean squared distance of all inputs from their mean: what a map to one image is off by, at least.
    collapsed
        Whether ``error_all`` is not below ``variance``.
    steps, seconds
        Steps of a training, and the seconds of all tries, as a share of what was trained together.
    status
        A :class:`MapStatus` each.
    """

    classes: Array
    component: Array
    seed: Array
    alpha: Array
    inputs: Array
    tries: Array
    accuracy: Array
    accuracy_all: Array
    success: Array
    success_all: Array
    error: Array
    error_all: Array
    variance: Array
    collapsed: Array
    steps: Array
    seconds: Array
    status: Array

    @classmethod
    def of(cls, records: Sequence[dict[str, Any]]) -> Self:
        """From a record a map, which may lack measures."""
        columns: dict[str, Any] = {name: np.array([record[name] for record in records], dtype=int) for name in WHOLE}
        columns |= {name: np.array([record.get(name, np.nan) for record in records], dtype=float) for name in REAL}
        classes = np.array([record["classes"] for record in records], dtype=int).reshape(-1, 2)
        status = np.array([record["status"] for record in records], dtype=object)
        return cls(classes=classes, status=status, collapsed=status == MapStatus.COLLAPSED, **columns)

    @property
    def message(self) -> Array:
        """How each training ended, in words, (maps,)."""
        return np.array([status.message for status in self.status], dtype=object)

    @property
    def trained(self) -> Array:
        """Which have weights, (maps,) bool."""
        return np.array([status is not MapStatus.TOO_FEW for status in self.status], dtype=bool)

    def summary(self) -> str:
        """In plain words."""
        text = [
            f"{counted(int(some.sum()), 'map')} of component {ROMAN[component]}: success "
            f"{percent(float(np.median(self.success[some])))}, error {np.median(self.error[some]):.3g} of "
            f"{np.median(self.variance[some]):.3g} (medians)"
            for component in ROMAN
            if (some := self.trained & (self.component == component)).any()
        ]
        other = [
            f"{counted(int(some.sum()), 'map')} {status.message}"
            for status in (MapStatus.COLLAPSED, MapStatus.TOO_FEW)
            if (some := self.status == status).any()
        ]
        return ". ".join([*text, *other, ""]).strip() or "No maps."

    def __str__(self) -> str:
        return self.summary()

    def _columns(self) -> dict[str, Any]:
        columns = super()._columns()
        columns["status"] = np.array([status.name for status in self.status], dtype=object)
        return columns | {"message": self.message}


def record(lesson: Lesson, found: Learned | None, steps: int) -> dict[str, Any]:
    """The record of a map."""
    known = {
        "classes": lesson.classes,
        "component": lesson.component,
        "seed": lesson.source,
        "alpha": lesson.alpha,
        "inputs": len(lesson.inputs),
        "variance": lesson.variance,
        "steps": steps,
    }
    if found is None:
        return known | {"tries": 0, "seconds": 0.0, "status": MapStatus.TOO_FEW}
    measures = {name: getattr(found, name) for name in REAL if name not in known}
    status = MapStatus.COLLAPSED if found.collapsed else MapStatus.TRAINED
    return known | measures | {"tries": found.tries, "status": status}


@dataclass(frozen=True, eq=False)
class Trained:
    """Maps and their weights: what a run keeps.

    Attributes
    ----------
    maps
        A record each.
    weights
        Weights and biases in turn, as the bytes of float32; none of a map that was not trained.
    """

    maps: Maps
    weights: list[bytes] = field(default_factory=list)

    @classmethod
    def of(cls, lessons: Sequence[Lesson], found: Sequence[Learned | None], steps: int) -> Trained:
        """From what was to be learned and what came of it."""
        records = [record(lesson, one, steps) for lesson, one in zip(lessons, found, strict=True)]
        weights = [b"" if one is None else b"".join(np.asarray(p, "<f4").tobytes() for p in one.parts) for one in found]
        return cls(Maps.of(records), weights)

    @classmethod
    def join(cls, parts: Sequence[Trained]) -> Trained:
        """All of them, one after the other."""
        return cls(Maps.join([part.maps for part in parts]), [some for part in parts for some in part.weights])

    def autoencoders(self, architecture: Architecture) -> dict[tuple[int, int, int, int], Autoencoder]:
        """The trained ones by (s, t, component, seed)."""
        return {
            key: Autoencoder.of(architecture, architecture.parts(content))
            for key, content in zip(keys(self.maps), self.weights, strict=True)
            if content
        }

    def to_arrow(self) -> Any:
        """As a pyarrow table, a row a map."""
        import pyarrow as pa

        columns = {name: values for name, values in self.maps._columns().items() if name != "message"}
        return pa.table({**columns, "weights": pa.array(self.weights, pa.large_binary())})

    @classmethod
    def from_arrow(cls, table: Any) -> Trained:
        """From such a table."""
        columns = table.to_pydict()
        weights = columns.pop("weights")
        return cls(
            as_maps([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]), weights
        )


def keys(maps: Maps) -> list[tuple[int, int, int, int]]:
    """(s, t, component, seed) of every map."""
    columns = (*maps.classes.T, maps.component, maps.seed)
    return [(int(s), int(t), int(c), int(seed)) for s, t, c, seed in zip(*columns, strict=True)]


def plain_records(maps: Maps) -> list[dict[str, Any]]:
    """A record each of numbers and text, as a JSON file has them: no number is None."""
    columns = {name: values.tolist() for name, values in maps._columns().items() if name != "message"}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [{name: None if value != value else value for name, value in row.items()} for row in rows]


def as_maps(rows: Sequence[dict[str, Any]]) -> Maps:
    """From such records of anyone."""
    records = []
    for row in rows:
        try:
            found: dict[str, Any] = {name: _whole(row[name]) for name in (*WHOLE, "i", "j")}
            found |= {name: np.nan if row.get(name) is None else float(row[name]) for name in REAL}
            found |= {"classes": (found["i"], found["j"]), "status": MapStatus[row["status"]]}
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"maps: not a record of an autoencoder: {type(error).__name__} {error}") from error
        if found["component"] not in ROMAN:
            raise FileFormatError(f"maps: expected component 1 or 2, found {found['component']}")
        records.append(found)
    return Maps.of(records)


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**62:
        raise ValueError(f"expected a whole number >= 0, found {value!r:.40}")
    return value
