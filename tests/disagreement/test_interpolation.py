"""Images between classes, where models change their mind on the way, and how far flips are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from tests.generative.cases import LATENT, dense

CLASSES = 4


class Plane:
    """A generator whose images are its latent vectors, in a shape of 1 x 2 x 2."""

    n_latent = 4

    def forward(self, z: np.ndarray) -> np.ndarray:
        return z.reshape(-1, 1, 2, 2)


def linear(seed: int, n: int = 4, classes: int = CLASSES) -> fo.DenseNetwork:
    """A network without hidden layers: on a line its logits are linear in alpha."""
    rng = np.random.default_rng(seed)
    return fo.DenseNetwork(
        [np.eye(n, classes) + 0.2 * rng.standard_normal((n, classes))], [0.1 * rng.random(classes)], []
    )


@given(st.integers(2, 12), st.integers(1, 11), st.integers(0, 5))
def test_every_class_is_in_as_many_pairs(classes: int, times: int, seed: int) -> None:
    if times >= classes or classes * times % 2:
        with pytest.raises(fo.InputError, match="times: expected less than"):
            fo.disagreement.pairs(classes, times, seed)
        return
    found = fo.disagreement.pairs(classes, times, seed)
    assert (found[:, 0] < found[:, 1]).all()
    assert len(np.unique(found, axis=0)) == len(found) == classes * times // 2
    assert (np.bincount(found.reshape(-1), minlength=classes) == times).all()


def test_the_papers_pairs_are_15_of_11_images_and_depend_on_the_seed() -> None:
    Z = np.random.default_rng(0).standard_normal((10, LATENT))
    sets = fo.disagreement.interpolations(dense(), Z)
    assert len(sets) == 165
    assert sets.pairs.shape == (15, 2)
    assert sets.images.shape == (165, 1, 4, 4)
    assert not np.array_equal(fo.disagreement.pairs(seed=0), fo.disagreement.pairs(seed=1))
    # Equation (1), by the generator's own word.
    k = 25
    i, j, alpha = *sets.classes[k], sets.alpha[k]
    np.testing.assert_allclose(sets.images[k], dense().forward((1 - alpha) * Z[i] + alpha * Z[j]), atol=1e-6)
    assert alpha == pytest.approx(0.3)
    first = sets.take(sets.line == 0)
    assert len(first) == 11
    np.testing.assert_array_equal(first.images, sets.images[:11])
    assert list(sets.to_pandas().columns) == ["line", "i", "j", "alpha"]


def test_a_line_is_a_block_of_the_study() -> None:
    sets = fo.disagreement.interpolations(Plane(), np.eye(4), alphas=5)
    study = fo.disagreement.study([linear(0), linear(1)], sets, resamples=0)
    np.testing.assert_array_equal(study.blocks, sets.line)
    assert len(study.kind) == len(sets) == 5 * 6


def test_latents_are_the_first_that_are_clear_and_not_the_clearest() -> None:
    model = fo.DenseNetwork([8 * np.eye(4)], [np.zeros(4)], [])
    found = fo.disagreement.choose_latents(Plane(), [model], seed=3, least=0.9)
    assert found.label.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(model.predict(found.z), found.label)
    np.testing.assert_allclose(found.softmax, model.probabilities(found.z).max(axis=1))
    # None of those drawn before was as clear, and of the class.
    rng = np.random.default_rng(3)
    drawn = rng.standard_normal((256, 4))
    for k, place in enumerate(found.drawn):
        np.testing.assert_array_equal(drawn[place], found.z[k])
        before = model.probabilities(drawn[:place])
        assert not ((before.argmax(axis=1) == k) & (before.max(axis=1) >= 0.9)).any()
    other = fo.disagreement.choose_latents(Plane(), [model], seed=4, least=0.9)
    assert not np.array_equal(other.z, found.z)
    with pytest.raises(fo.InputError, match="generator: expected an image of every class .* none of class 0, 1, 2, 3"):
        fo.disagreement.choose_latents(Plane(), [fo.DenseNetwork([0.01 * np.eye(4)], [np.zeros(4)], [])], most=300)


def test_what_models_take_may_be_made_from_the_images() -> None:
    sets = fo.disagreement.interpolations(Plane(), np.eye(4), alphas=3, inputs=lambda images: images.reshape(-1, 4) / 2)
    assert sets.images.max() == 0.5
    with pytest.raises(fo.InputError, match="inputs: expected a row for each"):
        fo.disagreement.interpolations(Plane(), np.eye(4), inputs=lambda images: images[:1])


def test_alpha_is_where_two_classes_tie_to_a_millionth() -> None:
    """Against the root of a linear function."""
    sets = fo.disagreement.interpolations(Plane(), 3 * np.eye(4), alphas=2)
    models = [linear(seed) for seed in range(6)]
    found = fo.disagreement.crossings(models, sets, tol=1e-6)
    assert len(found) == 6 * 6
    A, B = sets.ends
    for model, line, (s, t), alpha in zip(found.model, found.line, found.classes, found.alpha, strict=True):
        first, last = (models[model].logits(end[line]) for end in (A, B))
        assert (s, t) == (first.argmax(), last.argmax())
        lead, other = first[s] - first[t], last[s] - last[t]
        assert alpha == pytest.approx(lead / (lead - other), abs=1e-6)
    spread = found.spread()
    one = found.take((found.line == 2) & found.success)
    assert spread.models[2] == len(one)
    assert spread.mean[2] == pytest.approx(one.alpha.mean())
    assert spread.highest[2] - spread.lowest[2] == pytest.approx(np.ptp(one.alpha))
    assert "6 models, 6 lines" in str(found)


def test_a_class_in_between_is_named() -> None:
    """Class 2 leads in the middle of the line from class 0 to class 1."""
    W = np.zeros((4, 3))
    W[:, 0], W[:, 1] = [4, 0, 0, 0], [0, 4, 0, 0]
    model = fo.DenseNetwork([W], [np.array([0.0, 0.0, 3.0])], [])
    sets = fo.disagreement.interpolations(Plane(), np.eye(4)[:2], pairs=[(0, 1)])
    found = fo.disagreement.crossings(model, sets)
    assert found.alpha[0] == pytest.approx(0.5, abs=1e-6)
    assert found.third[0] == 2
    assert not found.success[0]
    assert found.spread().models[0] == 0
    assert found.first[0] == pytest.approx(0.25, abs=1e-6)  # where 4 (1 - alpha) = 3
    assert found.into[0] == 2
    early = found.spread(first=True)
    assert early.classes.tolist() == [[0, 2]]
    assert early.mean[0] == pytest.approx(0.25, abs=1e-6)
    never = fo.disagreement.crossings(fo.DenseNetwork([0 * W], [np.arange(3.0)], []), sets)
    assert np.isnan(never.alpha[0])
    assert never.third[0] == never.into[0] == -1
    assert np.isnan(never.first[0])


def test_distance_to_a_flip_tells_where_two_models_disagree() -> None:
    models = [linear(0), linear(1)]
    sets = fo.disagreement.interpolations(Plane(), 3 * np.eye(4), alphas=9)
    study = fo.disagreement.study(models, sets, resamples=0)
    found = fo.disagreement.distances(models, sets)
    X = sets.images.reshape(len(sets), 4)
    for model, row in zip(models, found, strict=True):
        W, Y = model.weights[0], model.logits(X)
        i = Y.argmax(axis=1)
        leads = Y[np.arange(len(X)), i][:, None] - Y
        normals = np.linalg.norm(W[:, i].T[:, :, None] - W[None], axis=1)
        planes = np.where(normals > 0, leads / np.where(normals > 0, normals, 1), np.inf)
        np.testing.assert_allclose(row, planes.min(axis=1), atol=1e-6)  # the nearest of the planes
    assert study.disagree.any()
    table = fo.disagreement.by_distance(study, found)
    assert table.model.tolist() == ["0", "1", "mean over models"]
    near, far = (found.mean(axis=0)[mask] for mask in (study.disagree, ~study.disagree))
    assert table.models_area[-1] == pytest.approx((near[:, None] < far).mean())
    assert table.models_low[-1] < table.models_area[-1] < table.models_high[-1]
    assert np.isnan(table.people_area).all()
    assert "people disagree cannot be said" in str(table)
    with pytest.raises(fo.InputError, match="distances: expected shape"):
        fo.disagreement.by_distance(study, found[:1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"latents": np.zeros((10, 3))}, "latents: expected at least two rows of 4 numbers"),
        ({"pairs": [(0, 0)]}, "pairs: expected two different numbers"),
        ({"pairs": [(0, 4)]}, "pairs: expected two different numbers"),
        ({"alphas": 1}, "alphas: expected a whole number >= 2"),
        ({"alphas": [0.5, 0.2]}, "alphas: expected rising numbers"),
    ],
)
def test_lines_that_make_no_sense_are_refused(options: dict, message: str) -> None:
    with pytest.raises(fo.InputError, match=message):
        fo.disagreement.interpolations(**{"generator": Plane(), "latents": np.eye(4), **options})
