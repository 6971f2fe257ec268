"""How the finding grew with the runs: the bound of a fixed audit, the wealth of an anytime one."""

import itertools
import math
from collections.abc import Sequence

from dpaudit.certify import Certifier, EventCertifier, certifier_named
from dpaudit.certify.certificate import error_probability
from dpaudit.certify.sequential import log_wealth
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import Key, Panel, Scale, Ticks, number, padded
from dpaudit.results.certification import AuditEvidence, certificate_of, frozen_delta_of
from dpaudit.results.result import AuditResult
from dpaudit.results.wording.numerals import bound, counted, p_text

TITLE, WEALTH_TITLE = "The bound against the number of runs", "The wealth of the bets against the number of runs"
COLUMNS = ("certifying runs", "bound that so many give")
WEALTH_COLUMNS = ("runs", "wealth")
MOST_ROWS = 24
FEW = 4  # points of a bound that takes long


def growth(result: AuditResult) -> Drawing | None:
    """The wealth where bets were made, otherwise the bound along the trail; None where there is neither."""
    if result.blocks:
        return _wealth(result)
    trail = [evidence for evidence in result.trail if evidence.runs_p and evidence.runs_q]
    return _bound(result, trail) if len(trail) > 1 else None


def _bound(result: AuditResult, trail: list[AuditEvidence]) -> Drawing:
    certifier = certifier_named(result.certifier).of(result.evidence)
    if certifier.slow and len(trail) > FEW:  # whose bound costs as much as a figure
        trail = [trail[round(step * (len(trail) - 1) / (FEW - 1))] for step in range(FEW)]
    runs = [evidence.runs for evidence in trail]
    lower = [*(_lower(result, evidence, certifier) for evidence in trail[:-1]), result.certificate.lower]
    name, promised = result.claim.parameter, result.claim.promised(result.certificate.delta)
    keys: list[Key] = [
        ("dash", "claim", f"claimed {name}"),
        ("point", "certified", "certified: all runs"),
        ("hollow", "certified", "what fewer runs would have given"),
    ]
    y = Scale(0.0, 1.12 * max(filter(math.isfinite, (*lower, promised)), default=1.0) or 1.0)
    panel = Panel(keys, padded(runs, log=True), y)
    panel.frame("certifying runs", f"lower bound of {name}", x_ticks=panel.x.ticks(5))
    if math.isfinite(promised):
        panel.level(promised, "claim", "dash")
    curve = panel.at(runs, [min(value, y.high) for value in lower])
    panel.line(curve, colour="certified")
    panel.marks(curve[:-1], colour="certified", filled=False)
    panel.marks(curve[-1:], colour="certified", size=7.5)
    rows = [(f"{n:,}", f"{name} >= {bound(value)}") for n, value in zip(runs, lower, strict=True)]
    text = (
        "The lower bound from growing parts of the certifying runs, each as if it had been all; only the last, from "
        f"{counted(result.evidence.runs, 'run')}, is certified. The dashed line is what was claimed."
    )
    return Drawing.of(panel, "bound-against-runs", TITLE, text, COLUMNS, rows)


def _lower(result: AuditResult, evidence: AuditEvidence, certifier: Certifier) -> float:
    """The bound that the counts would give had they been all, by the certifier of the result."""
    if not isinstance(certifier, EventCertifier):
        return certificate_of(result.witness, evidence, result.claim, result.level, certifier).lower
    delta = frozen_delta_of(result.witness, result.claim)
    epsilon = certifier.epsilon_lower(evidence, delta, error_probability(result.level))  # without its p-value
    return result.claim.lower(epsilon, delta)


def _wealth(result: AuditResult) -> Drawing:
    share = result.spec["sequential_share"] * error_probability(result.spec["confidence"])
    runs = [0, *itertools.accumulate(block.evidence.runs for block in result.blocks)]
    tens = [0.0, *(log_wealth(result.blocks, result.claim) / math.log(10.0)).tolist()]
    needed = -math.log10(share)
    panel = climbing(runs, tens, needed, ("wealth, from 1", "runs that were bet on", "wealth"))
    shown = sorted({*range(0, len(runs), math.ceil(len(runs) / MOST_ROWS)), len(runs) - 1})
    rows = [(f"{runs[k]:,}", power_text(tens[k])) for k in shown]
    text = (
        "The wealth of bets against the claim after each block of runs, on a logarithmic scale. It starts at 1 and "
        f"reaches {power_text(needed)}, at any time, with probability at most {p_text(share)} if the claim holds."
    )
    return Drawing.of(panel, "wealth-against-runs", WEALTH_TITLE, text, WEALTH_COLUMNS, rows)


def climbing(
    steps: Sequence[int], tens: Sequence[float], needed: float, names: tuple[str, str, str], *, counting: bool = False
) -> Panel:
    """Evidence that grows, as decimal logarithms after each of `steps`, and the level that refutes.

    `names` are those of the curve and of both axes. Few steps that are counted one by one stand on a straight axis,
    from 0 on, each with a mark.
    """
    curve, across, up = names
    keys: list[Key] = [
        ("point" if counting else "line", "certified", curve),
        ("dash", "refuted", f"from {power_text(needed)} on the claim is refuted"),
    ]
    places = steps if counting else [max(1, each) for each in steps]
    x = Scale(0.0, 1.04 * max(*steps, 1)) if counting else padded(places, log=True, share=0.02)
    panel = Panel(keys, x, padded([*tens, needed], share=0.08))
    whole = [(at, text) for at, text in x.ticks() if at == round(at)] if counting else x.ticks(5)
    panel.frame(across, up, x_ticks=whole, y_ticks=_powers(panel.y))
    panel.level(needed, "refuted", "dash")
    panel.line(panel.at(places, tens), colour="certified")
    if counting:
        panel.marks(panel.at(places, tens), colour="certified", size=5.0)
    return panel


def _powers(tens: Scale) -> Ticks:
    """Ticks of a scale of decimal logarithms: round numbers where the scale is short, otherwise powers."""
    if tens.low < -3.0 or tens.high > 5.0:
        return [(at, power_text(at)) for at, _ in tens.ticks(5)]
    return [(math.log10(at), text) for at, text in Scale(10.0**tens.low, 10.0**tens.high, log=True).ticks(5)]


def power_text(tens: float) -> str:
    """A wealth from its decimal logarithm: as a number where that is short."""
    if -3.0 <= tens <= 5.0:
        return number(10.0**tens)
    whole = math.floor(tens)
    return f"{10.0 ** (tens - whole):.1f}e{whole}".replace(".0e", "e")
