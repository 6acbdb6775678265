"""Training a recipe: batches, the two players' steps, a picture after every epoch, checkpoints to resume from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from data_prep.datasets import Dataset, load_dataset
from flipopt.common.errors import InputError
from models.checkpoints import Checkpoint
from models.gans import dcgan, pggan
from models.gans.losses import discriminator_loss, generator_loss
from models.gans.pair import Gan
from models.gans.recipes import GanRecipe
from models.gans.samples import fixed_latents, write_samples

Losses = tuple[float, float]
"""Of the discriminator and of the generator."""


def prepare(recipe: GanRecipe, dataset: Dataset | None = None) -> Tensor:
    """The training images (n, channels, side, side) as uint8; ``dataset`` stands in for the recipe's.

    For growing networks black margins make images of 28 x 28 as large as theirs.
    """
    dataset = load_dataset(recipe.dataset) if dataset is None else dataset
    images = torch.tensor(dataset.train.images)  # the arrays of files cannot be written to
    images = images[:, None] if images.ndim == 3 else images.movedim(3, 1)
    growing = recipe.kind == "pggan"
    if growing and images.shape[1:] == (1, dcgan.SIDE, dcgan.SIDE):
        images = nn.functional.pad(images, [(pggan.SIDE - dcgan.SIDE) // 2] * 4)
    expected = (images.shape[1] if growing else 1, *2 * [pggan.SIDE if growing else dcgan.SIDE])
    if images.shape[1:] != expected:
        raise InputError(f"dataset: expected images {expected} for {recipe.kind}, found {tuple(images.shape[1:])}")
    return images


def build(recipe: GanRecipe, channels: int = 1) -> Gan:
    """The untrained pair."""
    if recipe.kind == "pggan":
        gan: Gan = pggan.GrowingGan(
            pggan.PgganGenerator(recipe.width, recipe.latent, channels),
            pggan.PgganDiscriminator(recipe.width, channels),
        )
    else:
        gan = Gan(
            dcgan.DcganGenerator(recipe.width, recipe.latent),
            dcgan.DcganDiscriminator(recipe.width, batch_norm=recipe.kind == "dcgan"),
        )
    if recipe.average is not None:
        decayed = get_ema_multi_avg_fn(recipe.average)  # type: ignore[no-untyped-call]
        gan.average = AveragedModel(gan.generator, multi_avg_fn=decayed)
    return gan


def train(
    recipe: GanRecipe,
    images: Tensor,
    seed: int,
    device: str,
    checkpoint: Path | None = None,
    picture: Path | None = None,
    show: bool = True,
) -> Gan:
    """Train ``recipe`` on uint8 ``images`` (n, channels, side, side).

    With the file ``checkpoint``, an interrupted run goes on from there. To ``picture`` (.png) goes what the generator
    makes of the same latents after every epoch. ``show`` is whether there is a progress bar.
    """
    torch.manual_seed(seed)
    where = torch.device(device)
    game = _Game(recipe, where, channels=images.shape[1])
    done = Checkpoint[Losses](checkpoint, game.parts(), where)
    images, latents = images.to(where), fixed_latents(seed, recipe.latent).to(where)
    with _progress(show) as progress:
        steps = recipe.epochs * game.steps(images)
        bar = progress.add_task(recipe.name, total=steps, completed=done.epochs * game.steps(images))
        for epoch in range(done.epochs, recipe.epochs):
            torch.manual_seed(seed * 100_003 + epoch)  # an epoch's randomness does not depend on where it was resumed
            for losses in _epoch(game, images, done):
                words = f"{recipe.name}  discriminator {losses[0]:.3f}  generator {losses[1]:.3f}"
                progress.update(bar, description=words, completed=epoch * game.steps(images) + len(done.losses))
            if picture is not None:
                write_samples(game.gan.result, latents, picture)
            done.epoch()
    game.gan.at(1.0)
    return game.gan


def _progress(show: bool) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, disable=not show)


class _Game:
    """Two networks and what changes them."""

    def __init__(self, recipe: GanRecipe, device: torch.device, channels: int = 1) -> None:
        self.recipe, self.device = recipe, device
        self.gan = build(recipe, channels)
        self.gan.to(device)
        self.generating = self._adam(self.gan.generator, recipe.generator_rate)
        self.discriminating = self._adam(self.gan.discriminator, recipe.discriminator_rate)

    def _adam(self, network: nn.Module, rate: float) -> torch.optim.Optimizer:
        return torch.optim.Adam(network.parameters(), lr=rate, betas=self.recipe.betas, fused=True)

    def parts(self) -> dict[str, Any]:
        """Everything with a state."""
        return {"networks": self.gan, "generating": self.generating, "discriminating": self.discriminating}

    @property
    def images(self) -> int:
        """Real ones of one step."""
        return self.recipe.batch * self.recipe.critic_steps

    def steps(self, images: Tensor) -> int:
        """Of one epoch."""
        return len(images) // self.images

    def step(self, images: Tensor) -> Losses:
        """The discriminator learns from batches of uint8 ``images``, the generator from its scores of the last fakes.

        Both losses are those before the last change of their network.
        """
        for start in range(0, len(images), self.recipe.batch):
            real = self.gan.seen(images[start : start + self.recipe.batch].float() / 127.5 - 1)
            with self._products():
                made: Tensor = self.gan.generator(torch.randn(len(real), self.recipe.latent, device=self.device))
            loss = self._discriminate(real, made.float().detach())
        return loss, self._generate(made)

    def _discriminate(self, real: Tensor, made: Tensor) -> float:
        with self._products():
            loss = discriminator_loss(self.recipe, self.gan.discriminator, real, made)
        return _descend(self.discriminating, loss)

    def _generate(self, made: Tensor) -> float:
        discriminator = self.gan.discriminator.requires_grad_(False)  # saves the derivatives by its weights
        with self._products():
            loss = generator_loss(self.recipe, discriminator(made))
        value = _descend(self.generating, loss)
        discriminator.requires_grad_(True)
        if self.gan.average is not None:
            self.gan.average.update_parameters(self.gan.generator)
        return value

    def _products(self) -> torch.autocast:
        """In what precision they are; not for longer than weights stay the same, for they are rounded once."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.recipe.precision == "bfloat16")


def _descend(optimiser: torch.optim.Optimizer, loss: Tensor) -> float:
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    return float(loss.detach())


def _epoch(game: _Game, images: Tensor, done: Checkpoint[Losses]) -> Iterator[Losses]:
    """One pass over the training set, or what is left of it; the losses of every step."""
    order = torch.randperm(len(images), device=images.device)
    steps = game.steps(images)
    done.begun()
    for step in range(len(done.losses), steps):
        game.gan.at((done.epochs + step / steps) / game.recipe.epochs)
        losses = game.step(images[order[step * game.images : (step + 1) * game.images]])
        done.step(losses)
        yield losses
    discriminator, generator = np.mean(done.losses, axis=0)
    game.gan.losses.append((float(discriminator), float(generator)))
