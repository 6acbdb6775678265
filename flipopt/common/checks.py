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
    """``values`` as a float32 or float64 array, all ``finite`` unless told otherwise; integers, lists and half precision
    become float64."""
    try:
        array = np.asarray(_off_graph(values))
    except ValueError as error:
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


def one_of(value: str, choices: tuple[str, ...], name: str) -> str:
    """``value``, which must be one of ``choices``."""
    if value not in choices:
        raise InputError(f"{name}: expected one of {', '.join(choices)}, found {value!r}")
    return value


def optional_package(module: str, extra: str, purpose: str) -> ModuleType:
    """Import ``module``, or say which extra of flipopt brings it."""
    if find_spec(module.partition(".")[0]) is None:
        raise MissingPackageError(f"{purpose} needs {module}: pip install 'flipopt[{extra}]'")
    return importlib.import_module(module)
