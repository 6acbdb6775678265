"""The page docs/explanation/reproduction.md, written from the records' JSON and from nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.reproduce.published import printed_digit, published
from benchmarks.reproduce.record import Record
from flipopt.common.errors import InputError
from flipopt.common.writing import atomic_path

PAGE = Path("docs/explanation/reproduction.md")
RESULTS = "../../benchmarks/results/reproduction"
"""From the page."""
WORDS = Path(__file__).with_name("words.md")
"""What the page says beside figures: how to read it, and what cannot be known from the papers."""
PAPERS = {
    "002": "Deep learning interpretation: flip points and homotopy methods (2020)",
    "001": "Investigating decision boundaries of trained neural networks (2019)",
    "000": "Characterizing the decision boundary of deep neural networks, DeepDIG (2019)",
    "003": "Explorative sampling considering the generative boundaries of generative networks, E-GBAS (2020)",
    "004": "Examining neural network behavior at the classification boundary (2021)",
}
TINY = 1e-3
"""Numbers below are written with an exponent."""
Json = Mapping[str, Any]
NOT_RUN = {
    "CIFAR10_": "The two classifiers for CIFAR-10 are built and counted here, and want a GPU: `python -m models train "
    "deepdig-cifar-resnet34 --device cuda` and the same of `deepdig-cifar-googlenet` train them, and `flipopt "
    "borderline NET.onnx images.npy --labels labels.npy --pair 1 2 --maps FOLDER` the autoencoders of their pair of "
    "classes, which are then measured.",
}
"""Why numbers whose names have a part are not run, and what runs them."""


def write(results: Path, order: Sequence[str] = (), path: Path = PAGE) -> None:
    """Write the page anew from all records in the folder."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: expected to be run in a checkout, found no folder {path.parent}")
    with atomic_path(path) as temporary:
        temporary.write_text(render(read(results, order)))


def read(results: Path, order: Sequence[str] = ()) -> list[Json]:
    """The records of full runs in a folder, in the given order of studies."""
    records = [json.loads(path.read_text()) for path in sorted(results.glob("*.json"))]
    places = {name: k for k, name in enumerate(order)}
    full = [record for record in records if not record["quick"]]
    return sorted(full, key=lambda record: (places.get(record["study"], len(places)), record["study"]))


def render(records: Sequence[Json]) -> str:
    """The whole page."""
    words = dict(part.split("\n", 1) for part in WORDS.read_text().split("\n%% ")[1:])
    lines = ["# The papers' figures beside ours", "", _differences(records), "", words["How to read this"].strip(), ""]
    lines += [_counts(records), ""]
    for number, title in PAPERS.items():
        mine = [record for record in records if record["study"].startswith(number)]
        lines += [f"## {number}: {title}", ""]
        for record in mine:
            lines += [*_section(record), ""]
        lines += _missing(number, mine)
    lines += ["## What cannot be known from the papers", "", words["What cannot be known"].strip(), ""]
    return "\n".join(lines)


def _missing(paper: str, records: Sequence[Json]) -> list[str]:
    """The numbers of a paper that no record has."""
    known = {number["name"] for record in records for number in record["numbers"]}
    rows = [[f"`{name}`", printed(value), "—"] for name, value in published().items() if name.startswith(paper)]
    left = [row for row in rows if row[0].strip("`") not in known]
    why = [words for part, words in NOT_RUN.items() if any(part in row[0] for row in left)]
    return ["### Not run yet", "", *why, "", *_table([["number", "published", "ours"], *left]), ""] if left else []


def _differences(records: Sequence[Json]) -> str:
    """The first paragraph: claims that do not hold here, in direction and not only in size."""
    against = [
        f"{claim['text']} ([{record['study'][:3]}, {claim['where']}](#{_anchor(record['title'])}): {_verdict(claim)})"
        for record in records
        for claim in record["claims"]
        if claim["verdict"] != "holds"
    ]
    total = sum(len(record["claims"]) for record in records)
    if not against:
        return f"**All {total} claims** of the papers that were looked at hold here in direction."
    said = "; ".join(f"({k}) {text}" for k, text in enumerate(against, 1))
    return (
        f"**Of {total} claims of the papers that were looked at, {len(against)} do not hold here in direction, or "
        f"not on every network looked at:** {said}. What was found instead is in the sections below."
    )


