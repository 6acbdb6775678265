"""The optima that are proved, of problems where there are proofs."""

from __future__ import annotations

from collections.abc import Callable

from flipopt.comparison.runner import Instance, Problems
from flipopt.proofs import prove
from flipopt.proofs.instance import is_piecewise_linear

TOLERANCE = 5e-7
"""Of the proofs: a gap to the optimum is then true to a millionth."""


def proved_optima(
    problems: Problems, seconds: float, advance: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, float]:
    """Distances that are proved to be the least, by the name of the problem, with ``seconds`` for each.

    For dense ReLU networks, in the 2-norm without bounds and constraints. What is proved is the nearest flip of all
    classes: a problem with another target class has no optimum here.
    """
    entries, found = problems.entries(), {}
    for done, entry in enumerate(entries):
        advance(done, len(entries))
        optimum = _optimum(problems.make(entry.name), seconds)
        if optimum is not None:
            found[entry.name] = optimum
    advance(len(entries), len(entries))
    return found


def _optimum(instance: Instance, seconds: float) -> float | None:
    problem = instance.problem
    setting = problem.setting
    plain = setting.norm == 2 and not (setting.bounded or setting.constraints) and len(problem.classes) == 2
    if not plain or not is_piecewise_linear(problem.network):
        return None
    proof = prove(
        problem.network, problem.x, tol=TOLERANCE, seconds=seconds, weights=setting.weights, frozen=setting.frozen
    )
    same = proof.proved and proof.classes == tuple(problem.classes)
    return proof.upper if same else None
