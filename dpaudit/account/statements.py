"""The statements of a result on one line: its verdict, its bound, what was claimed."""

import math

from dpaudit.base.numerals import bound, confidence_text, counted, decimals, down, least_text, up
from dpaudit.base.quoting import LONGEST_DATA, clean, line, standing
from dpaudit.base.validate import exact
from dpaudit.certify import Certificate
from dpaudit.claims import Claim, Relation
from dpaudit.results.display import Verdict
from dpaudit.results.observations import FIRST_CALLS, PROCESSES
from dpaudit.results.provenance import RECORD
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import Acceptance, SuiteEntry

LONGEST_DELTA = 8  # characters of a delta that is printed as it is
SHOWN_MASS = 0.1  # probability of the event of which a headline says what could have been seen

ON_TRUST = "adjacency taken on trust"
IF = {  # what has to be believed, where not everything is
    "answers": "neighbours only if the data are query answers of sensitivity {sensitivity:g}",
    "neutral": "neighbours only if the new record is the neutral one",
    "one value": "neighbours only if each dataset is the value of one person",
}
NOT_PRIVATE = "Not refuted is not private: it says what was looked at and not found."
LIMITS = (
    "A lower bound holds for the pair that was run; it never shows that a claim holds for every pair.",
    "Other datasets and other events may lose more than the ones that were tried.",
    "Time, memory, logs and other side channels were not looked at, nor several releases taken together.",
    "The mechanism was run here, with these versions; elsewhere, or when not audited, it may behave differently.",
)
STILL_REFUTED = "An accepted finding stays refuted: somebody answers for it until the day that is named."
ELSEWHERE = ("other datasets and events", "time, memory, logs and other side channels", "several releases together")
NO_BITS = "The low bits of floating-point outputs (representation) were not looked at as such."
NO_FIRSTS = "What the first run of a process alone gives away, before caches are filled, was not looked for."


def not_private(*results: AuditResult) -> tuple[str, ...]:
    """That not refuted is not private, where something is not refuted, or nothing was audited."""
    return (NOT_PRIVATE,) if not results or any(each.verdict is not Verdict.REFUTED for each in results) else ()


@standing(line)
def limits(*results: AuditResult) -> tuple[str, ...]:
    """What the results do not show, of one the kinds of pairs first.

    Bits of floats and first calls are among it unless every audit looked at them.
    """
    left = [(NO_BITS, bits_looked_at), (NO_FIRSTS, first_calls_looked_at)]
    gaps = [line for line, check in left if not (results and all(map(check, results)))]
    kinds = [text for each in results if len(results) == 1 and (text := kinds_tried(each))]
    return (*kinds, *LIMITS[:-1], *gaps, LIMITS[-1])


def not_looked_at(*results: AuditResult) -> str:
    """The same in one line, what is missing of outputs first."""
    missing = [text for each in results if (text := unseen(each))]
    gaps = [
        words
        for words, check in (
            ("the low bits of floats", bits_looked_at),
            ("what the first run of a process alone gives away", first_calls_looked_at),
        )
        if not (results and all(map(check, results)))
    ]
    return "; ".join([*dict.fromkeys(missing), *ELSEWHERE, *gaps])


def kinds_tried(result: AuditResult) -> str:
    """Which kinds of pairs were made of one dataset, and which were not; empty where the pairs were given."""
    from dpaudit.data.patterns import kinds_of_pairs

    relation = Relation.of(result.spec["claim"]["relation"])
    tried, left = kinds_of_pairs(result.provenance.get("reasons", {}).values(), relation)
    why = "not named, or nothing that these data can hold or do not show already, as NaN among whole numbers"
    more = f"; not tried: {', '.join(left)} ({why})" if left else ""
    return f"Kinds of pairs that were tried: {', '.join(tried)}{more}." if tried else ""


def without(result: AuditResult) -> list[str]:
    """How to leave out data that cannot occur, NaN, infinity or None, where the pair was made with such a value."""
    kind = result.provenance.get("reasons", {}).get(result.pair["name"], "").partition(": ")[0]
    text = f"If {kind} cannot occur in the data, audit without it: let pairs = [...] name the patterns to try."
    return [text] if kind in ("NaN", "infinity", "None") else []


def bits_looked_at(result: AuditResult) -> bool:
    """Whether the event on bits was searched for; bets do not, nor do runs of which each has a process of its own."""
    return result.representation is not None or any(entry.what == "representation" for entry in result.explored)


