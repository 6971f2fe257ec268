"""The two probabilities of the witness: where the counts put them, and what the claim allows."""

import itertools
import math
from dataclasses import dataclass

import numpy as np

from dpaudit.account.first import WHOLE, names
from dpaudit.account.statements import at_delta, claimed, confidence
from dpaudit.base.arrays import Reals
from dpaudit.base.numerals import confidence_text, decimals, down, up
from dpaudit.certify import Binned
from dpaudit.certify.lower_profile import LowerProfile
from dpaudit.claims import Claim
from dpaudit.events import Event
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import Key, Panel, Scale
from dpaudit.results.observations import Histogram
from dpaudit.results.result import AuditResult

TITLE = "The trade-off: how often the event happens on either dataset"
COLUMNS = ("event", "hits, likelier dataset", "its runs", "hits, other dataset", "its runs", "p at least", "q at most")
RARE_P, RARE_Q = 0.05, 0.005  # below which straight axes hide the point
POINTS = 40  # of a boundary
DIGITS = 6  # decimals of a limit in the table
HIGH = 300.0
LARGEST = 700.0  # of an exponent


@dataclass(frozen=True, slots=True)
class _Seen:
    """An event as it was counted: its name, its hits on either side, and the limits that hold for all together."""

    name: str
    hits_p: int
    hits_q: int
    p: float
    q: float
    low: float
    high: float


def tradeoff(result: AuditResult) -> Drawing | None:
    """The square of both probabilities; None where no certifying run was counted, as after bets that refuted."""
    if not (result.evidence.runs_p and result.evidence.runs_q):
        return None
    seen = _seen(result)
    told = confidence_text(confidence(result))  # of several witnesses the best is drawn: all hold together at this
    epsilon = result.certificate.epsilon_lower
    line = not isinstance(result.evidence, Binned) and epsilon is not None and 0.0 < epsilon <= LARGEST
    curve = [] if result.histogram is None else _search_curve(result.histogram, result)
    allowed = f"{result.claim.parameter} {claimed(result)}{result.claim.where}"
    keys: list[Key] = [("area", "allowed", f"allowed by the claim, {allowed}")]
    keys.append(("point", "certified", f"counts, with limits that hold at {told}"))
    if line:
        keys.append(("line", "certified", "certified: the truth lies above"))
    if curve:
        keys.append(("dots", "muted", "search runs, not certified"))
    panel = Panel(keys, *_scales(result, seen), high=HIGH)
    allowed_region(panel, result.claim)
    diagonal = panel.x.grid(24)  # where an event says nothing
    panel.line(panel.at(diagonal, diagonal), colour="rule", width=0.9)
    sides = names(result) if result.witness.p_side == "first" else names(result)[::-1]
    likelier, other = ("likelier dataset", "other dataset") if sides[0] in WHOLE else sides
    panel.frame(f"q: probability on the {other}", f"p: probability on the {likelier}")
    if curve:
        panel.line(panel.at(*zip(*curve, strict=True)), colour="muted", dash="dots", width=1.4)
    if line and epsilon is not None:  # p = e^epsilon q + delta
        ratio, delta = math.exp(epsilon), result.certificate.delta
        q = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, POINTS) * (1.0 - delta) / ratio])
        panel.line(panel.at(q, np.minimum(1.0, ratio * q + delta)), colour="certified", width=1.4)
    for each in seen:  # a box for each event from its limits: up to where q may be, down to where p may be
        x, y = [each.q, each.high, each.high, each.q, each.q], [each.p, each.p, each.low, each.low, each.p]
        panel.line(panel.at(x, y), colour="certified", width=1.2)
    places = panel.at([max(each.q, panel.x.low) for each in seen], [each.p for each in seen])
    panel.marks(places, colour="certified", size=5.0)
    text = _described(result, told, line, panel.x.log and any(not each.hits_q for each in seen))
    return Drawing.of(panel, "trade-off", TITLE, text, COLUMNS, [_cells(result, each) for each in seen])


