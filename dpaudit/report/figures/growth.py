"""How the finding grew with the runs: the bound of a fixed audit, the wealth of an anytime one."""

from __future__ import annotations

import itertools
import math

from dpaudit.certify import Binned, unconditional
from dpaudit.certify.certificate import error_probability
from dpaudit.certify.sequential import log_wealth
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import Key, plain_panel
from dpaudit.report.figures.scales import Scale, number, padded
from dpaudit.results.certification import SINGLE, Evidence, certificate_of
from dpaudit.results.result import AuditResult
from dpaudit.results.wording.numerals import bound, counted, p_text

TITLE, WEALTH_TITLE = "The bound against the number of runs", "The wealth of the bets against the number of runs"
COLUMNS = ("certifying runs", "bound that so many give")
WEALTH_COLUMNS = ("runs", "wealth")
MOST_ROWS = 24
FEW = 4  # points of a bound that takes long
HIGHEST = 700.0  # of an exponent


def growth(result: AuditResult) -> Drawing | None:
    """The wealth where bets were made, otherwise the bound along the trail; None where there is neither."""
    if result.blocks:
        return _wealth(result)
    trail = [each for each in result.trail if each.runs_p and each.runs_q]
    return _bound(result) if len(trail) > 1 else None


def _bound(result: AuditResult) -> Drawing:
    trail = _shown([each for each in result.trail if each.runs_p and each.runs_q], _single(result))
    runs = [each.runs for each in trail]
    lower = [*(_lower(result, each) for each in trail[:-1]), result.certificate.lower]
    name = result.claim.parameter
    promised = result.claim.promised(result.certificate.delta)
    drawn = [each for each in (*lower, promised) if math.isfinite(each)] or [1.0]
    keys: list[Key] = [("dash", "claim", f"claimed {name}"), ("point", "certified", "certified: all runs")]
    keys.append(("hollow", "certified", "what fewer runs would have given"))
    panel = plain_panel(keys, padded(runs, log=True), Scale(0.0, 1.12 * max(drawn) or 1.0))
    panel.frame("certifying runs", f"lower bound of {name}", x_ticks=panel.x.ticks(5))
    if math.isfinite(promised):
        panel.level(promised, "claim", kind="dash")
    top = [min(each, panel.y.high) for each in lower]
    panel.line(runs, top, "certified")
    panel.points(runs[:-1], top[:-1], "certified", filled=False)
    panel.points(runs[-1:], top[-1:], "certified", size=7.5)
    rows = [(f"{n:,}", f"{name} >= {bound(value)}") for n, value in zip(runs, lower, strict=True)]
    return panel.sheet.drawing("bound-against-runs", TITLE, _described(result), COLUMNS, rows)


def _shown(trail: list[Evidence], certifier: str) -> list[Evidence]:
    """The whole trail; or a few of it, the last among them, where a bound costs as much as a figure."""
    if certifier != "unconditional" or len(trail) <= FEW:
        return trail
    apart = (len(trail) - 1) / (FEW - 1)
    return [trail[round(step * apart)] for step in range(FEW)]


def _lower(result: AuditResult, evidence: Evidence) -> float:
    """The bound that the counts would give had they been all, by the certifier of the result."""
    certifier, level, tangent = _single(result), result.level, result.witness.tangent
    if certifier != "unconditional" or isinstance(evidence, Binned):
        return certificate_of(result.witness, evidence, result.claim, level, certifier).lower
    delta = result.claim.delta if tangent is None else tangent.offset
    epsilon = unconditional.epsilon_lower(evidence, delta, error_probability(level))  # without its p-value
    return result.claim.lower(epsilon, delta)


def _single(result: AuditResult) -> str:
    """What certified the witness: an event on its own is not binned."""
    if isinstance(result.evidence, Binned):
        return result.certifier
    return SINGLE.get(result.certifier, result.certifier)


def _described(result: AuditResult) -> str:
    return (
        "The lower bound from growing parts of the certifying runs, each as if it had been all; only the last, from "
        f"{counted(result.evidence.runs, 'run')}, is certified. The dashed line is what was claimed."
    )


def _wealth(result: AuditResult) -> Drawing:
    share = result.spec["sequential_share"] * error_probability(result.spec["confidence"])
    runs = [0, *itertools.accumulate(block.evidence.runs for block in result.blocks)]
    wealth = [0.0, *log_wealth(result.blocks, result.claim).tolist()]
    tens = [each / math.log(10.0) for each in wealth]
    needed = -math.log10(share)
    keys: list[Key] = [
        ("line", "certified", "wealth, from 1"),
        ("dash", "refuted", f"from {_power(needed)} on the claim is refuted"),
    ]
    y = padded([*tens, needed, 0.0], share=0.08)
    panel = plain_panel(keys, padded([max(1, each) for each in runs], log=True, share=0.02), y)
    ticks = [(at, _power(at)) for at, _ in y.ticks(5)]
    panel.frame("runs that were bet on", "wealth", x_ticks=panel.x.ticks(5), y_ticks=ticks)
    panel.level(needed, "refuted", kind="dash")
    panel.line([max(1, each) for each in runs], tens, "certified")
    apart = math.ceil(len(runs) / MOST_ROWS)
    shown = sorted({*range(0, len(runs), apart), len(runs) - 1})
    rows = [(f"{runs[k]:,}", _power(tens[k])) for k in shown]
    text = (
        "The wealth of bets against the claim after each block of runs, on a logarithmic scale. It starts at 1 and "
        f"reaches {_power(needed)}, at any time, with probability at most {p_text(share)} if the claim holds."
    )
    return panel.sheet.drawing("wealth-against-runs", WEALTH_TITLE, text, WEALTH_COLUMNS, rows)


def _power(tens: float) -> str:
    """A wealth from its decimal logarithm: as a number where that is short."""
    if -3.0 <= tens <= 5.0:
        return number(10.0**tens)
    whole = math.floor(tens)
    return f"{10.0 ** (tens - whole):.1f}e{whole}".replace(".0e", "e")
