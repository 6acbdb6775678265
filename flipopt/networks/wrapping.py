"""Whatever a caller hands in as a network: made one, and its gradient compared with differences."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import DerivativeError, InputError
from flipopt.networks.dense import DenseNetwork
from flipopt.networks.modules import evaluating
from flipopt.networks.protocol import Network
from flipopt.networks.pytorch import TorchNetwork
from flipopt.networks.scikit_learn import from_sklearn
from flipopt.networks.stages import StagedNetwork


@dataclass(frozen=True)
class GradientCheck:
    """How the gradient of a network is compared with differences of its logits.

    Values are relative to the size of every feature at x. Nothing here decides between good and better derivatives:
    what it must find is a gradient that is none.
    """

    aside: float = 1e-3
    """How far from x: at x itself the background of an image lies on the kinks of every max-pooling."""
    steps: tuple[float, ...] = (1e-6, 1e-4, 1e-2)
    """Of the differences; one that agrees is enough. The long ones are for modules that round to float32 inside."""
    directions: int = 4
    """How many: along a single one the parts of a gradient may cancel."""
    tolerance: float = 0.2
    """Difference of the two, relative to the larger of them; kinks between the points take their part of it."""


def as_network(network: Any, X: Any, many: bool = False) -> Network:
    """A network as it is, an estimator as :func:`~flipopt.from_sklearn` reads it, a torch module wrapped.

    The module takes inputs in the shape of X, or of its rows if they are ``many``; it is left in the mode it is in.
    """
    if isinstance(network, Network):
        return network
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(network, torch.nn.Module):
        shape = np.shape(X)
        try:
            return TorchNetwork(evaluating(network), shape[1:] if many and len(shape) > 1 else shape)
        except InputError as error:
            raise InputError(
                f"network: this module could not be wrapped by itself; do it with fo.TorchNetwork(module, "
                f"input_shape=...). {error}"
            ) from error
    if hasattr(network, "get_params") and hasattr(network, "fit"):
        return from_sklearn(network)
    what = "a path: read it with fo.load_network" if isinstance(network, str | Path) else type(network).__name__
    raise InputError(f"network: expected a network such as fo.TorchNetwork or fo.DenseNetwork, found {what}")


def check_gradient(network: Network, x: Array, options: GradientCheck | None = None) -> None:
    """Raise where the gradient of the logits near x (n_inputs,) is not what their differences say.

    A module that detaches a part of its graph, or has a wrong backward pass of its own, has flip points that no solver
    finds. The gradient is that of random weights of the logits, along random directions.
    """
    if isinstance(network, DenseNetwork | StagedNetwork):  # formulas of this package
        return
    options, rng = options or GradientCheck(), np.random.default_rng(0)
    largest = np.abs(x).max()
    size = np.maximum(np.abs(x), 1e-3 * largest) if largest > 0 else np.ones_like(x)
    point = x + options.aside * size * rng.uniform(-1, 1, len(x))
    D = size * rng.standard_normal((options.directions, len(x)))
    v = rng.standard_normal(network.n_classes)
    try:
        slopes = D @ network.vjp(point, v)
    except RuntimeError as error:  # torch: no graph leads from the logits to the inputs
        if not _evaluates(network, point) and _evaluates(network.astype(np.float32), point):
            raise DerivativeError(
                "network: its logits can be computed in float32 but not in float64, which flip points need; does the "
                f"module fix its precision, for instance by x.float()? {error}"
            ) from error
        raise DerivativeError(f"network: its logits cannot be differentiated: {error}") from error
    values = [network.logits(point + sign * h * D) @ v for h in options.steps for sign in (1, -1)]
    differences = [(up - down) / (2 * h) for h, up, down in zip(options.steps, values[::2], values[1::2], strict=True)]
    noise = [np.finfo(np.float64).eps * np.abs(up).max() / h for h, up in zip(options.steps, values[::2], strict=True)]
    off = [np.linalg.norm(slopes - some) for some in differences]
    allowed = [options.tolerance * max(np.linalg.norm(slopes), np.linalg.norm(some)) for some in differences]
    if np.isfinite(values).all() and not any(a <= b + 1e3 * c for a, b, c in zip(off, allowed, noise, strict=True)):
        raise DerivativeError(
            f"network: expected the gradient of the logits near x, found one whose product with a random direction is "
            f"{slopes[0]:.3g} where differences of the logits give {differences[0][0]:.3g}; does the module detach a "
            "part of its graph, or define a backward pass of its own?"
        )


def _evaluates(network: Network, x: Array) -> bool:
    try:
        network.logits(x)
    except RuntimeError:
        return False
    return True
