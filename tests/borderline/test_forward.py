"""Forward passes by the quickest way: the same classes and points as by any other."""

from __future__ import annotations

from pathlib import Path

import cloudpickle
import numpy as np
import pytest

import flipopt as fo
from flipopt.borderline import idc, refine
from flipopt.borderline.forward import Walked, forward

CONVOLUTIONAL = Path(__file__).parents[2] / "models" / "networks" / "mnist-cnn.onnx"
X = fo.load_shipped("mnist-fcn").X


@pytest.fixture(scope="module")
def net() -> fo.OnnxNetwork:
    return fo.load_network(CONVOLUTIONAL)


def test_a_graph_runs_in_onnxruntime(net: fo.OnnxNetwork) -> None:
    quick = forward(net)
    assert quick is net.forward_only is not net
    np.testing.assert_allclose(quick.logits(X), net.logits(X), atol=1e-4)
    np.testing.assert_allclose(quick.embedding(X), net.embedding(X), atol=1e-4)
    assert net.why_no_derivatives == ""
    assert forward(quick) is quick
    with pytest.raises(fo.DerivativeError):
        quick.vjp(X[0], np.ones(10))
    exact = net.astype("float64")
    assert forward(exact) is exact
    again = cloudpickle.loads(cloudpickle.dumps(net))
    np.testing.assert_allclose(forward(again).logits(X), quick.logits(X), atol=1e-5)


def test_points_are_those_of_the_module(net: fo.OnnxNetwork) -> None:
    classes = net.predict(X)
    A, B = X[classes == 1][:8], X[classes == 7][:8]
    found, same = refine(net, A, B, 1, 7), refine(net.astype("float64"), A, B, 1, 7, beta=9e-6)
    both = found.success & same.success
    assert both.any()
    np.testing.assert_allclose(found.x[both], same.x[both], atol=1e-3)
    z = net.probabilities(found.found.x)
    np.testing.assert_allclose(np.abs(z[:, 1] - z[:, 7]), found.found.gap, atol=1e-5)
    assert 0 <= idc(net, found, k=2, m=8, starts=3).value < 1


def test_a_first_layer_is_computed_at_the_ends() -> None:
    rng = np.random.default_rng(0)
    W = [rng.standard_normal((20, 6)), rng.standard_normal((6, 5)), rng.standard_normal((5, 3))]
    wide = fo.DenseNetwork(W, [rng.standard_normal(w.shape[1]) for w in W], [fo.Tanh(), fo.ReLU()])
    A, B = rng.standard_normal((2, 9, 20))
    walked = Walked.of(wide)
    assert walked.first is not None
    lines = walked.between(walked.ends(A), walked.ends(B))
    for alpha in (0.0, 0.3, 1.0):
        Y = lines.logits(np.arange(9), np.full(9, alpha))
        np.testing.assert_allclose(Y, wide.logits((1 - alpha) * A + alpha * B), atol=1e-12)
    narrow = fo.DenseNetwork(W[1:], [np.zeros(5), np.zeros(3)], fo.ReLU())
    assert Walked.of(narrow.up_to(1)).first is None
