"""What makes two findings the same, and what became of one audit between two records, in values and in sentences."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from dpaudit.account.repeat import MORE
from dpaudit.account.section import Account, Level, Topic, account
from dpaudit.account.statements import certified, statement, verdict_text
from dpaudit.base.numerals import counted, down, p_text, up
from dpaudit.base.quoting import LONGEST_DATA, LONGEST_REASON, clean
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
REGRESSION = "regression"  # what a build fails for unless it is told otherwise
UNCHANGED = frozenset({Kind.NOISE, Kind.SAME, Kind.NEITHER})
ORDER = tuple(Kind)


@dataclass(frozen=True, slots=True)
class RunNoise:
    """What chance explains of a bound that moved: limits of the loss of the old event, and of the new one.

    `old_upper` is the upper limit of what the old event loses, at error probability `error`, in the claim's parameter;
    `margin` what the search may have missed, where the new event is not the old one; `new_upper` is the same limit of
    the new counts. None where the counts give no limit. `why_not` says why the bounds are not compared. `again` is the
    lower bound of the old event on fresh runs of today's code, `limit` the upper limit of its old loss; `not_again`
    says why it was not run.
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
        """The probability of an apparent rise although no event loses more: a limit or a bound missed the truth."""
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


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """All audits of two records, and where these were read from."""

    old: str
    new: str
    changes: tuple[Change, ...]
    fail_on: str = REGRESSION

    def __repr__(self) -> str:
        return f"<Comparison {account(self, Level.HEADLINE).headline}>"

    def __str__(self) -> str:
        return "\n".join(account(self, Level.PAGE_ONE).lines(MORE))

    def explain(self) -> Account:
        """The whole account, with every change."""
        return account(self)

    @property
    def compared(self) -> int:
        """The audits that both sides have, with a verdict on one of them at least."""
        both = (change for change in self.changes if change.old is not None and change.new is not None)
        return sum(change.kind is not Kind.NEITHER for change in both)

    @property
    def rise_checks(self) -> int:
        """How many bounds were compared with the old ones."""
        return sum(change.noise is not None and change.noise.chance > 0.0 for change in self.changes)

    @property
    def false_alarm(self) -> float:
        """An upper limit of the probability that a bound rises although no new event loses more than the old one.

        Each side of a pair misses the truth with its error probability; those of a suite add up.
        """
        return min(1.0, sum(change.noise.chance for change in self.changes if change.noise is not None))

    def exit_code(self, fail_on: str) -> int:
        """1 where the build is to fail, 5 where nothing could be compared, otherwise 0; "never" gives 0 always."""
        if fail_on == "never":
            return 0
        if any(change.regression or (fail_on == "any" and not change.unchanged) for change in self.changes):
            return 1
        return 0 if self.compared else 5


RULE = (
    "A bound rose beyond noise if it is above the upper Clopper-Pearson limit of what the old event loses, at the "
    "error probability of the old certificate."
)
MISSED = "A rise that is smaller than both intervals together is not seen; a claim that became refuted always is."
NO_PROOF = "the bounds alone prove nothing of the mechanism"
MOST = 5  # changes on the first page
FEW = 3  # of the parts of a question that a line names


def comparison_lines(comparison: Comparison, fail_on: str = REGRESSION) -> tuple[str, ...]:
    """The whole comparison, the gravest changes first; what did not change is only counted."""
    return tuple(account(replace(comparison, fail_on=fail_on)).lines())


@account.register
def _of_comparison(comparison: Comparison, up_to: Level = Level.REVIEWER) -> Account:
    tone = "refuted" if comparison.exit_code(comparison.fail_on) == 1 else "none"
    return Account.of("A comparison of two records of audits", tone, TOPICS, comparison, up_to)


def _changes(comparison: Comparison) -> list[Change]:
    """What changed, and what could not be looked at again."""
    every = comparison.changes
    return [each for each in every if not each.unchanged or each.hidden or (each.noise and each.noise.not_again)]


def _most(comparison: Comparison) -> tuple[str, ...]:
    """The gravest changes, and how many more there are."""
    lines = [change_line(each) for each in _changes(comparison)]
    more = [f"and {counted(len(lines) - MOST, 'more change')}"] if len(lines) > MOST else []
    return (*lines[:MOST], *more)


def _chance(comparison: Comparison) -> tuple[str, ...]:
    """What counts as a rise, and how often one comes up by chance."""
    if not comparison.compared:
        return ("No audit with a verdict is in both: there was nothing to compare.",)
    many, chance = comparison.rise_checks, p_text(comparison.false_alarm)
    alarms = f"{counted(many, 'bound')} compared: if no event loses more, one rises by chance with probability at "
    alarms += f"most {chance}."
    return (RULE, *([alarms] if many else []), MISSED)


