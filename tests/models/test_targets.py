"""Networks that are trained to an accuracy: on a few digits, with wide bands."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import nn

import flipopt as fo
from data_prep.datasets import Dataset, Split
from models import __main__ as program
from models import target_files, targets
from models.export import save_network, trained
from models.targets import TARGET_RECIPES, Outcome, TargetRecipe, Watch, initial, shifted, train_to_targets

TABLE = {
    "mlp1": (5e-4, 128, 0.0), "mlp2": (5e-4, 128, 1e-5), "mlp3": (1e-3, 256, 1e-5),
    "cnn1": (5e-4, 128, 0.0), "cnn2": (5e-4, 128, 1e-5), "cnn3": (None, None, 0.0),
    "vit1": (5e-4, 128, 0.0), "vit2": (5e-4, 128, 1e-5), "vit3": (None, None, 5e-5),
}  # fmt: skip
"""Step size, batch and weight decay of appendix A; None is not stated."""
SMALL = TargetRecipe("mlp1", "mlp", batch=20)
WATCH = Watch(tolerance=6.0, every=2, dense=1, near=10.0, subset=20, doubt=100.0)


def few() -> Dataset:
    shipped = fo.load_shipped("mnist-fcn")
    train, test = Split(shipped.images[:160], shipped.labels[:160]), Split(shipped.images[160:], shipped.labels[160:])
    return Dataset("few", train, test, tuple("0123456789"))


def run(
    path: Path | None = None, keep=lambda target, model: None, goals=(40.0, 60.0, 101.0), epochs: int = 6
) -> Outcome:
    return train_to_targets(SMALL, few(), goals, 3, keep, epochs, WATCH, path, show=False)


def test_recipes_are_those_of_the_paper() -> None:
    assert set(TARGET_RECIPES) == set(TABLE)
    for name, (rate, batch, decay) in TABLE.items():
        recipe = TARGET_RECIPES[name]
        assert recipe.learning_rate == (rate or 5e-4)
        assert recipe.batch == (batch or 128)
        assert recipe.weight_decay == decay
        assert (recipe.shift_pixels > 0) == (name == "cnn3")


def test_architectures_are_those_of_the_paper() -> None:
    mlp, cnn, vit = (initial(TARGET_RECIPES[name], (28, 28)) for name in ("mlp1", "cnn1", "vit1"))
    assert [layer.weight.shape for layer in mlp.layers] == [(500, 784), (500, 500), (10, 500)]
    assert [sum(isinstance(layer, kind) for layer in cnn.modules()) for kind in (nn.Conv2d, nn.Linear)] == [4, 3]
    assert [layer.p for layer in cnn.modules() if isinstance(layer, nn.Dropout)] == [0.4]
    blocks = vit.network.network.blocks
    assert len(blocks) == 6
    assert all(block.attention[1].heads == 8 and block.dense[1].out_features == 128 for block in blocks)


@pytest.mark.parametrize("name", ["mlp1", "cnn3", "vit2"])
def test_the_file_takes_pixels_and_has_the_logits_of_the_network(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = initial(TARGET_RECIPES[name], (28, 28)).eval()
    save_network(trained(model), tmp_path / "net.onnx")
    net = fo.load_network(tmp_path / "net.onnx")
    X = few().test.images[:5].reshape(5, -1) / 255
    with torch.no_grad():
        expected = model(torch.tensor(X, dtype=torch.float32)).numpy()
        white = model(torch.full((1, 784), targets.MEAN + targets.DEVIATION))
    np.testing.assert_allclose(net.logits(X), expected, atol=1e-4)
    assert net.n_classes == 10
    inner = model.network.network if name != "mlp1" else None
    if inner is not None:
        with torch.no_grad():  # the network inside is given what is normalised
            torch.testing.assert_close(white, inner(torch.ones(1, 1, 28, 28)), atol=1e-4, rtol=1e-4)


def test_a_snapshot_has_its_accuracy_and_a_target_that_is_not_met_is_said(tmp_path: Path) -> None:
    def keep(target: float, model: nn.Module) -> None:
        assert not model.training
        save_network(trained(model), tmp_path / f"{target:g}.onnx")

    outcome = run(keep=keep)
    test = few().test
    assert set(outcome.reached) == {40.0, 60.0}
    for target, (accuracy, step) in outcome.reached.items():
        found = fo.load_network(tmp_path / f"{target:g}.onnx").predict(test.images.reshape(40, -1) / 255)
        assert 100 * np.mean(found == test.labels) == pytest.approx(accuracy)
        assert abs(accuracy - target) <= WATCH.tolerance
        assert 0 < step <= outcome.steps
    assert outcome.steps == 6 * 8
    facts = targets.target_report(SMALL, outcome, (40.0, 60.0, 101.0), 3, 6)
    assert facts["targets"]["101"] == "not reached"
    assert facts["targets"]["40"]["steps"] == outcome.reached[40.0][1]
    assert outcome.best >= 60


def test_training_ends_with_the_last_target() -> None:
    outcome = run(goals=(40.0,), epochs=50)
    assert outcome.steps == outcome.reached[40.0][1] < 50 * 8


def test_an_interrupted_run_goes_on_and_keeps_no_snapshot_twice(tmp_path: Path, monkeypatch) -> None:
    kept: dict[float, np.ndarray] = {}

    def keep(target: float, model: nn.Module) -> None:
        assert target not in kept
        kept[target] = model.layers[0].weight.detach().numpy().copy()

    whole = run(keep=keep)
    first, kept = kept, {}
    steps = [0]
    look = targets._Eye.look

    def interrupted(self, model: nn.Module) -> None:
        steps[0] += 1
        if steps[0] == 20:
            raise KeyboardInterrupt
        look(self, model)

    with monkeypatch.context() as patch:
        patch.setattr(targets._Eye, "look", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "run.checkpoint", keep)
    kept = {
        target: weight for target, weight in kept.items() if whole.reached[target][1] <= 16
    }  # what epochs have kept
    again = run(tmp_path / "run.checkpoint", keep)
    assert again.reached == whole.reached
    assert again.steps == whole.steps
    for target, weight in first.items():
        np.testing.assert_array_equal(kept[target], weight)


def test_images_are_moved_by_a_few_pixels_and_never_mirrored() -> None:
    torch.manual_seed(0)
    images = torch.zeros(200, 9, 9)
    images[:, 4, 4], images[:, 4, 5] = 1.0, 0.5
    moved = shifted(images, 2)
    places = torch.nonzero(moved == 1.0)[:, 1:] - 4
    assert {tuple(place) for place in places.tolist()} == {(y, x) for y in range(-2, 3) for x in range(-2, 3)}
    right = moved[torch.arange(200), places[:, 0] + 4, places[:, 1] + 5]
    assert (right == 0.5).all()


def test_the_command_writes_networks_and_says_what_was_not_reached(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(target_files, "load_dataset", lambda name: few())
    monkeypatch.setattr(targets, "Watch", lambda: replace(WATCH, tolerance=45.0))
    monkeypatch.setitem(program.TARGET_RECIPES, "mlp1", SMALL)
    options = ["--target", "50", "--target", "200", "--epochs", "3", "--out", str(tmp_path)]
    done = CliRunner().invoke(program.main, ["targets", "mlp1", *options])
    assert done.exit_code == 0, done.output
    assert "200%: not reached" in done.output
    facts = json.loads((tmp_path / "mlp1.seed0.targets.json").read_text())
    assert facts["targets"]["200"] == "not reached"
    assert facts["command"] == "python -m models targets mlp1 --seed 0 --epochs 3 --target 50 --target 200"
    assert fo.load_network(tmp_path / "mlp1.seed0.at50.onnx").n_inputs == 784
    assert not list(tmp_path.glob("*.checkpoint"))
