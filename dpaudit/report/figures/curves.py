"""Curves of one result: trade-off, privacy profile, what it could have seen, the bound by runs; and a bracket."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.account.bracketed import at_least, at_most, headline, is_exact
from dpaudit.account.first import WHOLE, names
from dpaudit.account.statements import FOUND, KNOWN, SIMPLE, at_delta, claimed, confidence
from dpaudit.base.numerals import bound, confidence_text, counted, decimals, down, least_text, p_text, up
from dpaudit.base.validate import error_probability, exact
from dpaudit.certify import Binned, Certifier, EventCertifier, certifier_named
from dpaudit.certify.certifiers import MASSES
from dpaudit.certify.lower_profile import LowerProfile
from dpaudit.certify.sequential import log_wealth
from dpaudit.claims import Claim
from dpaudit.events import Event
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import SMALL, Keys, Panel, Scale, Ticks, Words, number, padded
from dpaudit.results.bounds import Bracket
from dpaudit.results.certification import AuditEvidence, certificate_of, frozen_delta_of
from dpaudit.results.observations import Histogram
from dpaudit.results.result import POWER, AuditResult

TITLE = "The privacy profile: delta at every epsilon"
COLUMNS = ("epsilon", "delta claimed, at most", "delta certified, at least")
POINTS, SHOWN = 36, 10
CLOSER = 1.0 - np.array([0.03, 0.01, 1e-3, 1e-4, 0.0])  # parts of an epsilon before which delta falls steeply
LEAST = 1e-12  # delta below which nothing is drawn
FEWEST_DECADES = 2.0


def profile(result: AuditResult) -> Drawing:
    """The claim's profile and the certified lower one, of a result with certifying runs."""
    lower = LowerProfile.of(result.evidence, result.level)
    upper = result.upper if result.bracket is not None else None
    reach = lower.epsilon_at(0.0)
    claimed = result.claim.epsilon_at(max(result.claim.delta, 1e-6))
    ends = filter(math.isfinite, (reach, claimed, 0.0 if upper is None else upper.epsilon_upper))
    end = max(0.5, 1.15 * max(ends))
    grid = np.linspace(0.0, end, POINTS).tolist()
    inside = [drop * CLOSER for drop in (claimed, reach) if 0.0 < drop < end]
    grid = np.unique(np.concatenate([grid, *inside])).tolist()
    promised = [result.claim.delta_at(epsilon) for epsilon in grid]
    certified = [lower.delta_at(epsilon) if epsilon < reach else 0.0 for epsilon in grid]
    level = confidence_text(confidence(result))  # of several witnesses the best is drawn: all hold together at this
    nothing = max(promised) <= LEAST
    keys: Keys = (
        ("line", "claim", "claimed: delta is 0, below this scale" if nothing else "claimed: delta is at most this"),
        ("dash", "certified", f"certified at {level}: at least this"),
        upper is not None and ("diamond", "ink", "known upper bound"),
    )
    drawn = [  # not the steep fall before an end, which would stretch the scale for nothing
        value
        for values, drop in ((promised, claimed), (certified, reach))
        for epsilon, value in zip(grid, values, strict=True)
        if not 0.965 * drop < epsilon <= drop
    ]
    panel = Panel(keys, Scale(0.0, end), _deltas([*drawn, result.claim.delta]))
    panel.frame("epsilon", "delta")
    panel.line(panel.at(grid, promised), colour="claim")
    panel.line(panel.at(grid, certified), colour="certified", dash="dash")
    if upper is not None and math.isfinite(upper.epsilon_upper):
        panel.marks(panel.at(upper.epsilon_upper, max(upper.delta, panel.y.low)), colour="ink", kind="diamond")
    text = (
        "The least delta at which the claim promises epsilon, and a curve that the true delta does not lie below, at "
        f"every epsilon at once, with confidence {level}. It follows from the two limits of the witness, and is a "
        "statement beside the certificate, which is sharper at its own delta. Where the certified curve ends, "
        "nothing is known from below."
    )
    shown = [round(epsilon, 3) for epsilon in np.linspace(0.0, end, SHOWN).tolist()]
    rows = [(f"{at:g}", least_text(result.claim.delta_at(at)), bound(lower.delta_at(at))) for at in shown]
    return Drawing.of(panel, "privacy-profile", TITLE, text, COLUMNS, rows)


