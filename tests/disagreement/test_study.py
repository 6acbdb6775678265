"""Tables 2 to 5 of Vlaar from answers with their counts, and what no renaming or reordering may change."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flipopt as fo
from flipopt.disagreement.measures import KINDS
from tests.disagreement.cases import CERTAINTIES, COUNTS, IMAGES, MODELS, predictions, simulated_people

PUBLISHED_3 = {97.5: (28.5, 15.2, 6.1), 98.0: (21.8, 11.5, 9.1), 98.5: (18.2, 7.3, 8.5)}


def studied(predicted: np.ndarray, labels: np.ndarray | None, **options: object) -> fo.disagreement.Study:
    return fo.disagreement.study(predicted, None, labels, resamples=0, **options)


@pytest.mark.parametrize("accuracy", list(COUNTS))
def test_the_papers_counts_give_its_tables_2_and_3(accuracy: float) -> None:
    study = studied(predictions(*COUNTS[accuracy]), simulated_people())
    found = tuple(round(100 * float(mask.mean()), 1) for mask in (study.disagree, study.type_a, study.type_c))
    assert found == PUBLISHED_3[accuracy]
    assert (study.disagree.sum(), study.type_a.sum(), study.type_c.sum()) == COUNTS[accuracy]
    assert int(study.people_disagree.sum()) == 32
    table = study.agreement
    across = table.of("misclassified by any model")
    assert round(100 * across["share"], 1) == PUBLISHED_3[accuracy][1]  # Table 2: equal to type A
    # One model is alone on each image: any two of nine differ where one of the two is it.
    disagree = COUNTS[accuracy][0]
    assert table.of("two models disagree")["share"] == pytest.approx(disagree / IMAGES * 2 / MODELS)
    per_model = table.of("misclassified by a model")
    wrong = (study.predicted != 7) & ~study.people_disagree
    assert per_model["share"] == pytest.approx(COUNTS[accuracy][1] / IMAGES / MODELS)
    assert per_model["deviation"] == pytest.approx(wrong.mean(axis=1).std())
    assert study.type_b.sum() == IMAGES - COUNTS[accuracy][1] - COUNTS[accuracy][2]


def test_softmax_by_type_is_the_mean_over_models_and_images() -> None:
    predicted, labels = predictions(*COUNTS[97.5]), simulated_people()
    kind = studied(predicted, labels).kind
    values = {"type A": 0.83, "type B, both disagree": 0.87, "type B, both agree": 0.99, "type C": 0.97}
    spread = 0.01 * (np.arange(MODELS) - 4.0)
    softmax = np.array([values[one] for one in kind]) + spread[:, None]
    study = studied(predicted, labels, softmax=np.minimum(softmax, 1))
    table = study.softmax_by_type.to_pandas().set_index("kind")
    assert table["mean"]["type A"] == pytest.approx(0.83)
    assert table["deviation"]["type C"] == pytest.approx(np.minimum(0.97 + spread, 1).std())
    assert table["images"].to_dict() == {
        "type A": 25,
        "type B, both disagree": 22,
        "type B, both agree": 108,
        "type C": 10,
    }


def test_certainty_is_counted_as_in_table_5() -> None:
    labels = simulated_people()
    repeats = [predictions(*COUNTS[97.5], models=10) for _ in range(3)]
    repeats[1][:3, :3] = 3  # three of ten say 3 where people are 90% certain: models are 70% certain there
    studies = [studied(predicted, labels) for predicted in repeats]
    table = studies[1].certainty
    levels = {1.0: IMAGES - 32, **CERTAINTIES}
    assert dict(zip(table.people, table.images, strict=True)) == levels
    by_level = dict(zip(table.people, table.models, strict=True))
    assert by_level[0.9] == pytest.approx(0.7)
    # On 22 of the 32 hard images one model of ten is alone: on all 9 of 80%, 7 of 70%, 3 of the 6 of 60%.
    assert [by_level[level] for level in (0.8, 0.7, 0.6, 0.5)] == pytest.approx([0.9, 0.9, (3 * 0.9 + 3) / 6, 1.0])
    over = fo.disagreement.certainty(studies)
    at = list(over.people).index(0.9)
    assert over.models[at] == pytest.approx(np.mean([0.9, 0.7, 0.9]))
    assert over.deviation[at] == pytest.approx(np.std([0.9, 0.7, 0.9]))


def test_curves_have_the_mean_and_deviation_of_repeats(tmp_path: Path) -> None:
    labels = simulated_people()
    some = [studied(predictions(*counts), labels) for counts in COUNTS.values()]
    found = fo.disagreement.curves({("MLP", 97.5): some, ("MLP", 98.0): some[:1], ("CNN", 98.0): some[1:]})
    shares = [counts[1] / IMAGES for counts in COUNTS.values()]
    assert found.type_a[0] == pytest.approx(np.mean(shares))
    assert found.type_a_deviation[0] == pytest.approx(np.std(shares))
    assert found.repeats.tolist() == [3, 1, 2]
    found.plot(tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 5000
    with pytest.raises(fo.InputError, match="same images"):
        fo.disagreement.curves({("MLP", 97.5): [some[0], studied(predictions(*COUNTS[98.0]), None)]})


def test_agreement_on_another_class_is_no_type() -> None:
    predicted, labels = np.array([[1, 1, 2], [1, 1, 2]]), np.array([[1, 2, 1], [1, 2, 2]])
    study = studied(predicted, labels)
    assert study.kind.tolist() == ["type B, both agree", "both agree, labels differ", "type C"]
    assert study.different.tolist() == [False, True, False]
    assert study.type_b.tolist() == [True, False, False]
    assert study.agreement.of("misclassified by any model")["images"] == 1


def test_without_people_nothing_is_said_of_types(tmp_path: Path) -> None:
    study = studied(predictions(*COUNTS[98.0]), None)
    assert study.type_a is study.type_b is study.type_c is study.people_disagree is None
    assert set(study.kind) == {"models disagree", "models agree"}
    assert "type A" not in study.agreement
    assert "Nothing is known of people" in study.summary()
    study.plot(tmp_path / "map.png")
    with pytest.raises(fo.InputError, match="labels: expected labels by people"):
        _ = study.certainty
    with pytest.raises(fo.InputError, match="softmax: expected the largest softmax"):
        _ = study.softmax_by_type


def test_networks_are_asked_about_images_in_any_shape() -> None:
    shipped = fo.load_shipped("mnist-fcn")
    X = shipped.X[:30]
    other = fo.DenseNetwork([-W for W in shipped.network.weights], shipped.network.biases, shipped.network.activations)
    models = [shipped.network, other]
    study = fo.disagreement.study(models, X, resamples=0)
    flat = fo.disagreement.study(models, X.reshape(-1, 1, 28, 28), resamples=0)
    np.testing.assert_array_equal(study.predicted, [model.predict(X) for model in models])
    np.testing.assert_array_equal(flat.predicted, study.predicted)
    np.testing.assert_allclose(study.softmax, [model.probabilities(X).max(axis=1) for model in models])
    assert len(study.to_pandas()) == 30


def test_people_may_have_a_word_that_no_model_has() -> None:
    shipped = fo.load_shipped("mnist-fcn")
    labels = np.full((2, 3), 10)
    with pytest.raises(fo.InputError, match="labels: expected classes from 0 to 9, or -1 .* found 10 of rater 0"):
        fo.disagreement.study([shipped.network], shipped.X[:3], labels)
    names = [*"0123456789", "neither"]
    assert fo.disagreement.study([shipped.network], shipped.X[:3], labels, classes=names, resamples=0).different.all()


@pytest.mark.parametrize(
    ("models", "labels", "message"),
    [
        ([1, 2, 3], None, r"models: expected a row of classes a rater, \(raters, images\), found int64 \(3,\)"),
        ([[1, 2], [1]], None, "models: expected a row of classes a rater, found a list of lists"),
        ([[1, -1]], None, "models: expected classes from 0 to .*, found -1 of rater 0 for image 1"),
        ([[1.5, 1]], None, "models: expected classes as whole numbers"),
        ([[1, np.nan]], None, "models: expected classes as whole numbers"),
        ([[1, 10**12]], None, "found 1e\\+12 of rater 0"),
        ([[1, 2]], [[1, 2, 3]], "labels: expected 2 images"),
        ([[1, 2]], [[1, -1], [1, -1]], "labels: expected a label of every image, found none of image 1"),
        ([["a", "b"]], None, "models: expected a row of classes"),
    ],
)
def test_what_makes_no_sense_is_refused(models: object, labels: object, message: str) -> None:
    with pytest.raises(fo.InputError, match=message):
        fo.disagreement.study(models, None, labels)


def test_softmax_and_blocks_are_checked() -> None:
    predicted = np.zeros((2, 3), dtype=int)
    with pytest.raises(fo.InputError, match=r"softmax: expected numbers from 0 to 1, \(2, 3\)"):
        fo.disagreement.study(predicted, None, softmax=np.full((2, 3), 1.5))
    with pytest.raises(fo.InputError, match="blocks: expected 3 numbers"):
        fo.disagreement.study(predicted, None, blocks=[0, 1])
    net = fo.load_shipped("mnist-fcn")
    with pytest.raises(fo.InputError, match="softmax: expected None where there are images"):
        fo.disagreement.study([net.network], net.X[:2], softmax=np.ones((1, 2)))


def test_intervals_hold_the_share_and_shrink_with_more_images() -> None:
    rng = np.random.default_rng(0)

    def width(images: int) -> tuple[float, float]:
        predicted = np.where(rng.random((6, images)) < 0.08, 1, 0)
        study = fo.disagreement.study(predicted, None, np.where(rng.random((5, images)) < 0.05, 1, 0), resamples=300)
        for record in map(study.agreement.of, study.agreement.measure):
            assert record["low"] <= record["share"] <= record["high"]
            assert record["low_models"] <= record["share"] <= record["high_models"]
        record = study.agreement.of("models disagree")
        return record["high"] - record["low"], record["high_models"] - record["low_models"]

    few, many = width(60), width(960)
    assert many[0] < few[0] / 2.5  # a quarter of it, but for chance
    assert many[1] > many[0]  # other models would add to it


def test_images_of_a_block_are_drawn_together() -> None:
    """Ten copies of an image say no more than one."""
    rng = np.random.default_rng(1)
    few = np.where(rng.random((5, 40)) < 0.1, 1, 0)
    alone = fo.disagreement.study(few, None, resamples=400).agreement.of("models disagree")
    copies = fo.disagreement.study(np.repeat(few, 10, axis=1), None, blocks=np.repeat(np.arange(40), 10), resamples=400)
    again = copies.agreement.of("models disagree")
    assert (again["low"], again["high"]) == pytest.approx((alone["low"], alone["high"]))


def test_a_map_has_a_square_an_image(tmp_path: Path) -> None:
    study = studied(predictions(*COUNTS[97.5]), simulated_people(), blocks=np.arange(IMAGES) // 11)
    study.plot(tmp_path / "map.png", rows=[f"line {k}" for k in range(15)])
    assert (tmp_path / "map.png").stat().st_size > 5000
    with pytest.raises(fo.InputError, match="rows: expected 15 names, found 2"):
        study.plot(tmp_path / "map.png", rows=["a", "b"])


answers = st.integers(1, 5).flatmap(
    lambda raters: st.lists(st.lists(st.integers(0, 3), min_size=raters, max_size=raters), min_size=6, max_size=6)
).map(lambda rows: np.array(rows).T)  # fmt: skip


def facts(study: fo.disagreement.Study) -> dict[str, list]:
    return {
        "kind": study.kind.tolist(),
        "models": study.models.share.tolist(),
        "people": study.people.share.tolist(),
        "share": study.agreement.share.tolist(),
    }


@settings(deadline=None, max_examples=60)
@given(answers, answers, st.permutations(range(4)))
def test_renaming_classes_changes_nothing(predicted: np.ndarray, labels: np.ndarray, names: list[int]) -> None:
    to = np.array(names)
    assert facts(studied(predicted, labels)) == facts(studied(to[predicted], to[labels]))


@settings(deadline=None, max_examples=60)
@given(answers, answers, st.randoms(use_true_random=False))
def test_the_order_of_raters_and_images_changes_nothing(predicted: np.ndarray, labels: np.ndarray, chance) -> None:
    models, people, images = (chance.sample(range(n), n) for n in (len(predicted), len(labels), 6))
    one = studied(predicted, labels)
    other = studied(predicted[models][:, images], labels[people][:, images])
    assert one.kind[images].tolist() == other.kind.tolist()
    np.testing.assert_allclose(one.agreement.share, other.agreement.share)
    np.testing.assert_allclose(one.models.share[images], other.models.share)


@settings(deadline=None, max_examples=60)
@given(answers, answers)
def test_every_image_is_of_one_kind_and_the_definitions_hold(predicted: np.ndarray, labels: np.ndarray) -> None:
    study = studied(predicted, labels)
    masks = np.stack([study.type_a, study.type_b, study.type_c, study.different])
    assert (masks.sum(axis=0) == 1).all()
    assert set(study.kind) <= set(KINDS)
    for image in range(6):
        models, people = set(predicted[:, image]), set(labels[:, image])
        assert study.disagree[image] == (len(models) > 1)
        assert study.type_a[image] == (len(models) > 1 and len(people) == 1)
        assert study.type_c[image] == (len(models) == 1 and len(people) > 1)
        assert study.different[image] == (len(models) == len(people) == 1 and models != people)
    pairs = [(predicted[a] != predicted[b]).mean() for a, b in combinations(range(len(predicted)), 2)]
    if pairs:
        assert study.agreement.of("two models disagree")["share"] == pytest.approx(np.mean(pairs))


@settings(deadline=None, max_examples=30)
@given(answers, st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_one_labeller_never_disagrees_and_one_model_neither(predicted: np.ndarray, label: list[int]) -> None:
    one = studied(predicted, np.array([label]))
    assert not one.people_disagree.any()
    assert not one.type_c.any()
    assert (one.people.share == 1).all()
    alone = studied(predicted[:1], np.array([label]))
    assert not alone.disagree.any()
    assert not alone.type_a.any()


@settings(deadline=None, max_examples=30)
@given(answers)
def test_a_person_who_has_not_seen_an_image_has_no_say_in_it(labels: np.ndarray) -> None:
    predicted = np.zeros((2, 6), dtype=int)
    absent = np.full((1, 6), -1)
    assert facts(studied(predicted, labels)) == facts(studied(predicted, np.concatenate([labels, absent])))


def test_a_tie_is_half_certain_and_goes_to_the_first_class() -> None:
    study = studied(np.zeros((1, 1), dtype=int), np.array([[2], [1], [2], [1]]))
    assert study.people.share[0] == 0.5
    assert study.people.top[0] == 1
    assert study.type_c[0]
