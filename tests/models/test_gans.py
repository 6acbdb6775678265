"""Generators and discriminators: sizes, losses with known answers, interruptions, and what is in the exported files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from click.testing import CliRunner
from PIL import Image
from torch import Tensor, nn

import flipopt as fo
from data_prep.datasets import Dataset, Split
from flipopt.common.errors import InputError
from models import __main__ as program
from models import checkpoints
from models.gans import training
from models.gans.dcgan import DcganDiscriminator, DcganGenerator
from models.gans.export import save_discriminator, save_generator
from models.gans.losses import discriminator_loss, generator_loss, gradient_penalty
from models.gans.pair import Gan
from models.gans.recipes import GAN_RECIPES, GanRecipe
from models.gans.samples import fixed_latents, write_samples
from models.gans.training import build, prepare, train
from models.onnx_files import onnx_model
from tests.models.onnx_runs import ATOL, RTOL, disturbed, hooked, n_parameters, run

TINY: dict[str, Any] = {"width": 4, "latent": 6, "epochs": 3, "batch": 4}
TOYS = {
    "dcgan": replace(GAN_RECIPES["dcgan-mnist"], **TINY),
    "dcgan bfloat16": replace(GAN_RECIPES["dcgan-mnist-64"], **TINY),
    "wgan-gp": replace(GAN_RECIPES["wgan-mnist"], **TINY),
    "pggan": replace(GAN_RECIPES["pggan-fashion"], **TINY),
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Networks as small as these only wait for a second one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    """Forty shipped digits in place of the whole of MNIST, as read-only as those of its files."""
    shipped = fo.load_shipped("mnist-net1")
    images, labels = shipped.images.reshape(-1, 28, 28), shipped.labels
    images.flags.writeable = False
    dataset = Dataset("toy", Split(images[:40], labels[:40]), Split(images[40:60], labels[40:60]), tuple("0123456789"))
    monkeypatch.setattr(training, "load_dataset", lambda name: dataset)
    return dataset


def test_networks_are_those_of_the_papers() -> None:
    torch.manual_seed(0)
    generator, discriminator = DcganGenerator(), DcganDiscriminator()
    assert sides(generator.layers, torch.zeros(2, 100, 1, 1)) == [(512, 4), (256, 7), (128, 14), (64, 28), (1, 28)]
    assert sides(discriminator.features, torch.zeros(2, 1, 28, 28)) == [(64, 14), (128, 7), (256, 4), (512, 4)]
    for network, kind in ((generator, nn.ConvTranspose2d), (discriminator, nn.Conv2d)):
        layers = [layer for layer in network.modules() if isinstance(layer, kind)]
        assert len(layers) == 5
        weights = torch.cat([layer.weight.detach().flatten() for layer in layers])
        assert float(weights.std()) == pytest.approx(0.02, rel=0.01)
        assert abs(float(weights.mean())) < 1e-4
    slopes = {layer.negative_slope for layer in discriminator.modules() if isinstance(layer, nn.LeakyReLU)}
    assert slopes == {0.2}


def sides(layers: nn.Sequential, x: Tensor) -> list[tuple[int, int]]:
    """Maps and sides of what leaves every layer."""
    found = []
    for layer in layers:
        x = layer(x)
        found.append((x.shape[1], x.shape[2]))
    return found


def test_sizes_of_the_networks() -> None:
    # Weights of the convolutions, shifts where no batch norm follows, two numbers a map in batch norm.
    kernels = 100 * 256 * 16 + 256 * 128 * 9 + 128 * 64 * 16 + 64 * 32 * 16 + 32 * 9 + 1
    assert n_parameters(DcganGenerator(32)) == kernels + 2 * (256 + 128 + 64 + 32) == 869_601
    kernels = 1 * 32 * 16 + 32 * 64 * 16 + 64 * 128 * 9 + 128 * 256 * 9 + 256 * 16
    assert n_parameters(DcganDiscriminator(32)) == kernels + 32 + 1 + 2 * (64 + 128 + 256) == 406_945
    assert n_parameters(DcganDiscriminator(32, batch_norm=False)) == kernels + 32 + 64 + 128 + 256 + 1


@pytest.mark.parametrize("batch", [1, 3])
def test_shapes_and_ranges(batch: int) -> None:
    torch.manual_seed(0)
    images = DcganGenerator(4, latent=2).eval()(torch.randn(batch, 2))
    assert images.shape == (batch, 1, 28, 28)
    assert images.abs().max() <= 1
    assert DcganDiscriminator(4).eval()(images).shape == (batch, 1)


def test_only_the_wasserstein_form_has_a_critic_without_batch_norm() -> None:
    normed = {
        name: any(isinstance(layer, nn.BatchNorm2d) for layer in build(recipe).discriminator.modules())
        for name, recipe in TOYS.items()
    }
    assert normed == {"dcgan": True, "dcgan bfloat16": True, "wgan-gp": False, "pggan": False}


def test_recipes_are_named_as_they_are_called() -> None:
    assert {"dcgan-mnist", "wgan-mnist", "dcgan-mnist-2d", "pggan-fashion"} <= set(GAN_RECIPES)
    assert all(recipe.name == name for name, recipe in GAN_RECIPES.items())
    published = GAN_RECIPES["dcgan-mnist"]
    assert (published.generator_rate, published.betas[0], published.latent) == (2e-4, 0.5, 100)
    assert GAN_RECIPES["dcgan-mnist-2d"] == replace(published, name="dcgan-mnist-2d", latent=2)


class Linear(nn.Module):
    """The critic <a, image>, whose gradient is a everywhere."""

    def __init__(self, a: Tensor) -> None:
        super().__init__()
        self.a = nn.Parameter(a)

    def forward(self, images: Tensor) -> Tensor:
        return (images.flatten(1) @ self.a)[:, None]


def test_the_gradient_penalty_of_a_linear_critic() -> None:
    torch.manual_seed(0)
    a = torch.randn(16, dtype=torch.float64)
    critic = Linear(a)
    real, made = torch.randn(2, 5, 1, 4, 4, dtype=torch.float64)
    penalty = gradient_penalty(critic, real, made)
    assert float(penalty.detach()) == pytest.approx(float((a.norm() - 1) ** 2), rel=1e-12)
    penalty.backward()
    torch.testing.assert_close(critic.a.grad, 2 * (a.norm() - 1) * a / a.norm())


def test_the_gradient_penalty_is_taken_between_real_and_generated_images() -> None:
    """Of the score |x|^2 / 2 the gradient is x itself: on a line from 0 to r its norm is the share of |r|."""
    torch.manual_seed(0)
    real, made = torch.full((4000, 1, 2, 2), 2.0), torch.zeros(4000, 1, 2, 2)
    penalty = gradient_penalty(HalfSquare(), real, made)
    # The mean of (4 t - 1)^2 for t uniform in [0, 1] is 7/3; its standard deviation is 2.76, of 4,000 draws 0.044.
    assert float(penalty.detach()) == pytest.approx(7 / 3, abs=0.15)


class HalfSquare(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1).square().sum(dim=1, keepdim=True) / 2


def test_losses_have_known_answers() -> None:
    """A critic with the gradient a, |a| = 2, scores real images of ones 4 and generated ones of zeros 0."""
    critic = Linear(torch.ones(4)).requires_grad_(False)
    real, made = torch.ones(3, 1, 2, 2), torch.zeros(3, 1, 2, 2)
    wasserstein = replace(TOYS["wgan-gp"], penalty=10.0, drift=0.01)
    assert float(discriminator_loss(wasserstein, critic, real, made)) == pytest.approx(0 - 4 + 10 + 0.01 * 16)
    assert float(generator_loss(wasserstein, critic(real))) == -4
    entropy = np.log1p(np.exp(-4)) + np.log(2)
    assert float(discriminator_loss(TOYS["dcgan"], critic, real, made)) == pytest.approx(entropy)
    assert float(generator_loss(TOYS["dcgan"], critic(made))) == pytest.approx(np.log(2))


def weights(gan: Gan) -> Iterator[tuple[str, Tensor]]:
    for player, network in gan.networks().items():
        for name, values in network.state_dict().items():
            yield f"{player}.{name}", values


def interrupt(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """The first ``after`` steps of training are done, and no more before the next call of it."""
    step, done = training._Game.step, []

    def interrupted(*arguments):
        if len(done) == after:
            monkeypatch.setattr(training._Game, "step", step)
            raise KeyboardInterrupt
        done.append(step(*arguments))
        return done[-1]

    monkeypatch.setattr(training._Game, "step", interrupted)


@pytest.mark.parametrize("seconds", [300.0, 0.0], ids=["after epochs", "within epochs"])
@pytest.mark.parametrize("recipe", TOYS.values(), ids=TOYS)
def test_a_seed_decides_and_an_interrupted_run_goes_on(
    toy: Dataset, recipe: GanRecipe, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = prepare(recipe)
    steps = len(images) // (recipe.batch * recipe.critic_steps)
    whole = train(recipe, images, seed=1, device="cpu", show=False)
    checkpoint = tmp_path / "c"
    monkeypatch.setattr(checkpoints, "SECONDS", seconds)
    interrupt(monkeypatch, after=steps + 2)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, images, seed=1, device="cpu", checkpoint=checkpoint, show=False)
    saved = torch.load(checkpoint, weights_only=True)
    assert (saved["epoch"], len(saved.get("losses", []))) == (1, 0 if seconds else 2)
    resumed = train(recipe, images, seed=1, device="cpu", checkpoint=checkpoint, show=False)
    for (name, ours), (_, expected) in zip(weights(resumed), weights(whole), strict=True):
        assert torch.equal(ours, expected), name
    assert resumed.losses == whole.losses
    assert len(whole.losses) == recipe.epochs
    finished = train(recipe, images, seed=2, device="cpu", checkpoint=checkpoint, show=False)  # nothing is left to do
    assert finished.losses == whole.losses


def test_seeds_differ(toy: Dataset) -> None:
    recipe = replace(TOYS["dcgan"], epochs=1)
    one, other = (dict(weights(train(recipe, prepare(recipe), seed, "cpu", show=False))) for seed in (1, 2))
    assert [name for name in one if name.endswith("weight") and torch.equal(one[name], other[name])] == []


def test_both_players_learn_in_every_step(toy: Dataset) -> None:
    recipe = TOYS["wgan-gp"]
    torch.manual_seed(0)
    game = training._Game(recipe, torch.device("cpu"))
    before = {name: values.clone() for name, values in weights(game.gan)}
    game.step(prepare(recipe)[: game.images])
    changed = {name for name, values in weights(game.gan) if not torch.equal(before[name], values)}
    assert {"generator.layers.0.0.weight", "discriminator.features.0.0.weight"} <= changed
    counts = [int(state["step"]) for state in game.discriminating.state.values()]
    assert set(counts) == {recipe.critic_steps}
    assert all(parameter.requires_grad for parameter in game.gan.discriminator.parameters())


def test_products_in_bfloat16_train_weights_in_float32(toy: Dataset) -> None:
    exact, rounded = (
        dict(weights(train(replace(TOYS[name], epochs=1), prepare(TOYS[name]), 0, "cpu", show=False)))
        for name in ("dcgan", "dcgan bfloat16")
    )
    assert {values.dtype for values in rounded.values()} == {torch.float32, torch.int64}
    last = "generator.layers.3.0.weight"
    assert not torch.equal(exact[last], rounded[last])
    torch.testing.assert_close(rounded[last], exact[last], rtol=0, atol=0.01)


@pytest.mark.parametrize("kind", ["dcgan", "wgan-gp"])
def test_a_generator_learns_how_dark_digits_are(toy: Dataset, kind: str) -> None:
    recipe = replace(TOYS[kind], epochs=16, generator_rate=2e-3, discriminator_rate=2e-3)
    images = prepare(recipe)
    untrained, trained = (
        network.eval()(fixed_latents(0, recipe.latent)).detach().mean()
        for network in (build(recipe).generator, train(recipe, images, 0, "cpu", show=False).result)
    )
    assert abs(untrained) < 0.1
    assert abs(trained - (images / 127.5 - 1).mean()) < 0.15  # it is at -0.75


def test_other_images_are_refused(toy: Dataset) -> None:
    wide = Dataset("wide", Split(np.zeros((4, 28, 32), np.uint8), np.zeros(4, np.int64)), toy.test, toy.classes)
    with pytest.raises(InputError, match=r"expected images \(1, 28, 28\) for dcgan, found \(1, 28, 32\)"):
        prepare(TOYS["dcgan"], wide)


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_the_generators_file_is_the_generator_with_its_pre_activations(batch: int, tmp_path: Path) -> None:
    torch.manual_seed(batch)
    generator = disturbed(DcganGenerator(4, latent=6))
    assert generator.training
    save_generator(generator, 6, tmp_path / "g.onnx")
    z = torch.randn(batch, 6)
    expected, before, _ = hooked(generator, nn.ReLU, z)
    names = ["layer1", "layer2", "layer3", "layer4"]
    images, *layers = run(tmp_path / "g.onnx", ["images", *names], z=z)
    np.testing.assert_allclose(images, (expected + 1) / 2, rtol=RTOL, atol=ATOL)
    assert [layer.shape for layer in layers] == [
        (batch, 32, 4, 4),
        (batch, 16, 7, 7),
        (batch, 8, 14, 14),
        (batch, 4, 28, 28),
    ]
    for ours, right in zip(layers, before, strict=True):
        assert float(right.min()) < -0.1 < 0.1 < float(right.max())  # before the activation there are both signs
        np.testing.assert_allclose(ours, right, rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("batch_norm", [True, False])
def test_the_discriminators_file_is_the_discriminator_with_its_features(batch_norm: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    discriminator = disturbed(DcganDiscriminator(4, batch_norm))
    save_discriminator(discriminator, (1, 28, 28), tmp_path / "d.onnx")
    pixels = torch.rand(7, 1, 28, 28)
    expected, before, after = hooked(discriminator, nn.LeakyReLU, 2 * pixels - 1)
    names = ["layer1", "layer2", "layer3", "layer4", "features"]
    for batch in (1, 2, 7):
        scores, *tensors = run(tmp_path / "d.onnx", ["scores", *names], images=pixels[:batch])
        assert scores.shape == (batch, 1)
        np.testing.assert_allclose(scores, expected[:batch], rtol=RTOL, atol=ATOL)
        for ours, right in zip(tensors, [*before, after[-1]], strict=True):
            np.testing.assert_allclose(ours, right[:batch], rtol=RTOL, atol=ATOL)


def test_names_are_for_the_inputs_of_activations_alone(tmp_path: Path) -> None:
    torch.manual_seed(0)
    save_generator(DcganGenerator(4, latent=6), 6, tmp_path / "g.onnx")
    model = onnx.load(tmp_path / "g.onnx")
    onnx.checker.check_model(model, full_check=True)
    graph = model.graph
    assert [node.input[0] for node in graph.node if node.op_type == "Relu"] == [f"layer{k}" for k in range(1, 5)]
    makers = {name: node.op_type for node in graph.node for name in node.output}
    assert {makers[f"layer{k}"] for k in range(1, 5)} <= {"ConvTranspose", "BatchNormalization"}
    assert {value.name for value in graph.value_info} >= {f"layer{k}" for k in range(1, 5)}
    batch, latent = graph.input[0].type.tensor_type.shape.dim
    assert (batch.dim_param, latent.dim_value) == ("batch", 6)
    assert not any(tensor.external_data for tensor in graph.initializer)


class OfTwo(nn.Module):
    """A module in which the exporter takes the size of its example for that of all batches."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, torch.ones(()).expand(len(x), 1)], dim=1)