def _deltas(values: list[float]) -> Scale:
    positive = [value for value in values if value > LEAST]
    top = max([*positive, 1e-3])
    smallest = min([*positive, top])
    least = max(LEAST, top * 1e-6 if smallest > top * 1e-6 else smallest / 3.0)
    return padded([max(min(smallest, top * 10.0**-FEWEST_DECADES), least), min(1.0, top)], log=True)


SEEN = ("probability of the event", "least true value that is refuted")


def power(result: AuditResult) -> Drawing | None:
    """The curve of the least parameter that is caught, of a result with certifying runs; None where none is."""
    whose, where = (FOUND, f"{FOUND}, {SIMPLE}") if result.searching_runs else (KNOWN, KNOWN)
    caught = {mass: result.least_found(mass) for mass in MASSES}
    known = {mass: least for mass, least in caught.items() if least is not None and math.isfinite(least)}
    if not known:
        return None
    name, promised = result.claim.parameter, result.claim.promised(result.certificate.delta)
    mass = 0.0 if isinstance(result.evidence, Binned) else result.evidence.hits_p / result.evidence.runs_p
    keys: Keys = (
        ("line", "first", f"a true {name} from here on is refuted, with power {exact(POWER)}, {whose}"),
        ("dash", "claim", f"claimed {name}"),
        mass > 0.0 and ("diamond", "certified", "the witness, at what it certified"),
    )
    shown = [*known.values(), promised, 1e-9, *([result.certificate.lower] if mass else [])]
    y = Scale(0.0, 1.1 * max(filter(math.isfinite, shown)))
    panel = Panel(keys, padded([*MASSES, mass], log=True, share=0.04), y)
    panel.frame("probability of the event on the likelier dataset", name)
    if math.isfinite(promised):
        panel.level(promised, "claim", "dash")
    curve = panel.at(list(known), list(known.values()))
    panel.line(curve, colour="first")
    panel.marks(curve, colour="first")
    if mass:
        panel.marks(panel.at(mass, min(result.certificate.lower, y.high)), colour="certified", kind="diamond", size=7.0)
    rows = [
        (exact(mass), "nothing is" if least is None else f"{name} {up(least, decimals(least, 3))}" if least else "0")
        for mass, least in caught.items()
    ]
    text = (
        f"The least true {name} that an audit of this size refutes with power {exact(POWER)}, by the probability of "
        f"the event that shows it, {where}: the rarer the event, the larger a loss must be to be seen."
    )
    if len(known) < len(MASSES):
        text += " On events rarer than where the line begins, no loss is refuted with that power."
    return Drawing.of(panel, "power", "What the audit could have seen", text, SEEN, rows)


ROW, LEFT = 26.0, 120.0
KEYS: Keys = (("upright", "claim", "claimed"), ("line", "certified", "what each bound leaves for epsilon"))
SPANS = ("bound", "at least", "at most", "at delta")


def interval(bracket: Bracket) -> Drawing:
    """Each bound as the values that it leaves, from the lower to the upper one, the whole bracket below them."""
    spans = [] if bracket.lower is None else [("audit", bracket.lower.epsilon_lower, math.inf, bracket.lower.delta)]
    spans += [
        (("exact" if is_exact(each) else each.label.value), each.epsilon_lower or 0.0, each.epsilon_upper, each.delta)
        for each in bracket.uppers
    ]
    spans.append(("contradiction" if bracket.contradictory else "together", *bracket.ends, bracket.delta))
    claimed = None if bracket.claim is None else bracket.claim.epsilon_at(bracket.delta)
    ends = [end for _, low, high, _ in spans for end in (low, high) if end < math.inf]
    ends += [claimed] if claimed is not None and claimed < math.inf else []
    panel = Panel(
        KEYS, padded([0.0, *ends]), padded([0.0, float(len(spans))], share=0.0), high=ROW * len(spans), left=LEFT
    )
    panel.frame("epsilon", "", y_ticks=[])
    for place, (name, low, high, _) in enumerate(reversed(spans)):
        y = place + 0.5
        shown = min(low, panel.x.high), min(high, panel.x.high)
        panel.line(panel.at(shown, y), colour="certified", width=3.0, dash="line" if high < math.inf else "dash")
        panel.marks(panel.at([end for end in (low, high) if 0.0 < end < math.inf] or [0.0], y), colour="certified")
        base = float(panel.at(0.0, y)[0][1]) + 0.35 * SMALL
        panel.words(Words(LEFT - 8.0, base, name, size=SMALL, to="right"), LEFT - 16.0)
    if claimed is not None and claimed < math.inf:
        panel.line(panel.at(claimed, (panel.y.low, panel.y.high)), colour="claim", width=2.2)
    table = [(name, at_least(low), at_most(high), f"{delta:g}") for name, low, high, delta in spans]
    text = (
        "For each bound the values of epsilon that it leaves, dashed where they have no end, and those that all leave."
    )
    return Drawing.of(panel, "bracket", headline(bracket), text, SPANS, table)


