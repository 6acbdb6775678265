"""The growing networks of Karras, Aila, Laine and Lehtinen 2018, from 4 x 4 to 32 x 32.

Theirs are blocks of two convolutions, LeakyReLU(0.2), pixel norm, equalised learning rates, the deviation of a batch as
one more map, and the fade from each resolution to the next, of real images too. Ours: few maps, all layers there from
the start with one Adam (theirs begins anew at every resolution), and a discriminator that, once trained, scores every
image by itself, as :class:`BatchDeviation` says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, interpolate, leaky_relu

from models.gans.pair import Gan

SIDE = 32
STAGES = 4
"""Resolutions: 4, 8, 16 and 32."""
FADE = 0.5
"""Share of a stage after which the new layers are fully in; the first stage has none."""
SLOPE = 0.2
"""Of LeakyReLU for negative numbers."""
SMALL = 1e-8
"""Added to means of squares."""


def growth(done: float) -> tuple[int, float]:
    """The stage, and how far its layers are faded in, when a share ``done`` of the training is done.

    All stages take as long.
    """
    stage = min(int(done * STAGES), STAGES - 1)
    return stage, 1.0 if stage == 0 else min(1.0, (done * STAGES - stage) / FADE)


class EqualisedConv2d(nn.Conv2d):
    """A convolution whose weights, of deviation 1, are scaled when they are used: section 4.1.

    ``gain`` is what makes up for the activation that follows, He et al. 2015: 2, or 1 where there is none.
    """

    def __init__(self, n_in: int, n_out: int, kernel: int, padding: int = 0, gain: float = 2.0) -> None:
        super().__init__(n_in, n_out, kernel, padding=padding)
        nn.init.normal_(self.weight)
        assert self.bias is not None
        nn.init.zeros_(self.bias)
        self.scale = math.sqrt(gain / (n_in * kernel**2))

    def forward(self, x: Tensor) -> Tensor:
        maps: Tensor = self._conv_forward(x, self.weight * self.scale, self.bias)
        return maps


class BatchDeviation(nn.Module):
    """One more map, constant: how much a batch varies, on average over maps and places, section 3.

    Once trained it is the running average instead: an image's score does not depend on the others then. The paper does
    not say, and a discriminator that is exported must.
    """

    average: Tensor
    MOMENTUM = 0.01

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        deviation = self.average
        if self.training:
            deviation = (x.float().var(dim=0, correction=0) + SMALL).sqrt().mean()
            self.average.lerp_(deviation.detach(), self.MOMENTUM)
        return torch.cat([x, deviation.to(x.dtype).expand(x.shape[0], 1, *x.shape[2:])], dim=1)


class Growing(nn.Module):
    """A network of all stages, of which it uses those up to ``stage``, that one with weight ``alpha``."""

    def __init__(self) -> None:
        super().__init__()
        self.stage, self.alpha = STAGES - 1, 1.0


class PgganGenerator(Growing):
    """Latents (batch, latent) to images (batch, channels, side, side), 32 x 32 when it is grown.

    In evaluation mode they are cut off at -1 and 1: the last layer is linear.
    """

    def __init__(self, width: int, latent: int, channels: int) -> None:
        super().__init__()
        maps = _maps(width)
        # On one pixel with a margin of three, four by four weights are a dense layer to four by four pixels.
        self.blocks = nn.ModuleList([_Pair(latent, maps[0], maps[0], 4, 3)])
        for before, after in pairwise(maps):
            self.blocks.append(_Pair(before, after, after, 3, 1))
        self.to_image = nn.ModuleList(EqualisedConv2d(n_maps, channels, 1, gain=1) for n_maps in maps)

    def forward(self, z: Tensor) -> Tensor:
        x = before = pixel_norm(z)[:, :, None, None]
        for stage in range(self.stage + 1):
            before = x
            x = self.blocks[stage](interpolate(x, scale_factor=2) if stage else x)
        images: Tensor = self.to_image[self.stage](x)
        if self.alpha < 1:
            images = torch.lerp(interpolate(self.to_image[self.stage - 1](before), scale_factor=2), images, self.alpha)
        return images if self.training else images.clamp(-1, 1)


class PgganDiscriminator(Growing):
    """Images (batch, channels, side, side) of the stage's resolution to scores (batch, 1)."""

    def __init__(self, width: int, channels: int) -> None:
        super().__init__()
        maps = _maps(width)
        self.from_image = nn.ModuleList(EqualisedConv2d(channels, n_maps, 1) for n_maps in maps)
        self.blocks = nn.ModuleList(
            _Pair(before, before, after, 3, 1, normed=False) for after, before in pairwise(maps)
        )
        self.deviation = BatchDeviation()
        self.features = nn.ModuleList(
            [EqualisedConv2d(maps[0] + 1, maps[0], 3, 1), EqualisedConv2d(maps[0], maps[0], 4)]
        )
        self.score = EqualisedConv2d(maps[0], 1, 1, gain=1)

    def forward(self, images: Tensor) -> Tensor:
        x = leaky_relu(self.from_image[self.stage](images), SLOPE)
        for stage in reversed(range(self.stage)):
            x = avg_pool2d(self.blocks[stage](x), 2)
            if stage == self.stage - 1 and self.alpha < 1:
                x = torch.lerp(leaky_relu(self.from_image[stage](avg_pool2d(images, 2)), SLOPE), x, self.alpha)
        x = self.deviation(x)
        for layer in self.features:
            x = leaky_relu(layer(x), SLOPE)
        scores: Tensor = self.score(x)
        return scores.flatten(1)


class _Pair(nn.Module):
    """Two convolutions with LeakyReLU, and in generators pixel norm, after each."""

    def __init__(self, n_in: int, n_between: int, n_out: int, kernel: int, padding: int, normed: bool = True) -> None:
        super().__init__()
        self.first = EqualisedConv2d(n_in, n_between, kernel, padding)
        self.second = EqualisedConv2d(n_between, n_out, 3, 1)
        self.normed = normed

    def forward(self, x: Tensor) -> Tensor:
        for convolution in (self.first, self.second):
            x = leaky_relu(convolution(x), SLOPE)
            x = pixel_norm(x) if self.normed else x
        return x


def pixel_norm(x: Tensor) -> Tensor:
    """Every pixel's numbers, dimension 1 of ``x``, scaled to a mean square of 1: section 4.2."""
    return x * torch.rsqrt(x.square().mean(dim=1, keepdim=True) + SMALL)


def _maps(width: int) -> tuple[int, ...]:
    """Of the stages: as in the paper, fewer and fewer from some resolution on."""
    return width, width, width // 2, width // 4


@dataclass
class GrowingGan(Gan):
    """A pair of growing networks."""

    def at(self, done: float) -> None:
        stage, alpha = growth(done)
        for network in self.networks().values():
            for part in network.modules():
                if isinstance(part, Growing):
                    part.stage, part.alpha = stage, alpha

    def seen(self, images: Tensor) -> Tensor:
        """In the resolution of the stage, faded in from half of that as generated ones are."""
        assert isinstance(self.discriminator, Growing)
        stage, alpha = self.discriminator.stage, self.discriminator.alpha
        images = avg_pool2d(images, 2 ** (STAGES - 1 - stage))
        return images if alpha == 1 else torch.lerp(interpolate(avg_pool2d(images, 2), scale_factor=2), images, alpha)
