"""What a search has proved, and what of it is kept in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import FlipoptError
from flipopt.common.files import write_npz
from flipopt.proofs.instance import Instance
from flipopt.proofs.search import Node

VERSION, BOUNDED = 1, 2
"""Of the file, without and with bounds on features."""
TO_SPARE = 1e-8
"""Share by which a file claims less than was proved: the checker's rounding is its own."""


@dataclass(frozen=True, eq=False)
class Proof:
    """How far the closest flip of an input is: bounds, and a point.

    Attributes
    ----------
    lower, upper
        No flip is nearer than ``lower``, rounding included; there is one at ``upper``. In the weighted 2-norm.
    x
        The nearest flip known, (n_inputs,); NaN where none is, and then ``upper`` is infinite.
    classes
        Those that tie there, of which the first is that of the input.
    proved
        Whether upper - lower <= tol * upper, or it is certain that there is no flip within the bounds.
    nodes, seconds
        Of the search.
    history
        Seconds, lower and upper bound, whenever one of them changed, (k, 3).
    message
        In words.
    """

    lower: float
    upper: float
    x: Array
    classes: tuple[int, int]
    proved: bool
    nodes: int
    seconds: float
    history: Array
    message: str
    _kept: Kept | None = None

    @property
    def gap(self) -> float:
        """(upper - lower) / upper; 0 where both are 0 or there is no flip, and 1 where none is known."""
        if self.upper == np.inf:
            return 0.0 if self.proved else 1.0
        return (self.upper - self.lower) / self.upper if self.upper > 0 else 0.0

    def __str__(self) -> str:
        return self.message

    def save(self, path: str | Path) -> None:
        """Write the tree with its multipliers (.npz), for :func:`flipopt.proofs.check`."""
        if self._kept is None:
            raise FlipoptError(f"{path}: there is no tree to save. {self.message}")
        write_npz(path, self._kept.arrays(self.lower))


@dataclass(frozen=True, eq=False)
class Kept:
    """A search after it: the input (n_inputs,), square roots of weights, free features, bounds and the nodes."""

    x: Array
    root: Array
    free: Array
    low: Array
    high: Array
    instance: Instance
    nodes: list[Node]

    def arrays(self, lower: float) -> dict[str, Array]:
        """The part of the tree that proves ``lower``: a node whose own bound is no less is not split."""
        children: dict[int, list[int]] = {}
        for number, node in enumerate(self.nodes):
            children.setdefault(node.parent, []).append(number)
        stretch, order, parents = self.instance.stretch, [], []
        stack = [(number, -1) for number in reversed(children[-1])]
        while stack:
            number, parent = stack.pop()
            order.append(number)
            parents.append(parent)
            if self.nodes[number].bound / stretch < lower:
                stack += [(child, len(order) - 1) for child in reversed(children[number])]
        nodes = [self.nodes[number] for number in order]
        leaves = [node.bound / stretch >= lower for node in nodes]
        proofs = [node.certificate for node, leaf in zip(nodes, leaves, strict=True) if leaf]
        joined = {
            name: np.concatenate([getattr(proof, name) for proof in proofs])
            for name in ("neurons", "tau", "rows", "lam")
        }
        return (
            joined
            | self._bounds()
            | {
                "x": self.x,
                "weights": self.root**2,
                "free": self.free,
                "source": np.array(self.instance.source),
                "lower": np.array(lower * (1 - TO_SPARE)),
                "parent": np.array(parents, dtype=np.int64),
                "target": np.array([self.instance.others[node.lead] for node in nodes], dtype=np.int64),
                "neuron": np.array([node.neuron for node in nodes], dtype=np.int64),
                "sign": np.array([node.sign for node in nodes], dtype=np.int64),
                "leaf": np.array(leaves),
                "radius": np.array([proof.radius for proof in proofs]),
                "taus": np.array([len(proof.tau) for proof in proofs], dtype=np.int64),
                "lams": np.array([len(proof.lam) for proof in proofs], dtype=np.int64),
            }
        )

    def _bounds(self) -> dict[str, Array]:
        """The version, and the bounds of features that have any: their numbers and values."""
        if self.instance.box is None:
            return {"version": np.array(VERSION)}
        floors, ceilings = (np.flatnonzero(np.isfinite(bound) & self.free) for bound in (self.low, self.high))
        return {
            "version": np.array(BOUNDED),
            "floors": floors,
            "floor": self.low[floors],
            "ceilings": ceilings,
            "ceiling": self.high[ceilings],
        }
