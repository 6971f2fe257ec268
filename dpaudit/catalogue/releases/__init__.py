"""Releases of tables and aggregates, without differential privacy and with it."""

from dpaudit.catalogue.releases.counts import noisy_counts
from dpaudit.catalogue.releases.models import noisy_models
from dpaudit.catalogue.releases.subsets import noisy_subset_counts
from dpaudit.catalogue.releases.sums import noisy_average, noisy_count_and_average, noisy_maxima, noisy_sum
from dpaudit.catalogue.releases.tables import noisy_column, noisy_table, two_noisy_tables
from dpaudit.catalogue.releases.vectors import noisy_mean_vector

ENTRIES = (
    *(noisy_table, two_noisy_tables, noisy_column, noisy_counts, noisy_count_and_average, noisy_average),
    *(noisy_sum, noisy_maxima, noisy_mean_vector, noisy_models, noisy_subset_counts),
)
