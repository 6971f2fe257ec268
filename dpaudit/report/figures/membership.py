"""Figures of scores of memberships: how they lie, how often an attack errs, and the evidence after each training."""

import math
from collections.abc import Sequence

import numpy as np

from dpaudit.base.numerals import counted, p_text
from dpaudit.base.validate import error_probability, exact
from dpaudit.claims import Claim
from dpaudit.report.figures.curves import allowed_region, climbing, power_text
from dpaudit.report.figures.distributions import compared, counted_rows
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import Keys, Panel, Scale
from dpaudit.results.observations import Histogram
from dpaudit.scores.result import CERTIFIED, Decided, ScoresResult

LEAST, MOST = -30.0, 308.0  # decimal logarithms of evidence that are drawn
LOGARITHMIC = "Both axes are logarithmic: attacks that are seldom wrong stand on the left."
SHOWN = 16  # corners of a curve in the table of numbers

Rates = Sequence[tuple[float, float]]  # false positives and false negatives of each threshold


def error_rates(
    result: Decided, histogram: Histogram, band_name: str, claim: Claim | None, text: str, *, log: bool
) -> Drawing:
    """The ROC of the attack: what the scores show, limits of it, and the region that the claim allows.

    The corners are those of the empirical curve; the band has upper limits of both error rates at several thresholds,
    with what they hold under as `band_name`; `text` says what rests on what. The certified bound is no curve here: it
    is one about the mechanism, and not about these scores. Logarithmic axes show small rates.
    """
    corners, band, least = result.roc, result.band, min(0.1, 0.5 / max(histogram.runs_first, histogram.runs_second, 1))
    scale = Scale(least, 1.0, log=True) if log else Scale(0.0, 1.0)
    keys: Keys = (
        claim is not None and ("area", "allowed", "allowed by the claim"),
        ("line", "first", "these scores, an estimate"),
        len(band) > 0 and ("dots", "second", band_name),
    )
    panel = Panel(keys, scale, scale, high=300.0)
    if claim is not None:
        allowed_region(panel, claim)
    diagonal = panel.x.grid(24)
    panel.line(panel.at(diagonal, diagonal), colour="rule", width=0.9)
    panel.frame("false positive rate: out, but called in", "true positive rate: in, and called in")
    if band:
        panel.line(panel.at(*_stairs(band)), colour="second", dash="dots", width=1.8)
    fpr, fnr = np.transpose(corners)
    panel.line(panel.at(fpr, 1.0 - fnr), colour="first", width=2.0)
    places = np.unique(np.linspace(0, len(corners) - 1, min(SHOWN, len(corners))).astype(int)).tolist()
    allowed = [() if claim is None else (f"{claim.max_probability(fpr[k]):.4g}",) for k in places]
    rows = [(f"{fpr[k]:.4g}", f"{1.0 - fnr[k]:.4g}", *more) for k, more in zip(places, allowed, strict=True)]
    name, title = ("roc-small-rates", "The same at small rates") if log else ("roc", "ROC of the attack")
    columns = ("false positive rate", "true positive rate, estimate", "the claim allows at most")
    return Drawing.of(panel, name, title, text, columns if claim is not None else columns[:2], rows)


def evidence(e_values: Sequence[float], alpha: float) -> Drawing:
    """The e-value against the claim after each training, from 1, on a logarithmic scale, and the line that refutes."""
    tens = [0.0, *(min(MOST, max(LEAST, math.log10(each) if each > 0.0 else LEAST)) for each in e_values)]
    needed = -math.log10(alpha)
    text = (
        f"Evidence against the claim after each of {counted(len(e_values), 'training')}, on a logarithmic scale. It "
        f"starts at 1. If the claim holds it reaches {power_text(needed)}, at any time, with probability at most "
        f"{p_text(alpha)}, however the canaries of a training depend on each other."
    )
    labels = "evidence", "The evidence after each training", text, ("trainings", "e-value")
    return climbing(range(len(tens)), tens, needed, ("e-value, from 1", "trainings", "e-value"), labels, counting=True)


def _stairs(band: Rates) -> tuple[list[float], list[float]]:
    """The stairs that the true curve lies above: at each limit of false positives what is reached up to there."""
    x, y, best = [0.0], [0.0], 0.0
    for fpr, fnr in sorted(band):
        x += [fpr, fpr]
        y += [best, best := max(best, 1.0 - fnr)]
    return [*x, 1.0], [*y, best]


def pictures(result: Decided, claim: Claim | None, band_line: str, *, of: str, about: str) -> tuple[Drawing, ...]:
    """The figures that there are numbers for, with the region of `claim`.

    `of` is what has a score ("canaries"), `about` a sentence on where the scores come from, `band_line` the line that
    the band stands on.
    """
    drawn: list[Drawing] = []
    histogram, band, confidence = result.histogram, result.band, result.confidence
    if histogram is not None:
        names = f"{histogram.runs_first:,} {of} in", f"{histogram.runs_second:,} {of} out"
        text = f"How the scores of both groups lie: {names[0]}, {names[1]}. {about} To look at: it proves nothing."
        keys: Keys = (("line", "first", names[0]), ("dash", "second", names[1]))
        if histogram.values and not histogram.edges:  # bars
            keys = (("area", "first", f"{names[0]}, left bar"), ("area", "second", f"{names[1]}, right bar"))
        panel, columns = compared(histogram, keys, of=of), (histogram.feature, *names)
        drawn.append(Drawing.of(panel, "scores", "The scores of both groups", text, columns, counted_rows(histogram)))
        if result.roc:
            at, limits = f"with confidence {exact(confidence)}", f"limits at {exact(confidence)}, {band_line}"
            text = (
                "For every threshold, the share of those that were in and of those that were out that it calls in. The "
                "solid line joins the best corners of these same scores: an estimate, chosen on them."
            )
            text += " The claim allows the shaded region." if claim is not None else ""
            if band:
                text += (
                    f" The true curve lies above the dotted stairs, at all thresholds together, {at}; this stands on "
                )
                text += f"the line: {band_line}."
            for words, log in ((text, False), (LOGARITHMIC, True)):
                drawn.append(error_rates(result, histogram, limits, claim, words, log=log))
    if len(result.e_values) > 1:
        drawn.append(evidence(result.e_values, error_probability(confidence)))
    return tuple(drawn)


def of_scores(result: ScoresResult) -> tuple[Drawing, ...]:
    """The figures of scores that somebody has."""
    return pictures(result, result.claim, CERTIFIED, of="scores", about="They are those that the caller gave.")