def _anchor(title: str) -> str:
    """Of a heading."""
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def _counts(records: Sequence[Json]) -> str:
    """How many numbers there are, and how many are the same."""
    rows = [["paper", "numbers", "settings taken over", "measured, the same", "measured, not the same", "not run"]]
    for paper in PAPERS:
        numbers = [n for record in records for n in record["numbers"] if n["name"].startswith(paper)]
        names = [name for name in published() if name.startswith(paper)]
        measured = [n for n in numbers if n["kind"] != "setting"]
        settings = sum(n["kind"] == "setting" and n["same"] is True for n in numbers)
        same, other = (sum(n["same"] is value for n in measured) for value in (True, False))
        other += sum(n["kind"] == "setting" and n["same"] is False for n in numbers)
        rows.append(
            [paper, *(str(k) for k in (len(names), settings, same, other, len(names) - settings - same - other))]
        )
    return "\n".join(_table(rows))


def _section(record: Json) -> Iterator[str]:
    yield f"### {record['title']}"
    yield ""
    yield record["summary"]
    yield ""
    if record["claims"]:
        rows = [["claim", "where", "here", "what we found"]]
        rows += [[claim["text"], claim["where"], _verdict(claim), claim["evidence"]] for claim in record["claims"]]
        yield from [*_table(rows), ""]
    if record["numbers"]:
        yield from [*_table([["number", "published", "ours", "same", "why"], *map(number_row, record["numbers"])]), ""]
    for sheet in record["sheets"]:
        yield from [f"*{sheet['title']}*", "", *_table([list(sheet["head"]), *map(list, sheet["rows"])]), ""]
    for picture in record["pictures"]:
        yield from [
            f"![{_one_line(picture['caption'])}]({RESULTS}/{picture['file']})",
            "",
            f"*{picture['caption']}*",
            "",
        ]
    yield (
        f"`{record['command']}`, {_time(record['seconds'])} on {record['cores']} cores ({record['cpu']}); seeds "
        f"{', '.join(map(str, record['seeds']))}; every figure is in "
        f"`benchmarks/results/reproduction/{record['study']}.json`."
    )


def number_row(number: Json) -> list[str]:
    """A published number, ours beside it, whether they are the same, and why."""
    same = {True: "yes", False: "no", None: "not run"}[number["same"]]
    return [number["what"], printed(number["published"]), ours(number), same, number["why"]]


def printed(value: float) -> str:
    """A published number, or a setting: whole numbers in full."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:g}"


def ours(number: Json) -> str:
    """Ours, with a digit more than the published one has, and its spread."""
    if number["ours"] is None:
        return "—"
    if number["kind"] == "setting":
        return printed(number["ours"])
    if 0 < number["ours"] < TINY:
        spread = "" if number["spread"] is None else f" ± {number['spread']:.1g} ({number['count']} {number['over']})"
        return f"{number['ours']:.3g}{spread}"
    digits = _digits(number)
    text = f"{number['ours']:,.{digits}f}" if number["ours"] < 1e6 else f"{number['ours']:.3g}"
    if number["spread"] is None:
        return text
    return f"{text} ± {number['spread']:.{digits}f} ({number['count']} {number['over']})"


def _digits(number: Json) -> int:
    """Decimals: one more than the published number has, and enough for the spread to show."""
    printed = round(-math.log10(printed_digit(number["name"])))
    spread = math.ceil(-math.log10(number["spread"])) if number["spread"] else 0
    return max(0, printed + 1, spread)


def _verdict(claim: Json) -> str:
    """With what it was looked at on, where that differs."""
    if claim["verdict"] != "mixed":
        return f"{claim['verdict']} ({'; '.join(claim['holds'])})"
    no = "; ".join(name for name, value in claim["holds"].items() if not value)
    yes = "; ".join(name for name, value in claim["holds"].items() if value)
    return f"holds for {yes}, not for {no}"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    head, *body = [f"| {' | '.join(_one_line(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return [head, "|" + "---|" * len(rows[0]), *body]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def show(record: Record, console: Console) -> None:
    """A record on the terminal."""
    plain = record.to_json()
    console.print(record.summary)
    if plain["numbers"]:
        table = Table("number", "published", "ours", "same")
        for number in plain["numbers"]:
            table.add_row(*number_row(number)[:4])
        console.print(table)
    for claim in plain["claims"]:
        console.print(f"{claim['text']}: [bold]{_verdict(claim)}[/]. {claim['evidence']}")
