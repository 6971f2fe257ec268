"""What a test session keeps of its audits: small plain values that travel between processes, and their sum."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any


@dataclass(frozen=True, slots=True)
class AuditOfTest:
    """One audit of a test: what was asked and what came out; `verdict` is None where there is none.

    `key` is its own, `attempt` counts the tries of a test that is run again, and `number` the audits of one try.
    `bound` is the certified one, and the claim that it is beyond. `file` is the name of the stored result in the folder
    of the report, `accepted` the fingerprint of the accepted finding that covers it, `problem` why it could not be
    stored; `in_part` where outputs were not looked at whole.
    """

    key: str
    test: str
    attempt: int
    number: int
    name: str
    expect: str
    confidence: float
    verdict: str | None = None
    as_expected: bool = False
    error: str | None = None
    bound: str = ""
    exit_code: int = 0
    accepted: str | None = None
    bits_refuted: bool = False
    in_part: bool = False
    file: str | None = None
    problem: str | None = None

    @property
    def unmet(self) -> bool:
        """Whether this is what makes a test fail: a verdict that nobody expected, none at all, or too little power."""
        return not self.as_expected or self.exit_code != 0

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values."""
        return asdict(self)


class Records:
    """The audits of a session in the order in which they ended, each once; no try of a test replaces another."""

    def __init__(self) -> None:
        self._held: dict[str, AuditOfTest] = {}
        self._failed: set[str] = set()
        self._last: dict[str, int] = {}  # attempt of a test

    def add(self, stored: Iterable[dict[str, Any]], outcome: str) -> None:
        """Takes in what a test, here or in another process, has audited up to a report of this outcome."""
        for each in stored:
            record = AuditOfTest(**each)
            self._held[record.key] = record
            self._last[record.test] = max(record.attempt, self._last.get(record.test, 0))
            if outcome == "failed":
                self._failed.add(record.key)
            elif outcome == "rerun":  # the word of plugins that try again
                self._last[record.test] = max(record.attempt + 1, self._last[record.test])

    def sort(self) -> None:
        """Puts them in the order of their tests' names."""
        self._held = dict(sorted(self._held.items(), key=lambda each: (each[1].test, each[1].attempt, each[1].number)))

    @property
    def swallowed(self) -> tuple[AuditOfTest, ...]:
        """What should have failed a test that did not fail: the error was caught, or the failure expected by a mark."""
        return tuple(each for each in self.all if each.unmet and each.key not in self._failed and not self._again(each))

    @property
    def retried(self) -> tuple[AuditOfTest, ...]:
        """What should have failed a test that was then run again, and did not fail."""
        return tuple(each for each in self.all if each.unmet and each.key not in self._failed and self._again(each))

    def _again(self, record: AuditOfTest) -> bool:
        return self._last[record.test] > record.attempt

    @property
    def all(self) -> tuple[AuditOfTest, ...]:
        """Every record."""
        return tuple(self._held.values())

    @property
    def alarming(self) -> float:
        """The chance that any sound mechanism fails its test: what is spent, and the level of all checks of health."""
        from dpaudit.results.beside import LEVEL

        return min(1.0, float(Decimal(repr(self.spent)) + len(self.all) * Decimal(repr(LEVEL))))

    @property
    def spent(self) -> float:
        """The chance of a false refutation that all audits have spent: the sum of their error probabilities."""
        errors = (1 - Decimal(repr(record.confidence)) for record in self.all)  # 1e-6, and not 1.00000000003e-6
        return min(1.0, float(sum(errors, Decimal(0))))
