"""The privacy profile: delta as a function of epsilon, claimed and certified from below."""

import math

import numpy as np

from dpaudit.certify.lower_profile import LowerProfile
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import Key, Panel, Scale, padded
from dpaudit.results.result import AuditResult
from dpaudit.results.wording.numerals import bound, confidence_text, least_text
from dpaudit.results.wording.statements import confidence

TITLE = "The privacy profile: delta at every epsilon"
COLUMNS = ("epsilon", "delta claimed, at most", "delta certified, at least")
POINTS, SHOWN = 36, 10
CLOSER = 1.0 - np.array([0.03, 0.01, 1e-3, 1e-4, 0.0])  # parts of an epsilon before which delta falls steeply
LEAST = 1e-12  # delta below which nothing is drawn
FEWEST_DECADES = 2.0


def profile(result: AuditResult) -> Drawing | None:
    """The claim's profile and the certified lower one; None where no certifying run was counted."""
    if not (result.evidence.runs_p and result.evidence.runs_q):
        return None
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
    told = confidence_text(confidence(result))  # of several witnesses the best is drawn: all hold together at this
    nothing = max(promised) <= LEAST
    keys: list[Key] = [
        ("line", "claim", "claimed: delta is 0, below this scale" if nothing else "claimed: delta is at most this"),
        ("dash", "certified", f"certified at {told}: at least this"),
    ]
    if upper is not None:
        keys.append(("diamond", "ink", "known upper bound"))
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
        panel.marks(panel.at(upper.epsilon_upper, max(upper.delta, panel.y.low)), colour="ink", shape="D")
    text = (
        "The least delta at which the claim promises epsilon, and a curve that the true delta does not lie below, at "
        f"every epsilon at once, with confidence {told}. It follows from the two limits of the witness, and is a "
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
