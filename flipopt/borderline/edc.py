"""EDC1 and EDC2, the boundary as a linear model sees it in the embedding space (000, section 4.2)."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from flipopt.borderline.instances import Instances
from flipopt.borderline.samples import Samples, embedded, scored
from flipopt.common.checks import Array, as_number, as_whole, optional_package
from flipopt.common.errors import InputError
from flipopt.networks.dense import DenseNetwork
from flipopt.networks.protocol import Network
from flipopt.paths.lines import exact

HELD_OUT = 0.2
"""Share of the samples that is kept for the test where no test samples are given, as in the paper's split."""
ITERATIONS = 10_000
ONE_AT_A_TIME = threading.Lock()
"""Filters of warnings belong to the whole process."""
AFFINE = 1e-3
"""Relative residual up to which scores count as an affine function of the embedding; float32 leaves 1e-6."""


@dataclass(frozen=True, eq=False)
class Plane:
    """The points e with e . normal + offset = 0 in an embedding space."""

    normal: Array
    offset: float

    def distances(self, E: Array) -> Array:
        """Of the rows of E (rows, width), (rows,)."""
        length = float(np.linalg.norm(self.normal))
        return np.abs(E @ self.normal + self.offset) / length if length > 0 else np.full(len(E), np.nan)

    def says(self, E: Array, lead: Array) -> bool:
        """Whether it is where the ``lead`` (rows,) at E is 0: an affine function with this normal and offset."""
        off = np.linalg.norm(E @ self.normal + self.offset - lead)
        return bool(self.normal.any() and off <= AFFINE * np.linalg.norm(lead))


@dataclass(frozen=True, eq=False)
class EDC:
    """How near to a linear boundary in the embedding space points are, and how well it tells their classes.

    Attributes
    ----------
    classes
        The two, smaller first.
    edc1_test, edc1_borderline
        d / (1 + d) with the mean distance d from the support vector machine's plane; NaN without such points.
    edc2_test, edc2_borderline
        Percent that the machine puts in the right class: the label of a test sample, the class that a borderline
        instance was approached from.
    distance_test, distance_borderline
        The d of EDC1.
    own_test, own_borderline
        Mean distances from the network's own plane y_s = y_t in the same space; NaN where it has none.
    train, test, borderline
        How many of each there were.
    converged
        Whether the machine's solver came to its end.
    svm, own
        The two planes; ``own`` is None where the scores are no affine function of the embedding.
    """

    classes: tuple[int, int]
    edc1_test: float
    edc1_borderline: float
    edc2_test: float
    edc2_borderline: float
    distance_test: float
    distance_borderline: float
    own_test: float
    own_borderline: float
    train: int
    test: int
    borderline: int
    converged: bool
    svm: Plane = field(repr=False)
    own: Plane | None = field(repr=False)

    def summary(self) -> str:
        """In plain words."""
        own = (
            f" From the network's own plane they are {self.own_test:.3g} and {self.own_borderline:.2g} away."
            if self.own is not None
            else ""
        )
        return (
            f"EDC1 is {self.edc1_test:.2f} for {self.test} test samples and {self.edc1_borderline:.2f} for "
            f"{self.borderline} borderline instances (mean distances {self.distance_test:.3g} and "
            f"{self.distance_borderline:.3g} from the plane of a support vector machine of {self.train} embeddings). "
            f"It puts {self.edc2_test:.1f}% and {self.edc2_borderline:.1f}% of them in their class (EDC2).{own}"
        )

    def __str__(self) -> str:
        return self.summary()


def edc(
    net: Any,
    borderline: Instances | Sequence[Instances],
    X: Any,
    labels: ArrayLike | None,
    s: Any,
    t: Any,
    test: Any = None,
    test_labels: ArrayLike | None = None,
    C: float = 1.0,
    seed: int = 0,
) -> EDC:
    """EDC1 and EDC2 of the boundary between s and t, by a support vector machine on embeddings (needs scikit-learn).

    The machine is scikit-learn's ``LinearSVC`` (squared hinge loss, an intercept, no scaling of the embeddings) with
    C = 1, the gamma of equation (5), and at most 10,000 iterations. EDC1 is d / (1 + d) with the mean distance d from
    its plane; EDC2 is its accuracy in percent. Both are computed for test samples and for borderline instances.

    A borderline instance lies on the plane y_s = y_t of the network's own last layer by construction. So what these
    measures say of borderline instances is mostly how the machine's plane differs from that one; ``own_borderline`` and
    ``own_test``, distances from the network's own plane, stand beside them. Of a dense network that plane is known; of
    others it is fitted to embeddings and scores of the samples, in the space that the embeddings span.

    The paper's text says that EDC2 of borderline instances is *higher* for a more complex boundary; its table and
    conclusion say *lower*. The number is reported as it is.

    Parameters
    ----------
    net
        Any network.
    borderline
        Instances of (s, t), of (t, s) or of both, as one table or several; those that were found are taken.
    X, labels
        Samples (rows, n_inputs) to fit the machine on, and their classes (rows,), by default those that are predicted.
    s, t
        The two classes, by position or name.
    test, test_labels
        The same of other samples. Without them a fifth of X, chosen by ``seed``, is not fitted on and is the test.
    C, seed
        Of the machine.
    """
    samples, s, t = Samples.between(net, X, labels, s, t)
    held = None if test is None else Samples.of(samples.network, test, test_labels, "test", among=(s, t))
    tables = [borderline] if isinstance(borderline, Instances) else list(borderline)
    found = _of_classes(tables, s, t, samples.network)
    return edc_of(samples, held, found, s, t, as_number(C, "C", least=0.0), as_whole(seed, "seed"))


