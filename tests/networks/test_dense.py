from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.runs import threads as parallel
from tests.derivatives import centred, torch_twin
from tests.strategies import networks, points, seeds

outputs = st.sampled_from(["logits", "probabilities"])


def evaluate(net: fo.DenseNetwork, X: np.ndarray, output: str) -> np.ndarray:
    return net.logits(X) if output == "logits" else net.probabilities(X)


def assert_close(actual: np.ndarray, expected: np.ndarray, relative: float) -> None:
    """Relative to the largest entry: a sum of cancelling terms is no more accurate than they are."""
    np.testing.assert_allclose(actual, expected, rtol=0, atol=relative * max(1.0, np.abs(expected).max()))


@given(networks(smooth=True), st.sampled_from([None, 1, 5]), seeds, outputs)
def test_derivatives_agree_with_centred_differences(net, rows, seed: int, output: str) -> None:
    X, D = points(net, rows, seed), points(net, rows, seed + 1)
    V = np.random.default_rng(seed).standard_normal((*X.shape[:-1], net.n_classes))
    along = centred(lambda at: evaluate(net, at, output), X, D)
    J = net.jacobian(X, output)
    assert_close(np.einsum("...kn,...n->...k", J, D), along, 1e-6)
    assert_close(np.einsum("...n,...n->...", net.vjp(X, V, output), D), (V * along).sum(-1), 1e-6)
    gradient_along = centred(lambda at: net.vjp(at, V, output), X, D)
    assert_close(net.hessian_product(X, V, D, output), gradient_along, 1e-6)


@given(networks(), st.sampled_from([1, 4]), seeds, outputs)
def test_everything_agrees_with_torch(net, rows: int, seed: int, output: str) -> None:
    twin = fo.TorchNetwork(torch_twin(net))
    X, D = points(net, rows, seed), points(net, rows, seed + 1)
    V = np.random.default_rng(seed).standard_normal((rows, net.n_classes))
    assert_close(net.logits(X), twin.logits(X), 1e-12)
    assert_close(net.probabilities(X), twin.probabilities(X), 1e-12)
    assert_close(net.embedding(X), twin.embedding(X), 1e-12)
    assert_close(net.jacobian(X, output), twin.jacobian(X, output), 1e-12)
    assert_close(net.vjp(X, V, output), twin.vjp(X, V, output), 1e-12)
    assert_close(net.hessian_product(X, V, D, output), twin.hessian_product(X, V, D, output), 1e-12)


@given(networks(), seeds)
def test_forward_recurrence_of_the_paper_gives_the_same_jacobian(net, seed: int) -> None:
    """Equations (11)-(13), from the first layer to the last, against our pass from the last to the first."""
    x = points(net, None, seed)
    y, J = x, np.eye(net.n_inputs)
    for k, (W, b) in enumerate(zip(net.weights, net.biases)):
        c, J = y @ W + b, W.T @ J
        if k < net.n_layers - 1:
            y, J = net.activations[k].value(c), net.activations[k].slope(c)[:, None] * J
    assert_close(net.jacobian(x), J, 1e-12)
    z = np.exp(c) / np.exp(c).sum()
    assert_close(net.jacobian(x, "probabilities"), (np.diag(z) - np.outer(z, z)) @ J, 1e-12)


@given(networks(), seeds)
def test_float32_is_float64_to_single_precision(net, seed: int) -> None:
    single = net.astype(np.float32)
    X = points(net, 6, seed).astype(np.float32)
    V = np.ones((6, net.n_classes), dtype=np.float32)
    for ours, exact in (
        (single.logits(X), single.in_float64.logits(X)),
        (single.vjp(X, V), single.in_float64.vjp(X, V)),
        (single.hessian_product(X, V, X), single.in_float64.hessian_product(X, V, X)),
    ):
        assert ours.dtype == np.float32
        assert exact.dtype == np.float64
        assert_close(ours, exact, 1e-3)


@given(networks(), seeds)
def test_float32_parameters_at_a_float64_point_are_computed_in_float64(net, seed: int) -> None:
    single = net.astype(np.float32)
    x = points(net, None, seed)
    wide = fo.DenseNetwork(
        [W.astype(np.float64) for W in single.weights], [b.astype(np.float64) for b in single.biases], net.activations
    )
    np.testing.assert_array_equal(single.logits(x), wide.logits(x))
    assert single.dtype == np.float32


@given(networks(), seeds)
def test_one_point_is_a_batch_of_one(net, seed: int) -> None:
    X = points(net, 3, seed)
    V = np.ones((3, net.n_classes))
    for single, batch in (
        (net.logits(X[1]), net.logits(X)),
        (net.predict(X[1]), net.predict(X)),
        (net.embedding(X[1]), net.embedding(X)),
        (net.jacobian(X[1]), net.jacobian(X)),
        (net.vjp(X[1], V[1]), net.vjp(X, V)),
        (net.hessian_product(X[1], V[1], X[1]), net.hessian_product(X, V, X)),
        (net.forward(X[1])[-1], net.forward(X)[-1]),
    ):
        assert np.shape(single) == batch.shape[1:]
        assert_close(single, batch[1], 1e-13)


