"""Image classifiers as torch modules, small ones of the kinds in everyday use and those of DeepDIG (Karimi, Derr and
Tang 2019): images (batch, channels, height, width) in [0, 1] to logits (batch, 10)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn


def mnist_cnn() -> nn.Module:
    """Two times convolution, batch norm, ReLU and max-pooling, then two dense layers."""
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 7 * 7, 64), nn.ReLU(), nn.Linear(64, 10)),
    )


class ResidualBlock(nn.Module):
    """Two convolutions with batch norm beside a shortcut: He et al. 2016, figure 2."""

    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(*_normed(n_in, n_out, 3, stride), nn.ReLU(), *_normed(n_out, n_out, 3, 1))
        same = n_in == n_out and stride == 1
        self.shortcut = nn.Identity() if same else nn.Sequential(*_normed(n_in, n_out, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.path(x) + self.shortcut(x))


def cifar_resnet8() -> nn.Module:
    """The smallest of the residual networks for CIFAR-10: He et al. 2016, section 4.2, with one block a stage."""
    blocks = (ResidualBlock(16, 16, 1), ResidualBlock(16, 32, 2), ResidualBlock(32, 64, 2))
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return nn.Sequential(*_normed(3, 16, 3, 1), nn.ReLU(), *blocks, *head)


def _normed(n_in: int, n_out: int, side: int, stride: int) -> tuple[nn.Module, nn.Module]:
    return nn.Conv2d(n_in, n_out, side, stride, padding=side // 2, bias=False), nn.BatchNorm2d(n_out)


def deepdig_cnn() -> nn.Module:
    """The CNN of Karimi, Derr and Tang 2019, Table 1, with its 14,070 parameters: 50 neurons on 10 maps of 5 x 5."""
    return nn.Sequential(
        *(nn.Conv2d(1, 10, 3), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Conv2d(10, 10, 3), nn.MaxPool2d(2), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(250, 50), nn.ReLU(), nn.Linear(50, 10)),
    )


RESNET34 = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Channels and blocks of the stages: He et al. 2016, table 1."""


def cifar_resnet34() -> nn.Module:
    """ResNet-34 for images of 32 x 32: a first convolution of 3 x 3 without stride, and no pooling before the last."""
    blocks, channels = [], RESNET34[0][0]
    for stage, (width, count) in enumerate(RESNET34):
        for block in range(count):
            blocks.append(ResidualBlock(channels, width, stride=2 if stage and not block else 1))
            channels = width
    stem = (*_normed(3, RESNET34[0][0], 3, 1), nn.ReLU())
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


class Inception(nn.Module):
    """Four branches side by side, of 1 x 1, 3 x 3 and 5 x 5 and of pooling: Szegedy et al. 2015, figure 2 (b).

    ``widths`` are a row of their table 1: #1x1, #3x3 reduce, #3x3, #5x5 reduce, #5x5, pool proj. The 5 x 5 is done by
    two times 3 x 3, as in Szegedy et al. 2016, figure 5.
    """

    def __init__(self, n_in: int, widths: Sequence[int]) -> None:
        super().__init__()
        one, before_three, three, before_five, five, pooled = widths
        self.branches = nn.ModuleList(
            nn.Sequential(*layers)
            for layers in (
                _convolved(n_in, one, 1),
                (*_convolved(n_in, before_three, 1), *_convolved(before_three, three, 3)),
                (*_convolved(n_in, before_five, 1), *_convolved(before_five, five, 3), *_convolved(five, five, 3)),
                (nn.MaxPool2d(3, stride=1, padding=1), *_convolved(n_in, pooled, 1)),
            )
        )
        self.n_out = one + three + five + pooled

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], dim=1)