GROWTH_TITLE, WEALTH_TITLE = "The bound against the number of runs", "The wealth of the bets against the number of runs"
GROWTH_COLUMNS = ("certifying runs", "bound that so many give")
WEALTH_COLUMNS = ("runs", "wealth")
MOST_ROWS = 24
FEW = 4  # points of a bound that takes long


def growth(result: AuditResult) -> Drawing | None:
    """The wealth where bets were made, otherwise the bound along the trail; None where there is neither."""
    if result.blocks:
        return _wealth(result)
    trail = [evidence for evidence in result.illustration.trail if evidence.runs_p and evidence.runs_q]
    return _bound(result, trail) if len(trail) > 1 else None


def _bound(result: AuditResult, trail: list[AuditEvidence]) -> Drawing:
    certifier = certifier_named(result.certifier).of(result.evidence)
    if certifier.slow and len(trail) > FEW:  # whose bound costs as much as a figure
        trail = [trail[round(step * (len(trail) - 1) / (FEW - 1))] for step in range(FEW)]
    runs = [evidence.runs for evidence in trail]
    lower = [*(_lower(result, evidence, certifier) for evidence in trail[:-1]), result.certificate.lower]
    name, promised = result.claim.parameter, result.claim.promised(result.certificate.delta)
    keys: Keys = (
        ("dash", "claim", f"claimed {name}"),
        ("point", "certified", "certified: all runs"),
        ("hollow", "certified", "what fewer runs would have given"),
    )
    y = Scale(0.0, 1.12 * max(filter(math.isfinite, (*lower, promised)), default=1.0) or 1.0)
    panel = Panel(keys, padded(runs, log=True), y)
    panel.frame("certifying runs", f"lower bound of {name}", x_ticks=panel.x.ticks(5))
    if math.isfinite(promised):
        panel.level(promised, "claim", "dash")
    curve = panel.at(runs, [min(value, y.high) for value in lower])
    panel.line(curve, colour="certified")
    panel.marks(curve[:-1], colour="certified", kind="hollow")
    panel.marks(curve[-1:], colour="certified", size=7.5)
    rows = [(f"{n:,}", f"{name} >= {bound(value)}") for n, value in zip(runs, lower, strict=True)]
    text = (
        "The lower bound from growing parts of the certifying runs, each as if it had been all; only the last, from "
        f"{counted(result.evidence.runs, 'run')}, is certified. The dashed line is what was claimed."
    )
    return Drawing.of(panel, "bound-against-runs", GROWTH_TITLE, text, GROWTH_COLUMNS, rows)


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
    text = (
        "The wealth of bets against the claim after each block of runs, on a logarithmic scale. It starts at 1 and "
        f"reaches {power_text(needed)}, at any time, with probability at most {p_text(share)} if the claim holds."
    )
    labels = "wealth-against-runs", WEALTH_TITLE, text, WEALTH_COLUMNS
    return climbing(runs, tens, needed, ("wealth, from 1", "runs that were bet on", "wealth"), labels)


def climbing(
    steps: Sequence[int],
    tens: Sequence[float],
    needed: float,
    names: tuple[str, str, str],
    labels: tuple[str, str, str, tuple[str, str]],
    *,
    counting: bool = False,
) -> Drawing:
    """Evidence that grows, as decimal logarithms after each of `steps`, and the level that refutes.

    `names` are those of the curve and of both axes, `labels` what `Drawing.of` takes after a panel. Few steps that are
    counted one by one stand on a straight axis, from 0 on, each with a mark.
    """
    curve, across, up = names
    keys: Keys = (
        ("point" if counting else "line", "certified", curve),
        ("dash", "refuted", f"from {power_text(needed)} on the claim is refuted"),
    )
    places = steps if counting else [max(1, each) for each in steps]
    x = Scale(0.0, 1.04 * max(*steps, 1)) if counting else padded(places, log=True, share=0.02)
    panel = Panel(keys, x, padded([*tens, needed], share=0.08))
    whole = [(at, text) for at, text in x.ticks() if at == round(at)] if counting else x.ticks(5)
    panel.frame(across, up, x_ticks=whole, y_ticks=_powers(panel.y))
    panel.level(needed, "refuted", "dash")
    panel.line(panel.at(places, tens), colour="certified")
    if counting:
        panel.marks(panel.at(places, tens), colour="certified", size=5.0)
    shown = sorted({*range(0, len(steps), math.ceil(len(steps) / MOST_ROWS)), len(steps) - 1})
    return Drawing.of(panel, *labels, [(f"{steps[k]:,}", power_text(tens[k])) for k in shown])


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


