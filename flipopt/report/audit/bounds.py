"""Distances that are proved free of flips, in the measure of a study."""

from __future__ import annotations

import numpy as np

from flipopt.bounds import lower
from flipopt.bounds.lower import Method
from flipopt.bounds.relaxation import operations
from flipopt.common.checks import Array, as_floats
from flipopt.common.progress import progress_bar
from flipopt.networks import DenseNetwork
from flipopt.report.audit.study import Study

ROWS = 128
"""Inputs of a block."""
CHEAP = 2e8
"""Operations of a relaxation at an input up to which a report has it: a hundredth of a second."""


def proved(study: Study, progress: bool = False) -> tuple[Array | None, str]:
    """Proved distances (entries,), or None and why there are none.

    Bounds and constraints only take flips away, so that what is proved without them holds with them. A weighted 2-norm
    of x is the 2-norm of u = sqrt(w) x, so the bound is that of the network of u.
    """
    net, weights = study.network, study.options.get("weights")
    if not isinstance(net, DenseNetwork):
        return None, f"bounds are known of networks of dense layers, and this is a {type(net).__name__}"
    if study.options.get("outputs", "logits") != "logits":
        return None, "bounds are known of flips of logits, and these are of probabilities"
    if weights is None:
        return _lower(net, study.X, study.options.get("norm", 2), progress), ""
    root = np.broadcast_to(np.sqrt(as_floats(weights, "weights").astype(np.float64)), net.n_inputs)
    first, *rest = net.in_float64.weights
    scaled = DenseNetwork([first / root[:, None], *rest], net.in_float64.biases, net.activations)
    return _lower(scaled, study.X * root, 2, progress), ""


def _lower(net: DenseNetwork, X: Array, norm: float, progress: bool) -> Array:
    """In blocks, for the sake of the bar; NaN for rows that are not finite."""
    found, sound = np.full(len(X), np.nan), np.flatnonzero(np.isfinite(X).all(axis=1))
    method: Method = "best" if operations(net) <= CHEAP else "lipschitz"
    with progress_bar("proved distances", len(sound), "rows", progress) as advance:
        for first in range(0, len(sound), ROWS):
            rows = sound[first : first + ROWS]
            found[rows] = lower(net, X[rows], norm=norm, method=method)
            advance(first + len(rows))
    return found