TOPICS: tuple[Topic[Comparison], ...] = (
    Topic("compared", Level.HEADLINE, lambda comparison: (comparison_headline(comparison, comparison.fail_on),)),
    Topic("old", Level.PAGE_ONE, lambda comparison: (comparison.old,)),
    Topic("new", Level.PAGE_ONE, lambda comparison: (comparison.new,)),
    Topic("changes", Level.PAGE_ONE, _most),
    Topic("chance", Level.PAGE_ONE, _chance),
    Topic("more changes", Level.DETAIL, lambda comparison: list(map(change_line, _changes(comparison)))[MOST:]),
)


def comparison_headline(comparison: Comparison, fail_on: str) -> str:
    """How many audits were compared, what became of them, and the exit code."""
    tally = {kind: sum(change.kind is kind for change in comparison.changes) for kind in Kind}
    counts = [f"{number} {kind.value}" for kind, number in tally.items() if number]
    regressions = sum(change.regression for change in comparison.changes)
    head = f"{counted(comparison.compared, 'audit')} compared: {counted(regressions, 'regression')}"
    return "; ".join([head, *([", ".join(counts)] if counts else []), f"exit code {comparison.exit_code(fail_on)}"])


def change_line(change: Change) -> str:
    """One audit on one line: what it is, and the numbers of before and after."""
    mark = "REGRESSION" if change.regression else change.kind.value
    parts = [*_told(change), *_notes(change)]
    return f"{mark:<18}  {clean(change.name)}: {'; '.join(parts)}"


def _told(change: Change) -> list[str]:
    old, new = change.old, change.new
    if old is None or new is None:
        half = new if new is not None else old
        assert half is not None
        return [f"{'only in the new record' if old is None else 'only in the old record'}: {_half(half)}"]
    if new.result is None or old.result is None:
        return [f"now {_half(new)}", f"before {_half(old)}"]
    now, before = statement(new.result), f"before {certified(old.result)}"
    if Kind.REFUTED in change.kinds:
        return [f"became REFUTED, {now}; {before}"]
    if Kind.CLEARED in change.kinds:
        return [f"{verdict_text(new.result.verdict)} now, {now}; {before}, REFUTED"]
    return [f"{verdict_text(new.result.verdict)} as before, {now}; {before}"]


def _notes(change: Change) -> list[str]:
    notes = []
    if Kind.BITS in change.kinds:
        notes.append("the bits of its floating-point outputs refute the claim now")
    if change.noise is not None:
        notes += _noise(change, change.noise)
    if change.question:
        more = len(change.question) - FEW
        named = ", ".join(map(clean, change.question[:FEW])) + (f" and {more} more" if more > 0 else "")
        notes.append(f"asked otherwise ({named}), so {NO_PROOF}")
    if Kind.SOURCE in change.kinds:
        notes.append("its source changed")
    elif change.hidden:
        notes.append("the counts differ although source, question and seed are the same: something it uses changed")
    if change.old is not None and change.new is not None and change.old.name != change.new.name:
        notes.append(f"before, its name was {clean(change.old.name)}")
    return notes


def _noise(change: Change, noise: RunNoise) -> list[str]:
    if noise.not_again:
        return [f"the old event was not run again ({clean(noise.not_again, LONGEST_DATA)})", *_of_bounds(change, noise)]
    if noise.again is None:
        return _of_bounds(change, noise)
    fresh = f"on fresh runs of the code here the old event loses at least {down(noise.again, 4)}"
    error = f"(error probability {p_text(noise.error)})"
    grew = f"rose beyond noise: {fresh}, and lost at most {up(noise.limit, 4)} {error}"
    return [grew if noise.grew else fresh, *_of_bounds(change, noise)]


def _of_bounds(change: Change, noise: RunNoise) -> list[str]:
    if noise.why_not:
        return [f"{noise.why_not}, so {NO_PROOF}"]
    error = p_text(noise.error)
    if Kind.ROSE in change.kinds and not noise.grew:
        most = f"the old event loses at most {up(math.inf if noise.old_upper is None else noise.old_upper, 4)}"
        where = f"is at {noise.elsewhere}" if noise.elsewhere else "holds other outputs too, or fewer"
        margin = f", and the new one {where}: {up(noise.margin, 4)} more for what the old search may have missed"
        margin = margin if noise.margin != 0.0 else ""
        return [f"rose beyond noise: {most} (error probability {error}){margin}"]
    if Kind.FELL in change.kinds and noise.new_upper is not None:
        return [f"fell beyond noise: the new event loses at most {up(noise.new_upper, 4)} (error probability {error})"]
    return []


def _half(half: Half) -> str:
    if half.result is None:
        return f"no verdict ({clean(half.error or 'no reason was recorded', LONGEST_REASON)})"
    return f"{verdict_text(half.result.verdict)}, {statement(half.result)}"
