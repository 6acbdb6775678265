"""Attack libraries as methods of a comparison: their evaluations counted, their points checked like all others.

A problem has a target class. So that every attack solves that problem, also those without targets, it is given a module
of two classes: the target, and the best of all others.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.peers import Peer, as_module, verified
from flipopt.common.checks import Array
from flipopt.comparison.methods import Budget, Claim
from flipopt.networks import DenseNetwork, TorchNetwork
from flipopt.networks.protocol import Network
from flipopt.problem import Evaluations, FlipProblem

REACH = 3.0
"""The box around x in which an attack may move, in units of its largest feature; attacks insist on one."""


class Counted(nn.Module):
    """A module that counts the points that pass through it, forward and backward."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module, self.forward_points, self.backward_points = module, 0, 0

    def forward(self, X: Tensor) -> Tensor:
        self.forward_points += len(X)
        Y: Tensor = self.module(X)
        if Y.requires_grad:
            Y.register_hook(self._back)  # type: ignore[no-untyped-call]
        return Y

    def _back(self, gradient: Tensor) -> None:
        self.backward_points += len(gradient)


class TargetOrNot(nn.Module):
    """Two logits: the largest of all classes but the target's, and the target's."""

    def __init__(self, module: nn.Module, target: int) -> None:
        super().__init__()
        self.module, self.target = module, target

    def forward(self, X: Tensor) -> Tensor:
        Y: Tensor = self.module(X)
        others = torch.cat([Y[:, : self.target], Y[:, self.target + 1 :]], dim=1)
        return torch.stack([others.amax(dim=1), Y[:, self.target]], dim=1)


@dataclass(frozen=True)
class Decision:
    """The same two classes of the network itself."""

    network: Network
    target: int

    def predict(self, X: Array) -> Array:
        return np.asarray(self.network.predict(X) == self.target).astype(np.int64)


@dataclass(frozen=True)
class AttackMethod:
    """A peer, aimed at the problem's target."""

    peer: Peer

    def run(self, problem: FlipProblem, network: Network, budget: Budget) -> Claim:
        """One image. The budget is kept by the runner, which can only stop it."""
        assert isinstance(network, DenseNetwork | TorchNetwork)
        target = problem.classes[1]
        counted = Counted(TargetOrNot(as_module(network), target)).eval()
        size = REACH * max(float(np.abs(problem.x).max()), 1.0)
        x = torch.tensor(problem.x[None], dtype=torch.float32)
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            found = self.peer.attack(counted, x, torch.zeros(1, dtype=torch.int64), (-size, size))
        cost = Evaluations(counted.forward_points, counted.backward_points)
        point = found.detach().numpy().astype(np.float64)
        _, moved = verified(Decision(problem.network, target), problem.x[None], np.zeros(1), point)
        if not np.isfinite(moved).all():
            return Claim(moved[0], cost, 0, "INFEASIBLE", f"no point of class {target}")
        return Claim(moved[0], cost, message=f"a point of class {target}")
