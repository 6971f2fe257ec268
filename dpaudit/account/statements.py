"""The statements of a result on one line: its verdict, its bound, what was claimed; and what stands beside them.

Other pairs, bets, an upper bound, bits of floats, health, how runs ended; what the audit could have seen: its power,
its ceiling, and the controls that back them.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from dpaudit.account.bracketed import sentences, upper_text
from dpaudit.account.section import Table
from dpaudit.base.numerals import bound, counted, decimals, down, least_text, odds, p_text, up, wrong
from dpaudit.base.quoting import LONGEST_DATA, clean, line, standing
from dpaudit.base.validate import error_probability, exact
from dpaudit.certify import Binned, Certificate
from dpaudit.certify.certifiers import MASSES, narrowest
from dpaudit.certify.sequential import p_value
from dpaudit.claims import Claim, Relation
from dpaudit.results.bounds import BracketVerdict
from dpaudit.results.certification import AuditEvidence
from dpaudit.results.display import Verdict
from dpaudit.results.observations import FIRST_CALLS, PROCESSES, VALUE, Control, Ending, by_place, smallest_seen
from dpaudit.results.provenance import RECORD
from dpaudit.results.result import POWER, AuditResult, Finding
from dpaudit.results.suite import Acceptance, SuiteEntry

LONGEST_DELTA = 8  # characters of a delta that is printed as it is
LONGEST_CLAIMED = 10  # characters of a claimed number that is

IF = {  # what has to be believed, where not everything is
    "answers": "the data are query answers of sensitivity {sensitivity:g}",
    "neutral": "the new record is the neutral one",
    "one value": "each dataset is the value of one person",
}
NOT_PRIVATE = "Not refuted is not private: it says what was looked at and not found."
LIMITS = (
    "A lower bound holds for the pair that was run; it never shows that a claim holds for every pair.",
    "The mechanism was run here, with these versions; elsewhere, or when nobody audits it, it may behave differently.",
)
STILL_REFUTED = "An accepted finding stays refuted: somebody answers for it until the day that is named."
ELSEWHERE = ("other datasets and events", "time, memory, logs and other side channels", "several releases together")
BITS, FIRSTS = "the low bits of floats", "what the first run of a process alone gives away"
NO_BITS = "The low bits of floating-point outputs (representation) were not looked at as such."


def not_private(*results: AuditResult) -> tuple[str, ...]:
    """That not refuted is not private, where something is not refuted, or nothing was audited."""
    return (NOT_PRIVATE,) if not results or any(each.verdict is not Verdict.REFUTED for each in results) else ()


@standing(str)
def not_looked_at(*results: AuditResult) -> str:
    """What the results do not show, in one line; bits and first calls too unless every audit looked at them."""
    left = (BITS, bits_looked_at), (FIRSTS, first_calls_looked_at)
    gaps = [words for words, check in left if not (results and all(map(check, results)))]
    return "; ".join([*ELSEWHERE, *gaps])


def kinds_tried(result: AuditResult) -> str:
    """Which kinds of pairs were made of one dataset, and which were not; empty where the pairs were given."""
    from dpaudit.data.patterns import kinds_of_pairs

    relation = Relation.of(result.spec["claim"]["relation"])
    tried, left = kinds_of_pairs(result.provenance.get("reasons", {}).values(), relation)
    why = "not named, or nothing that these data can hold, as NaN among whole numbers"
    more = f"; not tried: {', '.join(left)} ({why})" if left else ""
    return f"{', '.join(tried)}{more}" if tried else ""


def without(result: AuditResult) -> list[str]:
    """How to leave out data that cannot occur, NaN, infinity, None or what recorded noise found, where a pair is so."""
    from dpaudit.data.patterns import FOUND

    kind = result.provenance.get("reasons", {}).get(result.pair["name"], "").partition(": ")[0]
    word = {"NaN": kind, "infinity": kind, "None": kind, FOUND: "such a record"}.get(kind)
    text = f"If {word} cannot occur in the data, audit without it: let pairs = [...] name the patterns to try."
    return [text] if word else []


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
    bits = _stated(result, finding.claim, finding.certificate, finding.certificate.confidence, digits)
    return (values, f"by bits: {bits}") if result.refuted else (bits, f"not refuted by values: {values}")


def claimed(result: AuditResult) -> str:
    """What the claim promises for the witness's pair, in its own parameter; at the frozen delta for a curve."""
    return promised(result.claim, result.certificate)


