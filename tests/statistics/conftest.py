"""What audits of these tests leave out."""

from tests.auditing.conftest import one_bound as one_bound
