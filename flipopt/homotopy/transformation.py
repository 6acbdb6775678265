"""The easy network N^h at the start of a homotopy, and the networks between it and the trained one.

Algorithm 1 (erf) and F2 (ReLU, PReLU, ELU) of Yousefzadeh and O'Leary (2020), layer by layer, so that activations may
be mixed: at x every neuron of N^h has a slope in [tau, 1], and x is a feasible flip point of it. Along the path the
parameters of the activations and the output bias move in straight lines to the trained ones (algorithms 2 and F3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.networks import DenseNetwork
from flipopt.networks.activations import Activation, PReLU
from flipopt.problem import FlipProblem


@dataclass(frozen=True)
class Transformation:
    """A trained network, and the activations and output bias of its easy form at a point."""

    network: DenseNetwork
    activations: tuple[Activation, ...]
    bias: Array

    def at(self, t: float) -> DenseNetwork:
        """N^t: the easy network at 0, and at 1 the trained one itself, not a copy of it."""
        if not 0 <= t <= 1:
            raise InputError(f"t: expected a number from 0 to 1, found {t}")
        if t == 1:
            return self.network
        pairs = zip(self.activations, self.network.activations, strict=True)
        between = [easy.towards(trained, t) for easy, trained in pairs]
        bias = (1 - t) * self.bias + t * self.network.biases[-1]
        return self.network.with_activations(between).with_output_bias(bias)

    def log_steepness(self, t: float) -> float:
        """The sum over the layers of the logarithm of the largest slope in N^t: log of bound (15), up to a constant."""
        pairs = zip(self.activations, self.network.activations, strict=True)
        slopes = [np.max(easy.towards(trained, t).lipschitz) for easy, trained in pairs]
        return float(np.sum(np.log(np.maximum(slopes, 1e-300))))


def transform(problem: FlipProblem, tau: float, margin: float, smooth: bool = False) -> Transformation:
    """N^h for the network and the input of ``problem``, whose goal is a flip.

    ``tau`` is the least slope of a neuron at x, and ``margin`` by how many logits the other classes stay below there,
    beyond what the problem asks. With ``smooth`` a ReLU is relaxed to an ELU instead of a PReLU.
    """
    network, goal = problem.network, problem.goal
    if not isinstance(network, DenseNetwork):
        raise InputError(
            f"homotopy: expected a DenseNetwork, whose activations can be relaxed, found {type(network).__name__}"
        )
    if not goal.classes:
        raise InputError("homotopy: expected a flip between classes as the goal")
    y, relaxed = problem.clip(problem.x), []
    for W, b, activation in zip(network.weights, network.biases, network.activations, strict=False):
        c = y @ W + b
        smoothed = smooth and isinstance(activation, PReLU)
        relaxed.append(activation.smoothed(tau) if smoothed else activation.relaxed(c, tau))  # type: ignore[attr-defined]
        y = relaxed[-1].value(c)
    logits = y @ network.weights[-1] + network.biases[-1]
    change = flip_bias(logits, goal.classes, _logit_margin(problem) + margin)
    return Transformation(network, tuple(relaxed), network.biases[-1] + change)


def flip_bias(y: Array, classes: tuple[int, ...], margin: float) -> Array:
    """Line 13: the least change of the output bias for ``classes`` to tie with all others ``margin`` below.

    For a common level s of the tied classes the others move only as far as they must, so the squared change is
    sum (s - y_i)^2 over the tied + sum max(0, y_k + margin - s)^2 over the others: convex and piecewise quadratic in s.
    Taking the others from the highest down, s is the mean of those that count; it is optimal once the next stays below.
    """
    tied = list(classes)
    others = np.setdiff1d(np.arange(len(y)), tied)
    counted, level = len(tied), float(y[tied].mean())
    for raised in np.sort(y[others] + margin)[::-1]:
        if raised <= level:
            break
        level += (raised - level) / (counted + 1)
        counted += 1
    change = np.zeros_like(y)
    change[tied] = level - y[tied]
    change[others] = np.minimum(0.0, level - margin - y[others])
    return change


def _logit_margin(problem: FlipProblem) -> float:
    """The margin that the goal asks of the other classes, in logits."""
    asked = problem.goal.lower[~problem.goal.equations]
    margin = float(asked.max(initial=0.0))
    if problem.outputs == "logits":
        return margin
    # With q = exp(-margin in logits): z_i - z_k = (1 - q) / (ties + others q), solved for q; q <= 0 cannot be had.
    ties, others = len(problem.classes), len(asked)
    return -float(np.log(max((1 - margin * ties) / (1 + margin * others), 1e-12)))
