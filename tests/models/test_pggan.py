"""Networks that grow: when, how one resolution becomes the next, their layers, and what is in the exported files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, conv_transpose2d, interpolate

from data_prep.datasets import Dataset, Split
from models.gans.export import save_discriminator, save_generator
from models.gans.pair import Gan
from models.gans.pggan import (
    BatchDeviation,
    EqualisedConv2d,
    Growing,
    GrowingGan,
    PgganDiscriminator,
    PgganGenerator,
    growth,
    pixel_norm,
)
from models.gans.recipes import GAN_RECIPES
from models.gans.training import build, prepare
from tests.models.onnx_runs import ATOL, RTOL, hooked, n_parameters, run

RECIPE = GAN_RECIPES["pggan-fashion"]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Networks as small as these only wait for a second one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def gan() -> Gan:
    """With shifts other than zero and some experience of batches.

    Pixel norm of fewer than eight maps sometimes divides by next to nothing. Rounding grows with that, and with twice
    as many layers as DCGAN has: it is given ten times the room.
    """
    torch.manual_seed(0)
    gan = GrowingGan(PgganGenerator(32, 6, 1), PgganDiscriminator(32, 1))
    for network in gan.networks().values():
        for layer in network.modules():
            if isinstance(layer, EqualisedConv2d):
                nn.init.normal_(layer.bias, std=0.1)
            elif isinstance(layer, BatchDeviation):
                layer.average.fill_(0.7)
    return gan


def test_a_quarter_of_the_training_belongs_to_every_resolution_and_half_of_that_to_the_fade() -> None:
    assert [growth(done) for done in (0, 0.1, 0.2499)] == [(0, 1.0)] * 3
    assert [growth(done) for done in (0.25, 0.25 + 1 / 16, 0.375, 0.49)] == [(1, 0.0), (1, 0.5), (1, 1.0), (1, 1.0)]
    assert [growth(done) for done in (0.5, 0.75, 0.875, 1.0)] == [(2, 0.0), (3, 0.0), (3, 1.0), (3, 1.0)]


@pytest.mark.parametrize(("done", "side"), [(0.1, 4), (0.3, 8), (0.45, 8), (0.6, 16), (0.8, 32), (1.0, 32)])
def test_every_resolution_has_its_images(gan: Gan, done: float, side: int) -> None:
    gan.at(done)
    made = gan.generator(torch.randn(3, 6))
    assert made.shape == gan.seen(torch.zeros(3, 1, 32, 32)).shape == (3, 1, side, side)
    assert gan.discriminator(made).shape == (3, 1)


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_new_resolution_begins_as_the_one_before(gan: Gan, stage: int) -> None:
    z, x = torch.randn(4, 6), torch.rand(4, 1, 32, 32) * 2 - 1

    def views() -> tuple[Tensor, Tensor]:
        return gan.generator(z), gan.seen(x)

    gan.at((stage - 1) / 4 + 0.2)
    gan.discriminator.eval()
    before = views()
    gan.at(stage / 4)
    for new, old in zip(views(), before, strict=True):
        torch.testing.assert_close(new, interpolate(old, scale_factor=2))
    scores = gan.discriminator(seen := gan.seen(x))
    gan.at((stage - 1) / 4 + 0.2)
    torch.testing.assert_close(scores, gan.discriminator(avg_pool2d(seen, 2)))


def test_a_fade_is_linear_in_its_images(gan: Gan) -> None:
    z, x = torch.randn(4, 6), torch.rand(4, 1, 32, 32)
    for view in (lambda: gan.generator(z), lambda: gan.seen(x)):
        images = []
        for share in (0.0, 0.25, 1.0):
            gan.at(0.5 + 0.125 * share)
            images.append(view())
        torch.testing.assert_close(images[1], 0.75 * images[0] + 0.25 * images[2])
    torch.testing.assert_close(images[2], avg_pool2d(x, 2))  # real images of 16 x 16


def test_networks_are_grown_unless_they_are_told_otherwise() -> None:
    network = Growing()
    assert (network.stage, network.alpha) == growth(1.0)


def test_averaged_weights_are_of_the_resolution_of_the_others() -> None:
    gan = build(RECIPE)
    gan.at(0.3)
    assert gan.result is not gan.generator
    assert gan.result(torch.randn(1, RECIPE.latent)).shape == (1, 1, 8, 8)


def test_averaged_weights_follow_by_a_thousandth_a_step() -> None:
    gan = build(RECIPE)
    assert gan.average is not None
    ours, averaged = (network.get_parameter("to_image.0.bias").detach() for network in (gan.generator, gan.result))
    for value in (5.0, 6.0, 7.0):
        ours.fill_(value)
        gan.average.update_parameters(gan.generator)
    # The first update copies.
    assert float(averaged) == pytest.approx(0.999 * (0.999 * 5 + 0.001 * 6) + 0.001 * 7, rel=1e-6)


def test_pixels_are_normed() -> None:
    torch.manual_seed(0)
    x = pixel_norm(3 * torch.randn(2, 16, 5, 5))
    torch.testing.assert_close(x.square().mean(dim=1), torch.ones(2, 5, 5))


def test_learning_rates_are_equalised() -> None:
    """Weights of deviation 1, scaled as they are used, keep the variance through LeakyReLU's positive half."""
    torch.manual_seed(0)
    layer = EqualisedConv2d(256, 64, 3, 1)
    assert float(layer.weight.detach().std()) == pytest.approx(1, rel=0.01)
    made = layer(torch.randn(4, 256, 8, 8))[:, :, 1:-1, 1:-1]
    assert float(made.detach().std()) == pytest.approx(math.sqrt(2), rel=0.03)


