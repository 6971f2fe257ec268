"""A bracket as a picture: a row for each bound, the values of epsilon that it leaves, and what is claimed."""

import math

from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import SMALL, Key, Panel, padded
from dpaudit.results.bounds import Bounds
from dpaudit.results.wording.bracketed import at_least, at_most, headline, is_exact

ROW, LEFT = 26.0, 120.0
KEYS: tuple[Key, ...] = (("upright", "claim", "claimed"), ("line", "certified", "what each bound leaves for epsilon"))
COLUMNS = ("bound", "at least", "at most", "at delta")


def interval(bracket: Bounds) -> Drawing:
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
        panel.words(LEFT - 8.0, base, name, size=SMALL, to="right", room=LEFT - 16.0)
    if claimed is not None and claimed < math.inf:
        panel.line(panel.at(claimed, (panel.y.low, panel.y.high)), colour="claim", width=2.2)
    table = [(name, at_least(low), at_most(high), f"{delta:g}") for name, low, high, delta in spans]
    told = (
        "For each bound the values of epsilon that it leaves, dashed where they have no end, and those that all leave."
    )
    return Drawing.of(panel, "bracket", headline(bracket), told, COLUMNS, table)
