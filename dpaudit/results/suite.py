"""Several audits together: what became of each, which findings somebody answers for, and the exit code of them all."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Annotated, ClassVar, Final, Literal

from dpaudit.base.strict import JsonObject, by_fields, stored
from dpaudit.base.validate import Probability, error_probability
from dpaudit.certify.certificate import holm
from dpaudit.results.display import Displayed, Verdict
from dpaudit.results.result import AuditResult

SUITE_SCHEMA: Final = "dpaudit.suite/1"
ExitCode = Annotated[int, ("ge", 0), ("le", 255)]


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
    """One audit: its result, or the reason why there is none.

    `source` is the spec file it stands in, where there is one. `accepted` is the acceptance, not yet expired, that has
    the fingerprint of its finding. `bits`: beside `expect`, a finding on the bits of floating-point outputs is known.
    """

    name: str
    expect: Verdict
    result: AuditResult | None = None
    error: str | None = None
    exit_code: ExitCode = 0
    accepted: Acceptance | None = None
    source: str | None = None
    bits: bool = False
    _KEYS: ClassVar = (  # of its stored form
        *("name", "source", "expect", "as_expected", "exit_code", "error", "p_value_holm", "accepted", "result"),
    )
    _LATER: ClassVar = ("accepted", "source")  # keys that older files lack

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
    """Several audits at one suite confidence.

    At confidence c each of m audits runs at 1 - (1 - c) / m. `reviewed` are all accepted findings of the baseline file
    that was used, those that expired or match nothing too. `name`, `product` and `version` are what its specs say that
    it is and is about.
    """

    entries: tuple[SuiteEntry, ...]
    confidence: Probability
    reviewed: tuple[Reviewed, ...] = ()
    name: str = ""
    product: str = ""
    version: str = ""

    schema: ClassVar[Literal["dpaudit.suite/1"]] = SUITE_SCHEMA
    _SPARSE: ClassVar = ("name", "product", "version")  # left out of its stored form where they are empty
    _KEYS: ClassVar = ("schema", *_SPARSE, "confidence", "exit_code", "reviewed", "entries")  # of its stored form
    _LATER: ClassVar = ("reviewed", *_SPARSE)  # keys that older files lack

    @classmethod
    def of(cls, results: Iterable[AuditResult]) -> "SuiteResult":
        """Results as one suite, of which no violation was known beforehand: what they say together, as one report."""
        every = tuple(results)
        entries = tuple(SuiteEntry(each.name, Verdict.NOT_REFUTED, each, exit_code=each.exit_code) for each in every)
        return cls(entries, joint_confidence(every))

    @property
    def results(self) -> tuple[AuditResult, ...]:
        """The results of the audits that finished."""
        return tuple(entry.result for entry in self.entries if entry.result is not None)

    @property
    def exit_code(self) -> ExitCode:
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

    def to_dict(self) -> JsonObject:
        """The suite as plain values in the schema `dpaudit.suite/1`: each entry with its result, or why it has none."""
        pairs = zip(self.entries, self.holm(), strict=True)
        entries = [by_fields(entry, expect=entry.expected, p_value_holm=adjusted) for entry, adjusted in pairs]
        return by_fields(self, entries=entries)


def joint_confidence(results: Sequence[AuditResult]) -> float:
    """The confidence of several results together: their error probabilities add up.

    Where they add up to 1 or more, nothing is left to be said of all together, and the confidence is 0.
    """
    spent = math.fsum(error_probability(result.spec["confidence"]) for result in results)
    whole = float(f"{spent:.12g}")  # a sum of equal parts is the number that was divided
    return max(float(1 - Decimal(repr(whole))), 0.0)


def together(parts: Sequence[AuditResult | SuiteResult]) -> SuiteResult:
    """Results and suites as one suite; its confidence is what the error probabilities of all audits leave.

    What stands in several of them counts once: a result alone beside its suite, the audits of a suite that is given
    twice. A suite to which the others add nothing stays as it is.
    """
    known = {_run_of(result) for part in parts if isinstance(part, SuiteResult) for result in part.results}
    gathered: list[SuiteResult] = []
    seen: set[object] = set()
    for part in parts:
        if isinstance(part, SuiteResult):
            keys = [(replace(entry, result=None), entry.result and _run_of(entry.result)) for entry in part.entries]
            fresh = tuple(entry for entry, key in zip(part.entries, keys, strict=True) if key not in seen)
            seen.update(keys)  # only now: two equal audits of one suite are two
            whole = len(fresh) == len(part.entries)
            gathered.append(part if whole else replace(part, entries=fresh))
        elif _run_of(part) not in known:  # neither the same file again, nor the record of an audit of a suite
            known.add(_run_of(part))
            gathered.append(SuiteResult.of([part]))
    entries = tuple(entry for suite in gathered for entry in suite.entries)
    reviewed = _reviewed(each for suite in gathered for each in suite.reviewed)
    for suite in gathered:
        if len(suite.entries) == len(entries) and suite.reviewed == reviewed:
            return suite
    results = [entry.result for entry in entries if entry.result is not None]
    confidence = joint_confidence(results) if results else min(suite.confidence for suite in gathered)
    return SuiteResult(
        entries, confidence, reviewed, *joined((each.name, each.product, each.version) for each in gathered)
    )


def joined(heads: Iterable[tuple[str, str, str]]) -> tuple[str, str, str]:
    """Name, product and version of several suites as one: what they share stands once, what differs side by side.

    >>> joined([("by night", "stats", "2.1"), ("by day", "stats", "2.1"), ("", "tables", "0.3")])
    ('by night, by day', 'stats 2.1, tables 0.3', '')
    """
    known = tuple(heads)
    name = ", ".join(dict.fromkeys(name for name, _, _ in known if name))
    products = tuple(dict.fromkeys((product, version) for _, product, version in known if product or version))
    if len(products) == 1:
        return name, *products[0]
    return name, ", ".join(" ".join(filter(None, each)) for each in products), ""


def _run_of(result: AuditResult) -> str:
    """What makes two results the same: the question, what came out, and when and where it was run."""
    parts = [result.spec, stored(result.witness), stored(result.evidence), result.provenance]
    return json.dumps(parts, sort_keys=True)


def _reviewed(listed: Iterable[Reviewed]) -> tuple[Reviewed, ...]:
    """What became of each acceptance in all suites: found where one of them found it.

    One that had expired for one of them, and not for another, is listed both ways, and fails.
    """
    matched: dict[tuple[Acceptance, bool], bool] = {}
    for each in listed:
        key = each.acceptance, each.expired
        matched[key] = matched.get(key, False) or each.matched
    return tuple(Reviewed(acceptance, expired, match) for (acceptance, expired), match in matched.items())
