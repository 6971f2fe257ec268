"""The prequential learner of anytime audits: from all earlier runs, the bet on the next ones.

It looks at few and simple events, both datasets as the likelier one: thresholds of a feature, both ways, and sets of
at most `GROUPS` values in order of their ratio. What it has seen of an event is taken for worse than it was, by
`CHOICE_Z` deviations to choose one and by `BET_Z` to bet on it. Every fitted cell costs money: a learner with many
more cells needs several times the runs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dpaudit.base.arrays import Integers, Places, Reals
from dpaudit.certify.sequential import growth
from dpaudit.events.event import Event
from dpaudit.events.features import Coordinate, Feature
from dpaudit.events.scores import Binning
from dpaudit.outputs.canonical import Pilot, Sample
from dpaudit.search.binning import Tables, binning_of
from dpaudit.search.candidates import features_of
from dpaudit.search.entries import looked_at
from dpaudit.search.explore import SCREENED, part_of
from dpaudit.search.selection import cells_inside, event_of

CHOICE_Z, BET_Z = 1.5, 1.3  # deviations taken off what was seen of an event, to choose one and to bet on it
SORTED_Z = 1.5  # more of them for an event that was put together from what was seen
GROUPS = 16  # values, or parts of equal mass, that a ratio order may sort
LEVELS = 64  # thresholds of a feature that are tried, at the most
KEPT = 6  # features between two looks at all of them
FRESH = 1.25  # growth of the outputs between two such looks
FEWEST = 4  # runs of a side from which anything is bet

Lines = tuple[tuple[float, float], ...]  # half-planes of the claim, as (epsilon, delta)


@dataclass(frozen=True, slots=True)
class Bet:
    """An event with the rates that the bet names, the half-plane it is made against, and what a run should add."""

    event: Event
    p_side: Literal["first", "second"]
    p: float
    q: float
    delta: float
    growth: float
    family: str


NOTHING = Bet(Event(Coordinate(), ((-np.inf, np.inf),)), "first", 0.5, 0.5, 0.0, 0.0, "nothing seen yet")


@dataclass(frozen=True, slots=True)
class _Nested:
    """Nested events of one feature: their hits on both datasets, and the cells of each."""

    family: str
    hits: Integers  # a row for each event, a column for each side
    cells: Sequence[Places]
    sorted: bool = False


def shrunk(hits: Reals, runs: int, z: Reals | float) -> Reals:
    """Wilson's limit (1927) of a rate, `z` deviations up or, where z is negative, down; strictly inside (0, 1).

    `hits` of so many runs, float64[events]; the limits have that shape.

    >>> shrunk(np.array([0.0, 5.0]), 10, 1.0).round(3).tolist()
    [0.109, 0.644]
    """
    middle = hits + z * z / 2.0 + 0.25
    spread = z * np.sqrt(np.maximum(hits * (runs - hits) / runs, 0.0) + z * z / 4.0)
    return np.asarray((middle + spread) / (runs + z * z + 0.5))


def outlook(
    x: Reals, y: Reals, runs: tuple[int, int], lines: Lines, z: Reals | float
) -> tuple[Reals, Reals, Places, Reals]:
    """Rates `z` deviations worse than seen, the line that they break most, and what a run of such a bet would add.

    Hits of side P and of side Q, float64[events], of so many runs; all four answers are of that length, the line as its
    place in `lines`, the growth in nats a run.
    """
    p, q = shrunk(x, runs[0], -z), shrunk(y, runs[1], z)
    ratio, delta = np.exp([line[0] for line in lines]), np.array([line[1] for line in lines])
    excess = p[:, None] - ratio * q[:, None] - delta
    spread = np.sqrt((p * (1.0 - p))[:, None] + ratio**2 * (q * (1.0 - q))[:, None])
    line = np.argmax(excess / spread, axis=1)
    return p, q, line, growth(p, q, ratio[line], delta[line])


class Learner:
    """Holds what was seen so far: the outputs while they are few, then tables of counts alone."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines
        self.pilot: Pilot | None = None
        self.tables = Tables(())
        self.counts: Integers = np.zeros((0, 2), np.int64)
        self._planned = 0
        self._in_order: frozenset[Feature] = frozenset()

    def see(self, fresh: Pilot) -> None:
        """More outputs, kept; from time to time all features are looked at again."""
        pilot = fresh if self.pilot is None else Pilot.joined([self.pilot, fresh])
        runs = pilot.runs
        if runs >= FRESH * self._planned:
            tables, counts = self._look(pilot)
        else:
            tables, runs = self.tables, self._planned
            counts = self.counts + tables(Sample(fresh.first), Sample(fresh.second))
        self.pilot, self.tables, self.counts, self._planned = pilot, tables, counts, runs  # all, or none

    def settle(self, tables: Tables, counts: Integers, learned: Sequence[bool]) -> None:
        """From now on only these tables are counted, which begin with `counts`; the outputs are let go.

        `learned` tells the features that are learned scores: they are in order already and get no second one.
        """
        self.pilot, self.tables, self.counts = None, tables, counts
        self._in_order = frozenset(
            feature for (feature, _), is_score in zip(tables.features, learned, strict=True) if is_score
        )

    def count(self, counts: Integers) -> None:
        """More runs, as counts of the tables: int64[cells, sides]."""
        self.counts = self.counts + counts

    def bet(self) -> Bet:
        """The bet on the next runs; one with p = q, which stakes nothing, while there is nothing to bet on."""
        if not self.lines:
            return NOTHING  # the claim allows everything
        best = replace(NOTHING, delta=self.lines[0][1])
        for feature, bins, table in self._tables():
            runs = table.sum(axis=0).tolist()
            if min(runs) < FEWEST:
                continue
            nested = [*_thresholds(bins, table), *(() if feature in self._in_order else _by_ratio(bins, table))]
            if not nested:
                continue
            hits = np.concatenate([each.hits for each in nested]).astype(float)
            z = np.repeat([CHOICE_Z + SORTED_Z * each.sorted for each in nested], [len(each.hits) for each in nested])
            for p, side in ((0, "first"), (1, "second")):
                x, y, sides = hits[:, p], hits[:, 1 - p], (runs[p], runs[1 - p])
                scores = outlook(x, y, sides, self.lines, z)[3]
                top = int(np.argmax(scores))
                if scores[top] > best.growth:
                    family, cells = [(each.family, cells) for each in nested for cells in each.cells][top]
                    rates = stake(x[top], y[top], sides, self.lines)
                    event = event_of(feature, bins, cells)
                    best = Bet(event, side, *rates, float(scores[top]), family)  # type: ignore[arg-type]
        return best

    def again(self, bet: Bet, hits: tuple[int, int], runs: tuple[int, int]) -> Bet:
        """A bet on the same event, now that it was seen so often on the likelier side and on the other."""
        if not self.lines or min(runs) < FEWEST:
            return replace(bet, p=NOTHING.p, q=NOTHING.q)
        p, q, delta = stake(hits[0], hits[1], runs, self.lines)
        return replace(bet, p=p, q=q, delta=delta)

    def seen(self, event: Event) -> Integers:
        """Hits and runs of the first side, then of the second, of an event on a feature being counted: int64[4]."""
        for feature, bins, table in self._tables():
            if feature == event.feature:
                return np.stack([table[cells_inside(bins, event)].sum(axis=0), table.sum(axis=0)], axis=1).ravel()
        return np.zeros(4, np.int64)

    def _tables(self) -> Iterator[tuple[Feature, Binning, Integers]]:
        tables = self.tables.split(self.counts) if self.tables.features else []
        for (feature, bins), table in zip(self.tables.features, tables, strict=True):
            yield feature, bins, table

    def _look(self, pilot: Pilot) -> tuple[Tables, Integers]:
        """All features, scored on part of the outputs; the best, to be counted from here on, and their counts."""
        both = pilot.both
        glance = part_of(pilot, SCREENED)
        look, scored = glance.both, []
        for feature in features_of(look, looked_at(pilot, both)):
            tables = Tables(((feature, binning_of(feature, look)),))
            learner = Learner(self.lines)
            learner.settle(tables, tables(Sample(glance.first), Sample(glance.second)), [False])
            scored.append((learner.bet().growth, feature))
        scored.sort(key=lambda entry: -entry[0])
        chosen = Tables(tuple((feature, binning_of(feature, both)) for _, feature in scored[:KEPT]))
        return chosen, chosen(Sample(pilot.first), Sample(pilot.second))


