"""Several flip points of one input, away from each other (appendix E.2 of Yousefzadeh and O'Leary 2020)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import as_number, as_whole
from flipopt.flips.one import closest_flip_point
from flipopt.networks.points import as_one_point
from flipopt.networks.protocol import Network
from flipopt.networks.wrapping import as_network
from flipopt.problem.constraints import outside_balls
from flipopt.results import FlipResult


def further_flip_points(
    network: Network, x: ArrayLike, target: int, count: int, radius: float = 0.1, seed: int = 0, **options: Any
) -> list[FlipResult]:
    """Several flip points between the predicted class of x and ``target``, closest first, away from each other (E.2).

    Each further one is sought outside balls around those already found, of ``radius`` times their distance, and then
    solved for without the balls. It may return fewer than ``count``: what falls back into a known point is dropped.
    """
    count, seed = as_whole(count, "count", least=1), as_whole(seed, "seed")
    radius = as_number(radius, "radius", least=0.0)
    network = as_network(network, x)
    found = [closest_flip_point(network, x, target, **options)]
    point = as_one_point(x, network, "x")
    users = tuple(options.pop("constraints", ()))
    options.pop("starts", None)  # the further ones have their own
    rng = np.random.default_rng(seed)
    for _ in range(3 * (count - 1)):
        if len(found) >= count or not found[0].success:
            break
        known = [flip.x for flip in found]
        balls = outside_balls(np.stack(known), radius * found[0].distance)
        start = point + found[0].distance * rng.standard_normal(len(point)) / np.sqrt(len(point))
        kept_out = closest_flip_point(network, x, target, constraints=(*users, balls), starts=start[None], **options)
        flip = closest_flip_point(network, x, target, constraints=users, starts=kept_out.x[None], **options)
        if flip.success and min(np.linalg.norm(flip.x - other) for other in known) > 0.1 * radius * found[0].distance:
            found.append(flip)
    return sorted(found, key=lambda flip: np.nan_to_num(flip.distance, nan=np.inf))
