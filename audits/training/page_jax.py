"""The block of docs/how/training.md that needs jax_privacy, as it stands there."""

from functools import partial

from audits.training.page import rows_of

ENVIRONMENT = "jax"
rows = partial(rows_of, "jax_privacy")
