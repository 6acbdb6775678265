"""What people wrap, and how: each thing that goes wrong is an error, a warning, or simply works."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional

import flipopt as fo
from flipopt.networks.wrapping import as_network, check_gradient

X = np.random.default_rng(0).standard_normal((5, 4))


def mlp(classes: int = 3) -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, classes)).double()


def cnn() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(27, 3)
    ).double()


class Around(torch.nn.Module):
    """A module whose output is a function of another's."""

    def __init__(self, function, inner: torch.nn.Module | None = None) -> None:
        super().__init__()
        self.inner, self.function = inner or mlp(), function

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return self.function(self.inner(points))


# Modules that are random, or depend on the batch


def test_dropout_left_on_is_found() -> None:
    with pytest.raises(fo.InputError, match="module: expected the same outputs .* dropout"):
        fo.TorchNetwork(Around(lambda Y: functional.dropout(Y, 0.3, training=True)))


def test_a_module_that_goes_back_to_training_is_found() -> None:
    class Trains(Around):
        def forward(self, points: torch.Tensor) -> torch.Tensor:
            self.train()
            return super().forward(points)

    inner = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 3))
    with pytest.raises(fo.InputError, match="dropout or another random layer"):
        fo.TorchNetwork(Trains(lambda Y: Y, inner))


def test_outputs_that_depend_on_the_batch_are_found() -> None:
    with pytest.raises(fo.InputError, match="not to depend on the rest of its batch"):
        fo.TorchNetwork(Around(lambda Y: Y - Y.mean(dim=0)))


# What it returns


def test_of_probabilities_the_logarithm_is_taken() -> None:
    module = mlp()
    with pytest.warns(UserWarning, match="outputs are positive and sum to one.*without the softmax"):
        net = fo.TorchNetwork(torch.nn.Sequential(module, torch.nn.Softmax(dim=1)))
    plain = fo.TorchNetwork(module)
    np.testing.assert_allclose(net.probabilities(X), plain.probabilities(X), atol=1e-12)
    np.testing.assert_array_equal(net.predict(X), plain.predict(X))
    ours, theirs = (fo.closest_flip_points(some, X) for some in (net, plain))
    assert ours.success.all()
    np.testing.assert_allclose(ours.distance, theirs.distance, rtol=1e-6)


@pytest.mark.parametrize("shape", [(-1, 1), (-1,), ()])
def test_one_output_is_two_classes(shape: tuple[int, ...]) -> None:
    module = mlp(1)
    net = fo.TorchNetwork(Around(lambda Y: Y.reshape(shape) if shape else Y.squeeze(), module))
    assert net.n_classes == 2
    y = module(torch.tensor(X)).detach().numpy()
    np.testing.assert_allclose(net.logits(X), np.column_stack([0 * y, y]), atol=1e-14)
    np.testing.assert_array_equal(net.predict(X), (y[:, 0] > 0).astype(int))
    flips = fo.closest_flip_points(net, X)
    assert flips.success.all()
    np.testing.assert_allclose(fo.closest_flip_points(module, X).distance, flips.distance, rtol=1e-6)


def test_one_output_between_0_and_1_is_a_probability() -> None:
    module = mlp(1)
    with pytest.warns(UserWarning, match="one output lies between 0 and 1.*without the sigmoid"):
        net = fo.TorchNetwork(torch.nn.Sequential(module, torch.nn.Sigmoid()))
    np.testing.assert_allclose(net.probabilities(X), fo.TorchNetwork(module).probabilities(X), atol=1e-12)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda Y: (Y, Y), "module: expected a tensor of logits, found tuple"),
        (lambda Y: Y.argmax(dim=1), "module: expected a tensor of logits, found a tensor of torch.int64"),
        (
            lambda Y: Y[:, :, None].expand(-1, -1, 2),
            r"module: expected logits of shape \(4, classes\), found \(4, 3, 2\)",
        ),
    ],
)
def test_other_outputs_are_named(function, message: str) -> None:
    with pytest.raises(fo.InputError, match=message):
        fo.TorchNetwork(Around(function))


# Shapes, precisions, devices


