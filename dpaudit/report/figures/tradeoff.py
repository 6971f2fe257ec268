"""The two probabilities of the witness: where the counts put them, and what the claim allows."""

from __future__ import annotations

import itertools
import math

import numpy as np

from dpaudit.certify import Binned
from dpaudit.certify.lower_profile import LowerProfile
from dpaudit.events import Event
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import Key, Panel, plain_panel
from dpaudit.report.figures.scales import Scale
from dpaudit.results.histogram import Histogram
from dpaudit.results.result import AuditResult
from dpaudit.results.wording.numerals import confidence_text, decimals, down, up
from dpaudit.results.wording.statements import at_delta, at_order, claimed, confidence

TITLE = "The trade-off: how often the event happens on either dataset"
COLUMNS = ("event", "hits, likelier dataset", "its runs", "hits, other dataset", "its runs", "p at least", "q at most")
RARE_P, RARE_Q = 0.05, 0.005  # below which straight axes hide the point
POINTS = 40  # of a boundary
DIGITS = 6  # decimals of a limit in the table
HEIGHT = 400.0

Pair = tuple[float, float]  # (q, p)


def tradeoff(result: AuditResult) -> Drawing | None:
    """The square of both probabilities; None where no certifying run was counted, as after bets that refuted."""
    if not (result.evidence.runs_p and result.evidence.runs_q):
        return None
    found = LowerProfile.of(result.evidence, result.level)
    seen = _seen(result)
    scales = _scales(result, found, seen)
    told = confidence_text(confidence(result))  # of several witnesses the best is drawn: all hold together at this
    line = _certified_line(result)
    curve = _search_curve(result.histogram, result) if result.histogram is not None else []
    keys: list[Key] = [("area", "allowed", f"allowed by the claim, {_short(result)}")]
    keys.append(("point", "certified", f"counts, with limits that hold at {told}"))
    if line is not None:
        keys.append(("line", "certified", "certified: the truth lies above"))
    if curve:
        keys.append(("dots", "muted", "search runs, not certified"))
    panel = plain_panel(keys, *scales, height=HEIGHT)
    _region(panel, result)
    _square(panel)
    panel.frame("q: probability on the other dataset", "p: probability on the likelier dataset")
    if curve:
        panel.line([q for q, _ in curve], [p for _, p in curve], "muted", kind="dots", width=1.4)
    if line is not None:
        panel.line(*line, "certified", width=1.4)
    _limits(panel, found, seen)
    return panel.sheet.drawing(
        "trade-off", TITLE, _described(result, told, line is not None, panel), COLUMNS, _table(result, found)
    )


def _short(result: AuditResult) -> str:
    return f"{result.claim.parameter} {claimed(result)}{at_order(result.claim)}"


def _described(result: AuditResult, told: str, line: bool, panel: Panel) -> str:
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
    if panel.x.log and any(q <= 0.0 for q, _ in _seen(result)):
        text += ". The axes are logarithmic: a mark at the left edge had no hit at all on the other dataset"
    return f"{text}. The verdict follows from the certificate, not from the picture."


def _seen(result: AuditResult) -> list[Pair]:
    e = result.evidence
    if isinstance(e, Binned):
        events = max(1, len(e.counts_p) - 1)
        both = zip(*(itertools.accumulate(counts[:events]) for counts in (e.counts_q, e.counts_p)), strict=True)
        return [(y / e.runs_q, x / e.runs_p) for y, x in both]
    return [(e.hits_q / e.runs_q, e.hits_p / e.runs_p)]


def _scales(result: AuditResult, found: LowerProfile, seen: list[Pair]) -> tuple[Scale, Scale]:
    """Straight where the point can be seen there; otherwise both logarithmic."""
    q, p = seen[0] if len(seen) == 1 else max(seen, key=lambda each: each[1] - each[0])
    if (p >= RARE_P and q >= RARE_Q) or p >= 0.5:
        return Scale(0.0, 1.0), Scale(0.0, 1.0)
    low, high = found.limits[0]
    low = low or 0.5 / result.evidence.runs_p
    least = min(high, low * math.exp(-min(result.claim.epsilon_at(result.certificate.delta), 20.0))) / 10.0
    return Scale(max(1e-12, least), 1.0, log=True), Scale(max(1e-12, low / 10.0), 1.0, log=True)


