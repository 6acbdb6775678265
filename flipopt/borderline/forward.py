"""Networks for forward passes alone: as quick as they can be had, and in the precision that a gap asks for."""

from __future__ import annotations

from dataclasses import dataclass

from flipopt.common.checks import Array
from flipopt.networks.activations import Activation
from flipopt.networks.dense import DenseNetwork
from flipopt.networks.protocol import Network
from flipopt.paths.lines import Lines, NearlyExact, exact, in_float32_far_away

RESOLVED = 1e-5
"""The smallest gap of two probabilities that single precision resolves: a hundred times its rounding."""


def forward(network: Network) -> Network:
    """The network by whatever is quickest at its forward passes."""
    quick: Network = getattr(network, "forward_only", network)
    return quick


def in_precision(network: Network, gap: float) -> Network:
    """The network in float64; as it is where that costs much and a ``gap`` of probabilities does not ask for it."""
    found = exact(network)
    return found if gap < RESOLVED or isinstance(found, DenseNetwork) else forward(network)


@dataclass(frozen=True)
class Walked:
    """A network on lines between points.

    A first layer that is narrower than the inputs is computed at the ends alone: a line between inputs is, before the
    layer's activation, a line between what it makes of them.

    Attributes
    ----------
    network
        What is asked of points on lines.
    first
        The first layer, if it is computed at the ends.
    """

    network: Network | NearlyExact | AfterFirst
    first: DenseNetwork | None

    @classmethod
    def of(cls, network: Network, rough: bool = False) -> Walked:
        """For a network in the precision that is wanted; ``rough``: in float32 where a class is clearly ahead."""
        if not isinstance(network, DenseNetwork) or network.n_layers == 1 or network.widths[1] >= network.n_inputs:
            return cls(in_float32_far_away(network) if rough else network, None)
        rest = DenseNetwork(network.weights[1:], network.biases[1:], network.activations[1:])
        after = AfterFirst(network.activations[0], in_float32_far_away(rest) if rough else rest)
        return cls(after, network.up_to(1))

    def ends(self, X: Array) -> Array:
        """What lines are drawn between, for the points X (rows, n_inputs), finite."""
        return X if self.first is None else self.first.logits(X)

    def between(self, A: Array, B: Array) -> Lines:
        """Lines between ends, (lines, width) each."""
        return Lines.between(self.network, A, B)  # type: ignore[arg-type]


@dataclass(frozen=True)
class AfterFirst:
    """The layers of a dense network from the first activation on."""

    activation: Activation
    rest: Network | NearlyExact

    @property
    def n_classes(self) -> int:
        """Of the network."""
        return self.rest.n_classes

    def logits(self, C: Array) -> Array:
        """The scores (rows, n_classes), for what the first layer makes of inputs, C (rows, width)."""
        return self.rest.logits(self.activation.value(C))
