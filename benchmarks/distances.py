"""Distances that attacks have found, by network, attack and image, in a file (.json).

They take hours and do not change when flipopt does. A network is named by a fingerprint, so another one of the same
name has none. In the file they are a list for every attack, with the seconds of all images where those are known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import count, takewhile
from pathlib import Path
from typing import Any

from rich.console import Console

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError
from flipopt.common.writing import storing, write_synced
from flipopt.runs import ledger
from flipopt.runs.rows import Row, Sheet


class DistanceSheet(Sheet):
    """Rows are images; the seconds of one are its share."""

    def read(self, path: Path) -> list[Row]:
        return [
            row
            for network, attacks in _lists(path).items()
            for attack, found in attacks.items()
            for row in rows_of(network, attack, found["distances"], found["seconds"])
        ]

    def write(self, path: Path, rows: Sequence[Row]) -> None:
        by_image: dict[str, dict[str, dict[int, Row]]] = {}
        for row in rows:
            by_image.setdefault(row["network"], {}).setdefault(row["attack"], {})[int(row["image"])] = row
        lists = {
            network: {attack: _list_of(found) for attack, found in attacks.items()}
            for network, attacks in by_image.items()
        }
        text = json.dumps(lists)
        end = "}," if '"seconds"' in text else "],"  # of an attack: each has a line
        write_synced(path, (text.replace(f"{end} ", f"{end}\n") + "\n").encode())


SHEET = DistanceSheet(("network", "attack", "image", "distance", "seconds"), key=("network", "attack", "image"))


def keeping(path: Path, console: Console) -> AbstractContextManager[Callable[[Iterable[Row]], None]]:
    """A function that adds rows; inside the block the file has all that are known."""
    return ledger.keeping(path, SHEET, "distances of attacks", tell=console.print)


def known(path: Path, network: str, attack: str) -> tuple[list[float], float]:
    """Distances of the first images, as many as there are, and seconds in total; not a number if they are not known."""
    found = _lists(path).get(network, {}).get(attack, {"distances": [], "seconds": 0.0})
    return found["distances"], float("nan") if found["seconds"] is None else found["seconds"]


def rows_of(
    network: str, attack: str, distances: Array | Sequence[float], seconds: float | None = None, first: int = 0
) -> Iterator[Row]:
    """A row an image, from number ``first`` on; distances have nine digits."""
    share = "" if seconds is None else seconds / len(distances)
    for image, distance in enumerate(distances, first):
        head = {"network": network, "attack": attack, "image": image}
        yield head | {"distance": float(f"{distance:.9g}"), "seconds": share}


def _lists(path: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """What is in a file, or nothing; seconds are None where they are not known."""
    if not path.exists():
        return {}
    try:
        with storing(path):
            networks = json.loads(path.read_bytes())
        return {
            network: {
                attack: found if isinstance(found, dict) else {"distances": found, "seconds": None}
                for attack, found in attacks.items()
            }
            for network, attacks in networks.items()
        }
    except (ValueError, AttributeError) as error:
        raise FileFormatError(f"{path}: expected distances by network and attack, found {error}") from error


def _list_of(images: dict[int, Row]) -> list[float] | dict[str, Any]:
    """Those of the images before the first that is missing."""
    rows = [images[image] for image in takewhile(images.__contains__, count())]
    distances = [float(row["distance"]) for row in rows]
    if any(row["seconds"] == "" for row in rows):
        return distances
    return {"seconds": round(sum(float(row["seconds"]) for row in rows), 3), "distances": distances}
