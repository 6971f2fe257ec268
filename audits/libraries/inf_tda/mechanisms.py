"""InfTDA, called as in its README: counts by origin and destination. OpenDP owns its randomness."""

from __future__ import annotations

import pandas as pd
from InfTDA import inf_tda

INDEX = pd.MultiIndex.from_tuples([("A", "a"), ("A", "b"), ("B", "a"), ("B", "b")])


def counts(
    trips: list[int], *, epsilon: float, delta: float, contribution: int, distinct_tuples: bool
) -> tuple[int, ...]:
    """The noisy counts of the four tuples; those that the release leaves out are 0."""
    released = inf_tda(
        data=pd.Series(trips, index=INDEX),
        budget=(epsilon, delta),
        contribution=contribution,
        privacy_type="bounded",
        distinct_tuples=distinct_tuples,
    )
    return tuple(int(count) for count in released.reindex(INDEX, fill_value=0))


def most_from_a_to_a(output: tuple[int, ...]) -> bool:
    """The first count is above the last, the middle ones being weighed by a third."""
    return 3 * output[0] + output[1] - output[2] - 3 * output[3] >= 0