def test_blocks_on_all_cores_give_what_one_block_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    net = fo.load_shipped("mnist-net1").network
    X = np.random.default_rng(0).standard_normal((700, net.n_inputs))
    V = np.random.default_rng(1).standard_normal((700, net.n_classes))
    monkeypatch.setattr(parallel, "cores", lambda: 2)
    monkeypatch.setattr(parallel, "SMALLEST_TASK", 0.0)
    Y, pullback = net.linearize(X)
    split = (net.logits(X), Y, net.vjp(X, V), pullback(V), net.hessian_product(X, V, X))
    monkeypatch.setattr(parallel, "cores", lambda: 1)
    monkeypatch.setattr(parallel, "BLOCK_ROWS", 10_000)
    whole = (net.logits(X), net.logits(X), net.vjp(X, V), net.vjp(X, V), net.hessian_product(X, V, X))
    for ours, expected in zip(split, whole):
        assert_close(ours, expected, 1e-12)


def test_softmax_does_not_overflow() -> None:
    net = fo.DenseNetwork([np.array([[1000.0, -1000.0]])], [np.zeros(2)])
    np.testing.assert_array_equal(net.probabilities([1.0]), [1.0, 0.0])
    assert np.isfinite(net.jacobian([1.0], "probabilities")).all()


def test_forward_stops_where_it_is_told() -> None:
    net = fo.load_shipped("mnist-net1").network
    layers = net.forward(np.zeros(100), stop=3)
    assert [len(layer) for layer in layers] == [500, 500, 500]
    np.testing.assert_allclose(net.forward(np.zeros(100))[-1], net.logits(np.zeros(100)))
    np.testing.assert_allclose(net.forward(np.zeros(100), stop=12)[-1], net.embedding(np.zeros(100)))
    with pytest.raises(fo.InputError, match="stop: expected a layer from 1 to 13, found 14"):
        net.forward(np.zeros(100), stop=14)


def test_the_first_layers_are_a_network_of_their_own() -> None:
    net, x = fo.load_shipped("mnist-net1").network, np.linspace(0, 1, 100)
    for layer in (1, 2, 13):
        head = net.up_to(layer)
        np.testing.assert_allclose(head.logits(x), net.pre_activations(x)[layer - 1])
        assert all(a is b for a, b in zip(head.weights + head.biases, net.weights[:layer] + net.biases[:layer]))
    with pytest.raises(fo.InputError, match="layer: expected a layer from 1 to 13, found 0"):
        net.up_to(0)


@given(networks(), st.sampled_from([None, 3]), seeds)
def test_pre_activations_are_what_the_layers_are_made_of(net, rows: int | None, seed: int) -> None:
    X = points(net, rows, seed)
    layers = net.pre_activations(X)
    for activation, c, y in zip(net.activations, layers, net.forward(X)):
        np.testing.assert_allclose(activation.value(c), y, rtol=0, atol=1e-13)
    np.testing.assert_allclose(layers[-1], net.logits(X), rtol=0, atol=1e-12)
    assert len(layers) == net.n_layers


@given(networks(smooth=True))
def test_smooth_activations_have_one_slope_at_zero(net) -> None:
    assert all((left == right).all() for left, right in net.one_sided_slopes)


def test_kinked_activations_have_two_slopes_at_zero() -> None:
    alpha = np.array([0.25, 1.0, -2.0])
    sides = [(fo.ReLU(), 0), (fo.PReLU(alpha), alpha), (fo.ELU(0.5), 0.5)]
    for activation, left in sides:
        net = fo.DenseNetwork([np.ones((2, 3)), np.ones((3, 2))], [np.zeros(3), np.zeros(2)], activation)
        ((below, above),) = net.one_sided_slopes
        np.testing.assert_array_equal(below, np.broadcast_to(left, 3))
        np.testing.assert_array_equal(above, np.ones(3))


def test_changed_copies_share_the_other_arrays() -> None:
    net = fo.load_shipped("mnist-net1").network
    relaxed = net.with_activations(fo.Erf(2.0))
    shifted = net.with_output_bias(np.arange(10.0))
    assert all(a is b for a, b in zip(relaxed.weights + relaxed.biases, net.weights + net.biases))
    assert all(a is b for a, b in zip(shifted.weights + shifted.biases[:-1], net.weights + net.biases[:-1]))
    assert relaxed.activations == (fo.Erf(2.0),) * 12
    assert shifted.dtype == net.dtype
    moved = shifted.logits(np.zeros(100)) - net.logits(np.zeros(100))
    np.testing.assert_allclose(moved, np.arange(10) - net.biases[-1])


