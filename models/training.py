"""Training a recipe: features, batches with augmentation, Adam and its schedule, checkpoints to resume from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn

from data_prep.datasets import Dataset, Split, load_dataset, mirrored
from data_prep.readers import Bytes
from flipopt.common.checks import Array
from flipopt.features.wavelets import WaveletFeatures
from models.architectures import DenseModule
from models.checkpoints import Checkpoint
from models.image_networks import IMAGE_NETWORKS, OnRows
from models.recipes import Recipe


@dataclass(frozen=True)
class TrainingData:
    """What a recipe trains on and reports on."""

    dataset: Dataset
    features: WaveletFeatures | None
    """None: the network takes the pixels."""
    train: Split
    reports: dict[str, Split]
    extra: tuple[Array, Array] | None = None
    """Further inputs (points, n_inputs) of the network and their labels (points,)."""
    changes: dict[str, Any] = field(default_factory=dict)
    """What of this is not the recipe's, for the report."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one image."""
        return self.train.images.shape[1:]

    @property
    def n_inputs(self) -> int:
        """Numbers that the network takes."""
        return int(np.prod(self.shape)) if self.features is None else self.features.n_features

    def inputs(self, images: Bytes) -> Array:
        """Rows (batch, n_inputs) of uint8 images (batch, \\*shape): their features, or their pixels in [0, 1]."""
        return images.reshape(len(images), -1) / 255 if self.features is None else self.features.transform(images)


def prepare(recipe: Recipe, dataset: Dataset | None = None) -> TrainingData:
    """Load the data set, choose the features, and split as the recipe says; ``dataset`` stands in for the whole one."""
    if dataset is None:
        dataset = load_dataset(recipe.dataset)
        dataset = dataset.only(recipe.classes) if recipe.classes else dataset
    if recipe.validation:
        return _with_validation(recipe, dataset)
    features = _choose_features(recipe, dataset.train)
    if recipe.half is None:
        return TrainingData(dataset, features, dataset.train, {"train": dataset.train, "test": dataset.test})
    middle = len(dataset.train.labels) // 2
    halves = [
        Split(dataset.train.images[part], dataset.train.labels[part]) for part in (slice(middle), slice(middle, None))
    ]
    reports = {"first half": halves[0], "second half": halves[1], "test": dataset.test}
    return TrainingData(dataset, features, halves[recipe.half], reports)


def _with_validation(recipe: Recipe, dataset: Dataset) -> TrainingData:
    """The last of the training set kept apart; of the test set nothing is reported."""
    middle = round((1 - recipe.validation) * len(dataset.train.labels))
    used, kept = (
        Split(dataset.train.images[part], dataset.train.labels[part]) for part in (slice(middle), slice(middle, None))
    )
    return TrainingData(dataset, _choose_features(recipe, used), used, {"train": used, "validation": kept})


def _choose_features(recipe: Recipe, train: Split) -> WaveletFeatures | None:
    if recipe.features is None:
        return None
    images = (mirrored(train) if recipe.mirror else train).images
    return WaveletFeatures.fit(
        images, recipe.features, level=recipe.wavelet_level, dimensions=recipe.wavelet_dimensions
    )


