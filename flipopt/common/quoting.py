"""Text out of files, as messages show it: short, and nothing in it that a terminal would obey."""

from __future__ import annotations

from collections.abc import Iterable

LONGEST = 60


def quoted(text: object, longest: int = LONGEST) -> str:
    """A name or value out of a file, in quotes."""
    return repr(_cut(text if isinstance(text, str) else str(text), longest))


def listed(names: Iterable[object], most: int = 8) -> str:
    """Names out of a file, the first few of them."""
    shown = [plain(str(name)) for name in names]
    return ", ".join(shown[:most]) + (", ..." if len(shown) > most else "")


def brief(error: BaseException, longest: int = 200) -> str:
    """The first line of an error of another package, which may repeat what is in the file."""
    lines = str(error).strip().splitlines()
    return plain(lines[0], longest) if lines else type(error).__name__


def plain(text: str, longest: int = LONGEST) -> str:
    """Text without quotes; what is not printable is escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in _cut(text, longest))


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 3] + "..."
