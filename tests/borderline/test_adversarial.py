"""Components I and II: the losses and their gradients, and that maps which are trained together are as if alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, log_softmax, softmax

import flipopt as fo
from flipopt.borderline import Architecture, Training
from flipopt.borderline.learning import Lesson
from tests.borderline.cases import convolutional, pictures
from tests.strategies import examples, networks, points, seeds

torch = pytest.importorskip("torch")

from flipopt.borderline.adversarial import Trainer, batches, train  # noqa: E402
from flipopt.borderline.frozen import frozen  # noqa: E402

NET, X, LABELS = pictures()
SHORT = Training(steps=30, batch=16)


def lesson(s: int, t: int, component: int = 1, alpha: float = 0.8, source: int = 0) -> Lesson:
    inputs = X[s == LABELS]
    return Lesson.split((s, t), component, alpha, source, inputs, np.ones(len(inputs), dtype=bool), 0.8)


def the_loss(kind: str, parts: list[np.ndarray], x: np.ndarray, target: int, alpha: float) -> float:
    """As the paper has it, or the authors' code, of one batch."""
    W1, b1, W2, b2, W3, b3 = parts
    r = expit(np.maximum(np.maximum(x @ W1 + b1, 0) @ W2 + b2, 0) @ W3 + b3)
    Y = NET.logits(r)
    if kind == "literal":
        return float((((x - r) ** 2).sum(axis=1) - alpha * log_softmax(Y, axis=1)[:, target]).mean())
    z, wanted = softmax(Y, axis=1), np.eye(3)[target]

    def bce(p: np.ndarray, goal: np.ndarray) -> float:
        return float(-(goal * np.log(p) + (1 - goal) * np.log(1 - p)).mean())

    return bce(r, x) + alpha * bce(z, wanted)


@pytest.mark.parametrize("kind", ["literal", "authors"])
def test_the_gradient_is_that_of_the_loss(kind: str) -> None:
    lessons = [lesson(0, 1), lesson(2, 1, 2, alpha=3.0)]
    logits, architecture = frozen(NET, torch.float64), Architecture.of(NET)
    trainer = Trainer(logits, architecture, lessons, Training(loss=kind, batch=8), torch.float64)
    x = torch.stack([torch.tensor(one.inputs[:8], dtype=torch.float64) for one in lessons])
    r = trainer.maps(x)
    r.backward(trainer.slope(r.detach(), x))
    rng = np.random.default_rng(0)
    for m, one in enumerate(lessons):
        parts = [part[m].detach().numpy().reshape(shape) for part, shape in zip(trainer.parts, architecture.shapes)]
        D = [rng.standard_normal(part.shape) for part in parts]
        values = [
            the_loss(kind, [p + h * d for p, d in zip(parts, D)], x[m].numpy(), one.target, one.alpha)
            for h in (1e-6, -1e-6)
        ]
        slope = sum(float((part.grad[m].numpy().reshape(d.shape) * d).sum()) for part, d in zip(trainer.parts, D))
        assert slope == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-5)


