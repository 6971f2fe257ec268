"""The privacy profile: delta as a function of epsilon, claimed and certified from below."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpaudit.certify.lower_profile import LowerProfile
from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import Key, plain_panel
from dpaudit.report.figures.scales import Scale, padded
from dpaudit.results.result import AuditResult
from dpaudit.results.wording.numerals import confidence_text, decimals, down, up
from dpaudit.results.wording.statements import confidence

TITLE = "The privacy profile: delta at every epsilon"
COLUMNS = ("epsilon", "delta claimed, at most", "delta certified, at least")
POINTS, SHOWN = 36, 10
LEAST = 1e-12  # delta below which nothing is drawn
FEWEST_DECADES = 2.0

Reals = npt.NDArray[np.float64]


def profile(result: AuditResult) -> Drawing | None:
    """The claim's profile and the certified lower one; None where no certifying run was counted."""
    if not (result.evidence.runs_p and result.evidence.runs_q):
        return None
    found = LowerProfile.of(result.evidence, result.level)
    upper = result.upper if result.bracket is not None else None
    reach = found.epsilon_at(0.0)
    claimed = result.claim.epsilon_at(max(result.claim.delta, 1e-6))
    ends = [each for each in (reach, claimed, 0.0 if upper is None else upper.epsilon_upper) if math.isfinite(each)]
    grid = _grid(max(0.5, 1.15 * max(ends)), claimed)
    promised = [result.claim.delta_at(float(each)) for each in grid]
    certified = [found.delta_at(float(each)) for each in grid]
    told = confidence_text(confidence(result))  # of several witnesses the best is drawn: all hold together at this
    nothing = max(promised) <= LEAST
    keys: list[Key] = [
        ("line", "claim", "claimed: delta is 0, below this scale" if nothing else "claimed: delta is at most this"),
        ("dash", "certified", f"certified at {told}: at least this"),
    ]
    if upper is not None:
        keys.append(("diamond", "ink", "known upper bound"))
    both = [*_above_drop(grid, promised, claimed), *_above_drop(grid, certified, reach)]
    scale = _deltas([*both, result.claim.delta])
    panel = plain_panel(keys, Scale(0.0, float(grid[-1])), scale)
    panel.frame("epsilon", "delta")
    panel.line(grid, promised, "claim")
    panel.line(*_falling(grid.tolist(), certified, reach, found), "certified", kind="dash")
    if upper is not None and math.isfinite(upper.epsilon_upper):
        panel.points([upper.epsilon_upper], [max(upper.delta, scale.low)], "ink", shape="D")
    return panel.sheet.drawing("privacy-profile", TITLE, _described(told), COLUMNS, _table(result, found, grid[-1]))


def _described(told: str) -> str:
    return (
        "The least delta at which the claim promises epsilon, and a curve that the true delta does not lie below, at "
        f"every epsilon at once, with confidence {told}. It follows from the two limits of the witness, and is a "
        "statement beside the certificate, which is sharper at its own delta. Where the certified curve ends, "
        "nothing is known from below."
    )


def _above_drop(grid: Reals, values: list[float], end: float) -> list[float]:
    """The values that are not on the steep fall before `end`, which would stretch the scale for nothing."""
    return [value for each, value in zip(grid.tolist(), values, strict=True) if not 0.965 * end < each <= end]


def _deltas(values: list[float]) -> Scale:
    positive = [each for each in values if each > LEAST]
    top = max([*positive, 1e-3])
    smallest = min([*positive, top])
    low = max(
        min(smallest, top * 10.0**-FEWEST_DECADES), LEAST, top * 1e-6 if smallest > top * 1e-6 else smallest / 3.0
    )
    return padded([low, min(1.0, top)], log=True)


def _grid(end: float, claimed: float) -> Reals:
    """Equal steps, and closer ones before the epsilon at which a claim's delta drops to its least."""
    steps = np.linspace(0.0, end, POINTS)
    if not 0.0 < claimed < end:
        return steps
    return np.union1d(steps, claimed * (1.0 - np.array([0.03, 0.01, 1e-3, 1e-4, 0.0])))


def _falling(
    grid: list[float], certified: list[float], reach: float, found: LowerProfile
) -> tuple[list[float], list[float]]:
    """The certified curve down to where it ends, which a grid misses."""
    before = [reach * (1.0 - part) for part in (0.03, 0.01, 1e-3)]
    x = sorted({*(each for each, value in zip(grid, certified, strict=True) if value > 0.0), *before})
    y = [found.delta_at(each) for each in x]
    return ([*x, reach], [*y, 0.0]) if reach > 0.0 else ([0.0], [0.0])


def _table(result: AuditResult, found: LowerProfile, end: float) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for epsilon in np.linspace(0.0, float(end), SHOWN):
        shown = round(float(epsilon), 3)
        rows.append((f"{shown:g}", _up(result.claim.delta_at(shown)), _down(found.delta_at(shown))))
    return rows


def _up(value: float) -> str:
    return "0" if value <= 0.0 else up(value, decimals(value, 3))


def _down(value: float) -> str:
    return "0" if value <= 0.0 else down(value, decimals(value, 3))
