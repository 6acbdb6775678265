"""What every model says of every image: kept in one file, with which most of 004 needs no networks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

import flipopt as fo
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_004.networks import Model, network, train
from benchmarks.reproduce.paper_004.sets import JUDGE, Sets, sets
from data_prep.datasets import Split, load_dataset
from flipopt.common.checks import Array
from flipopt.common.files import read_npz, write_npz
from flipopt.common.progress import progress_bar
from flipopt.networks.protocol import Network
from flipopt.runs.fingerprint import digest

STORE = "004-answers.npz"
AT_ONCE = 500
COLUMNS = ("predicted", "softmax", "test_predicted", "test_softmax", "accuracy")
DIGITS = tuple("0123456789")
Row = dict[str, Array]


@dataclass(frozen=True, eq=False)
class Answers:
    """What models say of the images of all choices, and of the test set.

    Attributes
    ----------
    models
        Which, as many as there are.
    sets
        The images.
    predicted, softmax
        Classes and the largest softmax, (models, choices * images).
    test_predicted, test_softmax
        The same of the test set.
    accuracy
        Percent of the test set, (models,).
    """

    models: tuple[Model, ...]
    sets: Sets = field(repr=False)
    predicted: Array = field(repr=False)
    softmax: Array = field(repr=False)
    test_predicted: Array = field(repr=False)
    test_softmax: Array = field(repr=False)
    accuracy: Array = field(repr=False)

    def __len__(self) -> int:
        return len(self.models)

    def where(self, chosen: Callable[[Model], bool]) -> Answers:
        """Some of the models."""
        rows = [k for k, model in enumerate(self.models) if chosen(model)]
        columns = {column: getattr(self, column)[rows] for column in COLUMNS}
        return replace(self, models=tuple(self.models[k] for k in rows), **columns)

    def at(self, target: float) -> Answers:
        """The models of one accuracy."""
        return self.where(lambda model: model.target == target)

    def at_all(self, targets: Sequence[float]) -> Answers:
        """The models whose recipe and seed have a network at every accuracy: only these show how it matters."""
        there = set(self.models)
        return self.where(lambda model: all(replace(model, target=target) in there for target in targets))

    def study(self, choice: int = 0, labels: fo.disagreement.Labels | None = None) -> fo.disagreement.Study:
        """Of one choice of latent vectors; without people it has no intervals."""
        part = self.sets.part(choice)
        return fo.disagreement.study(
            self.predicted[:, part],
            None,
            labels,
            softmax=self.softmax[:, part],
            blocks=self.sets.first.line,
            classes=DIGITS,
            resamples=0 if labels is None else 1000,
        )

    def studies(self) -> list[fo.disagreement.Study]:
        """One a choice."""
        return [self.study(choice) for choice in range(len(self.sets.choices))]


def answers(desk: Desk, models: Iterable[Model]) -> Answers:
    """Of those models that there are: from the file, or asked, and trained before where they have to be."""
    wanted, found = tuple(models), sets(desk)
    known = _read(desk, found)
    train(desk, [model for model in wanted if model.words not in known and not model.file(desk).exists()])
    new = [model for model in wanted if _is_new(desk, model, known)]
    with progress_bar("models asked", len(new), console=desk.console) as advance:
        for done, model in enumerate(new, 1):
            net = network(desk, model)
            if net is not None:
                known[model.words] = {**_asked(desk, net, found), "digest": np.array(_digest(desk, model))}
            advance(done)
    if new:
        _write(desk, found, known)
    there = tuple(model for model in wanted if model.words in known)
    return Answers(there, found, **_stacked([known[model.words] for model in there], found))


def _is_new(desk: Desk, model: Model, known: dict[str, Row]) -> bool:
    """Whether it has to be asked: it is not known, or another network of this name is there now."""
    row = known.get(model.words)
    return row is None or (model.file(desk).exists() and str(row["digest"]) != _digest(desk, model))


def _digest(desk: Desk, model: Model) -> str:
    """Of the network's file; a quick run has none."""
    return "" if desk.quick else digest(model.file(desk).read_bytes())[:16]


def _asked(desk: Desk, net: Network, found: Sets) -> Row:
    test = test_set(desk.quick)
    predicted, softmax = _says(net, found.images)
    test_predicted, test_softmax = _says(net, test.images.reshape(len(test.labels), -1) / 255)
    return {
        "predicted": predicted,
        "softmax": softmax,
        "test_predicted": test_predicted,
        "test_softmax": test_softmax,
        "accuracy": np.array(100 * np.mean(test_predicted == test.labels)),
    }


def _says(net: Network, X: Array) -> tuple[Array, Array]:
    """Classes and the largest softmax of rows, rounded as they are kept."""
    quick = getattr(net, "forward_only", net)
    P = np.concatenate([quick.probabilities(X[first : first + AT_ONCE]) for first in range(0, len(X), AT_ONCE)])
    return P.argmax(axis=1).astype(np.uint8), P.max(axis=1).astype(np.float16)


@cache
def test_set(quick: bool) -> Split:
    """The test images of MNIST, or in a quick run those that ship with the judge."""
    if not quick:
        return load_dataset("mnist").test
    shipped = fo.load_shipped(JUDGE)
    return Split(shipped.images, shipped.labels)


def _read(desk: Desk, found: Sets) -> dict[str, Row]:
    """What is kept, if it is of the same images, by the model's name."""
    path = desk.picture(STORE)
    if not path.exists():
        return {}
    arrays = read_npz(path, required=("key", "models", "digest", *COLUMNS))
    if str(arrays["key"]) != found.key:
        return {}
    columns = ("digest", *COLUMNS)
    return {
        str(name): {column: arrays[column][k] for column in columns} for k, name in enumerate(arrays["models"].tolist())
    }


def _write(desk: Desk, found: Sets, known: dict[str, Row]) -> None:
    names = sorted(known)
    arrays = {column: np.stack([known[name][column] for name in names]) for column in ("digest", *COLUMNS)}
    write_npz(desk.picture(STORE), {"key": np.array(found.key), "models": np.array(names), **arrays})


def _stacked(rows: Sequence[Row], found: Sets) -> dict[str, Array]:
    """Columns of models as arrays for computing, also of none."""
    if not rows:
        images = len(found.choices) * len(found.first)
        return {column: np.zeros((0,) if column == "accuracy" else (0, images)) for column in COLUMNS}
    kinds = {"predicted": np.int64, "test_predicted": np.int64}
    return {column: np.stack([row[column] for row in rows]).astype(kinds.get(column, np.float64)) for column in COLUMNS}
