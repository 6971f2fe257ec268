"""What an audit of scores says: estimates with their labels and assumptions, and a verdict only of certified ones.

In words the estimates stand on three lines that are never mixed, each with what it assumes; lower ends are rounded
down, upper ends up. The account has these lines, what they rest on, and what was not tested.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dpaudit.account import Account, Level, Section, account
from dpaudit.account.statements import NOT_PRIVATE
from dpaudit.base.numerals import bound, counted, decimals, down, least_text, p_text, wrong
from dpaudit.base.quoting import clean
from dpaudit.base.strict import Written, by_fields
from dpaudit.base.validate import error_probability
from dpaudit.claims import Claim
from dpaudit.results.display import Displayed, Verdict
from dpaudit.results.observations import Histogram
from dpaudit.scores.counts import AttackCounts
from dpaudit.scores.designs import Steps

SCHEMA = "dpaudit.scores/1"
INTERVALS = ("lower", "upper", "two-sided")
CERTIFIED, INDEPENDENT, MODEL, COMPOSED = LABELS = (
    "certified",
    "given independent canaries",
    "model-based",
    "composed from certified steps",
)
ESTIMATE = "estimate"
LINES = (CERTIFIED, INDEPENDENT, ESTIMATE)  # never mixed; only the first may decide
MEANINGS = {
    CERTIFIED: "its design alone, and no model of the scores; this line alone decides",
    INDEPENDENT: "canaries answered independently, assumed and not shown; never decides",
    ESTIMATE: "a model of the scores, or nothing: a figure without a guarantee; never decides",
}
LESS = "; this bound happens to be lower than the certified one; both are valid"
OWN = "_lower"  # how the detail of an estimate names a bound on the claim's own parameter
STEP = "one step"
APART = "The bound is a statement of its own; here the test of the claim shows more."
NEVER_MIXED = "A figure stands on the line of what it rests on. Only the first line decides a verdict."
NEVER = "never decides"
MOST_STATEMENTS = 6  # on the first page, which has twelve lines
NOT_TESTED = (
    "Where the scores come from: they were taken as they are, and the design as it was said to be.",
    "Attacks other than the one that made these scores, other data, and other trainings than those it looked at.",
    "A lower bound never shows that a claim holds.",
)
LONGEST = 2_000  # characters of a line, which may quote a user's text
TONES = {True: "refuted", False: "kept", None: "none"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(Written):
    """One method's answer about one quantity ("epsilon" or "mu").

    `label` says what kind of statement it is (one of `LABELS`), `assumption` what it rests on, in words. `value` is
    the plain estimate, `lower` and `upper` the ends of the interval at `confidence`; None where the method has none.
    `p_value` is that of the claim: the least error probability at which this method refutes it (certified ones only).
    """

    method: str
    label: str
    quantity: str
    value: float | None = None
    lower: float | None = None
    upper: float | None = None
    delta: float | None = None
    confidence: float | None = None
    p_value: float | None = None
    assumption: str
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The one of the three `LINES` that it stands on, or below; a figure without a bound is an estimate."""
        if self.label == COMPOSED:
            return CERTIFIED
        return ESTIMATE if self.label not in LINES or self.lower is None is self.upper else self.label

    @property
    def epsilon_lower(self) -> float | None:
        """The lower end, where the quantity is epsilon."""
        return self.lower if self.quantity == "epsilon" else None

    @property
    def epsilon_upper(self) -> float | None:
        """The upper end, where the quantity is epsilon: of what this attack shows, never of the mechanism's own."""
        return self.upper if self.quantity == "epsilon" else None


def number_text(value: float | None, above: float | None = None) -> str:
    """A lower bound or an estimate with three digits, rounded down; more where these do not show it above a claim.

    >>> number_text(1.23456), number_text(-0.5), number_text(1.0004, above=1.0), number_text(None)
    ('1.23', '-0.500', '1.0004', 'nothing')
    """
    if value is None or not math.isfinite(value):
        return "nothing" if value is None else "infinity"
    return down(value, decimals(value, 3)) if value < 0.0 else bound(value, above=above)