def test_a_wrong_input_shape_is_named() -> None:
    with pytest.raises(
        fo.InputError, match=r"input_shape: .* batch of shape \(4, 1, 5, 5\), as input_shape=\(1, 5, 5\)"
    ):
        fo.TorchNetwork(cnn(), input_shape=(1, 5, 5))
    with pytest.raises(fo.InputError, match=r"input_shape: the module does not take a batch of shape \(4, 27\)"):
        fo.TorchNetwork(cnn())


def test_images_are_taken_in_their_own_shape() -> None:
    net, images = fo.TorchNetwork(cnn(), (1, 8, 8)), np.random.default_rng(0).random((3, 1, 8, 8))
    np.testing.assert_array_equal(net.logits(images), net.logits(images.reshape(3, 64)))
    np.testing.assert_array_equal(net.logits(images[0]), net.logits(images[0].reshape(64)))
    for bad in (images[:, :, :7], images[None], images[0, 0]):
        with pytest.raises(
            fo.InputError, match=r"X: expected points of shape \(64,\), or of the input_shape \(1, 8, 8\)"
        ):
            net.logits(bad)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    module = mlp().to(dtype)
    net = fo.TorchNetwork(module)
    assert net.dtype == np.float32
    assert module[0].weight.dtype == dtype
    np.testing.assert_array_equal(net.module[0].weight.detach().numpy(), module[0].weight.detach().float().numpy())
    assert net.astype("float64").logits(X).dtype == np.float64
    assert fo.closest_flip_points(net, X).success.all()


def test_a_module_that_returns_half_precision_is_read() -> None:
    net = fo.TorchNetwork(Around(lambda Y: Y.to(torch.bfloat16)))
    np.testing.assert_allclose(net.logits(X), fo.TorchNetwork(mlp()).logits(X), rtol=1e-2)


def test_a_device_is_a_string() -> None:
    module = mlp()
    assert fo.TorchNetwork(module, device="cpu").module is module
    for device in ("nowhere", "cuda:99"):
        with pytest.raises(fo.InputError, match=f"device: expected one that torch can use here.*{device!r}"):
            fo.TorchNetwork(module, device=device)


# Points


def test_tensors_are_points() -> None:
    net, expected = fo.TorchNetwork(mlp()), fo.closest_flip_point(fo.TorchNetwork(mlp()), X[0]).x
    tensor = torch.tensor(X, requires_grad=True)
    np.testing.assert_array_equal(net.logits(tensor), net.logits(X))
    np.testing.assert_array_equal(fo.closest_flip_point(net, tensor[0]).x, expected)
    half = torch.tensor(X).to(torch.bfloat16)
    np.testing.assert_array_equal(net.logits(half), net.logits(half.double().numpy()))


def test_uint8_pixels_are_numbers() -> None:
    pixels = np.array([[0, 255, 3, 7]], dtype=np.uint8)
    net = fo.TorchNetwork(mlp())
    np.testing.assert_array_equal(net.logits(pixels), net.logits(pixels.astype(float)))
    assert np.isfinite(fo.closest_flip_points(net, pixels).distance).all()


def test_inputs_outside_the_bounds_are_warned_of() -> None:
    net, x = fo.TorchNetwork(mlp()), np.array([2.0, 0.5, 0.5, -1.0])
    with pytest.warns(UserWarning, match=r"x: .* found x\[0\] = 2 outside \[0, 1\] and 1 more"):
        flip = fo.closest_flip_point(net, x, bounds=(0, 1))
    assert ((flip.x >= 0) & (flip.x <= 1)).all()
    with pytest.warns(UserWarning, match=r"found X\[1, 0\] = 2 outside \[0, 1\]"):
        fo.closest_flip_points(net, np.stack([np.full(4, 0.5), x]), bounds=(0, 1))


# Bare modules and other things


def test_a_bare_module_is_wrapped() -> None:
    module = mlp()
    np.testing.assert_array_equal(
        fo.closest_flip_points(module, X).x, fo.closest_flip_points(fo.TorchNetwork(module), X).x
    )
    assert fo.closest_flip_point(module, torch.tensor(X[0])).success
    images = np.random.default_rng(0).random((2, 1, 8, 8))
    assert as_network(cnn(), images, many=True).input_shape == (1, 8, 8)
    assert as_network(cnn(), images[0]).input_shape == (1, 8, 8)
    with pytest.raises(fo.InputError, match=r"network: .* fo.TorchNetwork\(module, input_shape=\.\.\.\)"):
        fo.closest_flip_points(cnn(), images.reshape(2, 64))