@given(networks(), seeds)
@examples(20)
def test_a_frozen_dense_network_is_the_network(net: fo.DenseNetwork, seed: int) -> None:
    P = points(net, 5, seed)
    Q = torch.tensor(P, requires_grad=True)
    Y = frozen(net, torch.float64)(Q)
    np.testing.assert_allclose(Y.detach().numpy(), net.logits(P), rtol=1e-9, atol=1e-9)
    V = np.random.default_rng(seed).standard_normal(Y.shape)
    (gradient,) = torch.autograd.grad(Y, Q, torch.tensor(V))
    np.testing.assert_allclose(gradient.numpy(), net.vjp(P, V), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("sides", [(1, 7, 8), (3, 6, 6)])
def test_a_frozen_module_is_the_network_and_leaves_it_alone(sides: tuple[int, int, int]) -> None:
    net = convolutional(sides)
    P = np.random.default_rng(1).random((6, net.n_inputs))
    Q = torch.tensor(P, dtype=torch.float64, requires_grad=True)
    Y = frozen(net, torch.float64)(Q)
    exact = net.astype(np.float64)
    np.testing.assert_allclose(Y.detach().numpy(), exact.logits(P), atol=1e-12)
    V = np.random.default_rng(2).standard_normal(Y.shape)
    (gradient,) = torch.autograd.grad(Y, Q, torch.tensor(V))
    np.testing.assert_allclose(gradient.numpy(), exact.vjp(P, V), atol=1e-12)
    assert all(parameter.requires_grad for parameter in net.module.parameters())


def test_softened_activations_have_a_form_in_torch() -> None:
    soft = NET.softened(0.1, 1.0)
    Y = frozen(soft, torch.float64)(torch.tensor(X, dtype=torch.float64))
    np.testing.assert_allclose(Y.numpy(), soft.logits(X.astype(np.float64)), atol=1e-9)


def test_a_map_does_not_depend_on_those_beside_it() -> None:
    lessons = [lesson(0, 1), lesson(1, 0), lesson(0, 2, alpha=5.0), lesson(2, 1, source=4), lesson(2, 1, 2)]
    logits, architecture = frozen(NET), Architecture.of(NET)
    together = train(logits, architecture, lessons, SHORT)
    for one, parts in zip(lessons, together):
        (alone,) = train(logits, architecture, [one], SHORT)
        for here, there in zip(parts, alone):
            np.testing.assert_allclose(here, there, atol=1e-3)
    again = train(logits, architecture, lessons, SHORT)
    for one, other in zip(together, again):
        for here, there in zip(one, other):
            np.testing.assert_array_equal(here, there)
    assert not np.allclose(together[0][0], together[2][0])


def test_colour_images_have_convolutional_maps() -> None:
    net, rng = convolutional((3, 6, 6)), np.random.default_rng(0)
    inputs = rng.random((12, net.n_inputs), dtype=np.float32)
    lessons = [Lesson.split((0, t), 1, 1.0, 0, inputs, np.ones(12, dtype=bool), 0.8) for t in (1, 2)]
    few, told = Training(steps=3, batch=4), []
    maps = train(frozen(net), Architecture.of(net), lessons, few, told.append)
    (alone,) = train(frozen(net), Architecture.of(net), lessons[1:], few)
    for here, there in zip(maps[1], alone):
        np.testing.assert_allclose(here, there, atol=1e-4)
    assert told == [2, 2, 2]


@given(st.integers(1, 40), st.integers(1, 12), seeds)
@examples(20)
def test_batches_repeat_nothing_before_they_must(count: int, size: int, seed: int) -> None:
    rows = 100 + torch.arange(count)
    draws = [batches(rows, size, torch.Generator().manual_seed(seed)) for _ in range(2)]
    found = [next(draws[0]) for _ in range(6)]
    for batch in found:
        assert batch.tolist() == next(draws[1]).tolist()
        assert len(batch) == size
        assert set(batch.tolist()) <= set(rows.tolist())
    if count >= size:
        whole = torch.cat(found[: count // size]).tolist()
        assert len(set(whole)) == len(whole)


def test_the_rate_falls_and_a_step_can_be_the_last() -> None:
    options = Training(steps=9, batch=4, decay=0.5, decay_every=4)
    trainer = Trainer(frozen(NET), Architecture.of(NET), [lesson(0, 1)], options)
    rates = []
    for step in range(9):
        trainer.step(step)
        rates.append(trainer.optimizer.param_groups[0]["lr"])
    assert rates == [0.01] * 4 + [0.005] * 4 + [0.0025]
    steps = []

    def stop(count: int) -> None:
        steps.append(count)
        if len(steps) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(frozen(NET), Architecture.of(NET), [lesson(0, 1)], SHORT, stop)
    assert len(steps) == 3


def test_lessons_are_split_by_their_seed() -> None:
    one, same, other = lesson(0, 1), lesson(0, 1), lesson(0, 1, source=1)
    assert one.learned.tolist() == same.learned.tolist() != other.learned.tolist()
    assert sorted([*one.learned, *one.held]) == list(range(50))
    assert (len(one.learned), one.target, lesson(0, 1, 2).target) == (40, 1, 0)
    assert len({one.seed, other.seed, lesson(0, 1, 2).seed, lesson(1, 0).seed, lesson(0, 2).seed}) == 5
    assert one.variance == pytest.approx(X[LABELS == 0].var(axis=0).sum(), rel=1e-5)
