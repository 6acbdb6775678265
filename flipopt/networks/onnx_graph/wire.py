"""The size of a protobuf in memory, from its bytes and before it is parsed: ten of them can become a thousand.

https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from flipopt.common.limits import require_within

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MESSAGE_BYTES, ENTRY_BYTES, FLOAT_BYTES = 1024, 128, 32
"""What a message, an entry of a list (of text, integers) and a float in one count as: memory, and time to look."""
PACKED = 10
"""Growth of packed integers, of which a byte may be one."""
DEEPEST = 32
"""Messages within messages: a tensor in a branch in a branch is 11 deep."""
LONGEST_VARINT = 10
AHEAD = 4096
"""Numbers of a list that are skipped at once: attributes hold the coefficients of linear models one by one."""


def require_small(data: bytes, kind: Descriptor, limit: int, where: str) -> None:
    """Raise unless ``data``, a message ``kind``, takes at most ``limit`` bytes; ValueError if it is no message."""
    view = np.frombuffer(data, dtype=np.uint8)
    left: list[tuple[int, int, Descriptor]] = [(0, len(data), kind)]
    taken = MESSAGE_BYTES
    depths = [0]
    while left:
        at, end, kind = left.pop()
        depth = depths.pop()
        if depth > DEEPEST:
            raise ValueError(f"messages nested more than {DEEPEST} deep")
        inner, packed, text = _fields(kind)
        while at < end:
            if taken > limit:
                break
            tag, start = _varint(data, at)
            number, wire = tag >> 3, tag & 7
            if wire == BYTES:
                length, start = _varint(data, start)
                if number in inner:
                    taken += MESSAGE_BYTES
                    left.append((start, start + length, inner[number]))
                    depths.append(depth + 1)
                else:
                    taken += (PACKED if number in packed else 1) * length + (ENTRY_BYTES if number in text else 0)
                at = start + length
            elif wire == FIXED32 and start == at + 1:
                count = _run(view[at : min(end, at + 5 * AHEAD) : 5], tag)
                at, taken = at + 5 * count, taken + FLOAT_BYTES * count
            else:
                at, taken = _after(data, start, wire), taken + ENTRY_BYTES
        require_within(taken, limit, f"{where}: bytes that it takes in memory")
        if at > end:
            raise ValueError("a message ends after the one that it is in")


def _run(tags: Any, tag: int) -> int:
    """How many entries at the front are ``tag``."""
    others = np.flatnonzero(tags != tag)
    return int(others[0]) if len(others) else len(tags)


def _after(data: bytes, at: int, wire: int) -> int:
    if wire == VARINT:
        return _varint(data, at)[1]
    if wire in (FIXED64, FIXED32):
        return at + (8 if wire == FIXED64 else 4)
    raise ValueError(f"a field of wire type {wire}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    number = 0
    for k in range(LONGEST_VARINT):
        byte = data[at + k]
        number |= (byte & 127) << 7 * k
        if byte < 128:
            return number, at + k + 1
    raise ValueError("a number of more than 64 bits")


@cache
def _fields(kind: Descriptor) -> tuple[dict[int, Descriptor], frozenset[int], frozenset[int]]:
    """Numbers of the fields that are messages, and their types; of integers; of text and bytes."""
    fields = list(kind.fields)
    texts = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
    floats = (FieldDescriptor.TYPE_FLOAT, FieldDescriptor.TYPE_DOUBLE)
    text = frozenset(field.number for field in fields if field.type in texts)
    packed = {field.number for field in fields if field.message_type is None and field.type not in (*texts, *floats)}
    return {field.number: field.message_type for field in fields if field.message_type}, frozenset(packed), text
