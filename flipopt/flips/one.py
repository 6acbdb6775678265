"""The closest flip point of one input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, rectangular
from flipopt.flips.batched import solve_as_batch
from flipopt.flips.faults import attempted, failure, isolated, some_classes
from flipopt.flips.lattice import OneOf
from flipopt.flips.request import Request, checked_targets
from flipopt.flips.serial import solve_serially
from flipopt.homotopy import Homotopy
from flipopt.networks.points import as_one_point
from flipopt.networks.protocol import Network, Outputs
from flipopt.networks.wrapping import as_network
from flipopt.problem import Constraint
from flipopt.results import FlipResult
from flipopt.solvers import Solver


def closest_flip_point(
    network: Network,
    x: ArrayLike,
    target: int | Sequence[int] | None = None,
    source: int | None = None,
    norm: float = 2,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    frozen: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    margin: float = 0.0,
    valid: bool | float = False,
    constraints: Sequence[Constraint] = (),
    integers: ArrayLike | None = None,
    one_of: Sequence[OneOf] = (),
    outputs: Outputs = "logits",
    solver: str | Solver | None = None,
    homotopy: Homotopy | int | None = None,
    starts: int | ArrayLike = 1,
    towards: ArrayLike | None = None,
    seed: int = 0,
) -> FlipResult:
    """The closest point at which ``network`` scores ``source`` and ``target`` alike.

    Parameters
    ----------
    network
        The classifier. A torch module or a scikit-learn estimator is wrapped.
    x
        The input, (n_inputs,); an array, a tensor, or a row of a table, whose entries are put in the order of the
        network's ``feature_names``.
    target
        The other class; several for a flip between more than two; None for the nearest of all classes.
    source
        The class to flip from; by default the predicted class of x.
    norm
        1, 2 or inf.
    bounds
        (lower, upper), each a number or (n_inputs,); None for no bounds.
    frozen
        Features that may not change: a mask (n_inputs,), their indices or, where the network has them, their names.
    weights
        Positive weights (n_inputs,) of the squared changes, with norm 2.
    margin
        By how much every other class must stay below the two.
    valid
        True for a point just past the flip point, that the network itself puts in the class ``target``, in its own
        precision too; or a probability from 0.5 on that the target must have there against every other class,
        z_j / (z_j + z_k). The status is that of the flip point, or of the point where that probability is reached.
    constraints
        :class:`~flipopt.LinearConstraint` and :class:`~flipopt.NonlinearConstraint`.
    integers, one_of
        Discrete features: indices or names (or a mask) of those that are whole numbers, and groups of which exactly
        one is 1. As no classes tie on a lattice, the nearest allowed point in the class ``target`` is sought, or on its
        boundary where a feature that is not discrete leads there. CONVERGED says that no other is nearer: by examining
        all nearer ones, or by branch and bound, as the message has it.
    outputs
        "logits", or "probabilities" for the papers' own form.
    solver
        A name (see ``flipopt solvers``) or a solver with options, such as ``fo.solvers.Ipopt(tol=1e-9)``. By default
        the batch solver, as for many inputs, where it can take the problem; where it cannot (other norms, nonlinear
        constraints, ties of several classes, a homotopy, probabilities, given starting points), IPOPT.
    homotopy
        Follow a path from an easy form of the network, as :class:`~flipopt.Homotopy` says, or with that many
        ``stages``; for dense networks. It counts as the first start.
    starts
        How many starting points, or the points themselves, (points, n_inputs). The first ones are the solver's own: for
        the batch solver x through softened networks, a point behind x, x through softer networks and without them; for
        others the batch solver's flip point in the 2-norm without further constraints, and x. Then come boundary
        points towards the samples in ``towards`` that the network puts in the target class, nearest first, and random
        points.
    towards
        Samples (samples, n_inputs), such as training points: starting points are sought on the way to the nearest of
        those that the network puts in the target class.
    seed
        Of the random starting points.
    """
    network = as_network(network, x)
    listed = rectangular(target, "target", "a class or several")
    targets: Any = None if target is None else np.atleast_1d(listed).tolist()
    several = targets is not None and len(targets) != 1
    request = Request.of(
        network,
        "ipopt" if solver is None and several else solver,
        source=source,
        norm=norm,
        bounds=bounds,
        frozen=frozen,
        weights=weights,
        margin=margin,
        valid=valid,
        constraints=constraints,
        integers=integers,
        one_of=one_of,
        outputs=outputs,
        homotopy=homotopy,
        starts=starts,
        towards=towards,
        seed=seed,
    )
    point = as_one_point(x, network, "x")
    request.require_sound(point[None], "x")
    sources, why = request.examined(point[None])
    others = None if targets is None else checked_targets(network, targets if several else targets[0], int(sources[0]))
    classes = some_classes(int(sources[0]), others)

    def failed(row: Array, why: str) -> FlipResult:
        return failure(point, classes, why, request.solver.name)

    if why[0]:
        return failed(np.zeros(1), why[0])
    if request.batched and not several:
        target = None if others is None else others[0]
        return isolated(lambda _: solve_as_batch(request, point, target), np.zeros(1), failed)[0]
    return attempted(lambda: solve_serially(request, point, others), point, classes, request.solver.name)
