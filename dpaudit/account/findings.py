"""What stands beside the main finding: other pairs, bets, an upper bound, bits of floats, health; how runs ended;
and what the audit could have seen: its power, its ceiling, and the controls that back them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from dpaudit.account.bracketed import sentences, upper_text
from dpaudit.account.statements import at_delta, bits_looked_at, certified_bound, unseen
from dpaudit.base.numerals import confidence_text, counted, least_text, level_text, p_text, up
from dpaudit.base.quoting import LONGEST_DATA, clean, line, standing
from dpaudit.base.validate import error_probability, exact
from dpaudit.certify import Binned
from dpaudit.certify.certifiers import MASSES, narrowest
from dpaudit.results.bounds import BracketVerdict
from dpaudit.results.certification import AuditEvidence
from dpaudit.results.observations import VALUE, Control, Ending, by_place, smallest_seen
from dpaudit.results.result import POWER, AuditResult

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
    log = -math.log(max(result.bets_p_value, 1e-300))
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
            "bits show best on a pair with an answer near 0, and hardly where the noise is small beside the answers",
        )
    bound = certified_bound(finding.claim, finding.certificate)
    confidence = confidence_text(finding.certificate.confidence)
    e, witness = finding.evidence, finding.witness
    lines = [f"the event {clean(witness.event, LONGEST_DATA)}"]
    if not isinstance(e, Binned):
        first, second = f"{e.hits_p:,} of {e.runs_p:,} runs", f"{e.hits_q:,} of {e.runs_q:,}"
        lines.append(f"{first} on the {witness.p_side} dataset, {second} on the {witness.q_side}")
    if finding.certificate.refuted:
        return (
            f"REPRESENTATION FINDING: {bound} with confidence {confidence}, a statement of its own level",
            "the bits of the output tell the datasets apart; the claim does not hold for the outputs as floats",
            *lines,
        )
    return (f"no finding: the best event on bits gives {bound} with confidence {confidence}", *lines)


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
    """The checks of the experiment: that none alarmed, the least p-value, and notes."""
    checks = result.health.checks
    level = sum(check.level for check in checks)
    names = ", ".join(check.name for check in checks)
    least = min((check.p_value for check in checks), default=1.0)
    lines = [f"no alarm of {counted(len(checks), 'check')}, together at a false-alarm level of {level:.2g}:", names]
    if checks:
        lines.append(f"the least p-value is {p_text(least)}, and {level_text(checks[0].level)} or less alarms")
    return (*lines, *(clean(note, LONGEST_DATA) for note in result.health.notes))


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
OTHERS = "leaks that only several entries, or many values, show together are not in this figure"


@standing(line)
def could_see(result: AuditResult) -> tuple[str, ...]:
    """What an audit of this size could have certified, and the losses it would have refuted."""
    name = result.claim.parameter
    if result.evidence.runs == 0:
        return ("the bets refuted the claim before any run was counted for a fixed bound",)
    most, where = f"epsilon {up(result.ceiling, 2)}", at_delta(result.certificate.delta)
    if result.certificate.epsilon_lower is None:  # bins bound the claim's own parameter
        most, where = f"{name} {up(result.ceiling, 2)}", result.claim.where
    lines = [f"at most {most}{where}: with all hits on one side no more can be certified"]
    known, blind = _by_mass(result.least_caught)
    if result.searching_runs:
        losses, missed = _by_mass(result.least_found)
        if losses:
            lines.append(f"refuted with power {exact(POWER)}, {FOUND}, {SIMPLE}: a true {name} from here on")
            lines.append(f"by its probability: {losses}")
            narrow = float(up(narrowest(result.searching_runs), 3))
            so = f"so from probability {exact(narrow)} on, where entries are 64 or fewer"
            lines.append(f"of a narrow range inside the numbers {so}, and not otherwise")
        if missed:
            lines.append(f"no power is stated for what search has to find at probability {_either(missed)}")
    if known:
        lines.append(f"{KNOWN}, refuted with power {exact(POWER)} by the certifying runs alone: {known}")
    if blind:
        lines.append(f"nothing is caught on an event of probability {_either(blind)}")
    if result.searching_runs:
        lines.append(OTHERS + ("" if result.controls else "; controls = 20 measures what is seen in this mechanism"))
    if unseen(result):
        lines.append(f"no power is claimed for what was left out: {unseen(result)}")
    return (*lines, *_of_witness(result), *_demanded(result))


def _by_mass(least: Callable[[float], float | None]) -> tuple[str, list[str]]:
    """The least parameters by the probability of the event, and the probabilities that have none."""
    losses = {mass: least(mass) for mass in MASSES}
    texts = [f"{least_text(value)} at {exact(mass)}" for mass, value in losses.items() if value is not None]
    return "; ".join(texts), [exact(mass) for mass, value in losses.items() if value is None]


def _of_witness(result: AuditResult) -> tuple[str, ...]:
    e = result.evidence
    if isinstance(e, Binned) or not e.runs_p or not e.hits_p:
        return ()
    mass, line = e.hits_p / e.runs_p, result.witness.tangent
    least = result.least_caught(mass, delta=None if line is None else line.offset)
    if least is None or least == math.inf:
        return ()
    once = f"on an event as probable as the witness ({mass:.3g}), once known"
    return (f"{once}: {result.claim.parameter} from {least_text(least)}",)


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
    lines.append("a control is the mechanism with a leak put into it, as telling as stated, in the place named")
    lines.append("it shows what search and certification together see of leaks of this kind, and of no other")
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
