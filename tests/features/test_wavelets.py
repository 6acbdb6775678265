from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import qr

import flipopt as fo
from flipopt.features import wavelets as module
from flipopt.features.wavelets import WaveletFeatures, WaveletTransform, default_level, pivoted_columns
from tests.strategies import seeds


@st.composite
def transforms(draw: st.DrawFn) -> WaveletTransform:
    shape = draw(st.sampled_from([(8, 8), (7, 9), (28, 28), (8, 8, 3), (6, 10, 4)]))
    dimensions = draw(st.sampled_from([2, 3] if len(shape) == 3 else [2]))
    wavelet = draw(st.sampled_from(["haar", "db1", "db2", "sym4"]))
    mode = draw(st.sampled_from(["periodization", "symmetric", "zero"]))
    return WaveletTransform(shape, wavelet, draw(st.integers(1, 2)), mode, dimensions)


@given(transforms(), seeds)
def test_synthesis_inverts_analysis(transform: WaveletTransform, seed: int) -> None:
    images = np.random.default_rng(seed).random((3, *transform.shape))
    coefficients = transform.analyse(images)
    assert coefficients.shape == (3, transform.n_coefficients)
    np.testing.assert_allclose(transform.synthesise(coefficients), images, atol=1e-10)


@given(transforms(), seeds)
def test_the_map_is_linear(transform: WaveletTransform, seed: int) -> None:
    a, b = np.random.default_rng(seed).random((2, 1, *transform.shape))
    together = transform.analyse(2 * a - 3 * b)
    np.testing.assert_allclose(together, 2 * transform.analyse(a) - 3 * transform.analyse(b), atol=1e-12)


def test_the_haar_transform_keeps_lengths() -> None:
    images = np.random.default_rng(0).random((5, 28, 28))
    coefficients = WaveletTransform((28, 28), "haar", 2, "periodization", 2).analyse(images)
    assert coefficients.shape == (5, 784)
    np.testing.assert_allclose(np.linalg.norm(coefficients, axis=1), np.linalg.norm(images.reshape(5, -1), axis=1))


def test_three_channels_are_extended_to_four() -> None:
    """001: 4096 coefficients of a 32 x 32 x 3 image."""
    for level in (1, 2):
        assert WaveletTransform((32, 32, 3), "db1", level, "periodization", 3).n_coefficients == 4096
    assert WaveletTransform((32, 32, 3), "db1", 5, "periodization", 2).n_coefficients == 3072


def test_default_levels_add_no_coefficients() -> None:
    assert default_level((28, 28), "haar", "periodization", 2) == 2
    assert default_level((32, 32, 3), "haar", "periodization", 2) == 5
    assert default_level((32, 32, 3), "haar", "periodization", 3) == 2


@given(st.integers(1, 60), st.integers(1, 12), seeds)
def test_pivots_of_blocks_are_pivots_of_the_whole(rows: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, columns)) * 2.0 ** -np.arange(columns)[rng.permutation(columns)]
    cuts = np.sort(rng.integers(0, rows + 1, size=3))
    blocks = [block for block in np.split(A, cuts) if len(block)]
    k = min(rows, columns)
    _, expected = qr(A, mode="r", pivoting=True)
    np.testing.assert_array_equal(pivoted_columns(iter(blocks), k), expected[:k])


def test_fit_in_blocks_chooses_what_fit_at_once_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    images = fo.load_shipped("mnist-net1").images
    whole = WaveletFeatures.fit(images, 40)
    monkeypatch.setattr(module, "BLOCK_FLOATS", 1)  # as small as blocks get: n rows, here fewer than there are images
    small = images[:, ::4, ::4].copy()
    np.testing.assert_array_equal(
        WaveletFeatures.fit(small, 20).selected,
        qr(WaveletFeatures.fit(small, 49).wavelet_transform.analyse(small / 255), mode="r", pivoting=True)[1][:20],
    )
    assert len(set(whole.selected)) == 40


@pytest.fixture(scope="module")
def fitted() -> WaveletFeatures:
    return fo.load_shipped("mnist-net1").features


def test_shipped_features_are_recomputed_from_the_shipped_images() -> None:
    for name in ("mnist-net1", "mnist-net2", "cifar-200"):
        shipped = fo.load_shipped(name)
        np.testing.assert_allclose(shipped.features.transform(shipped.images), shipped.X, atol=1e-12)


