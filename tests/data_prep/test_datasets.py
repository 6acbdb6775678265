from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from data_prep.__main__ import main
from data_prep.datasets import Dataset, Split, load_dataset, mirrored
from data_prep.sources import source
from flipopt.common.errors import FileFormatError, InputError
from flipopt.features.shipped import load_shipped
from flipopt.features.wavelets import WaveletFeatures


def write_idx(path: Path, array: np.ndarray) -> None:
    path.write_bytes(gzip.compress(struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.tobytes()))


@pytest.fixture
def small_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shipped images as if they were the whole data set, in MNIST's own files."""
    shipped = load_shipped("mnist-net1")
    folder = tmp_path / "data" / "mnist"
    folder.mkdir(parents=True)
    for part, rows in (("train", slice(0, 150)), ("t10k", slice(150, 200))):
        write_idx(folder / f"{part}-images-idx3-ubyte.gz", shipped.images[rows])
        write_idx(folder / f"{part}-labels-idx1-ubyte.gz", shipped.labels[rows].astype(np.uint8))
    monkeypatch.setenv("FLIPOPT_DATA", str(tmp_path / "data"))
    return folder


@pytest.fixture
def small_cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The shipped planes and ships, with CIFAR-10's labels 0 and 8, in its own files."""
    shipped = load_shipped("cifar-200")
    folder = tmp_path / "data" / "cifar-10" / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    records = np.column_stack([shipped.labels * 8, shipped.images.transpose(0, 3, 1, 2).reshape(200, -1)])
    for batch in range(5):
        (folder / f"data_batch_{batch + 1}.bin").write_bytes(records[batch * 30 :][:30].astype(np.uint8).tobytes())
    (folder / "test_batch.bin").write_bytes(records[150:].astype(np.uint8).tobytes())
    monkeypatch.setenv("FLIPOPT_DATA", str(tmp_path / "data"))
    return folder


def test_mnist_is_read_from_its_files(small_mnist: Path) -> None:
    dataset = load_dataset("mnist")
    shipped = load_shipped("mnist-net1")
    np.testing.assert_array_equal(dataset.train.images, shipped.images[:150])
    np.testing.assert_array_equal(dataset.test.labels, shipped.labels[150:])


def test_cifar_is_read_from_its_files_and_narrowed_to_two_classes(small_cifar: Path) -> None:
    dataset = load_dataset("cifar-10")
    shipped = load_shipped("cifar-200")
    assert set(dataset.train.labels) == {0, 8}
    both = dataset.only(("airplane", "ship"))
    np.testing.assert_array_equal(both.train.labels, shipped.labels[:150])
    np.testing.assert_array_equal(both.test.images, shipped.images[150:])
    assert set(dataset.only(("ship",)).test.labels) == {0}
    with pytest.raises(InputError, match="classes: expected names among airplane.*found zeppelin"):
        dataset.only(("zeppelin",))


def test_images_and_labels_must_match(small_mnist: Path) -> None:
    write_idx(small_mnist / "train-labels-idx1-ubyte.gz", np.zeros(3, dtype=np.uint8))
    with pytest.raises(FileFormatError, match=r"train has images \(150, 28, 28\) but labels \(3,\)"):
        load_dataset("mnist")


def test_mirrored_appends_left_right_mirror_images() -> None:
    split = Split(np.arange(12, dtype=np.uint8).reshape(2, 2, 3), np.array([4, 5]))
    both = mirrored(split)
    np.testing.assert_array_equal(both.images[2], [[2, 1, 0], [5, 4, 3]])
    np.testing.assert_array_equal(both.labels, [4, 5, 4, 5])


def test_the_command_writes_features_labels_and_the_map(small_mnist: Path, tmp_path: Path) -> None:
    out = tmp_path / "mnist.npz"
    result = CliRunner().invoke(main, ["mnist", "--wavelet", "haar", "--features", "30", "--out", str(out)])
    assert result.exit_code == 0, result.output
    features = WaveletFeatures.load(tmp_path / "mnist.features.npz")
    dataset: Dataset = load_dataset("mnist")
    with np.load(out) as arrays:
        np.testing.assert_allclose(arrays["train_features"], features.transform(dataset.train.images))
        np.testing.assert_array_equal(arrays["test_labels"], dataset.test.labels)
        assert arrays["test_features"].shape == (50, 30)


def test_the_command_narrows_mirrors_and_goes_to_three_dimensions(small_cifar: Path, tmp_path: Path) -> None:
    out = tmp_path / "cifar.npz"
    options = ["--features", "20", "--classes", "airplane,ship", "--mirror", "--dimensions", "3", "--level", "1"]
    result = CliRunner().invoke(main, ["cifar-10", *options, "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "20 of 4096 3-D haar coefficients (level 1)" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "f.csv"], "--out: expected a .npz file"),
        (["--out", "f.npz", "--features", "785"], "n_features: expected 1 to 784, found 785"),
        (["--out", "f.npz", "--wavelet", "nothing"], "wavelet: expected a discrete wavelet"),
        (["--out", "f.npz", "--classes", "0,ten"], "found ten"),
    ],
)
def test_mistakes_are_one_line(small_mnist, tmp_path, monkeypatch, options, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["mnist", *options])
    assert result.exit_code == 1
    assert message in result.output
    assert not list(tmp_path.glob("*.npz"))


@pytest.mark.parametrize(
    ("name", "shape", "mean"),
    [
        ("mnist", (60000, 28, 28), 0.1307),
        ("fashion-mnist", (60000, 28, 28), 0.2860),
        ("cifar-10", (50000, 32, 32, 3), 0.4734),
    ],
)
def test_the_whole_data_set_has_its_published_mean(name: str, shape: tuple[int, ...], mean: float) -> None:
    if source(name).find() is None:
        pytest.skip(f"{name} is not on this machine")
    dataset = load_dataset(name)
    assert dataset.train.images.shape == shape
    assert dataset.train.images.mean() / 255 == pytest.approx(mean, abs=1e-4)
    assert np.bincount(dataset.test.labels).min() > 800