@standing(str)
def promised(claim: Claim, certificate: Certificate) -> str:
    """What a claim promises, as `claimed`, for any certificate."""
    own = claim.value
    text = exact(own if own is not None else float(up(claim.promised(certificate.delta), 4)))
    return text if len(text) <= LONGEST_CLAIMED or own is None else f"{own:.6g}"


def certified(result: AuditResult, *, digits: int = 3) -> str:
    """The bound in the claim's own parameter: `epsilon >= 1.98 at delta 1e-06`, `mu >= 1.2`."""
    return certified_bound(result.claim, result.certificate, digits=digits)


def beyond(result: AuditResult) -> str:
    """The bound and the claim that it is beyond, in as few words: `epsilon >= 1.98 > 1 at delta 1e-06`."""
    text, at, where = certified(result).partition(" at ")
    more = ("" if " > " in text else f" > {claimed(result)}") + (" if neighbours" if result.on_trust else "")
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
    """The certified statement: the bound, the claim, how often it is wrong, what was not checked or looked at."""
    stated = [_stated(result, result.claim, result.certificate, confidence(result), digits)]
    assumed, runs = result.provenance.get("assumed"), result.provenance.get("chosen_runs")
    stated += [f"relation {clean(assumed)} assumed"] if assumed else []
    stated += [unseen(result)] if unseen(result) else []
    stated += [f"{counted(runs, 'run')}, as many as a minute allows"] if runs else []
    return "; ".join(stated)


def _stated(result: AuditResult, claim: Claim, certificate: Certificate, level: float, digits: int) -> str:
    """A bound beside its claim; of a claim that is not refuted it is the bound alone that is seldom wrong."""
    text, about = certified_bound(claim, certificate, digits=digits), f", claimed {promised(claim, certificate)}"
    about += trusted(result)
    if certificate.refuted:
        return f"{text}{about} ({wrong(level)}{supposed(result)})"
    return f"{text} ({wrong(level)}){about}" if certificate.lower > 0.0 else f"{text}{about}"


def supposed(result: AuditResult) -> str:
    """What a refutation assumes, after a comma: `, if the runs of a call are independent`; or nothing."""
    return f", {result.condition}" if result.condition else ""


def trusted(result: AuditResult) -> str:
    """What has to be believed of the datasets, after a comma: `, if the datasets count as neighbours`; or nothing."""
    return f", if {believed(result)}" if result.on_trust else ""


def believed(result: AuditResult) -> str:
    """What makes the datasets neighbours that no comparison shows, or what speaks against it: `..., though 2 rows`."""
    near = "count as neighbours" if result.distance == 1 else f"are {result.distance:,} steps apart"
    if result.further_apart:
        return f"the datasets {near}, though {result.further_apart}"
    return IF.get(result.shown or "", f"the datasets {near}").format(**result.pair)


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
    """The one line of a result: `REFUTED  noisy count: epsilon >= 1.98, claimed 1 (wrong in at most 1 of ...)`."""
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


# --- beside the main finding ---


DOES = {VALUE: "gives a value", "None": "gives None", "nan": "gives NaN", "timed out": "exceeds run_timeout_s"}
LONGEST_NOTE = 240
IN_OBJECT = "vars(output)"
OF_OBJECT = (
    "the output is an object, and all that it holds counts: return what is released, such as model.coef_.tolist()"
)
APART = "that is a bound for neighbours, and these datasets are {} steps apart: the two are not joined"


