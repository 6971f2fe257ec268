"""The choice of an event: the one whose bound will be largest on the certifying runs, errors of search taken off."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpaudit.arrays import Integers, Places, Reals
from dpaudit.events.cells import Binning
from dpaudit.events.event import Event
from dpaudit.events.features import Feature
from dpaudit.events.search.goal import Goal, Spread, luck_down, luck_up
from dpaudit.events.search.tails import Tails, smoothed

FEW_Z, SOME_Z, MANY_Z = 0.2, 1.0, 2.5  # deviations of luck taken off: few cells in all, in a feature of many, many
FEW_CELLS, MANY_CELLS = 12, 64
FEWEST_SMOOTHED = 40  # hits of a tail
SORTED_Z = 1.0  # more of them where many cells are also put in order of their ratios
SMOOTHED_Z, RIVALS_Z = 0.8, 2.0  # and where neighbours have said what they know: of one feature, of several
APART = 0.02  # of their mass, by which the thresholds that are tried differ
GROUPS = 32  # contiguous groups that a ratio order may sort; more would follow the noise
MARGIN = 0.85  # of this side's hits remain when an event is moved clear of an edge of the other side


@dataclass(frozen=True, slots=True)
class Proposal:
    """An event, the side it makes likelier, how it was found, the uncertified score, and the delta to freeze."""

    event: Event
    p_side: Literal["first", "second"]
    family: str
    score: float
    delta: float = 0.0


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Events of one family, mostly nested: their counts on both sides, and how each becomes an event."""

    family: str
    sides: Reals  # of the likelier side, then of the other (side, candidate)
    cells: Callable[[int], Places]  # of the candidate with this index
    tried: Places
    tails: Tails | None = None
    sorted: bool = False  # into an order that was learned
    nested: bool = True
    own: Reals | None = None  # the counts of the events themselves, where `sides` judges orders like theirs

    def mirrored(self) -> _Candidates:
        """The same for the other side as the likelier one."""
        own = None if self.own is None else self.own[::-1]
        return replace(self, sides=self.sides[::-1], tails=self.tails and self.tails.mirrored(), own=own)


Point = tuple[float, float, Spread]  # p, q, and the luck in them


def propose(
    feature: Feature,
    bins: Binning,
    counts: Integers,
    goal: Goal,
    *,
    thresholds_only: bool = False,
    closely: bool = True,
    least_z: float = FEW_Z,
    smoothed_z: float = SMOOTHED_Z,
) -> Proposal | None:
    """The best event of one feature, over both sides, thresholds both ways, single values and sets of values.

    `counts` are int64[cells, sides]. A learned score is in order already: `thresholds_only` spares it a second order,
    learned from luck. `closely` smooths the tails, for the last choice: it costs more than the rest. `least_z`
    deviations of luck are taken off, more where the feature has more than a few cells: `SOME_Z` where other features
    compete; of smoothed tails `smoothed_z`.
    """
    sides = np.ascontiguousarray(counts.T, np.float64)
    both = sides[0] + sides[1]
    runs, filled = sides.sum(axis=1), int(np.count_nonzero(both))
    z = _distrust(filled, least_z)
    sorted_z = z + SORTED_Z * _many(filled)
    families = _thresholds(bins, sides, smooth=closely and filled > MANY_CELLS)
    group = None if thresholds_only else _groups(bins, both)
    best: tuple[float, int, _Candidates, int, Point] | None = None
    for p in (0, 1):
        here = [*families, *(() if group is None else _by_ratio(group, sides if p == 0 else sides[::-1]))]
        sizes = int(runs[p]), int(runs[1 - p])
        for score, family, chosen, point in _tops(here, goal, sizes, z, sorted_z, smoothed_z):
            if score > (-math.inf if best is None else best[0]):
                best = score, p, family, chosen, point
        families = [family.mirrored() for family in families]
    if best is None:
        return None
    score, p, family, chosen, point = best
    clear = _clear_of_edge(family, chosen) if family.nested else chosen
    if clear != chosen:
        point = _point(family.sides[:, clear], (int(runs[p]), int(runs[1 - p])), z)
    event, delta = event_of(feature, bins, family.cells(clear)), goal.delta(*point)
    return Proposal(event, "second" if p else "first", family.family, goal.score(score, delta), delta)


def _tops(
    families: list[_Candidates], goal: Goal, runs: tuple[int, int], z: float, sorted_z: float, smoothed_z: float
) -> Iterator[tuple[float, _Candidates, int, Point]]:
    """The best candidate by its own counts, and the best smoothed tail of each family: score, family, index, point."""
    sizes = [len(family.tried) for family in families]
    if sum(sizes):
        x, y = np.concatenate([family.sides[:, family.tried] for family in families], axis=1)
        off = np.repeat([sorted_z if family.sorted else z for family in families], sizes)
        scores = goal.scores(x, y, *runs, off)
        if any(family.own is not None for family in families):  # as many groups need not be as many hits
            own = [(family.sides if family.own is None else family.own)[:, family.tried] for family in families]
            x, y = np.concatenate(own, axis=1)
            scores = np.minimum(scores, goal.scores(x, y, *runs, off))
        top = int(np.argmax(scores))
        place = int(np.searchsorted(np.cumsum(sizes), top, side="right"))
        family = families[place]
        chosen = int(family.tried[top - sum(sizes[:place])])
        yield float(scores[top]), family, chosen, _point(family.sides[:, chosen], runs, float(off[top]))
    for family in families:
        if family.tails is not None:
            tails = family.tails
            p, q, luck = tails.x / max(runs[0], 1), tails.y / max(runs[1], 1), tails.spread(smoothed_z)
            # where the other side has no hit yet, its neighbours cannot say how few it will have
            seen = (tails.x + tails.y >= FEWEST_SMOOTHED) & (family.sides[1, tails.at] > 0.0)
            scores = np.where(seen, goal.predicted(p, q, luck), -np.inf)
            top = int(np.argmax(scores))
            yield float(scores[top]), family, int(tails.at[top]), (float(p[top]), float(q[top]), luck.at(top))


