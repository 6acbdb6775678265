"""Section 3.3: with which tau and eta does the homotopy find flip points, and how far does a direct solve come?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

import flipopt as fo
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.kept import computed
from benchmarks.reproduce.paper_002.homotopy_pictures import draw_erf, draw_grids
from benchmarks.reproduce.record import Claim, Number, Picture, Record, Sheet, setting
from flipopt.common.checks import Array
from flipopt.explain.matching import percent
from flipopt.features.shipped import load_shipped
from flipopt.homotopy import Homotopy, follow
from flipopt.networks import DenseNetwork
from flipopt.networks.activations import Erf
from flipopt.networks.protocol import Outputs
from flipopt.problem import flip_problem
from flipopt.results import Status
from flipopt.runs.rows import Row
from flipopt.solvers import Ipopt

TAUS = (1e-7, 1e-6, 1e-5, 1e-4)
ETAS = (1, 2, 3, 5, 8, 10, 15)
MIDDLE, BEYOND = 1e-5, 30
"""The tau at which more stages than the paper's are tried, and how many."""
IMAGES = 8
"""Of the test set, in turn with the runner-up and with a class drawn at random."""
ITERATIONS = 100
"""Of any one solve by IPOPT, which takes about 30 where it converges."""
COLUMNS = ("form", "row", "i", "j", "tau", "eta", "status", "distance", "forward", "evaluations")
NAME = "002.homotopy"


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


def ranges(desk: Desk) -> Record:
    """Solve every problem in every form with every tau and eta, uniform stages as the paper prints them."""
    taus, etas = desk.few(TAUS, (TAUS[0], MIDDLE, TAUS[-1])), desk.few(ETAS, (1, 15))
    images = desk.few(IMAGES, 1)
    solves = [
        Solve(form, row, tau, eta)
        for form, about in FORMS.items()
        for row in range(images)
        for tau, eta in pairs(taus if about.every else (MIDDLE,), etas)
    ]
    loads = {solve.key: solve for solve in solves}
    path = desk.results / "homotopy-ranges.csv"
    found = computed(path, COLUMNS, "homotopy paths", loads, solve_one, desk.console)
    cells = _cells([found[key][0] for key in loads], images)
    grids, curves = desk.picture("002-homotopy.png"), desk.picture("002-figure-1.png")
    whole = {form: about.title for form, about in FORMS.items() if about.every}
    draw_grids(grids, {title: _grid(cells, form, taus, etas) for form, title in whole.items()}, taus, etas)
    draw_erf(curves, {name: load_shipped(name).network for name in ("mnist-net1", "mnist-net2")})
    return Record(
        title="The homotopy's tau and eta (section 3.3, Figure 1)",
        summary=f"{images} test images were taken to the boundary with their runner-up or with a class drawn at random, in "
        "turn, along a uniform path of eta stages from an easy network with slopes of at least tau, each stage solved by "
        "IPOPT; eta = 1 is the direct solve from the image. The constraints are on probabilities, as the paper has them, or "
        "on logits.",
        setup={
            "tau": list(taus),
            "eta": [*etas, BEYOND],
            "images": images,
            "solver": "ipopt",
            "iterations": ITERATIONS,
            "forms": {form: about.title for form, about in FORMS.items()},
        },
        seeds=(0,),
        numbers=_numbers(cells, taus, etas),
        claims=[claim for claim in (_best(cells, etas), _better_than_direct(cells)) if claim.holds],
        pictures=[Picture(grids.name, _grids_caption(images)), Picture(curves.name, ERF_CAPTION)],
        sheets=[_sheet(cells, taus, etas)],
        figures={
            f"{form}, tau {tau:g}, eta {eta}": [cell.share, cell.ratio, cell.evaluations]
            for (form, tau, eta), cell in cells.items()
        },
    )


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


def _cells(rows: Sequence[Row], images: int) -> Cells:
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
    for form, about in FORMS.items():
        X = load_shipped(about.shipped).X[:images]
        targets = [classes(_network(form), x, row)[1] for row, x in enumerate(X)]
        table = fo.closest_flip_points(_network(form), X, targets)
        for row, distance in enumerate(np.where(table.success, table.distance, np.inf)):
            best[about.shipped, about.steeper, row] = float(distance)
    for row in filter(_solved, rows):
        best[_problem(row)] = min(best[_problem(row)], float(row["distance"]))
    return best


def _problem(row: Row) -> tuple[str, float, int]:
    """Network and image, whatever the outputs: flip points are the same in probabilities and in logits."""
    form = FORMS[row["form"]]
    return form.shipped, form.steeper, int(row["row"])


