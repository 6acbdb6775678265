"""Loops compiled by numba, their machine code kept on disk where there is a folder for it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}
SUMS: dict[str, Any] = OPTIONS | {"fastmath": {"contract", "reassoc"}}
"""Of loops whose sums may be taken in any order, so that they vectorise; the order is the same at every call."""


def _fingerprint() -> str:
    """Of the sources of all kernels: a change of any of them changes it."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:16]


FINGERPRINT = _fingerprint()


def compiled(kernel: Callable[..., None], options: dict[str, Any] = OPTIONS) -> Callable[..., None]:
    """Compile, and keep the machine code on disk where there is a folder for it.

    Numba compiles anew when the file of the function itself has changed, but not when one has that it calls from
    another file. It names what it keeps after the qualified name, which therefore gets the fingerprint of all kernels.
    """
    kernel.__qualname__ += f"_{FINGERPRINT}"
    try:
        return numba.njit(cache=True, **options)(kernel)  # type: ignore[no-any-return]
    except RuntimeError:
        return numba.njit(**options)(kernel)  # type: ignore[no-any-return]


def compiled_sums(kernel: Callable[..., None]) -> Callable[..., None]:
    """The same for loops that mostly add up products."""
    return compiled(kernel, SUMS)


inline = numba.njit(**SUMS, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""For functions that only kernels call, and that mostly add up products.

Where they are given constants, these are written as np.int64(0) or np.bool_(True): numba compiles a function anew for
every literal.
"""
merged = numba.njit(**SUMS, inline="always")
"""The same for functions that are called once: as a part of their caller they take less time to compile."""
