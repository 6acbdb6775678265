from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.proofs.ascent import ascended, complementarity
from flipopt.proofs.instance import Instance
from flipopt.proofs.ranges import ranges_of
from flipopt.proofs.relaxation import Program
from tests.proofs.cases import distance_by_pieces, network, rescaled
from tests.strategies import examples, seeds

ORACLE = 1e-9
"""What the enumeration of pieces may be off, relative to the distance: far flips are where it is the worst."""


def instance_of(net: fo.DenseNetwork, x: np.ndarray) -> Instance:
    n = net.n_inputs
    return Instance.of(net, x, int(net.predict(x)), np.ones(n), np.ones(n, dtype=bool))


def assert_true(proof: fo.proofs.Proof, true: float) -> None:
    assert proof.lower <= true * (1 + ORACLE)
    assert proof.upper >= true * (1 - ORACLE)
    if true < np.inf:
        assert proof.proved
        assert proof.lower >= true * (1 - 2e-6)


@examples(20)
@given(seeds, st.sampled_from([(1, 3, 2), (2, 4, 3), (3, 3, 3, 2), (2, 2, 2, 2, 3)]), st.sampled_from([0.0, 0.3, 1.5]))
def test_bounds_agree_with_the_enumeration_of_all_pieces(seed: int, widths: tuple[int, ...], alpha: float) -> None:
    net, x = network(seed, widths, alpha), np.random.default_rng(seed).standard_normal(widths[0])
    assert_true(fo.proofs.prove(net, x), distance_by_pieces(net, x))


@examples(6)
@given(seeds)
def test_weights_and_frozen_features_are_those_of_the_distance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    net, x, weights = network(seed, (3, 4, 3)), rng.standard_normal(3), np.exp(2 * rng.standard_normal(3))
    free = np.array([True, seed % 2 == 0, True])
    proof = fo.proofs.prove(net, x, weights=weights, frozen=~free)
    assert_true(proof, distance_by_pieces(net, x, weights, free))
    if proof.proved:
        assert (proof.x[~free] == x[~free]).all()


@examples(6)
@given(seeds, st.lists(st.floats(-8, 8), min_size=4, max_size=4))
def test_layers_of_very_different_size_change_nothing(seed: int, powers: list[float]) -> None:
    net, x = network(seed, (3, 4, 3, 3)), np.random.default_rng(seed).standard_normal(3)
    other = rescaled(net, [*(10.0**power for power in powers[:3])])
    proof = fo.proofs.prove(net, x)
    again = fo.proofs.prove(other, x, flip=proof.x if proof.proved else None)
    if proof.proved:
        assert again.proved
        assert again.lower == pytest.approx(proof.lower, rel=2e-6)
    true = distance_by_pieces(net, x)
    assert again.lower <= true * (1 + ORACLE)


def test_a_linear_classifier_is_proved_at_once() -> None:
    net = fo.DenseNetwork([np.array([[3.0, 0.0], [4.0, 0.0]])], [np.array([0.0, 1.0])])
    proof = fo.proofs.prove(net, np.array([1.0, 1.0]))
    assert proof.proved
    assert proof.lower == pytest.approx(6 / 5)
    assert proof.classes == (0, 1)


def test_a_point_where_classes_tie_is_its_own_flip() -> None:
    net = fo.DenseNetwork([np.array([[1.0, -1.0]])], [np.zeros(2)])
    proof = fo.proofs.prove(net, np.zeros(1))
    assert (proof.lower, proof.upper, proof.proved) == (0.0, 0.0, True)


def test_a_network_without_a_flip_is_proved_free_of_them_far_out() -> None:
    net = fo.DenseNetwork(
        [np.eye(2), np.array([[1.0, 0.0], [1.0, 0.0]])], [np.zeros(2), np.array([1.0, 0.0])], fo.ReLU()
    )
    proof = fo.proofs.prove(net, np.array([0.5, 0.5]))
    assert not proof.proved
    assert proof.upper == np.inf
    assert proof.lower > 1000
    assert np.isnan(proof.x).all()


@pytest.mark.parametrize(("seed", "widths"), [(0, (3, 6, 4)), (13, (2, 4, 3)), (6, (3, 5, 4, 3)), (50, (3, 5, 4, 3))])
def test_without_biases_classes_tie_where_no_neuron_is_active(seed: int, widths: tuple[int, ...]) -> None:
    net, rng = network(seed, widths, bias=0.0), np.random.default_rng(seed)
    kink = net.weights[0][:, 0]
    for x in rng.standard_normal((3, widths[0])):
        for point in (x, x - (1 - 1e-6) * (x @ kink) / (kink @ kink) * kink):
            assert_true(fo.proofs.prove(net, point), distance_by_pieces(net, point))


