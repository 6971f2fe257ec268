"""The choice of an event: the one whose bound will be largest on the certifying runs, errors of search taken off.

For an event seen x times on side P and y times on side Q in the search, its log ratio is guessed, then
lowered by `z` standard deviations of that guess, so that luck is not taken for a leak, and by what the
certificate will lose at its own, larger, number of runs, so that rare events are judged at that size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from dpaudit.events.binning import Binning, Counts
from dpaudit.events.event import Event
from dpaudit.events.features import Feature

FEW_Z, MANY_Z = 1.0, 2.5  # deviations of luck taken off: few cells to choose among, or many
FEW_CELLS, MANY_CELLS = 12, 64
SORTED_Z = 1.0  # more of them where a fine grid is also put in order of its ratios
FEWEST_HITS = 10
GROUPS = 32  # contiguous groups that a ratio order may sort; more would follow the noise
MARGIN = 0.85  # of this side's hits remain when an event is moved clear of an edge of the other side

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Goal:
    """What the chosen event will be used for: the claim's delta, and the size and level of the certification."""

    delta: float
    runs: int
    alpha: float

    def scores(self, x: Reals, y: Reals, runs_p: int, runs_q: int, z: float) -> Reals:
        """The penalised bound of events with these search counts; -inf where there are too few hits."""
        from scipy.special import ndtri

        p, q = (x + 0.5) / (runs_p + 1.0), (y + 0.5) / (runs_q + 1.0)
        spare = p - self._given_away()
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = np.log(spare / q)
            search = np.hypot(_luck_down(x, p, z) * p / spare, _luck_up(y, q, z))
            final = np.sqrt(2.0 * p / (self.runs * spare**2) + 2.0 / (self.runs * q))
            score: Reals = ratio - search + float(ndtri(self.alpha)) * final
        return np.where((x + y >= FEWEST_HITS) & (spare > 0.0), score, -np.inf)

    def _given_away(self) -> float:
        """The rate of P's hits that the delta part of the claim may explain, its quantile included."""
        if self.delta == 0.0:
            return 0.0
        mean = self.runs * self.delta / 2.0
        return 2.0 * (mean + 2.6 * math.sqrt(mean) + 1.0) / self.runs


def _luck_up(hits: Reals, rate: Reals, z: float) -> Reals:
    """ln(upper limit / estimate) of a count, `z` deviations up, by the cube root of Wilson & Hilferty (1931)."""
    n = hits + 1.0
    upper = n * (1.0 - 1.0 / (9.0 * n) + z / (3.0 * np.sqrt(n))) ** 3
    return np.asarray(np.log(upper / (hits + 0.5)) * np.sqrt(1.0 - rate))


def _luck_down(hits: Reals, rate: Reals, z: float) -> Reals:
    """ln(estimate / lower limit) of a count, `z` deviations down, by the same formula."""
    n = np.maximum(hits, 0.5)
    lower = n * np.maximum(1.0 - 1.0 / (9.0 * n) - z / (3.0 * np.sqrt(n)), 1e-3) ** 3
    return np.asarray(np.log((hits + 0.5) / lower) * np.sqrt(1.0 - rate))


