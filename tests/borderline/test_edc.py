"""EDC1 and EDC2, planes, principal components and correlations."""

from __future__ import annotations

from importlib import util
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

import flipopt as fo
from flipopt.borderline import Instances, edc, embed, epbs, idc, pearson, profile
from tests.borderline.cases import blobs, table

NET, X, LABELS = blobs()


def both() -> Instances:
    return Instances.join([epbs(NET, X, LABELS, 0, 1), epbs(NET, X, LABELS, 1, 0)])


def test_it_is_the_linear_svm_of_the_embeddings() -> None:
    from sklearn.svm import LinearSVC

    train, test = np.arange(120) < 80, np.arange(120) >= 80
    found = edc(NET, both(), X[train], LABELS[train], 0, 1, X[test], LABELS[test])
    fit, held = train & (LABELS < 2), test & (LABELS < 2)
    model = LinearSVC(C=1.0, max_iter=10_000, random_state=0).fit(NET.embedding(X[fit]), LABELS[fit])
    w = np.linalg.norm(model.coef_)
    instances = both().found
    for name, E, truth in (
        ("test", NET.embedding(X[held]), LABELS[held]),
        ("borderline", NET.embedding(instances.x), instances.classes[:, 0]),
    ):
        d = np.abs(model.decision_function(E) / w).mean()
        assert getattr(found, f"distance_{name}") == pytest.approx(d)
        assert getattr(found, f"edc1_{name}") == pytest.approx(d / (1 + d))
        assert getattr(found, f"edc2_{name}") == pytest.approx(100 * (model.predict(E) == truth).mean())
    assert (found.train, found.test, found.borderline) == (fit.sum(), held.sum(), len(instances))
    assert found.converged
    assert found.edc1_borderline < found.edc1_test
    assert found.own_borderline < 1e-3 < found.own_test
    assert str(found).startswith("EDC1 is 0.")
    assert "From the network's own plane" in str(found)


def test_borderline_instances_lie_on_the_networks_own_plane() -> None:
    found = edc(NET, both(), X, LABELS, 0, 1)
    assert found.own is not None
    E = NET.embedding(X[:5])
    Y = NET.logits(X[:5])
    W = NET.weights[-1]
    np.testing.assert_allclose(
        found.own.distances(E), np.abs(Y[:, 0] - Y[:, 1]) / np.linalg.norm(W[:, 0] - W[:, 1]), rtol=1e-6
    )
    assert found.test == sum(int(0.2 * (k == LABELS).sum()) for k in (0, 1))


def test_of_a_network_that_is_not_dense_the_plane_is_fitted() -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Unflatten(1, (1, 2)),
        torch.nn.Conv1d(1, 6, 2),
        torch.nn.Flatten(),
        torch.nn.Sigmoid(),
        torch.nn.Linear(6, 3),
    ).double()
    net = fo.TorchNetwork(module, input_shape=(2,))
    labels = net.predict(X)
    s, t = np.unique(labels)[:2] if len(np.unique(labels)) > 1 else (0, 1)
    if len(np.unique(labels)) < 2:
        with torch.no_grad():
            module[-1].bias -= torch.tensor(np.median(net.logits(X), axis=0))
        labels = net.predict(X)
        s, t = np.unique(labels)[:2]
    found = edc(net, epbs(net, X, None, int(s), int(t)), X, None, int(s), int(t))
    assert found.own is not None
    W = module[-1].weight.detach().numpy()
    span = np.linalg.svd(net.embedding(X) - net.embedding(X).mean(axis=0))[1]
    known = np.linalg.norm(W[s] - W[t]) if span[-1] > 1e-6 * span[0] else np.linalg.norm(found.own.normal)
    assert np.linalg.norm(found.own.normal) == pytest.approx(known, rel=1e-3)
    assert found.own_borderline < 1e-3 < found.own_test


def test_without_instances_their_numbers_are_nan() -> None:
    found = edc(NET, table(np.empty((0, 2))), X, LABELS, 0, 1)
    assert np.isnan([found.edc1_borderline, found.edc2_borderline, found.own_borderline]).all()
    assert found.edc2_test > 80


