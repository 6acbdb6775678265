"""The generator and the discriminator of Radford, Metz and Chintala 2016, for images of 28 x 28 with one channel.

Theirs are the transposed convolutions with batch norm and ReLU, the tanh at the end, the convolutions with batch norm
and LeakyReLU(0.2), no batch norm beside the images, and the initial weights. Five layers each, of 64 maps before the
image, are those of the papers reproduced here. Strides and kernels, which neither gives for 28 x 28, are ours.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

SIDE = 28
SLOPE = 0.2
"""Of LeakyReLU for negative numbers."""
DEVIATION = 0.02
"""Of the initial weights."""


class DcganGenerator(nn.Module):
    """Latents (batch, latent) to images (batch, 1, 28, 28) in [-1, 1] by way of 8w, 4w, 2w and w maps of growing sides.

    ``layers[k]`` is convolution, batch norm and ReLU; the last is convolution and tanh.
    """

    def __init__(self, width: int = 64, latent: int = 100) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            _grown(latent, 8 * width, 4, stride=1, padding=0),  # 1 to 4
            _grown(8 * width, 4 * width, 3, stride=2, padding=1),  # 4 to 7
            _grown(4 * width, 2 * width, 4, stride=2, padding=1),  # 7 to 14
            _grown(2 * width, width, 4, stride=2, padding=1),  # 14 to 28
            nn.Sequential(nn.ConvTranspose2d(width, 1, 3, padding=1), nn.Tanh()),
        )
        self.apply(_initialise)

    def forward(self, z: Tensor) -> Tensor:
        images: Tensor = self.layers(z[:, :, None, None])
        return images


class DcganDiscriminator(nn.Module):
    """Images (batch, 1, 28, 28) to scores (batch, 1) by way of w, 2w, 4w and 8w maps of shrinking sides."""

    def __init__(self, width: int = 64, batch_norm: bool = True) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Sequential(*_shrunk(1, width, 4, 2, False)),  # 28 to 14
            nn.Sequential(*_shrunk(width, 2 * width, 4, 2, batch_norm)),  # 14 to 7
            nn.Sequential(*_shrunk(2 * width, 4 * width, 3, 2, batch_norm)),  # 7 to 4
            nn.Sequential(*_shrunk(4 * width, 8 * width, 3, 1, batch_norm)),  # 4
        )
        self.score = nn.Conv2d(8 * width, 1, 4)  # 4 to 1
        self.apply(_initialise)

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.score(self.features(images))
        return scores.flatten(1)


def _grown(n_in: int, n_out: int, kernel: int, stride: int, padding: int) -> nn.Sequential:
    # Batch norm has a shift of its own, so a convolution before it needs none.
    convolution = nn.ConvTranspose2d(n_in, n_out, kernel, stride, padding, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(n_out), nn.ReLU())


def _shrunk(n_in: int, n_out: int, kernel: int, stride: int, batch_norm: bool) -> Iterator[nn.Module]:
    yield nn.Conv2d(n_in, n_out, kernel, stride, padding=1, bias=not batch_norm)
    if batch_norm:
        yield nn.BatchNorm2d(n_out)
    yield nn.LeakyReLU(SLOPE)


def _initialise(layer: nn.Module) -> None:
    if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(layer.weight, std=DEVIATION)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
    elif isinstance(layer, nn.BatchNorm2d):
        nn.init.normal_(layer.weight, mean=1, std=DEVIATION)
