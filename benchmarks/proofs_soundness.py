"""Is what is proved true, and does the checker take nothing else?

``soundness``: bounds of small random networks and points against the enumeration of all linear pieces. Some of the
points are at a kink, some of the networks have no biases, and the layers of some are scaled by powers of two from 2^-27
to 2^27, which changes nothing but their rounding.

``mutants``: saved proofs of images and of small random networks, and mutants of each, by which the claim is stronger or
the certificate is not one any more. A mutant that is accepted is no fault of the checker if what it claims is true: the
distance by enumeration, or for an image the nearest flip that is found, must not be less than the claim.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import flipopt as fo
from benchmarks.proofs_oracle import Bounds, distance_by_pieces, network, rescaled
from flipopt.common.checks import Array

Figures = Iterator[tuple[str, str, float]]
Arrays = dict[str, Array]

CASES = 500
"""Of each kind."""
KINDS = ("no limits", "weights and frozen features", "bounds", "scaled layers")
WIDTHS = ((2, 4, 3), (3, 3, 2, 2), (2, 2, 2, 2, 3), (3, 5, 2), (5, 3, 3), (4, 2, 3, 3))
ORACLE = 1e-9
"""What the enumeration may be off, relative to the distance."""
SECONDS = 20.0
SAMPLES = 500
"""Points of which the nearest flip is where a search begins; it may be far from the nearest of all."""
IMAGES, NETWORKS = 6, 44
BRANCHED = (3, 5, 4, 3)


def soundness(_: int) -> Figures:
    """The figures of each kind."""
    for number, kind in enumerate(KINDS):
        found = np.array([_case(number, seed) for seed in range(CASES)])
        lower, upper, true, proved = found.T
        there, away = np.isfinite(true), np.isfinite(true) & (true > 0)
        yield kind, "networks", float(CASES)
        yield kind, "lower bounds above the distance", float((lower > true * (1 + ORACLE)).sum())
        yield kind, "upper bounds below it", float((upper < true * (1 - ORACLE)).sum())
        yield kind, "largest lower bound over the distance, less 1", float((lower[away] / true[away] - 1).max())
        yield kind, "without a flip", float((~there).sum())
        yield kind, "with one, and proved to 1e-6", float((proved * there).sum())


def _case(kind: int, seed: int) -> tuple[float, float, float, float]:
    """Lower bound, upper bound, distance, and whether it is proved."""
    rng = np.random.default_rng([kind, seed])
    widths = WIDTHS[seed % len(WIDTHS)]
    net = network(seed, widths, alpha=(0.0, 0.0, 0.3)[seed % 3], bias=(0.5, 0.0)[seed // 6 % 2])
    x, weights, free, bounds = rng.standard_normal(widths[0]), None, None, None
    if seed % 4 == 0:  # at a kink of a neuron, or next to it
        w, b = net.weights[0][:, 0], net.biases[0][0]
        x = x - (1 - (0.0, 1e-9, 1e-5)[seed % 3]) * (x @ w + b) / (w @ w) * w
    if kind == 1:
        weights, free = np.exp(2 * rng.standard_normal(widths[0])), np.arange(widths[0]) != seed % widths[0]
    if kind == 2 or (kind == 3 and seed % 2):
        bounds = _random_bounds(x, rng)
    other = rescaled(net, list(2.0 ** rng.integers(-27, 28, len(widths) - 1))) if kind == 3 else net
    frozen = None if free is None else ~free
    flip = _sampled(net, x, rng, frozen, bounds)
    proof = fo.proofs.prove(other, x, flip, seconds=SECONDS, weights=weights, frozen=frozen, bounds=bounds)
    return proof.lower, proof.upper, distance_by_pieces(net, x, weights, free, bounds), float(proof.proved)


def _random_bounds(x: Array, rng: np.random.Generator) -> Bounds:
    """Around x, some of them at x itself."""
    room = (
        3 * np.exp(rng.standard_normal()) * np.abs(rng.standard_normal((2, len(x)))) * (rng.random((2, len(x))) > 0.15)
    )
    return x - room[0], x + room[1]


def _sampled(
    net: fo.DenseNetwork, x: Array, rng: np.random.Generator, frozen: Array | None, bounds: Bounds | None
) -> Array | None:
    """The nearest flip of some points around x, or None."""
    D = rng.standard_normal((SAMPLES, len(x))) * np.exp(rng.standard_normal((SAMPLES, 1)))
    points = x + D * (1.0 if frozen is None else ~frozen)
    points = points if bounds is None else np.clip(points, *bounds)
    flips = points[net.predict(points) != net.predict(x)]
    return flips[np.linalg.norm(flips - x, axis=1).argmin()] if len(flips) else None


def mutants(_: int) -> Figures:
    """How many saved proofs and mutants of them are accepted."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof.npz"
        for number, (net, proof) in enumerate(_proofs()):
            proof.save(path)
            counts["saved proofs"] += 1
            counts["accepted"] += fo.proofs.check(net, path).accepted
            with np.load(path) as file:
                arrays = dict(file)
            for name, other, mutant in mutated(net, arrays, np.random.default_rng(number)):
                counts["mutants"] += 1
                if not accepts(other, path, mutant):
                    counts["mutants rejected"] += 1
                elif mutant["lower"] <= distance_of(other, mutant) * (1 + 2e-6):
                    counts["accepted, and what they claim is true"] += 1
                else:
                    counts["accepted, and false"] += 1
                    counts[f"accepted, and false: {name}"] += 1
    counts["accepted, and false"] += 0
    for figure, count in counts.items():
        yield "all proofs", figure, float(count)


