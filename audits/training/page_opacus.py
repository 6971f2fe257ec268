"""The block of docs/how/training.md that needs opacus, as it stands there."""

from functools import partial

from audits.training.page import rows_of

ENVIRONMENT = "opacus"
rows = partial(rows_of, "opacus")
