"""A checker of saved proofs. It shares no code with the search that made them, and takes nothing from it on trust.

A proof is a tree: for every other class a root, nodes that are split on the sign of a neuron, and leaves with
multipliers. For each leaf the ranges of the neurons are found anew, in the space of all inputs, and the bound on the
distance follows from the multipliers by weak duality. The multipliers may come from anywhere.

All arithmetic is in float64 with bounds on its rounding. A linear form a . y + const is kept as floats and a loss, by
which it may be too large anywhere in the ball and the ranges: |fl(A B) - A B| <= gamma |A| |B| (Higham 2002, 3.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_solve, cholesky

from flipopt.common.checks import Array
from flipopt.common.errors import FileFormatError, InputError
from flipopt.common.files import read_npz
from flipopt.networks.activations import Identity, PReLU
from flipopt.networks.dense import DenseNetwork
from flipopt.runs.threads import one_blas_thread

EPS = float(np.finfo(np.float64).eps)
"""Twice the unit roundoff, as a first safety factor."""
SHIFT = 1e-8
"""Part of the diagonal of H that a Cholesky factorisation proves to be to spare: far more than its rounding."""
LISTS = {"parent": "i", "target": "i", "neuron": "i", "sign": "i", "leaf": "b"}
LEAVES = {"radius": "f", "taus": "i", "lams": "i"}
ENTRIES = {"neurons": "i", "tau": "f", "rows": "i", "lam": "f"}
SINGLE = {"version": "i", "source": "i", "lower": "f"}
ROW_KINDS = 4


@dataclass(frozen=True)
class Checked:
    """What a checker says: whether it ``accepted``, that no flip of ``x`` is within ``lower``, or why not."""

    accepted: bool
    why: str
    lower: float
    x: Array
    nodes: int

    def __bool__(self) -> bool:
        return self.accepted

    def __str__(self) -> str:
        verdict = f"accepted: no flip within {self.lower:.9g}" if self.accepted else f"rejected: {self.why}"
        return f"{verdict} ({self.nodes} nodes)"


def check(network: DenseNetwork, path: str | Path) -> Checked:
    """Whether a file that :meth:`~flipopt.proofs.Proof.save` has written, or somebody else, proves what it claims.

    A file that is no proof at all is a :class:`~flipopt.FileFormatError`.
    """
    if not isinstance(network, DenseNetwork) or not all(isinstance(a, PReLU | Identity) for a in network.activations):
        raise InputError("network: expected a dense network with ReLU, PReLU or identity activations")
    file = _read(Path(path), network)
    try:
        _check_tree(file, network)
        with one_blas_thread(), np.errstate(all="ignore"):  # what is not finite is rejected
            ground = _Ground.of(network.in_float64, file)
            for number in np.flatnonzero(file["leaf"]):
                _check_leaf(ground, file, int(number))
    except _RejectedError as reason:
        return Checked(False, str(reason), 0.0, file["x"], len(file["parent"]))
    return Checked(True, "", float(file["lower"]), file["x"], len(file["parent"]))


class _RejectedError(Exception):
    """What a proof lacks."""


def _require(holds: Any, why: str) -> None:
    if not holds:
        raise _RejectedError(why)


def _read(path: Path, net: DenseNetwork) -> dict[str, Any]:
    """The arrays of the right kinds and shapes."""
    shapes = {name: (kind, "nodes") for name, kind in LISTS.items()} | {
        "x": ("f", "inputs"), "weights": ("f", "inputs"), "free": ("b", "inputs")
    }  # fmt: skip
    file = read_npz(path, (*shapes, *LEAVES, *ENTRIES, *SINGLE))
    for name in (*shapes, *LEAVES, *ENTRIES):
        kind = {**LISTS, **LEAVES, **ENTRIES, "x": "f", "weights": "f", "free": "b"}[name]
        if file[name].ndim != 1 or file[name].dtype.kind != kind:
            raise FileFormatError(f"{path}: {name}: expected a list of kind {kind!r}, found {file[name].dtype}")
    for name, kind in SINGLE.items():
        if file[name].shape != () or file[name].dtype.kind != kind:
            raise FileFormatError(f"{path}: {name}: expected a number of kind {kind!r}, found {file[name].dtype}")
    if file["version"] != 1:
        raise FileFormatError(f"{path}: version: expected 1, found {file['version']}")
    nodes, leaves = len(file["parent"]), int(file["leaf"].sum())
    expected = dict.fromkeys(LISTS, nodes) | dict.fromkeys(LEAVES, leaves)
    expected |= dict.fromkeys(("x", "weights", "free"), net.n_inputs)
    for name, length in expected.items():
        if len(file[name]) != length:
            raise FileFormatError(f"{path}: {name}: expected {length} entries, found {len(file[name])}")
    for counts, entries in (("taus", ("neurons", "tau")), ("lams", ("rows", "lam"))):
        least, total = file[counts].min(initial=0), int(file[counts].sum(dtype=object)) if leaves else 0
        if least < 0 or any(len(file[name]) != total for name in entries):
            raise FileFormatError(f"{path}: {counts}: expected the numbers of {' and '.join(entries)}")
    return {**file, "lower": float(file["lower"])}


def _check_tree(file: dict[str, Any], net: DenseNetwork) -> None:
    """The leaves cover every other class and all signs."""
    hidden, nodes = sum(net.widths[1:-1]), len(file["parent"])
    parent, target, neuron, sign, leaf = (file[name] for name in LISTS)
    _require(file["lower"] >= 0, "it claims a negative distance")
    _require((file["weights"] > 0).all(), "a weight is not positive")
    _require(0 <= file["source"] < net.n_classes, "there is no such class")
    _require((file["tau"] >= 0).all() and (file["lam"] >= 0).all(), "a multiplier is negative")
    roots = np.flatnonzero(parent < 0)
    others = [k for k in range(net.n_classes) if k != file["source"]]
    _require(sorted(target[roots].tolist()) == others, "a class has no root, or several")
    inner = parent >= 0
    _require((parent[inner] < np.flatnonzero(inner)).all(), "a node comes before its parent")
    _require(not leaf[parent[inner]].any(), "a leaf is split")
    _require((target[inner] == target[parent[inner]]).all(), "a node is of another class than its parent")
    _require(((neuron[inner] >= 0) & (neuron[inner] < hidden)).all(), "there is no such neuron")
    below: list[list[int]] = [[] for _ in range(nodes)]
    for number in np.flatnonzero(inner):
        below[parent[number]].append(int(number))
    for number in np.flatnonzero(~leaf):
        pair = below[number]
        complete = len(pair) == 2 and neuron[pair[0]] == neuron[pair[1]] and sorted(sign[pair].tolist()) == [-1, 1]
        _require(complete, f"node {number} is not split into both signs of a neuron")


def _path(file: dict[str, Any], number: int) -> dict[int, int]:
    """Signs by neuron on the way to a node."""
    signs: dict[int, int] = {}
    while file["parent"][number] >= 0:
        neuron, sign = int(file["neuron"][number]), int(file["sign"][number])
        signs[neuron] = sign if signs.get(neuron, sign) == sign else 2  # 2: both, which is nowhere but at 0
        number = int(file["parent"][number])
    return {neuron: sign for neuron, sign in signs.items() if sign != 2}


@dataclass(frozen=True, eq=False)
class _Ground:
    """The network from x: W1 (n, n(1)) in units of the weights, c0 +- off at x, and further layers, leads last."""

    W1: Array
    off1: Array
    c0: Array
    off: Array
    W: list[Array]
    b: list[Array]
    left: list[Array]
    right: list[Array]
    others: list[int]

    @classmethod
    def of(cls, net: DenseNetwork, file: dict[str, Any]) -> _Ground:
        source, x = int(file["source"]), file["x"].astype(np.float64)
        others = [k for k in range(net.n_classes) if k != source]
        W, b = list(net.weights), list(net.biases)
        W[-1], b[-1] = W[-1][:, [source]] - W[-1][:, others], b[-1][source] - b[-1][others]
        W1 = W[0] / np.sqrt(file["weights"])[:, None] * file["free"][:, None]
        n = net.n_inputs
        # A difference, a root, a quotient and a product are off by a few units each.
        return cls(
            W1,
            8 * EPS * np.linalg.norm(W1, axis=0),
            x @ W[0] + b[0],
            (n + 8) * EPS * (np.abs(x) @ np.abs(W[0]) + np.abs(b[0])),
            W[1:],
            b[1:],
            [slopes[0] for slopes in net.one_sided_slopes],
            [slopes[1] for slopes in net.one_sided_slopes],
            others,
        )


@dataclass(eq=False)
class _Layer:
    """Of a hidden layer in a leaf: low <= c <= high, and a line s c + t above p = max(c, 0) for each neuron."""

    low: Array
    high: Array

    def __post_init__(self) -> None:
        self.split = (self.low < 0) & (self.high > 0)
        width = np.where(self.split, self.high - self.low, 1.0)
        self.s = np.where(self.split, self.high / width, np.where(self.low >= 0, 1.0, 0.0))
        lift = np.maximum(-self.s * self.low, self.high - self.s * self.high)
        self.t = np.where(self.split, np.maximum(lift, 0.0) + 8 * EPS * (self.high - self.low), 0.0)
        self.most_c = np.maximum(np.abs(self.low), np.abs(self.high))
        self.most_p = np.maximum(self.high, 0.0)


def _ranges(ground: _Ground, radius: float, signs: dict[int, int]) -> tuple[list[_Layer] | None, Array]:
    """The layers, None if the signs contradict each other in the ball; and lower bounds on the leads."""
    layers: list[_Layer] = []
    first = 0
    for k in range(len(ground.left) + 1):
        if k == 0:
            n = len(ground.W1)
            reach = radius * (np.linalg.norm(ground.W1, axis=0) * (1 + n * EPS) + ground.off1) + ground.off
            low, high = ground.c0 - reach, ground.c0 + reach
            low, high = low - 4 * EPS * np.abs(low), high + 4 * EPS * np.abs(high)
        else:
            W, b = ground.W[k - 1], ground.b[k - 1]
            low, high = _least(ground, radius, layers, W.T, b), -_least(ground, radius, layers, -W.T, -b)
        if k == len(ground.left):
            return layers, low
        for neuron, sign in signs.items():
            if first <= neuron < first + len(low):
                side, own = (low, max) if sign > 0 else (high, min)
                side[neuron - first] = own(side[neuron - first], 0.0)
        if (low > high).any():
            return None, np.empty(0)
        first += len(low)
        layers.append(_Layer(low, high))
    raise AssertionError


def _least(ground: _Ground, radius: float, layers: list[_Layer], A: Array, a: Array) -> Array:
    """Lower bounds (rows,) on A y + a, y the outputs of the last of the layers: the best of four ways."""
    ways = [_backwards(ground, radius, layers, A, a, kind) for kind in ("near", "zero", "one")]
    last, k = layers[-1], len(layers) - 1
    left, right = ground.left[k], ground.right[k]
    corners = np.stack(
        [np.where(c < 0, left, right) * c for c in (last.low, last.high, np.clip(0, last.low, last.high))]
    )
    plus, minus = np.maximum(A, 0), np.minimum(A, 0)
    loss = (A.shape[1] + 8) * EPS * (np.abs(A) @ np.abs(corners).max(axis=0) + np.abs(a))
    ways.append(plus @ corners.min(axis=0) + minus @ corners.max(axis=0) + a - loss)
    return np.asarray(np.max(ways, axis=0))


def _backwards(ground: _Ground, radius: float, layers: list[_Layer], A: Array, a: Array, kind: str) -> Array:
    """One of them: lines for all layers, the last first."""
    const, loss = a.copy(), 4 * EPS * np.abs(a)
    loss = loss + 4 * EPS * np.abs(A) @ _outputs(
        ground, layers, len(layers) - 1
    )  # of the differences in the last layer
    for k in range(len(layers) - 1, -1, -1):
        layer, left, bend = layers[k], ground.left[k], ground.right[k] - ground.left[k]
        near = (layer.high > -layer.low).astype(float)
        slope = np.where(layer.split, {"near": near, "zero": 0 * near, "one": 0 * near + 1}[kind], layer.s)
        share = A * bend
        up, down = np.maximum(share, 0), np.minimum(share, 0)
        on_c = A * left + up * slope + down * layer.s
        sizes = np.abs(A) * np.abs(left) + up * slope - down * layer.s
        loss = loss + 8 * EPS * (np.abs(share) @ layer.most_p + sizes @ layer.most_c)
        b, off = (ground.b[k - 1], 0 * ground.b[k - 1]) if k else (ground.c0, ground.off)
        const = const + down @ layer.t + on_c @ b
        width = A.shape[1]
        loss = loss + (width + 8) * EPS * (-down @ layer.t + np.abs(on_c) @ np.abs(b)) + np.abs(on_c) @ off
        loss = loss + 4 * EPS * np.abs(const)
        if k:
            A = on_c @ ground.W[k - 1].T
            before = _outputs(ground, layers, k - 1)
            loss = loss + (width + 8) * EPS * np.abs(on_c) @ (np.abs(ground.W[k - 1]).T @ before)
        else:
            A = on_c @ ground.W1.T
            norms = np.linalg.norm(ground.W1, axis=0)
            loss = loss + radius * np.abs(on_c) @ ((width + 8) * EPS * norms + ground.off1)
    reach = radius * np.linalg.norm(A, axis=1)
    return np.asarray(const - reach * (1 + (A.shape[1] + 8) * EPS) - loss * (1 + 1e-6))


def _outputs(ground: _Ground, layers: list[_Layer], k: int) -> Array:
    """Upper bounds on |y| of a layer."""
    steepest = np.maximum(np.abs(ground.left[k]), np.abs(ground.right[k]))
    return np.asarray(steepest * layers[k].most_c)


def _check_leaf(ground: _Ground, file: dict[str, Any], number: int) -> None:
    """No flip of the leaf's class and signs is nearer than what the proof claims."""
    leaf = int(file["leaf"][:number].sum())
    radius, signs = float(file["radius"][leaf]), _path(file, number)
    _require(radius >= file["lower"], f"the ball of node {number} is smaller than the claim")
    layers, leads = _ranges(ground, radius, signs)
    lead = ground.others.index(int(file["target"][number]))
    if layers is None or leads[lead] > 0:
        return

    def entries(counts: str, numbers: str, values: str) -> dict[int, float]:
        begin = int(file[counts][:leaf].sum())
        some = slice(begin, begin + int(file[counts][leaf]))
        return dict(zip(file[numbers][some].tolist(), file[values][some].tolist(), strict=True))

    tau, lam = entries("taus", "neurons", "tau"), entries("lams", "rows", "lam")
    system = _System.of(ground, radius, layers, signs, lead, tau, lam)
    proved = system.empty() or system.least() >= file["lower"] ** 2 / 2 * (1 + 8 * EPS)
    _require(proved, f"the multipliers of node {number} do not prove its bound")


