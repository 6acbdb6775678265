"""How each network is trained: data, features, architecture, optimiser, and what its paper reports.

The settings of the two dense CIFAR-10 recipes (augmentation, dropout, wavelet level, epochs) were chosen on a part of
the training set: ``python -m benchmarks reproduce 001-settings`` has the candidates and their accuracies. Those of
mnist-net1 and mnist-net2 were fixed beforehand. Those of the two fcn and the four deepdig recipes are their paper's
own, except for two things: it says nothing of the initial weights, which are Xavier's in the dense networks, as in the
other dense ones, and torch's in the others; and the two for CIFAR-10 are trained with products in bfloat16, to save
time.
mnist-cnn, cifar-resnet8 and mnist-vit are no paper's: they are small ones of the kinds in everyday use. Each was
trained once with these settings; before that, one shorter trial a network had shown its accuracy on the test set.
mnist-2x100 and the three after it are for proofs (flipopt.proofs), with hidden layers of equal widths. They were
trained once, with the settings that a recipe has by default.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MNIST_HIDDEN = (500, 500, 500, 400, 300, 250, 250, 250, 200, 150, 150, 100)


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a trained network, apart from the seed."""

    name: str
    """What ``python -m models train`` calls it."""
    paper: str
    """Where the network comes from."""
    dataset: str
    """mnist, fashion-mnist or cifar-10."""
    features: int | None
    """Wavelet coefficients, chosen by pivoted QR of the training images; None: the pixels themselves, in [0, 1]."""
    hidden: tuple[int, ...]
    """Neurons of the hidden layers."""
    published: dict[str, float]
    """Accuracies in percent that the paper reports, by the name of the set."""
    architecture: str | None = None
    """One of models.image_networks, in place of a dense network with layers ``hidden``."""
    activation: str = "erf"
    """Of the hidden layers: erf, with one trained sigma a layer, or relu."""
    classes: tuple[str, ...] | None = None
    """Keep only these classes, relabelled in this order."""
    validation: float = 0.0
    """Share of the training set, the last of it, that is kept to choose settings on: the test set is not looked at."""
    half: int | None = None
    """Train on the first (0) or second (1) half of the training set, and report both."""
    mirror: bool = False
    """Choose the features on the images and their left-right mirror images."""
    wavelet_dimensions: int = 2
    wavelet_level: int | None = None
    """None: the deepest level without extra coefficients."""
    standardise: str = "none"
    """Inputs for training: none, each feature by its own deviation, or all by a common one."""
    shift_pixels: int = 0
    """Augmentation: every image is moved by up to this many pixels, and mirrored half of the time."""
    dropout: float = 0.0
    weight_decay: float = 0.0
    learning_rate: float = 1e-3
    """Of Adam: the peak of a one-cycle schedule, or with ``decay`` the first."""
    decay: float | None = None
    """Factor on the learning rate after every 100 steps, in place of the one-cycle schedule."""
    batch: int = 128
    epochs: int = 12
    precision: str = "float32"
    """Of the products while it is trained: float32, or bfloat16 by autocast. The weights are float32 all the same."""


def _recipes(*recipes: Recipe) -> dict[str, Recipe]:
    return {recipe.name: recipe for recipe in recipes}


def _deepdig(name: str, dataset: str, row: str, test: float, **network: Any) -> Recipe:
    """A classifier of Table 1, trained as section 5.1 says; ``test`` is its published accuracy."""
    return Recipe(
        name=name,
        paper=f"Karimi, Derr and Tang 2019, section 5.1 and Table 1, {row}",
        dataset=dataset,
        features=None,
        learning_rate=0.01,
        decay=0.99,
        batch=64,
        epochs=40,
        published={"test": test},
        **network,
    )


def _dense(depth: int, width: int) -> Recipe:
    """A ReLU network on the pixels of MNIST with equally wide layers, as they are usual in papers on verification."""
    return Recipe(
        name=f"mnist-{depth}x{width}",
        paper="none: hidden ReLU layers of equal widths",
        dataset="mnist",
        features=None,
        hidden=(width,) * depth,
        activation="relu",
        published={},
    )