def test_scikit_learn_is_needed_for_edc_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    instances, real = both(), util.find_spec

    def missing(name: str, *rest: Any) -> Any:
        return None if name == "sklearn" else real(name, *rest)

    monkeypatch.setattr("flipopt.common.checks.find_spec", missing)
    with pytest.raises(fo.MissingPackageError, match=r"EDC needs sklearn.*pip install 'flipopt\[sklearn\]'"):
        edc(NET, instances, X, LABELS, 0, 1)
    assert idc(NET, instances.between(0, 1), k=2, m=5).value >= 0
    found = profile(NET, X, LABELS, [(0, 1)], options=fo.borderline.Measuring(pairs=4, flips=0, k=2, m=4))
    assert np.isnan(found.edc1_test).all()
    assert "no EDC" in found.note[0]


def test_bad_arguments_are_named() -> None:
    for borderline, arguments, words in [
        (both(), (X, LABELS, 0, 0), "t: expected another class than s"),
        (both(), (X, LABELS, 0, 2), "borderline: expected instances between 0 and 2, found one between"),
        ([], (X, LABELS, 0, 1), "borderline: expected Instances, found none"),
        ([3], (X, LABELS, 0, 1), "borderline: expected Instances, found int"),
        (both(), (X, np.where(LABELS == 1, 2, LABELS), 0, 1), "labels: expected samples of class 1 to fit on"),
    ]:
        with pytest.raises(fo.InputError, match=words):
            edc(NET, borderline, *arguments)  # type: ignore[arg-type]
    with pytest.raises(fo.InputError, match="C: expected a number > 0, found 0"):
        edc(NET, both(), X, LABELS, 0, 1, C=0)


def test_components_are_those_of_the_training_samples() -> None:
    space = embed(NET, X[:60])
    places = space.places(X)
    E = NET.embedding(X)
    np.testing.assert_allclose(places[:60].mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(space.components @ space.components.T, np.eye(2), atol=1e-12)
    spread = np.linalg.eigvalsh(np.cov(E[:60].T))[::-1]
    np.testing.assert_allclose(places[:60].var(axis=0, ddof=1), spread[:2])
    np.testing.assert_allclose(space.share, spread[:2] / spread.sum())
    np.testing.assert_allclose(space.places(both()), space.places(both().found.x))
    with pytest.raises(fo.InputError, match="X: expected at least two samples, found 1"):
        embed(NET, X[0])
    with pytest.raises(fo.InputError, match="dimensions: expected at most 12, found 13"):
        embed(NET, X, 13)


def test_correlations_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(45)
    y = rng.standard_normal(45) - 0.6 * x
    found, known = pearson(x, y), stats.pearsonr(x, y)
    assert (found.r, found.p) == pytest.approx((known.statistic, known.pvalue))
    gaps = pearson(np.append(x, np.nan), np.append(y, 1.0))
    assert (gaps.r, gaps.n) == (pytest.approx(found.r), 45)
    assert np.isnan(pearson([1, 2], [2, 1]).r)
    assert np.isnan(pearson([1, 1, 1], [2, 1, 3]).p)
    assert pearson([1, 2, 3, 4], [2, 4, 6, 8]).r == pytest.approx(1)
    with pytest.raises(fo.InputError, match="x, y: expected two arrays of one length"):
        pearson([1, 2], [1, 2, 3])


def test_the_p_value_of_the_paper() -> None:
    """r = -0.5066 over 45 pairs: 0.000384, where 0.000391 is printed."""
    u, v = np.zeros(45), np.zeros(45)
    u[0], u[1], v[:3] = 1, -1, (-0.5066, 0.5066, 0)
    v[2], v[3] = np.sqrt(1 - 0.5066**2), -np.sqrt(1 - 0.5066**2)
    found = pearson(u, v)
    assert found.r == pytest.approx(-0.5066)
    assert found.p == pytest.approx(0.000384, abs=5e-7)