def first_calls_looked_at(result: AuditResult) -> bool:
    """Whether runs that were each the first of a process were searched, or are those that certify."""
    return any(entry.name == FIRST_CALLS and entry.runs > 0 and entry.what == PROCESSES for entry in result.explored)


def verdict_text(verdict: Verdict) -> str:
    """`REFUTED` or `not refuted`: the loud word is kept for the finding."""
    return "REFUTED" if verdict is Verdict.REFUTED else "not refuted"


def stamp(result: AuditResult) -> str:
    """The verdict and what the bits of floats say: a finding on bits never stands behind a verdict on values.

    `REFUTED`, `not refuted`, `REFUTED by bits` (and by values not), or `REFUTED, by bits too`.
    """
    if not result.representation_refuted:
        return verdict_text(result.verdict)
    return "REFUTED, by bits too" if result.refuted else "REFUTED by bits"


def bound_lines(result: AuditResult, *, digits: int = 3) -> tuple[str, ...]:
    """What is certified, the finding that the stamp names first; where bits refute the claim, both of them."""
    finding, values = result.representation, statement(result, digits=digits)
    if finding is None or not finding.certificate.refuted:
        return (values,)
    level = confidence_text(finding.certificate.confidence)
    bits = certified_bound(finding.claim, finding.certificate, digits=digits)
    bits += f" with confidence {level}{supposed(result)}"
    if result.refuted:
        return values, f"by bits: {bits}"
    return f"{bits}, claimed {promised(finding.claim, finding.certificate)}", f"not refuted by values: {values}"


def claimed(result: AuditResult) -> str:
    """What the claim promises for the witness's pair, in its own parameter; at the frozen delta for a curve."""
    return promised(result.claim, result.certificate)


@standing(str)
def promised(claim: Claim, certificate: Certificate) -> str:
    """What a claim promises, as `claimed`, for any certificate."""
    own = claim.value
    return exact(own if own is not None else float(up(claim.promised(certificate.delta), 4)))


def certified(result: AuditResult, *, digits: int = 3) -> str:
    """The bound in the claim's own parameter: `epsilon >= 1.98 at delta 1e-06`, `mu >= 1.2`."""
    return certified_bound(result.claim, result.certificate, digits=digits)


def beyond(result: AuditResult) -> str:
    """The bound and the claim that it is beyond, in as few words: `epsilon >= 1.98 > 1 at delta 1e-06`."""
    text, at, where = certified(result).partition(" at ")
    more = ("" if " > " in text else f" > {claimed(result)}") + (" on trust" if result.on_trust else "")
    return f"{text}{more}{at}{where}{supposed(result)}"


@standing(str)
def certified_bound(claim: Claim, certificate: Certificate, *, digits: int = 3) -> str:
    """The bound of any certificate, as `certified`.

    Bets may refute the claim and certify no number beyond the claimed one: then the truth is above it.
    """
    above = claim.promised(certificate.delta) if certificate.refuted else None
    where = at_delta(certificate.delta) if claim.parameter == "epsilon" else ""
    where = claim.where or where
    own = claim.value  # a curve has none, and its promise at one delta may well hold
    if certificate.refuted and own is not None and certificate.lower <= own:
        return f"{claim.parameter} > {exact(own)}{where}"
    return f"{claim.parameter} >= {bound(certificate.lower, digits=digits, above=above)}{where}"


def implied(claim: Claim, certificate: Certificate) -> tuple[str, ...]:
    """The epsilon at a delta that the counts show without any model, where the claim's parameter is another."""
    if not certificate.epsilon_lower or (claim.parameter == "epsilon" and not claim.where):
        return ()
    lower = bound(certificate.epsilon_lower, digits=6)
    return (f"whatever the mechanism is: epsilon >= {lower}{at_delta(certificate.delta)}",)


def record_lines(result: AuditResult) -> tuple[str, ...]:
    """What people filled in of the record, and, once and short, what nobody did."""
    given = result.provenance.get("record", {})
    sentences = [f"{RECORD[key].capitalize()}: {clean(text, LONGEST_DATA)}." for key, text in given.items()]
    left = [words for key, words in RECORD.items() if key not in given]
    left += [] if result.provenance.get("commit") else ["commit"]
    return (*sentences, *([f"Not recorded: {', '.join(left)}."] if left else []))


