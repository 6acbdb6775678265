"""Loops compiled by numba, their machine code kept on disk where there is a folder for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}
SUMS: dict[str, Any] = OPTIONS | {"fastmath": {"contract", "reassoc"}}
"""Of loops whose sums may be taken in any order, so that they vectorise; the order is the same at every call."""


def compiled(kernel: Callable[..., None], options: dict[str, Any] = OPTIONS) -> Callable[..., None]:
    """Compile, and keep the machine code on disk where there is a folder for it."""
    try:
        return numba.njit(cache=True, **options)(kernel)  # type: ignore[no-any-return]
    except RuntimeError:
        return numba.njit(**options)(kernel)  # type: ignore[no-any-return]


def compiled_sums(kernel: Callable[..., None]) -> Callable[..., None]:
    """The same for loops that mostly add up products."""
    return compiled(kernel, SUMS)