def test_a_bare_module_stays_in_its_mode_and_is_evaluated_without_dropout() -> None:
    module = torch.nn.Sequential(mlp(), torch.nn.Dropout(0.5))
    module[0].eval()
    flip = fo.closest_flip_point(module, X[0])
    assert (module.training, module[0].training, module[1].training) == (True, False, True)
    np.testing.assert_array_equal(flip.x, fo.closest_flip_point(mlp(), X[0]).x)
    wrapped = as_network(module, X, many=True)
    assert not wrapped.module.training
    assert wrapped.module[0][0].weight is module[0][0].weight
    assert as_network(module.eval(), X, many=True).module is module
    module.train().state = torch.nn.Parameter(torch.ones(1)) * 2
    with pytest.raises(fo.InputError, match=r"call module.eval\(\)"):
        fo.closest_flip_point(module, X[0])


@pytest.mark.parametrize(("thing", "found"), [("net.npz", "a path: read it with fo.load_network"), (3, "int")])
def test_what_is_no_network_is_named(thing, found: str) -> None:
    with pytest.raises(fo.InputError, match=f"network: expected a network .* found {found}"):
        fo.closest_flip_point(thing, X[0])


def test_hooks_never_see_an_empty_batch() -> None:
    def full(Y: torch.Tensor) -> torch.Tensor:
        assert len(Y)
        return Y

    net, none = fo.TorchNetwork(Around(full)), np.empty((0, 4))
    assert net.logits(none).shape == net.probabilities(none).shape == (0, 3)
    assert net.predict(none).shape == (0,)
    assert net.embedding(none).shape == (0, 8)
    assert net.jacobian(none).shape == (0, 3, 4)
    assert net.vjp(none, np.empty((0, 3))).shape == (0, 4)
    assert net.hessian_product(none, np.empty((0, 3)), none).shape == (0, 4)
    Y, pullback = net.linearize(none)
    assert Y.shape == (0, 3)
    assert pullback(Y).shape == (0, 4)
    assert fo.closest_flip_points(net, X, targets="all").success.all()


def test_a_module_without_linear_layers_has_an_embedding() -> None:
    net = fo.TorchNetwork(torch.nn.Sequential(torch.nn.Conv2d(1, 3, 3), torch.nn.Flatten()), (1, 3, 3))
    assert net.embedding(np.ones(9)).shape == (9,)


def test_a_point_that_is_not_finite_costs_no_other() -> None:
    net, points = fo.TorchNetwork(mlp()), np.array([X[0], np.full(4, np.nan)])
    Y, pullback = net.linearize_rows(points)
    np.testing.assert_allclose(Y[0], net.logits(X[0]), atol=1e-14)
    assert np.isnan(Y[1]).all()
    V = np.ones((2, 3))
    np.testing.assert_allclose(pullback(V, np.array([0, 0])), net.vjp(X[[0, 0]], V), atol=1e-14)
    assert pullback(V[:0], np.array([], dtype=int)).shape == (0, 4)


# Gradients


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, Y: torch.Tensor) -> torch.Tensor:
        return Y * 1

    @staticmethod
    def backward(ctx, G: torch.Tensor) -> torch.Tensor:
        return -G


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda Y: Y.detach(), "its logits cannot be differentiated"),
        (Wrong.apply, "expected the gradient of the logits near x"),
        (lambda Y: torch.cat([Y[:, :1], Y[:, 1:].detach()], dim=1), "does the module detach a part of its graph"),
    ],
)
def test_a_gradient_that_is_none_is_refused(function, message: str) -> None:
    net = fo.TorchNetwork(Around(function))
    with pytest.raises(fo.DerivativeError, match=message):
        fo.closest_flip_point(net, X[0])
    with pytest.raises(fo.DerivativeError, match=message):
        fo.closest_flip_points(net, X)


