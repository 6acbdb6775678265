"""Section 3.3: with which tau and eta does the homotopy find flip points, and how far does a direct solve come?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.kept import computed
from benchmarks.reproduce.paper_002.homotopy_pictures import draw_erf, draw_grids
from benchmarks.reproduce.paper_002.homotopy_solves import (
    BEYOND,
    COLUMNS,
    FORMS,
    IMAGES,
    ITERATIONS,
    MIDDLE,
    Cell,
    Cells,
    Form,
    Solve,
    cells_of,
    pairs,
    solve_one,
)
from benchmarks.reproduce.record import Claim, Number, Picture, Record, Sheet, setting
from flipopt.explain.matching import percent
from flipopt.features.shipped import load_shipped

TAUS = (1e-7, 1e-6, 1e-5, 1e-4)
ETAS = (1, 2, 3, 5, 8, 10, 15)
NAME = "002.homotopy"


def ranges(desk: Desk) -> Record:
    """Solve every problem in every form with every tau and eta, uniform stages as the paper prints them."""
    taus, etas = desk.few(TAUS, (TAUS[0], MIDDLE, TAUS[-1])), desk.few(ETAS, (1, 15))
    forms, images = desk.few(tuple(FORMS), ("probabilities", "net2")), desk.few(IMAGES, 1)
    solves = [
        Solve(form, row, tau, eta)
        for form in forms
        for row in range(images)
        for tau, eta in pairs(taus if FORMS[form].every else (MIDDLE,), etas)
    ]
    loads = {solve.key: solve for solve in solves}
    path = desk.results / "homotopy-ranges.csv"
    found = computed(path, COLUMNS, "homotopy paths", loads, solve_one, desk.console)
    cells = cells_of([found[key][0] for key in loads], images)
    grids, curves = desk.picture("002-homotopy.png"), desk.picture("002-figure-1.png")
    whole = {form: about.title for form, about in _forms(cells).items() if about.every}
    draw_grids(grids, {title: _grid(cells, form, taus, etas) for form, title in whole.items()}, taus, etas)
    draw_erf(curves, {name: load_shipped(name).network for name in ("mnist-net1", "mnist-net2")})
    return Record(
        title="The homotopy's tau and eta (section 3.3, Figure 1)",
        summary=f"{images} test images were taken to the boundary with their runner-up or with a class drawn at "
        "random, in turn, along a uniform path of eta stages from an easy network with slopes of at least tau, each "
        "stage solved by IPOPT; eta = 1 is the direct solve from the image. The constraints are on probabilities, as "
        "the paper has them, or on logits.",
        setup={
            "tau": list(taus),
            "eta": [*etas, BEYOND],
            "images": images,
            "solver": "ipopt",
            "iterations": ITERATIONS,
            "forms": {form: about.title for form, about in _forms(cells).items()},
        },
        seeds=(0,),
        numbers=_numbers(taus, etas),
        claims=[claim for claim in (_best(cells, etas), _better_than_direct(cells)) if claim.holds],
        pictures=[Picture(grids.name, _grids_caption(images)), Picture(curves.name, ERF_CAPTION)],
        sheets=[_sheet(cells, taus, etas)],
        figures={
            f"{form}, tau {tau:g}, eta {eta}": [cell.share, cell.ratio, cell.evaluations]
            for (form, tau, eta), cell in cells.items()
        },
    )


def _forms(cells: Cells) -> dict[str, Form]:
    return {form: FORMS[form] for form, _, _ in cells}


def _grid(cells: Cells, form: str, taus: Sequence[float], etas: Sequence[int]) -> list[list[Cell]]:
    """A row a tau, a column an eta."""
    return [[cells[form, MIDDLE if eta == 1 else tau, eta] for eta in etas] for tau in taus]


def _numbers(taus: Sequence[float], etas: Sequence[int]) -> list[Number]:
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
    for form, about in _forms(cells).items():
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
    for form, about in _forms(cells).items():
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
    for form, about in _forms(cells).items():
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
        f"Which share of {images} problems is solved (above), and how many evaluations of the network it takes in the "
        "median (below), by the number of stages of the homotopy and by the least slope tau of the easy network that "
        "it starts from. One stage is the direct solve, in which tau plays no part."
    )


ERF_CAPTION = (
    "Left: erf(x / sigma), the activation of all hidden neurons, for several sigma: nearly a step for a small one, "
    "nearly a line for a large one. Right: the sigma that training has found for each layer of the two MNIST "
    "networks."
)
