"""What a generator makes of fixed latents, as one picture."""

from __future__ import annotations

from pathlib import Path

import torch
from PIL import Image  # which matplotlib needs and brings
from torch import Tensor, nn

from flipopt.common.writing import atomic_path

ROWS = 10
"""And columns."""


def fixed_latents(seed: int, latent: int) -> Tensor:
    """The same latents (ROWS^2, latent) for a seed whenever they are drawn, without touching training's numbers."""
    return torch.randn(ROWS**2, latent, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def write_samples(generator: nn.Module, latents: Tensor, path: Path) -> None:
    """Write a square of images as .png; ``generator`` ends in the mode, training or not, in which it came."""
    training = generator.training
    images = generator.eval()(latents).float().cpu()
    generator.train(training)
    pixels = ((images + 1) * 127.5).round().clamp(0, 255).byte()
    channels, height, width = pixels.shape[1:]
    square = pixels.reshape(ROWS, ROWS, channels, height, width).permute(0, 3, 1, 4, 2)
    picture = square.reshape(ROWS * height, ROWS * width, channels).squeeze(2).numpy()
    with atomic_path(path) as temporary:
        Image.fromarray(picture).save(temporary, format="png")
