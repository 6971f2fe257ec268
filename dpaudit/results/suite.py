"""Several audits together: what became of each, which findings somebody answers for, and the exit code of them all."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from dpaudit.certify.certificate import error_probability, holm
from dpaudit.results.display import Displayed
from dpaudit.results.result import AuditResult
from dpaudit.results.verdict import Verdict


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


@dataclass(frozen=True, slots=True)
class SuiteEntry:
    """One audit of a suite: its result, or the reason why there is none.

    `source` is the spec file it stands in, where there is one. `accepted` is the acceptance, not yet expired, that has
    the fingerprint of its finding. `bits`: beside `expect`, a finding on the bits of floating-point outputs is known.
    """

    name: str
    expect: Verdict
    result: AuditResult | None = None
    error: str | None = None
    exit_code: int = 0
    accepted: Acceptance | None = None
    source: str | None = None
    bits: bool = False

    @property
    def expected(self) -> str:
        """What the author of the spec knows, as it is stored: `REFUTED`, `NOT_REFUTED`, or `BITS` (by bits alone)."""
        return "BITS" if self.bits else self.expect.value

    @property
    def as_expected(self) -> bool:
        """Whether what was found is what the author of the spec knows to be right, or an accepted finding."""
        return self.foreseen or self.covered

    @property
    def foreseen(self) -> bool:
        """The same, whatever was accepted."""
        if self.result is None or self.result.verdict is not self.expect:
            return False
        return not self.bits or self.result.representation_refuted

    @property
    def covered(self) -> bool:
        """Whether a refutation that nobody expected is an accepted finding, reviewed and not yet expired."""
        refuted = self.result is not None and self.result.refuted
        return refuted and self.expect is Verdict.NOT_REFUTED and self.accepted is not None


@dataclass(frozen=True, slots=True, repr=False)
class SuiteResult(Displayed):
    """Several audits at one suite confidence c: each of m runs at 1 - (1 - c) / m.

    `reviewed` are all accepted findings of the baseline file that was used, those that expired or match nothing too.
    """

    entries: tuple[SuiteEntry, ...]
    confidence: float
    reviewed: tuple[Reviewed, ...] = ()

    @classmethod
    def of(cls, results: Iterable[AuditResult]) -> "SuiteResult":
        """Results as one suite, of which no violation was known beforehand: what they say together, as one report."""
        held = tuple(results)
        entries = tuple(SuiteEntry(each.name, Verdict.NOT_REFUTED, each, exit_code=each.exit_code) for each in held)
        return cls(entries, joint_confidence(held))

    @property
    def results(self) -> tuple[AuditResult, ...]:
        """The results of the audits that finished."""
        return tuple(entry.result for entry in self.entries if entry.result is not None)

    @property
    def exit_code(self) -> int:
        """The worst code of the suite, in the order 70, 2, 1, 3, 4, 5, 0."""
        if not self.entries:
            return 5
        codes = {entry.exit_code for entry in self.entries}
        codes |= {1 for entry in self.entries if entry.result is not None and not entry.as_expected}
        codes |= {1 for each in self.reviewed if each.expired}
        return next((code for code in (70, 2, 1, 3, 4, 5) if code in codes), max(codes))

    def holm(self) -> tuple[float | None, ...]:
        """Holm-adjusted p-values of the finished audits; None where there is no result."""
        # an audit without a result still counts among the m: its p-value is 1
        adjusted = holm([1.0 if entry.result is None else entry.result.certificate.p_value for entry in self.entries])
        return tuple(None if entry.result is None else p for entry, p in zip(self.entries, adjusted, strict=True))


def joint_confidence(results: Sequence[AuditResult]) -> float:
    """The confidence of several results together: their error probabilities add up.

    Where they add up to 1 or more, nothing is left to be said of all together, and the confidence is 0.
    """
    spent = math.fsum(error_probability(result.spec["confidence"]) for result in results)
    whole = float(f"{spent:.12g}")  # a sum of equal parts is the number that was divided
    return max(float(1 - Decimal(repr(whole))), 0.0)
