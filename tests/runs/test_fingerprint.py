"""Equal things have equal fingerprints, in this process and in others; things that differ in anything do not."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.runs.fingerprint import fingerprint
from tests.solvers.batch.nets import random_network

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def scaled(factor: float) -> Any:
    return lambda x: factor * x


@given(VALUES, VALUES)
def test_fingerprints_agree_if_and_only_if_the_things_do(a: Any, b: Any) -> None:
    assert (fingerprint(a) == fingerprint(b)) == (repr(a) == repr(b) or _same(a, b))


def _same(a: Any, b: Any) -> bool:
    """Equal in type as well: 1 is not True, and the order of a mapping does not count."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and repr(a) == repr(b)


def test_what_belongs_to_one_thing_does_not_pass_for_part_of_the_next() -> None:
    assert len({fingerprint(["ab", "c"]), fingerprint(["a", "bc"]), fingerprint(["abc"]), fingerprint("abc")}) == 4


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.zeros(3), np.zeros(3, dtype=np.float32)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (scaled(2.0), scaled(3.0)),
        (partial(np.clip, a_min=0), partial(np.clip, a_min=1)),
        (fo.solvers.Batch(), fo.solvers.Batch(max_iter=99)),
        ({1, 2}, {1, 3}),
    ],
)
def test_things_that_differ_are_told_apart(a: Any, b: Any) -> None:
    assert fingerprint(a) != fingerprint(b)
    assert fingerprint(a) == fingerprint(a)


def test_a_network_is_its_numbers_and_not_what_was_computed_from_them() -> None:
    network, same, other = random_network(0), random_network(0), random_network(1)
    before = fingerprint(network)
    fo.closest_flip_point(network, np.zeros(network.n_inputs))
    assert fingerprint(network) == before == fingerprint(same) != fingerprint(other)


def test_a_torch_module_is_told_apart_by_one_weight() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    before = fingerprint(fo.TorchNetwork(module))
    assert fingerprint(fo.TorchNetwork(module)) == before
    with torch.no_grad():
        module[0].weight[0, 0] += 1e-6
    assert fingerprint(fo.TorchNetwork(module)) != before


def test_another_process_finds_the_same_fingerprint() -> None:
    words = "import numpy as np; from flipopt.runs.fingerprint import fingerprint as f; "
    words += "print(f({'b': {1, 2, 'x'}, 'a': np.arange(3.0)}, lambda x: x + 1))"
    runs = [subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True) for _ in range(2)]
    assert runs[0].stdout == runs[1].stdout


def test_what_cannot_be_told_apart_is_refused() -> None:
    with pytest.raises(fo.InputError, match="run: expected things that can be told apart, found lock"):
        fingerprint(__import__("threading").Lock())
