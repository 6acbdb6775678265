"""Labels by people: a CSV file of answers, put together, checked, and as a table for a study."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from flipopt.common.checks import Array, as_sequence, as_whole
from flipopt.common.errors import FileFormatError, InputError
from flipopt.common.files import reading, require_file
from flipopt.common.limits import limits
from flipopt.common.quoting import listed, quoted
from flipopt.common.writing import write_synced
from flipopt.disagreement.votes import MISSING, MOST_CLASSES
from flipopt.explain.matching import counted

COLUMNS = ("labeller", "image", "label", "seconds")
HEADER = ",".join(COLUMNS)
LONGEST_NAME = 40
MOST_IMAGES = 2**24
MOST_ENTRIES = 2**27
"""Labellers times images."""


class Answer(NamedTuple):
    """One line of the file: who says of which image that it is of which class, after how many seconds."""

    labeller: str
    image: int
    label: int
    seconds: float

    def line(self) -> str:
        """As it is in the file, with the end of the line."""
        stream = io.StringIO()
        csv.writer(stream, lineterminator="\n").writerow([*self[:3], f"{self.seconds:.3f}"])
        return stream.getvalue()


@dataclass(frozen=True, eq=False)
class Labels:
    """What people say of images.

    Attributes
    ----------
    labellers
        Their names.
    labels
        Classes, (labellers, images); -1 where there is no answer.
    seconds
        How long each took, (labellers, images); NaN where it is not known.
    classes
        Their names, where they are known.
    rows
        Which images of a larger set these are, (images,), where that is known.
    anonymous
        Whether it is not known which labels are of one person: rows are then labels, in any order.
    """

    labellers: tuple[str, ...]
    labels: Array = field(repr=False)
    seconds: Array = field(repr=False)
    classes: tuple[str, ...] = ()
    rows: Array | None = field(default=None, repr=False)
    anonymous: bool = False

    @classmethod
    def of(cls, answers: Sequence[Answer], images: int | None = None, classes: Sequence[str] = ()) -> Labels:
        """Of answers, none of them double; labellers in the order in which they appear."""
        names = tuple(dict.fromkeys(answer.labeller for answer in answers))
        k = images if images is not None else max((answer.image for answer in answers), default=-1) + 1
        if len(names) * k > MOST_ENTRIES:
            raise InputError(f"labels: expected at most {MOST_ENTRIES:,} entries, found {len(names):,} times {k:,}")
        labels, seconds = np.full((len(names), k), MISSING), np.full((len(names), k), np.nan)
        places = {name: place for place, name in enumerate(names)}
        for name, image, label, took in answers:
            labels[places[name], image], seconds[places[name], image] = label, took
        return cls(names, labels, seconds, tuple(classes))

    @property
    def missing(self) -> dict[str, list[int]]:
        """The images that each labeller has not answered, of those that have not answered all."""
        rows = [(name, np.flatnonzero(row == MISSING)) for name, row in zip(self.labellers, self.labels, strict=True)]
        return {name: gaps.tolist() for name, gaps in rows if len(gaps)}

    def require_complete(self) -> None:
        """Raise unless every labeller has answered every image."""
        if gaps := self.missing:
            words = [
                f"{quoted(name)} lacks {counted(len(some), 'image')} ({listed(some, 5)})" for name, some in gaps.items()
            ]
            raise InputError(
                f"labels: expected an answer for every image by every labeller, but {'; '.join(words[:5])}"
            )

    def complete(self) -> Labels:
        """Only the labellers that have answered every image."""
        full = [k for k, row in enumerate(self.labels) if (row != MISSING).all()]
        names = tuple(self.labellers[k] for k in full)
        return replace(self, labellers=names, labels=self.labels[full], seconds=self.seconds[full])

    def answers(self) -> list[Answer]:
        """One a label, by labeller and image."""
        return [
            Answer(
                self.labellers[k], int(image), int(self.labels[k, image]), float(np.nan_to_num(self.seconds[k, image]))
            )
            for k, image in np.argwhere(self.labels != MISSING)
        ]

    def save(self, path: str | Path) -> None:
        """Write a CSV file as `flipopt label` does, whole or not at all."""
        lines = [answer.line() for answer in self.answers()]
        write_synced(Path(path), "".join([f"{HEADER}\n", *lines]).encode())

    def summary(self) -> str:
        """In plain words."""
        k, gaps = self.labels.shape[1], self.missing
        text = f"{counted(len(self.labellers), 'labeller')}, {counted(k, 'image')}, "
        text += f"{counted(int((self.labels != MISSING).sum()), 'answer')}."
        for name, some in gaps.items():
            text += f" {quoted(name)} lacks {counted(len(some), 'image')}."
        return text

    def __str__(self) -> str:
        return self.summary()


def read_labels(path: str | Path, images: int | None = None, classes: Sequence[str] | int | None = None) -> Labels:
    """The labels in a CSV file that `flipopt label`, or a form of it, has written.

    Parameters
    ----------
    path
        The file, which may be from anyone: what makes no sense is an error that names its line.
    images
        How many there are; an answer about another one is an error. By default up to the last that is answered.
    classes
        Names of the classes, or how many; another label is an error.
    """
    names = _names(classes)
    answers = read_answers(Path(path), images, len(names) or None)
    return Labels.of(answers, images, names)


def merge(parts: Iterable[Labels]) -> Labels:
    """Labels from several files together; a labeller may have parts in several, but no image twice."""
    found = list(as_sequence(parts, "parts", "labels"))
    if not found or not all(isinstance(part, Labels) for part in found):
        raise InputError("parts: expected labels, as read_labels returns them, found something else")
    if len({part.classes for part in found}) > 1 or any(part.rows is not None for part in found):
        raise InputError("parts: expected labels of the same images and classes, found others")
    answers = [answer for part in found for answer in part.answers()]
    seen: set[tuple[str, int]] = set()
    for answer in answers:
        if answer[:2] in seen:
            raise InputError(
                f"parts: expected one answer of {quoted(answer.labeller)} for image {answer.image}, found two"
            )
        seen.add(answer[:2])
    return Labels.of(answers, max(part.labels.shape[1] for part in found), found[0].classes)


def read_answers(path: Path, images: int | None, classes: int | None) -> list[Answer]:
    """The lines of a file; a last one without an end is an error like any other."""
    require_file(path, limits().text)
    with reading(path, "a CSV file"):
        text = path.read_text(encoding="utf-8-sig")
    return parsed(text, path, images, classes)


def parsed(text: str, path: Path, images: int | None, classes: int | None) -> list[Answer]:
    """The answers in the text of a file; errors name the file and the line."""
    with reading(path, "a CSV file"):
        lines = list(csv.reader(text.splitlines(), strict=True))
    if not lines or tuple(cell.strip() for cell in lines[0]) != COLUMNS:
        raise FileFormatError(f"{path}: expected a first line {HEADER}, found {listed(lines[0]) if lines else 'none'}")
    found: list[Answer] = []
    seen: dict[tuple[str, int], int] = {}
    for number, cells in enumerate(lines[1:], 2):
        if not cells:
            continue
        where = f"{path}: line {number}"
        if len(cells) != len(COLUMNS):
            raise FileFormatError(f"{where}: expected {len(COLUMNS)} cells, found {len(cells)}")
        answer = Answer(
            as_name(cells[0], where),
            _whole(cells[1], f"{where}: image", MOST_IMAGES if images is None else images),
            _whole(cells[2], f"{where}: label", MOST_CLASSES if classes is None else classes),
            _seconds(cells[3], where),
        )
        before = seen.setdefault(answer[:2], number)
        if before != number:
            who = quoted(answer.labeller)
            raise FileFormatError(
                f"{where}: a second answer of {who} for image {answer.image}; the first is line {before}"
            )
        found.append(answer)
    return found


def as_name(text: str, where: str) -> str:
    """The name of a labeller: short, of characters that show, and nothing that a spreadsheet would compute."""
    name = text.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable() or name[0] in "=+-@":
        raise FileFormatError(
            f"{where}: expected a name of 1 to {LONGEST_NAME} characters that does not begin with = + - @, found "
            f"{quoted(text)}"
        )
    return name


def _whole(text: str, where: str, below: int) -> int:
    """A whole number from 0 to ``below`` - 1."""
    cell = text.strip()
    if not (cell.isascii() and cell.isdigit() and len(cell) < 10 and int(cell) < below):
        raise FileFormatError(f"{where}: expected a whole number from 0 to {below - 1}, found {quoted(text)}")
    return int(cell)


def _seconds(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not 0 <= value < np.inf:
        raise FileFormatError(f"{where}: seconds: expected a number >= 0, found {quoted(text)}")
    return value


def _names(classes: Sequence[str] | int | None) -> tuple[str, ...]:
    if classes is None:
        return ()
    if isinstance(classes, int):
        return tuple(str(k) for k in range(as_whole(classes, "classes", least=2)))
    return tuple(str(name) for name in as_sequence(classes, "classes", "names"))
