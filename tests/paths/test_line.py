"""One line."""

from __future__ import annotations

import numpy as np
import pytest

import flipopt as fo
from tests.cases import disc, linear, moons


def test_both_ends_are_met_exactly_and_alphas_go_beyond() -> None:
    a, b = np.array([0.1, 0.7]), np.array([1.3, -0.2])
    line = fo.paths.Line(moons(), a, b, beyond=0.25)
    np.testing.assert_array_equal(line.at(0.0), a)
    np.testing.assert_array_equal(line.at(1.0), b)
    np.testing.assert_allclose(line.at([0.5, -0.25]), [(a + b) / 2, a - (b - a) / 4])
    alphas = line.alphas(7)
    assert (alphas[0], alphas[-1], len(alphas)) == (-0.25, 1.25, 7)
    assert len(line.alphas()) == 201
    assert line.length == pytest.approx(1.5)
    assert "length 1.5" in repr(line)


def test_outputs_are_the_networks() -> None:
    net = moons()
    line = fo.paths.Line(net, [0.0, 0.0], [1.0, 1.0])
    X = line.at(line.alphas(11))
    np.testing.assert_array_equal(line.logits(11), net.logits(X))
    np.testing.assert_allclose(line.probabilities(11), net.probabilities(X), rtol=1e-12)
    assert line.probabilities().shape == (201, 2)


def test_crossings_of_a_line_are_those_of_many() -> None:
    line = fo.paths.Line(linear(np.array([1.0, 0.0]), -2.0), [0.0, 0.0], [1.0, 0.0], beyond=1.5)
    assert line.crossings().alpha == pytest.approx([2.0])
    assert fo.paths.Line(disc(1.0), [0.0, 0.0], [2.0, 0.0]).crossings(mode="adaptive").alpha == pytest.approx([0.5])


def test_bad_lines_are_refused() -> None:
    net = linear(np.ones(2))
    for a, b, why in [
        (np.zeros((2, 2)), np.ones(2), "a: expected one point"),
        (np.zeros(2), np.ones(3), "b: expected shape"),
        (np.zeros(2), np.zeros(2), "same point twice"),
    ]:
        with pytest.raises(fo.InputError, match=why):
            fo.paths.Line(net, a, b)
    with pytest.raises(fo.InputError, match="points: expected a whole number >= 2"):
        fo.paths.Line(net, np.zeros(2), np.ones(2)).alphas(1)