def _proofs() -> Iterator[tuple[fo.DenseNetwork, fo.proofs.Proof]]:
    """Of images, every other one in the range of pixels, and of small networks with trees that have branches."""
    shipped = fo.load_shipped("mnist-fcn")
    for k, x in enumerate(shipped.X[:IMAGES]):
        yield shipped.network, fo.proofs.prove(shipped.network, x, bounds=(0, 1) if k % 2 else None)
    found, seed = 0, 0
    while found < NETWORKS:
        seed += 1
        net, rng = network(seed, BRANCHED), np.random.default_rng(seed)
        x = rng.standard_normal(BRANCHED[0])
        bounds = _random_bounds(x, rng) if seed % 3 == 0 else None
        proof = fo.proofs.prove(net, x, bounds=bounds)
        if proof.nodes > BRANCHED[-1] and proof.upper < np.inf:
            found += 1
            yield net, proof


def accepts(net: fo.DenseNetwork, path: Path, changed: Arrays) -> bool:
    """Whether the checker takes a changed proof; what is no proof at all is refused as a file."""
    np.savez(path, **changed)  # type: ignore[arg-type]
    try:
        return fo.proofs.check(net, path).accepted
    except fo.FileFormatError:
        return False


def distance_of(net: fo.DenseNetwork, proof: Arrays) -> float:
    """Of the nearest flip in the problem that the arrays of a proof are about."""
    x, weights, free, bounds = proof["x"], proof["weights"], proof["free"], None
    if proof["version"] == 2:
        low, high = np.full(len(x), -np.inf), np.full(len(x), np.inf)
        low[proof["floors"]], high[proof["ceilings"]] = proof["floor"], proof["ceiling"]
        bounds = low, high
    if len(x) > max(widths[0] for widths in WIDTHS):
        return fo.proofs.prove(net, x, weights=weights, frozen=~free, bounds=bounds).upper
    return distance_by_pieces(net, x, weights, free, bounds)


def mutated(net: fo.DenseNetwork, proof: Arrays, rng: np.random.Generator) -> list[tuple[str, fo.DenseNetwork, Arrays]]:
    """One of every kind, each with the network that it is checked for."""

    def put(name: str, place: int, value: object) -> Arrays:
        other = proof[name].copy()
        other[place] = value
        return proof | {name: other}

    nodes, leaves = len(proof["parent"]), np.flatnonzero(proof["leaf"])
    inner = np.flatnonzero(proof["parent"] >= 0)
    node, leaf = int(rng.choice(inner if len(inner) else leaves)), int(rng.integers(len(leaves)))
    hidden, classes = sum(net.widths[1:-1]), net.n_classes
    heavy, kept = int(proof["lam"].argmax()), np.arange(nodes) != node
    part = {name: proof[name][kept] for name in ("parent", "target", "neuron", "sign", "leaf")}
    W = [matrix.astype(np.float64) for matrix in net.weights]
    W[-1] = W[-1] + 0.02 * np.abs(W[-1]).mean() * rng.standard_normal(W[-1].shape)
    changed = [
        ("a claim larger by a part", proof | {"lower": proof["lower"] * (1 + 10.0 ** rng.uniform(-5.5, 0))}),
        ("a claim larger by much", proof | {"lower": proof["lower"] * (2 + 10.0 ** rng.uniform(0, 3))}),
        ("another sign", put("sign", node, -proof["sign"][node])),
        ("no sign", put("sign", node, 0)),
        ("another neuron", put("neuron", node, (proof["neuron"][node] + 1) % hidden)),
        ("another parent", put("parent", node, -1)),
        ("a later parent", put("parent", node, nodes - 1)),
        ("another class", put("target", node, (proof["target"][node] + 1) % classes)),
        ("a split leaf, or a leaf of a split", put("leaf", node, not proof["leaf"][node])),
        ("a smaller ball", put("radius", leaf, proof["lower"] * 0.99)),
        ("a negative multiplier", put("lam", heavy, -proof["lam"][heavy])),
        ("a lost multiplier", put("lam", heavy, 0.0)),
        ("a larger multiplier", put("lam", heavy, 3 * proof["lam"][heavy])),
        ("no numbers", put("lam", heavy, np.nan)),
        ("negative tau", proof | {"tau": -proof["tau"] - 1e-6}),
        ("too much tau", proof | {"tau": 1e3 * proof["tau"]}),
        ("an input nearer to the flip", proof | {"x": proof["x"] + 0.02 * rng.standard_normal(len(proof["x"]))}),
        ("another class of x", proof | {"source": (proof["source"] + 1) % classes}),
        ("a node less", proof | part),
    ]
    biased = fo.DenseNetwork(W, list(net.biases), net.activations)
    return [(name, net, mutant) for name, mutant in changed] + [("another network", biased, proof)]