class Batches:
    """Input rows of training images, moved and mirrored at random where the recipe says so.

    The features are linear in the pixels, so those of an augmented batch are one product with the analysis matrix.
    """

    def __init__(self, data: TrainingData, shift_pixels: int, device: torch.device) -> None:
        self.labels = torch.as_tensor(data.train.labels, device=device)
        self.shift = shift_pixels
        self.extra = torch.empty((0, data.n_inputs), device=device)
        if data.extra is not None:
            X, labels = (torch.as_tensor(part, device=device) for part in data.extra)
            self.extra, self.labels = X.float(), torch.cat([self.labels, labels])
        if shift_pixels == 0:
            rows = torch.as_tensor(data.inputs(data.train.images), dtype=torch.float32, device=device)
            self.rows = torch.cat([rows, self.extra])
            return
        self.analysis = None if data.features is None else self._analysis(data, device)
        margins = [(0, 0), (shift_pixels, shift_pixels), (shift_pixels, shift_pixels), (0, 0)]
        padded = np.pad(data.train.images, margins[: data.train.images.ndim], mode="edge")
        self.padded = torch.as_tensor(padded, device=device)
        self.size = data.shape[:2]

    @staticmethod
    def _analysis(data: TrainingData, device: torch.device) -> Tensor:
        n_pixels = int(np.prod(data.shape))
        lit = np.diag(np.full(n_pixels, 255, dtype=np.uint8))  # row k: the image whose only pixel is k
        analysis = data.inputs(lit.reshape(n_pixels, *data.shape))
        return torch.as_tensor(analysis, dtype=torch.float32, device=device)

    def __call__(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs (batch, n_inputs) and labels (batch,) of the given rows; further points stay as they are."""
        labels, images = self.labels[rows], len(self.labels) - len(self.extra)
        if self.shift == 0:
            return self.rows[rows], labels
        inputs, further = self._moved(rows.clamp(max=images - 1)), rows >= images
        inputs[further] = self.extra[rows[further] - images]
        return inputs, labels

    def _moved(self, rows: Tensor) -> Tensor:
        batch, device, (height, width) = len(rows), rows.device, self.size
        down = torch.randint(2 * self.shift + 1, (batch, 1), device=device) + torch.arange(height, device=device)
        right = torch.randint(2 * self.shift + 1, (batch, 1), device=device) + torch.arange(width, device=device)
        mirror = torch.rand(batch, 1, device=device) < 0.5
        right = torch.where(mirror, right.flip(1), right)
        pixels = self.padded[rows[:, None, None], down[:, :, None], right[:, None, :]]
        inputs = pixels.reshape(batch, -1).float() / 255
        return inputs if self.analysis is None else inputs @ self.analysis


def train(
    recipe: Recipe, data: TrainingData, seed: int, device: str, checkpoint: Path | None = None, show: bool = True
) -> nn.Module:
    """Train ``recipe``; with the file ``checkpoint``, an interrupted run goes on from there.

    ``show`` is whether there is a progress bar.
    """
    torch.manual_seed(seed)
    where = torch.device(device)
    batches = Batches(data, recipe.shift_pixels, where)
    model = _initial(recipe, data).to(where)
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
    )
    schedule = _schedule(recipe, optimiser, recipe.epochs * (len(batches.labels) // recipe.batch))
    learner = _Learner(model, optimiser, schedule, recipe.precision)
    done: Checkpoint[float] = Checkpoint(
        checkpoint, {"model": model, "optimiser": optimiser, "schedule": schedule}, where
    )
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, disable=not show) as progress:
        task = progress.add_task(recipe.name, total=recipe.epochs, completed=done.epochs)
        for epoch in range(done.epochs, recipe.epochs):
            torch.manual_seed(seed * 100_003 + epoch)  # an epoch's randomness does not depend on where it was resumed
            loss = _epoch(learner, batches, recipe.batch, done)
            progress.update(task, advance=1, description=f"{recipe.name}  loss {loss:.4f}")
    return model.eval()


def _initial(recipe: Recipe, data: TrainingData) -> nn.Module:
    """The untrained network; it takes rows (batch, n_inputs)."""
    if recipe.architecture is not None:
        return OnRows(IMAGE_NETWORKS[recipe.architecture](), data.shape)
    widths = (data.n_inputs, *recipe.hidden, len(data.dataset.classes))
    model = DenseModule(widths, recipe.activation, recipe.dropout)
    _standardise(model, recipe, data)
    return model


def _schedule(recipe: Recipe, optimiser: torch.optim.Optimizer, steps: int) -> torch.optim.lr_scheduler.LRScheduler:
    if recipe.decay is None:
        return torch.optim.lr_scheduler.OneCycleLR(optimiser, recipe.learning_rate, total_steps=steps)
    return torch.optim.lr_scheduler.StepLR(optimiser, step_size=100, gamma=recipe.decay)


@dataclass
class _Learner:
    """A network and what changes it."""

    model: nn.Module
    optimiser: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler
    precision: str

    def step(self, x: Tensor, labels: Tensor) -> float:
        """One step on inputs (batch, n_inputs); the loss before it."""
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.precision == "bfloat16"):
            logits = self.model(x)
        loss = nn.functional.cross_entropy(logits.float(), labels)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        self.schedule.step()
        return float(loss.detach())


def _epoch(learner: _Learner, batches: Batches, size: int, done: Checkpoint[float]) -> float:
    """One pass over the training set, or what is left of it; the mean loss."""
    learner.model.train()
    order = torch.randperm(len(batches.labels), device=batches.labels.device)
    done.begun()
    for start in range(len(done.losses) * size, len(order) - size + 1, size):
        done.step(learner.step(*batches(order[start : start + size])))
    loss = float(np.mean(done.losses))
    done.epoch()
    return loss


def _standardise(model: DenseModule, recipe: Recipe, data: TrainingData) -> None:
    if recipe.standardise == "none":
        return
    rows = torch.as_tensor(data.inputs(data.train.images), dtype=torch.float32)
    model.shift.copy_(rows.mean(dim=0))
    model.scale.copy_(rows.std(dim=0) if recipe.standardise == "each" else rows.std())
