"""What was seen of a row: its audit as a suite tells it, and a plain count beside it with a bound of its own."""

import math
from dataclasses import dataclass

from dpaudit.claims import Claim
from dpaudit.observatory.rows import LibraryAudit
from dpaudit.results.audited import Finding
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteEntry
from dpaudit.results.wording.cause import cause
from dpaudit.results.wording.numerals import bound
from dpaudit.results.wording.statements import at_delta
from dpaudit.results.wording.suites import expected_text

CONFIDENCE = 0.999  # of a plain count


@dataclass(frozen=True, slots=True)
class Plain:
    """Hits and runs of a plain event on the two datasets; `error` where it could not be counted."""

    event: str = ""
    first: tuple[int, int] = (0, 0)
    second: tuple[int, int] = (0, 0)
    error: str = ""

    def breaks(self, claim: Claim) -> bool:
        """Whether the counts show more than the claim allows, by four Clopper-Pearson bounds and Bonferroni.

        Apart from `dpaudit.certify` on purpose: the beta quantiles are those of scipy.stats.
        """
        sides = (self.first, self.second), (self.second, self.first)
        level = (1.0 - CONFIDENCE) / 4.0
        return any(least(*p, level) > claim.max_probability(most(*q, level)) for p, q in sides)

    def epsilon(self, delta: float) -> float:
        """The epsilon at this delta that the counts show, 0 for none."""
        misses = [(runs - hits, runs) for hits, runs in (self.first, self.second)]
        sides = (self.first, self.second), (self.second, self.first), misses, misses[::-1]
        level = (1.0 - CONFIDENCE) / 4.0
        return math.log(max(1.0, *((least(*p, level) - delta) / most(*q, level) for p, q in sides)))

    def text(self, claim: Claim) -> str:
        """The counts in words: the epsilon they show at the claim's delta, or for other claims whether it is more."""
        if self.error:
            return self.error
        (first, runs), (second, others) = self.first, self.second
        shown = f"{'' if self.breaks(claim) else 'no '}more than the claim allows"
        if claim.linear:
            epsilon = self.epsilon(claim.delta)
            shown = f"epsilon >= {bound(epsilon)}{at_delta(claim.delta)}" if epsilon else "nothing"
        return f"{first:,} of {runs:,} against {second:,} of {others:,}, which shows {shown}"


def least(hits: int, runs: int, level: float) -> float:
    """The lower Clopper-Pearson bound on a probability.

    >>> round(least(10, 10, 0.05), 6) == round(0.05 ** 0.1, 6)
    True
    """
    from scipy.stats import beta

    return float(beta.ppf(level, hits, runs - hits + 1)) if hits else 0.0


def most(hits: int, runs: int, level: float) -> float:
    """The upper Clopper-Pearson bound on a probability."""
    return 1.0 - least(runs - hits, runs, level)


def decisive(result: AuditResult) -> Finding | AuditResult:
    """What the stamp of a result stands on: the result itself, or the finding on bits where only bits refute."""
    alone = result.representation_refuted and not result.refuted
    return result.representation if alone and result.representation is not None else result


@dataclass(frozen=True, slots=True)
class Observed:
    """A row and what became of it; `page` and `record` are the names of its files in the report."""

    row: LibraryAudit
    entry: SuiteEntry
    plain: Plain | None = None

    @property
    def as_expected(self) -> bool:
        """Whether verdict and cause are those that the author of the row knows to be right."""
        return self.entry.as_expected and not self.missing

    @property
    def cause(self) -> str:
        """What was found, in a maintainer's words; empty where nothing was."""
        return "" if self.entry.result is None else cause(self.entry.result)

    @property
    def counts(self) -> str:
        """The plain count in words, held to the claim that the stamp is about; empty where none was made."""
        result = self.entry.result
        return "" if self.plain is None or result is None else self.plain.text(decisive(result).claim)

    @property
    def missing(self) -> tuple[str, ...]:
        """Words that the sentence on the cause must hold, by the record, and does not."""
        if self.entry.result is None:
            return ()
        said = self.cause.casefold()
        return tuple(word for word in self.row.record.cause if word.casefold() not in said)

    @property
    def expected(self) -> str:
        """What the author of the row knows and was not seen; empty where all was."""
        told = [] if self.entry.as_expected else [expected_text(self.entry)]
        return ", ".join([*told, *(f"a cause that says {word!r}" for word in self.missing)])

    @property
    def disagreement(self) -> str:
        """What the plain count has against what was found; empty where it agrees or none was made."""
        result = self.entry.result
        if self.plain is None or result is None:
            return ""
        if self.plain.error:
            return "could not be made"
        found = decisive(result)
        if (shown := self.plain.breaks(found.claim)) == found.certificate.refuted:
            return ""
        return "showed more than the audit found" if shown else "did not show what the audit found"

    @property
    def odd(self) -> bool:
        """Whether it is to be looked at first."""
        return not self.as_expected or bool(self.disagreement)
