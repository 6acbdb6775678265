"""Distances that are proved free of flips, in the measure of a study."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from flipopt.bounds import lower
from flipopt.bounds.lower import Method
from flipopt.bounds.relaxation import operations
from flipopt.common.checks import Array, as_floats
from flipopt.common.errors import InputError
from flipopt.common.progress import progress_bar
from flipopt.networks import DenseNetwork
from flipopt.proofs import prove_flips
from flipopt.proofs.instance import require_piecewise_linear
from flipopt.report.audit.study import Given, Study

ROWS = 128
"""Inputs of a block."""
CHEAP = 2e8
"""Operations of a relaxation at an input up to which a report has it: a hundredth of a second."""


LIMITS = ("bounds", "constraints", "integers", "one_of", "valid", "margin", "outputs")
"""Options that make other flips the closest than those that can be proved."""


def require_provable(given: Given) -> None:
    """Raise where no flip can be proved closest, before anything is solved."""
    require_piecewise_linear(given.network)
    found = [name for name in LIMITS if given.options.get(name) not in (None, (), False, 0.0, "logits")]
    if given.options.get("norm", 2) != 2:
        found.append(f"norm={given.options['norm']}")
    if found:
        raise InputError(
            f"prove: expected flips in the 2-norm, with weights and frozen features at most, found {', '.join(found)}"
        )


def with_proofs(study: Study, seconds: float, run: Path | None, progress: bool) -> Study:
    """The study with flips that are proved, with so many seconds an input, or replaced by nearer ones."""
    weights, frozen = study.options.get("weights"), study.options.get("frozen")
    flips = prove_flips(
        study.network, study.X, study.numbered, seconds, weights, frozen, progress=progress, run=run
    )  # fmt: skip
    return replace(study, flips=replace(flips, row=study.row))


def proved(study: Study, progress: bool = False) -> tuple[Array | None, str]:
    """Proved distances (entries,), or None and why there are none.

    Bounds and constraints only take flips away, so that what is proved without them holds with them. A weighted 2-norm
    of x is the 2-norm of u = sqrt(w) x, so the bound is that of the network of u. Where the flips have bounds of their
    own, from proofs, those count.
    """
    known = study.flips.lower_bound
    if np.isfinite(known[study.found]).all() and study.found.any():
        return known, ""
    lower_bounds, why_not = _bounds(study, progress)
    return (None if lower_bounds is None else np.fmax(lower_bounds, known)), why_not


def _bounds(study: Study, progress: bool) -> tuple[Array | None, str]:
    """Those that take no search."""
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
