"""The verified first, then the nearer: in tables, between two attempts, and among results."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flipopt.results import best, better, order
from tests.results.test_table import result

ENTRIES = st.lists(st.tuples(st.booleans(), st.sampled_from([0.5, 1.0, 2.0, np.nan])), min_size=1, max_size=6)


def beats(one: tuple[bool, float], other: tuple[bool, float]) -> bool:
    """The rule, one pair at a time."""
    if one[0] != other[0]:
        return one[0]
    return bool(one[1] < other[1] or (np.isnan(other[1]) and not np.isnan(one[1])))


@given(ENTRIES)
def test_no_entry_beats_the_first_and_equals_keep_their_order(entries: list[tuple[bool, float]]) -> None:
    success, distance = (np.array(column) for column in zip(*entries))
    ranks = np.lexsort(order(success, distance))
    for before, after in pairwise(ranks):
        assert not beats(entries[after], entries[before])
        assert beats(entries[before], entries[after]) or before < after
    chosen = best([result(float(d), bool(s), iterations=k) for k, (s, d) in enumerate(entries)])
    assert chosen.iterations == ranks[0]


@given(ENTRIES, st.randoms(use_true_random=False))
def test_entries_are_compared_with_those_before_them(entries: list[tuple[bool, float]], random) -> None:
    others = random.sample(entries, len(entries))
    (success, distance), (before, far) = ([np.array(column) for column in zip(*some)] for some in (entries, others))
    expected = [beats(one, other) for one, other in zip(entries, others)]
    assert better(success, distance, before, far).tolist() == expected