def _solved(row: Row) -> bool:
    return bool(row["status"] == Status.CONVERGED.name)


def _grid(cells: Cells, form: str, taus: Sequence[float], etas: Sequence[int]) -> list[list[Cell]]:
    """A row a tau, a column an eta."""
    return [[cells[form, MIDDLE if eta == 1 else tau, eta] for eta in etas] for tau in taus]


def _numbers(cells: Cells, taus: Sequence[float], etas: Sequence[int]) -> list[Number]:
    why = "An end of the grid that we tried."
    said = [
        ("tau_range", "values of tau", (min(taus), max(taus))),
        ("eta_range", "values of eta, stages", (min(etas), max(etas))),
    ]
    return [
        setting(f"{NAME}.{key}.{k}", f"{end} of the {what}", value, why)
        for key, what, ends in said
        for k, (end, value) in enumerate(zip(("least", "largest"), ends, strict=True))
    ]


def _within(cells: Cells, form: str) -> dict[tuple[float, int], Cell]:
    """Of a form, the cells of the paper's ranges."""
    return {(tau, eta): cell for (name, tau, eta), cell in cells.items() if name == form and eta != BEYOND}


def _best(cells: Cells, etas: Sequence[int]) -> Claim:
    """Whether more stages than the paper's would find more."""
    said, holds = [], {}
    for form, about in FORMS.items():
        own, beyond = _within(cells, form), cells[form, MIDDLE, BEYOND]
        most = max(cell.solved for cell in own.values())
        tau, eta = next(at for at, cell in own.items() if cell.solved == most)  # those with few stages come first
        enough = _enough(own)
        whatever = f", and all whatever tau from {enough} on" if enough else ""
        holds[about.title] = most >= beyond.solved
        said.append(
            f"{about.title}: {most} of {beyond.problems}, first with eta = {eta} (tau {tau:g}, "
            f"{own[tau, eta].evaluations:,.0f} evaluations of the network){whatever}; {BEYOND} stages solve "
            f"{beyond.solved} with {beyond.evaluations:,.0f}"
        )
    return Claim(
        f"the best results come with {min(etas)} to {max(etas)} stages",
        "section 3.3",
        f"problems solved with the best setting: {'; '.join(said)}.",
        holds,
    )


def _enough(own: Mapping[tuple[float, int], Cell]) -> int | None:
    """The number of stages from which on every problem is solved with every tau."""
    failed = [eta for (_, eta), cell in own.items() if cell.share < 1]
    return min((eta for _, eta in own if eta > max(failed, default=0)), default=None)


def _better_than_direct(cells: Cells) -> Claim:
    """Where a direct solve fails at all: does a path find what it does not?"""
    said, holds = [], {}
    for form, about in FORMS.items():
        direct = cells[form, MIDDLE, 1]
        paths = {at: cell for at, cell in _within(cells, form).items() if at[1] > 1}
        most = max(cell.solved for cell in paths.values())
        said.append(f"{about.title}: {direct.solved} of {direct.problems} directly, {most} along the best path")
        if direct.share < 1:
            holds[about.title] = most > direct.solved
    return Claim(
        "where a direct solve finds no flip point, the homotopy does",
        "sections 3.1 and 3.3",
        f"problems solved: {'; '.join(said)}.",
        holds,
    )


def _sheet(cells: Cells, taus: Sequence[float], etas: Sequence[int]) -> Sheet:
    """A line a form and eta."""
    rows = []
    for form, about in FORMS.items():
        for eta in (*etas, BEYOND):
            middle = cells[form, MIDDLE, eta]
            shown = [cells.get((form, tau, eta)) for tau in taus]
            ratio = f"{middle.ratio:.3f}" if np.isfinite(middle.ratio) else "—"
            solved = [percent(cell.share) if cell else "—" for cell in shown]
            rows.append([about.title, str(eta), *solved, ratio, f"{middle.evaluations:,.0f}"])
    head = ["network", "stages", *(f"tau {tau:g}" for tau in taus), "distance over best known", "evaluations"]
    return Sheet(f"Problems solved, by tau; distances and evaluations are medians with tau {MIDDLE:g}", head, rows)


def _grids_caption(images: int) -> str:
    return (
        f"Which share of {images} problems is solved (above), and how many evaluations of the network it takes in the median "
        "(below), by the number of stages of the homotopy and by the least slope tau of the easy network that it starts from. "
        "One stage is the direct solve, in which tau plays no part."
    )


ERF_CAPTION = (
    "Left: erf(x / sigma), the activation of all hidden neurons, for several sigma: nearly a step for a small one, nearly a "
    "line for a large one. Right: the sigma that training has found for each layer of the two MNIST networks."
)
