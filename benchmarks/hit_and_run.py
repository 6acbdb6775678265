"""Hit-and-run in polytopes of 400 faces in 100 dimensions, against hopsy's: time, mixing, and whether moments agree.

- ``random``: { A z <= 1 } with rows of A uniform on the sphere.
- ``region``: the 400 nearest boundaries of the first layer of the committed generator, in the box of GB-RRT's targets.

Both have four chains of 250 points. Moves between two points are chosen so that both come to about the same effective
size: hopsy moves in random directions, flipopt along principal axes of what it has drawn. A moment is the mean of a
coordinate, or of its square; two agree if they differ by at most three standard errors, by each one's effective size.
Of moments that are the same, 0.3% would not.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import gbrrt
from benchmarks.rows import Row, keeping, read_rows
from flipopt.common.checks import Array, optional_package
from flipopt.common.progress import tracked
from flipopt.generative import nearest_boundaries, region
from flipopt.generative.chains import SWEEPS
from flipopt.generative.diagnostics import effective_size, split_rhat
from flipopt.generative.polytope import chebyshev, exact_chains, faces_of

FACES, D, CHAINS, DRAWS = 400, 100, 4, 250
MOVES = 50 * D
"""Of hopsy between two points."""
ERRORS = 3.0
"""Standard errors within which moments agree."""
POLYTOPES = ("random", "region")
COLUMNS = (
    "polytope", "seed", "faces", "dimensions", "cpu_seconds", "hopsy_cpu_seconds", "rhat", "hopsy_rhat",
    "effective_size", "hopsy_effective_size", "moments", "agree", "largest_difference", "mean_square_difference",
)  # fmt: skip


def run(out: Path, seeds: int, console: Console) -> None:
    """Measure; rows to ``out`` (.csv), one for each polytope and seed, those that are there not again."""
    known = {(row["polytope"], int(row["seed"])) for row in read_rows(out)}
    steps = [(name, seed) for name in POLYTOPES for seed in range(seeds) if (name, seed) not in known]
    with keeping(out, COLUMNS, console) as add:
        for name, seed in tracked(steps, "chains", console):
            add([{"polytope": name, "seed": seed} | compared(*polytope(name, seed), seed)])


def polytope(name: str, seed: int) -> tuple[Array, Array, Array]:
    """A (faces, d), b (faces,) of { A z + b >= 0 }, and a point inside (d,)."""
    if name == "random":
        A = np.random.default_rng(seed).standard_normal((FACES, D))
        return A / np.linalg.norm(A, axis=1, keepdims=True), np.ones(FACES), np.zeros(D)
    G = gbrrt.generator()
    z0 = gbrrt.latent(G, seed)
    nearest = nearest_boundaries(G, z0, 1, candidates=FACES)
    A, b = faces_of(region(G, z0, 1, nearest.unit))
    centre, _ = chebyshev(A, b, z0 - 1, z0 + 1)
    return np.concatenate([A, np.eye(D), -np.eye(D)]), np.concatenate([b, 1 - z0, 1 + z0]), centre


def compared(A: Array, b: Array, start: Array, seed: int) -> Row:
    """Both on one polytope."""
    exact_chains(A, b, start, start, np.inf, False, (1, 4, 1), 0)  # compiles
    began = time.process_time()
    ours = exact_chains(A, b, start, start, np.inf, False, (CHAINS, DRAWS, SWEEPS), seed)
    between = time.process_time()
    theirs = by_hopsy(A, b, start, seed)
    ended = time.process_time()
    apart = np.concatenate([differences(ours**power, theirs**power) for power in (1, 2)])
    return {
        "faces": len(A),
        "dimensions": A.shape[1],
        "cpu_seconds": round(between - began, 3),
        "hopsy_cpu_seconds": round(ended - between, 3),
        "rhat": round(float(split_rhat(ours).max()), 4),
        "hopsy_rhat": round(float(split_rhat(theirs).max()), 4),
        "effective_size": round(float(effective_size(ours).min()), 1),
        "hopsy_effective_size": round(float(effective_size(theirs).min()), 1),
        "moments": len(apart),
        "agree": int((apart <= ERRORS).sum()),
        "largest_difference": round(float(apart.max()), 3),
        "mean_square_difference": round(float((apart**2).mean()), 3),
    }


def by_hopsy(A: Array, b: Array, start: Array, seed: int) -> Array:
    """Chains (chains, draws, d)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of a package that it imports
        hopsy = optional_package("hopsy", "bench", "the comparison with its chains")
    problem = hopsy.Problem(-A, b)
    chains = [hopsy.MarkovChain(problem, hopsy.UniformHitAndRunProposal, starting_point=start) for _ in range(CHAINS)]
    numbers = [hopsy.RandomNumberGenerator(CHAINS * seed + k) for k in range(CHAINS)]
    _, found = hopsy.sample(chains, numbers, n_samples=DRAWS + DRAWS // 2, thinning=MOVES)
    return np.asarray(found)[:, DRAWS // 2 :]


def differences(X: Array, Y: Array) -> Array:
    """Between the means of two sets of chains, in standard errors, (d,)."""
    errors = [Z.std(axis=(0, 1)) / np.sqrt(effective_size(Z)) for Z in (X, Y)]
    return np.asarray(np.abs(X.mean(axis=(0, 1)) - Y.mean(axis=(0, 1))) / np.hypot(*errors))


def show(out: Path, console: Console) -> None:
    """All rows."""
    shown = ("polytope", "seed", "cpu_seconds", "hopsy_cpu_seconds", "rhat", "effective_size",
             "hopsy_effective_size", "agree", "moments", "mean_square_difference")  # fmt: skip
    table = Table(*(name.replace("_", " ") for name in shown))
    for row in read_rows(out):
        table.add_row(*(str(row[name]) for name in shown))
    console.print(table)
