"""Fitted scikit-learn classifiers as networks: the same answers, the right derivatives, flip points of every row."""

from __future__ import annotations

import warnings
from functools import cache, partial
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import ensemble, linear_model, neighbors, neural_network, preprocessing, svm
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline

import flipopt as fo
from flipopt.networks.stages import StagedNetwork
from tests.derivatives import centred

DATA = {"iris": load_iris, "cancer": load_breast_cancer, "wine": load_wine}


def mlp(activation: str, *widths: int) -> neural_network.MLPClassifier:
    return neural_network.MLPClassifier(widths, activation=activation, solver="lbfgs", alpha=0.1, random_state=0)


def scaled(*steps: Any) -> Pipeline:
    return make_pipeline(preprocessing.StandardScaler(), *steps)


LOGISTIC = linear_model.LogisticRegression(max_iter=300)
ESTIMATORS: dict[str, BaseEstimator] = {
    "logistic": scaled(LOGISTIC),
    "linear svc": scaled(svm.LinearSVC()),
    "ridge": scaled(linear_model.RidgeClassifier()),
    "discriminant": LinearDiscriminantAnalysis(),
    "rbf": scaled(svm.SVC()),
    "nu": scaled(svm.NuSVC(nu=0.2)),
    "poly": scaled(svm.SVC(kernel="poly", degree=3, coef0=1.0)),
    "sigmoid": scaled(svm.SVC(kernel="sigmoid", gamma=0.05)),
    "linear": scaled(svm.SVC(kernel="linear")),
    "relu": scaled(mlp("relu", 12, 8)),
    "tanh": scaled(mlp("tanh", 12)),
    "sigmoid mlp": scaled(mlp("logistic", 12, 6)),
    "identity": scaled(mlp("identity", 5)),
    "min-max, pca": make_pipeline(preprocessing.MinMaxScaler((-1, 2)), PCA(3), svm.SVC(gamma=0.5)),
    "robust, whitened": make_pipeline(preprocessing.RobustScaler(), PCA(3, whiten=True), mlp("tanh", 6)),
    "max-abs, best": make_pipeline(preprocessing.MaxAbsScaler(), SelectKBest(k=3), "passthrough", LOGISTIC),
    "polynomial": scaled(PCA(3), preprocessing.PolynomialFeatures(3), preprocessing.StandardScaler(), LOGISTIC),
    "interactions": scaled(preprocessing.PolynomialFeatures(2, interaction_only=True, include_bias=False), LOGISTIC),
}
DENSE = {"logistic", "linear svc", "ridge", "discriminant", "sigmoid mlp", "relu", "tanh", "identity"}


@cache
def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    X, labels = DATA[name](return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], labels[order]


