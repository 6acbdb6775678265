"""What skl2onnx exports by default loads with the scores and gradients of the estimator that it came from."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from tests.networks.onnx_cases import central_differences

skl2onnx = pytest.importorskip("skl2onnx", reason="exports of scikit-learn need skl2onnx")
datasets = pytest.importorskip("sklearn.datasets", reason="exports of scikit-learn need scikit-learn")

from sklearn.decomposition import PCA  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.multiclass import OneVsRestClassifier  # noqa: E402
from sklearn.neural_network import MLPClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler  # noqa: E402
from sklearn.svm import SVC, LinearSVC  # noqa: E402

ESTIMATORS: dict[str, Callable] = {
    "logistic regression": lambda: LogisticRegression(max_iter=1000),
    "linear svc": lambda: LinearSVC(),
    "svc rbf": lambda: SVC(),
    "svc poly": lambda: SVC(kernel="poly", coef0=1.0),
    "svc linear": lambda: SVC(kernel="linear"),
    "svc pairs": lambda: SVC(decision_function_shape="ovo"),
    "mlp relu": lambda: MLPClassifier((6,), max_iter=60, random_state=0),
    "mlp tanh": lambda: MLPClassifier((6,), activation="tanh", max_iter=60, random_state=0),
    "mlp logistic": lambda: MLPClassifier((6,), activation="logistic", max_iter=60, random_state=0),
    "standard scaler": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "min-max scaler": lambda: make_pipeline(MinMaxScaler(), SVC()),
    "clipped scaler": lambda: make_pipeline(MinMaxScaler(clip=True), LogisticRegression()),
    "pca": lambda: make_pipeline(StandardScaler(), PCA(3), LogisticRegression()),
    "polynomial": lambda: make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression(max_iter=1000)),
    "one against the rest": lambda: OneVsRestClassifier(LogisticRegression()),
}
CLASSES = {"three classes": slice(0, 150), "two classes": slice(50, 150)}
DENSE = {"logistic regression", "linear svc", "mlp relu", "mlp tanh", "standard scaler", "pca"}


def table(classes: str) -> tuple[np.ndarray, np.ndarray]:
    X, labels = datasets.load_iris(return_X_y=True)
    return X[CLASSES[classes]].astype(np.float32), labels[CLASSES[classes]]


def fitted(name: str, classes: str):
    X, labels = table(classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ESTIMATORS[name]().fit(X, labels)


def save(estimator, path: Path, **options) -> Path:
    X, _ = table("three classes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = skl2onnx.to_onnx(estimator, X[:1], **options)
    path.write_bytes(model.SerializeToString())
    return path


def scores(estimator, X: np.ndarray) -> np.ndarray:
    """The estimator's own logits."""
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    if isinstance(last, MLPClassifier | OneVsRestClassifier):
        return np.log(estimator.predict_proba(X))
    if isinstance(last, SVC) and len(last.classes_) > 2:
        last.decision_function_shape = "ovo"
        D = estimator.decision_function(X)
        own = np.full((len(X), 3, 3), np.inf)
        for p, (i, j) in enumerate(combinations(range(3), 2)):
            own[:, i, j], own[:, j, i] = D[:, p], -D[:, p]
        return own.min(axis=2)
    d = estimator.decision_function(X)
    return d if d.ndim == 2 else np.column_stack([np.zeros(len(X)), d])


def centred(Y: np.ndarray) -> np.ndarray:
    """Logits up to the shift that probabilities do not see."""
    return Y - Y.mean(axis=-1, keepdims=True)


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_scores_gradients_and_classes_are_those_of_the_estimator(name: str, classes: str, tmp_path: Path) -> None:
    estimator = fitted(name, classes)
    save(estimator, tmp_path / "net.onnx")
    net = fo.load_network(tmp_path / "net.onnx")
    assert isinstance(net, fo.DenseNetwork) == (name in DENSE)
    X, _ = table(classes)
    X = X[::7].astype(np.float64) + 0.01
    Y, expected = net.astype("float64").logits(X), scores(estimator, X)
    size = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(centred(Y), centred(expected), rtol=0, atol=1e-5 * size)
    labels = getattr(estimator, "classes_", None)
    np.testing.assert_array_equal(labels[net.predict(X)], estimator.predict(X))

    class Estimator:
        logits = staticmethod(lambda x: centred(scores(estimator, x[None])[0]))

    d = np.array([0.3, -0.5, 1.0, 0.7])
    slope = central_differences(Estimator, X[3], d)
    J = net.astype("float64").jacobian(X[3])
    np.testing.assert_allclose((J - J.mean(axis=0)) @ d, slope, rtol=0, atol=1e-5 * max(1.0, np.abs(slope).max()))


