"""Accepted findings: refutations that somebody reviewed and answers for, with a reason and until a day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A finding that somebody reviewed and answers for, until a day."""

    fingerprint: str
    finding: str
    reason: str
    accepted: date
    until: date

    def expired(self, today: date) -> bool:
        """Whether its last day is over.

        >>> Acceptance("a1", "noisy count", "old API", date(2026, 1, 1), date(2026, 3, 1)).expired(date(2026, 3, 2))
        True
        """
        return today > self.until


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What became of an acceptance in this suite.

    Whether it had expired that day, and whether a finding matched it.
    """

    acceptance: Acceptance
    expired: bool
    matched: bool
