"""Can a prediction be trusted: distance to the flip and softmax as predictors of mistakes (002, sections 4 and 6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from flipopt.common.checks import Array, as_number, as_whole
from flipopt.common.errors import InputError
from flipopt.common.tables import Table
from flipopt.explain import statistics
from flipopt.explain.matching import as_inputs, as_labels, class_names, counted, left_out, nearest, percent
from flipopt.networks.points import as_one_point
from flipopt.networks.protocol import Network
from flipopt.networks.softmax import softmax
from flipopt.networks.wrapping import as_network
from flipopt.problem import in_float64
from flipopt.results import FlipResult, FlipTable

UNKNOWN = "cannot be said"


@dataclass(frozen=True, eq=False)
class Calibration(Table):
    """Shares of mistakes in bins of a predictor, lowest values first; bins hold as many rows each as ties allow.

    Attributes
    ----------
    lower, upper
        The smallest and largest value in each bin, (bins,).
    value
        Their mean.
    count, wrong
        Rows in the bin, and mistakes among them.
    share, low, high
        Share of mistakes, and its 95% interval (Wilson's).
    """

    lower: Array
    upper: Array
    value: Array
    count: Array
    wrong: Array
    share: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, values: Array, wrong: Array, bins: int) -> Calibration:
        """Of values (rows,), whose low ones are suspect, with ``wrong`` (rows,) bool."""
        edges = np.unique(np.quantile(values, np.linspace(0, 1, bins + 1)[1:-1])) if len(values) else np.empty(0)
        place = np.searchsorted(edges, values, side="left")
        used = np.unique(place)
        members = [place == k for k in used]
        count = np.array([some.sum() for some in members], dtype=np.int64)
        mistakes = np.array([wrong[some].sum() for some in members], dtype=np.int64)
        lower, upper, value = (np.array([f(values[some]) for some in members]) for f in (np.min, np.max, np.mean))
        low, high = statistics.wilson(mistakes, count)
        return cls(lower, upper, value, count, mistakes, mistakes / np.maximum(count, 1), low, high)


@dataclass(frozen=True, eq=False)
class Predictor:
    """How well low values of something tell mistakes from right answers.

    Attributes
    ----------
    name
        "distance" or "softmax".
    values
        One a row, (rows,); low ones are suspect.
    auc, interval
        Area under the ROC curve: how often a mistake has a lower value than a right answer. 1 if always, 0.5 if no
        better than chance, NaN if there are no mistakes or only mistakes. Its 95% interval (Newcombe 2006).
    roc
        False positive rates and true positive rates, an array each.
    pr
        Recall and precision, an array each.
    average_precision
        Precision averaged over the mistakes, NaN if there are none; by chance it is the share of mistakes.
    calibration
        The share of mistakes by value.
    """

    name: str
    values: Array = field(repr=False)
    auc: float
    interval: tuple[float, float]
    roc: tuple[Array, Array] = field(repr=False)
    pr: tuple[Array, Array] = field(repr=False)
    average_precision: float
    calibration: Calibration = field(repr=False)

    @classmethod
    def of(cls, name: str, values: Array, score: Array, wrong: Array, bins: int) -> Predictor:
        """``score`` (rows,) is what ranks: it falls where ``values`` rise, and may be finer than they are."""
        area = statistics.auc(score, wrong)
        return cls(
            name,
            values,
            area,
            statistics.auc_interval(area, int(wrong.sum()), int((~wrong).sum())),
            statistics.roc(score, wrong),
            statistics.precision_recall(score, wrong),
            statistics.average_precision(score, wrong),
            Calibration.of(values, wrong, bins),
        )

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.name}: AUC {self.auc:.3f} ({low:.3f} to {high:.3f})"


@dataclass(frozen=True, eq=False)
class Trust:
    """Whether distance or softmax predicts mistakes, and how well.

    Attributes
    ----------
    row, predicted, labels, wrong
        The rows of X that have a flip, their predicted and true classes, and which of them are mistakes, (rows,) each.
    distance, softmax
        The two predictors of mistakes.
    difference, difference_interval
        AUC of distance less that of softmax, and its 95% interval for the same rows (DeLong's variance, Student's t).
    better
        "distance" or "softmax" where that interval is to one side of 0, else "cannot be said".
    without_flip
        Rows that were left out because no flip is known.
    """

    row: Array = field(repr=False)
    predicted: Array = field(repr=False)
    labels: Array = field(repr=False)
    wrong: Array = field(repr=False)
    distance: Predictor
    softmax: Predictor
    difference: float
    difference_interval: tuple[float, float]
    better: str
    without_flip: int

    @property
    def mistakes(self) -> int:
        """How many of the rows are mistakes."""
        return int(self.wrong.sum())

    @property
    def accuracy(self) -> float:
        """Share of the rows that is right; NaN without rows."""
        return float(1 - self.wrong.mean()) if len(self.wrong) else np.nan

    @property
    def expected_mistakes(self) -> float:
        """How many mistakes the softmax itself expects: the sum of what it leaves to other classes."""
        return float((1 - self.softmax.values).sum())

    def summary(self) -> str:
        """In plain words."""
        counts = f"{counted(self.mistakes, 'mistake')} among {counted(len(self.row), 'input')}"
        if np.isnan(self.distance.auc):
            return (
                f"{counts}: whether distance or softmax predicts mistakes {UNKNOWN}, as that takes both mistakes "
                f"and right answers.{left_out(self.without_flip)}"
            )
        (low, high), (from_, to) = self.distance.interval, self.softmax.interval
        which = f"{self.better} is the better predictor" if self.better != UNKNOWN else f"which is better {UNKNOWN}"
        return (
            f"{counts}. A mistake is nearer to a flip than a right answer in {percent(self.distance.auc)} of pairs "
            f"(95% interval {percent(low)} to {percent(high)}) and has less softmax in {percent(self.softmax.auc)} "
            f"({percent(from_)} to {percent(to)}); {which}. By its softmax the network expects "
            f"{self.expected_mistakes:.1f} mistakes.{left_out(self.without_flip)}"
        )

    def __str__(self) -> str:
        return self.summary()


def trust(flips: FlipTable, net: Network, X: ArrayLike, labels: ArrayLike, bins: int = 10) -> Trust:
    """Distance to the nearest flip, and softmax, as predictors of mistakes.

    Parameters
    ----------
    flips
        Flip points of rows of X; of several of a row the nearest counts. Rows without one are left out.
    net, X, labels
        The classifier, all its inputs (rows, n_inputs), and their true classes (rows,): positions, or names where the
        network has ``class_names``.
    bins
        Of the calibration.
    """
    net = as_network(net, X, many=True)
    points = as_inputs(X, net)
    truth = as_labels(labels, len(points), getattr(net, "class_names", None), net.n_classes)
    found, missing = nearest(flips, len(points), "X")
    bins = as_whole(bins, "bins", least=1)
    Y = in_float64(net).logits(points[found.row]) if len(found) else np.empty((0, net.n_classes))
    predicted = np.asarray(Y.argmax(axis=1), dtype=np.int64)
    wrong = predicted != truth[found.row]
    doubt = _doubt(Y, predicted)
    distance = Predictor.of("distance", found.distance, -found.distance, wrong, bins)
    scores = Predictor.of("softmax", 1 - doubt, doubt, wrong, bins)
    difference, interval = statistics.auc_difference(-found.distance, doubt, wrong)
    better = "distance" if interval[0] > 0 else "softmax" if interval[1] < 0 else UNKNOWN
    return Trust(found.row, predicted, truth[found.row], wrong, distance, scores, difference, interval, better, missing)


def _doubt(Y: Array, predicted: Array) -> Array:
    """1 - max z from logits (rows, n_classes), summed over the others: softmax that is 1 in floats still ranks."""
    if len(Y) == 0:
        return np.empty(0)
    Z = softmax(Y)
    Z[np.arange(len(Z)), predicted] = 0
    return np.asarray(Z.sum(axis=1))


@dataclass(frozen=True, eq=False)
class TrustScore:
    """How near a flip one input is, among others.

    Attributes
    ----------
    distance, predicted
        Of the input; its predicted class.
    percentile, class_percentile
        Share, in percent, of the reference inputs that are nearer to a flip than it; among all, and among those of the
        same predicted class (NaN if there are none).
    count, class_count
        How many reference inputs there are, and how many of that class.
    wrong_as_near, wrong_beyond
        Share of mistakes among the reference inputs that are as near or nearer, and among those farther away; NaN
        where there are none, or where the reference has no labels.
    alternate
        The class on the other side of the flip; None if only the distance is known.
    classes
        Names of the classes.
    """

    distance: float
    predicted: int
    percentile: float
    class_percentile: float
    count: int
    class_count: int
    wrong_as_near: float
    wrong_beyond: float
    alternate: int | None
    classes: tuple[str, ...]

    def summary(self) -> str:
        """In plain words."""
        if np.isnan(self.percentile):
            return f"How far this input is from a flip among others {UNKNOWN}."
        own = (
            f"; of those that are “{self.classes[self.predicted]}” too, {self.class_percentile:.0f}% are"
            if self.class_count
            else ""
        )
        other = "" if self.alternate is None else f" On the other side is “{self.classes[self.alternate]}”."
        text = (
            f"“{self.classes[self.predicted]}” flips at a distance of {self.distance:.3g}: {self.percentile:.0f}% of "
            f"{counted(self.count, 'reference input')} are nearer to a flip{own}.{other}"
        )
        if np.isnan(self.wrong_as_near):
            return f"{text} How many inputs as near are mistakes {UNKNOWN}."
        beyond = "" if np.isnan(self.wrong_beyond) else f", of those farther away {percent(self.wrong_beyond)}"
        return f"{text} Of those as near or nearer {percent(self.wrong_as_near)} are mistakes{beyond}."

    def __str__(self) -> str:
        return self.summary()


def trust_score(
    flip: FlipResult | float,
    net: Network,
    x: ArrayLike,
    reference: Trust | FlipTable,
    classes: Sequence[str] | None = None,
) -> TrustScore:
    """How far one input is from its flip, among reference inputs, and how often such inputs are mistakes.

    Parameters
    ----------
    flip
        The closest flip of the input, or its distance, in the norm of the reference.
    net, x
        The classifier and the input, (n_inputs,).
    reference
        What :func:`trust` found for other inputs, such as those that the network was trained on, or their flips alone,
        which say nothing of mistakes.
    classes
        Names of the classes, where the network does not know them.
    """
    net = as_network(net, x)
    i = int(net.predict(as_one_point(x, net, "x")))
    length = flip.distance if isinstance(flip, FlipResult) else as_number(flip, "flip", least=0.0)
    if isinstance(reference, Trust):
        values, predicted, wrong = reference.distance.values, reference.predicted, reference.wrong
    elif isinstance(reference, FlipTable):
        found, _ = nearest(reference, int(reference.row.max(initial=-1)) + 1, "reference")
        values, predicted, wrong = found.distance, found.classes[:, 0], np.empty(0, dtype=bool)
    else:
        raise InputError(f"reference: expected a Trust or a FlipTable, found {type(reference).__name__}")
    near, same = values <= length, predicted == i
    return TrustScore(
        length,
        i,
        _percentile(values, length),
        _percentile(values[same], length),
        len(values),
        int(same.sum()),
        _share(wrong[near] if len(wrong) else wrong),
        _share(wrong[~near] if len(wrong) else wrong),
        int(flip.classes[1]) if isinstance(flip, FlipResult) else None,
        class_names(classes, net),
    )


def _percentile(values: Array, length: float) -> float:
    return float(100 * (values < length).mean()) if len(values) and np.isfinite(length) else np.nan


def _share(wrong: Array) -> float:
    return float(wrong.mean()) if len(wrong) else np.nan
