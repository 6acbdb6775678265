"""One bad row never costs the others: inputs at which a network cannot be evaluated, and solves that end in an error.

Such a row is left out of what is solved together, or, if an error shows only then, found by halving what is solved
together. It has the status NUMERICAL_ERROR and a message; the others have what they have without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import DerivativeError, FlipoptError, MissingPackageError, StorageError
from flipopt.networks.protocol import Network
from flipopt.problem import Evaluations
from flipopt.results import FlipResult, Status

Result = TypeVar("Result")
EVERYBODYS = (InterruptedError, MemoryError, DerivativeError, MissingPackageError, StorageError)
"""Errors that no row is to blame for."""


def examined(network: Network, X: Array) -> tuple[Array, Array]:
    """The class of every row of X (rows, n_inputs), 0 where there is none to be had, and why not, else "", (rows,)."""
    why = np.full(len(X), "", dtype=object)
    for row in np.flatnonzero(~np.isfinite(X).all(axis=1)):
        feature = int(np.argmin(np.isfinite(X[row])))
        why[row] = f"x: expected finite numbers, found {X[row, feature]} at index {feature}"
    Y = np.zeros((len(X), network.n_classes))
    _evaluate(network, X, np.flatnonzero(why == ""), Y, why)
    for row in np.flatnonzero(~np.isfinite(Y).all(axis=1)):
        why[row] = f"network: expected finite logits at x, found {Y[row][~np.isfinite(Y[row])][0]}"
    return np.where(why == "", Y.argmax(axis=1), 0), why


def _evaluate(network: Network, X: Array, rows: Array, Y: Array, why: Array) -> None:
    """The logits of ``rows``, written to Y, and of those that the network fails at, the error."""
    if len(rows) == 0:
        return
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            Y[rows] = network.logits(X[rows])
    except EVERYBODYS:
        raise
    except Exception as error:  # of the network's own code
        if len(rows) == 1:
            why[rows[0]] = said(error)
            return
        for half in np.array_split(rows, 2):
            _evaluate(network, X, half, Y, why)


def said(error: Exception) -> str:
    """An error in a message."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def isolated(solve: Callable[[Array], Result], rows: Array, failed: Callable[[Array, str], Result]) -> Sequence[Result]:
    """What ``solve`` makes of ``rows`` (k,), whole or in halves where it raises; of a single row that is ``failed``."""
    if len(rows) == 0:
        return []
    try:
        return [solve(rows)]
    except EVERYBODYS:
        raise
    except Exception as error:  # whatever a row does
        if len(rows) <= 1:
            return [failed(rows, said(error))]
    return [part for half in np.array_split(rows, 2) for part in isolated(solve, half, failed)]


def attempted(solve: Callable[[], FlipResult], x: Array, classes: tuple[int, ...], solver: str) -> FlipResult:
    """What ``solve`` returns; if it ends in an error that is not one of the arguments, a failure."""
    try:
        return solve()
    except (FlipoptError, *EVERYBODYS):
        raise
    except Exception as error:  # of the network's own code, say
        return failure(x, classes, said(error), solver)


def failure(x: Array, classes: tuple[int, ...], why: str, solver: str) -> FlipResult:
    """The result of an input x (n_inputs,) that could not be solved."""
    cost = Evaluations()
    return FlipResult(x, np.nan, classes, Status.NUMERICAL_ERROR, why, None, cost, 0, 0.0, solver, settled=False)


def some_classes(source: int, targets: Sequence[int] | None) -> tuple[int, ...]:
    """The classes of a flip that could not be looked for: the first other one where none was asked for."""
    if targets is not None:
        return (source, *targets)
    return source, int(source == 0)
