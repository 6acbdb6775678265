"""Distances that are proved free of flips, by the best of what is known of a network on balls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from flipopt.bounds import relaxation, smooth
from flipopt.bounds.balls import lipschitz_lower
from flipopt.bounds.matrices import check_norm
from flipopt.bounds.relaxation import STEPS, Box, relaxed_lower
from flipopt.bounds.smooth import smooth_lower
from flipopt.common.checks import Array, one_of
from flipopt.common.errors import InputError
from flipopt.common.intervals import bounds_of, pair_of
from flipopt.networks.dense import DenseNetwork
from flipopt.networks.points import as_points
from flipopt.networks.protocol import Network
from flipopt.networks.pytorch import TorchNetwork
from flipopt.networks.wrapping import as_network
from flipopt.runs.threads import over_rows

Method = Literal["best", "lipschitz"]
CHEAP = 1e8
"""Operations of a relaxation up to which it is tried where a network has a Taylor expansion, which proves more unless
there are few inputs."""

FARTHER = 2.0
"""How much farther a box may put the flip of a linearisation, for the radii that are tried."""


def lower(
    network: Any,
    X: ArrayLike,
    norm: float = 2,
    steps: int = 10,
    method: Method = "best",
    relaxations: int = STEPS,
    bounds: tuple[ArrayLike | None, ArrayLike | None] | None = None,
) -> Array:
    """Distances from the inputs X that are proved free of flips: the class of a row does not change within them.

    Parameters
    ----------
    network
        A dense network, or a torch module of convolutions, batch normalisations, average pooling, linear layers and
        activations in a chain, which is written out as one: of small ones, that is. Of others nothing is proved yet.
    X
        (rows, n_inputs), or one input.
    norm
        Of the distance: 1, 2 or inf.
    steps
        Radii that are tried with Lipschitz bounds, which cost next to nothing beside the first.
    method
        "best": the best of Lipschitz bounds, Taylor expansions (erf and tanh, in the 2-norm) and linear relaxations,
        several to hundreds of times as far. Or "lipschitz" alone, which takes a tenth of the time or less for deep
        networks.
    relaxations
        Radii that are tried with linear relaxations. Each takes as long as twice as many evaluations of the network as
        it has neurons. Large networks that have a Taylor expansion do without.
    bounds
        (lower, upper) of the features, numbers or (n_inputs,): points outside them do not count as flips. Linear
        relaxations take this in; the other bounds hold all the same.

    Returns
    -------
    Array
        (rows,), or a number for one input. 0 where two classes tie, infinity where the logits are constant, NaN for a
        row that is not finite.
    """
    net = _dense(as_network(network, X, many=True))
    check_norm(norm)
    one_of(method, ("best", "lipschitz"), "method")
    box = None if bounds is None else bounds_of(*pair_of(bounds), net.n_inputs, ("bounds (lower)", "bounds (upper)"))
    points = as_points(X, net, "X", finite=False).astype(np.float64)
    rows, net = np.atleast_2d(points), net.in_float64
    proved, sound = np.full(len(rows), np.nan), np.isfinite(rows).all(axis=1)
    if sound.any():
        low, linear = lipschitz_lower(net, rows[sound], norm, steps)
        found = low if method == "lipschitz" else _best(net, rows[sound], norm, low, linear, relaxations, box)
        proved[sound] = np.where(np.isnan(found), 0.0, found)  # after an overflow nothing is proved
    return proved if points.ndim == 2 else np.asarray(proved[0])


def _dense(net: Network) -> DenseNetwork:
    """The network as a dense one."""
    if isinstance(net, DenseNetwork):
        return net
    exact = net.in_float64 if isinstance(net, TorchNetwork) else net
    if isinstance(exact, DenseNetwork):
        return exact
    if type(exact) is TorchNetwork:
        from flipopt.networks.torch_dense import unrolled

        return unrolled(exact.module, exact.input_shape)
    raise InputError(
        f"network: expected a dense network or a chain of torch layers, of which bounds are known, found "
        f"{type(net).__name__}"
    )


def _best(net: DenseNetwork, X: Array, norm: float, low: Array, linear: Array, steps: int, box: Box | None) -> Array:
    if net.n_layers == 1:  # the linearisation is all there is
        return low
    expands = norm == 2 and smooth.is_smooth(net)
    if expands:
        low = _in_blocks(
            lambda some: smooth_lower(net, X[some], low[some], linear[some]),
            len(X),
            smooth.rows_at_once(net),
            smooth.operations(net),
        )
    if expands and relaxation.operations(net) > CHEAP:
        return low
    high = linear if box is None else linear * FARTHER
    return _in_blocks(
        lambda some: relaxed_lower(net, X[some], norm, low[some], high[some], steps, box),
        len(X),
        relaxation.rows_at_once(net, box is not None),
        steps * relaxation.operations(net),
    )


def _in_blocks(task: Callable[[slice], Array], rows: int, most: int, operations: float) -> Array:
    """The results of ``task`` for all rows, at most ``most`` at a time on each core."""

    def blockwise(some: slice) -> list[Array]:
        ends = range(some.start, some.stop, most)
        return [task(slice(first, min(first + most, some.stop))) for first in ends]

    return np.concatenate([proved for part in over_rows(blockwise, rows, operations) for proved in part])
