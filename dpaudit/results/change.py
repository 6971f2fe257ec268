"""What became of one audit between two records: the values that a comparison says its sentences about."""

import math
from dataclasses import dataclass
from enum import StrEnum

from dpaudit.results.result import AuditResult


class Kind(StrEnum):
    """What a change is, the gravest first; an audit may show several."""

    REFUTED = "became refuted"
    BITS = "representation became refuted"
    ROSE = "rose beyond noise"
    LOST = "verdict lost"
    GONE = "gone"
    CLEARED = "no longer refuted"
    QUESTION = "question changed"
    FELL = "fell beyond noise"
    SOURCE = "source changed"
    NEW = "new"
    FOUND = "verdict now"
    NOISE = "within noise"
    SAME = "same counts"
    NEITHER = "without verdict in both"


REGRESSIONS = frozenset({Kind.REFUTED, Kind.BITS, Kind.ROSE, Kind.LOST})
UNCHANGED = frozenset({Kind.NOISE, Kind.SAME, Kind.NEITHER})
ORDER = tuple(Kind)


@dataclass(frozen=True, slots=True)
class RunNoise:
    """What chance explains of a bound that moved: limits of the loss of the old event, and of the new one.

    `old_upper` is the upper limit of what the old event loses, at error probability `error`, in the claim's parameter;
    `margin` what the search may have missed, where the new event is not the old one; `new_upper` as `old_upper`, of
    the new counts. None where the counts give no limit. `why_not` says why the bounds are not held against each other.
    `again` is the bound that the old event has on fresh runs of the code of today, `limit` what it lost at the most;
    `not_again` says why it was not run.
    """

    error: float
    old_upper: float | None = None
    margin: float = 0.0
    new_upper: float | None = None
    elsewhere: str = ""
    why_not: str = ""
    again: float | None = None
    limit: float = math.inf
    not_again: str = ""

    @property
    def grew(self) -> bool:
        """Whether the old event loses more than it did, by fresh runs of its own."""
        return self.again is not None and self.again > self.limit

    @property
    def chance(self) -> float:
        """Of a rise where no event loses more: a limit strays, or a bound that is held against it."""
        return 2.0 * self.error * ((self.again is not None) + (self.threshold is not None))

    @property
    def threshold(self) -> float | None:
        """What a new bound must exceed to have risen beyond noise."""
        return None if self.old_upper is None else self.old_upper + self.margin


@dataclass(frozen=True, slots=True)
class Half:
    """One audit on one side of a comparison: its result, or the reason why there is none."""

    name: str
    result: AuditResult | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One audit, before and after. `question` names the parts of the question that differ."""

    old: Half | None
    new: Half | None
    kinds: tuple[Kind, ...]
    question: tuple[str, ...] = ()
    noise: RunNoise | None = None
    hidden: bool = False

    @property
    def name(self) -> str:
        """The name of the audit today, or the last that it had."""
        half = self.new if self.new is not None else self.old
        assert half is not None
        return half.name

    @property
    def kind(self) -> Kind:
        """The gravest of its kinds."""
        return min(self.kinds, key=ORDER.index)

    @property
    def regression(self) -> bool:
        """Whether a build that fails on regressions fails for it."""
        return bool(REGRESSIONS & set(self.kinds))

    @property
    def unchanged(self) -> bool:
        """Whether nothing changed but what chance changes."""
        return set(self.kinds) <= UNCHANGED


@dataclass(frozen=True, slots=True)
class Comparison:
    """All audits of two records, what they were read from, and in how many of them there is something to compare."""

    old: str
    new: str
    changes: tuple[Change, ...]

    @property
    def compared(self) -> int:
        """The audits that both sides have, with a verdict on one of them at least."""
        both = (change for change in self.changes if change.old is not None and change.new is not None)
        return sum(change.kind is not Kind.NEITHER for change in both)

    @property
    def held(self) -> int:
        """The bounds that were held against each other."""
        return sum(change.noise is not None and change.noise.chance > 0.0 for change in self.changes)

    @property
    def false_alarm(self) -> float:
        """The chance at the most that one or more of them rose where no new event loses more than the old one.

        Each side of a pair strays with its error probability; of a suite they add up.
        """
        return min(1.0, sum(change.noise.chance for change in self.changes if change.noise is not None))

    def exit_code(self, fail_on: str) -> int:
        """1 where the build is to fail, 5 where nothing could be compared, otherwise 0; "never" gives 0 always."""
        if fail_on == "never":
            return 0
        if any(change.regression or (fail_on == "any" and not change.unchanged) for change in self.changes):
            return 1
        return 0 if self.compared else 5