SMOOTH = ["logistic regression", "linear svc", "svc rbf", "svc poly", "svc linear", "mlp logistic", "pca", "polynomial"]


@pytest.mark.parametrize("name", SMOOTH)
def test_two_classes_flip_where_the_estimator_does(name: str, tmp_path: Path) -> None:
    estimator = fitted(name, "two classes")
    net = fo.load_network(save(estimator, tmp_path / "net.onnx"))
    X = table("two classes")[0][[3, 60]].astype(np.float64)
    flips = fo.closest_flip_points(net, X)
    assert flips.success.all()
    gaps = np.diff(centred(scores(estimator, flips.x)), axis=1)
    np.testing.assert_allclose(gaps, 0, atol=1e-4)


def test_three_classes_of_a_support_vector_machine_flip(tmp_path: Path) -> None:
    estimator = fitted("svc rbf", "three classes")
    net = fo.load_network(save(estimator, tmp_path / "net.onnx"))
    X = table("three classes")[0][[3, 60, 110]].astype(np.float64)
    flips = fo.closest_flip_points(net, X)
    assert np.isfinite(flips.distance).all()
    for x, flip, (i, j) in zip(X, flips.x, flips.classes):
        beyond = flip + 1e-3 * (flip - x)
        before = flip - 1e-3 * (flip - x)
        assert (estimator.predict([before])[0], estimator.predict([beyond])[0]) == (i, j)


def test_probabilities_of_a_file_are_kept_where_it_has_them(tmp_path: Path) -> None:
    X = table("three classes")[0][::9]
    for name in ("logistic regression", "mlp relu", "one against the rest", "polynomial"):
        estimator = fitted(name, "three classes")
        net = fo.load_network(save(estimator, tmp_path / "net.onnx"))
        np.testing.assert_allclose(net.probabilities(X), estimator.predict_proba(X), atol=1e-5)


def test_the_note_says_what_the_logits_are(tmp_path: Path) -> None:
    wanted = {
        ("svc rbf", "two classes"): "the decision function",
        ("svc rbf", "three classes"): "against the other classes",
        ("one against the rest", "three classes"): "logarithms of the probabilities",
        ("mlp logistic", "two classes"): "what goes into the last Sigmoid",
        ("mlp logistic", "three classes"): "^$",
    }
    for (name, classes), note in wanted.items():
        net = fo.OnnxNetwork(save(fitted(name, classes), tmp_path / "net.onnx"))
        with pytest.raises(AssertionError, match=note):
            raise AssertionError(net.note)


def test_exports_without_zipmap_or_with_platt_scaling_load_too(tmp_path: Path) -> None:
    X = table("three classes")[0][::9].astype(np.float64)
    plain = fo.load_network(save(fitted("svc rbf", "three classes"), tmp_path / "a.onnx"))
    estimator = fitted("svc rbf", "three classes")
    options = {id(estimator): {"zipmap": False}}
    bare = fo.load_network(save(estimator, tmp_path / "b.onnx", options=options))
    np.testing.assert_array_equal(bare.logits(X), plain.logits(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        platt = SVC(probability=True, random_state=0).fit(*table("three classes"))
    net = fo.load_network(save(platt, tmp_path / "c.onnx"))
    np.testing.assert_allclose(net.logits(X), plain.logits(X), atol=1e-5)


@pytest.mark.parametrize("classes", CLASSES)
def test_forward_passes_without_torch_are_the_same(
    classes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = table(classes)[0][::9]
    for name in ("svc rbf", "mlp logistic", "one against the rest", "clipped scaler"):
        save(fitted(name, classes), tmp_path / "net.onnx")
        monkeypatch.undo()
        expected = fo.OnnxNetwork(tmp_path / "net.onnx").probabilities(X)
        monkeypatch.setattr("flipopt.networks.onnx_network.has_torch", lambda: False)
        forward = fo.OnnxNetwork(tmp_path / "net.onnx")
        assert "torch" in forward.why_no_derivatives
        np.testing.assert_allclose(forward.probabilities(X), expected, atol=2e-5)
