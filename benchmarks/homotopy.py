"""What the homotopy is good for: direct solves, uniform and adaptive paths where gradients vanish, explode or jump.

Three cases: (a) NET1 in the papers' own form with probabilities, (b) a saturated copy of NET1, whose sigmas are divided
by 4, (c) a ReLU network on 784 pixels. The images are the last hundred that ship with the network. The values of the
adaptive path were chosen on the others, but not everything is held out: the rule that linear pieces take over after one
stage at its limit was made after looking at the first four images of (c) itself, and the trust region's funnels and the
number of restarts after looking at what failed among the first thirty images of (b).
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.rows import Row, keeping, read_rows
from flipopt.common.checks import Array
from flipopt.common.progress import progress_bar
from flipopt.common.writing import atomic_path
from flipopt.features.shipped import load_shipped
from flipopt.homotopy import Homotopy, follow
from flipopt.networks import DenseNetwork
from flipopt.networks.activations import Erf
from flipopt.networks.protocol import Outputs
from flipopt.problem import Evaluations, FlipProblem, flip_problem
from flipopt.results import FlipResult
from flipopt.solvers import Ipopt, Scipy, Solver
from flipopt.solvers.walk import walk

COLUMNS = (
    "case", "row", "target", "i", "j", "method", "status", "distance", "kkt_residual", "boundary_gap", "stages",
    "forward", "backward", "hessian", "seconds", "message",
)  # fmt: skip
FIRST_IMAGE = 100
SECONDS = 1200.0
"""Of any one solve; a run that takes longer is a failure."""
SATURATION = 4.0


@dataclass(frozen=True)
class Case:
    """A network and the form of the constraints."""

    title: str
    shipped: str
    outputs: Outputs = "logits"
    saturated: bool = False
    relu: bool = False
    iterations: int = 200
    """Of any one solve by IPOPT or SLSQP. They converge in about 30 where they do, and seldom after 200; at the kinks
    of a ReLU network they never do, and the descent over its pieces finishes what they have begun."""

    @property
    def points(self) -> Array:
        return load_shipped(self.shipped).X[FIRST_IMAGE:]

    def network(self) -> DenseNetwork:
        net = load_shipped(self.shipped).network
        if not self.saturated:
            return net
        return net.with_activations([Erf(np.asarray(a.parameter_value) / SATURATION) for a in net.activations])

    @property
    def methods(self) -> list[str]:
        return list(METHODS) if self.relu else [name for name in METHODS if name != "adaptive-elu"]


CASES = {
    "a": Case("NET1, probabilities", "mnist-net1", outputs="probabilities"),
    "b": Case("NET1 with sigma / 4", "mnist-net1", saturated=True),
    "c": Case("784-50-50-10 ReLU", "mnist-fcn", relu=True, iterations=50),
}


@dataclass(frozen=True)
class Method:
    """A solver from x or from the end of the walk, or inside a homotopy."""

    solver: Solver
    from_walk: bool = False
    homotopy: Homotopy | None = None

    def solve(self, problem: FlipProblem, network: DenseNetwork, iterations: int) -> FlipResult:
        solver = replace(self.solver, max_iter=iterations)
        if self.homotopy is not None:
            return follow(problem, solver, self.homotopy, network)
        cost = Evaluations()
        x0 = walk(problem, cost) if self.from_walk else problem.x
        flip = solver.solve(problem, x0, network)
        return replace(flip, evaluations=flip.evaluations + cost)


IPOPT = Ipopt(max_seconds=SECONDS)
METHODS = {
    "ipopt": Method(IPOPT),
    "slsqp": Method(Scipy(max_seconds=SECONDS)),
    "ipopt-walk": Method(IPOPT, from_walk=True),
    **{
        f"uniform-{eta}": Method(IPOPT, homotopy=Homotopy(eta, adaptive=False, max_seconds=SECONDS))
        for eta in (5, 10, 15)
    },
    "adaptive": Method(IPOPT, homotopy=Homotopy(max_seconds=SECONDS)),
    "adaptive-elu": Method(IPOPT, homotopy=Homotopy(smooth=True, max_seconds=SECONDS)),
}


@cache
def _network(case: str) -> DenseNetwork:
    return CASES[case].network()


def run(out: Path, cases: str, images: int, processes: int, console: Console) -> list[Row]:
    """Solve every problem with every method; rows are kept in ``out`` (.csv), and none is solved twice."""
    with keeping(out, COLUMNS, console) as add:
        have = {(row["case"], row["row"], row["target"], row["method"]) for row in read(out)}
        todo = [
            (case, row, target, names)
            for case in cases
            for row in range(images)
            for target in ("nearest", "random")
            if (names := [name for name in CASES[case].methods if (case, row, target, name) not in have])
        ]
        with progress_bar("problems", len(todo), console=console) as advance:
            for done, rows in enumerate(_all(todo, processes), 1):
                add(rows)
                advance(done)
    return read(out)


def _all(todo: list[tuple[str, int, str, list[str]]], processes: int) -> Iterator[list[Row]]:
    """The rows of every problem, in order; each process uses one core."""
    if processes == 1 or len(todo) < 2:
        yield from map(_problem_rows, todo)
        return
    os.environ |= {"FLIPOPT_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(_problem_rows, todo)


def _problem_rows(task: tuple[str, int, str, list[str]]) -> list[Row]:
    """One problem by several methods."""
    case, row, target, names = task
    network, setting = _network(case), CASES[case]
    x = setting.points[row]
    i, j = classes(network, x, target, row)
    problem = flip_problem(network, x, (i, j), outputs=setting.outputs)
    head = {"case": case, "row": row, "target": target, "i": i, "j": j}
    flips = ((name, METHODS[name].solve(problem, network, setting.iterations)) for name in names)
    return [head | {"method": name} | outcome(flip) for name, flip in flips]


def classes(network: DenseNetwork, x: Array, target: str, row: int) -> tuple[int, int]:
    """The predicted class and the target: drawn by the row's number, or the class whose walk ends nearest.

    A walk that has not come near the boundary does not count; where none has, the runner-up is taken.
    """
    y = network.logits(x)
    i = int(y.argmax())
    others = [k for k in range(network.n_classes) if k != i]
    if target == "random":
        return i, int(np.random.default_rng(row).choice(others))
    ends = {}
    for k in others:
        problem = flip_problem(network, x, (i, k))
        end = walk(problem, Evaluations())
        scores = problem.network.logits(end)
        if abs(scores[i] - scores[k]) <= 0.01 * abs(y[i] - y[k]):
            ends[k] = problem.distance(end)
    return i, min(ends, key=ends.__getitem__) if ends else max(others, key=lambda k: y[k])


def outcome(flip: FlipResult) -> Row:
    """How a solve ended and what it took."""
    check, cost = flip.check, flip.evaluations
    return {
        "status": flip.status.name, "distance": repr(flip.distance),
        "kkt_residual": check.kkt_residual if check else np.nan,
        "boundary_gap": check.boundary_gap if check else np.nan,
        "stages": len(flip.stages), "forward": cost.forward, "backward": cost.backward, "hessian": cost.hessian,
        "seconds": round(flip.elapsed, 3), "message": flip.message,
    }  # fmt: skip


def read(path: Path) -> list[Row]:
    """The rows of a result file."""
    whole = ("row", "i", "j", "stages", "forward", "backward", "hessian")
    return read_rows(path, whole, ("distance", "seconds"))


def show(rows: list[Row], console: Console) -> None:
    """A table a case: verified success, distances and cost of each method."""
    for case in dict.fromkeys(row["case"] for row in rows):
        own = [row for row in rows if row["case"] == case]
        table = Table(title=f"({case}) {CASES[case].title}")
        for heading in ("method", "target", "verified", "median distance", "forward", "all evaluations", "median s"):
            table.add_column(heading, justify="left" if heading in ("method", "target") else "right")
        for target in dict.fromkeys(row["target"] for row in own):
            for line in summaries([row for row in own if row["target"] == target]):
                table.add_row(line.pop("method"), target, *line.values())
            table.add_section()
        console.print(table)


def write_markdown(path: Path, rows: list[Row]) -> None:
    """The same tables for the documentation."""
    headings = ("target", "method", "verified", "median distance", "forward passes", "all evaluations")
    lines = []
    for case in dict.fromkeys(row["case"] for row in rows):
        own = [row for row in rows if row["case"] == case]
        lines += [f"**({case}) {CASES[case].title}**", "", cells(headings), cells(["---"] * len(headings))]
        for target in dict.fromkeys(row["target"] for row in own):
            for line in summaries([row for row in own if row["target"] == target]):
                lines.append(cells([target, *list(line.values())[:-1]]))
        lines.append("")
    with atomic_path(path) as temporary:
        temporary.write_text("\n".join(lines))


def cells(values: Sequence[str]) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(values)} |"


def summaries(rows: list[Row]) -> list[dict[str, str]]:
    """One line a method: means and medians as text. Distances are of the problems that this method solved."""
    lines = []
    for name in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == name]
        solved = [row for row in own if row["status"] == "CONVERGED"]
        total = [row["forward"] + row["backward"] + row["hessian"] for row in own]
        distances = [row["distance"] for row in solved]
        lines.append(
            {
                "method": name,
                "verified": f"{len(solved)}/{len(own)}",
                "distance": f"{np.median(distances):.3f}" if distances else "-",
                "forward": f"{np.mean([row['forward'] for row in own]):.0f}",
                "total": f"{np.mean(total):.0f}",
                "seconds": f"{np.median([row['seconds'] for row in own]):.2f}",
            }
        )
    return lines