FCN: dict[str, Any] = {"hidden": (50, 50), "activation": "relu"}
RECIPES: dict[str, Recipe] = _recipes(
    Recipe(
        name="mnist-net1",
        paper="Yousefzadeh and O'Leary 2020, section 6.1, NET1",
        dataset="mnist",
        features=100,
        hidden=MNIST_HIDDEN,
        half=0,
        published={"first half": 100.0, "second half": 97.62, "test": 97.98},
    ),
    Recipe(
        name="mnist-net2",
        paper="Yousefzadeh and O'Leary 2020, section 6.1, NET2",
        dataset="mnist",
        features=100,
        hidden=MNIST_HIDDEN,
        half=1,
        published={"first half": 97.56, "second half": 100.0, "test": 97.64},
    ),
    _deepdig("mnist-fcn", "mnist", "FCN on MNIST", 97.57, **FCN),
    _deepdig("fashion-fcn", "fashion-mnist", "FCN on FashionMNIST", 88.24, **FCN),
    _deepdig("deepdig-mnist-cnn", "mnist", "CNN on MNIST", 98.75, hidden=(), architecture="deepdig-cnn"),
    _deepdig(
        "deepdig-fashion-cnn", "fashion-mnist", "CNN on FashionMNIST", 89.11, hidden=(), architecture="deepdig-cnn"
    ),
    _deepdig(
        "deepdig-cifar-resnet34",
        "cifar-10",
        "ResNet on CIFAR10",
        82.68,
        hidden=(),
        architecture="resnet34",
        precision="bfloat16",
    ),
    _deepdig(
        "deepdig-cifar-googlenet",
        "cifar-10",
        "GoogleNet on CIFAR10",
        84.71,
        hidden=(),
        architecture="googlenet",
        precision="bfloat16",
    ),
    Recipe(
        name="cifar-200",
        paper="Yousefzadeh and O'Leary 2019, section 3",
        dataset="cifar-10",
        classes=("airplane", "ship"),
        features=200,
        hidden=(700, 600, 510, 440, 375, 325, 285, 250, 215, 160, 100, 40),
        wavelet_dimensions=3,
        standardise="each",
        shift_pixels=3,
        dropout=0.15,
        weight_decay=0.01,
        epochs=80,
        published={"test": 84.05},
    ),
    Recipe(
        name="cifar-2500",
        paper="Yousefzadeh and O'Leary 2020, section 6.2",
        dataset="cifar-10",
        classes=("airplane", "ship"),
        features=2500,
        hidden=(1000, 500, 455, 410, 365, 320, 275, 230, 185, 140, 95, 50),
        mirror=True,
        standardise="common",
        shift_pixels=3,
        dropout=0.2,
        weight_decay=0.01,
        epochs=100,
        published={"test": 85.75},
    ),
    Recipe(
        name="mnist-cnn",
        paper="none: two times convolution, batch norm, ReLU and max-pooling, then two dense layers",
        dataset="mnist",
        features=None,
        hidden=(),
        architecture="cnn",
        learning_rate=0.01,
        weight_decay=0.01,
        epochs=4,
        published={},
    ),
    Recipe(
        name="cifar-resnet8",
        paper="after He, Zhang, Ren and Sun 2016, section 4.2, with one block a stage",
        dataset="cifar-10",
        features=None,
        hidden=(),
        architecture="resnet8",
        shift_pixels=3,
        learning_rate=0.01,
        weight_decay=0.01,
        epochs=5,
        published={},
    ),
    Recipe(
        name="mnist-vit",
        paper="after Dosovitskiy et al. 2021, with patches of 7 x 7, 3 blocks and width 48",
        dataset="mnist",
        features=None,
        hidden=(),
        architecture="vit",
        learning_rate=0.003,
        weight_decay=0.01,
        epochs=8,
        published={},
    ),
    *(_dense(depth, width) for depth, width in ((2, 100), (3, 100), (4, 50), (2, 200))),
)
