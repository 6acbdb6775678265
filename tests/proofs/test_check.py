from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import flipopt as fo
from benchmarks.proofs_soundness import accepts, distance_of, mutated
from flipopt.proofs import check
from tests.proofs.cases import distance_by_pieces, network

Arrays = dict[str, np.ndarray]


def saved(path: Path, seed: int, widths: tuple[int, ...] = (3, 5, 4, 3), **options: np.ndarray) -> fo.DenseNetwork:
    net, x = network(seed, widths), np.random.default_rng(seed).standard_normal(widths[0])
    fo.proofs.prove(net, x, **options).save(path)
    return net


def arrays(path: Path) -> Arrays:
    with np.load(path) as file:
        return dict(file)


def branched(folder: Path, count: int) -> list[tuple[fo.DenseNetwork, Path]]:
    """Proofs whose trees have nodes that are split."""
    found = []
    for seed in range(100):
        path = folder / f"{seed}.npz"
        net = saved(path, seed)
        if len(arrays(path)["parent"]) > 6:
            found.append((net, path))
        if len(found) == count:
            break
    return found


def test_the_checker_imports_nothing_of_the_search() -> None:
    file = Path(fo.proofs.check.__code__.co_filename)
    found = {name: imported_by(file.with_name(f"{name}.py")) for name in ("check", "saved")}
    assert "flipopt.networks.dense" in found["check"]
    assert {name for name in found["check"] if name.startswith(("flipopt.proofs", "flipopt.bounds"))} == {
        "flipopt.proofs.saved"
    }
    assert not {name for name in found["saved"] if name.startswith(("flipopt.proofs", "flipopt.bounds"))}


def imported_by(file: Path) -> set[str]:
    return {node.module or "" for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)}


def test_proofs_of_small_networks_are_accepted_and_true(tmp_path: Path) -> None:
    accepted = 0
    for seed in range(15):
        path = tmp_path / f"{seed}.npz"
        net = saved(path, seed, (2, 4, 3, 3))
        checked = check(net, path)
        assert checked.accepted, checked.why
        assert checked.lower <= distance_by_pieces(net, checked.x) * (1 + 1e-9)
        accepted += 1
    assert accepted == 15


def test_weights_and_frozen_features_are_a_part_of_the_proof(tmp_path: Path) -> None:
    path, weights, frozen = tmp_path / "proof.npz", np.array([1.0, 9.0, 0.2]), np.array([False, False, True])
    net = saved(path, 4, weights=weights, frozen=frozen)
    assert check(net, path)
    proof = arrays(path)
    assert proof["lower"] <= distance_by_pieces(net, proof["x"], weights, ~frozen)
    assert not accepts(net, path, proof | {"free": np.ones(3, dtype=bool)})
    assert not accepts(net, path, proof | {"weights": weights / 2})


def test_an_image_is_accepted_and_no_other(tmp_path: Path) -> None:
    shipped, path = fo.load_shipped("mnist-fcn"), tmp_path / "proof.npz"
    proof = fo.proofs.prove(shipped.network, shipped.X[0])
    proof.save(path)
    checked = check(shipped.network, path)
    assert checked
    assert checked.lower >= proof.upper * (1 - 2e-6)
    assert "accepted: no flip within 0.15862" in str(checked)
    assert not accepts(shipped.network, path, arrays(path) | {"x": shipped.X[1].astype(float)})


def test_an_unfinished_search_proves_its_lower_bound(tmp_path: Path) -> None:
    shipped, path = fo.load_shipped("mnist-fcn"), tmp_path / "proof.npz"
    proof = fo.proofs.prove(shipped.network, shipped.X[3], seconds=0)
    proof.save(path)
    checked = check(shipped.network, path)
    assert checked.accepted
    assert checked.lower == pytest.approx(proof.lower)
    assert not proof.proved


@pytest.mark.parametrize("bounded", [False, True])
def test_mutants_are_rejected_or_true(bounded: bool, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for seed in range(1, 100):
        path, rng = tmp_path / "proof.npz", np.random.default_rng(seed)
        net, x = network(seed, (3, 5, 4, 3)), rng.standard_normal(3)
        fo.proofs.prove(net, x, bounds=(x - 3, x + 3) if bounded else None).save(path)
        if len(arrays(path)["lam"]) == 0:  # ranges alone prove it
            continue
        for name, other, mutant in mutated(net, arrays(path), rng):
            if accepts(other, path, mutant):
                assert mutant["lower"] <= distance_of(other, mutant) * (1 + 1e-9), name
                counts["accepted"] += 1
            counts["mutants"] += 1
        if counts["mutants"] == 40:
            break
    assert counts["mutants"] == 40
    assert counts["accepted"] < 10


def test_what_is_accepted_is_true_whatever_was_changed(tmp_path: Path) -> None:
    (net, path), *_ = branched(tmp_path, 1)
    proof, rng = arrays(path), np.random.default_rng(0)
    taken, true = 0, distance_by_pieces(net, proof["x"])
    for _ in range(100):
        name = str(rng.choice(["lam", "tau", "radius", "x", "lower"]))
        values = np.atleast_1d(proof[name]).astype(float).copy()
        values[rng.integers(len(values))] *= 1 + 10.0 ** rng.uniform(-9, -1) * rng.choice([-1, 1])
        mutant = proof | {name: values.reshape(proof[name].shape)}
        if accepts(net, tmp_path / "mutant.npz", mutant):
            taken += 1
            here = distance_by_pieces(net, mutant["x"]) if name == "x" else true
            assert mutant["lower"] <= here * (1 + 1e-9)
    assert taken > 0


def test_a_network_that_is_another_is_not_what_was_proved(tmp_path: Path) -> None:
    path = tmp_path / "proof.npz"
    net = saved(path, 2)
    assert check(net, path)
    assert not check(network(3, (3, 5, 4, 3)), path)
    with pytest.raises(fo.FileFormatError, match="x: expected 2 entries, found 3"):
        check(network(3, (2, 5, 4, 3)), path)
    with pytest.raises(fo.InputError, match="expected a dense network"):
        check(net.with_activations(fo.Erf(1.0)), path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": np.array(3)}, "version: expected 1 or 2"),
        ({"version": np.array(2)}, "lacks a list floor or floors"),
        ({"parent": np.zeros((2, 2), dtype=int)}, "parent: expected a list"),
        ({"lower": np.zeros(3)}, "lower: expected a number"),
        ({"lam": np.array([np.inf])}, "holds NaN or infinity"),
        ({"taus": np.array([-1, 2])}, "taus: expected"),
    ],
)
def test_a_file_that_is_no_proof_is_an_error(tmp_path: Path, change: Arrays, words: str) -> None:
    path = tmp_path / "proof.npz"
    net = saved(path, 2)
    np.savez(path, **(arrays(path) | change))
    with pytest.raises(fo.FileFormatError, match=words):
        check(net, path)
    lacking = arrays(path)
    del lacking["radius"]
    np.savez(path, **lacking)
    with pytest.raises(fo.FileFormatError, match="lacks radius"):
        check(net, path)


def test_a_proof_without_a_tree_is_not_saved(tmp_path: Path) -> None:
    net = fo.DenseNetwork([np.array([[1.0, -1.0]])], [np.zeros(2)])
    with pytest.raises(fo.FlipoptError, match="there is no tree to save"):
        fo.proofs.prove(net, np.zeros(1)).save(tmp_path / "proof.npz")