def statement(each: Estimate, above: float | None = None) -> str:
    """What an estimate says: bounds on the claim's own parameter and on its quantity, or the plain figure.

    `above` is what was claimed of the quantity, which a larger bound must be seen to exceed.

    >>> statement(Estimate(method="m", label=CERTIFIED, quantity="epsilon", lower=1.23456, delta=1e-5, assumption=""))
    'epsilon >= 1.23 at delta 1e-05'
    """
    ends = [(name, ">=", number_text(value)) for name, value in own_bounds(each).items()]
    if each.lower is not None:
        ends.append((each.quantity, ">=", number_text(each.lower, above)))
    if each.upper is not None:
        ends.append((each.quantity, "<=", least_text(each.upper) if math.isfinite(each.upper) else "infinity"))
    if each.line != ESTIMATE:  # a bound with a guarantee is not mixed with a figure without one
        text = ", ".join(map(" ".join, ends))
    elif each.value is None and ends:
        text = f"in its model {', '.join(map(' '.join, ends))}"
    else:
        limits = " and ".join(f"{sign} {end}" for _, sign, end in ends)
        text = f"{each.quantity} about {number_text(each.value)}" + (f", in its model {limits}" if ends else "")
    return text + ("" if not each.delta else f" at delta {each.delta:g}")


def own_bounds(each: Estimate) -> dict[str, float]:
    """Lower bounds on parameters other than the quantity, where they rest on no more than the line says."""
    bounds = {key.removesuffix(OWN): end for key, end in each.detail.items() if key.endswith(OWN)}
    return {name: end for name, end in bounds.items() if each.line != ESTIMATE and "_" not in name != each.quantity}


def by(each: Estimate, of: str = "") -> str:
    """What it is about, where not a run: `of`; the method; the kind of statement, where the line does not say it."""
    if each.label == COMPOSED:
        return f"a run of {each.detail['steps']:,} steps, {each.label}"
    return ", ".join(filter(None, (of, each.method, "" if each.label in LINES else each.label)))


def on_lines(estimates: Iterable[Estimate]) -> dict[str, list[Estimate]]:
    """The estimates by line, in the order of the lines; empty lines and repeated statements are left out."""
    lines: dict[str, list[Estimate]] = {line: [] for line in LINES}
    for each in estimates:
        earlier = map(statement, lines[each.line])
        if not any(f"{statement(each)}, " in other for other in earlier):  # it is no part of one
            lines[each.line].append(each)
    return {line: group for line, group in lines.items() if group}


def limits(each: Estimate, certified: Iterable[Estimate]) -> str:
    """What a statement that decides nothing says of itself, and why where it assumes more and shows less."""
    known = {(other.quantity, other.delta): other.lower or 0.0 for other in certified if other.label == CERTIFIED}
    less = each.line == INDEPENDENT and (each.lower or 0.0) < known.get((each.quantity, each.delta), 0.0)
    return "" if each.line == CERTIFIED else f"{LESS if less else ''}; {NEVER}"


def further(estimates: Sequence[Estimate]) -> list[str]:
    """What statements of a line assume beyond its first one."""
    first = estimates[0].assumption
    return [
        f"{each.method} assumes more: {each.assumption.removeprefix(first).lstrip('.;: ')}"
        for each in estimates[1:]
        if each.line == CERTIFIED and each.assumption != first
    ]


def headline(stamp: str, claim: Claim | None, about: str, decided: Estimate | None, confidence: float) -> str:
    """The verdict, the bound that decided and the claim; what is seldom wrong stands before the words that say so."""
    claimed = f", claimed {about}" if about else ""
    if decided is None:
        return f"{stamp}  nothing is certified{claimed}"
    promised = None if claim is None else claim.epsilon_at(decided.delta or 0.0)
    text, own = statement(decided, promised), own_bounds(decided)
    sure = f" ({'each ' * bool(own)}{wrong(confidence)})"  # at one error probability, not together
    if stamp == Verdict.REFUTED.value:
        return f"{stamp}  {text}{claimed}{sure}"
    return f"{stamp}  {text}{sure * (max([decided.lower or 0.0, *own.values()]) > 0.0)}{claimed}"


def judged(counts: AttackCounts | None, decided: Estimate | None) -> str:
    """What was counted for the estimate that decides: right guesses, their weights, or the cells of a rule."""
    detail = {} if decided is None else decided.detail
    if isinstance(detail.get("right"), int):
        return f"{detail['right']:,} of {detail['guesses']:,} guesses are right"
    if "weights" in detail:
        total = sum(w * n for w, n in zip(detail["weights"], detail["counts"], strict=True))
        return f"{detail['won']:,} of a weight of {total:,} is right, in {sum(detail['counts']):,} guesses"
    if "e_value" in detail:
        return f"e-value {detail['e_value']:.4g} against the claim, of {detail['rows']:,} trainings or steps"
    if counts is None:
        return ""
    called = f"{counts.tp:,} of {counts.members:,} members and {counts.fp:,} of {counts.others:,} non-members"
    return f"{called} were called members"


