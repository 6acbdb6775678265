"""What a caller of the public verbs wants, checked once: for one input and for many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_number, as_sequence, as_whole, rectangular
from flipopt.common.errors import InputError
from flipopt.flips.faults import examined
from flipopt.flips.inside import lead_of
from flipopt.flips.lattice import OneOf
from flipopt.homotopy import Homotopy
from flipopt.networks.points import as_points, by_position
from flipopt.networks.protocol import Network
from flipopt.networks.wrapping import check_gradient
from flipopt.problem import FlipProblem, Setting
from flipopt.problem.goal import flip
from flipopt.problem.setting import mask_of
from flipopt.solvers import Batch, Solver, as_solver
from flipopt.solvers.starts import Samples, number_of_starts

SETTING = ("norm", "bounds", "frozen", "weights", "constraints", "outputs")
OPTIONS = ("source", *SETTING, "margin", "valid", "integers", "one_of", "homotopy", "starts", "towards", "seed")


@dataclass(frozen=True)
class Request:
    """The options of the public verbs; see :func:`~flipopt.closest_flip_point`.

    ``network`` is in its own precision, that of the setting in float64. ``whole`` are the features that are whole
    numbers, (k,) indices. With ``valid`` the points are inside the other class, which leads by ``beyond`` logits.
    """

    network: Network
    setting: Setting
    solver: Solver
    source: int | None
    margin: float
    valid: bool
    beyond: float
    whole: Array
    one_of: tuple[OneOf, ...]
    homotopy: Homotopy | None
    starts: int | ArrayLike
    samples: Samples | None
    seed: int

    @classmethod
    def of(cls, network: Network, solver: str | Solver | None, **options: Any) -> Request:
        """From what a caller gave; without a solver the batch solver where it can take the problem, else IPOPT."""
        known("options", options, OPTIONS)
        options = by_position(options, network)
        setting = Setting.of(network, **{name: options[name] for name in SETTING if name in options})
        homotopy, integers = _as_homotopy(options.get("homotopy")), options.get("integers")
        whole = whole_numbers(integers, network.n_inputs)
        groups, starts = as_groups(options.get("one_of", ()), network.n_inputs), options.get("starts", 1)
        if rectangular(starts, "starts", "a number of points or points").ndim:
            starts = np.atleast_2d(as_points(starts, network, "starts"))
        discrete = len(whole) > 0 or len(groups) > 0
        if discrete and homotopy is not None:
            raise InputError("homotopy: expected None with integers or one_of, whose roundings have no path")
        plain = homotopy is None and np.ndim(starts) == 0
        default = "batch" if plain and Batch().cannot(setting) is None else "ipopt"
        source, valid = options.get("source"), options.get("valid", False)
        return cls(
            network,
            setting,
            as_solver(default if solver is None else solver),
            None if source is None else checked_class(network, source, "source"),
            as_number(options.get("margin", 0.0), "margin", least=0.0),
            valid is not False,
            lead_of(valid),
            whole,
            groups,
            homotopy,
            starts if np.ndim(starts) else number_of_starts(starts),
            Samples.of(network, options.get("towards")),
            as_whole(options.get("seed", 0), "seed"),
        )

    @property
    def discrete(self) -> bool:
        """Whether some features are whole numbers or one of several."""
        return len(self.whole) > 0 or len(self.one_of) > 0

    @property
    def batched(self) -> bool:
        """Whether flips between two classes are solved as a batch."""
        plain = self.homotopy is None and not self.discrete and np.ndim(self.starts) == 0
        return isinstance(self.solver, Batch) and plain and self.solver.cannot(self.setting) is None

    @property
    def led(self) -> bool:
        """Whether j must lead several classes by ``beyond``, any of which may be the runner-up at the closest point.

        y_j - y_k >= beyond for all k holds with equality for the runner-up r, so the closest point is the nearest of
        those with y_j - y_r = beyond and y_r >= y_k, over all r.
        """
        return self.beyond > 0 and self.network.n_classes > 2

    def sources(self, X: Array) -> Array:
        """The class to flip from of every row of X, (rows,)."""
        return np.asarray(self.network.predict(X)) if self.source is None else np.full(len(X), self.source)

    def examined(self, X: Array) -> tuple[Array, Array]:
        """The class to flip from of every row of X, (rows,), and why a row cannot be evaluated, else "", (rows,)."""
        classes, why = examined(self.network, X)
        return (classes if self.source is None else np.full(len(X), self.source)), why

    def require_sound(self, X: Array, name: str) -> None:
        """Raise if a frozen feature is outside its bounds or the gradient is wrong; warn of other inputs outside."""
        self.setting.require_possible(X)
        self.setting.warn_outside(X, name)
        for x in X:
            if not examined(self.network, x[None])[1][0]:
                check_gradient(self.setting.network, x.astype(np.float64))
                break

    def problem(self, x: Array, classes: Sequence[int]) -> FlipProblem:
        """The flip of x (n_inputs,) between ``classes``."""
        return FlipProblem(self.setting, x, flip(self.network.n_classes, classes, self.margin, self.beyond))


def checked_class(network: Network, k: Any, name: str) -> int:
    """k, which must be one of the network's classes."""
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or not 0 <= k < network.n_classes:
        raise InputError(f"{name}: expected a class from 0 to {network.n_classes - 1}, found {k!r}")
    return int(k)


def checked_targets(network: Network, target: Any, source: int) -> list[int]:
    """The class or classes of ``target``, other than the source."""
    listed = np.atleast_1d(rectangular(target, "target", "a class or several"))
    classes = [checked_class(network, k, "target") for k in listed.tolist()]
    if not classes or source in classes:
        raise InputError(f"target: expected classes other than the source {source}, found {target!r}")
    return classes


def known(name: str, options: dict[str, Any], names: Sequence[str]) -> None:
    """Raise where an option is none of ``names``."""
    unknown = set(options) - set(names)
    if unknown:
        raise InputError(f"{name}: expected {', '.join(sorted(names))}, found {', '.join(sorted(unknown))}")


def whole_numbers(integers: Any, n: int) -> Array:
    """Indices (k,) of the features that are whole numbers."""
    listed = rectangular([] if integers is None else integers, "integers", "a mask or indices")
    return np.flatnonzero(mask_of(listed, n, "integers"))


def as_groups(one_of: Any, n: int) -> tuple[OneOf, ...]:
    """Groups of features of which exactly one is 1, each of at least two different indices."""
    groups = as_sequence(one_of, "one_of", "groups of features")
    for k, group in enumerate(groups):
        features = [as_whole(f, f"one_of[{k}]") for f in as_sequence(group, f"one_of[{k}]", "features")]
        if len(set(features)) < max(2, len(features)) or max(features) >= n:
            raise InputError(f"one_of[{k}]: expected two or more different features below {n}, found {group!r}")
    return groups


def _as_homotopy(homotopy: Homotopy | int | None) -> Homotopy | None:
    if homotopy is None or isinstance(homotopy, Homotopy):
        return homotopy
    if not isinstance(homotopy, int | np.integer) or isinstance(homotopy, bool):
        raise InputError(f"homotopy: expected a Homotopy, a number of stages or None, found {homotopy!r}")
    return Homotopy(stages=int(homotopy))