def hits_of(result: AuditResult) -> tuple[int, int, int, int]:
    """Hits and runs of the event that refutes, on its likelier dataset and on the other; of bins those of the first.

    The last bet has a few runs alone: of an audit that stopped with it those of search, where they are kept.
    """
    typical, way = result.illustration.typical, 1 if result.witness.p_side == "first" else -1
    if result.stopped_early and typical is not None and all(typical.runs):
        (p, q), (runs_p, runs_q) = typical.hits[::way], typical.runs[::way]
        return p, runs_p, q, runs_q
    return hits_in(result.blocks[-1].evidence if result.stopped_early else result.evidence)


def hits_in(e: AuditEvidence) -> tuple[int, int, int, int]:
    """The same of counts."""
    p, q = (e.counts_p[0], e.counts_q[0]) if isinstance(e, Binned) else (e.hits_p, e.hits_q)
    return p, e.runs_p, q, e.runs_q


def other_lines(result: AuditResult) -> tuple[str, ...]:
    """The further witnesses that were certified, and how the error probability was shared."""
    if not result.others:
        return ()
    lines = [
        f"{len(result.others) + 1} witnesses were certified, each at an equal part of the error probability; "
        f"the one with the least p-value stands above, Holm-adjusted {p_text(result.holm[0])}"
    ]
    for finding, adjusted in zip(result.others, result.holm[1:], strict=True):
        name = clean(result.spec["pairs"][finding.witness.pair]["name"])
        verdict = "REFUTED" if finding.certificate.refuted else "not refuted"
        bound = certified_bound(finding.claim, finding.certificate)
        p = p_text(finding.certificate.p_value)
        event = clean(finding.witness.event, LONGEST_DATA)
        lines.append(f'pair "{name}": {verdict}, {bound}, p-value {p}, Holm-adjusted {p_text(adjusted)}, by {event}')
    return tuple(lines)


def bet_lines(result: AuditResult) -> tuple[str, ...]:
    """What the blocks of an anytime audit came to; empty for a fixed one."""
    if result.spec["stopping"] != "anytime":
        return ()
    share, alpha = result.spec["sequential_share"], error_probability(result.spec["confidence"])
    runs = sum(block.evidence.runs for block in result.blocks)
    if not result.blocks:
        return ("the bets count for nothing: all outputs of one process were the same, so each fresh run had its own",)
    lines = [
        f"{counted(len(result.blocks), 'block')} of {runs:,} runs in all, each bet frozen before the first run of its "
        "block",
        f"a part {exact(share)} of the error probability is for stopping early (wealth of {1 / (share * alpha):,.0f} "
        f"refutes), the rest for the fixed bound",
    ]
    log = -math.log(max(p_value(result.blocks, result.claim), 1e-300))
    lines.append(f"the largest wealth was {f'{math.exp(log):,.3g}' if log < 30.0 else f'e^{log:.1f}'}")
    if result.stopped_early:
        lines.append("stopped there: the claim was refuted before the runs were spent")
    return tuple(lines)


@standing(line)
def representation_lines(result: AuditResult) -> tuple[str, ...]:
    """The finding on the bits of floating-point outputs; empty where the spec does not ask for it."""
    if not result.spec["representation"]:
        return ()
    finding = result.representation
    if not bits_looked_at(result):
        return ("the bits of the outputs were not looked at: the runs were bets, or one in each of many processes",)
    if finding is None:
        return (
            "no finding: no event on bits promised more than the rounded values do",
            "bits show best on a pair with an answer near 0, and hardly where the answers are large against the noise",
        )
    bound = certified_bound(finding.claim, finding.certificate)
    sure = wrong(finding.certificate.confidence)
    e, witness = finding.evidence, finding.witness
    lines = [f"the event {clean(witness.event, LONGEST_DATA)}"]
    if not isinstance(e, Binned):
        first, second = f"{e.hits_p:,} of {e.runs_p:,} runs", f"{e.hits_q:,} of {e.runs_q:,}"
        lines.append(f"{first} on the {witness.p_side} dataset, {second} on the {witness.q_side}")
    if finding.certificate.refuted:
        return (
            f"REPRESENTATION FINDING: {bound} ({sure})",
            "the bits of the output tell the datasets apart; the claim does not hold for the outputs as floats",
            *lines,
        )
    return (f"no finding: the best event on bits gives {bound} ({sure})", *lines)


