"""Figures of an attack on canaries or examples: scores of both groups, error rates, evidence by training."""

import math
from collections.abc import Sequence

import numpy as np

from dpaudit.claims import Claim
from dpaudit.report.figures.distributions import compared, counted_rows
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.growth import MOST_ROWS, climbing, power_text
from dpaudit.report.figures.panel import Key as Entry
from dpaudit.report.figures.panel import Panel, Scale
from dpaudit.report.figures.tradeoff import allowed_region, rates
from dpaudit.results.beside import Histogram
from dpaudit.results.wording.numerals import counted, p_text

LEAST, MOST = -30.0, 308.0  # decimal logarithms of evidence that are drawn
SHOWN = 16  # corners of a curve in the table of numbers

Rates = Sequence[tuple[float, float]]  # false positives and false negatives of each threshold


def scores(held: Histogram, groups: tuple[str, str], of: str, text: str) -> Drawing:
    """How the scores of both `groups` lie; `of` is what has a score ("canaries"), `text` what the scores are."""
    keys: list[Entry] = [("line", "first", groups[0]), ("dash", "second", groups[1])]
    if held.values and not held.edges:  # bars
        keys = [("area", "first", f"{groups[0]}, left bar"), ("area", "second", f"{groups[1]}, right bar")]
    panel = compared(held, keys, of=of)
    rows = counted_rows(held)
    columns = (held.feature, *groups)
    return Drawing.of(panel, "scores", "The scores of both groups", text, columns, rows)


def error_rates(
    corners: Rates,
    band: Rates,
    band_name: str,
    claim: Claim | None,
    certified: Claim | None,
    sizes: tuple[int, int],
    text: str,
    *,
    log: bool = False,
) -> Drawing:
    """The ROC of the attack: what the scores show, what is certified of it, and the region that the claim allows.

    `corners` are those of the empirical curve; `band` upper limits of both error rates at several thresholds, with
    what they hold under as `band_name`; `certified` is the promise at the certified bound; `sizes` the numbers of
    scores in and out; `text` says what rests on what. Logarithmic axes show small rates.
    """
    least = min(0.1, 0.5 / max(sizes))
    scale = Scale(least, 1.0, log=True) if log else Scale(0.0, 1.0)
    keys: list[Entry] = [] if claim is None else [("area", "allowed", "allowed by the claim")]
    keys.append(("line", "first", "these scores, an estimate"))
    if band:
        keys.append(("dots", "second", band_name))
    if certified is not None:
        keys.append(("dash", "certified", "promise at the certified bound"))
    panel = Panel(keys, scale, scale, high=300.0)
    if claim is not None:
        allowed_region(panel, claim)
    diagonal = panel.x.grid(24)
    panel.line(panel.at(diagonal, diagonal), colour="rule", width=0.9)
    panel.frame("false positive rate: out, but called in", "true positive rate: in, and called in")
    if certified is not None:
        q = rates(panel, certified)
        p = [certified.max_probability(each) for each in q.tolist()]
        panel.line(panel.at(q, p), colour="certified", dash="dash")
    if band:
        x, y = _stairs(band)
        panel.line(panel.at(x, y), colour="second", dash="dots", width=1.8)
    fpr, fnr = np.transpose(corners)
    panel.line(panel.at(fpr, 1.0 - fnr), colour="first", width=2.0)
    kept = np.unique(np.linspace(0, len(corners) - 1, min(SHOWN, len(corners))).astype(int)).tolist()
    allowed = [() if claim is None else (f"{claim.max_probability(fpr[k]):.4g}",) for k in kept]
    rows = [(f"{fpr[k]:.4g}", f"{1.0 - fnr[k]:.4g}", *more) for k, more in zip(kept, allowed, strict=True)]
    name, title = ("roc-small-rates", "The same at small rates") if log else ("roc", "ROC of the attack")
    columns = ("false positive rate", "true positive rate, estimate", "the claim allows at most")
    return Drawing.of(panel, name, title, text, columns if claim is not None else columns[:2], rows)


def evidence(e_values: Sequence[float], alpha: float) -> Drawing:
    """The e-value against the claim after each training, from 1, on a logarithmic scale, and the line that refutes."""
    tens = [0.0, *(min(MOST, max(LEAST, math.log10(each) if each > 0.0 else LEAST)) for each in e_values)]
    needed = -math.log10(alpha)
    steps = range(len(tens))
    panel = climbing(steps, tens, needed, ("e-value, from 1", "trainings", "e-value"), counting=True)
    kept = sorted({*range(0, len(tens), math.ceil(len(tens) / MOST_ROWS)), len(tens) - 1})
    text = (
        f"Evidence against the claim after each of {counted(len(e_values), 'training')}, on a logarithmic scale. It "
        f"starts at 1. If the claim holds it reaches {power_text(needed)}, at any time, with probability at most "
        f"{p_text(alpha)}, however the canaries of a training depend on each other."
    )
    rows = [(f"{k:,}", power_text(tens[k])) for k in kept]
    return Drawing.of(panel, "evidence", "The evidence after each training", text, ("trainings", "e-value"), rows)


def _stairs(band: Rates) -> tuple[list[float], list[float]]:
    """The stairs that the true curve lies above: at each limit of false positives what is reached up to there."""
    x, y, best = [0.0], [0.0], 0.0
    for fpr, fnr in sorted(band):
        x += [fpr, fpr]
        y += [best, best := max(best, 1.0 - fnr)]
    return [*x, 1.0], [*y, best]