def edc_of(
    samples: Samples, held: Samples | None, found: Instances, s: int, t: int, C: float = 1.0, seed: int = 0
) -> EDC:
    """As :func:`edc`, of samples and instances that are known."""
    pair = (min(s, t), max(s, t))
    E, labels = _of_pair(samples, pair)
    if held is None:
        E, labels, E_test, test_labels = _split(E, labels, seed)
    else:
        E_test, test_labels = _of_pair(held, pair)
    for k in pair:
        if not (labels == k).any():
            raise InputError(f"labels: expected samples of class {k} to fit on, found none")
    border = embedded(samples.network, found.x)
    model, converged = _fitted(E, labels, C, seed)
    plane, own = Plane(model.coef_[0], float(model.intercept_[0])), own_plane(samples, *pair)
    columns: dict[str, Any] = {"train": len(E), "test": len(E_test), "borderline": len(border)}
    for name, points, truth in (("test", E_test, test_labels), ("borderline", border, found.classes[:, 0])):
        d = _mean(plane.distances(points))
        right = model.predict(points) == truth if len(points) else np.empty(0)
        columns |= {f"distance_{name}": d, f"edc1_{name}": d / (1 + d), f"edc2_{name}": 100 * _mean(right)}
        columns[f"own_{name}"] = np.nan if own is None else _mean(own.distances(points))
    return EDC(classes=pair, converged=converged, svm=plane, own=own, **columns)


def own_plane(samples: Samples, s: int, t: int) -> Plane | None:
    """The plane y_s = y_t in the embedding space of the network, if its scores are an affine function there.

    Of a dense network that is in its last layer. Of others it is fitted by least squares, with the shortest normal.
    """
    rows = np.flatnonzero(samples.predicted >= 0)[: 20 * samples.embedding.shape[1] + 100]
    E, Y = samples.embedding[rows], scored(samples.network, samples.X[rows])
    lead, network = Y[:, s] - Y[:, t], exact(samples.network)
    if isinstance(network, DenseNetwork) and network.weights[-1].shape[0] == E.shape[1]:
        W, b = network.weights[-1], network.biases[-1]
        plane = Plane(W[:, s] - W[:, t], float(b[s] - b[t]))
        if plane.says(E, lead):  # else the embedding is that of another layer
            return plane
    centre = E.mean(axis=0)
    normal, *_ = np.linalg.lstsq(E - centre, lead - lead.mean(), rcond=1e-6)
    plane = Plane(normal, float(lead.mean() - centre @ normal))
    return plane if plane.says(E, lead) else None


def _of_classes(tables: Sequence[Any], s: int, t: int, network: Network) -> Instances:
    """The instances found, which must be between s and t."""
    for table in tables:
        if not isinstance(table, Instances):
            raise InputError(f"borderline: expected Instances, found {type(table).__name__}")
    if not tables:
        raise InputError("borderline: expected Instances, found none")
    found = Instances.join([table.found for table in tables])
    others = np.flatnonzero((np.sort(found.classes, axis=1) != (min(s, t), max(s, t))).any(axis=1))
    if len(others):
        a, b = found.classes[others[0]]
        raise InputError(f"borderline: expected instances between {s} and {t}, found one between {a} and {b}")
    return found


def _of_pair(samples: Samples, pair: tuple[int, int]) -> tuple[Array, Array]:
    """Embeddings (rows, width) and labels (rows,) of the samples of two classes that can be evaluated."""
    rows = np.flatnonzero(np.isin(samples.labels, pair) & (samples.predicted >= 0))
    return samples.embedding[rows], samples.labels[rows]


def _split(E: Array, labels: Array, seed: int) -> tuple[Array, Array, Array, Array]:
    """Four fifths and the rest, of each class as many."""
    rng, test = np.random.default_rng(seed), np.zeros(len(E), dtype=bool)
    for k in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == k))
        test[rows[: int(HELD_OUT * len(rows))]] = True
    return E[~test], labels[~test], E[test], labels[test]


def _fitted(E: Array, labels: Array, C: float, seed: int) -> tuple[Any, bool]:
    """The support vector machine, and whether its solver came to its end."""
    if C <= 0:
        raise InputError(f"C: expected a number > 0, found {C:g}")
    svm = optional_package("sklearn.svm", "sklearn", "EDC")
    ended = optional_package("sklearn.exceptions", "sklearn", "EDC").ConvergenceWarning
    with ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore", ended)
        model = svm.LinearSVC(C=C, max_iter=ITERATIONS, random_state=seed).fit(E, labels)
    return model, bool(model.n_iter_ < ITERATIONS)


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else np.nan