def test_classes_that_touch_and_do_not_cross_tie() -> None:
    net = fo.DenseNetwork([np.array([[1.0, -1.0]]), np.array([[1.0, 0.0], [1.0, 0.0]])], [np.zeros(2)] * 2, fo.ReLU())
    proof = fo.proofs.prove(net, np.array([0.75]))
    assert (proof.proved, proof.classes) == (True, (0, 1))
    assert proof.upper == pytest.approx(0.75)


def test_what_rounding_leaves_open_is_said() -> None:
    net, x = network(101, (2, 4, 3), bias=0.0), np.random.default_rng(101).standard_normal(2)
    kink = net.weights[0][:, 0]
    x -= (1 - 1e-13) * (x @ kink) / (kink @ kink) * kink
    proofs = [fo.proofs.prove(net, x * (1 + k * 2.0**-50)) for k in range(4)]
    for proof in proofs:
        assert proof.lower <= proof.upper
        assert proof.proved or "the rest is rounding" in proof.message


def test_a_far_flip_gives_way_to_a_nearer_one() -> None:
    net, x = network(5, (2, 4, 3, 3)), np.random.default_rng(5).standard_normal(2)
    true = distance_by_pieces(net, x)
    rays = np.stack([np.cos(np.linspace(0, 6.28, 50)), np.sin(np.linspace(0, 6.28, 50))], axis=1)
    ends = x + 5 * true * rays
    far = ends[net.predict(ends) != net.predict(x)][0]
    proof = fo.proofs.prove(net, x, flip=far)
    assert_true(proof, true)


def test_without_time_the_bounds_are_true_all_the_same() -> None:
    shipped = fo.load_shipped("mnist-fcn")
    whole = fo.proofs.prove(shipped.network, shipped.X[3])
    some = fo.proofs.prove(shipped.network, shipped.X[3], seconds=0)
    core = fo.proofs.prove(shipped.network, shipped.X[3], seconds=0, effort=fo.proofs.Effort(core_seconds=True))
    assert (core.lower, core.proved) == (some.lower, False)
    assert whole.proved
    assert not some.proved
    assert 0 < some.lower <= whole.upper
    assert some.upper >= whole.lower
    assert "between" in some.message
    assert (np.diff(whole.history[:, 1]) >= 0).all()
    assert (np.diff(whole.history[:, 2]) <= 0).all()


def test_shipped_images_are_proved() -> None:
    shipped = fo.load_shipped("mnist-fcn")
    flips = fo.closest_flip_points(shipped.network, shipped.X[:6])
    table = fo.proofs.prove_many(shipped.network, shipped.X[:6], flips=flips)
    assert table.proved.all()
    assert (table.upper <= flips.distance * (1 + 1e-8)).all()
    assert (table.lower >= table.upper * (1 - 1e-6)).all()
    assert (fo.bounds.lower(shipped.network, shipped.X[:6]) <= table.upper).all()


def test_the_radius_of_a_ball_only_loosens_ranges_and_leads() -> None:
    net, x = network(7, (3, 5, 4, 3)), np.zeros(3)
    instance = instance_of(net, x)
    signs = tuple(np.zeros(width, dtype=np.int8) for width in instance.widths)
    small, large = (ranges_of(instance, r, signs, instance.rounding(r)) for r in (0.5, 1.0))
    assert small is not None
    assert large is not None
    for one, other in zip(small.layers, large.layers):
        assert (one.low >= other.low).all()
        assert (one.high <= other.high).all()
    assert (small.leads >= large.leads).all()


@given(seeds)
def test_ranges_hold_at_points_of_the_ball(seed: int) -> None:
    net, rng = network(seed, (3, 5, 4, 3), alpha=0.2), np.random.default_rng(seed)
    x = rng.standard_normal(3)
    instance = instance_of(net, x)
    signs = tuple(np.zeros(width, dtype=np.int8) for width in instance.widths)
    ranges = ranges_of(instance, 0.7, signs, instance.rounding(0.7))
    assert ranges is not None
    D = rng.standard_normal((200, 3))
    D *= 0.7 / np.linalg.norm(D, axis=1, keepdims=True)
    *hidden, Y = net.pre_activations(x + D)
    for layer, c in zip(ranges.layers, hidden):
        assert (layer.low <= c).all()
        assert (c <= layer.high).all()
    leads = Y[:, [instance.source]] - Y[:, instance.others]
    assert (ranges.leads <= leads).all()