def bracket_lines(result: AuditResult) -> tuple[str, ...]:
    """The bracket of the pair, or of all inputs where the upper bound holds for them; empty where there is none."""
    if result.upper is None:
        return ()
    joined = result.bracket
    lines = (upper_text(result.upper), APART.format(result.distance)) if joined is None else sentences(joined)
    if joined is not None and joined.verdict is BracketVerdict.REFUTED and result.on_trust:
        lines = (f"{lines[0]}, if these are neighbours", *lines[1:])
    return tuple(clean(line, 2 * LONGEST_DATA) for line in lines)


def bracket_line(result: AuditResult) -> tuple[str, ...]:
    """The bracket in one line: what lies between which bounds, and where these contradict each other, that they do."""
    lines, joined = bracket_lines(result), result.bracket
    return ("; ".join((lines[0], lines[-1])),) if joined is not None and joined.contradictory else lines[:1]


def health_lines(result: AuditResult) -> tuple[str, ...]:
    """The checks of the experiment: that none alarmed, and notes."""
    checks = result.health.checks
    level = sum(check.level for check in checks)
    alarm = f"no alarm of {counted(len(checks), 'check')}, together at a false-alarm level of {level:.2g}"
    return (alarm, *(clean(note, LONGEST_DATA) for note in result.health.notes))


def unit_lines(result: AuditResult) -> tuple[str, ...]:
    """The second bound of a refutation, of one run in each call or process; nothing where runs are the units."""
    if result.units is None:
        return ()
    one, many = ("fresh process", "fresh processes") if result.units.processes else ("call", "calls")
    if not result.units.again:
        why = f"too many {many}, or too much time, would have been needed, or they failed"
        return (f"not certified with one run in each {one}: {why}",)
    finding = result.units.again[0]
    apart = counted(finding.evidence.runs, one, many)
    return (f"with one run in each of {apart}: p-value at most {p_text(finding.certificate.p_value)}",)


@standing(str)
def meaning(result: AuditResult) -> str:
    """What the event comes to, ` (that is: the run raises ValueError)`; empty where the event says it itself."""
    endings = [each for each in result.illustration.endings if sum(each.runs)]
    inside = [each for each in endings if each.hits == each.runs]
    if endings and inside and all(each.hits in (each.runs, (0, 0)) for each in endings):
        return f" (in {_held(result)} that was: the run {' or '.join(does(each.what) for each in inside)})"
    return ""


def ending_lines(result: AuditResult) -> tuple[str, ...]:
    """How often search runs gave no value, with the first message and line of each exception; none where all did."""
    lines = [OF_OBJECT] if str(result.witness.event).startswith(IN_OBJECT) and result.certificate.refuted else []
    if not result.illustration.endings:
        return tuple(lines)
    total = [sum(each.runs[side] for each in result.illustration.endings) for side in (0, 1)]
    messages = result.provenance.get("exceptions", {})
    for each in result.illustration.endings[1:]:
        note = f": {clean(messages[each.what], LONGEST_NOTE)}" if each.what in messages else ""
        first, second = (f"{runs:,} of {of:,}" for runs, of in zip(each.runs, total, strict=True))
        where = f"{first} {_held(result)} on the first dataset, {second} on the second"
        lines.append(f"the mechanism {does(each.what)} in {where}{note}")
    if not meaning(result) and _mostly(result.illustration.endings):
        lines.append("most of what tells the datasets apart by this event is whether a run gives a value at all")
    return tuple(lines)


