"""Checks of what callers hand in, and of optional packages: one place for their wording."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flipopt.common.errors import InputError, MissingPackageError

Array = NDArray[Any]
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def as_floats(values: ArrayLike, name: str, finite: bool = True) -> Array:
    """``values`` as a float32 or float64 array, all ``finite`` unless told otherwise.

    Integers, lists and half precision become float64.
    """
    try:
        array = np.asarray(_off_graph(values))
    except (ValueError, TypeError) as error:
        raise InputError(f"{name}: expected a rectangular array of numbers, found {error}") from None
    if array.dtype not in FLOATS:
        if array.dtype.kind not in "biuf":
            raise InputError(f"{name}: expected real numbers, found dtype {array.dtype}")
        array = array.astype(np.float64)
    if finite and not np.isfinite(array).all():
        bad = np.argwhere(~np.isfinite(array))
        where = tuple(int(index) for index in bad[0])
        raise InputError(
            f"{name}: expected finite numbers, found {array[where]} at index {where}"
            + (f" and {len(bad) - 1} more" if len(bad) > 1 else "")
        )
    return array


def _off_graph(values: Any) -> Any:
    """A torch tensor without its graph, on the CPU, in a precision that numpy knows; anything else as it is."""
    if not hasattr(values, "detach"):
        return values
    tensor = values.detach().cpu()
    return tensor.double() if str(tensor.dtype) == "torch.bfloat16" else tensor


def as_rows(values: ArrayLike, width: int, name: str, finite: bool = True) -> Array:
    """``values`` as floats of shape (width,) or (batch, width), all ``finite`` unless told otherwise."""
    array = as_floats(values, name, finite)
    if array.ndim not in (1, 2) or array.shape[-1] != width:
        raise InputError(f"{name}: expected shape ({width},) or (batch, {width}), found {array.shape}")
    return array


def as_point(values: ArrayLike, width: int, name: str) -> Array:
    """``values`` as one finite point of shape (width,), float64."""
    point = as_rows(values, width, name)
    if point.ndim != 1:
        raise InputError(f"{name}: expected one point of shape ({width},), found {point.shape}")
    return point.astype(np.float64)


def as_number(value: Any, name: str, least: float = -np.inf, below: float = np.inf) -> float:
    """``value`` as a finite number from ``least`` to ``below``."""
    plain = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not (plain and least <= value < below and abs(value) < np.inf):
        wanted = "a finite number" if least == -np.inf else f"a number >= {least:g}"
        raise InputError(f"{name}: expected {wanted}, found {_shown(value)}")
    return float(value)


def as_whole(value: Any, name: str, least: int = 0) -> int:
    """``value`` as a whole number of at least ``least``."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise InputError(f"{name}: expected a whole number >= {least}, found {_shown(value)}")
    return int(value)


def as_sequence(value: Any, name: str, of: str) -> tuple[Any, ...]:
    """``value`` as a tuple; ``of`` says what it should hold."""
    if isinstance(value, str | bytes | dict) or not hasattr(value, "__iter__"):
        raise InputError(f"{name}: expected a sequence of {of}, found {_shown(value)}")
    return tuple(value)


def rectangular(values: Any, name: str, of: str) -> Array:
    """``values`` as an array of any type."""
    try:
        return np.asarray(values)
    except (ValueError, TypeError):
        raise InputError(f"{name}: expected {of}, found a list of lists of different lengths") from None


def _shown(value: Any) -> str:
    """A short form of anything, for a message."""
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def one_of(value: str, choices: tuple[str, ...], name: str) -> str:
    """``value``, which must be one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(f"{name}: expected one of {', '.join(choices)}, found {_shown(value)}")
    return value


def as_targets(targets: Any, rows: int) -> Any:
    """ "nearest", "all", or a class for each row, (rows,)."""
    if isinstance(targets, str):
        if targets not in ("nearest", "all"):
            raise InputError(f"targets: expected 'nearest', 'all' or a class for each row, found {targets!r}")
        return targets
    classes = np.asarray(targets)
    if classes.shape != (rows,) or classes.dtype.kind not in "iu":
        raise InputError(f"targets: expected {rows} classes, one a row, found {classes.dtype} {classes.shape}")
    return classes


def optional_package(module: str, extra: str, purpose: str) -> ModuleType:
    """Import ``module``, or say which extra of flipopt brings it."""
    if find_spec(module.partition(".")[0]) is None:
        raise MissingPackageError(f"{purpose} needs {module}: pip install 'flipopt[{extra}]'")
    return importlib.import_module(module)