class Decided(Displayed):
    """A result of statements on three lines: the first certified one about epsilon decides.

    `e_values` is the evidence after each training where several are combined; the corners `roc` and `band` and the
    `histogram` are what pictures are made of.
    """

    __slots__ = ()
    claim: Claim | None
    confidence: float
    histogram: Histogram | None
    roc: tuple[tuple[float, float], ...]
    band: tuple[tuple[float, float], ...]
    e_values: tuple[float, ...] = ()

    @property
    def stated(self) -> tuple[Estimate, ...]:
        """All its statements, in their order."""
        raise NotImplementedError

    @property
    def refuted(self) -> bool | None:
        """Whether the claim is refuted at `confidence`."""
        raise NotImplementedError

    @property
    def of(self) -> str:
        """What claim and statements are about, where it is not the whole training."""
        raise NotImplementedError

    @property
    def about(self) -> str:
        """The claim, and what it is about; "" without one."""
        return "" if self.claim is None else " of ".join(filter(None, (str(self.claim), self.of)))

    @property
    def deciding(self) -> Estimate | None:
        """The estimate that decides: the first certified one about epsilon; None where there is none."""
        return next((e for e in self.stated if e.label == CERTIFIED and e.quantity == "epsilon"), None)

    @property
    def epsilon_lower(self) -> float | None:
        """The certified lower bound on epsilon at `delta`, of the deciding method; of a step if that is audited."""
        return None if self.deciding is None else self.deciding.epsilon_lower

    @property
    def p_value(self) -> float | None:
        """The p-value of the claim, of the deciding method."""
        return None if self.deciding is None else self.deciding.p_value


@dataclass(frozen=True, slots=True, repr=False)
class ScoresResult(Decided):
    """The answer of `audit_scores`: every method's estimate, and the verdict of the first certified one.

    `counts` are those of the scores that were judged; `roc` holds the corners (fpr, fnr) of the empirical trade-off,
    `band` upper limits of (fpr, fnr) at every threshold that hold together at `confidence` (many-run designs only).
    `histogram` is how the scores lie, `first` the members'; None where counts alone are known.
    """

    claim: Claim | None
    design: str
    assumption: str
    sizes: tuple[int, int]
    choice: str
    rule: Mapping[str, Any] | None
    counts: AttackCounts
    confidence: float
    interval: str
    seed: int
    estimates: tuple[Estimate, ...]
    roc: tuple[tuple[float, float], ...] = ()
    band: tuple[tuple[float, float], ...] = ()
    histogram: Histogram | None = None

    @property
    def stated(self) -> tuple[Estimate, ...]:
        """The estimates of all methods."""
        return self.estimates

    @property
    def delta(self) -> float | None:
        """The delta that the certified bound is for."""
        return None if self.deciding is None else self.deciding.delta

    @property
    def refuted(self) -> bool | None:
        """Whether the claim is refuted at `confidence`; None without a claim or without a certified estimate."""
        decided = self.deciding
        if self.claim is None or decided is None or decided.p_value is None:
            return None
        alpha = error_probability(self.confidence)
        return decided.p_value <= (alpha / 2.0 if self.interval == "two-sided" else alpha)

    def estimate(self, method: str) -> Estimate:
        """The first estimate of that method; raises `KeyError` where it was not asked for."""
        return {each.method: each for each in reversed(self.estimates)}[method]

    def to_dict(self) -> dict[str, object]:
        """The result as plain values, as JSON holds it."""
        head = {
            "schema": SCHEMA,
            "claim": None if self.claim is None else self.claim.to_dict(),
            "refuted": self.refuted,
            "decided_by": None if self.deciding is None else self.deciding.method,
        }
        values = {**by_fields(self), "sizes": {"in": self.sizes[0], "out": self.sizes[1]}}
        return head | {"scores" if key == "sizes" else key: each for key, each in values.items() if key != "claim"}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the result as JSON."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n", encoding="utf-8")
        return Path(path)

    @property
    def headline(self) -> str:
        """The verdict in one line."""
        if self.deciding is None:
            return "NO CERTIFICATE  only estimates without a guarantee were asked for"
        stamp = "CERTIFIED" if self.refuted is None else "REFUTED" if self.refuted else "NOT REFUTED"
        claim, about = (None, "") if self.refuted is None else (self.claim, self.about)
        return headline(stamp, claim, about, self.deciding, self.confidence)

    @property
    def of(self) -> str:
        """What claim and statements are about, where it is not the whole training."""
        return STEP if self.design == Steps.name else ""


# --- its account ---


def sentence(words: str) -> str:
    """A clause of somebody's as a sentence.

    >>> sentence("the loader")
    'The loader.'
    """
    text = words.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}" if text else ""