def test_transform_accepts_one_image_many_flat_rows_and_both_precisions(fitted: WaveletFeatures) -> None:
    image = fo.load_shipped("mnist-net1").images[0]
    expected = fitted.transform(image)
    assert expected.shape == (100,)
    np.testing.assert_array_equal(fitted.transform(image[None])[0], expected)
    np.testing.assert_array_equal(fitted.transform(image.reshape(-1)), expected)
    np.testing.assert_array_equal(fitted.transform(image.reshape(1, -1))[0], expected)
    single = fitted.transform((image / 255).astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, atol=1e-5)


def test_inverse_keeps_what_the_features_do_not_hold(fitted: WaveletFeatures) -> None:
    image = fo.load_shipped("mnist-net1").images[0] / 255
    features = fitted.transform(image)
    np.testing.assert_allclose(fitted.inverse_transform(features, image), image, atol=1e-12)
    alone = fitted.inverse_transform(features)
    assert 0 < np.linalg.norm(alone - image) < 0.5 * np.linalg.norm(image)
    np.testing.assert_allclose(fitted.transform(alone), features, atol=1e-12)
    both = fitted.inverse_transform(np.stack([features, features]), np.stack([image, image]))
    np.testing.assert_allclose(both[1], image, atol=1e-12)


@pytest.mark.parametrize("name", ["mnist-net1", "cifar-200"])
def test_pixel_constraints_say_when_a_feature_vector_is_an_image(name: str) -> None:
    shipped = fo.load_shipped(name)
    image, features = shipped.images[3] / 255, shipped.features
    A, low, high = features.pixel_constraints(image)
    f = features.transform(image)
    rng = np.random.default_rng(0)
    for scale in (0.0, 0.01, 0.5):
        moved = f + scale * rng.standard_normal(len(f))
        pixels = features.inverse_transform(moved, image).reshape(-1)
        np.testing.assert_allclose(A @ moved - low, pixels, atol=1e-10)
        np.testing.assert_allclose(high - A @ moved, 1 - pixels, atol=1e-10)
    with pytest.raises(fo.InputError, match="upper: expected a number above lower"):
        features.pixel_constraints(image, 1.0, 0.0)


def test_save_and_load(fitted: WaveletFeatures, tmp_path: Path) -> None:
    fitted.save(tmp_path / "f.npz")
    other = WaveletFeatures.load(tmp_path / "f.npz")
    assert other.wavelet_transform == fitted.wavelet_transform
    np.testing.assert_array_equal(other.selected, fitted.selected)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"settings": np.array("{}"), "selected": np.arange(3)}, "not a WaveletFeatures file"),
        ({"settings": np.array("nonsense"), "selected": np.arange(3)}, "not a WaveletFeatures file"),
        ({"settings": np.array("[]"), "selected": np.arange(3)}, "not a WaveletFeatures file"),
        ({"selected": np.arange(3)}, "lacks settings"),
    ],
)
def test_broken_feature_files_are_named(arrays, message: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", **arrays)
    with pytest.raises(fo.FileFormatError, match=message):
        WaveletFeatures.load(tmp_path / "f.npz")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f.transform(np.zeros((3, 27, 28))), "images: expected"),
        (lambda f: f.transform(np.zeros((28, 28), dtype=int)), "images: expected uint8, float32 or float64"),
        (lambda f: f.transform(np.full((28, 28), np.nan)), "images: expected finite pixels"),
        (lambda f: f.inverse_transform(np.zeros(99)), "features: expected"),
        (lambda f: f.inverse_transform(np.zeros((3, 100)), np.zeros((2, 28, 28))), "base: expected one image or 3"),
        (lambda f: WaveletFeatures.fit(np.zeros((28, 28)), 5), "images: expected"),
        (lambda f: WaveletFeatures.fit(np.zeros((2, 8, 8)), 65), "n_features: expected 1 to 64, found 65"),
        (lambda f: WaveletFeatures.fit(np.zeros((2, 8, 8)), 5, wavelet="morl"), "wavelet: expected a discrete"),
        (lambda f: WaveletFeatures.fit(np.zeros((2, 8, 8)), 5, mode="wrap"), "mode: expected one of"),
        (lambda f: WaveletFeatures.fit(np.zeros((2, 8, 8)), 5, level=9), "level: expected 1 to 3"),
        (lambda f: WaveletFeatures.fit(np.zeros((2, 8, 8)), 5, dimensions=3), "dimensions: expected 2"),
        (lambda f: WaveletFeatures(f.wavelet_transform, np.array([1, 1])), "selected: expected 1 to 784 different"),
        (lambda f: WaveletFeatures(f.wavelet_transform, np.array([784])), "selected: expected indices in"),
    ],
)
def test_bad_arguments_are_named(call, message: str, fitted: WaveletFeatures) -> None:
    with pytest.raises(fo.InputError, match=message):
        call(fitted)