def test_a_module_of_one_size_of_batches_is_not_exported() -> None:
    with pytest.raises(AssertionError, match="one size of batches"):
        onnx_model(OfTwo(), (3,))


def test_a_picture_of_samples(tmp_path: Path) -> None:
    torch.manual_seed(0)
    generator = DcganGenerator(4, latent=2)
    before = torch.get_rng_state()
    latents = fixed_latents(3, 2)
    write_samples(generator, latents, tmp_path / "p.png")
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(latents, fixed_latents(3, 2))
    assert generator.training
    with torch.no_grad():
        images = generator.eval()(latents)
    with Image.open(tmp_path / "p.png") as picture:
        pixels = np.asarray(picture)
    assert pixels.shape == (280, 280)
    place = pixels[28 * 2 : 28 * 3, 28 * 5 : 28 * 6]  # row 2, column 5
    np.testing.assert_allclose(place, 127.5 * (images[25, 0] + 1), atol=0.51)


def test_the_command_trains_exports_and_reports(toy: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(program.GAN_RECIPES, "wgan-mnist", TOYS["wgan-gp"])
    command = ["gan", "wgan-mnist", "--out", str(tmp_path), "--device", "cpu", "--epochs", "2", "--seed", "3"]
    result = CliRunner().invoke(program.main, command)
    assert result.exit_code == 0, result.output
    names = sorted(path.name.removeprefix("wgan-mnist") for path in tmp_path.iterdir())
    assert names == [".discriminator.onnx", ".generator.onnx", ".json", ".png"]
    facts = json.loads((tmp_path / "wgan-mnist.json").read_text())
    assert facts["command"] == "python -m models gan wgan-mnist --seed 3 --epochs 2"
    assert (facts["seed"], facts["recipe"]["kind"], facts["recipe"]["epochs"]) == (3, "wgan-gp", 2)
    assert facts["parameters"] == {
        "generator": n_parameters(DcganGenerator(4, 6)),
        "discriminator": n_parameters(DcganDiscriminator(4, batch_norm=False)),
    }
    expected = train(replace(TOYS["wgan-gp"], epochs=2), prepare(TOYS["wgan-gp"]), 3, "cpu", show=False)
    assert sum(facts["judged"]["classes"]) == facts["judged"]["images"]
    assert list(facts["losses"].values()) == pytest.approx(expected.losses[-1], abs=1e-4)
    z = fixed_latents(3, 6)
    (images,) = run(tmp_path / "wgan-mnist.generator.onnx", ["images"], z=z)
    with torch.no_grad():
        np.testing.assert_allclose(images, (expected.result.eval()(z) + 1) / 2, rtol=RTOL, atol=ATOL)
    with Image.open(tmp_path / "wgan-mnist.png") as picture:  # of the last epoch
        np.testing.assert_allclose(np.asarray(picture)[-28:, -28:], 255 * images[-1, 0], atol=0.51)
    for player in ("generator", "discriminator"):  # they say nothing of this machine
        assert b"site-packages" not in (tmp_path / f"wgan-mnist.{player}.onnx").read_bytes()
