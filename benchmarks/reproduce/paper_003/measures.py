"""What is measured of a query and a layer: its essential units, its samples, and what they are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import flipopt.generative as fg
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_003.networks import Pair
from flipopt.common.checks import Array
from flipopt.common.progress import progress_bar
from flipopt.features.shipped import load_shipped
from flipopt.runs.fingerprint import fingerprint

METHODS = {"e-gbas": "E-GBAS", "l2": "ball of the 2-norm", "linf": "ball of the infinity norm", "matched": "control"}
"""Of :func:`flipopt.generative.baselines`, in words."""
CENTRES = ("mean", "query")
"""Of the balls: the mean of the samples, around which the radius is defined, and the query, as the text says too. Of
the second there are no similarities."""
DEPTHS = (1, 2, 3, 4)
"""Layers of the discriminator in Table 2."""
LEAST = 30
"""Samples of a query, below which nothing is compared: its tree hardly grew, and a step is longer than the region."""
JUDGE, DIGIT = "mnist-fcn", (1, 28, 28)
"""The shipped network that says what digit an image is, and the images that it takes."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """What the paper leaves open, fixed before the run.

    They are those of :func:`flipopt.generative.essential` and :func:`flipopt.generative.explore` by default, tried on
    two queries of the seed 1000, which the study does not use, on a generator that was trained for two epochs of five.
    What was looked at is that trees both grow and are stopped: from 39% to 94% of the expansions stayed inside. With
    half as many steps of BerOpt it was 2% in the first layer, where 1,016 units were essential and not 635; with twice
    as many it was 96%, and 302 units. So the steps decide how large a region is, and the study shows what they come to.
    How methods compare played no part; expansions and samples are as many as there was time for.

    Attributes
    ----------
    queries, threshold
        How many, and p: those of the paper.
    seed
        Of the queries.
    target_error
        Relative error that the essential units may have by themselves.
    steps
        Of BerOpt, for every lambda that is tried.
    interval, delta
        I and the step of Algorithm 2; delta by default 0.08 I sqrt(d), 0.8 at d = 100.
    expansions
        N of Algorithm 2.
    count
        Samples, and points of each method, that are compared.
    points
        That hit-and-run draws in the whole of a region of the first layer, cut by the same box.
    """

    queries: int = 10
    threshold: float = 0.5
    seed: int = 0
    target_error: float = 0.1
    steps: int = 300
    interval: float = 1.0
    delta: float | None = None
    expansions: int = 1000
    count: int = 300
    points: int = 400


STEPS = (0.5, 1.0, 2.0)
"""Times the steps of BerOpt, on the first FEW queries in the first layer: how much depends on them."""
FEW = 1
QUICK = Settings(queries=3, steps=20, expansions=120, count=40, points=40)


def settings(desk: Desk) -> Settings:
    """Those of the run."""
    return desk.few(Settings(), QUICK)


def rows(desk: Desk, pair: Pair, how: Settings) -> dict[int, list[Row]]:
    """By layer a row a query. What is known already is not computed again, and all layers of a query come together."""
    tasks = [(layer, k) for k in range(how.queries) for layer in pair.model.layers]
    found: dict[int, list[Row]] = {layer: [] for layer in pair.model.layers}
    with progress_bar(f"{pair.name}: queries and layers", len(tasks), console=desk.console) as advance:
        for done, (layer, k) in enumerate(tasks, 1):
            found[layer].append(row(desk, pair, how, layer, k))
            advance(done)
    return found


def by_steps(desk: Desk, pair: Pair, how: Settings) -> dict[int, list[Row]]:
    """By the steps of BerOpt a row a query, of a few in the first layer that is looked at."""
    found = {round(share * how.steps): replace(how, steps=round(share * how.steps)) for share in STEPS}
    layer, queries = pair.model.layers[0], range(min(FEW, how.queries))
    return {steps: [row(desk, pair, other, layer, k) for k in queries] for steps, other in found.items()}


def row(desk: Desk, pair: Pair, how: Settings, layer: int, k: int) -> Row:
    """Of one query and one layer."""
    return desk.kept(_name(pair, how, layer, k, "measured"), lambda: measured(desk, pair, how, layer, k))


def essential(desk: Desk, pair: Pair, how: Settings, layer: int, k: int) -> Row:
    """The essential units of a query (``mask``), and how they were found."""

    def compute() -> Row:
        options = fg.BerOpt(steps=how.steps, threshold=how.threshold, reduce=False)
        z0 = pair.query(how.seed, k)
        found = fg.essential(pair.G, z0, layer, target_error=how.target_error, options=options, seed=k)
        names = ("error", "lam", "active", "evaluations", "estimator", "success")
        facts = {name: getattr(found, name) for name in names}
        return facts | {"units": len(found.mask), "mask": np.flatnonzero(found.mask).tolist()}

    by = {"threshold": how.threshold, "seed": how.seed, "target": how.target_error, "steps": how.steps}
    return desk.kept(_name(pair, by, layer, k, "essential"), compute)  # whatever the other settings are


def explored(desk: Desk, pair: Pair, how: Settings, layer: int, k: int) -> fg.Exploration:
    """The samples of a query."""
    return fg.explore(
        pair.G,
        pair.query(how.seed, k),
        layer,
        np.array(essential(desk, pair, how, layer, k)["mask"], dtype=np.int64),
        interval=how.interval,
        delta=how.delta,
        expansions=how.expansions,
        seed=k,
    )


def measured(desk: Desk, pair: Pair, how: Settings, layer: int, k: int) -> Row:
    """As :func:`row`, computed."""
    units, tree = essential(desk, pair, how, layer, k), explored(desk, pair, how, layer, k)
    found: Row = {name: value for name, value in units.items() if name != "mask"}
    found |= {"layer": layer, "number": k, "essential": len(units["mask"]), "delta": tree.delta}
    found |= {"accepted": len(tree.accepted), "rejected": len(tree.rejected), "crowded": tree.crowded}
    found |= {"verified": float(tree.verified.mean()), "reach": tree.reach, "tree evaluations": tree.evaluations}
    found["whole"] = whole(tree, how, pair.model.scale)
    for centre in CENTRES if comparable(tree) else ():
        balls = fg.baselines(tree, how.count, centre, seed=k)
        D = pair.D if centre == CENTRES[0] else None
        found[centre] = {"epsilon_2": balls.epsilon_2, "epsilon_inf": balls.epsilon_inf}
        found[centre] |= _compared(balls, D, pair.model.scale)
    if len(tree.accepted) >= LEAST:
        pixels = pair.model.scale * fg.deviation(pair.G, tree.accepted).pixels
        found |= {"spread": spread(pixels), "samples": {"deviation": float(pixels.mean())}}
    return found


def comparable(tree: fg.Exploration) -> bool:
    """Whether there are samples to compare, and points outside the region, for the radius of the balls."""
    return len(tree.accepted) >= LEAST and len(tree.rejected) > 0


def by_digits(desk: Desk, pair: Pair, how: Settings) -> dict[int, list[Row]]:
    """By layer a row a query of images of digits: see :func:`digits`."""
    tasks = [(layer, k) for layer in pair.model.layers for k in range(how.queries)]
    table: dict[int, list[Row]] = {}
    with progress_bar(f"{pair.name}: digits", len(tasks), console=desk.console) as advance:
        for done, (layer, k) in enumerate(tasks, 1):
            found = digits(desk, pair, how, layer, k)
            if found:
                table.setdefault(layer, []).append(found | {"number": k})
            advance(done)
    return table


def digits(desk: Desk, pair: Pair, how: Settings, layer: int, k: int) -> Row:
    """By method, the share of images that a classifier takes for the digit that it takes the query's for; empty for
    images of other things."""

    def compute() -> Row:
        tree = explored(desk, pair, how, layer, k)
        if not comparable(tree):
            return {}
        judge = load_shipped(JUDGE).network

        def classes(z: Array) -> Array:
            return np.asarray(judge.predict(pair.G.forward(z).reshape(len(z), -1).astype(np.float64)))

        balls = fg.baselines(tree, how.count, CENTRES[0], seed=k)
        own = classes(tree.region.query[None])[0]
        return {name: float((classes(z) == own).mean()) for name, z in balls.points.items()} | {"digit": int(own)}

    if pair.G.image_shape != DIGIT:
        return {}
    return desk.kept(_name(pair, how, layer, k, "digits"), compute)


def whole(tree: fg.Exploration, how: Settings, scale: float) -> Row | None:
    """Of points uniform in all of the region within the tree's box: how far they are, and whether chains have mixed.

    Of the first layer alone, whose region is a polytope: deeper chains would take as long as all else.
    """
    if tree.region.affine is None:
        return None
    chains = fg.hit_and_run(tree.region, how.points, radius=how.interval, seed=0)
    deviation = scale * fg.deviation(tree.region.generator, chains.points).value
    facts = {"reach": chains.reach, "rhat": float(chains.rhat.max()), "ess": float(chains.ess.min())}
    return facts | {"mixed": chains.mixed, "deviation": deviation}


def spread(pixels: Array) -> float:
    """The share of pixels that vary, (sum v)^2 / (n sum v^2) of their variances v: 1 if all do alike, 1/n if one."""
    variances = np.asarray(pixels, dtype=np.float64).reshape(-1) ** 2
    squares = float((variances**2).sum())
    return float(variances.sum() ** 2 / (len(variances) * squares)) if squares > 0 else 0.0


def _compared(balls: fg.Baselines, D: fg.Discriminator | None, scale: float) -> Row:
    table = fg.compare(balls, D)
    columns = {"deviation": scale * table.deviation, "inside": table.inside, "distance": table.distance}
    found: Row = {
        str(method): {name: float(values[k]) for name, values in columns.items()}
        | {"similarity": table.similarity[k, : len(DEPTHS)].tolist()}
        for k, method in enumerate(table.method)
    }
    return found


def _name(pair: Pair, how: Settings | Row, layer: int, k: int, what: str) -> str:
    """Of what is kept of a query, whatever the others are."""
    key = fingerprint(pair.key, repr(replace(how, queries=0) if isinstance(how, Settings) else how))[:16]
    return f"egbas-{pair.name}-{key}-layer{layer}-query{k}-{what}"


def column(table: Sequence[Row], *path: str | int) -> Array:
    """A figure of every query, by the way to it in a row, (queries,): NaN for those that do not have it."""
    values = [_at(one, path) for one in table]
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def known(table: Sequence[Row], *path: str | int) -> Array:
    """The same of the queries that have it."""
    values = column(table, *path)
    return values[np.isfinite(values)]


def _at(found: Any, path: Sequence[str | int]) -> Any:
    for part in path:
        if found is None or (isinstance(found, Mapping) and part not in found):
            return None
        found = found[part]
    return found
