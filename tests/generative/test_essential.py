"""BerOpt: derivatives, targets, what is essential, and the way without torch."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flipopt as fo
from flipopt.generative import BerOpt, Generator, essential, explore
from flipopt.generative.essential import reduced
from flipopt.generative.masking import Masking, concrete, score
from tests.generative import cases
from tests.generative.cases import LATENT, convolutional, dense, query
from tests.strategies import examples, seeds

QUICK = BerOpt(steps=80)


def one_that_counts() -> Generator:
    """The image is unit 2 of four, if that is active; of the others next to nothing."""
    from onnx import helper

    nodes = [
        helper.make_node("Gemm", ["z", "W", "b"], ["c"]),
        helper.make_node("Relu", ["c"], ["a"]),
        helper.make_node("MatMul", ["a", "V"], ["x"]),
    ]
    V = np.full((4, 3), 1e-3, dtype=np.float32)
    V[2] = 1.0
    b = np.array([1, -9, 1, 1], dtype=np.float32)
    return Generator(cases.write(nodes, {"W": np.zeros((LATENT, 4), np.float32), "b": b, "V": V}))


@pytest.mark.parametrize("estimator", ["concrete", "score"])
def test_the_unit_that_counts_is_found(estimator: str) -> None:
    found = essential(one_that_counts(), np.zeros(LATENT), 1, lam=0.1, options=BerOpt(estimator, steps=150))  # type: ignore[arg-type]
    np.testing.assert_array_equal(found.mask, [False, False, True, False])
    np.testing.assert_array_equal(found.smallest, found.mask)
    assert found.theta[1] == 0  # not active
    assert found.active == 3
    assert found.estimator == estimator
    assert found.error == pytest.approx(0.002 / 1.002, rel=1e-3)


def test_estimators_agree_with_the_exact_gradient() -> None:
    """Of three units all eight masks can be counted."""
    G, rng = one_that_counts(), np.random.default_rng(0)
    masking = Masking(G, np.zeros(LATENT), 1)
    a = np.array([0.5, -0.3, 1.0])

    def expected(a: np.ndarray) -> float:
        theta, masks = 1 / (1 + np.exp(-a)), np.array(list(np.ndindex(2, 2, 2)))
        return float((np.prod(np.where(masks, theta, 1 - theta), axis=1) * masking.errors(masks)).sum())

    steps = 1e-5 * np.eye(3)
    exact = np.array([(expected(a + step) - expected(a - step)) / 2e-5 for step in steps])
    gradients = [score(masking, 2000)(a, rng)[0] for _ in range(5)]
    np.testing.assert_allclose(np.mean(gradients, axis=0), exact, atol=0.02)
    relaxed, error = concrete(masking, 20_000, 0.01)(a, rng)
    np.testing.assert_allclose(relaxed, exact, atol=0.2 * np.abs(exact).max())
    assert error == pytest.approx(expected(a), rel=0.1)


def test_derivatives_by_masks_are_differences() -> None:
    from flipopt.generative.masking import _slopes

    G, rng = convolutional(), np.random.default_rng(1)
    masking = Masking(G, query(G), 2)
    m = rng.random((1, len(masking.active)))
    errors, slopes = _slopes(masking)(m)
    np.testing.assert_allclose(errors, masking.errors(m), rtol=1e-4)
    direction = rng.standard_normal(m.shape)
    ahead, behind = (masking.errors(m + step * direction)[0] for step in (1e-3, -1e-3))
    assert (slopes * direction).sum() == pytest.approx((ahead - behind) / 2e-3, rel=2e-2)


@pytest.mark.parametrize("layer", [1, 2])
@pytest.mark.parametrize("seed", [0, 3])
def test_the_target_error_is_reached(layer: int, seed: int) -> None:
    G = convolutional()
    z0 = query(G, seed)
    found = essential(G, z0, layer, target_error=0.15, options=QUICK)
    h, x0 = G.forward(z0, to=layer), G.forward(z0)
    assert found.success
    assert found.error <= 0.15
    for mask, error in ((found.mask, found.error), (found.smallest, found.smallest_error)):
        x = G.decode(h, frm=layer, mask=mask)
        assert error == pytest.approx(np.linalg.norm(x - x0) / np.linalg.norm(x0), rel=1e-3)
        assert not mask[h <= 0].any()
    assert found.smallest_error <= 0.15
    assert not (found.smallest & ~found.mask).any()
    assert found.mask.sum() < found.active
    assert len(found.curve) == 80
    np.testing.assert_allclose(found.curve.loss, found.curve.error + found.lam * found.curve.units)
    assert list(found.curve.to_pandas().columns) == ["loss", "error", "units"]
    assert f"{found.mask.sum()} of {found.active} active units" in str(found)


@examples(8)
@given(seeds, st.floats(0.01, 0.8))
def test_no_unit_of_the_smallest_set_can_be_removed_alone(seed: int, most: float) -> None:
    G = dense()
    masking = Masking(G, np.random.default_rng(seed).standard_normal(LATENT), 2)
    kept = reduced(masking, np.ones(len(masking.active), dtype=bool), most)
    assert masking.relative(kept[None])[0] <= most
    units = np.flatnonzero(kept)
    without = np.repeat(kept[None], len(units), axis=0)
    without[np.arange(len(units)), units] = False
    assert (masking.relative(without) > most * (1 - 1e-6)).all()


@pytest.mark.parametrize("estimator", ["concrete", "score"])
def test_masks_without_an_image_are_none(estimator: str) -> None:
    """The image is divided by the sum of the units, which is 0 of no units."""
    from onnx import helper

    nodes = [
        helper.make_node("Gemm", ["z", "W", "b"], ["c"]),
        helper.make_node("Relu", ["c"], ["a"]),
        helper.make_node("ReduceSum", ["a", "axis"], ["sum"], keepdims=1),
        helper.make_node("Div", ["a", "sum"], ["x"]),
    ]
    constants = {"W": np.zeros((LATENT, 3), np.float32), "b": np.array([1, 2, 9], np.float32), "axis": np.array([1])}
    G = Generator(cases.write(nodes, constants))
    found = essential(G, np.zeros(LATENT), 1, target_error=0.5, options=BerOpt(estimator, steps=60))  # type: ignore[arg-type]
    assert np.isfinite(found.theta).all()
    assert found.success
    np.testing.assert_array_equal(found.smallest, [False, False, True])


def test_a_larger_lambda_leaves_fewer_units() -> None:
    G = convolutional()
    counts = [essential(G, query(G), 2, lam=lam, options=QUICK).mask.sum() for lam in (1e-4, 1e-2, 1.0, 1e3)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1] == 0


def test_without_torch_forward_passes_do() -> None:
    script = (
        "import sys; sys.modules['torch'] = None\n"
        "import numpy as np, flipopt as fo\n"
        f"G = fo.generative.Generator({str(cases.dense_file())!r})\n"
        "found = fo.generative.essential(G, np.ones(6), 2, target_error=0.3, options=fo.generative.BerOpt(steps=40))\n"
        "print(found.estimator, found.success, found.mask.sum() > 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "score True True"


def test_an_operator_that_torch_has_no_form_of_leaves_the_score_function() -> None:
    from onnx import helper

    nodes = [
        helper.make_node("Gemm", ["z", "W1", "b1"], ["c"]),
        helper.make_node("Relu", ["c"], ["a"]),
        helper.make_node("MatMul", ["a", "V"], ["e"]),
        helper.make_node("ThresholdedRelu", ["e"], ["x"], alpha=0.01),
    ]
    V = np.abs(np.random.default_rng(0).standard_normal((8, 5))).astype(np.float32)
    G = Generator(cases.write(nodes, cases.dense_weights(0, (LATENT, 8)) | {"V": V}))
    found = essential(G, query(G), 1, target_error=0.3, options=BerOpt(steps=60))
    assert found.estimator == "score"
    assert found.success
    with pytest.raises(fo.FileFormatError, match="ThresholdedRelu"):
        essential(G, query(G), 1, options=BerOpt("concrete"))
    assert explore(G, query(G), 2, expansions=20).verified.all()  # in float64 by onnx's reference


def test_arguments_are_checked() -> None:
    G = dense()
    for options, message in (
        ({"lam": 1.0, "target_error": 0.1}, "expected one of the two, found both"),
        ({"lam": -1.0}, "lam: expected a number >= 0"),
        ({"options": 3}, "options: expected BerOpt, found int"),
        ({"target_error": np.nan}, "target_error: expected a number >= 0"),
    ):
        with pytest.raises(fo.InputError, match=message):
            essential(G, query(G), 1, **options)
    for options, message in (
        ({"estimator": "other"}, "estimator: expected one of auto, concrete, score"),
        ({"samples": 1}, "samples: expected a whole number >= 2"),
        ({"rate": 0.0}, "rate: expected a number > 0"),
        ({"threshold": 1.5}, "threshold: expected a number >= 0"),
    ):
        with pytest.raises(fo.InputError, match=message):
            BerOpt(**options)  # type: ignore[arg-type]
