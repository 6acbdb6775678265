"""Facts about the machine and the versions, which go into every row of a benchmark."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np

from flipopt.runs.machine import commit, cpu
from flipopt.runs.threads import cores


def facts() -> dict[str, str | int]:
    """Processor, cores, versions and commit."""
    return {
        "cpu": cpu(),
        "cores": cores(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": version("torch"),
        "commit": commit(),
    }


def fastest(task: Callable[[], object], repeats: int, seconds: float) -> float:
    """Seconds of the fastest of ``repeats`` runs, or of as many as fit in ``seconds``, after one to warm up."""
    task()
    best, deadline = float("inf"), time.perf_counter() + seconds
    for _ in range(repeats):
        start = time.perf_counter()
        task()
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() > deadline:
            break
    return best


def product_peak(dtype: str, size: int = 1536, seconds: float = 2.0) -> float:
    """Floating-point operations a second of a large matrix product on all cores."""
    A = np.random.default_rng(0).standard_normal((size, size)).astype(dtype)
    out = np.empty_like(A)
    return 2.0 * size**3 / fastest(lambda: np.matmul(A, A, out=out), 20, seconds)