@dataclass(frozen=True, slots=True)
class Proposal:
    """An event, the side it makes likelier, how it was found, and the uncertified score."""

    event: Event
    p_side: Literal["first", "second"]
    family: str
    score: float


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Nested events of one family: their counts, and how each becomes an event."""

    family: str
    x: Reals
    y: Reals
    cells: Callable[[int], npt.NDArray[np.intp]]  # of the candidate with this index
    sorted: bool = False


def propose(
    feature: Feature, bins: Binning, counts: Counts, goal: Goal, *, thresholds_only: bool = False
) -> Proposal | None:
    """The best event of one feature, over both sides, thresholds both ways, single values and sets of values.

    A learned score is in order already: `thresholds_only` spares it a second order, learned from luck.
    """
    best: Proposal | None = None
    runs = counts.sum(axis=0)
    filled = int(np.count_nonzero(counts.any(axis=1)))
    for p, side in ((0, "first"), (1, "second")):
        mine, other = counts[:, p].astype(float), counts[:, 1 - p].astype(float)
        for family in _families(bins, mine, other):
            if family.sorted and thresholds_only:
                continue
            z = _distrust(filled) + SORTED_Z * (family.sorted and filled > MANY_CELLS)
            scores = goal.scores(family.x, family.y, int(runs[p]), int(runs[1 - p]), z)
            if len(scores) == 0:
                continue
            top = int(np.argmax(scores))
            score = float(scores[top])
            if math.isfinite(score) and (best is None or score > best.score):
                event = _event(feature, bins, family.cells(_clear_of_edge(family, top)))
                best = Proposal(event, side, family.family, score)  # type: ignore[arg-type]
    return best


def _distrust(cells: int) -> float:
    """Deviations of luck taken off when so many cells may make up an event."""
    part = math.log(max(cells, 1) / FEW_CELLS) / math.log(MANY_CELLS / FEW_CELLS)
    return FEW_Z + (MANY_Z - FEW_Z) * min(1.0, max(0.0, part))


def _families(bins: Binning, x: Reals, y: Reals) -> Iterator[_Candidates]:
    numbers = bins.bins
    if numbers > 1 or x[:numbers].any() or y[:numbers].any():
        above_x, above_y = (np.cumsum(side[:numbers][::-1]) for side in (x, y))
        yield _Candidates("above a threshold", above_x, above_y, lambda j: np.arange(numbers - 1 - j, numbers))
        below_x, below_y = (np.cumsum(side[:numbers]) for side in (x, y))
        yield _Candidates("below a threshold", below_x, below_y, lambda j: np.arange(j + 1))
    group = _groups(bins, x + y)
    if group.max() >= 0:
        yield _by_ratio(group, x, y)


def _groups(bins: Binning, both: Reals) -> npt.NDArray[np.intp]:
    """The group of each cell, -1 for none: tokens and few numbers one by one, many bins in runs of equal mass."""
    group = np.full(len(both), -1, np.intp)
    numbers = both[: bins.bins]
    filled = np.flatnonzero(numbers)
    if len(filled) <= MANY_CELLS:
        group[filled] = np.arange(len(filled))
    else:
        share = np.cumsum(numbers) / numbers.sum()
        group[: bins.bins] = np.minimum((share * GROUPS).astype(np.intp), GROUPS - 1)
    # the last cell, tokens never seen on the pilot, cannot be named and so cannot be in an event
    tokens = bins.bins + np.flatnonzero(both[bins.bins : -1])
    group[tokens] = group.max() + 1 + np.arange(len(tokens))
    return group


def _by_ratio(group: npt.NDArray[np.intp], x: Reals, y: Reals) -> _Candidates:
    """Prefixes of the groups in falling order of their log ratio, judged on runs that did not order them.

    The counts are split at random into two halves; each half is summed in the order that the other gives.
    The event itself takes the order of all counts, which is better than either.
    """
    used = np.flatnonzero(group >= 0)
    sums = np.stack([np.bincount(group[used], weights=side[used]) for side in (x, y)]).astype(np.int64)
    half = np.random.default_rng(sums.shape[1]).binomial(sums, 0.5)
    judged = np.zeros(sums.shape)
    for one, other in ((half, sums - half), (sums - half, half)):
        judged += np.cumsum(other[:, _order(one)], axis=1)
    order = _order(sums)
    return _Candidates(
        "values in order of their ratio",
        judged[0],
        judged[1],
        lambda j: np.flatnonzero(np.isin(group, order[: j + 1])),
        sorted=True,
    )


def _order(sums: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Groups by falling log ratio less one standard error, lightly smoothed."""
    x, y = sums + 0.5
    return np.argsort(-(np.log(x / y) - np.sqrt(1.0 / x + 1.0 / y)), kind="stable")


def _clear_of_edge(family: _Candidates, chosen: int) -> int:
    """The candidate, or where the other side's outputs end inside or just outside it, one well clear of that edge.

    Giving up a `MARGIN` of this side's hits would leave most of the other side's, were there no edge.
    """
    never = int(np.searchsorted(family.y, 0.0, side="right")) - 1  # the largest candidate that it never showed
    if family.y[chosen] > 0.0 and (never < 0 or family.x[never] < MARGIN * family.x[chosen]):
        return chosen
    edge = min(never, chosen)
    return int(np.searchsorted(family.x[: edge + 1], MARGIN * family.x[edge]))


def _event(feature: Feature, bins: Binning, cells: npt.NDArray[np.intp]) -> Event:
    numbers = cells[cells < bins.bins]
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    starts = numbers[np.concatenate([[0], breaks + 1])] if len(numbers) else []
    ends = numbers[np.concatenate([breaks, [len(numbers) - 1]])] if len(numbers) else []
    tokens = tuple(bins.tokens[cell - bins.bins] for cell in cells[cells >= bins.bins])
    return Event(feature, tuple(bins.interval(int(a), int(b)) for a, b in zip(starts, ends, strict=True)), tokens)