def test_the_slope_of_the_relaxation_in_tau_is_the_complementarity() -> None:
    shipped = fo.load_shipped("mnist-fcn")
    net, x = shipped.network.in_float64, shipped.X[1].astype(float)
    instance, radius = instance_of(net, x), 0.55
    signs = tuple(np.zeros(width, dtype=np.int8) for width in instance.widths)
    ranges = ranges_of(instance, radius, signs, instance.rounding(radius))
    assert ranges is not None
    program = Program.of(instance, ranges, signs, 0)
    at = ascended(program, 4, np.inf, None)
    assert at is not None
    assert at.z is not None
    slope, way = complementarity(program, at.z), at.of.tau * np.cos(np.arange(len(at.of.tau)))
    step = 1e-4
    values = []
    for sign in (1, -1):
        of = program.definite(at.of.tau + sign * step * way)
        assert of is not None
        values.append(program.proved(of, program.solved(of)[0]))
    assert (values[0] - values[1]) / (2 * step) == pytest.approx(slope @ way, rel=1e-3)


def test_no_multipliers_prove_more_than_there_is() -> None:
    rng = np.random.default_rng(11)
    net, x = network(11, (2, 4, 3, 3)), rng.standard_normal(2)
    true, instance = distance_by_pieces(net, x), instance_of(net, x)
    radius = 1.5 * true
    signs = tuple(np.zeros(width, dtype=np.int8) for width in instance.widths)
    ranges = ranges_of(instance, radius, signs, instance.rounding(radius))
    assert ranges is not None
    programs = [Program.of(instance, ranges, signs, lead) for lead in range(2)]
    best = [0.0, 0.0]
    for _ in range(300):
        for lead, program in enumerate(programs):
            of = program.definite(10 ** rng.uniform(-6, 0, len(program.neurons)))
            lam = rng.exponential(size=len(program.b)) * (rng.random(len(program.b)) < 0.3)
            if of is not None:
                best[lead] = max(best[lead], program.proved(of, lam), program.proved(of, program.solved(of)[0]))
            assert not program.proved_empty(lam)
    assert 0 < min(best) <= (true / radius) ** 2 / 2


def test_a_row_that_fails_costs_the_others_nothing() -> None:
    net = network(1, (2, 4, 3, 3))
    X = np.random.default_rng(1).standard_normal((4, 2))
    X[2, 1] = np.nan
    table = fo.proofs.prove_many(net, X)
    assert np.isnan(table.lower[2])
    assert "found nan at index 1" in table.message[2]
    others = [0, 1, 3]
    alone = [fo.proofs.prove(net, x) for x in X[others]]
    assert table.lower[others] == pytest.approx([proof.lower for proof in alone])
    assert "of 4 closest flips are proved" in table.summary()


def test_a_run_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    net, X = network(1, (2, 4, 3, 3)), np.random.default_rng(2).standard_normal((5, 2))
    first = fo.proofs.prove_many(net, X, run=tmp_path / "run")
    again = fo.proofs.prove_many(net, X, run=tmp_path / "run")
    assert (again.seconds == first.seconds).all()
    assert again.x.shape == X.shape
    assert (again.message == first.message).all()
    with pytest.raises(fo.StorageError, match="tol"):
        fo.proofs.prove_many(net, X, run=tmp_path / "run", tol=1e-3)


def test_no_rows_are_no_proofs() -> None:
    table = fo.proofs.prove_many(network(1), np.empty((0, 2)))
    assert len(table) == 0
    assert table.summary() == "No inputs."


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"bounds": (1, 2)}, "x: expected a point within the bounds, found 0 at index 0"),
        ({"bounds": (1, 0)}, "bounds"),
        ({"tol": 0.0}, "tol: expected"),
        ({"seconds": -1.0}, "seconds: expected"),
        ({"frozen": [True, True]}, "frozen: expected at least one feature"),
        ({"flip": [1.0]}, "flip: expected shape"),
    ],
)
def test_what_is_not_supported_is_an_error(options: dict, words: str) -> None:
    with pytest.raises(fo.FlipoptError, match=words):
        fo.proofs.prove(network(1), np.zeros(2), **options)


def test_other_activations_are_refused() -> None:
    net = fo.DenseNetwork([np.eye(2), np.eye(2)], [np.zeros(2)] * 2, fo.Erf(1.0))
    with pytest.raises(fo.InputError, match="found Erf in layer 1"):
        fo.proofs.prove(net, np.ones(2))
