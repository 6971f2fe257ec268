"""Composition: several releases as one transcript.

Who counts as one step (a person, a group, a record that is replaced) and what may be done to a release afterwards
belong here too: they are the rules by which claims are put together.
"""

from dpaudit.catalogue.composition.bisection import noisy_bisection
from dpaudit.catalogue.composition.counts import (
    advanced_counts,
    averaged_count,
    composed_counts,
    composed_gaussians,
    halving_budget,
    sampled_counts,
)
from dpaudit.catalogue.composition.members import group_count, parallel_counts, replaced_histogram
from dpaudit.catalogue.composition.processing import nonnegative_count, rounded_count
from dpaudit.catalogue.composition.responses import leaky_responses, repeated_response
from dpaudit.catalogue.composition.sparse_runs import sparse_twice

ENTRIES = (
    *(composed_counts, halving_budget, averaged_count, noisy_bisection, repeated_response, leaky_responses),
    *(advanced_counts, composed_gaussians, parallel_counts, sampled_counts, nonnegative_count, rounded_count),
    *(group_count, replaced_histogram, sparse_twice),
)