@dataclass(frozen=True, eq=False)
class _System:
    """The Lagrangian of a leaf in z = (delta, p): z . H z / 2 + g . z - offset, less ``loss``.

    ``row``, ``right`` and ``slack`` are the sum lam . A, lam . b and by how much they may be off; ``most`` bounds |p|,
    and ``sizes`` are those of all terms of g.
    """

    n: int
    radius: float
    H: Array
    q: Array
    row: Array
    right: float
    slack: float
    loss: float
    most: Array
    sizes: Array

    @classmethod
    def of(
        cls,
        ground: _Ground,
        radius: float,
        layers: list[_Layer],
        signs: dict[int, int],
        lead: int,
        tau: dict[int, float],
        lam: dict[int, float],
    ) -> _System:
        n = len(ground.W1)
        split = [np.flatnonzero(layer.split) for layer in layers]
        N = n + sum(map(len, split))
        most = np.concatenate([np.empty(0), *(layer.high[own] for layer, own in zip(layers, split, strict=True))])
        H, q, row, sizes = np.zeros((N, N)), np.zeros(N), np.zeros(N), np.zeros(N)
        H[np.arange(n), np.arange(n)] = 1.0
        right = slack = loss = 0.0
        C, c0, place, first = np.zeros((len(ground.c0), N)), ground.c0, n, 0
        C[:, :n] = ground.W1.T
        off = ground.off + radius * ground.off1

        def size(M: Array, m0: Array) -> Array:
            return np.asarray(radius * np.linalg.norm(M[:, :n], axis=1) + np.abs(M[:, n:]) @ most + np.abs(m0))

        def add(kind: int, neuron: int, a: Array, b: float, doubt: float) -> None:
            nonlocal right, slack
            multiplier = lam.get(ROW_KINDS * neuron + kind, 0.0)
            if multiplier > 0:
                row[:] += multiplier * a
                sizes[:] += multiplier * np.abs(a)
                right += multiplier * b
                magnitude = radius * float(np.linalg.norm(a[:n])) + float(np.abs(a[n:]) @ most) + abs(b)
                slack += multiplier * (doubt + 16 * EPS * magnitude)

        for k, layer in enumerate(layers):
            held = np.flatnonzero(layer.low >= 0)
            P, p0 = np.zeros_like(C), np.zeros_like(c0)
            P[held], p0[held] = C[held], c0[held]
            for j, own in enumerate(split[k].tolist()):
                unit = np.zeros(N)
                unit[place + j] = 1.0
                P[own] = unit
                s, t, doubt = layer.s[own], layer.t[own], off[own]
                add(0, first + own, -unit, 0.0, 0.0)
                add(1, first + own, C[own] - unit, -c0[own], doubt)
                add(2, first + own, unit - s * C[own], s * c0[own] + t, s * doubt)
                weight, at = tau.get(first + own, 0.0), place + j
                H[at] -= weight * C[own]
                H[:, at] -= weight * C[own]
                H[at, at] += 2 * weight
                q[at] -= weight * c0[own]
                magnitude = float(size(C[[own]], c0[[own]])[0]) + 2 * layer.high[own]
                loss += weight * layer.high[own] * (doubt + 16 * EPS * magnitude)
            for neuron, sign in signs.items():
                if first <= neuron < first + len(c0):
                    own = neuron - first
                    add(3, neuron, -sign * C[own], sign * c0[own], off[own])
            left, bend, W, b = ground.left[k], ground.right[k] - ground.left[k], ground.W[k].T, ground.b[k]
            terms = np.abs(left) * size(C, c0) + np.abs(bend) * size(P, p0)
            passed = np.abs(left) * off + np.abs(bend) * np.where(layer.low >= 0, off, 0.0)
            off = (np.abs(W) @ passed + (W.shape[1] + 16) * EPS * (np.abs(W) @ terms + np.abs(b))) * (1 + 1e-6)
            C = W @ (left[:, None] * C + bend[:, None] * P)
            c0 = W @ (left * c0 + bend * p0) + b
            place, first = place + len(split[k]), first + len(layer.low)
        add(0, first, C[lead], -c0[lead], off[lead])
        count = len(lam) + 16
        slack += count * EPS * float(radius * np.linalg.norm(sizes[:n]) + sizes[n:] @ most + abs(right))
        return cls(n, radius, H, q, row, right, slack * (1 + 1e-6), loss * (1 + 1e-6), most, sizes)

    def empty(self) -> bool:
        """Whether lam . (A z - b) is positive in the whole ball and box: a certificate of Farkas."""
        least = -self.radius * float(np.linalg.norm(self.row[: self.n])) * (1 + len(self.row) * EPS)
        least += float(np.minimum(self.row[self.n :], 0) @ self.most) * (1 + len(self.row) * EPS)
        return bool(least - self.right - self.slack - 4 * EPS * abs(self.right) > 0)

    def least(self) -> float:
        """A lower bound on the Lagrangian over all z; minus infinity where H is not proved to be definite."""
        N, g = len(self.q), self.q + self.row
        if not (self.H.diagonal() > 0).all():
            return -np.inf
        s = 1 / np.sqrt(self.H.diagonal())
        scaled = self.H * s * s[:, None]
        try:
            factor = cholesky(scaled - SHIFT * np.eye(N), lower=True)
        except (LinAlgError, ValueError):  # ValueError: an overflow
            return -np.inf
        gamma = (N + 16) * EPS
        # The factor exists, so scaled - SHIFT I is definite up to gamma times its trace (Rump 2006), and the least
        # eigenvalue of scaled is at least half of SHIFT. At any z, min phi >= phi(z) - |gradient|^2 / (2 eigenvalue).
        if gamma * 2 * N > SHIFT / 4:
            return -np.inf
        gs, sizes = g * s, (np.abs(self.q) + self.sizes) * s
        z = -cho_solve((factor, True), gs)
        for _ in range(2):
            z -= cho_solve((factor, True), scaled @ z + gs)
        image = scaled @ z
        terms = np.abs(scaled) @ np.abs(z)
        rest = float(np.linalg.norm(image + gs) + gamma * np.linalg.norm(terms + sizes))
        value = float(z @ image / 2 + gs @ z)
        doubt = gamma * float(np.abs(z) @ (terms + sizes))
        return value - rest * rest / SHIFT - doubt - self.right - self.slack - self.loss - 4 * EPS * abs(self.right)