def test_a_module_that_fixes_its_precision_is_named() -> None:
    class Single(Around):
        def forward(self, points: torch.Tensor) -> torch.Tensor:
            return super().forward(points.float())

    net = fo.TorchNetwork(Single(lambda Y: Y, mlp().float()))
    with pytest.raises(fo.DerivativeError, match=r"in float32 but not in float64, .* by x.float\(\)\?"):
        fo.closest_flip_point(net, X[0])
    with pytest.raises(fo.DerivativeError, match=r"by x.float\(\)\?"):
        fo.closest_flip_points(net, X)


def sound(net: fo.Network, x: np.ndarray) -> bool:
    try:
        check_gradient(net, x)
    except fo.DerivativeError:
        return False
    return True


@pytest.mark.parametrize("seed", range(5))
def test_kinks_units_and_rounding_do_not_look_like_wrong_gradients(seed: int) -> None:
    torch.manual_seed(seed)
    image = np.zeros((8, 8))
    image[2:5, 3] = 1  # a background of zeros lies on the kinks of the pooling
    assert sound(fo.TorchNetwork(cnn(), (1, 8, 8)), image.reshape(-1))
    assert sound(fo.TorchNetwork(cnn(), (1, 8, 8)), np.zeros(64))
    deep = torch.nn.Sequential(*(layer for _ in range(8) for layer in (torch.nn.Linear(4, 4), torch.nn.ReLU())))
    assert sound(fo.TorchNetwork(deep.double()), X[0])
    rounds = Around(lambda Y: Y.float().double())
    assert sound(fo.TorchNetwork(rounds), X[0])
    income = Around(lambda Y: Y, mlp())
    income.inner[0].weight.data /= torch.tensor([1e5, 10.0, 1.0, 1.0], dtype=torch.float64)
    assert sound(fo.TorchNetwork(income), np.array([54321.0, 37.0, 1.0, 0.0]))


# Tables


def test_columns_are_put_in_order() -> None:
    net = fo.TorchNetwork(mlp())
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    np.testing.assert_array_equal(net.logits(table), net.logits(X))
    net.feature_names = ("a", "b", "c", "d")
    mixed = table[["d", "b", "a", "c"]].assign(label="yes")
    np.testing.assert_array_equal(net.logits(mixed), net.logits(X))
    np.testing.assert_array_equal(net.logits(mixed.drop(columns="label").iloc[0]), net.logits(X[0]))
    np.testing.assert_array_equal(fo.closest_flip_points(net, mixed).x, fo.closest_flip_points(net, X).x)
    np.testing.assert_array_equal(net.logits(table.assign(a=table.a > 0)), net.logits(np.c_[X[:, 0] > 0, X[:, 1:]]))
    with pytest.raises(fo.InputError, match="X: lacks the columns 'b', 'd'; found 'a', 'c', 'e'"):
        fo.closest_flip_points(net, table[["a", "c"]].assign(e=1.0))
    with pytest.raises(fo.InputError, match="X: expected real numbers, found something else in the columns 'c'"):
        net.logits(table.assign(c="text"))


def test_features_are_given_by_name() -> None:
    net = fo.TorchNetwork(mlp())
    net.feature_names = ("a", "b", "c", "d")
    table = pd.DataFrame(X, columns=list(net.feature_names))
    other = table[["c", "a", "d", "b"]]
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    low, high = X.min(axis=0) - weights, X.max(axis=0) + weights[::-1]
    series, lower, upper = (pd.Series(some, table.columns)[other.columns] for some in (weights, low, high))
    expected = fo.closest_flip_points(net, X, weights=weights, bounds=(low, high), frozen=[1])
    found = fo.closest_flip_points(net, other, weights=series, bounds=(lower, upper), frozen=["b"], towards=other)
    np.testing.assert_array_equal(found.x, expected.x)
    one = fo.closest_flip_point(net, X[0], integers=("c",), one_of=[["a", "b"]], bounds=(-5, 5))
    assert one.x[2] == round(one.x[2])
    assert sorted(one.x[:2]) == [0, 1]
    with pytest.raises(fo.InputError, match="frozen: expected names among 'a', 'b', 'c', 'd', found 'e'"):
        fo.closest_flip_point(net, X[0], frozen=["e"])
    with pytest.raises(fo.InputError, match="integers: expected positions, as the network has no names, found 'a'"):
        fo.closest_flip_point(fo.TorchNetwork(mlp()), X[0], integers=["a"])
