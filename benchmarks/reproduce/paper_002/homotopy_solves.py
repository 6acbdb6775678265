"""Flip points along homotopy paths with every tau and eta (section 3.3): the problems, and what was achieved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

import flipopt as fo
from flipopt.common.checks import Array
from flipopt.features.shipped import load_shipped
from flipopt.homotopy import Homotopy, follow
from flipopt.networks import DenseNetwork
from flipopt.networks.activations import Erf
from flipopt.networks.protocol import Outputs
from flipopt.problem import flip_problem
from flipopt.results import Status
from flipopt.runs.rows import Row
from flipopt.solvers import Ipopt

MIDDLE, BEYOND = 1e-5, 30
"""The tau at which more stages than the paper's are tried, and how many."""
IMAGES = 8
"""Of the test set, in turn with the runner-up and with a class drawn at random."""
ITERATIONS = 100
"""Of any one solve by IPOPT, which takes about 30 where it converges."""
COLUMNS = ("form", "row", "i", "j", "tau", "eta", "status", "distance", "forward", "evaluations")


@dataclass(frozen=True)
class Form:
    """A network, and the outputs that the constraints are of.

    Attributes
    ----------
    title
        On the page.
    shipped
        The network.
    outputs
        The paper's own form has probabilities.
    steeper
        What the network's sigmas are divided by.
    every
        Whether every tau is tried.
    """

    title: str
    shipped: str
    outputs: Outputs
    steeper: float = 1.0
    every: bool = True

    @property
    def network(self) -> DenseNetwork:
        net = load_shipped(self.shipped).network
        if self.steeper == 1:
            return net
        return net.with_activations([Erf(np.asarray(a.parameter_value) / self.steeper) for a in net.activations])


FORMS = {
    "probabilities": Form("NET1, probabilities", "mnist-net1", "probabilities"),
    "logits": Form("NET1, logits", "mnist-net1", "logits", every=False),
    "steeper": Form("NET1 with sigma / 1.5, logits", "mnist-net1", "logits", steeper=1.5),
    "net2": Form("NET2, probabilities", "mnist-net2", "probabilities", every=False),
}


@dataclass(frozen=True)
class Solve:
    """A problem and how it is solved."""

    form: str
    row: int
    tau: float
    eta: int

    @property
    def key(self) -> str:
        return f"{self.form} {self.row} {self.tau:g} {self.eta}"


@dataclass(frozen=True)
class Cell:
    """What one tau and eta have achieved: problems, how many were solved, distance over the best known (median over
    those), evaluations of the network (median over all)."""

    problems: int
    solved: int
    ratio: float
    evaluations: float

    @property
    def share(self) -> float:
        return self.solved / self.problems


Cells = Mapping[tuple[str, float, int], Cell]
"""By form, tau and eta."""


def pairs(taus: Sequence[float], etas: Sequence[int]) -> list[tuple[float, int]]:
    """tau and eta of all solves. Without stages there is no easy network, so that tau does not matter."""
    return [(MIDDLE, 1), *((tau, eta) for eta in etas if eta > 1 for tau in taus), (MIDDLE, BEYOND)]


def solve_one(solve: Solve) -> list[Row]:
    """One problem along one path, in a process of its own."""
    network, form = _network(solve.form), FORMS[solve.form]
    x = load_shipped(form.shipped).X[solve.row]
    i, j = classes(network, x, solve.row)
    problem = flip_problem(network, x, (i, j), outputs=form.outputs)
    path = Homotopy(stages=solve.eta, tau=solve.tau, adaptive=False)
    flip = follow(problem, Ipopt(max_iter=ITERATIONS), path, network)
    return [
        {
            "form": solve.form, "row": solve.row, "i": i, "j": j, "tau": f"{solve.tau:g}", "eta": solve.eta,
            "status": flip.status.name, "distance": f"{flip.distance:.8g}",
            "forward": flip.evaluations.forward, "evaluations": flip.evaluations.total,
        }
    ]  # fmt: skip


@cache
def _network(form: str) -> DenseNetwork:
    return FORMS[form].network


def classes(network: DenseNetwork, x: Array, row: int) -> tuple[int, int]:
    """The predicted class, and in turn the runner-up or another class drawn by the row's number."""
    order = np.argsort(-network.logits(x), kind="stable")
    return int(order[0]), int(order[1] if row % 2 == 0 else np.random.default_rng(row).choice(order[1:]))


def cells_of(rows: Sequence[Row], images: int) -> Cells:
    """Rows put together by form, tau and eta."""
    best = _best_known(rows, images)
    cells = {}
    for key in dict.fromkeys((row["form"], float(row["tau"]), int(row["eta"])) for row in rows):
        own = [row for row in rows if (row["form"], float(row["tau"]), int(row["eta"])) == key]
        ratios = [float(row["distance"]) / best[_problem(row)] for row in own if _solved(row)]
        ratio = float(np.median(ratios)) if ratios else np.nan
        cells[key] = Cell(len(own), len(ratios), ratio, float(np.median([float(row["evaluations"]) for row in own])))
    return cells


def _best_known(rows: Sequence[Row], images: int) -> dict[tuple[str, float, int], float]:
    """The least distance that any of these paths or the batch solver has found, by problem."""
    best = {}
    for form in dict.fromkeys(row["form"] for row in rows):
        about = FORMS[form]
        X = load_shipped(about.shipped).X[:images]
        targets = [classes(_network(form), x, row)[1] for row, x in enumerate(X)]
        table = fo.closest_flip_points(_network(form), X, targets)
        for row, distance in enumerate(np.where(table.success, table.distance, np.inf)):
            best[about.shipped, about.steeper, row] = float(distance)
    for solved in filter(_solved, rows):
        best[_problem(solved)] = min(best[_problem(solved)], float(solved["distance"]))
    return best


def _problem(row: Row) -> tuple[str, float, int]:
    """Network and image, whatever the outputs: flip points are the same in probabilities and in logits."""
    form = FORMS[row["form"]]
    return form.shipped, form.steeper, int(row["row"])


def _solved(row: Row) -> bool:
    return bool(row["status"] == Status.CONVERGED.name)
