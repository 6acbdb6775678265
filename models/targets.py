"""Training until a network has a given accuracy, as Vlaar (2021) does: one run leaves a snapshot for every target.

The test set decides when to stop, as in the paper, so that its accuracy says nothing of other images. The nine recipes
are those of its appendix A. Ours, where it says nothing: the initial weights (Xavier's in the dense networks, torch's
in the others), AdamW for all (without weight decay it is Adam), Adam's step size and the batch of CNN3 and ViT3 as in
the others, shifts by up to two pixels as the "additional data augmentation", and the widths of CNN and ViT.

AdamW multiplies weights by 1 - step size * weight decay. For all recipes this is 1 in float32: mlp1 and mlp2, cnn1 and
cnn2, and the three vits are the same network, bit by bit, if they have the same seed. Give them different ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from data_prep.datasets import Dataset, Split
from flipopt.common.progress import Advance, progress_bar
from models.architectures import DenseModule
from models.checkpoints import Checkpoint
from models.export import versions
from models.image_networks import IMAGE_NETWORKS, OnRows

PAPER = "Vlaar 2021, appendix A"
MEAN, DEVIATION = 0.1307, 0.3081
"""Of the pixels of MNIST's training images, which everybody normalises with."""


@dataclass(frozen=True)
class TargetRecipe:
    """Everything that decides a run, apart from the seed, the targets and the data set."""

    name: str
    """What ``python -m models targets`` calls it."""
    architecture: str
    """mlp, boundary-cnn or boundary-vit."""
    learning_rate: float = 5e-4
    batch: int = 128
    weight_decay: float = 0.0
    shift_pixels: int = 0
    """Augmentation: every image is moved by up to so many pixels."""


TARGET_RECIPES = {
    recipe.name: recipe
    for recipe in (
        TargetRecipe("mlp1", "mlp"),
        TargetRecipe("mlp2", "mlp", weight_decay=1e-5),
        TargetRecipe("mlp3", "mlp", learning_rate=1e-3, batch=256, weight_decay=1e-5),
        TargetRecipe("cnn1", "boundary-cnn"),
        TargetRecipe("cnn2", "boundary-cnn", weight_decay=1e-5),
        TargetRecipe("cnn3", "boundary-cnn", shift_pixels=2),
        TargetRecipe("vit1", "boundary-vit"),
        TargetRecipe("vit2", "boundary-vit", weight_decay=1e-5),
        TargetRecipe("vit3", "boundary-vit", weight_decay=5e-5),
    )
}


@dataclass(frozen=True)
class Watch:
    """When the accuracy is looked at.

    An accuracy steps over a band of 0.1% within a few steps, so it is looked at the more often the nearer it is.
    """

    tolerance: float = 0.05
    """Percent that a snapshot may be from its target: the paper's."""
    every: int = 20
    """Steps between two looks."""
    dense: int = 2
    """The same near a target."""
    near: float = 0.5
    """Percent from a target that count as near."""
    subset: int = 1000
    """Test images that are looked at first; all are where these come within ``doubt`` of a target."""
    doubt: float = 1.5
    """Percent: three standard errors of an accuracy of 97.5% on a thousand images."""


@dataclass
class Outcome:
    """What a run has come to.

    Attributes
    ----------
    reached
        Accuracy and step of the snapshot of every target that was reached.
    best
        The highest accuracy on all test images that was seen.
    steps, epochs
        How long it took; epochs begun.
    """

    reached: dict[float, tuple[float, int]] = field(default_factory=dict)
    best: float = 0.0
    steps: int = 0
    epochs: int = 0

    def state_dict(self) -> dict[str, object]:
        return {"reached": self.reached, "best": self.best, "steps": self.steps, "epochs": self.epochs}

    def load_state_dict(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)


Keep = Callable[[float, nn.Module], None]
"""What is done with a snapshot: its target, and the network, which goes on to be trained."""