@cache
def fitted(name: str, kind: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(ESTIMATORS[kind]).fit(*data(name))


def pairwise(estimator: Any) -> bool:
    """Whether the classes of its predictions are voted for by pairs."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    return isinstance(last, svm.SVC | svm.NuSVC) and len(last.classes_) > 2


def directions(X: np.ndarray) -> np.ndarray:
    return data_spread(X) * np.random.default_rng(1).standard_normal(X.shape)


def data_spread(X: np.ndarray) -> np.ndarray:
    return X.std(axis=0)


both = pytest.mark.parametrize("kind", ESTIMATORS)
sets = pytest.mark.parametrize("name", DATA)


@sets
@both
def test_logits_and_classes_are_the_estimators(name: str, kind: str) -> None:
    estimator, (X, _) = fitted(name, kind), data(name)
    net = fo.from_sklearn(estimator)
    assert (net.n_inputs, net.n_classes) == (X.shape[1], len(estimator.classes_))
    assert net.class_names == tuple(map(str, estimator.classes_))
    assert isinstance(net, fo.DenseNetwork) or kind not in DENSE
    np.testing.assert_array_equal(net.predict(X), estimator.predict(X))
    if pairwise(estimator):
        return
    if hasattr(estimator, "decision_function"):
        scores = estimator.decision_function(X)
        expected = np.column_stack([0 * scores, scores]) if scores.ndim == 1 else scores
        np.testing.assert_allclose(net.logits(X), expected, rtol=1e-10, atol=1e-10 * np.abs(scores).max())
    if hasattr(estimator, "predict_proba"):  # all of these are softmax and logistic functions of the scores
        np.testing.assert_allclose(net.probabilities(X), estimator.predict_proba(X), atol=1e-10)


@sets
@both
def test_derivatives_are_those_of_differences(name: str, kind: str) -> None:
    net, X = fo.from_sklearn(fitted(name, kind)), data(name)[0][:7]
    D, V = directions(X), np.random.default_rng(2).standard_normal((len(X), net.n_classes))
    along = np.einsum("bkn,bn->bk", net.jacobian(X), D)
    np.testing.assert_allclose(along, centred(net.logits, X, D), atol=1e-6 * np.abs(along).max())
    for outputs in ("logits", "probabilities"):
        H = net.hessian_product(X, V, D, outputs) * data_spread(X)
        expected = centred(partial(net.vjp, V=V, outputs=outputs), X, D) * data_spread(X)
        np.testing.assert_allclose(H, expected, atol=1e-6 * max(1.0, np.abs(expected).max()))


@sets
@both
def test_every_row_has_a_flip_point(name: str, kind: str) -> None:
    estimator, X = fitted(name, kind), data(name)[0]
    net, weights = fo.from_sklearn(estimator), data_spread(X) ** -2
    flips = fo.closest_flip_points(net, X[:30], weights=weights)
    assert (flips.boundary_gap <= 1e-8).all()
    assert (flips.kkt_residual <= 5e-6).all()
    assert np.isfinite(flips.distance).all()
    beyond = X[flips.row] + (1 + 1e-4) * (flips.x - X[flips.row])
    changed = estimator.predict(beyond) == estimator.classes_[flips.classes[:, 1]]
    assert changed.mean() > 0.9  # a step may lead into a third class


def test_the_flips_of_a_line_are_known() -> None:
    X, labels = data("cancer")
    model = linear_model.LogisticRegression(max_iter=5000).fit(X[:, :4], labels)
    flip = fo.closest_flip_point(model, X[0, :4])
    assert flip.success
    distance = abs(model.decision_function(X[:1, :4])[0]) / np.linalg.norm(model.coef_)
    np.testing.assert_allclose(flip.distance, distance, rtol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_the_vote_of_the_pairs_agrees_away_from_circles(kernel: str) -> None:
    X, labels = load_digits(return_X_y=True)
    model = svm.SVC(kernel=kernel, decision_function_shape="ovo").fit(X[:600], labels[:600])
    net = fo.from_sklearn(model)
    points = X[600:] + 3 * np.random.default_rng(0).standard_normal(X[600:].shape)
    duels = model.decision_function(points)
    wins = np.zeros((len(points), 10))
    for p, (i, j) in enumerate(combinations(range(10), 2)):
        wins[:, i] += duels[:, p] > 0
        wins[:, j] += duels[:, p] <= 0
    clear = wins.max(axis=1) == 9
    assert clear.mean() > 0.9
    agrees = net.predict(points) == model.predict(points)
    assert agrees[clear].all()
    assert agrees.mean() > 0.95
    assert (net.logits(points).max(axis=1)[clear] > 0).all()
    model.set_params(decision_function_shape="ovr")
    np.testing.assert_array_equal(fo.from_sklearn(model).logits(points), net.logits(points))


def test_names_of_columns_and_classes_are_kept() -> None:
    X, labels = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])[labels]
    estimator = scaled(svm.SVC()).fit(X, names)
    net = fo.from_sklearn(estimator)
    assert net.class_names == ("setosa", "versicolor", "virginica")
    assert net.feature_names == tuple(X.columns)
    rows = X[X.columns[::-1]].iloc[:5]
    flips = fo.closest_flip_points(estimator, rows)
    np.testing.assert_array_equal(flips.x, fo.closest_flip_points(net, X.to_numpy()[:5]).x)
    np.testing.assert_array_equal(fo.closest_flip_point(net, rows.iloc[0]).x, flips.x[0])
    with pytest.raises(fo.InputError, match=r"X: lacks the column 'petal width \(cm\)'"):
        fo.closest_flip_points(net, X.drop(columns="petal width (cm)"))
    frame = flips.to_pandas(net)
    assert list(frame.columns[-4:]) == list(X.columns)
    assert set(frame.i) == {"setosa"}
    assert set(frame.j) <= {"versicolor", "virginica"}
    np.testing.assert_array_equal(frame[list(X.columns)].to_numpy(), flips.x)


def test_float32_sparse_and_searched_estimators_are_read() -> None:
    from scipy.sparse import csr_matrix

    X, labels = data("wine")
    small = preprocessing.StandardScaler().fit_transform(X).astype(np.float32)
    net = fo.from_sklearn(mlp("tanh", 5).fit(small, labels))
    assert net.dtype == np.float64
    sparse = svm.SVC().fit(csr_matrix(small), labels)
    np.testing.assert_array_equal(fo.from_sklearn(sparse).predict(small), sparse.predict(csr_matrix(small)))
    search = GridSearchCV(scaled(svm.SVC()), {"svc__C": [0.5, 2.0]}, cv=2).fit(X, labels)
    np.testing.assert_array_equal(fo.from_sklearn(search).predict(X), search.predict(X))
    nested = make_pipeline(make_pipeline(preprocessing.StandardScaler(), PCA(4)), LOGISTIC).fit(X, labels)
    np.testing.assert_allclose(fo.from_sklearn(nested).logits(X), nested.decision_function(X), atol=1e-10)


def several() -> tuple[np.ndarray, np.ndarray]:
    X, labels = data("iris")
    return X, np.eye(2, dtype=int)[labels % 2]


def labelled(estimator: BaseEstimator) -> Any:
    return estimator.fit(*data("iris"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: svm.SVC(), "expected a fitted one, found a SVC that is not; call fit first"),
        (lambda: scaled(LOGISTIC), "found a StandardScaler in step 'standardscaler' that is not"),
        (lambda: Pipeline([("a", PCA(2)), ("b", labelled(LOGISTIC))]), "found a PCA in step 'a' that is not"),
        (
            lambda: labelled(ensemble.RandomForestClassifier(3)),
            "RandomForestClassifier is not differentiable: its scores",
        ),
        (
            lambda: labelled(scaled(neighbors.KNeighborsClassifier())),
            "in step 'kneighborsclassifier' is not differentiable",
        ),
        (
            lambda: labelled(make_pipeline(preprocessing.QuantileTransformer(n_quantiles=9), LOGISTIC)),
            "QuantileTransformer in step 'quantiletransformer' is not supported; expected StandardScaler",
        ),
        (
            lambda: labelled(make_pipeline(preprocessing.MinMaxScaler(clip=True), LOGISTIC)),
            "expected MinMaxScaler that does not clip, found clip=True in step 'minmaxscaler'",
        ),
        (lambda: labelled(svm.SVC(kernel=lambda A, B: A @ B.T)), "expected the kernel rbf, .* found a function"),
        (lambda: linear_model.LinearRegression().fit(*data("iris")), "expected a classifier, found LinearRegression"),
        (lambda: neural_network.MLPClassifier((3,), max_iter=1).fit(*several()), "found several"),
        (lambda: 3, "expected a scikit-learn classifier, found int"),
        (lambda: svm.SVC, "expected a scikit-learn classifier, found ABCMeta"),
    ],
)
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_what_cannot_be_read_is_named(make, message: str) -> None:
    with pytest.raises(fo.InputError, match=f"^estimator: .*{message}"):
        fo.from_sklearn(make())


def test_landmarks_are_mapped_to_the_support_vectors() -> None:
    for kind in ("rbf", "min-max, pca"):
        estimator = fitted("cancer", kind)
        net = fo.from_sklearn(estimator)
        np.testing.assert_allclose(estimator[:-1].transform(net.landmarks), estimator[-1].support_vectors_, atol=1e-8)
        assert set(net.predict(net.landmarks)) == {0, 1}
    assert fo.from_sklearn(fitted("cancer", "poly")).landmarks is None


def test_a_staged_network_has_one_precision() -> None:
    net = fo.from_sklearn(fitted("iris", "rbf"))
    assert isinstance(net, StagedNetwork)
    assert net.astype("float64") is net
    assert net.embedding(data("iris")[0][:3]).shape[0] == 3
    with pytest.raises(fo.InputError, match="dtype: this network computes in float64 only"):
        net.astype("float32")
    assert repr(net).startswith("StagedNetwork(4 inputs, Affine > GaussianKernel")
    frame = pd.DataFrame(data("iris")[0][:2])
    np.testing.assert_array_equal(net.logits(frame), net.logits(frame.to_numpy()))