def readable(result: AuditResult) -> Finding | None:
    """The event that people can read beside a witness that they cannot; None where it shows nothing alone."""
    lower = math.inf if result.plain is None else result.plain.certificate.lower
    return result.plain if min(lower, result.certificate.lower) > 0.0 else None


def alone(result: AuditResult) -> str:
    """The bound that the plain event gives alone, at most that of the witness: then one error covers both."""
    assert result.plain is not None
    plain, first = result.plain.certificate, result.certificate
    kept = plain if plain.lower <= first.lower else replace(first, method=plain.method)
    return certified_bound(result.claim, kept)


def answers(result: AuditResult) -> str:
    """That either dataset gave one answer in all search runs, and which; empty where they did not, or failed."""
    one, other = (None, None) if result.illustration.typical is None else result.illustration.typical.constant
    if one is None or other is None or one == other or one.startswith("raised ") or other.startswith("raised "):
        return ""
    first, second = clean(one, LONGEST_DATA), clean(other, LONGEST_DATA)
    return f"both datasets give one answer each, in every search run: {first} on the first, {second} on the second"


def _held(result: AuditResult) -> str:
    return "held runs" if result.blocks else "search runs"


def of_endings(result: AuditResult) -> bool:
    """Whether the event is, or is mostly, about how runs end and not about the values that they give."""
    return bool(meaning(result)) or _mostly(result.illustration.endings)


def _mostly(endings: tuple[Ending, ...]) -> bool:
    """Whether the share of runs with a value differs by at least half as much as the share in the event.

    Never where the event holds some runs of an ending and not others: what they say tells them apart.
    """
    total = [sum(each.runs[side] for each in endings) for side in (0, 1)]
    hits = [sum(each.hits[side] for each in endings) for side in (0, 1)]
    if not all(total) or any(each.hits not in (each.runs, (0, 0)) for each in endings[1:]):
        return False
    valued, rates = endings[0].runs, [hit / runs for hit, runs in zip(hits, total, strict=True)]
    return 2.0 * abs(valued[0] / total[0] - valued[1] / total[1]) >= abs(rates[0] - rates[1]) > 0.0


def does(ending: str) -> str:
    """What a run does that ends so: `raises ValueError` for "raised ValueError"."""
    kind, _, name = ending.partition(" ")
    return f"raises {clean(name, LONGEST_DATA)}" if kind == "raised" else DOES.get(ending, clean(ending))


KNOWN = "for an event that is known"  # the search has to find one
FOUND = "search counted in"
SIMPLE = "where one value, or one end of a range, shows it"  # the kinds of leak that the figure was measured for
TIMES = f"{20 * POWER:g} of 20 times"
UNSURE = "nothing is sure to be caught"
SPREAD = (
    "This holds for leaks that one value or one threshold shows. Leaks spread over several numbers may be missed at "
    "any size."
)


def caught(name: str, least: Callable[[float], float | None], note: str = SPREAD) -> Table:
    """What would be caught: for leaks that show once in so many runs, the least parameter of a mechanism that has one.

    >>> print("\\n".join(caught("epsilon", lambda mass: 1.234 if mass > 0.05 else None, "").lines))
    leak shows in 1 of  caught (19 of 20 times) from
    2 runs              epsilon 1.24
    10 runs             epsilon 1.24
    100 runs, or rarer  nothing is sure to be caught
    """
    losses = [(f"{round(1 / mass):,} runs", least(mass)) for mass in MASSES]
    seen = itertools.takewhile(lambda each: each[1] is not None and each[1] < math.inf, losses)
    shown = [(runs, f"{name} {least_text(loss or 0.0)}") for runs, loss in seen]
    rarer = [(f"{losses[len(shown)][0]}, or rarer", UNSURE)] if len(shown) < len(losses) else []
    title = f"smallest {name} that would be caught, by how often the revealing output occurs"
    return Table(title, ("leak shows in 1 of", f"caught ({TIMES}) from"), (*shown, *rarer), note=note, below=True)


