"""What a thing is, as a short text: equal for equal things, on any machine and in any process.

Arrays count by their values, objects by their class and what they hold, functions by their code and what they close
over. So a network that was trained further, or an option that has another value, is told apart without being stored.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import pickle
from collections.abc import Mapping
from enum import Enum
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from flipopt.common.errors import InputError

DIGEST_BYTES = 16
"""128 bits: two different things never meet by chance."""


def fingerprint(*things: Any) -> str:
    """Of all ``things`` together, 32 hexadecimal digits."""
    walk = _Walk()
    for thing in things:
        walk.add(thing)
    return walk.hash.hexdigest()


def digest(content: bytes) -> str:
    """The checksum of bytes, 32 hexadecimal digits."""
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).hexdigest()


class _Walk:
    """Goes through everything that a thing holds, in an order that does not depend on the process."""

    def __init__(self) -> None:
        self.hash = hashlib.blake2b(digest_size=DIGEST_BYTES)
        self.seen: dict[int, int] = {}
        self.alive: list[Any] = []

    def add(self, thing: Any) -> None:
        if thing is None or isinstance(thing, bool | int | float | complex | str | bytes):
            self._word(type(thing).__name__, repr(thing))
        elif isinstance(thing, np.ndarray | np.generic):
            self._array(np.asarray(thing))
        elif isinstance(thing, Enum):
            self._word("enum", str(thing))
        elif id(thing) in self.seen:
            self._word("again", str(self.seen[id(thing)]))
        else:
            self.seen[id(thing)] = len(self.seen)
            self.alive.append(thing)  # an id is that of one thing only while it lives
            self._held(thing)

    def _word(self, *words: str) -> None:
        for word in words:
            data = word.encode("utf-8", "surrogatepass")
            self.hash.update(f"{len(data)}:".encode() + data)

    def _array(self, array: np.ndarray[Any, Any]) -> None:
        if array.dtype.hasobject:
            self._word("objects", str(array.shape))
            return self._all(array.reshape(-1).tolist())
        self._word("array", array.dtype.str, str(array.shape))
        return self.hash.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)

    def _all(self, things: Any) -> None:
        for thing in things:
            self.add(thing)

    def _held(self, thing: Any) -> None:
        kind = type(thing)
        if isinstance(thing, Mapping):
            self._word("mapping", str(len(thing)))
            for key in sorted(thing, key=repr):
                self._all((key, thing[key]))
        elif isinstance(thing, list | tuple):
            self._word("sequence", str(len(thing)))
            self._all(thing)
        elif isinstance(thing, set | frozenset):
            self._word("set", *sorted(fingerprint(item) for item in thing))
        elif isinstance(thing, type | ModuleType):
            self._word("name", getattr(thing, "__qualname__", thing.__name__))
        elif isinstance(thing, FunctionType | MethodType | functools.partial | CodeType):
            self._function(thing)
        elif hasattr(thing, "detach") and hasattr(thing, "numpy"):  # a tensor
            self._array(np.asarray(thing.detach().cpu()))
        elif hasattr(thing, "SerializeToString"):  # a protobuf
            self.add(thing.SerializeToString(deterministic=True))
        else:
            self._word("object", kind.__module__, kind.__qualname__)
            self._object(thing)

    def _function(self, thing: Any) -> None:
        if isinstance(thing, functools.partial):
            return self._all(("partial", thing.func, thing.args, thing.keywords))
        if isinstance(thing, MethodType):
            return self._all(("method", thing.__func__, thing.__self__))
        if isinstance(thing, CodeType):
            return self._all(("code", thing.co_code, thing.co_consts, thing.co_names))
        closed = [cell.cell_contents for cell in thing.__closure__ or ()]
        return self._all((thing.__qualname__, thing.__code__, thing.__defaults__, thing.__kwdefaults__, closed))

    def _object(self, thing: Any) -> None:
        if hasattr(thing, "identity"):
            return self.add(thing.identity())
        forward = getattr(type(thing), "forward", None)
        if inspect.isfunction(forward):  # a module: what it does is in its code as well
            self.add(forward.__code__)
        state = vars(thing) if hasattr(thing, "__dict__") else None
        if state is None and getattr(thing, "__slots__", None):
            state = {name: getattr(thing, name, None) for name in thing.__slots__}
        if state:
            cached = {name for name in state if isinstance(_of_class(thing, name), functools.cached_property)}
            return self.add({name: value for name, value in state.items() if name not in cached})
        try:
            return self.add(pickle.dumps(thing))
        except Exception as error:
            raise InputError(
                f"run: expected things that can be told apart, found {type(thing).__name__}: {error}"
            ) from error


def _of_class(thing: Any, name: str) -> Any:
    return inspect.getattr_static(type(thing), name, None)
