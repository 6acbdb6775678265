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
from flipopt.common.errors import InputError
from flipopt.networks.activations import Identity, PReLU
from flipopt.networks.dense import DenseNetwork
from flipopt.proofs.saved import RejectedError, check_tree, read, require, signs_on_the_way
from flipopt.runs.threads import one_blas_thread

EPS = float(np.finfo(np.float64).eps)
"""Twice the unit roundoff, as a first safety factor."""
TINY = 1e-150
"""More than what underflow can take from a norm, whose squares vanish below 1e-162."""
NOTHING = 1e-290
"""And from a product or a sum of products."""
SHIFT = 1e-8
"""Part of the diagonal of H that a Cholesky factorisation proves to be to spare: far more than its rounding."""
ROW_KINDS = 4


@dataclass(frozen=True)
class Checked:
    """What a checker says: whether it ``accepted``, that no flip of ``x`` is within ``lower``, or why not.

    The distance is sqrt(sum weights (x_hat - x)^2) over the features that are ``free``, the others being frozen;
    ``low`` and ``high`` are bounds on features, infinite where there are none, beyond which there may be flips that are
    nearer. All are (n_inputs,), and the file's: whether they are those of the question is for the reader to say.
    """

    accepted: bool
    why: str
    lower: float
    x: Array
    nodes: int
    low: Array
    high: Array
    weights: Array
    free: Array

    @classmethod
    def of(cls, file: dict[str, Any], why: str) -> Checked:
        """The verdict on a file; ``why`` it is rejected, if it is."""
        lower = 0.0 if why else float(file["lower"])
        known = {name: file[name] for name in ("x", "low", "high", "weights", "free")}
        return cls(accepted=not why, why=why, lower=lower, nodes=len(file["parent"]), **known)

    def __bool__(self) -> bool:
        return self.accepted

    def __str__(self) -> str:
        bounded = np.isfinite(self.low).any() or np.isfinite(self.high).any()
        claim = f"no flip within {self.lower:.9g}" + (" and the bounds" if bounded else "")
        claim += ", with weights" if (self.weights != 1).any() else ""
        claim += f", {int((~self.free).sum())} of {len(self.free)} features frozen" if not self.free.all() else ""
        verdict = f"accepted: {claim}" if self.accepted else f"rejected: {self.why}"
        return f"{verdict} ({self.nodes} nodes)"


def check(network: DenseNetwork, path: str | Path) -> Checked:
    """Whether a file that :meth:`~flipopt.proofs.Proof.save` has written, or somebody else, proves what it claims.

    A file that is no proof at all is a :class:`~flipopt.FileFormatError`.
    """
    if not isinstance(network, DenseNetwork) or not all(isinstance(a, PReLU | Identity) for a in network.activations):
        raise InputError("network: expected a dense network with ReLU, PReLU or identity activations")
    file = read(Path(path), network)
    try:
        check_tree(file, network)
        with one_blas_thread(), np.errstate(all="ignore"):  # what is not finite is rejected
            ground = _Ground.of(network.in_float64, file)
            for number in np.flatnonzero(file["leaf"]):
                _check_leaf(ground, file, int(number))
    except RejectedError as reason:
        return Checked.of(file, str(reason))
    return Checked.of(file, "")


