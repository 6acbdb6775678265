from __future__ import annotations

import numpy as np
import pytest

import flipopt as fo
from flipopt.shipped import SHIPPED

# What each report must show at least; cifar-2500 is trained by the same command but too large to ship.
LEAST = {
    "mnist-net1": {"second half": 97.0, "test": 97.5},
    "mnist-net2": {"first half": 97.0, "test": 97.5},
    "cifar-200": {"test": 83.0},
}


@pytest.mark.parametrize("name", SHIPPED)
def test_networks_come_with_images_labels_features_and_a_report(name: str) -> None:
    shipped = fo.load_shipped(name)
    assert shipped.network.dtype == np.float32
    assert shipped.X.shape == (200, shipped.network.n_inputs)
    assert shipped.images.shape == (200, *shipped.features.shape)
    assert len(shipped.classes) == shipped.network.n_classes
    accuracy = shipped.report["accuracy_percent"]
    assert all(accuracy[split] >= least for split, least in LEAST[name].items())
    assert shipped.report["published_percent"].keys() <= accuracy.keys()
    # 200 images estimate the accuracy to within about 2.6 (MNIST) and 6.7 (CIFAR-10) percent at 2.5 deviations.
    right = 100 * np.mean(shipped.network.predict(shipped.X) == shipped.labels)
    assert right == pytest.approx(accuracy["test"], abs=2.6 if name.startswith("mnist") else 6.7)


def test_an_unknown_name_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(fo.InputError, match="name: expected one of mnist-net1, mnist-net2, cifar-200, found 'net1'"):
        fo.load_shipped("net1")
