"""What stands beside the main finding: other pairs, bets, an upper bound, bits of floats, the health checks."""

from __future__ import annotations

import math

from dpaudit.certify import Binned
from dpaudit.certify.certificate import error_probability
from dpaudit.results.audited import Audited, Finding
from dpaudit.results.wording.bracketed import sentences, upper_text
from dpaudit.results.wording.numerals import confidence_text, counted, exact, level_text, p_text
from dpaudit.results.wording.quoting import LONGEST_DATA, clean
from dpaudit.results.wording.statements import bits_looked_at, certified_bound

APART = "that is a bound for neighbours, and these datasets are {} steps apart: the two are not joined"
WHY_BITS = (
    "a sum of an answer and noise is rounded to the floats near the sum, the noise was rounded to the floats near the "
    "noise: which last bits can occur depends on the answer (Mironov 2012)"
)
CURE_BITS = (
    "the cure: release integers from discrete noise, or snap the output to a fixed power-of-two grid not finer than "
    "the scale of the noise; this says nothing about the calibration of the noise"
)


def other_lines(result: Audited) -> tuple[str, ...]:
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


def bet_lines(result: Audited) -> tuple[str, ...]:
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
    lines.append(f"the largest wealth was {_wealth(result)}")
    if result.stopped_early:
        lines.append("stopped there: the claim was refuted before the runs were spent")
    return tuple(lines)


def _wealth(result: Audited) -> str:
    log = -math.log(max(result.bets_p_value, 1e-300))
    return f"{math.exp(log):,.3g}" if log < 30.0 else f"e^{log:.1f}"


def representation_lines(result: Audited) -> tuple[str, ...]:
    """The finding on the bits of floating-point outputs; empty where the spec does not ask for it."""
    if not result.spec["representation"]:
        return ()
    found = result.representation
    if not bits_looked_at(result):
        return ("the bits of the outputs were not looked at: the runs were bets, or one in each of many processes",)
    if found is None:
        return (
            "no finding: no event on bits promised more than the rounded values do",
            "bits show best on a pair with an answer near 0, and hardly where the noise is small beside the answers",
        )
    bound = certified_bound(found.claim, found.certificate)
    confidence = confidence_text(found.certificate.confidence)
    lines = [f"the event {clean(found.witness.event, LONGEST_DATA)}", *_counts(found)]
    if found.certificate.refuted:
        return (
            f"REPRESENTATION FINDING: {bound} with confidence {confidence}, a statement of its own level",
            "the bits of the output tell the datasets apart; the claim does not hold for the outputs as floats",
            *lines,
            WHY_BITS,
            CURE_BITS,
        )
    return (f"no finding: the best event on bits gives {bound} with confidence {confidence}", *lines)


def _counts(finding: Finding) -> tuple[str, ...]:
    e = finding.evidence
    if isinstance(e, Binned):
        return ()
    return (
        f"{e.hits_p:,} of {e.runs_p:,} runs on the {finding.witness.p_side} dataset, "
        f"{e.hits_q:,} of {e.runs_q:,} on the {finding.witness.q_side}",
    )


def bracket_lines(result: Audited) -> tuple[str, ...]:
    """The bracket of the pair, or of all inputs where the upper bound holds for them; empty where there is none."""
    if result.upper is None:
        return ()
    joined = result.bracket
    lines = (upper_text(result.upper), APART.format(result.distance)) if joined is None else sentences(joined)
    return tuple(clean(line, 2 * LONGEST_DATA) for line in lines)


def health_lines(result: Audited) -> tuple[str, ...]:
    """The checks of the experiment: that none alarmed, the least p-value, and notes."""
    checks = result.health.checks
    level = sum(check.level for check in checks)
    names = ", ".join(check.name for check in checks)
    least = min((check.p_value for check in checks), default=1.0)
    lines = [f"no alarm of {counted(len(checks), 'check')}, together at a false-alarm level of {level:.2g}:", names]
    if checks:
        lines.append(f"the least p-value is {p_text(least)}, and {level_text(checks[0].level)} or less alarms")
    return (*lines, *(clean(note, LONGEST_DATA) for note in result.health.notes))