def seen(result: AuditResult) -> Table | None:
    """What an audit of this size would have caught."""
    if not result.evidence.runs:
        return None
    note = SPREAD if result.searching_runs else f"This holds {KNOWN}."
    return caught(result.claim.parameter, result.least_found, note)


@standing(line)
def could_see(result: AuditResult) -> tuple[str, ...]:
    """What an audit of this size could have certified, and what it says of events beside those of the table."""
    name = result.claim.parameter
    if result.evidence.runs == 0:
        return ("the bets refuted the claim before any run was counted for a fixed bound",)
    most, where = f"epsilon {up(result.ceiling, 2)}", at_delta(result.certificate.delta)
    if result.certificate.epsilon_lower is None:  # bins bound the claim's own parameter
        most, where = f"{name} {up(result.ceiling, 2)}", result.claim.where
    lines = [f"at most {most}{where} can be certified by so many runs, with all hits on one side"]
    if result.searching_runs:
        known = "; ".join(
            f"{least_text(least)} at 1 in {round(1 / mass):,} runs"
            for mass in MASSES
            if (least := result.least_caught(mass)) is not None and least < math.inf
        )
        lines += [f"{KNOWN}, caught from {name} {known}"] if known else []
        if (rate := float(up(narrowest(result.searching_runs), 3))) < 0.5:
            often = f"a narrow range inside the numbers is found like one value if it comes {odds(rate)} runs, or more"
            lines.append(f"{often} often, and an output has 64 entries or fewer")
        lines += [] if result.controls else ["controls = 20 measures what is seen of leaks put into this mechanism"]
    return (*lines, *_demanded(result))


def _demanded(result: AuditResult) -> tuple[str, ...]:
    if result.power_reached is None:
        return ()
    wanted = ", ".join(f"{key} {exact(value)}" for key, value in result.spec["detect"].items())
    reached = "reached" if result.power_reached else "NOT reached: give more runs"
    return (f"the power that the spec demands ({wanted}), {FOUND}, was {reached}",)


def control_lines(result: AuditResult) -> tuple[str, ...]:
    """What became of the spiked controls; empty where there were none."""
    if not result.controls:
        return ()
    places = by_place(result.controls)
    lines = [_of_place(result, place, controls) for place, controls in places.items()]
    if not any(map(smallest_seen, places.values())):
        lines.append("no control was caught: give more runs")
    lines.append("a control is the mechanism with a leak of the stated size put into the place named")
    lines.append("it shows what search and certification together see of such leaks, and of no others")
    return tuple(lines)


def _of_place(result: AuditResult, place: str, controls: Sequence[Control]) -> str:
    smallest, first = smallest_seen(controls), min(each.mass for each in result.controls)
    missed = [
        f"{exact(each.mass)} (caught in {each.caught} of {counted(each.repeats, 'audit')})"
        for each in controls
        if not each.seen
    ]
    if smallest is None:
        loss = f"{result.claim.parameter} {controls[-1].loss:.4g}"
        return f"{place}: NOT CAUGHT at any probability, a leak of {loss} missed at {_either(missed)}"
    loss = f"{result.claim.parameter} {smallest.loss:.4g}"
    caught = f"in {smallest.caught} of {counted(smallest.repeats, 'audit')}"
    text = f"{place}: caught, a leak of {loss} on an event of probability {exact(smallest.mass)}, {caught}"
    if missed:
        return f"{text}; missed at {_either(missed)}"
    return text if smallest.mass == first else f"{text}; rarer ones were not tried"


def _either(words: list[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
