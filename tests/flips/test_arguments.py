"""Wrong arguments of the public verbs: an InputError that names them, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flipopt as fo
from tests.solvers.batch.nets import random_network

NET = random_network(3, (4, 7, 3), fo.Erf(1.0))
X = np.array([0.1, 0.4, -0.3, 0.2])
OTHER = int((NET.predict(X) + 1) % 3)
WRONG: dict[str, list[Any]] = {
    "margin": ["a", None, -1.0, np.nan, np.inf, True, [0.1], 1j],
    "seed": [-1, 1.5, "a", None, [1, 2], True],
    "one_of": [(0, 1), [(0.0, 1.7)], 3, "ab", None, [(0,)], [(0, 0)], [(0, 9)], [(-1, 2)]],
    "norm": [3, "2", None, np.zeros(2), True, 1j],
    "outputs": ["odds", None, np.zeros(2), 1],
    "constraints": [None, 1, [1], "a"],
    "frozen": ["a", [[1], [2, 3]], [9], [0.5], -1],
    "integers": ["a", [[1], [2, 3]], [9], 1.5],
    "weights": ["a", -1.0, [1.0, 2.0], np.nan, [[1], [2, 3]]],
    "bounds": [1.0, (1.0,), (1.0, 0.0), ("a", "b"), (np.zeros(3), 1.0)],
    "starts": [0, -1, 1.5, "a", np.zeros((2, 3)), [[1], [2, 3]], None],
    "towards": ["a", np.zeros((2, 3)), [[1], [2, 3]]],
    "source": ["a", -1, 3, 1.5, True],
    "homotopy": ["a", 1.5, True],
    "solver": ["nobody", 3],
    "valid": ["a", 0.2, 1.0, None],
}
VERBS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "one": (fo.closest_flip_point, {"network": NET, "x": X}),
    "many": (fo.closest_flip_points, {"network": NET, "X": X[None]}),
}
FURTHER = {"count": [0, 1.5, None, "a"], "radius": [-1.0, "a", None, np.nan], "seed": [-1, "a"], "margin": ["a"]}
LEAST = {
    "lower": ["a", [1.0, 2.0], 2.0],
    "margin": [0.1],
    "one_of": [(0, 1)],
    "integers": [[9]],
    "outputs": [1],
    "norm": ["a"],
}


@pytest.mark.parametrize(("verb", "name"), [(verb, name) for verb in VERBS for name in WRONG])
def test_a_wrong_argument_is_named(verb: str, name: str) -> None:
    solve, arguments = VERBS[verb]
    for value in WRONG[name]:
        with pytest.raises(fo.InputError, match=f"{name}.*expected"):
            solve(**{**arguments, name: value})


@pytest.mark.parametrize("target", ["a", 3, -1, [0, 1, 2], [], [[1], [2, 3]], 1.5, True])
def test_a_wrong_target_is_named(target: Any) -> None:
    with pytest.raises(fo.InputError, match="target: expected"):
        fo.closest_flip_point(NET, X, target)


@pytest.mark.parametrize("name", FURTHER)
def test_further_flip_points_names_what_is_wrong(name: str) -> None:
    for value in FURTHER[name]:
        with pytest.raises(fo.InputError, match=f"{name}: expected"):
            fo.further_flip_points(**{"network": NET, "x": X, "target": OTHER, "count": 1, name: value})


@pytest.mark.parametrize("name", LEAST)
def test_least_change_names_what_is_wrong(name: str) -> None:
    for value in LEAST[name]:
        with pytest.raises(fo.InputError, match=f"{name}|options: expected"):
            fo.least_change(**{"network": NET, "x": X, "lower": -np.inf, "upper": 1.0, name: value})


@pytest.mark.parametrize("shape", ["a", (0,), (-1,), (3.5,), 3, (10**12,)])
def test_a_wrong_shape_of_inputs_is_named(shape: Any) -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(fo.InputError, match="input_shape"):
        fo.TorchNetwork(torch.nn.Linear(3, 3), shape)


def test_a_module_whose_number_of_classes_depends_on_the_batch_is_refused() -> None:
    torch = pytest.importorskip("torch")

    class Odd(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x[:, :3] if len(x) > 1 else x[:, :2]

    with pytest.raises(fo.InputError, match="not to depend on the rest of its batch"):
        fo.TorchNetwork(Odd(), (3,))
