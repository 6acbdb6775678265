"""What the papers publish, number by number (published.json), by names such as 002.table_1.NET1.0."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("published.json")


@cache
def published() -> dict[str, float]:
    """Every number of the papers, in the papers' order."""
    return dict(_leaves(json.loads(FILE.read_text()), ""))


def _leaves(tree: Any, name: str) -> Iterator[tuple[str, float]]:
    if isinstance(tree, dict | list):
        for key, part in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from _leaves(part, f"{name}.{key}" if name else str(key))
    else:
        yield name, tree


DECIMALS = {
    "000.table_3_4_5_component_accuracy": 2,
    "003.table_1_std_of_generated": 4,
    "003.table_2_discriminator_cosine_similarity": 3,
}
"""Tables whose numbers are all printed with as many decimals, 1.00 for 1."""


def printed_digit(name: str) -> float:
    """One unit of the last digit of a published number."""
    table = ".".join(name.split(".")[:2])
    return 10.0 ** -DECIMALS[table] if table in DECIMALS else last_digit(published()[name])


def last_digit(value: float) -> float:
    """One unit of the last digit that is printed: 0.01 for 97.62, 1 for 98, 1e-7 for 1e-7."""
    text = repr(value).removesuffix(".0")
    mantissa, _, exponent = text.partition("e")
    return float(10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])))
