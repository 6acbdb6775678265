"""Thrift's compact protocol, as much of it as the headers in a Parquet file need.

https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
DEEPEST = 16
LONGEST_VARINT = 10


class Thrift:
    """Reads from ``data``; ``at`` is where it is. Anything wrong is an IndexError or a ValueError."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """The fields of a struct by number."""
        if depth > DEEPEST:
            raise ValueError("a header nested too deeply")
        fields: dict[int, Any] = {}
        number = 0
        while (mark := self._byte()) != 0:
            delta, kind = mark >> 4, mark & 15
            number = number + delta if delta else self._integer()
            fields[number] = kind == TRUE if kind in (TRUE, FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (TRUE, FALSE, BYTE):  # in a list; a field's truth is in its kind
            return self._byte()
        if kind in (I16, I32, I64):
            return self._integer()
        if kind == DOUBLE:
            return self._bytes(8)
        if kind == BINARY:
            return self._bytes(self._varint())
        if kind in (LIST, SET):
            return self._list(depth)
        if kind == STRUCT:
            return self.struct(depth=depth + 1)
        raise ValueError(f"a field of type {kind}")

    def _list(self, depth: int) -> list[Any]:
        mark = self._byte()
        count = mark >> 4 if mark >> 4 < 15 else self._varint()
        if count > len(self.data):
            raise ValueError(f"a list of {count} entries")
        if depth > DEEPEST:
            raise ValueError("a header nested too deeply")
        return [self._value(mark & 15, depth + 1) for _ in range(count)]

    def _byte(self) -> int:
        byte = self.data[self.at]
        self.at += 1
        return byte

    def _bytes(self, count: int) -> bytes:
        if count > len(self.data) - self.at:
            raise ValueError("a header that ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def _varint(self) -> int:
        number = 0
        for k in range(LONGEST_VARINT):
            byte = self._byte()
            number |= (byte & 127) << 7 * k
            if byte < 128:
                return number
        raise ValueError("a number of more than 64 bits")

    def _integer(self) -> int:
        number = self._varint()
        return (number >> 1) ^ -(number & 1)
