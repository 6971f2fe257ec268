"""What follows from a question alone: its digest, and the part of its runs that compares pairs."""

from typing import Any

from dpaudit.results.strict import content_digest

LEAST_SHARE, LARGEST_SHARE = 0.15, 0.6
A_PAIR = 0.01  # what it costs to screen a pair, in units of what it costs to certify one


def spec_hash(spec: dict[str, Any]) -> str:
    """The digest of a spec in its stored form."""
    return content_digest(spec)[:16]


def screening_share(pairs: int, kept: int = 1) -> float:
    """The part of all runs that compares pairs: none where all are kept, then 0.15 to 0.6.

    It grows as K / (K + 100) with the number K of pairs. Screening a pair well enough takes some hundreds of runs,
    and certifying a loss slightly above the claim some ten thousands: the two are in proportion to that.

    >>> [screening_share(pairs) for pairs in (1, 2, 25, 100, 1000)]
    [0.0, 0.15, 0.2, 0.5, 0.6]
    """
    if pairs <= kept:
        return 0.0
    return min(LARGEST_SHARE, max(LEAST_SHARE, A_PAIR * pairs / (A_PAIR * pairs + 1.0)))