def line_sections(
    estimates: Iterable[Estimate],
    meanings: Mapping[str, str],
    of: str = "",
    most: int = MOST_STATEMENTS,
    known: str = "",
) -> list[Section]:
    """For each line its statements, and further down what it rests on; `of` is what they are about, if not a run.

    At most `most` statements stand on the first page, one of each line at least; the others below it. `known` is an
    assumption that stands elsewhere.
    """
    groups = on_lines(estimates)
    certified, room = groups.get(CERTIFIED, []), most - len(groups)
    shown = []
    for line, group in groups.items():
        rows = [f"{statement(each)} ({by(each, of)}){limits(each, certified)}" for each in group]
        first, further_rows = rows[: room + 1], rows[room + 1 :]
        first[-1] += f"; {len(further_rows)} more in the whole account" if further_rows else ""
        room -= len(first) - 1
        shown.append(Section(line, Level.PAGE_ONE, tuple(first)))
        shown.append(Section(f"{line}, further", Level.DETAIL, tuple(further_rows)))
    for line, group in groups.items():
        rests = (f"Rests on {meanings[line]}.", *map(sentence, further(group)))
        assumed = (f"{each.method}: {each.assumption}" for each in group if each.assumption != known)
        shown.append(Section(f"{line}, its basis", Level.DETAIL, (*rests, *assumed)))
    return [*shown, Section("never mixed", Level.DETAIL, (NEVER_MIXED,))]


def to_do(result: Decided, promised_by: str) -> Section:
    """What somebody has to do, and what the verdict does not say."""
    lines: tuple[str, ...] = ()
    if result.refuted:
        lines = (f"{promised_by} does not keep its claim: mend it or state a weaker claim, and audit it again.",)
    elif result.deciding is None:
        lines = ("Nothing is certified: only estimates without a guarantee were made.",)
    elif result.refuted is False:
        lines = (NOT_PRIVATE,)
    return Section("what to do", Level.PAGE_ONE, lines)


def sure(result: Decided) -> Section:
    """The confidence, the p-value, and a word on a claim that a test of its own refutes, by no larger bound."""
    claim, decided, lines = result.claim, result.deciding, []
    if decided is not None:
        p = "" if decided.p_value is None else f" P-value at most {p_text(decided.p_value)}."
        lines.append(f"Confidence {result.confidence:g}.{p}")
    if claim is not None and decided is not None and result.refuted:
        own = own_bounds(decided).get(claim.parameter)
        lower, promised = (own, claim.value) if own else (decided.lower, claim.epsilon_at(decided.delta or 0.0))
        lines += [APART] if lower is not None and promised is not None and lower <= promised else []
    return Section("how sure it is", Level.DETAIL, tuple(lines))


def assembled(kind: str, result: Decided, headline: str, sections: Sequence[Section], up_to: Level) -> Account:
    """The account of these sections, the headline before them and those of the first page first."""
    texts = [[tuple(clean(line, LONGEST) for line in part) for part in (each.lines, each.code)] for each in sections]
    told = [replace(each, lines=lines, code=code) for each, (lines, code) in zip(sections, texts, strict=True)]
    below = sorted((each for each in told if each.lines or each.code), key=lambda each: each.level)
    first, stamp = Section("verdict", Level.HEADLINE, (headline,)), headline.partition("  ")[0]
    return Account(kind, TONES[result.refuted], (first, *below), stamp=stamp).up_to(up_to)


@account.register
def _of_scores(result: ScoresResult, up_to: Level = Level.REVIEWER) -> Account:
    decided = result.deciding
    certified = sum(each.line == CERTIFIED for each in result.estimates)
    several = f"{counted(certified, 'certified statement')}; each holds on its own, and only the first decides."
    counts = judged(result.counts, decided)
    sections = [
        *line_sections(result.estimates, MEANINGS, result.of, known=result.assumption),
        Section("design", Level.PAGE_ONE, (f"{result.design}: {result.assumption}.",)),
        Section("judged", Level.PAGE_ONE, (f"{counts}.",)),
        to_do(result, "What was attacked"),
        Section("not tested", Level.PAGE_ONE, (" ".join(NOT_TESTED),)),
        sure(result),
        Section("statements", Level.DETAIL, (several,) if certified > 1 else ()),
        Section(
            "scores",
            Level.DETAIL,
            (f"{result.sizes[0]:,} in, {result.sizes[1]:,} out.", f"{result.choice.capitalize()}."),
        ),
    ]
    return assembled("Audit of membership scores", result, result.headline, sections, up_to)