def _region(panel: Panel, result: AuditResult) -> None:
    """Everything below G, and by symmetry above its mirror image: for the event and its complement alike."""
    if panel.x.log:
        q = panel.x.grid(POINTS)
        upper = np.array([result.claim.max_probability(float(each)) for each in q])
        lower = np.array([1.0 - result.claim.max_probability(1.0 - float(each)) for each in q])
    else:  # closer at both ends, where curves bend, and its own mirror image
        q = np.sin(np.linspace(0.0, math.pi / 2.0, POINTS)) ** 2
        corner = (1.0 - result.claim.delta) / (1.0 + math.exp(min(700.0, result.claim.epsilon_at(result.claim.delta))))
        q = np.unique(np.concatenate([q, [corner, 1.0 - corner]]))
        upper = np.array([result.claim.max_probability(float(each)) for each in q])
        lower = 1.0 - upper[::-1]  # at 1 - q, which is among them
    panel.area([*q, *q[::-1]], [*upper, *lower[::-1]], "allowed")
    panel.line(q, upper, "claim")
    panel.line(q, lower, "claim", width=0.8)


def _square(panel: Panel) -> None:
    """The diagonal: an event that says nothing."""
    q = panel.x.grid(24)
    panel.line(q, q, "rule", width=0.9)


def _certified_line(result: AuditResult) -> tuple[list[float], list[float]] | None:
    """The line p = e^epsilon q + delta of the certified epsilon: the truth is above it."""
    made = result.certificate
    if made.epsilon_lower is None or isinstance(result.evidence, Binned):
        return None
    if not 0.0 < made.epsilon_lower <= 700.0:
        return None
    ratio = math.exp(made.epsilon_lower)
    end = (1.0 - made.delta) / ratio
    q = [0.0, *np.geomspace(end * 1e-9, end, 40).tolist()]
    return q, [min(1.0, ratio * each + made.delta) for each in q]


def _search_curve(held: Histogram, result: AuditResult) -> list[Pair]:
    """The events "above a threshold" of the feature, in the order of the thresholds and not of their ratios.

    An order that the same runs chose would look further from the diagonal than the truth is; this one does not.
    """
    if not (held.edges or held.values) or not _spans(result):  # an event of words is on no threshold
        return []
    first, second = list(held.first), list(held.second)
    p, q = (first, second) if result.witness.p_side == "first" else (second, first)
    runs_p, runs_q = (
        (held.runs_first, held.runs_second) if result.witness.p_side == "first" else (held.runs_second, held.runs_first)
    )
    if not _upwards(result):
        p, q = p[::-1], q[::-1]
    above_p, above_q = (list(itertools.accumulate(reversed(side))) for side in (p, q))
    return [(0.0, 0.0), *((y / runs_q, x / runs_p) for y, x in zip(above_q, above_p, strict=True))]


def _upwards(result: AuditResult) -> bool:
    """Whether the event lies towards the larger values of its feature."""
    ends = [end for span in _spans(result)[0] for end in span]
    return max(ends) == math.inf or min(ends) != -math.inf


def _spans(result: AuditResult) -> list[tuple[tuple[float, float], ...]]:
    """The intervals of the event, or of the bins that have some, in the order of the bins."""
    event = result.witness.event
    return [each.intervals for each in ([event] if isinstance(event, Event) else event.bins) if each.intervals]


def _limits(panel: Panel, found: LowerProfile, seen: list[Pair]) -> None:
    """A cross for each event from its limits: up to where q may be, down to where p may be."""
    for (low, high), (q, p) in zip(found.limits, seen, strict=True):
        panel.line([q, high], [p, p], "certified", width=1.2)
        panel.line([q, q], [low, p], "certified", width=1.2)
        panel.line([q, high, high], [low, low, p], "certified", width=1.2)
    places = [max(q, panel.x.low) for q, _ in seen]
    panel.points(places, [p for _, p in seen], "certified", size=5.0)


def _table(result: AuditResult, found: LowerProfile) -> list[tuple[str, ...]]:
    e = result.evidence
    if isinstance(e, Binned):
        names = [f"the first {j + 1} bins together" if j else "the first bin" for j in range(len(found.limits))]
        hits = list(zip(itertools.accumulate(e.counts_p), itertools.accumulate(e.counts_q), strict=True))
    else:
        names, hits = [str(result.witness.event)], [(e.hits_p, e.hits_q)]
    return [
        (name, f"{x:,}", f"{e.runs_p:,}", f"{y:,}", f"{e.runs_q:,}", _low(low), _high(high))
        for name, (x, y), (low, high) in zip(names, hits, found.limits, strict=False)
    ]


def _low(value: float) -> str:
    return down(value, max(DIGITS, decimals(value, 3))) if value > 0.0 else "0"


def _high(value: float) -> str:
    return up(value, max(DIGITS, decimals(value, 3)))