@standing(str)
def statement(result: AuditResult, *, digits: int = 3) -> str:
    """The certified statement: the bound, its confidence, what was claimed, and what was not checked or looked at."""
    level = confidence_text(confidence(result))
    trust = f"; {trusted(result)}" if result.on_trust else ""
    trust += f"; relation {clean(result.provenance['assumed'])} assumed" if result.provenance.get("assumed") else ""
    left = f"; {unseen(result)}" if unseen(result) else ""
    left += chosen(result)
    stated = f"{certified(result, digits=digits)} with confidence {level}, claimed {claimed(result)}"
    return f"{stated}{supposed(result) if result.refuted else ''}{trust}{left}"


def supposed(result: AuditResult) -> str:
    """What a refutation assumes, after a comma: `, if the runs of a call are independent`; or nothing."""
    return f", {result.condition}" if result.condition else ""


def chosen(result: AuditResult) -> str:
    """Where runs were chosen by their time, how many there are, and what loss they could have seen."""
    runs, name = result.provenance.get("chosen_runs"), result.claim.parameter
    least = result.least_found(SHOWN_MASS) if runs and result.evidence.runs else None
    could = f"{name} from {least_text(least)} on" if least is not None and least < math.inf else "no loss"
    seen = f", which could see {could} at probability {exact(SHOWN_MASS)}"
    return f"; {counted(runs, 'run')}, as many as a minute allows{'' if result.refuted else seen}" if runs else ""


def trusted(result: AuditResult) -> str:
    """That adjacency is taken on trust, and on what it rests, or what speaks against it: `..., though 2 rows leave`."""
    more = IF.get(result.shown or "", "").format(**result.pair)
    return f"{ON_TRUST}, though {result.further_apart}" if result.further_apart else ON_TRUST + (more and f" ({more})")


def unseen(result: AuditResult) -> str:
    """The entries of outputs that no event was looked for in, or none of several: of any output, the most.

    Then the other parts in which outputs differ unseen.
    """
    parts = [(result.unseen, "not looked at"), (result.unpaired, "looked at alone and in sums only")]
    counts = [(counted(many, "entry", "entries") + " of an output", f"{many:,}", how) for many, how in parts if many]
    texts = [f"{short if place else whole} {how}" for place, (whole, short, how) in enumerate(counts)]
    texts += [f"parts of the output differ that were not looked at ({clean(result.unread)})"] if result.unread else []
    return ", ".join(texts)


def confidence(result: AuditResult) -> float:
    """The confidence of the statements about a result: of all its witnesses together, for the best is printed."""
    return float(result.spec["confidence"])


def headline(result: AuditResult) -> str:
    """The one line of a result: `REFUTED  noisy count: epsilon >= 1.98 with confidence 0.999, claimed 1`."""
    return f"{stamp(result)}  {clean(result.name)}: {'; '.join(bound_lines(result))}"


def at_delta(delta: float) -> str:
    """Where a bound on epsilon is stated at a delta: ` at delta 1e-06`; many digits are rounded down.

    A lower bound at a delta holds at every smaller one too, and at no greater one.
    """
    return f" at delta {delta_text(delta)}" if delta > 0.0 else ""


def delta_text(delta: float) -> str:
    """A delta, rounded down where it has many digits."""
    text = exact(delta)
    return text if len(text) <= LONGEST_DELTA else down(delta, decimals(delta, 5))


def expected_text(entry: SuiteEntry) -> str:
    """What the author of the spec knows: a verdict, or that only bits refute the claim."""
    return "REFUTED by bits" if entry.bits else verdict_text(entry.expect)


def until_text(acceptance: Acceptance) -> str:
    """How long a finding is accepted.

    >>> from datetime import date
    >>> until_text(Acceptance("a1", "noisy count", "old API", date(2026, 1, 1), date(2026, 3, 1)))
    'accepted until 2026-03-01'
    """
    return f"accepted until {acceptance.until.isoformat()}"


def acceptance_line(acceptance: Acceptance) -> str:
    """An acceptance on one line: the finding, until when, since when, and why."""
    return (
        f"{clean(acceptance.finding)}: {until_text(acceptance)}, since {acceptance.accepted.isoformat()}: "
        f"{clean(acceptance.reason, LONGEST_DATA)} (fingerprint {clean(acceptance.fingerprint)})"
    )
