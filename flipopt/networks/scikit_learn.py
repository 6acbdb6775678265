"""Fitted scikit-learn classifiers as networks with analytic derivatives.

scikit-learn is imported only when there is an estimator, which is the proof that it is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from flipopt.common.checks import Array
from flipopt.common.errors import InputError
from flipopt.networks.activations import ReLU, Tanh
from flipopt.networks.dense import DenseNetwork
from flipopt.networks.stages import (
    Affine,
    GaussianKernel,
    Monomials,
    Pointwise,
    Power,
    Stage,
    StagedNetwork,
    WorstDuel,
    network_of,
)

Translation = Callable[[Any], list[Stage]]
"""A fitted step to the stages that do the same."""
CLASSIFIERS = "LogisticRegression, LinearSVC, SVC, MLPClassifier and other linear classifiers"
TRANSFORMERS = (
    "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, PCA, PolynomialFeatures and feature selections"
)
STEPS = ("Tree", "Forest", "Boosting", "Neighbors")
"""In the names of classifiers whose scores are step functions."""


def from_sklearn(estimator: Any) -> DenseNetwork | StagedNetwork:
    """A fitted scikit-learn classifier, or a Pipeline that ends in one, as a network.

    It takes linear classifiers (LogisticRegression, LinearSVC, ...), SVC and NuSVC (rbf, poly, sigmoid and linear
    kernels) and MLPClassifier, after scalers, PCA, PolynomialFeatures and feature selections. Points are in the units
    of the Pipeline's inputs. What is affine is folded into a :class:`~flipopt.DenseNetwork` where the rest is one.

    The logits are the decision function; where that is one number y, for two classes, they are (0, y). Class k is
    ``estimator.classes_[k]``, as a string in ``class_names``; ``feature_names`` are the columns that it was fitted on.
    The logits of an SVC with more than two classes are not its decision function, which jumps with the votes of the
    pairs: class i has the least of its pairwise decisions, which gives the class that beats all others, as the vote
    does (:class:`~flipopt.networks.stages.WorstDuel`). ``decision_function_shape`` makes no difference to that.
    """
    from sklearn.base import BaseEstimator, is_classifier

    if not isinstance(estimator, BaseEstimator):
        raise InputError(f"estimator: expected a scikit-learn classifier, found {type(estimator).__name__}")
    *before, (name, classifier) = _steps(estimator, "")
    if not is_classifier(classifier):
        raise InputError(f"estimator: expected a classifier{_at(name)}, found {type(classifier).__name__}")
    stages = [stage for place, step in before for stage in _translated(step, place, _transformers(), TRANSFORMERS)]
    stages += _translated(classifier, name, _classifiers(), CLASSIFIERS)
    network = network_of(stages, int(estimator.n_features_in_))
    network.class_names = tuple(str(label) for label in classifier.classes_)
    columns = getattr(estimator, "feature_names_in_", None)
    network.feature_names = None if columns is None else tuple(str(column) for column in columns)
    return network


def _steps(estimator: Any, name: str) -> list[tuple[str, Any]]:
    """The fitted steps of nested Pipelines and searches in order, each with the names that lead to it."""
    from sklearn.pipeline import Pipeline

    _require_fitted(estimator, name)
    if hasattr(estimator, "best_estimator_"):  # of a search for parameters
        return _steps(estimator.best_estimator_, name)
    if not isinstance(estimator, Pipeline):
        return [(name, estimator)]
    parts = [(f"{name}.{key}".lstrip("."), step) for key, step in estimator.steps if step not in (None, "passthrough")]
    if not parts:
        raise InputError(f"estimator: expected a classifier at the end of the Pipeline{_at(name)}, found no steps")
    return [found for place, step in parts for found in _steps(step, place)]


def _require_fitted(estimator: Any, name: str) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except NotFittedError:
        found = f"{type(estimator).__name__}{_at(name)} that is not"
        raise InputError(f"estimator: expected a fitted one, found a {found}; call fit first") from None
    except TypeError as error:
        raise InputError(f"estimator: expected a fitted one{_at(name)}, found {error}") from None


def _translated(step: Any, name: str, known: dict[type, Translation], expected: str) -> list[Stage]:
    for kind, translation in known.items():
        if isinstance(step, kind):
            try:
                return translation(step)
            except InputError as error:
                raise InputError(f"{error}{_at(name)}") from None
    what = type(step).__name__
    if any(word in what for word in STEPS):
        raise InputError(
            f"estimator: {what}{_at(name)} is not differentiable: its scores are a step function, with no gradient to "
            "follow to the boundary"
        )
    raise InputError(f"estimator: {what}{_at(name)} is not supported; expected {expected}")


def _at(name: str) -> str:
    return f" in step {name!r}" if name else ""


# Transformers


def _transformers() -> dict[type, Translation]:
    from sklearn import decomposition, preprocessing
    from sklearn.feature_selection import SelectorMixin

    return {
        preprocessing.StandardScaler: lambda step: _scaled(step.n_features_in_, step.mean_, step.scale_),
        preprocessing.RobustScaler: lambda step: _scaled(step.n_features_in_, step.center_, step.scale_),
        preprocessing.MaxAbsScaler: _max_abs,
        preprocessing.MinMaxScaler: _min_max,
        preprocessing.PolynomialFeatures: lambda step: [Monomials(step.powers_)],
        decomposition.PCA: _principal,
        SelectorMixin: _selected,
    }


def _scaled(n: int, centre: Array | None, scale: Array | None) -> list[Stage]:
    """(x - centre) / scale, where None stands for 0 and 1."""
    factor = np.ones(n) if scale is None else 1 / np.asarray(scale, dtype=np.float64)
    shift = np.zeros(n) if centre is None else -np.asarray(centre, dtype=np.float64) * factor
    return [Affine(np.diag(factor), shift)]


def _max_abs(step: Any) -> list[Stage]:
    _require_unclipped(step)
    return _scaled(step.n_features_in_, None, step.scale_)


def _min_max(step: Any) -> list[Stage]:
    _require_unclipped(step)
    return [Affine(np.diag(step.scale_), np.asarray(step.min_))]


def _require_unclipped(step: Any) -> None:
    if getattr(step, "clip", False):
        raise InputError(f"estimator: expected {type(step).__name__} that does not clip, found clip=True")


def _selected(step: Any) -> list[Stage]:
    kept = step.get_support()
    return [Affine(np.eye(len(kept))[:, kept], np.zeros(int(kept.sum())))]


def _principal(step: Any) -> list[Stage]:
    W = step.components_.T
    if step.whiten:
        W = W / np.maximum(np.sqrt(step.explained_variance_), np.finfo(np.float64).eps)
    return [Affine(W, -step.mean_ @ W)]


# Classifiers


def _classifiers() -> dict[type, Translation]:
    from sklearn import discriminant_analysis, linear_model, neural_network, svm

    linear = (
        *(linear_model.LogisticRegression, linear_model.LogisticRegressionCV, linear_model.RidgeClassifier),
        *(linear_model.RidgeClassifierCV, linear_model.SGDClassifier, linear_model.Perceptron, svm.LinearSVC),
        discriminant_analysis.LinearDiscriminantAnalysis,
    )
    return {
        **dict.fromkeys(linear, _linear),
        svm.SVC: _support_vectors,
        svm.NuSVC: _support_vectors,
        neural_network.MLPClassifier: _perceptron,
    }


def _linear(model: Any) -> list[Stage]:
    W = np.atleast_2d(_full(model.coef_))
    return [_scores(W.T, np.broadcast_to(model.intercept_, len(W)), model)]


def _scores(W: Array, b: Array, model: Any) -> Affine:
    """x W + b, one score a class; a single one y is made (0, y)."""
    if isinstance(model.classes_, list) or len(model.classes_) != max(2, W.shape[1]):
        raise InputError(f"estimator: expected {type(model).__name__} to have one target, found several")
    if W.shape[1] == 1:
        return Affine(np.column_stack([np.zeros_like(W), W]), np.append(np.zeros(1), b))
    return Affine(W, np.array(b))


def _perceptron(model: Any) -> list[Stage]:
    if model.n_outputs_ > 1 and model.out_activation_ != "softmax":
        raise InputError("estimator: expected MLPClassifier with one target, found several")
    stages: list[Stage] = []
    for W, b in zip(model.coefs_[:-1], model.intercepts_[:-1], strict=True):
        stages += [Affine(W, b), *_activation(model.activation, W.shape[1])]
    return [*stages, _scores(model.coefs_[-1], model.intercepts_[-1], model)]


def _activation(name: str, width: int) -> list[Stage]:
    if name == "logistic":  # 1 / (1 + exp(-c)) = (1 + tanh(c / 2)) / 2
        half = 0.5 * np.eye(width)
        return [Affine(half, np.zeros(width)), Pointwise(Tanh()), Affine(half, np.full(width, 0.5))]
    known: dict[str, list[Stage]] = {"relu": [Pointwise(ReLU())], "tanh": [Pointwise(Tanh())], "identity": []}
    if name not in known:
        raise InputError(f"estimator: expected MLPClassifier with a known activation, found {name!r}")
    return known[name]


def _support_vectors(model: Any) -> list[Stage]:
    """sum over the support vectors s of a_s k(x, s), plus b: one decision for two classes, else one a pair."""
    S, a = _full(model.support_vectors_), _full(model.dual_coef_)
    kernel, k = _kernel(model, S), len(model.classes_)
    if k == 2:
        return [*kernel, _scores(a.T, model.intercept_, model)]
    # Row j - 1 (or j, for j < i) of the dual coefficients of class i is its part in the duel with class j.
    ends = np.cumsum(model.n_support_)
    own = [slice(end - count, end) for end, count in zip(ends, model.n_support_, strict=True)]
    A = np.zeros((len(S), k * (k - 1) // 2))
    for p, (i, j) in enumerate(combinations(range(k), 2)):
        A[own[i], p], A[own[j], p] = a[j - 1, own[i]], a[i, own[j]]
    return [*kernel, Affine(A, model.intercept_), WorstDuel(k)]


def _kernel(model: Any, S: Array) -> list[Stage]:
    """k(x, s) for every row s of S."""
    if model.kernel == "rbf":
        return [GaussianKernel(S, float(model._gamma))]
    if model.kernel == "linear":
        return [Affine(S.T, np.zeros(len(S)))]
    inner = Affine(model._gamma * S.T, np.full(len(S), float(model.coef0)))
    if model.kernel == "poly":
        return [inner, Power(int(model.degree))]
    if model.kernel == "sigmoid":
        return [inner, Pointwise(Tanh())]
    what = model.kernel if isinstance(model.kernel, str) else "a function"
    raise InputError(f"estimator: expected the kernel rbf, poly, sigmoid or linear, found {what}")


def _full(matrix: Any) -> Array:
    """A matrix that may be sparse as an array."""
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float64)