def test_the_first_layer_is_dense() -> None:
    """A transposed convolution of one pixel, whose kernel is the first layer's mirrored one."""
    torch.manual_seed(0)
    layer = PgganGenerator(8, 6, 1).blocks[0].first
    z = torch.randn(3, 6, 1, 1)
    kernel = (layer.weight * layer.scale).flip(2, 3).transpose(0, 1)
    torch.testing.assert_close(layer(z), conv_transpose2d(z, kernel))


def test_the_deviation_of_a_batch() -> None:
    layer = BatchDeviation()
    x = torch.tensor([[1.0, 5.0], [3.0, 5.0]])[:, :, None, None].expand(2, 2, 4, 4)  # deviations 1 and 0 of two maps
    made = layer(x)
    assert made.shape == (2, 3, 4, 4)
    torch.testing.assert_close(made[:, :2], x)
    torch.testing.assert_close(made[:, 2], torch.full((2, 4, 4), 0.5), rtol=0, atol=1e-4)
    assert float(layer.average) == pytest.approx(0.01 * 0.5, rel=1e-3)
    torch.testing.assert_close(layer.eval()(x)[:, 2], layer.average.expand(2, 4, 4))


def test_a_trained_discriminator_scores_every_image_by_itself(gan: Gan) -> None:
    images = torch.rand(4, 1, 32, 32)
    together = gan.discriminator(images)
    assert not torch.allclose(together[:1], gan.discriminator(images[:1]), rtol=1e-3)
    together = gan.discriminator.eval()(images)
    torch.testing.assert_close(together[:1], gan.discriminator(images[:1]))


def test_grey_images_get_margins_and_coloured_ones_stay() -> None:
    torch.manual_seed(0)
    labels = np.zeros(2, np.int64)
    for images in (torch.randint(256, (2, 28, 28)), torch.randint(256, (2, 32, 32, 3))):
        split = Split(images.byte().numpy(), labels)
        made = prepare(RECIPE, Dataset("toy", split, split, ("any",)))
        assert made.dtype == torch.uint8
        assert made.shape == (2, 1 if images.ndim == 3 else 3, 32, 32)
        if images.ndim == 3:
            assert torch.equal(made[:, 0, 2:-2, 2:-2], images.byte())
            assert made.sum() == images.sum()
        else:
            assert torch.equal(made.movedim(1, 3), images.byte())
            gan = build(RECIPE, channels=3)
            assert gan.discriminator(gan.generator(torch.randn(2, RECIPE.latent))).shape == (2, 1)


@pytest.mark.parametrize("batch", [1, 5])
def test_the_generators_file_is_the_generator_with_its_pre_activations(gan: Gan, batch: int, tmp_path: Path) -> None:
    save_generator(gan.generator, 6, tmp_path / "g.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "g.onnx"), full_check=True)
    z = torch.randn(batch, 6)
    expected, _, after = hooked(gan.generator, EqualisedConv2d, z)
    assert expected.abs().max() <= 1
    images, *layers = run(tmp_path / "g.onnx", ["images", *(f"layer{k}" for k in range(1, 9))], z=z)
    np.testing.assert_allclose(images, (expected + 1) / 2, rtol=10 * RTOL, atol=10 * ATOL)
    assert [layer.shape[1:] for layer in layers] == [
        *[(32, 4, 4)] * 2,
        *[(32, 8, 8)] * 2,
        *[(16, 16, 16)] * 2,
        *[(8, 32, 32)] * 2,
    ]
    for ours, right in zip(layers, after[:-1], strict=True):  # the last one makes images
        np.testing.assert_allclose(ours, right, rtol=10 * RTOL, atol=10 * ATOL)


def test_the_discriminators_file_is_the_discriminator_with_its_features(gan: Gan, tmp_path: Path) -> None:
    save_discriminator(gan.discriminator, (1, 32, 32), tmp_path / "d.onnx")
    pixels = torch.rand(5, 1, 32, 32)
    expected, before, after = hooked(gan.discriminator, EqualisedConv2d, 2 * pixels - 1)
    for batch in (1, 5):
        scores, features, *layers = run(
            tmp_path / "d.onnx", ["scores", "features", *(f"layer{k}" for k in range(1, 10))], images=pixels[:batch]
        )
        np.testing.assert_allclose(scores, expected[:batch], rtol=10 * RTOL, atol=10 * ATOL)
        np.testing.assert_allclose(features, before[-1][:batch], rtol=10 * RTOL, atol=10 * ATOL)
        for ours, right in zip(layers, after[:-1], strict=True):
            np.testing.assert_allclose(ours, right[:batch], rtol=10 * RTOL, atol=10 * ATOL)


def test_sizes_of_the_networks() -> None:
    maps = (64, 64, 32, 16)
    pairs = sum(9 * (before * after + after * after) + 2 * after for before, after in pairwise(maps))
    first = 16 * 64 * 64 + 64 + 9 * 64 * 64 + 64
    assert n_parameters(PgganGenerator(64, 64, 1)) == first + pairs + sum(maps) + len(maps)
