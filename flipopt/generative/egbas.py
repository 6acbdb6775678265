"""E-GBAS, Algorithm 3 of Jeon, Jeong and Choi (003): the essential boundaries of a query, and samples within them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from flipopt.generative.essential import BerOpt, Essential, essential
from flipopt.generative.exploration import Exploration, explore
from flipopt.generative.generator import Generator


@dataclass(frozen=True, eq=False)
class Egbas:
    """What Algorithm 3 has found.

    Attributes
    ----------
    essential
        The essential units, line 1.
    exploration
        The samples in the region of these, line 4.
    """

    essential: Essential
    exploration: Exploration

    def summary(self) -> str:
        """In plain words."""
        return f"{self.essential}\n{self.exploration}"

    def __str__(self) -> str:
        return self.summary()


def egbas(
    G: Generator,
    z0: ArrayLike,
    layer: int,
    lam: float | None = None,
    target_error: float | None = None,
    options: BerOpt | None = None,
    seed: int = 0,
    **exploring: Any,
) -> Egbas:
    """Samples that share with a query the signs of its essential units in a layer: Algorithm 3.

    Parameters
    ----------
    G, z0, layer
        As in :func:`essential` and :func:`explore`, which do the work.
    lam, target_error, options
        As in :func:`essential`.
    seed
        Of both.
    exploring
        ``interval``, ``delta``, ``expansions``, ``batch``, ``check_segments`` and ``progress`` of :func:`explore`.
    """
    progress = bool(exploring.get("progress", False))
    units = essential(G, z0, layer, lam, target_error, options, seed, progress)
    return Egbas(units, explore(G, z0, layer, units.mask, seed=seed, **exploring))
