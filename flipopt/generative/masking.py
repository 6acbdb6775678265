"""What masks of a layer's activations do to the image, and how that changes with them: for BerOpt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from flipopt.common.checks import Array, optional_package
from flipopt.generative.exact import torch_part
from flipopt.generative.generator import Generator
from flipopt.runs.threads import SMALLEST_TASK

Estimator = Callable[[Array, np.random.Generator], tuple[Array, float]]
"""From the logits of theta to the gradient of the expected squared error by them, both (active,), and the error."""
FARTHEST = 10.0
"""What an image without numbers counts as in a mean, in units of the query's."""


class Masking:
    """The image x0 of a query, and images of masked activations of a layer: lines 2, 5 and 6 of Algorithm 1.

    Masks are of the ``active`` units alone, those whose activation is not 0 at the query: others change nothing.
    """

    def __init__(self, generator: Generator, z0: Array, number: int) -> None:
        self.generator, self.layer = generator, generator.layer(number)
        self.activations = generator.activate(generator.forward(z0, to=number), number).astype(np.float64)
        self.active = np.flatnonzero(self.activations)
        self.image = self._images(self.activations[None])[0]
        self.size = float(np.linalg.norm(self.image))
        self.evaluations = 0

    def errors(self, masks: Array) -> Array:
        """|x_m - x_0|^2 of masks (rows, active), (rows,); infinite without an image, as after a division by 0."""
        H = np.zeros((len(masks), self.layer.units))
        H[:, self.active] = masks * self.activations[self.active]
        self.evaluations += len(masks)
        errors = ((self._images(H) - self.image) ** 2).sum(axis=1)
        return np.asarray(np.where(np.isfinite(errors), errors, np.inf))

    def relative(self, masks: Array) -> Array:
        """|x_m - x_0| / |x_0| of masks (rows, active), (rows,)."""
        return np.sqrt(self.errors(masks)) / max(self.size, np.finfo(float).tiny)

    def _images(self, H: Array) -> Array:
        images = self.generator.decode(H, frm=self.layer.number, activated=True)
        return images.reshape(len(H), int(np.prod(images.shape[1:]))).astype(np.float64)


def concrete(masking: Masking, samples: int, temperature: float) -> Estimator:
    """By the Concrete relaxation of Bernoulli masks (Maddison, Mnih and Teh, ICLR 2017), differentiated by torch.

    m = sigmoid((a + log u - log(1 - u)) / temperature) with uniform u has a derivative by the logits a.
    """
    optional_package("torch", "torch", "the Concrete relaxation")
    slopes = _slopes(masking)

    def estimate(a: Array, rng: np.random.Generator) -> tuple[Array, float]:
        u = rng.uniform(1e-12, 1 - 1e-12, (samples, len(a)))
        m = sigmoid((a + np.log(u) - np.log1p(-u)) / temperature)
        errors, by_mask = slopes(m)
        errors = np.minimum(np.nan_to_num(errors, nan=np.inf), (FARTHEST * masking.size) ** 2)
        by_mask = np.where(np.isfinite(by_mask), by_mask, 0.0)  # masks without an image have no say
        return (by_mask * m * (1 - m) / temperature).mean(axis=0), float(errors.mean())

    return estimate


def score(masking: Masking, samples: int) -> Estimator:
    """By the score function (Williams, Machine Learning 8, 1992) with the mean of the other samples as the baseline:
    forward passes alone, so that torch is not needed."""

    def estimate(a: Array, rng: np.random.Generator) -> tuple[Array, float]:
        theta = sigmoid(a)
        m = (rng.random((samples, len(a))) < theta).astype(np.float64)
        errors = np.minimum(masking.errors(m), (FARTHEST * masking.size) ** 2)
        ahead = errors - (errors.sum() - errors) / (samples - 1)
        return (ahead[:, None] * (m - theta)).mean(axis=0), float(errors.mean())

    return estimate


def _slopes(masking: Masking) -> Callable[[Array], tuple[Array, Array]]:
    """From masks (rows, active) to the errors (rows,) and their derivatives by the masks (rows, active)."""
    import torch

    layer, generator = masking.layer, masking.generator
    model = generator.part(layer.activated, layer.shape, generator.output_name)
    module, work = torch_part(generator.path, model, generator.output_name)
    module.requires_grad_(False)
    kind = next((value.dtype for value in module.buffers() if value.is_floating_point()), torch.float32)
    active = torch.from_numpy(masking.active)
    h = torch.as_tensor(masking.activations[masking.active], dtype=kind)
    x0 = torch.as_tensor(masking.image, dtype=kind)

    def slopes(masks: Array) -> tuple[Array, Array]:
        m = torch.as_tensor(masks, dtype=kind).requires_grad_()
        with torch.enable_grad(), _threads(3 * work * len(masks)):
            H = torch.zeros((len(masks), layer.units), dtype=kind).index_copy(1, active, h * m)
            images = module.evaluate(H.reshape(-1, *layer.shape), generator.output_name)
            errors = (images.reshape(len(masks), -1) - x0).square().sum(dim=1)
            (by_mask,) = torch.autograd.grad(errors.sum(), m)
        masking.evaluations += len(masks)
        return errors.detach().double().numpy(), by_mask.double().numpy()

    return slopes


@contextmanager
def _threads(operations: float) -> Iterator[None]:
    """One thread of torch for a call that is not worth two: they would take longer to meet than to compute."""
    import torch

    before = torch.get_num_threads()
    few = operations < SMALLEST_TASK * before
    try:
        torch.set_num_threads(1 if few else before)
        yield
    finally:
        torch.set_num_threads(before)


def sigmoid(a: Array) -> Array:
    """1 / (1 + exp(-a)), without overflow."""
    return np.asarray(0.5 * (1 + np.tanh(a / 2)))