TRADEOFF_TITLE = "The trade-off: how often the event happens on either dataset"
TRADEOFF_COLUMNS = (
    "event",
    "hits, likelier dataset",
    "its runs",
    "hits, other dataset",
    "its runs",
    "p at least",
    "q at most",
)
RARE_P, RARE_Q = 0.05, 0.005  # below which straight axes hide the point
CURVE_POINTS = 40  # of a boundary
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


def tradeoff(result: AuditResult) -> Drawing:
    """The square of both probabilities, of a result with certifying runs."""
    seen = _seen(result)
    level = confidence_text(confidence(result))  # of several witnesses the best is drawn: all hold together at this
    epsilon = result.certificate.epsilon_lower
    line = not isinstance(result.evidence, Binned) and epsilon is not None and 0.0 < epsilon <= LARGEST
    curve = [] if result.illustration.histogram is None else _search_curve(result.illustration.histogram, result)
    allowed = f"{result.claim.parameter} {claimed(result)}{result.claim.where}"
    keys: Keys = (
        ("area", "allowed", f"allowed by the claim, {allowed}"),
        ("point", "certified", f"counts, with limits that hold at {level}"),
        line and ("line", "certified", "certified: the truth lies above"),
        curve != [] and ("dots", "muted", "search runs, not certified"),
    )
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
        q = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, CURVE_POINTS) * (1.0 - delta) / ratio])
        panel.line(panel.at(q, np.minimum(1.0, ratio * q + delta)), colour="certified", width=1.4)
    for each in seen:  # a box for each event from its limits: up to where q may be, down to where p may be
        x, y = [each.q, each.high, each.high, each.q, each.q], [each.p, each.p, each.low, each.low, each.p]
        panel.line(panel.at(x, y), colour="certified", width=1.2)
    places = panel.at([max(each.q, panel.x.low) for each in seen], [each.p for each in seen])
    panel.marks(places, colour="certified", size=5.0)
    text = _described(result, level, line, panel.x.log and any(not each.hits_q for each in seen))
    return Drawing.of(
        panel, "trade-off", TRADEOFF_TITLE, text, TRADEOFF_COLUMNS, [_cells(result, each) for each in seen]
    )


def _described(result: AuditResult, level: str, line: bool, at_edge: bool) -> str:
    text = (
        "Across: how often the event comes on the dataset that makes it rarer, q; up: on the other, p. The claim "
        f"allows the shaded region. The mark is what was counted; with confidence {level} the truth lies in the box "
        "that hangs on it, above it or left of it"
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
    q = panel.x.grid(CURVE_POINTS)
    if not panel.x.log:  # closer at both ends, where curves bend, and at its corners
        corner = (1.0 - claim.delta) / (1.0 + math.exp(min(LARGEST, claim.epsilon_at(claim.delta))))
        q = np.union1d(np.sin(np.linspace(0.0, math.pi / 2.0, CURVE_POINTS)) ** 2, [corner, 1.0 - corner])
    upper = panel.at(q, [claim.max_probability(each) for each in q.tolist()])
    lower = panel.at(q, [1.0 - claim.max_probability(1.0 - each) for each in q.tolist()])
    panel.area(np.concatenate([upper, lower[::-1]]), colour="allowed")
    panel.line(upper, colour="claim")
    panel.line(lower, colour="claim", width=0.8)


def _search_curve(histogram: Histogram, result: AuditResult) -> list[tuple[float, float]]:
    """The events "above a threshold" of the feature as (q, p), in the order of the thresholds and not of their ratios.

    An order that the same runs chose would look further from the diagonal than the truth is; this one does not.
    """
    event = result.witness.event
    spans = [each.intervals for each in ((event,) if isinstance(event, Event) else event.bins) if each.intervals]
    if not (histogram.edges or histogram.values) or not spans:  # an event of words is on no threshold
        return []
    ends = [end for span in spans[0] for end in span]
    upwards = max(ends) == math.inf or min(ends) != -math.inf  # towards the larger values of its feature
    sides = [(histogram.second, histogram.runs_second), (histogram.first, histogram.runs_first)]
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