def stake(x: float, y: float, runs: tuple[int, int], lines: Lines) -> tuple[float, float, float]:
    """The rates (p, q) of a bet on an event that was seen `x` and `y` times, and the delta of its half-plane."""
    p, q, line, _ = outlook(np.array([x]), np.array([y]), runs, lines, BET_Z)
    return float(p[0]), float(q[0]), lines[int(line[0])][1]


def _thresholds(bins: Binning, table: Integers) -> Iterator[_Nested]:
    """Below and above some thresholds: all of them where few bins are filled, else at levels even in their logit."""
    numbers = table[: bins.bins]
    total = np.cumsum(numbers.sum(axis=1))
    if total[-1] == 0:
        return
    ends = np.flatnonzero(numbers.any(axis=1))
    if len(ends) > LEVELS:
        least = np.log(3.0 / total[-1])
        levels = 1.0 / (1.0 + np.exp(-np.linspace(least, -least, LEVELS)))
        ends = np.unique(np.searchsorted(total, levels * total[-1]))
    below = np.cumsum(numbers, axis=0)[ends]
    yield _Nested("below a threshold", below, [np.arange(j + 1) for j in ends])
    above = numbers.sum(axis=0) - below
    yield _Nested("above a threshold", above, [np.arange(j + 1, bins.bins) for j in ends])


def _by_ratio(bins: Binning, table: Integers) -> Iterator[_Nested]:
    """Sets of values, or of parts of equal mass, in order of their ratio; once for each side as the likelier one."""
    groups = _groups(bins, table)
    if len(groups) < 2:
        return
    sums = np.array([table[group].sum(axis=0) for group in groups], np.int64)
    runs = table.sum(axis=0)
    x, y = ((sums + 0.5) / (runs + 1.0)).T
    order = np.argsort(-np.log(x / y), kind="stable")
    for ordered in (order, order[::-1]):
        cells = [np.sort(np.concatenate([groups[j] for j in ordered[: k + 1]])) for k in range(len(groups) - 1)]
        yield _Nested("values in order of their ratio", np.cumsum(sums[ordered], axis=0)[:-1], cells, sorted=True)


def _groups(bins: Binning, table: Integers) -> list[Places]:
    both = table.sum(axis=1)
    filled = np.flatnonzero(both[: bins.bins])
    groups: list[Places] = []
    if 0 < len(filled) <= GROUPS:
        groups = [np.array([j]) for j in filled]
    elif len(filled):
        share = np.cumsum(both[: bins.bins]) / both[: bins.bins].sum()
        place = np.minimum((share * GROUPS).astype(np.intp), GROUPS - 1)
        groups = [np.flatnonzero(place == j) for j in np.unique(place)]
    tokens = bins.bins + np.argsort(-both[bins.bins : -1], kind="stable")[:GROUPS]
    return groups + [np.array([j]) for j in tokens if both[j]]
