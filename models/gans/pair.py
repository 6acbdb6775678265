"""A generator and its discriminator, as training and export know them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel


@dataclass
class Gan:
    """Two networks that are trained together.

    Subclasses whose networks change while they are trained override :meth:`at` and :meth:`seen`.
    """

    generator: nn.Module
    discriminator: nn.Module
    average: AveragedModel | None = None
    """The generator with averaged weights."""
    losses: list[tuple[float, float]] = field(default_factory=list)
    """Means over each epoch, of the discriminator and of the generator."""

    @property
    def result(self) -> nn.Module:
        """The generator that training is for."""
        return self.generator if self.average is None else self.average.module

    def to(self, device: torch.device) -> None:
        """Move all weights, in the format in which convolutions train faster."""
        for network in self.networks().values():
            network.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]

    def at(self, done: float) -> None:
        """Set the networks to what they are when a share ``done`` of the training, from 0 to 1, is done."""

    def seen(self, images: Tensor) -> Tensor:
        """Real images (batch, channels, side, side) as the discriminator takes them now."""
        return images

    def state_dict(self) -> dict[str, Any]:
        return {"losses": self.losses, **{name: part.state_dict() for name, part in self.networks().items()}}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self.losses = list(saved["losses"])
        for name, part in self.networks().items():
            part.load_state_dict(saved[name])

    def networks(self) -> dict[str, nn.Module]:
        networks = {"generator": self.generator, "discriminator": self.discriminator}
        return networks if self.average is None else {**networks, "average": self.average}
