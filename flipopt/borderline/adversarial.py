"""Components I and II of DeepDIG: autoencoders trained through a frozen classifier, many at once.

Every map has its own weights, batches and target, and they share every product and every call of the classifier. The
loss is a sum over maps, so each has the gradient that it has alone, and one Adam over stacked parameters is as many
Adams. Nothing here knows what is done with a map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from flipopt.borderline.autoencoders import PADDING, Architecture
from flipopt.borderline.frozen import Logits
from flipopt.borderline.learning import Lesson, Training
from flipopt.common.checks import Array
from flipopt.runs.threads import stop_if_interrupted

ROWS = 512
"""Points that go to the classifier together: so many activations of a small convolution stay in the cache."""
SMALLEST = 1e-12
"""Least r (1 - r) that the cross entropy of a pixel is divided by, as in torch."""


def train(
    logits: Logits,
    architecture: Architecture,
    lessons: Sequence[Lesson],
    options: Training,
    tell: Callable[[int], None] = lambda steps: None,
    dtype: torch.dtype = torch.float32,
) -> list[list[Array]]:
    """The weights and biases in turn of a map for every lesson; ``tell`` hears of every step of a map."""
    with _one_thread():
        training = Trainer(logits, architecture, lessons, options, dtype)
        for step in range(options.steps):
            stop_if_interrupted()
            training.step(step)
            tell(len(lessons))
        stacked = [part.detach().numpy() for part in training.parts]
    return [[np.array(part[m].reshape(shape)) for part, shape in zip(stacked, architecture.shapes, strict=True)]
            for m in range(len(lessons))]  # fmt: skip


class Trainer:
    """The maps of several lessons in training.

    Attributes
    ----------
    parts
        Weights (maps, ...) and biases of every layer in turn.
    """

    def __init__(
        self,
        logits: Logits,
        architecture: Architecture,
        lessons: Sequence[Lesson],
        options: Training,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.logits, self.architecture, self.options = logits, architecture, options
        generators = [torch.Generator().manual_seed(lesson.seed) for lesson in lessons]
        self.parts = _initial(architecture, generators, dtype)
        self.pool, firsts = _pooled(lessons, dtype)
        self.batches = [
            batches(torch.as_tensor(first + lesson.learned), options.batch, generator)
            for lesson, first, generator in zip(lessons, firsts, generators, strict=True)
        ]
        self.targets = torch.tensor([lesson.target for lesson in lessons])
        self.alphas = torch.tensor([lesson.alpha for lesson in lessons], dtype=dtype)
        self.optimizer = torch.optim.Adam(self.parts, lr=options.learning_rate, fused=True)

    def step(self, number: int) -> None:
        """One step of every map."""
        options = self.options
        rate = options.learning_rate * options.decay ** (number // options.decay_every)
        self.optimizer.param_groups[0]["lr"] = rate
        chosen = torch.cat([next(some) for some in self.batches])
        x = self.pool.index_select(0, chosen).view(len(self.targets), options.batch, -1)
        self.optimizer.zero_grad()
        r = self.maps(x)
        r.backward(self.slope(r.detach(), x))  # type: ignore[no-untyped-call]
        self.optimizer.step()

    def maps(self, x: Tensor) -> Tensor:
        """What every map makes of its inputs x (maps, batch, n_inputs)."""
        y, last = x, len(self.architecture.layers) - 1
        if self.architecture.layers[0].kind != "linear":
            return self._convolved(x)
        for k in range(last + 1):
            W, b = self.parts[2 * k : 2 * k + 2]
            c = torch.baddbmm(b[:, None], y, W)
            y = torch.sigmoid(c) if k == last else torch.relu(c)
        return y

    def _convolved(self, x: Tensor) -> Tensor:
        """One map after the other: their convolutions are large enough for that."""
        made, layers = [], self.architecture.layers
        for m in range(len(x)):
            y = x[m].reshape(-1, *self.architecture.sides).contiguous(memory_format=torch.channels_last)
            for k, layer in enumerate(layers):
                W, b = self.parts[2 * k][m], self.parts[2 * k + 1][m]
                convolve = functional.conv2d if layer.kind == "convolution" else functional.conv_transpose2d
                c = convolve(y, W, b, padding=PADDING)
                y = torch.sigmoid(c) if k == len(layers) - 1 else torch.relu(c)
            made.append(y.reshape(x.shape[1:]))
        return torch.stack(made)

    def slope(self, r: Tensor, x: Tensor) -> Tensor:
        """The gradient of the loss, equation (1) or (2), by what the maps have made, r (maps, batch, n_inputs).

        The classifier sees a few maps at a time, and nothing of the graph of the maps.
        """
        count, batch, n = r.shape
        if self.options.loss == "literal":  # the sum over pixels of (x - r)^2, in the mean over the batch
            G = (r - x).mul_(2 / batch)
        else:  # the mean over pixels and batch of the binary cross entropy
            G = (r - x).div_((r * (1 - r)).clamp_(min=SMALLEST)).div_(batch * n)
        together = max(1, ROWS // batch)
        for first in range(0, count, together):
            some = slice(first, first + together)
            points = r[some].reshape(-1, n).requires_grad_()
            targets = self.targets[some].repeat_interleave(batch)
            missed = self._missed(self.logits(points), targets)
            loss = (self.alphas[some].repeat_interleave(batch) * missed).sum() / batch
            (gradient,) = torch.autograd.grad(loss, points)
            G[some] += gradient.view(-1, batch, n)
        return G

    def _missed(self, Y: Tensor, targets: Tensor) -> Tensor:
        """How far the logits Y (rows, classes) are from their targets, (rows,)."""
        if self.options.loss == "literal":
            return functional.cross_entropy(Y, targets, reduction="none")
        wanted = functional.one_hot(targets, Y.shape[1]).to(Y.dtype)
        return functional.binary_cross_entropy(Y.softmax(dim=1), wanted, reduction="none").mean(dim=1)


def batches(rows: Tensor, size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Batches (size,) of the rows, for ever: without repetition until fewer are left than a batch has; with repetition
    where there are fewer in all."""
    while True:
        if len(rows) < size:
            yield rows[torch.randint(len(rows), (size,), generator=generator)]
            continue
        order = rows[torch.randperm(len(rows), generator=generator)]
        yield from order[: len(rows) // size * size].split(size)  # type: ignore[no-untyped-call]


def _initial(architecture: Architecture, generators: Sequence[torch.Generator], dtype: torch.dtype) -> list[Tensor]:
    """Weights and biases, (maps, ...) each, as torch would draw them by default."""
    drawn = [
        [
            torch.empty(shape).uniform_(-layer.reach, layer.reach, generator=generator)
            for layer in architecture.layers
            for shape in (layer.shape, (layer.outputs,))
        ]
        for generator in generators
    ]
    return [torch.stack(same).to(dtype).requires_grad_() for same in zip(*drawn, strict=True)]


@dataclass(frozen=True)
class _Place:
    """Inputs of some lessons in the pool."""

    inputs: Array
    first: int


def _pooled(lessons: Sequence[Lesson], dtype: torch.dtype) -> tuple[Tensor, list[int]]:
    """The inputs of all lessons one below the other, those that several share once, and where each begins."""
    places: dict[int, _Place] = {}
    end = 0
    for lesson in lessons:
        if id(lesson.inputs) not in places:
            places[id(lesson.inputs)] = _Place(lesson.inputs, end)
            end += len(lesson.inputs)
    pool = np.concatenate([place.inputs for place in places.values()])
    return torch.as_tensor(pool, dtype=dtype), [places[id(lesson.inputs)].first for lesson in lessons]


@contextmanager
def _one_thread() -> Iterator[None]:
    """torch on one thread: the cores have other maps, and rounding does not depend on how many there are."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