@dataclass(frozen=True, eq=False)
class _Ground:
    """The network from x: W1 (n, n(1)) in units of the weights, c0 +- off at x, and further layers, leads last.

    ``low`` and ``high`` (n,) are how far each feature may change, in the same units, and rounded outwards.
    """

    W1: Array
    off1: Array
    c0: Array
    off: Array
    W: list[Array]
    b: list[Array]
    left: list[Array]
    right: list[Array]
    others: list[int]
    low: Array
    high: Array

    @classmethod
    def of(cls, net: DenseNetwork, file: dict[str, Any]) -> _Ground:
        source, x = int(file["source"]), file["x"].astype(np.float64)
        others = [k for k in range(net.n_classes) if k != source]
        W, b = list(net.weights), list(net.biases)
        W[-1], b[-1] = W[-1][:, [source]] - W[-1][:, others], b[-1][source] - b[-1][others]
        W1 = W[0] / np.sqrt(file["weights"])[:, None] * file["free"][:, None]
        n = net.n_inputs
        low, high = (
            np.where(file["free"], (file[name] - x) * np.sqrt(file["weights"]), 0.0) for name in ("low", "high")
        )
        # A difference, a root, a quotient and a product are off by a few units each.
        return cls(
            W1,
            8 * EPS * np.linalg.norm(W1, axis=0) + TINY,
            x @ W[0] + b[0],
            (n + 8) * EPS * (np.abs(x) @ np.abs(W[0]) + np.abs(b[0])) + TINY,
            W[1:],
            b[1:],
            [slopes[0] for slopes in net.one_sided_slopes],
            [slopes[1] for slopes in net.one_sided_slopes],
            others,
            low * (1 + 8 * EPS),
            high * (1 + 8 * EPS),
        )

    def fall(self, A: Array, radius: float) -> Array:
        """Upper bounds (rows,) on how far A delta, A (rows, n), can fall below 0 in the ball and within the bounds.

        By weak duality with a multiplier s of the ball: every s >= 0 gives one. Sorted by |A| / room, the features
        that run into their bound are the first so many; s is that of the first number that is enough.
        """
        size, room = np.abs(A), np.abs(np.where(A > 0, self.low, self.high))  # abs: no negative zeros
        n = A.shape[1]
        length = np.linalg.norm(A, axis=1)
        if not np.isfinite(room).any():
            return np.asarray(radius * length * (1 + (n + 8) * EPS))
        ratio = np.where(size > 0, size / room, 0.0)
        order = np.argsort(-ratio, axis=1)
        sizes, rooms, ratios = (np.take_along_axis(each, order, axis=1) for each in (size, room, ratio))
        squares = np.where(np.isfinite(rooms) & (ratios > 0), rooms, 0.0) ** 2
        left = radius**2 - np.concatenate([np.zeros((len(A), 1)), np.cumsum(squares, axis=1)], axis=1)
        rest = np.concatenate([np.cumsum(sizes[:, ::-1] ** 2, axis=1)[:, ::-1], np.zeros((len(A), 1))], axis=1)
        s = np.where(left > 0, np.sqrt(rest / np.where(left > 0, left, 1.0)), np.inf)
        enough = s >= np.concatenate([ratios, np.zeros((len(A), 1))], axis=1)
        s = np.minimum(s[np.arange(len(A)), enough.argmax(axis=1)], length / radius)[:, None]
        way = np.where(size > 0, np.minimum(size / np.where(s > 0, s, np.inf), room), 0.0)
        way = np.where((s == 0) & (size > 0), room, way)
        down, bend, ball = (size * way).sum(axis=1), s[:, 0] * (way * way).sum(axis=1), s[:, 0] * radius**2
        fall = down + (ball - bend) / 2 + (n + 16) * EPS * (down + bend + ball)
        return np.asarray(np.minimum(fall, radius * length * (1 + (n + 8) * EPS)))


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
            off = radius * (n * EPS * np.linalg.norm(ground.W1, axis=0) + ground.off1) + ground.off
            low = ground.c0 - ground.fall(ground.W1.T, radius) - off
            high = ground.c0 + ground.fall(-ground.W1.T, radius) + off
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
    loss = (A.shape[1] + 8) * EPS * (np.abs(A) @ np.abs(corners).max(axis=0) + np.abs(a)) + TINY
    ways.append(plus @ corners.min(axis=0) + minus @ corners.max(axis=0) + a - loss)
    return np.asarray(np.max(ways, axis=0))


def _backwards(ground: _Ground, radius: float, layers: list[_Layer], A: Array, a: Array, kind: str) -> Array:
    """One of them: lines for all layers, the last first."""
    const, loss = a.copy(), 4 * EPS * np.abs(a) + TINY * (1 + radius)
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
    return np.asarray(const - ground.fall(A, radius) - loss * (1 + 1e-6))


def _outputs(ground: _Ground, layers: list[_Layer], k: int) -> Array:
    """Upper bounds on |y| of a layer."""
    steepest = np.maximum(np.abs(ground.left[k]), np.abs(ground.right[k]))
    return np.asarray(steepest * layers[k].most_c)


def _check_leaf(ground: _Ground, file: dict[str, Any], number: int) -> None:
    """No flip of the leaf's class and signs is nearer than what the proof claims."""
    leaf = int(file["leaf"][:number].sum())
    radius, signs = float(file["radius"][leaf]), signs_on_the_way(file, number)
    require(radius >= file["lower"], f"the ball of node {number} is smaller than the claim")
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
    require(proved, f"the multipliers of node {number} do not prove its bound")


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
            off = (np.abs(W) @ passed + (W.shape[1] + 16) * EPS * (np.abs(W) @ terms + np.abs(b))) * (1 + 1e-6) + TINY
            C = W @ (left[:, None] * C + bend[:, None] * P)
            c0 = W @ (left * c0 + bend * p0) + b
            place, first = place + len(split[k]), first + len(layer.low)
        add(0, first, C[lead], -c0[lead], off[lead])
        for number, multiplier in lam.items():
            place = number - ROW_KINDS * first - 1
            if place >= 0 and multiplier > 0:
                feature, below = place // 2, place % 2 == 1
                limit = (-ground.low if below else ground.high)[feature] if feature < n else np.inf
                require(np.isfinite(limit), "a multiplier is of a bound that there is not")
                row[feature] += -multiplier if below else multiplier
                sizes[feature] += multiplier
                right += multiplier * limit
                slack += multiplier * 16 * EPS * (radius + limit)
        count = len(lam) + 16
        slack += count * EPS * float(radius * np.linalg.norm(sizes[:n]) + sizes[n:] @ most + abs(right))
        return cls(n, radius, H, q, row, right, slack * (1 + 1e-6), loss * (1 + 1e-6), most, sizes)

    def empty(self) -> bool:
        """Whether lam . (A z - b) is positive in the whole ball and box: a certificate of Farkas."""
        least = -self.radius * float(np.linalg.norm(self.row[: self.n])) * (1 + len(self.row) * EPS)
        least += float(np.minimum(self.row[self.n :], 0) @ self.most) * (1 + len(self.row) * EPS)
        nothing = NOTHING * (1 + self.radius + float(self.most.sum()))
        return bool(least - self.right - self.slack - 4 * EPS * abs(self.right) > nothing)

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
