"""What a file from a stranger may take: one size, which ``FLIPOPT_MAX_BYTES`` raises, and the rest in proportion."""

from __future__ import annotations

import os
from dataclasses import dataclass

from flipopt.common.errors import FileFormatError, InputError

VARIABLE = "FLIPOPT_MAX_BYTES"
DEFAULT = 2**29


class LimitError(FileFormatError):
    """A file that would take more memory or time than allowed; the message says how to allow more."""


@dataclass(frozen=True)
class Limits:
    """Limits that follow from ``size``; every number read counts as 8 bytes, whatever its type."""

    size: int = DEFAULT
    """Bytes of a file, of what it unpacks to, and of the numbers in it."""

    @property
    def text(self) -> int:
        """Bytes of a CSV file or of all files in a folder of them: text takes longer than numbers do."""
        return self.size // 16

    @property
    def model(self) -> int:
        """Bytes that the protobuf of an ONNX file and the data beside it take in memory."""
        return self.size // 2

    @property
    def directory(self) -> int:
        """Bytes of what says where things are, or of one line: a zip's directory, a Parquet footer, a JSON file."""
        return self.size // 32

    @property
    def pages(self) -> int:
        """Pages of a Parquet file."""
        return self.size // 2**13

    @property
    def nodes(self) -> int:
        """Nodes of an ONNX graph, those of the graphs within it included."""
        return self.size // 2**15

    @property
    def elements(self) -> int:
        """Numbers that the tensors of a graph hold together while it is tried on a few rows."""
        return self.size // 4

    @property
    def work(self) -> int:
        """Multiplications that a graph may take while it is tried on a few rows."""
        return self.size * 256


def limits() -> Limits:
    """Those in force."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return Limits()
    if not text.isascii() or not text.isdigit() or not 0 < len(text) < 19 or int(text) == 0:
        raise InputError(f"{VARIABLE}: expected a whole number of bytes, found {text[:40]!r}")
    return Limits(int(text))


def require_within(size: int, limit: int, what: str) -> None:
    """Raise unless ``size`` is at most ``limit``; ``what`` names the file and place, and ends in a unit."""
    if size > limit:
        needed = -(-size * limits().size // limit)
        raise LimitError(f"{what}: expected at most {limit}, found {size}; {VARIABLE}={needed} allows it")
