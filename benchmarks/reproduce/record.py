"""What a study leaves behind: published numbers beside ours, claims that hold or do not, pictures, all as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.reproduce.published import printed_digit, published
from flipopt.common.writing import atomic_path

Kind = Literal["measured", "setting", "at most", "at least"]
ABOUT = 2.0
"""Standard deviations of ours within which a published number counts as the same."""


@dataclass(frozen=True)
class Number:
    """A published number and ours.

    Attributes
    ----------
    name
        Of the published one.
    what
        What it is, in words, with its unit.
    ours
        Ours; the mean, if there are several.
    why
        One sentence: how ours was found, or why it differs.
    spread, count, over
        Standard deviation of ours over ``count`` values, and what these are, "seeds" for example.
    kind
        A figure that is measured, a setting that is chosen, or a limit that ours should keep, above or below.
    """

    name: str
    what: str
    ours: float | None
    why: str
    spread: float | None = None
    count: int = 1
    over: str = ""
    kind: Kind = "measured"

    def __post_init__(self) -> None:
        if self.name not in published():
            raise KeyError(f"{self.name}: not a published number")

    @property
    def published(self) -> float:
        return published()[self.name]

    @property
    def same(self) -> bool | None:
        """Whether ours is the published one; None without ours.

        A setting must be equal. What is measured may be off by half of the last digit that is printed, or by two
        standard deviations of ours.
        """
        if self.ours is None or not np.isfinite(self.ours):
            return None
        if self.kind == "setting":
            return bool(np.isclose(self.ours, self.published, rtol=1e-9))
        if self.kind == "at most":
            return self.ours <= self.published
        if self.kind == "at least":
            return self.ours >= self.published
        allowed = max(printed_digit(self.name) / 2, ABOUT * (self.spread or 0.0))
        return abs(self.ours - self.published) <= allowed * (1 + 1e-9)


def over_seeds(name: str, what: str, values: Sequence[float], why: str, over: str = "seeds") -> Number:
    """A number that is the mean of several, with their standard deviation."""
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Number(name, what, float(np.mean(values)), why, spread, len(values), over)


def setting(name: str, what: str, ours: float, why: str = "A setting, taken over.") -> Number:
    """A number that is chosen, not measured."""
    return Number(name, what, ours, why, kind="setting")


@dataclass(frozen=True)
class Claim:
    """Something that the paper says of all its networks and images.

    Attributes
    ----------
    text
        What it says, in our words.
    where
        The section or figure.
    evidence
        What we found, a sentence with figures.
    holds
        Whether it does, by what it was looked at on: "seed 0", "seed 1", ...
    """

    text: str
    where: str
    evidence: str
    holds: Mapping[str, bool]

    @property
    def verdict(self) -> str:
        return "holds" if all(self.holds.values()) else "mixed" if any(self.holds.values()) else "does not hold"


@dataclass(frozen=True)
class Picture:
    """A file beside the JSON, and what it shows, to be understood without the paper."""

    file: str
    caption: str


@dataclass(frozen=True)
class Sheet:
    """A small table of its own."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Record:
    """What a study found.

    Attributes
    ----------
    title, summary
        Of its section on the page; the summary says in words what was done and found.
    setup
        What decides the outcome, by name.
    seeds
        Of the networks or draws.
    numbers, claims, pictures, sheets
        What it found.
    figures
        Further figures of ours that the paper has nothing beside, by name.
    """

    title: str
    summary: str
    setup: Mapping[str, Any]
    seeds: Sequence[int]
    numbers: Sequence[Number] = ()
    claims: Sequence[Claim] = ()
    pictures: Sequence[Picture] = ()
    sheets: Sequence[Sheet] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As it is written: numbers with what is published, claims with their verdict."""
        plain = asdict(self)
        plain["numbers"] = [
            {**asdict(number), "published": number.published, "same": number.same} for number in self.numbers
        ]
        plain["claims"] = [{**asdict(claim), "verdict": claim.verdict} for claim in self.claims]
        return _plain(plain)  # type: ignore[no-any-return]


def write(path: Path, record: Record, facts: Mapping[str, Any]) -> None:
    """The record and the ``facts`` of its run (command, time, machine), whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps({**_plain(facts), **record.to_json()}, indent=1, allow_nan=False) + "\n")


def _plain(value: Any) -> Any:
    """For JSON: no arrays, no NaN, floats of six digits."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}") if np.isfinite(value) else None
    return value.item() if isinstance(value, np.generic) else value
