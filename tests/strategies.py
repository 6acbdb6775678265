"""What hypothesis draws: activations, networks and points, all made from a seed so that numpy fills the arrays."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import flipopt as fo

SMOOTH = (fo.Erf, fo.ELU, fo.Tanh, fo.Identity)  # ELU with alpha = 1 only
EXAMPLES = 40
"""Of a property, in the usual profile."""
seeds = st.integers(0, 2**32 - 1)


def examples(count: int) -> settings:
    """So many examples of a property that takes long; in proportion more in a profile that has more."""
    return settings(max_examples=max(1, count * settings().max_examples // EXAMPLES))


@st.composite
def activations(draw: st.DrawFn, width: int | None = None, smooth: bool = False) -> fo.Activation:
    kind = draw(st.sampled_from(SMOOTH if smooth else (*SMOOTH, fo.PReLU, fo.ReLU)))
    if kind in (fo.Tanh, fo.Identity, fo.ReLU):
        return kind()
    if kind is fo.ELU and smooth:
        return fo.ELU(1.0)
    low = 0.2 if kind is fo.Erf else 0.0
    rng = np.random.default_rng(draw(seeds))
    per_neuron = width is not None and draw(st.booleans())
    return kind(rng.uniform(low, 2.0, size=width if per_neuron else None))


@st.composite
def networks(draw: st.DrawFn, smooth: bool = False) -> fo.DenseNetwork:
    n_hidden = draw(st.integers(0, 4))
    widths = [draw(st.integers(1, 12)) for _ in range(n_hidden + 1)] + [draw(st.integers(2, 6))]
    rng = np.random.default_rng(draw(seeds))
    W = [rng.standard_normal(pair) / np.sqrt(pair[0]) for pair in pairwise(widths)]
    b = [0.5 * rng.standard_normal(width) for width in widths[1:]]
    return fo.DenseNetwork(W, b, [draw(activations(width, smooth)) for width in widths[1:-1]])


def points(net: fo.DenseNetwork, rows: int | None, seed: int) -> np.ndarray:
    shape = (net.n_inputs,) if rows is None else (rows, net.n_inputs)
    return np.random.default_rng(seed).standard_normal(shape)