def test_a_network_cannot_be_changed_from_outside() -> None:
    W, b = [np.ones((2, 3))], [np.zeros(3)]
    net = fo.DenseNetwork(W, b)
    W[0][:] = 7
    assert net.weights[0][0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        net.weights[0][0, 0] = 2


@given(networks(), seeds, outputs)
def test_the_hessian_is_made_of_its_products(net, seed: int, output: str) -> None:
    x, v = points(net, None, seed), np.random.default_rng(seed).standard_normal(net.n_classes)
    H = net.hessian(x, v, output)
    rows, directions = np.tile(x, (net.n_inputs, 1)), np.eye(net.n_inputs)
    products = net.hessian_product(rows, np.tile(v, (net.n_inputs, 1)), directions, output)
    assert_close(H, products, 1e-12)
    assert_close(H, H.T, 1e-13)


KINDS = [fo.Erf(0.4), fo.ELU(1.0), fo.Tanh(), fo.ReLU(), fo.PReLU(0.3), fo.Identity()]


@pytest.mark.parametrize("output", ["logits", "probabilities"])
@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_the_hessian_agrees_with_differences_of_gradients(kind: fo.Activation, output: str) -> None:
    rng = np.random.default_rng(1)
    W = [rng.standard_normal((4, 7)), rng.standard_normal((7, 6)), rng.standard_normal((6, 3))]
    net = fo.DenseNetwork(W, [rng.standard_normal(len(w.T)) for w in W], kind)
    x, v = rng.standard_normal(4), rng.standard_normal(3)
    columns = [centred(lambda at: net.vjp(at, v, output), x, direction) for direction in np.eye(4)]
    H = net.hessian(x, v, output)
    assert_close(H, np.stack(columns), 1e-6)
    curved = output == "probabilities" or not isinstance(kind, fo.PReLU | fo.Identity)
    assert (np.abs(H).max() > 1e-3) == curved  # the logits of ReLU networks are linear near almost every point


def test_the_hessian_of_a_float32_network_at_a_float64_point_is_in_float64() -> None:
    net = fo.load_shipped("mnist-net1").network
    x, v = fo.load_shipped("mnist-net1").X[0].astype(np.float64), np.eye(10)[0] - np.eye(10)[1]
    d = np.random.default_rng(0).standard_normal(100)
    H = net.hessian(x, v)
    assert H.dtype == np.float64
    assert_close(H @ d, net.hessian_product(x, v, d), 1e-12)


def test_counts_and_repr() -> None:
    net = fo.DenseNetwork([np.ones((4, 3)), np.ones((3, 2))], [np.zeros(3), np.zeros(2)], fo.Erf(np.ones(3)))
    assert net.n_parameters == 12 + 3 + 3 + 6 + 2
    assert net.widths == (4, 3, 2)
    assert repr(net) == "DenseNetwork(4-3-2, float64)"


ONE = np.ones((2, 3))
BAD_NETWORKS = {
    "weights: expected at least one": ([], [], ()),
    "biases: expected 1": ([ONE], [], ()),
    "activations: expected 1": ([ONE, np.ones((3, 2))], [np.ones(3), np.ones(2)], ()),
    r"weights\[1\]: expected shape \(3, width\), found \(4, 2\)": (
        [ONE, np.ones((4, 2))],
        [np.ones(3), np.ones(2)],
        [fo.Tanh()],
    ),
    r"weights\[0\]: expected shape": ([np.ones(3)], [np.ones(3)], ()),
    r"biases\[0\]: expected shape \(3,\), found \(2,\)": ([ONE], [np.ones(2)], ()),
    r"weights\[0\]: expected finite numbers, found nan at index \(1, 0\)": (
        [np.array([[1.0, 2.0], [np.nan, 1.0]])],
        [np.ones(2)],
        (),
    ),
    r"activations\[0\]: expected a parameter of shape": (
        [ONE, np.ones((3, 2))],
        [np.ones(3), np.ones(2)],
        [fo.Erf(np.ones(5))],
    ),
    r"activations\[0\]: expected an Activation, found str": ([ONE, np.ones((3, 2))], [np.ones(3), np.ones(2)], ["erf"]),
    "at least 2 classes": ([np.ones((2, 1))], [np.ones(1)], ()),
    r"weights\[0\]: expected real numbers": ([np.array([["a", "b"]])], [np.ones(2)], ()),
}


@pytest.mark.parametrize("message", BAD_NETWORKS)
def test_bad_layers_are_named(message: str) -> None:
    with pytest.raises(fo.InputError, match=message):
        fo.DenseNetwork(*BAD_NETWORKS[message])


def test_flow_of_gradients_multiplies_to_the_jacobian() -> None:
    shipped = fo.load_shipped("mnist-net1")
    net, x = shipped.network, shipped.X[0]
    flows = fo.gradient_flow(net, x)
    assert [flow.layer for flow in flows] == list(range(1, 13))
    c = x @ net.weights[0] + net.biases[0]
    J = net.jacobian(x)  # = dy/dc(1) W(1)^T
    through = np.linalg.lstsq(net.weights[0].astype(float), J.T, rcond=None)[0]
    assert flows[0].largest_slope == pytest.approx(net.activations[0].slope(c).max())
    assert flows[0].smallest_slope <= flows[0].median_slope <= flows[0].largest_slope
    # The least-squares solution is the shortest vector with this product, so it is no longer than dy/dc.
    assert np.linalg.norm(through) <= flows[0].jacobian_norm * (1 + 1e-9)
    with pytest.raises(fo.InputError, match="x: expected one point"):
        fo.gradient_flow(net, np.zeros((2, 100)))
