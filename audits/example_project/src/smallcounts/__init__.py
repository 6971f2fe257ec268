"""Counts, sums and choices with differential privacy; every function takes the generator that it draws from."""

from smallcounts.answers import clipped_sum, noisy_count, noisy_histogram
from smallcounts.choices import most_common

__all__ = ["clipped_sum", "most_common", "noisy_count", "noisy_histogram"]
