"""Selection: the best of several candidates."""

from dpaudit.catalogue.selection.noisy_max import report_noisy_max

ENTRIES = (report_noisy_max,)
