"""Public sets of labels by people, from files that a user has: nothing is fetched, and nothing of them is shipped.

Nobody in these files is known by name, and where they hold counts alone not even which labels are of one person: rows
of the tables are then labels, in any order.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError
from flipopt.common.files import read_npy, reading, require_file
from flipopt.common.limits import limits
from flipopt.common.point_files import csv_lines
from flipopt.common.quoting import listed, quoted
from flipopt.disagreement.labels import MOST_ENTRIES, Labels
from flipopt.disagreement.votes import MISSING

DIGITS = tuple("0123456789")
CIFAR = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
NEITHER = "neither"
ANSWERS = ("given", "guessed", NEITHER)
MOST_PEOPLE = 10_000


def read_label_errors(path: str | Path, classes: tuple[str, ...] = DIGITS) -> Labels:
    """Labels of the images that Northcutt, Athalye and Mueller (2021) suspected of wrong labels, five workers each.

    Workers were asked whether an image shows its given label, the one that was guessed, or neither, which is a class
    of its own here, the last. Where both labels are the same one answer counts in both columns.

    Parameters
    ----------
    path
        A file such as ``mnist_mturk.json`` of https://github.com/cleanlab/label-errors; ``rows`` are its ids.
    classes
        Of the data set.
    """
    path = Path(path)
    entries = _json(path)
    if not isinstance(entries, list) or not entries:
        raise FileFormatError(f"{path}: expected a list of images, found {type(entries).__name__}")
    names = (*classes, NEITHER)
    counts, rows = np.zeros((len(entries), len(names)), dtype=np.int64), np.empty(len(entries), dtype=np.int64)
    for number, entry in enumerate(entries):
        where = f"{path}: entry {number}"
        given, guessed = (
            _class(entry, key, len(classes), where) for key in ("given_original_label", "our_guessed_label")
        )
        rows[number] = _count(entry, "id", where)
        answers = entry.get("mturk")
        first, second, neither = (_count(answers, key, f"{where}: mturk") for key in ANSWERS)
        if given == guessed and first != second:
            raise FileFormatError(
                f"{where}: expected the same count of the same label twice, found {first} and {second}"
            )
        counts[number, given] += first
        counts[number, guessed] += 0 if given == guessed else second
        counts[number, len(classes)] += neither
    return _of_counts(counts, names, rows, path)


def read_cifar_10h(path: str | Path) -> Labels:
    """Labels of the 10,000 test images of CIFAR-10, in its order, some 50 each (Peterson et al. 2019).

    ``path`` is ``cifar10h-counts.npy`` of https://github.com/jcpeterson/cifar-10h, (images, 10). Its licence, CC
    BY-NC-SA 4.0, allows no commercial use.
    """
    path = Path(path)
    counts = read_npy(path)
    if counts.ndim != 2 or counts.shape[1] != len(CIFAR) or counts.dtype.kind not in "iuf" or not len(counts):
        raise FileFormatError(f"{path}: expected counts (images, {len(CIFAR)}), found {counts.dtype} {counts.shape}")
    if not np.isfinite(counts).all() or (counts < 0).any() or (counts != np.rint(counts)).any():
        raise FileFormatError(f"{path}: expected counts as whole numbers, found others (those of the file of shares?)")
    return _of_counts(counts, CIFAR, None, path)


def read_varimnist(
    path: str | Path, labeller: str | None = None, image: str = "stimulus", label: str = "response"
) -> tuple[Labels, tuple[str, ...]]:
    """Labels of digits between two classes (Wei et al. 2025), a line an answer, and the names of the images' files.

    Parameters
    ----------
    path
        ``df_DigitRecog.csv`` of variMNIST, or any .csv file with a line an answer.
    labeller, image, label
        Columns: who answered, about which file, which digit. Without the first, answers are of nobody in particular;
        with it the last answer of a person about an image counts. Answers that are no digit are left out.
    """
    path = Path(path)
    lines = csv_lines(path)
    names = [cell.strip() for cell in next(lines, [])]
    wanted = [name for name in (image, label, labeller) if name is not None]
    missing = [name for name in wanted if name not in names]
    if missing:
        raise FileFormatError(f"{path}: expected a column {quoted(missing[0])}, found {listed(names, 30) or 'none'}")
    places = [names.index(name) for name in wanted]
    answers: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(lines, 2):
        if len(line) != len(names):
            raise FileFormatError(f"{path}: line {number}: expected {len(names)} cells, found {len(line)}")
        said = line[places[1]].strip().removesuffix(".0")
        if said in DIGITS:
            who = line[places[2]].strip() if labeller else str(number)
            answers[who, line[places[0]].strip()] = int(said)
    if not answers:
        raise FileFormatError(f"{path}: expected digits in the column {quoted(label)}, found none")
    files = tuple(sorted({file for _, file in answers}))
    at = {file: k for k, file in enumerate(files)}
    if labeller is None:
        counts = np.zeros((len(files), len(DIGITS)), dtype=np.int64)
        for (_, file), digit in answers.items():
            counts[at[file], digit] += 1
        return _of_counts(counts, DIGITS, None, path), files
    people = tuple(dict.fromkeys(who for who, _ in answers))
    _require_small(len(people) * len(files), path)
    row = {who: k for k, who in enumerate(people)}
    labels = np.full((len(people), len(files)), MISSING)
    for (who, file), digit in answers.items():
        labels[row[who], at[file]] = digit
    return Labels(people, labels, np.full(labels.shape, np.nan), DIGITS), files


def _of_counts(counts: Array, classes: tuple[str, ...], rows: Array | None, path: Path) -> Labels:
    """A table of labels, which are nobody's, with so many of each class (images, classes) for every image."""
    totals = counts.sum(axis=1).astype(np.int64)
    if totals.min() < 1 or totals.max() > MOST_PEOPLE:
        bad = int(np.flatnonzero((totals < 1) | (totals > MOST_PEOPLE))[0])
        raise FileFormatError(
            f"{path}: expected 1 to {MOST_PEOPLE} labels an image, found {totals[bad]} of image {bad}"
        )
    people = int(totals.max())
    _require_small(people * len(counts), path)
    labels = np.full((people, len(counts)), MISSING)
    for image, row in enumerate(counts.astype(np.int64)):
        labels[: totals[image], image] = np.repeat(np.arange(len(classes)), row)
    names = tuple(f"label {k + 1}" for k in range(people))
    return Labels(names, labels, np.full(labels.shape, np.nan), classes, rows, anonymous=True)


def _require_small(entries: int, path: Path) -> None:
    if entries > MOST_ENTRIES:
        raise FileFormatError(f"{path}: expected at most {MOST_ENTRIES:,} labellers times images, found {entries:,}")


def _json(path: Path) -> Any:
    require_file(path, limits().directory)
    with reading(path, "a JSON file"):
        return json.loads(path.read_text(encoding="utf-8"))


def _count(entry: Any, key: str, where: str) -> int:
    value = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise FileFormatError(f"{where}: expected a count {quoted(key)}, found {quoted(value)}")
    return value


def _class(entry: Any, key: str, classes: int, where: str) -> int:
    value = _count(entry, key, where)
    if value >= classes:
        raise FileFormatError(f"{where}: {key}: expected a class from 0 to {classes - 1}, found {value}")
    return value
