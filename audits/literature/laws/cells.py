"""Laws that are cut into cells, with a bound on what the cells lose against the best event.

Unions of cells are events, and their probabilities are exact. The best event may cut a cell; of a part of a cell P
holds at most the largest ratio in the cell times Q. So events of the law in which each cell has the probability
`highest * q` instead of p are at least as good as the best one, and how far the two curves lie apart is stated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from audits.literature.laws.curve import Curve, Floats

Row = tuple[npt.NDArray[np.int64], Floats, Floats]

WIDTH = 2e-5  # of the bins of log ratios that cells are gathered in


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Disjoint pieces of the outputs: both probabilities, and the range of the log ratio inside each."""

    first: Floats
    second: Floats
    low: Floats
    high: Floats

    def turned(self) -> Cells:
        """The same pieces in the other direction.

        >>> Cells(np.array([0.5]), np.array([0.25]), np.array([0.6]), np.array([0.7])).turned().high.tolist()
        [-0.6]
        """
        return Cells(self.second, self.first, -self.high, -self.low)


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Cells gathered by log ratio: events of the law, and the law that is at least as good as any of its events."""

    p: Floats
    q: Floats
    p_above: Floats
    q_above: Floats
    slack: float  # a factor on p_above, for what gathering the cells may lose

    def beside(self, first: Floats, second: Floats) -> Bins:
        """The law of this output and of an independent one, whose outcomes have these probabilities.

        >>> one = np.ones(1)
        >>> Bins(one, one, one, one, 1.0).beside(np.array([0.5, 0.5]), np.array([0.25, 0.75])).q.tolist()
        [0.25, 0.75]
        """
        above = (np.outer(first, self.p_above).ravel(), np.outer(second, self.q_above).ravel())
        return Bins(np.outer(first, self.p).ravel(), np.outer(second, self.q).ravel(), *above, self.slack)

    def curve(self, loss: float, method: str, error: float) -> Curve:
        """The curve of the gathered cells; its error is that of the best event's p at the same q, and `error` of both.

        >>> bins = Bins(np.ones(1), np.ones(1), np.ones(1), np.ones(1), 1.001)
        >>> round(bins.curve(0.0, "by hand", 0.0).error, 12)
        0.001
        """
        (p, q), (above, at) = _rising(self.p, self.q), _rising(self.p_above, self.q_above)
        best = np.interp(q, np.append(0.0, at), np.append(0.0, above)) * self.slack
        return Curve(p, q, loss, max(0.0, float(np.max(best / p)) - 1.0) + error, method)


def gathered(cells: Iterable[Cells], width: float = WIDTH) -> tuple[Bins, Bins]:
    """The cells by log ratio, for each direction, in bins whose ratios differ by at most e^width."""
    rows: list[list[Row]] = [[], [], [], []]
    for each in cells:
        for place, side in ((0, each), (2, each.turned())):
            kept = (side.first > 0.0) & (side.second > 0.0)
            p, q = side.first[kept], side.second[kept]
            rows[place].append(_binned(p, q, width))
            rows[place + 1].append(_binned(np.maximum(q * np.exp(side.high[kept]), p), q, width))
    forth, above, back, above_back = (_together(kind) for kind in rows)
    slack = float(np.exp(width))
    return Bins(*forth, *above, slack), Bins(*back, *above_back, slack)


def _binned(p: Floats, q: Floats, width: float) -> Row:
    bins, place = np.unique(np.floor(np.log(p / q) / width).astype(np.int64), return_inverse=True)
    return bins, _summed(place, p), _summed(place, q)


def _together(rows: list[Row]) -> tuple[Floats, Floats]:
    bins, p, q = (np.concatenate(column) for column in zip(*rows, strict=True))
    _, place = np.unique(bins, return_inverse=True)
    return _summed(place, p), _summed(place, q)


def _summed(place: npt.NDArray[np.intp], values: Floats) -> Floats:
    return np.asarray(np.bincount(place, values), np.float64)


def _rising(p: Floats, q: Floats) -> tuple[Floats, Floats]:
    order = np.argsort(-p / q, kind="stable")
    return np.cumsum(p[order]), np.cumsum(q[order])
