"""Mistakes that were made here once: the audits above would find them, and these tests show that they do."""

from __future__ import annotations

import numpy as np


def count_with_half_the_noise(rows, rng):
    """The scale was computed as for epsilon 2."""
    return len(rows) + int(rng.geometric(0.865) - rng.geometric(0.865))


def histogram_of_what_occurs(rows, rng):
    """Only bins that occur are listed, so the list of bins tells who is there."""
    return {name: rows.count(name) + round(rng.laplace(scale=1.0)) for name in set(rows)}


def sum_without_clipping(values, rng):
    """A value out of range moves the sum by more than the noise hides."""
    return sum(values) + int(np.rint(rng.laplace(scale=5.0)))


def test_half_the_noise_is_found(audit):
    audit(count_with_half_the_noise, pair=(["a"] * 10, ["a"] * 9), epsilon=1.0, expect="refuted")


def test_missing_bins_are_found(audit):
    audit(histogram_of_what_occurs, pair=(["a", "b"], ["a"]), epsilon=1.0, expect="refuted")


def test_a_value_out_of_range_is_found(audit):
    audit(sum_without_clipping, pair=([3, 900], [3]), epsilon=1.0, expect="refuted")