def _convolved(n_in: int, n_out: int, side: int) -> tuple[nn.Module, ...]:
    """A convolution with a bias, as the number of parameters in DeepDIG says, batch norm and ReLU."""
    return nn.Conv2d(n_in, n_out, side, padding=side // 2), nn.BatchNorm2d(n_out), nn.ReLU()


GOOGLENET = (
    ((64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64)),
    (
        *((192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64)),
        *((112, 144, 288, 32, 64, 64), (256, 160, 320, 32, 128, 128)),
    ),
    ((256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128)),
)
"""Inception modules of stages 3, 4 and 5: Szegedy et al. 2015, table 1."""


def cifar_googlenet() -> nn.Module:
    """GoogLeNet for images of 32 x 32: one convolution of 3 x 3 before the inception modules, one classifier."""
    channels = 192
    layers = [*_convolved(3, channels, 3)]
    for stage, rows in enumerate(GOOGLENET):
        if stage:
            layers.append(nn.MaxPool2d(3, stride=2, padding=1))
        for widths in rows:
            layers.append(module := Inception(channels, widths))
            channels = module.n_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


class Attention(nn.Module):
    """Softmax attention among all tokens (batch, tokens, dim), with several heads."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.queries_keys_values, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        tokens, dim = x.shape[1:]
        split = self.queries_keys_values(x).reshape(-1, tokens, 3, self.heads, dim // self.heads)
        queries, keys, values = split.permute(2, 0, 3, 1, 4)  # each (batch, heads, tokens, dim / heads)
        weights = (queries @ keys.transpose(-2, -1) * (dim // self.heads) ** -0.5).softmax(dim=-1)
        mixed: Tensor = self.out((weights @ values).transpose(1, 2).reshape(-1, tokens, dim))
        return mixed


class TransformerBlock(nn.Module):
    """Attention and a GELU layer, each normalised before and added to what comes in."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(dim), Attention(dim, heads))
        self.dense = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(x)
        out: Tensor = x + self.dense(x)
        return out


class VisionTransformer(nn.Module):
    """Patches as tokens, transformer blocks, and a linear layer on the mean token: Dosovitskiy et al. 2021."""

    def __init__(self, side: int = 28, patch: int = 7, dim: int = 48, blocks: int = 3, heads: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, dim, patch, stride=patch)
        self.position = nn.Parameter(0.02 * torch.randn((side // patch) ** 2, dim))
        self.blocks = nn.Sequential(*(TransformerBlock(dim, heads) for _ in range(blocks)))
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 10))

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patches(x).flatten(2).transpose(1, 2) + self.position
        logits: Tensor = self.head(self.blocks(tokens).mean(dim=1))
        return logits


def boundary_cnn() -> nn.Module:
    """Four convolutions and three dense layers, as Vlaar 2021 has: batch norm, max-pooling, dropout on the middle one.

    Widths are ours; the paper gives none.
    """
    return nn.Sequential(
        *_convolved(1, 16, 3),
        *(*_convolved(16, 16, 3), nn.MaxPool2d(2)),
        *_convolved(16, 32, 3),
        *(*_convolved(32, 32, 3), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 7 * 7, 128), nn.ReLU()),
        *(nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.4), nn.Linear(128, 10)),
    )


def boundary_vit() -> nn.Module:
    """Six blocks of eight heads and dense layers of 128, as Vlaar 2021 has; patches of 7 x 7 and width 64 are ours."""
    return VisionTransformer(patch=7, dim=64, blocks=6, heads=8)


class OnRows(nn.Module):
    """An image network as a function of rows (batch, n_pixels) as data sets have them: height, width[, channels]."""

    def __init__(self, network: nn.Module, shape: Sequence[int]) -> None:
        super().__init__()
        # As the rows are: convolutions train 1.6 times as fast.
        self.network: nn.Module = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.shape = (*shape, 1) if len(shape) == 2 else tuple(shape)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Of one image as the image network takes it: channels, height, width."""
        return self.shape[2], *self.shape[:2]

    def forward(self, rows: Tensor) -> Tensor:
        logits: Tensor = self.network(rows.reshape(-1, *self.shape).permute(0, 3, 1, 2))
        return logits


IMAGE_NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "cnn": mnist_cnn,
    "resnet8": cifar_resnet8,
    "vit": VisionTransformer,
    "boundary-cnn": boundary_cnn,
    "boundary-vit": boundary_vit,
    "deepdig-cnn": deepdig_cnn,
    "resnet34": cifar_resnet34,
    "googlenet": cifar_googlenet,
}
