"""What numbers at the ends of their range, and strangers' files, must not make the search or the checker believe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flipopt as fo
from tests.proofs.cases import distance_by_pieces, network, rescaled

TINY_SCALES = (1e-140, 1e-160, 1e-170, 1e-200, 1e-300)


def two_sided(scale: float) -> fo.DenseNetwork:
    """Of one number d: the lead of class 0 is 1 - max(d, 0) / 3 - max(-d, 0), with flips at 3 and -1."""
    first, second = np.array([[scale, -scale]]), np.array([[0.0, 1 / scale / 3], [0.0, 1 / scale]])
    return fo.DenseNetwork([first, second], [np.zeros(2), np.array([1.0, 0.0])], fo.ReLU())


def leaves_only(net: fo.DenseNetwork, x: np.ndarray, lower: float, **others: Any) -> dict[str, Any]:
    """A file with a leaf for each other class, without multipliers, that claims ``lower``."""
    source = int(net.predict(x))
    target = np.delete(np.arange(net.n_classes), source)
    k, none = len(target), np.zeros(0, dtype=np.int64)
    file = {
        "version": np.array(1), "x": x, "source": np.array(source), "target": target, "parent": np.full(k, -1),
        "neuron": np.full(k, -1), "sign": np.zeros(k, dtype=np.int64), "leaf": np.ones(k, dtype=bool),
        "taus": np.zeros(k, dtype=np.int64), "lams": np.zeros(k, dtype=np.int64), "neurons": none, "rows": none,
        "tau": np.zeros(0), "lam": np.zeros(0), "lower": np.array(lower), "radius": np.full(k, lower),
        "weights": np.ones(len(x)), "free": np.ones(len(x), dtype=bool),
    }  # fmt: skip
    return file | others


@pytest.mark.parametrize("scale", TINY_SCALES)
def test_norms_that_underflow_prove_nothing(scale: float, tmp_path: Path) -> None:
    net, x = two_sided(scale), np.zeros(1)
    proof = fo.proofs.prove(net, x, flip=np.array([3.0]), seconds=1)
    assert proof.lower <= 1 + 1e-9
    assert not proof.proved or proof.upper == pytest.approx(1)
    np.savez(tmp_path / "claim.npz", **leaves_only(net, x, 2.5))
    assert not fo.proofs.check(net, tmp_path / "claim.npz")


def test_a_claim_whose_square_underflows_is_refused(tmp_path: Path) -> None:
    net = fo.DenseNetwork([np.eye(1), np.array([[0.0, 1.0]])], [np.zeros(1), np.array([1e-180, 0.0])], fo.ReLU())
    np.savez(tmp_path / "claim.npz", **leaves_only(net, np.zeros(1), 1e-165))
    found = fo.proofs.check(net, tmp_path / "claim.npz")
    assert not found
    assert "underflow" in found.why
    assert fo.proofs.prove(net, np.zeros(1), flip=np.array([1e-179]), seconds=1).lower <= 1e-180


@pytest.mark.parametrize("exponent", [80, 100, 150])
def test_layers_of_wildly_different_scales(exponent: int) -> None:
    net, x = network(11), np.random.default_rng(11).standard_normal(2)
    true = distance_by_pieces(net, x)
    other = rescaled(net, [10.0**-exponent, 1, 10.0**exponent])
    assert 0 <= fo.bounds.lower(other, x) <= true * (1 + 1e-9)
    assert fo.proofs.prove(other, x, seconds=1).lower <= true * (1 + 1e-9)


def test_the_verdict_says_whose_distance_it_is(tmp_path: Path) -> None:
    net, x, path = network(1), np.random.default_rng(1).standard_normal(2), tmp_path / "claim.npz"
    np.savez(path, **leaves_only(net, x, 1e6, free=np.zeros(2, dtype=bool)))
    found = fo.proofs.check(net, path)
    assert found
    assert not found.free.any()
    assert "2 of 2 features frozen" in str(found)
    np.savez(path, **leaves_only(net, x, 1e15, weights=np.full(2, 1e40)))
    found = fo.proofs.check(net, path)
    assert found
    assert (found.weights == 1e40).all()
    assert "weights" in str(found)


def test_half_precision_in_a_file_is_read_exactly(tmp_path: Path) -> None:
    net = fo.DenseNetwork([np.eye(1), np.array([[0.0, 1.0]])], [np.array([100.0]), np.array([101.0, 0.0])], fo.ReLU())
    weight = max(np.arange(1, 2048, dtype=np.float16), key=lambda w: float(np.sqrt(w)) / float(w) ** 0.5)
    path = tmp_path / "proof.npz"
    fo.proofs.prove(net, np.zeros(1), weights=np.array([float(weight)])).save(path)
    with np.load(path) as kept:
        file = dict(kept)
    gain = 1 + 0.9 * (float(np.sqrt(weight)) / float(weight) ** 0.5 - 1)  # what a root in half precision would allow
    assert gain > 1.0001
    for factor in (1, gain, gain**2, 1 / gain):
        changed = {"lower": file["lower"] * gain, "radius": file["radius"] * gain, "lam": file["lam"] * factor}
        np.savez(path, **(file | changed | {"weights": file["weights"].astype(np.float16)}))
        assert not fo.proofs.check(net, path)


def test_flips_of_another_problem_are_not_called_proved() -> None:
    net, X, weights = network(1), np.random.default_rng(1).standard_normal((1, 2)), np.array([4.0, 4.0])
    with pytest.raises(fo.InputError, match="with these weights"):
        fo.proofs.prove_flips(net, X, fo.closest_flip_points(net, X, weights=weights), seconds=5)
    plain = fo.closest_flip_points(net, X)
    with pytest.raises(fo.InputError, match="with these weights"):
        fo.proofs.prove_flips(net, X, plain, seconds=5, weights=weights)
    with pytest.raises(fo.InputError, match="frozen feature"):
        fo.proofs.prove_flips(net, X, plain, seconds=5, frozen=[0])
    assert fo.proofs.prove_flips(net, X, plain, seconds=5).proved.all()
