"""Selection: the best of several candidates."""

from dpaudit.catalogue.selection.extremes import report_noisy_max_exponential, report_noisy_max_gumbel
from dpaudit.catalogue.selection.noisy_max import permute_and_flip, report_noisy_max
from dpaudit.catalogue.selection.races import report_noisy_max_general
from dpaudit.catalogue.selection.utilities import (
    exponential_mechanism,
    exponential_mechanism_learning,
    most_common,
    private_median,
)

ENTRIES = (
    *(report_noisy_max, report_noisy_max_general, report_noisy_max_exponential, report_noisy_max_gumbel),
    *(permute_and_flip, exponential_mechanism, most_common, private_median, exponential_mechanism_learning),
)
