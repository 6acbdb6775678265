"""Studies of 004, on noisy copies of a shipped network, with people who are simulated and stand for nobody."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import flipopt as fo
from benchmarks.reproduce.desk import Desk
from benchmarks.reproduce.paper_004 import (
    answers,
    claims,
    drawing,
    lines,
    networks,
    seeds,
    sets,
    sheets,
    tables,
    workers,
)
from benchmarks.reproduce.paper_004.networks import NINE_AT_TARGETS, TARGETS, Model
from benchmarks.reproduce.published import published
from benchmarks.reproduce.record import Record
from flipopt.disagreement.measures import EVERY_MODEL, TYPE_A, WRONG
from models import target_files, targets
from models.targets import TargetRecipe, Watch
from tests.disagreement.cases import COUNTS
from tests.models.test_targets import few

QUIET = Console(quiet=True)
STUDIES = {"tables": tables.tables, "seeds": seeds.seeds, "lines": lines.lines, "workers": workers.workers}
PEOPLE = 5


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    folder = tmp_path_factory.mktemp("paper_004")
    (folder / "results").mkdir()
    (folder / "work").mkdir()
    return Desk(True, folder / "work", folder / "results", QUIET)


@pytest.fixture(scope="module")
def records(desk: Desk) -> dict[str, Record]:
    return {name: study(desk) for name, study in STUDIES.items()}


@pytest.fixture
def asked(desk: Desk) -> Iterator[fo.disagreement.Labels]:
    """Five simulated people, who say of each image the digit at its nearer end; two of them differ in the middle."""
    images = sets.sets(desk).first
    nearer = images.classes[np.arange(len(images)), (images.alpha > 0.5).astype(int)]
    said = np.tile(nearer, (PEOPLE, 1))
    middle = np.flatnonzero(images.alpha == 0.5)
    said[:2, middle] = images.classes[middle, 1]
    lines = [f"P{who},{image},{said[who, image]},1.0" for who in range(PEOPLE) for image in range(len(images))]
    path = desk.work / sets.LABELS
    path.write_text("\n".join(["labeller,image,label,seconds", *lines]) + "\n")
    labels = sets.labels(desk)
    assert labels is not None
    yield labels
    path.unlink()


def test_all_208_numbers_of_the_paper_are_there_once(records: dict[str, Record]) -> None:
    names = [number.name for record in records.values() for number in record.numbers]
    wanted = [name for name in published() if name.startswith("004.")]
    assert len(wanted) == 208
    assert sorted(names) == sorted(wanted)


def test_every_number_has_ours_or_says_what_it_takes(records: dict[str, Record]) -> None:
    for record in records.values():
        for number in record.numbers:
            if number.ours is None:
                assert "Not run: " in number.why
                assert "`flipopt label" in number.why or "python -m models targets" in number.why
    by_name = {number.name: number for record in records.values() for number in record.numbers}
    two = by_name["004.table_2.97.5.3"]
    assert (two.count, two.over) == (2, "choices of latent vectors")
    assert two.spread is not None
    assert by_name["004.table_2.97.5.5"].ours == by_name["004.table_3.97.5.0"].ours
    assert by_name["004.setup.dcgan.feature_maps"].same is False
    assert "flipopt label" in records["tables"].summary


def test_what_needs_no_people_is_what_the_library_says(desk: Desk, records: dict[str, Record]) -> None:
    generator_images = sets.sets(desk).choices
    models = [Model(name, seed, 98.0) for name, seed in networks.NINE.items()]
    nets = [networks.network(desk, model) for model in models]
    shares = [
        100 * fo.disagreement.study(nets, images, resamples=0).agreement.of(EVERY_MODEL)["share"]
        for images in generator_images
    ]
    ours = next(number for number in records["tables"].numbers if number.name == "004.table_2.98.5")
    assert ours.ours == pytest.approx(np.mean(shares))
    assert ours.spread == pytest.approx(np.std(shares, ddof=1))


def test_with_labels_all_numbers_of_people_are_measured(
    desk: Desk, records: dict[str, Record], asked: fo.disagreement.Labels
) -> None:
    numbers = {number.name: number for study in (tables.tables, seeds.seeds) for number in study(desk).numbers}
    study = answers.answers(desk, NINE_AT_TARGETS).at(97.5).study(0, asked)
    assert numbers["004.table_2.97.5.0"].ours == pytest.approx(100 * study.agreement.of(WRONG)["share"])
    assert numbers["004.table_3.97.5.1"].ours == pytest.approx(100 * study.agreement.of(TYPE_A)["share"])
    assert numbers["004.setup.volunteers"].ours == PEOPLE
    assert numbers["004.human_pair_disagreement_percent.0"].ours == pytest.approx(20 * 0.6)  # 6 of 10 pairs, in a fifth
    assert numbers["004.table_5_model_certainty_percent.images.3"].ours == 15  # of 15 lines the image in the middle
    assert numbers["004.table_5_model_certainty_percent.images.0"].ours is None
    certain = fo.disagreement.certainty(
        [answers.answers(desk, [Model("mlp1", seed, 97.5) for seed in range(3)]).study(0, asked)]
    )
    level = certain.people.tolist().index(0.6)
    assert numbers["004.table_5_model_certainty_percent.97.5.MLP.3"].ours == pytest.approx(100 * certain.models[level])
    record = tables.tables(desk)
    assert "wait for labels" not in record.summary
    assert any("type A" in claim.text for claim in record.claims)


def test_what_models_said_is_kept(desk: Desk, records: dict[str, Record], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "network", lambda *args: pytest.fail("asked again"))
    assert tables.tables(desk).to_json() == records["tables"].to_json()


def test_networks_are_found_and_those_that_are_not_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = Desk(True, tmp_path / "work", tmp_path, QUIET)
    full = replace(quick, quick=False, training=False)
    split, images = answers.test_set(True), sets.sets(quick)
    monkeypatch.setattr(answers, "test_set", lambda quick: split)
    monkeypatch.setattr(answers, "sets", lambda desk: images)
    one, other = Model("mlp1", 0, 97.5), Model("cnn1", 0, 97.5)
    one.file(full).parent.mkdir(parents=True)
    networks._noisy(one).save(one.file(full))
    found = answers.answers(full, [one, other])
    assert found.models == (one,)
    np.testing.assert_array_equal(found.predicted[0], networks._noisy(one).predict(images.images))
    assert found.accuracy[0] == pytest.approx(100 * np.mean(found.test_predicted[0] == split.labels))
    networks._noisy(other).save(one.file(full))  # another network of this name
    again = answers.answers(full, [one])
    np.testing.assert_array_equal(again.predicted[0], networks._noisy(other).predict(images.images))
    twin = Model("cnn2", 0, 97.5)
    networks._noisy(twin).save(target_files.network_file(tmp_path / "work" / networks.FOLDER, "cnn2", 0, 97.5))
    (alike,) = answers.answers(full, [other]).predicted  # what cnn2 makes of a seed is what cnn1 does
    np.testing.assert_array_equal(alike, networks._noisy(twin).predict(images.images))
    one.file(full).unlink()
    assert answers.answers(full, [one]).models == (one,)  # what it said is known


def test_what_is_missing_is_trained_unless_it_is_not_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    todo: list[list[str]] = []
    monkeypatch.setattr(networks, "computed", lambda *args, **options: todo.append(list(args[3])))
    desk = Desk(False, tmp_path, tmp_path, QUIET)
    networks.train(replace(desk, training=False), NINE_AT_TARGETS)
    networks.train(replace(desk, quick=True), NINE_AT_TARGETS)
    assert not todo
    (tmp_path / networks.FOLDER).mkdir()
    target_files.report_file(tmp_path / networks.FOLDER, "vit1", 0).write_text(
        json.dumps(
            {"targets": {"97.5": {}, "98": {}, "98.5": targets.NOT_REACHED}, "epochs": 20}
        )  # as the command leaves it
    )
    target_files.report_file(tmp_path / networks.FOLDER, "mlp1", 0).write_text(
        json.dumps({"targets": {"97.5": {}, "98": targets.NOT_REACHED, "98.5": targets.NOT_REACHED}, "epochs": 9})
    )
    networks.train(desk, NINE_AT_TARGETS)
    names = [
        "cnn1.seed0",
        "cnn1.seed1",
        "cnn3.seed0",
        "mlp1.seed0",
        "mlp1.seed1",
        "mlp3.seed0",
        "vit1.seed1",
        "vit1.seed2",
    ]
    assert sorted(todo[0]) == names  # mlp2 with the seed 1 is mlp1 with it


def test_a_training_leaves_networks_and_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_files, "load_dataset", lambda name: few())
    monkeypatch.setattr(targets, "Watch", lambda: Watch(60.0, 2, 1, 10.0, 20, 100.0))
    monkeypatch.setitem(networks.TARGET_RECIPES, "mlp1", TargetRecipe("mlp1", "mlp", batch=20))
    rows = networks.train_one(("mlp1", 3, tmp_path))
    assert [row["target"] for row in rows] == ["97.5", "98", "98.5"]
    report = json.loads(target_files.report_file(tmp_path, "mlp1", 3).read_text())
    for row, target in zip(rows, TARGETS, strict=True):
        there = target_files.network_file(tmp_path, "mlp1", 3, target).exists()
        assert there == row["reached"] == (report["targets"][row["target"]] != targets.NOT_REACHED)


def test_the_papers_counts_are_its_percentages() -> None:
    assert sheets.COUNTS == COUNTS
    for target, (disagree, type_a, type_c) in sheets.COUNTS.items():
        for k, count in enumerate((disagree, type_a, type_c)):
            assert published()[f"004.table_3.{target:g}.{k}"] == round(100 * count / sheets.IMAGES, 1)
        assert published()[f"004.table_2.{target:g}.2"] == published()[f"004.table_3.{target:g}.1"]
        assert disagree - type_a + type_c == sheets.HARD
    images = [published()[f"004.table_5_model_certainty_percent.images.{k}"] for k in range(5)]
    assert sum(images) + published()["004.table_5_model_certainty_percent.images_left_out.40"] == sheets.HARD
    low, high = sheets.papers_softmax(97.5)
    assert low == pytest.approx((25 * 0.83 + 22 * 0.87) / 47)
    assert high == pytest.approx((108 * 0.99 + 10 * 0.97) / 118)


def test_recipes_that_differ_in_their_weight_decay_alone_have_other_seeds() -> None:
    recipes = networks.TARGET_RECIPES
    for recipe in recipes.values():
        assert np.float32(1 - recipe.learning_rate * recipe.weight_decay) == 1  # what AdamW multiplies weights by
    alike: dict[TargetRecipe, set[int]] = {}
    for name, seed in networks.NINE.items():
        alike.setdefault(replace(recipes[name], name="", weight_decay=0.0), set()).add(seed)
    assert sorted(len(chosen) for chosen in alike.values()) == [1, 1, 2, 2, 3]
    assert networks.same("vit2") == ["vit1", "vit2", "vit3"]
    assert networks.same("mlp3") == ["mlp3"]


def made(*predicted: list[int], softmax: float = 0.9) -> fo.disagreement.Study:
    values = np.full((len(predicted), len(predicted[0])), softmax)
    values[:, 0] = 0.5
    return fo.disagreement.study(np.array(predicted), None, softmax=values, resamples=0)


def test_claims_of_models_hold_where_figures_say_so() -> None:
    rest = [[0, 0, 0, 0]] * 4
    many = made([1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0], *rest)  # 75%; two of them 17%
    some = made([1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], *rest)  # 25%; two of them 6%
    two, softmax, falls = claims.of_models({97.5: [many], 98.0: [some]}, {97.5: [many], 98.0: [some]})
    assert two.verdict == "holds"
    assert softmax.verdict == "holds"
    assert falls.verdict == "holds"
    assert "of the 9 recipes" in falls.evidence
    apart = made([1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 0], *rest)
    two, _, falls = claims.of_models({97.5: [some], 98.0: [apart]}, {97.5: [some], 98.0: [apart]})
    assert two.holds == {"97.5%": True, "98%": False}
    assert falls.verdict == "does not hold"
    few = claims.of_models({97.5: [made([0, 1], [1, 0])]}, {})  # nothing is said of nine
    assert [claim.where for claim in few] == ["section 3, Table 4"]


def test_what_waits_for_people_or_for_models_is_said(desk: Desk) -> None:
    found = answers.answers(desk, NINE_AT_TARGETS)
    assert [len(sheet.rows) for sheet in sheets.waiting("004-tables", found, asked=False)] == [6]
    assert sheets.waiting("004-tables", found, asked=True) == []
    (sheet,) = sheets.waiting("004-tables", found.where(lambda model: model.kind != "ViT"), asked=True)
    assert "All nine models" in sheet.rows[0][2]


def test_seeds_are_compared_in_equal_numbers(desk: Desk, records: dict[str, Record]) -> None:
    more = [Model("mlp1", seed, t) for seed in range(3) for t in TARGETS]
    found = seeds.Found.of(
        answers.answers(desk, [*more, *(Model("cnn1", seed, t) for seed in (0, 1) for t in TARGETS)])
    )
    assert found.count == 2
    assert found.kinds == ["MLP", "CNN"]
    assert all(len(study.predicted) == 2 for some in found.studies.values() for study in some)
    alone = seeds.Found.of(answers.answers(desk, NINE_AT_TARGETS).where(lambda model: model.name == "mlp1"))
    assert alone.studies == {}
    assert {number.name.split(".")[-1] for number in records["seeds"].numbers} >= {"seeds", "repeats", "batch"}


def test_places_on_lines_are_those_of_the_library(desk: Desk, records: dict[str, Record]) -> None:
    kept = records["lines"].figures["crossings"][0]
    named = records["lines"].setup["models"]
    nets = [networks.network(desk, model) for model in NINE_AT_TARGETS if model.words in named]
    found = fo.disagreement.crossings(nets, sets.sets(desk).first, tol=lines.TOLERANCE)
    np.testing.assert_array_equal(kept["alpha"], found.alpha)
    np.testing.assert_array_equal(kept["into"], found.into)
    distances = np.array([list(row) for row in records["lines"].figures["distances"].values()])
    assert np.isfinite(distances).any(axis=1).all()
    assert np.isnan(distances).any()


def test_workers_are_real_people_and_their_file_is_not_ours(
    desk: Desk, records: dict[str, Record], tmp_path: Path
) -> None:
    assert "Not run: " in records["workers"].summary
    labels = answers.test_set(True).labels
    entries = [
        {
            "id": k, "given_original_label": int(labels[k]), "our_guessed_label": int(labels[k] + 1) % 10,
            "mturk": {"given": 5 - k % 3, "guessed": k % 3, "neither": 0},
        }
        for k in range(12)
    ]  # fmt: skip
    path = tmp_path / "simulated.json"
    path.write_text(json.dumps(entries))
    read = fo.disagreement.read_label_errors(path)
    study = workers.study(answers.answers(desk, NINE_AT_TARGETS).at(98.0), read)
    assert int(study.people_disagree.sum()) == 8
    found = claims.of_people({98.0: study, 98.5: study}, {98.0: study, 98.5: study})
    assert len(found) == 4
    assert found[-1].verdict == "does not hold"  # no fewer of type A


def test_what_models_say_of_an_image_in_words() -> None:
    assert drawing.spoken(np.array([3, 3, 3])) == "✓"
    assert drawing.spoken(np.array([5, 3, 3, 9, 9, 9])) == "9, 3, 5"


def test_pictures_are_drawn(desk: Desk, records: dict[str, Record]) -> None:
    files = [picture.file for record in records.values() for picture in record.pictures]
    assert files == ["004-figure-3.png", "004-figure-2.png", "004-figure-4.png", "004-lines.png", "004-distances.png"]
    assert all((desk.results / file).stat().st_size > 5000 for file in files)
    pixels = fo.disagreement.read_images(desk.results / sets.IMAGES)
    np.testing.assert_allclose(pixels / 255, np.clip(sets.sets(desk).first.images.reshape(-1, 28, 28), 0, 1), atol=2e-3)