def _point(hits: Reals, runs: tuple[int, int], z: float) -> Point:
    p, q = (hits[0] + 0.5) / (runs[0] + 1.0), (hits[1] + 0.5) / (runs[1] + 1.0)
    x, y = hits[:, None]
    return float(p), float(q), Spread(luck_down(x, p, z) ** 2, luck_up(y, q, z) ** 2)


def _distrust(cells: int, least: float) -> float:
    """Deviations of luck taken off when so many cells may make up an event."""
    return least + (MANY_Z - least) * _many(cells)


def _many(cells: int) -> float:
    """From 0 for few cells to 1 for many, by the logarithm."""
    return min(1.0, max(0.0, math.log(max(cells, 1) / FEW_CELLS) / math.log(MANY_CELLS / FEW_CELLS)))


def _thresholds(bins: Binning, sides: Reals, *, smooth: bool) -> list[_Candidates]:
    """The tails of the numbers, above a threshold and below one, with the first side as the likelier one."""
    count = bins.bins
    numbers = sides[:, :count]
    if count == 1 and not numbers[:, 0].any():
        return []
    found = []
    for up, name in ((True, "above a threshold"), (False, "below a threshold")):
        sums = np.cumsum(numbers[:, ::-1] if up else numbers, axis=1)
        cells = (lambda j: np.arange(count - 1 - j, count)) if up else (lambda j: np.arange(j + 1))
        tails = smoothed(sums[0], sums[1]) if smooth else None
        found.append(_Candidates(name, sums, cells, _apart(sums[0] + sums[1]), tails))
    return found


def _apart(both: Reals) -> Places:
    """The candidates worth trying: those whose mass differs from that of the last one tried, and where it jumps."""
    grown = np.flatnonzero(np.diff(both, prepend=0.0))
    if len(grown) <= MANY_CELLS:
        return grown
    level = np.floor(np.log(both[grown]) / APART)
    new = np.flatnonzero(np.diff(level, prepend=-1.0))
    return np.asarray(grown[np.unique(np.concatenate([new, new[1:] - 1]))])


def _groups(bins: Binning, both: Reals) -> Places:
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


def _by_ratio(group: Places, sides: Reals) -> list[_Candidates]:
    """Single groups, and prefixes of the groups in falling order of their log ratio."""
    used = np.flatnonzero(group >= 0)
    if len(used) == 0:
        return []
    sums = np.stack([np.bincount(group[used], weights=side[used]) for side in sides]).astype(np.float64)
    order, every = falling(sums), np.arange(sums.shape[1])
    return [
        _Candidates("a single value", sums, lambda j: np.flatnonzero(group == j), every, sorted=True, nested=False),
        _Candidates(
            "values in order of their ratio",
            _judged(sums.astype(np.int64)),
            lambda j: np.flatnonzero(np.isin(group, order[: j + 1])),
            every,
            sorted=True,
            own=np.cumsum(sums[:, order], axis=1),
        ),
    ]


def _judged(sums: Integers) -> Reals:
    """The counts of the prefixes, on runs that did not order them.

    The counts are split at random into two halves; each half is summed in the order that the other gives.
    The event itself takes the order of all counts, which is better than either.
    """
    half = np.random.default_rng(sums.shape[1]).binomial(sums, 0.5)
    judged = np.zeros(sums.shape)
    for one, other in ((half, sums - half), (sums - half, half)):
        judged += np.cumsum(other[:, falling(one)], axis=1)
    return judged


def falling(sums: npt.NDArray[Any]) -> Places:
    """The places of groups, by falling log ratio less one standard error, lightly smoothed; of hits [sides, groups]."""
    x, y = sums + 0.5
    return np.argsort(-(np.log(x / y) - np.sqrt(1.0 / x + 1.0 / y)), kind="stable")


def _clear_of_edge(family: _Candidates, chosen: int) -> int:
    """The candidate, or where the other side's outputs end inside or just outside it, one well clear of that edge.

    Giving up a `MARGIN` of this side's hits would leave most of the other side's, were there no edge.
    """
    x, y = family.sides if family.own is None else family.own
    never = int(np.searchsorted(y, 0.0, side="right")) - 1  # the largest candidate that it never showed
    if y[chosen] > 0.0 and (never < 0 or x[never] < MARGIN * x[chosen]):
        return chosen
    edge = min(never, chosen)
    return int(np.searchsorted(x[: edge + 1], MARGIN * x[edge]))


def event_of(feature: Feature, bins: Binning, cells: Places) -> Event:
    """The event that some cells of a feature make: their places, rising, bins before tokens."""
    numbers = cells[cells < bins.bins]
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    starts = numbers[np.concatenate([[0], breaks + 1])] if len(numbers) else []
    ends = numbers[np.concatenate([breaks, [len(numbers) - 1]])] if len(numbers) else []
    tokens = tuple(bins.tokens[cell - bins.bins] for cell in cells[cells >= bins.bins])
    return Event(feature, tuple(bins.interval(int(a), int(b)) for a, b in zip(starts, ends, strict=True)), tokens)
