"""Loops compiled by numba, their machine code kept on disk where there is a folder for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}


def compiled(kernel: Callable[..., None]) -> Callable[..., None]:
    """Compile, and keep the machine code on disk where there is a folder for it."""
    try:
        return numba.njit(cache=True, **OPTIONS)(kernel)  # type: ignore[no-any-return]
    except RuntimeError:
        return numba.njit(**OPTIONS)(kernel)  # type: ignore[no-any-return]