class Normalised(nn.Module):
    """An image network for images (batch, 1, height, width) in [0, 1], which was made for normalised ones."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.network((x - MEAN) / DEVIATION)
        return logits


def initial(recipe: TargetRecipe, shape: tuple[int, ...]) -> DenseModule | OnRows:
    """The untrained network of a recipe, a function of rows (batch, n_pixels) in [0, 1]."""
    if recipe.architecture != "mlp":
        return OnRows(Normalised(IMAGE_NETWORKS[recipe.architecture]()), shape)
    model = DenseModule((int(np.prod(shape)), 500, 500, 10), "relu")
    model.shift.fill_(MEAN)
    model.scale.fill_(DEVIATION)
    return model


def train_to_targets(
    recipe: TargetRecipe,
    dataset: Dataset,
    targets: Sequence[float],
    seed: int,
    keep: Keep,
    epochs: int = 20,
    watch: Watch | None = None,
    checkpoint: Path | None = None,
    show: bool = True,
) -> Outcome:
    """Train until every target, in percent of the test images, has a snapshot, or for so many epochs.

    With the file ``checkpoint`` an interrupted run goes on from there. ``keep`` is called for every target that is
    reached, again for one that was reached since the checkpoint was written. A target that is not in the result was not
    reached.
    """
    torch.manual_seed(seed)
    model = initial(recipe, dataset.train.images.shape[1:])
    optimiser = torch.optim.AdamW(model.parameters(), recipe.learning_rate, weight_decay=recipe.weight_decay)
    outcome = Outcome()
    done: Checkpoint[float] = Checkpoint(
        checkpoint, {"model": model, "optimiser": optimiser, "outcome": outcome}, torch.device("cpu")
    )
    eye = _Eye(dataset.test, tuple(targets), watch or Watch(), keep, outcome)
    per_epoch = len(dataset.train.labels) // recipe.batch
    with progress_bar(recipe.name, epochs * per_epoch, "steps", show, before=outcome.steps) as advance:
        for epoch in range(done.epochs, epochs):
            if not eye.left:
                break
            outcome.epochs = epoch + 1
            torch.manual_seed(seed * 100_003 + epoch)  # an epoch's chances do not depend on where it was resumed
            _epoch(model, optimiser, recipe, dataset.train, eye, done, advance)
    return outcome


def _epoch(
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    recipe: TargetRecipe,
    train: Split,
    eye: _Eye,
    done: Checkpoint[float],
    advance: Advance,
) -> None:
    """One pass over the training images, or what is left of it, or less if all targets are reached."""
    model.train()
    for rows, labels in _batches(train, recipe, done):
        loss = nn.functional.cross_entropy(model(rows), labels)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        eye.outcome.steps += 1
        advance(eye.outcome.steps)
        eye.look(model)
        if not eye.left:
            return
        done.step(float(loss.detach()))
    done.epoch()


def _batches(train: Split, recipe: TargetRecipe, done: Checkpoint[float]) -> Iterator[tuple[Tensor, Tensor]]:
    order = torch.randperm(len(train.labels))
    done.begun()
    for start in range(len(done.losses) * recipe.batch, len(order) - recipe.batch + 1, recipe.batch):
        chosen = order[start : start + recipe.batch].numpy()
        images = torch.as_tensor(train.images[chosen]).float() / 255
        if recipe.shift_pixels:
            images = shifted(images, recipe.shift_pixels)
        yield images.reshape(len(chosen), -1), torch.as_tensor(train.labels[chosen])


def shifted(images: Tensor, pixels: int) -> Tensor:
    """Every image (batch, height, width) moved by up to so many pixels up or down, left or right; black comes in."""
    batch, height, width = images.shape
    padded = nn.functional.pad(images, (pixels, pixels, pixels, pixels))
    down = torch.randint(2 * pixels + 1, (batch, 1)) + torch.arange(height)
    right = torch.randint(2 * pixels + 1, (batch, 1)) + torch.arange(width)
    return padded[torch.arange(batch)[:, None, None], down[:, :, None], right[:, None, :]]


class _Eye:
    """Looks at the accuracy from time to time, and keeps snapshots."""

    def __init__(self, test: Split, targets: tuple[float, ...], watch: Watch, keep: Keep, outcome: Outcome) -> None:
        self.rows = torch.as_tensor(test.images).reshape(len(test.labels), -1)
        self.labels = torch.as_tensor(test.labels)
        self.targets, self.watch, self.keep, self.outcome = targets, watch, keep, outcome
        self._last = 0.0

    @property
    def left(self) -> list[float]:
        """Targets without a snapshot."""
        return [target for target in self.targets if target not in self.outcome.reached]

    def look(self, model: nn.Module) -> None:
        """After a step: look if it is time to, and keep what has come to a target."""
        watch, outcome = self.watch, self.outcome
        if outcome.steps % (watch.dense if self._near(self._last, watch.near) else watch.every):
            return
        self._last = self.accuracy(model, watch.subset)
        if watch.subset < len(self.labels):
            if not self._near(self._last, watch.doubt):
                return
            self._last = self.accuracy(model, len(self.labels))
        outcome.best = max(outcome.best, self._last)
        for target in self.left:
            if abs(self._last - target) <= watch.tolerance + 1e-9:
                outcome.reached[target] = self._last, outcome.steps
                model.eval()
                self.keep(target, model)
                model.train()

    def _near(self, accuracy: float, distance: float) -> bool:
        return any(abs(accuracy - target) <= distance for target in self.left)

    def accuracy(self, model: nn.Module, count: int) -> float:
        """Percent of the first ``count`` test images."""
        model.eval()
        with torch.no_grad():
            parts = [slice(first, min(first + 1000, count)) for first in range(0, count, 1000)]
            right = sum(
                int((model(self.rows[part].float() / 255).argmax(dim=1) == self.labels[part]).sum()) for part in parts
            )
        model.train()
        return 100 * right / min(count, len(self.labels))


NOT_REACHED = "not reached"


def target_report(
    recipe: TargetRecipe, outcome: Outcome, targets: Sequence[float], seed: int, epochs: int
) -> dict[str, Any]:
    """Settings, and what became of every target, ready for JSON."""
    asked = "".join(f" --target {target:g}" for target in targets)
    reached = {
        f"{target:g}": {"accuracy": round(outcome.reached[target][0], 2), "steps": outcome.reached[target][1]}
        if target in outcome.reached
        else NOT_REACHED
        for target in targets
    }
    return {
        "command": f"python -m models targets {recipe.name} --seed {seed} --epochs {epochs}{asked}",
        "paper": PAPER,
        "seed": seed,
        "versions": versions(),
        "recipe": {key: value for key, value in asdict(recipe).items() if key != "name"},
        "targets": reached,
        "best": round(outcome.best, 2),
        "steps": outcome.steps,
        "epochs": outcome.epochs,
    }
