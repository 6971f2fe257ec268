"""The audits of a study one by one: what each claimed, what it certified, and what is known of the truth."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.report.figures.drawing import Drawing
from dpaudit.report.figures.panel import Key, Panel, Places, Scale, Ticks, number, padded
from dpaudit.report.figures.series import Row, is_refuted, named, number_of, truth
from dpaudit.results.wording.numerals import bound, counted, decimals, up

COLUMNS = ("mechanism", "claimed", "certified, at least", "exact", "proved, at most", "verdict")
HIGH, BROAD = 380.0, 640.0
MOST_TICKS = 10  # claimed values that are written at the axis
DECADES = 2.0  # below the claims that values are drawn at; smaller ones stand at the edge
CROWD = 5  # a claim of at least one audit for so many of the most frequent claim has a column of its own
WIDEST, FILLED = 0.2, 0.86  # of the axis that a column may have; of its room that is used
FEWEST = 8  # audits that fill a column
CLOSE = 4.0  # units between audits, below which their marks are small


@dataclass(frozen=True, slots=True)
class _Audit:
    """A row of the scatter in numbers."""

    claimed: float
    lower: float
    truth: float | None
    proved: float | None
    refuted: bool

    @property
    def claim(self) -> float:
        """What it claims, as it was meant: 8 and 8.000000000000002 are one claim."""
        return float(f"{self.claimed:.3g}")

    @property
    def order(self) -> tuple[bool, float, float]:
        """Its place among those of its column."""
        return self.proved is None, -(self.truth or 0.0), -self.lower


def scatter(rows: Sequence[Row], heading: str | None, left_out: str) -> Drawing:
    """The scatter of rows that have a claimed and a certified epsilon."""
    audits = [
        _Audit(
            number_of(row, "claimed_epsilon") or 0.0,
            number_of(row, "epsilon_lower") or 0.0,
            truth(row),
            number_of(row, "proved"),
            is_refuted(row),
        )
        for row in rows
    ]
    claimed = [audit.claimed for audit in audits]
    shown = [value for audit in audits for value in (audit.claimed, audit.lower, audit.truth, audit.proved) if value]
    least = max(min(shown), min(claimed) * 10.0**-DECADES)
    x, y = padded(claimed, log=True, share=0.12), padded([least, max(shown)], log=True)
    panel = Panel(_keys(audits), x, y, high=HIGH, width=BROAD, heading=heading)
    y_ticks = [tick for tick in y.ticks() if y(tick[0]) > 0.04]
    if min(audit.lower for audit in audits) < y.low:  # marks at the bottom edge
        y_ticks.append((y.low, "less"))
    panel.frame("claimed epsilon", "epsilon", x_ticks=_claim_ticks(claimed, x), y_ticks=y_ticks)
    panel.line(panel.at((x.low, x.high), (x.low, x.high)), colour="rule", width=1.2)
    _marks(panel, audits)
    text = (
        f"{counted(len(rows), 'audit')}: across the epsilon that was claimed, up what is known of it. Audits of one "
        "claim, and of claims close to it, stand beside each other as a column, those that are proved first, then by "
        "falling exact loss; each has a level line at its own claimed value, and what is above it exceeds the claim."
    )
    table = [_cells(row, audit) for row, audit in zip(rows, audits, strict=True)]
    title = heading or "Claimed against certified"
    return Drawing.of(panel, "claimed-against-certified", title, text + left_out, COLUMNS, table)


def _keys(audits: Sequence[_Audit]) -> list[Key]:
    keys: list[Key] = [("line", "claim", "claimed")]
    if any(audit.proved is not None for audit in audits):
        keys.append(("down", "certified", "proved for all inputs, at its tip"))
    if any(audit.truth is not None for audit in audits):
        keys.append(("line", "ink", "exact loss of the pair"))
    if not all(audit.refuted for audit in audits):
        keys.append(("point", "first", "certified"))
    if any(audit.refuted for audit in audits):
        keys.append(("diamond", "refuted", "certified, REFUTED"))
    return keys


def _crowds(claims: Sequence[float]) -> list[float]:
    """The claims of which there are several audits, and many beside the others."""
    numbers = Counter(claims)
    most = max(numbers.values())
    return sorted(claim for claim, audits in numbers.items() if audits > 1 and CROWD * audits >= most)


def _claim_ticks(claimed: Sequence[float], x: Scale) -> Ticks | None:
    """The claimed values, or those of most audits, where they can stand beside each other."""
    claims = [float(f"{value:.3g}") for value in claimed]
    asked = _crowds(claims) or sorted(set(claims))
    apart = min(np.diff(x(asked)), default=1.0)
    return [(claim, number(claim)) for claim in asked] if len(asked) <= MOST_TICKS and apart > 0.05 else None


def _columns(audits: Sequence[_Audit], x: Scale) -> tuple[dict[float, list[_Audit]], float]:
    """The audits by the claim that they stand at, and how wide a column is, as a share of the axis.

    A claim between two columns has a place of its own, one within a column stands in it.
    """
    crowds = _crowds([audit.claim for audit in audits])
    width = FILLED * min([WIDEST, *np.diff(x(crowds))])
    columns: dict[float, list[_Audit]] = {}
    for audit in audits:
        nearest = min(crowds, key=lambda claim: abs(x(claim) - x(audit.claim)), default=audit.claim)
        inside = abs(x(nearest) - x(audit.claim)) <= width / 2.0
        columns.setdefault(nearest if inside else audit.claim, []).append(audit)
    for claim, members in columns.items():
        members.sort(key=lambda audit: (audit.claim != claim, audit.claim, *audit.order))
    return columns, width


def _marks(panel: Panel, audits: Sequence[_Audit]) -> None:
    """The levels of the claims, and over them what is proved, exact and certified; small where audits stand close."""
    columns, width = _columns(audits, panel.x)
    room = width * (panel.right - panel.left) / max(FEWEST, *map(len, columns.values()))  # of an audit, in units
    close = room < CLOSE
    half = np.array([(-1.0, 0.0), (1.0, 0.0)]) * (max(room / 2.0, 2.0) if close else 5.0)
    links, claims, exact, proved, kept, refuted = (list[Places]() for _ in range(6))

    def at(claim: float, value: float, aside: float) -> Places:
        return np.add(panel.at(claim, max(value, panel.y.low)), (aside, 0.0))

    for claim, members in columns.items():
        places = [room * (k - (len(members) - 1) / 2.0) for k in range(len(members))]
        for _, group in itertools.groupby(zip(members, places, strict=True), key=lambda each: each[0].claim):
            same = list(group)
            ends = [at(claim, same[0][0].claimed, aside) for _, aside in (same[0], same[-1])]
            claims.append(np.concatenate(ends) + half)
        for audit, aside in zip(members, places, strict=True):
            top = max(audit.truth or 0.0, audit.proved or 0.0)
            if top and not close:
                links.append(np.concatenate([at(claim, audit.lower, aside), at(claim, top, aside)]))
            if audit.truth is not None:
                exact.append(at(claim, audit.truth, aside) + half)
            if audit.proved is not None:
                proved.append(at(claim, audit.proved, aside) - (0.0, 4.0))
            (refuted if audit.refuted else kept).append(at(claim, audit.lower, aside))
    panel.line(*links, colour="muted", width=0.6)
    panel.line(*claims, colour="claim", width=3.4)
    panel.marks(*proved, colour="certified", shape="v", size=5.0)
    panel.line(*exact, colour="ink", width=1.5)
    panel.marks(*kept, colour="first", shape="s" if close else "o", size=2.0 if close else 4.6)
    panel.marks(*refuted, colour="refuted", shape="D", size=4.6)


def _cells(row: Row, audit: _Audit) -> tuple[str, ...]:
    verdict = "REFUTED" if audit.refuted else "not refuted"
    return named(row), f"{audit.claimed:g}", bound(audit.lower), _at_most(audit.truth), _at_most(audit.proved), verdict


def _at_most(value: float | None) -> str:
    return "" if value is None else up(value, decimals(value, 4)) if value > 0.0 else "0"
