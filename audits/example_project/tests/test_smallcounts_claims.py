"""What the functions promise, held against what they do: a claim that is refuted fails its test."""

from __future__ import annotations

from functools import partial

import hypothesis.strategies as st
import pytest
from smallcounts import clipped_sum, most_common, noisy_count, noisy_histogram

ONE_LEAVES = (["a"] * 10, ["a"] * 9)
WORDS = ("a", "b", "c")


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_count(audit, epsilon):
    audit(partial(noisy_count, epsilon=epsilon), pair=ONE_LEAVES, epsilon=epsilon)


def test_histogram(audit):
    audit(partial(noisy_histogram, bins=WORDS, epsilon=1.0), pair=(["a", "b"], ["a"]), epsilon=1.0)


@pytest.mark.dpaudit(epsilon=1.0, relation="add_or_remove_one")
def test_sum_of_values_out_of_range(audit):
    audit(partial(clipped_sum, most=5, epsilon=1.0), pair=([3, 900], [3]))


def test_choice(audit):
    rows = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6)
    pairs = rows.map(lambda all_rows: (all_rows, all_rows[:-1]))
    audit(partial(most_common, words=WORDS, epsilon=1.0), pairs=pairs, epsilon=1.0)
