"""Every printed line of every estimator where scores say nothing of the coins: none is false too often."""

from __future__ import annotations

import pytest

from benchmarks import nulls

REPEATS, ALLOWED = 8, 6


@pytest.mark.long
def test_no_line_of_any_estimator_is_false_at_a_null() -> None:
    """Seven of 8 at a level of 5 %: a probability of 6e-9 for each of 88 lines. `benchmarks nulls` counts to 300."""
    found = nulls.counted("normal", 20, REPEATS)
    assert len(found) > 80
    assert {name: times for name, times in found.items() if times > ALLOWED} == {}