def _described(result: AuditResult, told: str, line: bool, at_edge: bool) -> str:
    text = (
        "Across: the probability q of the witness event on the dataset that makes it rarer; up: its probability p "
        "on the other. The claim allows the shaded region. The mark shows the counts; the truth lies no further down "
        f"and no further to the right than the box that hangs on it, with confidence {told}"
    )
    if line:
        epsilon = down(result.certificate.epsilon_lower or 0.0, 3)
        text += f"; the line is the certificate itself, epsilon at least {epsilon}{at_delta(result.certificate.delta)}"
    if isinstance(result.evidence, Binned):
        text += ". Each point is the first bins together; a claim of this form may allow each of them and not them all"
    if at_edge:
        text += ". The axes are logarithmic: a mark at the left edge had no hit at all on the other dataset"
    return f"{text}. The verdict follows from the certificate, not from the picture."


def _seen(result: AuditResult) -> list[_Seen]:
    e, limits = result.evidence, LowerProfile.of(result.evidence, result.level).limits
    if isinstance(e, Binned):
        names = ["the first bin", *(f"the first {j} bins together" for j in range(2, len(limits) + 1))]
        hits = zip(itertools.accumulate(e.counts_p), itertools.accumulate(e.counts_q), strict=True)
    else:
        names, hits = [str(result.witness.event)], zip([e.hits_p], [e.hits_q], strict=True)
    return [
        _Seen(name, x, y, x / e.runs_p, y / e.runs_q, low, high)
        for name, (x, y), (low, high) in zip(names, hits, limits, strict=False)
    ]


def _scales(result: AuditResult, seen: list[_Seen]) -> tuple[Scale, Scale]:
    """Straight where the point can be seen there; otherwise both logarithmic."""
    best = max(seen, key=lambda each: each.p - each.q)
    if (best.p >= RARE_P and best.q >= RARE_Q) or best.p >= 0.5:
        return Scale(0.0, 1.0), Scale(0.0, 1.0)
    low = seen[0].low or 0.5 / result.evidence.runs_p
    loss = result.claim.epsilon_at(result.certificate.delta)
    least = min(seen[0].high, low * math.exp(-min(loss, 20.0))) / 10.0
    return Scale(max(1e-12, least), 1.0, log=True), Scale(max(1e-12, low / 10.0), 1.0, log=True)


def allowed_region(panel: Panel, claim: Claim) -> None:
    """Everything below G, and by symmetry above its mirror image: for the event and its complement alike."""
    q = rates(panel, claim)
    upper = panel.at(q, [claim.max_probability(each) for each in q.tolist()])
    lower = panel.at(q, [1.0 - claim.max_probability(1.0 - each) for each in q.tolist()])
    panel.area(np.concatenate([upper, lower[::-1]]), colour="allowed")
    panel.line(upper, colour="claim")
    panel.line(lower, colour="claim", width=0.8)


def rates(panel: Panel, claim: Claim) -> Reals:
    """Where G is drawn."""
    if panel.x.log:
        return panel.x.grid(POINTS)
    # closer at both ends, where curves bend, and at its corners
    corner = (1.0 - claim.delta) / (1.0 + math.exp(min(LARGEST, claim.epsilon_at(claim.delta))))
    return np.union1d(np.sin(np.linspace(0.0, math.pi / 2.0, POINTS)) ** 2, [corner, 1.0 - corner])


def _search_curve(held: Histogram, result: AuditResult) -> list[tuple[float, float]]:
    """The events "above a threshold" of the feature as (q, p), in the order of the thresholds and not of their ratios.

    An order that the same runs chose would look further from the diagonal than the truth is; this one does not.
    """
    event = result.witness.event
    spans = [each.intervals for each in ((event,) if isinstance(event, Event) else event.bins) if each.intervals]
    if not (held.edges or held.values) or not spans:  # an event of words is on no threshold
        return []
    ends = [end for span in spans[0] for end in span]
    upwards = max(ends) == math.inf or min(ends) != -math.inf  # towards the larger values of its feature
    sides = [(held.second, held.runs_second), (held.first, held.runs_first)]
    shares = [
        [0.0, *(hits / runs for hits in itertools.accumulate(counts[::-1] if upwards else counts))]
        for counts, runs in (sides if result.witness.p_side == "first" else sides[::-1])
    ]
    return list(zip(*shares, strict=True))


def _cells(result: AuditResult, seen: _Seen) -> tuple[str, ...]:
    e = result.evidence
    low = down(seen.low, max(DIGITS, decimals(seen.low, 3))) if seen.low > 0.0 else "0"
    high = up(seen.high, max(DIGITS, decimals(seen.high, 3)))
    return seen.name, f"{seen.hits_p:,}", f"{e.runs_p:,}", f"{seen.hits_q:,}", f"{e.runs_q:,}", low, high
