"""The choice of an event: the one whose bound will be largest on the certifying runs, errors of search taken off."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from dpaudit.base.arrays import Bools, Integers, Places, Reals
from dpaudit.events.event import Event
from dpaudit.events.features import Feature
from dpaudit.events.scores import Binning
from dpaudit.search.goal import FEWEST_HITS, Goal, Spread, luck_down, luck_up
from dpaudit.search.smoothing import Believed, Tails, believed, smoothed

MANY_CELLS = 64
ONE_VALUE = "a single value"
BY_RATIO = "values in order of their ratio"
LUCK = 0.45  # of the deviations of the luckiest of as many events as there may be, that is taken off what is believed
CHOSEN_Z = 1.5  # deviations of luck that are taken off what is seen of an event that takes the place of another
FEWEST_SMOOTHED = 40  # hits of a tail
ALONE = 3.0  # cells of its own kind that a feature is expected to show beyond what its other cells say
APART = 0.02  # of their mass, by which the thresholds that are tried differ
GROUPS, LEAST = 256, 100  # parts of equal mass of the numbers that a ratio order may sort, of so many hits at least
COARSE = 32  # and the parts of a second, coarser order, where there are three times as many
FEWEST_IN_A_GROUP, ENDS = 10.0, 12  # hits at either end, where parts are smaller, and so many of these
IN_ORDER_PRICE = 0.05  # of the bound, at most: a threshold or a single value is easier to read than a set
CLEAR = 20.0  # hits of the other side within an edge: as many of this side as came with them are given up beyond it
LOST = 0.05  # the probability of luck against which values and thresholds are sure
MARGIN = 0.85  # of this side's hits remain when an event is moved clear of an edge of the other side


@dataclass(frozen=True, slots=True)
class Proposal:
    """An event, the side it makes likelier, how it was found, the uncertified score, and the delta to freeze.

    `part` is the best event that people can read, where they cannot read this one.
    """

    event: Event
    p_side: Literal["first", "second"]
    family: str
    score: float
    delta: float = 0.0
    part: "Proposal | None" = None


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Events of one family: their counts on both sides, how each becomes an event, and which are tried, as what."""

    family: str
    sides: Reals  # of the likelier side, then of the other (side, candidate)
    cells: Callable[[int], Places]  # of the candidate with this index
    sums: Callable[[Reals], Reals]  # over its cells, for each candidate
    tails: Tails
    smoothed: bool = False  # by their neighbours, which cannot say how few hits there will be where none was seen
    nested: bool = True
    price: float = 0.0  # of the bound, at most, for being harder to read than the first of them

    def mirrored(self) -> "_Candidates":
        """The same for the other side as the likelier one."""
        return replace(self, sides=self.sides[::-1], tails=self.tails.mirrored())

    @property
    def seen(self) -> Bools:
        """Which were seen often enough to be an event."""
        hits = self.tails.x + self.tails.y
        if self.smoothed:
            return np.asarray((hits >= FEWEST_SMOOTHED) & (self.sides[1, self.tails.at] > 0.0))
        return np.asarray(self.sides[:, self.tails.at].sum(axis=0) >= FEWEST_HITS)


Point = tuple[float, float, Spread]  # p, q, and the luck in them


def propose(feature: Feature, bins: Binning, counts: Integers, goal: Goal, **how: Any) -> Proposal | None:
    """The best of the `proposals` for one feature: over both sides, thresholds, single values and sets of values."""
    best = proposals(feature, bins, counts, goal, **how)
    return max(filter(None, best), key=lambda each: each[0], default=(0.0, None))[1]


def proposals(
    feature: Feature,
    bins: Binning,
    counts: Integers,
    goal: Goal,
    *,
    thresholds_only: bool = False,
    closely: bool = True,
    rivals: float = 1.0,
    luck: float = LUCK,
) -> tuple[tuple[float, Proposal] | None, ...]:
    """The best threshold or single value, and the best set of each order, the finest first; None where there is none.

    Each comes with its worth before it was moved clear of an edge; a feature without outputs has no entry at all.
    `counts` are int64[cells, sides]. A learned score is in order already: `thresholds_only` spares it a second order.
    `closely` smooths the tails, for the last choice: it costs more than the rest. `rivals` features compete, of which
    each could show the one cell that is like no other.
    """
    sides = np.ascontiguousarray(counts.T, np.float64)
    runs = sides.sum(axis=1)
    values = _values(bins, sides, ALONE / rivals)
    if values is None:
        return ()
    tried = _tried(bins, sides, values, ALONE / rivals, thresholds_only=thresholds_only, closely=closely)
    events: list[tuple[float, Proposal] | None] = []
    for top in _top(tried, goal, runs, rivals, luck, surely(len(values.belief.share))):
        if top is None:
            events.append(None)
            continue
        score, p, family, chosen, point = top
        clear = _clear_of_edge(family, chosen) if family.nested else chosen
        left = score
        if clear != chosen:
            point = _point(family.sides[:, clear], (int(runs[p]), int(runs[1 - p])))
            left = min(score, float(goal.predicted(np.array(point[:1]), np.array(point[1:2]), point[2])[0]))
        event, delta = event_of(feature, bins, family.cells(clear)), goal.delta(*point)
        side: Literal["first", "second"] = "second" if p else "first"
        events.append((score, Proposal(event, side, family.family, goal.score(left, delta), delta)))
    return tuple(events)


def luckiest(events: Reals) -> Reals:
    """Deviations that the luckiest of so many events is expected to have, float64 in and out.

    Of events as large as a part m of all outputs there are 1 / m that do not overlap: sqrt(2 ln(e / m)) (Duembgen &
    Spokoiny 2001).

    >>> luckiest(np.array([1.0, 100.0])).round(2).tolist()
    [1.41, 3.35]
    """
    return np.asarray(np.sqrt(2.0 + 2.0 * np.log(np.maximum(events, 1.0))))


def _tried(
    bins: Binning, sides: Reals, values: "_Values", alone: float, *, thresholds_only: bool, closely: bool
) -> list[tuple[int, int, _Candidates]]:
    """All families of candidates, each with its likelier side and its kind, from 0 up."""
    families = [
        *_thresholds(bins, sides, values, smooth=closely and int(np.count_nonzero(sides.any(axis=0))) > MANY_CELLS),
        *((values.single(),) if not thresholds_only else ()),
    ]
    orders = [] if thresholds_only else [values]
    if orders and len(values.hits[0]) > 3 * COARSE:
        orders += [each for each in [_values(bins, sides, alone, COARSE)] if each is not None]
    tried: list[tuple[int, int, _Candidates]] = []
    for p in (0, 1):
        tried += ((p, 0, family) for family in families)
        tried += ((p, kind, each.by_ratio()) for kind, each in enumerate(orders, 1))
        families, orders = [family.mirrored() for family in families], [each.mirrored() for each in orders]
    return tried


def surely(values: int) -> float:
    """Deviations of luck that no single one of `values`, and no threshold, exceeds on either side but for `LOST`."""
    return math.sqrt(2.0 * math.log(6.0 * max(values, 1) / LOST))


def _top(
    tried: Sequence[tuple[int, int, _Candidates]],
    goal: Goal,
    runs: Reals,
    rivals: float,
    part: float,
    sure_z: float,
) -> list[tuple[float, int, _Candidates, int, Point] | None]:
    """The best candidate of each kind of family: its score, its likelier side, the family, its index there, its point.

    The families that are `tried` come with their likelier side and their kind, from 0 up.
    """
    parts = [(family.tails.at, family.tails.x, family.tails.y, family.tails.moved) for *_, family in tried]
    tails = Tails(*(np.concatenate(part) for part in zip(*parts, strict=True)))
    sizes = [len(at) for at, *_ in parts]
    facts = [
        (runs[p], runs[1 - p], float(np.count_nonzero(family.sides.any(axis=0))), family.price)
        for p, _, family in tried
    ]
    runs_p, runs_q, cells, price = np.repeat(np.array(facts), sizes, axis=0).T
    learned = price > 0.0  # an order; other events were there before the counts
    starts = np.cumsum([0, *sizes[:-1]])
    price[starts] = 0.0  # the first of each
    p, q = (np.minimum(hits / (many + 1.0), 1.0) for hits, many in ((tails.x, runs_p), (tails.y, runs_q)))
    lucky = luckiest(rivals * np.minimum(cells, (runs_p + runs_q) / (tails.x + tails.y)))
    # all of that luck is in an order that the counts made
    luck = tails.spread(np.where(learned, 1.0, part) * lucky)
    scores = goal.predicted(p, q, luck)
    scores = np.where(np.concatenate([family.seen for *_, family in tried]) & (scores > -np.inf), scores, -np.inf)
    # they are worth what their own hits show without all of that luck, whatever is believed
    x, y = np.concatenate([family.sides[:, family.tails.at] for *_, family in tried], axis=1)
    scores = np.maximum(
        scores, np.where(learned, -np.inf, goal.scores(x, y, runs_p, runs_q, np.minimum(lucky, sure_z)))
    )
    scores -= price * np.clip(scores, 0.0, 1.0)
    kinds = np.repeat([kind for _, kind, _ in tried], sizes)
    # a threshold at an edge of the other side will be moved clear of it, which no single value has to
    moved = np.repeat([family.nested for *_, family in tried], sizes) & (kinds == 0) & (y == 0.0)
    rank = scores + math.log(MARGIN) * moved
    tops: list[tuple[float, int, _Candidates, int, Point] | None] = []
    for kind in range(int(kinds.max()) + 1):
        top = int(np.argmax(np.where(kinds == kind, rank, -np.inf)))
        side, _, family = tried[int(np.searchsorted(starts, top, side="right")) - 1]
        best = (float(scores[top]), side, family, int(tails.at[top]), (float(p[top]), float(q[top]), luck.at(top)))
        tops.append(None if scores[top] == -np.inf or kinds[top] != kind else best)
    return tops


def _point(hits: Reals, runs: tuple[int, int]) -> Point:
    p, q = (hits[0] + 0.5) / (runs[0] + 1.0), (hits[1] + 0.5) / (runs[1] + 1.0)
    x, y = hits[:, None]
    return float(p), float(q), Spread(luck_down(x, p, LUCK) ** 2, luck_up(y, q, LUCK) ** 2)


def _thresholds(bins: Binning, sides: Reals, values: "_Values", *, smooth: bool) -> Iterator[_Candidates]:
    """The tails of the numbers, above a threshold and below one, with the first side as the likelier one."""
    count = bins.bins
    numbers = sides[:, :count]
    both = numbers.sum(axis=0)
    if not both.any():
        return
    for up, name in ((True, "above a threshold"), (False, "below a threshold")):
        way = slice(None, None, -1) if up else slice(None)
        sums = np.cumsum(numbers[:, way], axis=1)
        cells = (lambda j: np.arange(count - 1 - j, count)) if up else (lambda j: np.arange(j + 1))
        total = partial(_nested, way=way, count=count)
        believed = values.nested(both[way], values.group[:count][way], _apart(np.cumsum(both[way])))
        yield _Candidates(name, sums, cells, total, believed)
        if smooth and (tails := smoothed(sums[0], sums[1])) is not None:
            yield _Candidates(name, sums, cells, total, tails, smoothed=True)


def _nested(cells: Reals, *, way: slice, count: int) -> Reals:
    """The sums over the numbers' cells from one end on."""
    return np.asarray(np.cumsum(cells[:count][way]), np.float64)


def _apart(both: Reals) -> Places:
    """The candidates worth trying: those whose mass differs from that of the last one tried, and where it jumps."""
    grown = np.flatnonzero(np.diff(both, prepend=0.0))
    if len(grown) <= MANY_CELLS:
        return grown
    new = np.diff(np.floor(np.log(both[grown]) / APART), prepend=-1.0, append=np.inf) != 0.0
    return np.asarray(grown[new[:-1] | (new[1:] & (np.arange(len(grown)) < len(grown) - 1))])


@dataclass(frozen=True, slots=True)
class _Values:
    """Values, or groups of them: that of each cell (-1 for none), the hits of each, P's first, and what they say."""

    group: Places
    hits: Reals
    belief: Believed
    one: Bools  # which hold one value

    def mirrored(self) -> "_Values":
        """The same for the other side as the likelier one."""
        return replace(self, hits=self.hits[::-1], belief=self.belief.mirrored())

    def single(self) -> _Candidates:
        """Values one by one; the luckiest of many runs of numbers is the first in order of their ratio."""
        at, group = np.flatnonzero(self.one), self.group
        both = self.hits[:, at].sum(axis=0)
        x = both * self.belief.share[at]
        tails = Tails(at, x + 0.5, both - x + 0.5, both * np.sqrt(self.belief.variance[at]))
        return _Candidates(
            ONE_VALUE,
            self.hits,
            lambda j: np.flatnonzero(group == j),
            self.of,
            tails,
            nested=False,
        )

    def of(self, cells: Reals) -> Reals:
        """The sums over the cells of each value."""
        used = self.group >= 0
        return np.bincount(self.group[used], weights=cells[used]).astype(np.float64)

    def by_ratio(self) -> _Candidates:
        """The values in falling order of their estimated ratio."""
        group, order = self.group, np.argsort(-self.belief.share, kind="stable")
        return _Candidates(
            BY_RATIO,
            np.cumsum(self.hits[:, order], axis=1),
            lambda j: np.flatnonzero(np.isin(group, order[: j + 1])),
            lambda cells: np.cumsum(self.of(cells)[order]),
            self.nested(self.hits[:, order].sum(axis=0), order, np.arange(len(order))),
            nested=False,
            price=IN_ORDER_PRICE,
        )

    def nested(self, both: Reals, group: Places, at: Places) -> Tails:
        """What is believed of the first cells of a row, `at` places: of these hits and groups, each group in a run."""
        filled = np.flatnonzero(both)
        hits, group = both[filled], group[filled]
        total = np.cumsum(hits)
        new = np.diff(group, prepend=-1) != 0
        first = np.maximum.accumulate(np.where(new, np.arange(len(hits)), 0))
        # the cells of one group share its luck, groups do not share theirs
        varied = (total - (total - hits)[first]) ** 2 * self.belief.variance[group]
        whole = np.cumsum(np.where(new, np.append(0.0, varied[:-1]), 0.0))
        place = np.searchsorted(filled, at)
        x, moved = np.cumsum(hits * self.belief.share[group])[place], np.sqrt(whole + varied)[place]
        return Tails(at, x + 0.5, total[place] - x + 0.5, moved)


def _values(bins: Binning, sides: Reals, alone: float, most: int = GROUPS) -> _Values | None:
    """Tokens, values that have a bin of their own and few numbers one by one, other bins in runs of equal mass.

    Values are believed by what other values show, runs of numbers by what other runs show.
    """
    group, single = groups_of(bins, sides.sum(axis=0), most)
    used = np.flatnonzero(group >= 0)
    if len(used) == 0:
        return None
    hits = np.stack([np.bincount(group[used], weights=side[used]) for side in sides]).astype(np.float64)
    return _Values(group, hits, believed(hits[0], hits[1], alone, single), single)


def groups_of(bins: Binning, both: Reals, most: int = GROUPS) -> tuple[Places, Bools]:
    """The group of each cell with these hits, from 0 up, -1 where it has none or no name; which hold one value."""
    group = np.full(len(both), -1, np.intp)
    one = np.append(bins.alone, np.ones(len(both) - bins.bins, np.bool_))
    numbers = both[: bins.bins]
    filled = np.flatnonzero(numbers)
    if len(filled) <= MANY_CELLS:
        group[filled], one = np.arange(len(filled)), np.ones(len(both), np.bool_)
    else:
        mass = numbers[filled]
        groups = min(most, 1 + int(mass.sum() / LEAST))
        # a value seen once has its bin for that alone: it is one of a run of numbers
        alone = (bins.alone[filled] & (mass > 1.0)) | (mass * groups > mass.sum())
        rest = np.cumsum(np.where(alone, 0.0, mass))
        width = rest[-1] / groups
        ends = np.geomspace(FEWEST_IN_A_GROUP, max(width, FEWEST_IN_A_GROUP), ENDS)
        levels = np.concatenate([ends, width * np.arange(1, groups), rest[-1] - ends])
        new = alone | np.append(False, alone[:-1]) | (np.diff(np.searchsorted(np.sort(levels), rest), prepend=0) > 0)
        new[0] = False
        # an empty bin is of the run of numbers before it, or after it: there they will be
        before = np.maximum(np.searchsorted(filled, np.arange(bins.bins), side="right") - 1, 0)
        near = np.where(alone[before], np.minimum(before + 1, len(filled) - 1), before)
        group[: bins.bins] = np.where(alone[near], -1, np.cumsum(new)[near])
        group[filled] = np.cumsum(new)
    # the last cell, tokens never seen on the pilot, cannot be named and so cannot be in an event
    tokens = bins.bins + np.flatnonzero(both[bins.bins : -1])
    group[tokens] = group.max() + 1 + np.arange(len(tokens))
    single = np.zeros(group.max() + 1, np.bool_)
    single[group[group >= 0]] = one[group >= 0]
    return group, single


@dataclass(frozen=True, slots=True)
class Standing:
    """What is believed of the best event: the bound it is worth and the deviation, its hits, and its likelier side."""

    bound: float = 0.0
    deviation: float = 0.0
    hits: float = 0.0
    side: int = 0


def hoped(
    bins: Binning,
    counts: Integers,
    goal: Goal,
    part: float,
    *,
    best: Standing | None = None,
    thresholds_only: bool = False,
) -> tuple[float, Standing]:
    """What the best event is expected to gain by more runs, and how the one stands that is best now.

    More runs are a `part` of all: the belief of an event will move by that part of its variance. What is expected is
    the improvement over the best event by any other (Mockus 1975; Frazier et al. 2008), events having the luck of the
    hits that they share. Where the `best` one is of another feature, only single values of this one are asked, each of
    which shares with it all that the smaller one has. `counts` are int64[cells, sides].
    """
    from scipy.special import ndtr

    sides = np.ascontiguousarray(counts.T, np.float64)
    runs, both, values = sides.sum(axis=1), sides.sum(axis=0), _values(bins, sides, ALONE, COARSE)
    if values is None:
        return 0.0, best or Standing()
    tried = _tried(bins, sides, values, ALONE, thresholds_only=thresholds_only, closely=False)
    if best is not None:
        tried = [each for each in tried if each[2].family == ONE_VALUE]
    beliefs = [_belief(family.tails, (runs[p], runs[1 - p]), goal) for p, _, family in tried]
    own = [family.sums(both)[family.tails.at] for *_, family in tried]
    if best is None:
        seen = [np.where(family.seen, each[0], -np.inf) for (*_, family), each in zip(tried, beliefs, strict=True)]
        place = int(np.argmax([each.max(initial=-np.inf) for each in seen]))
        chosen = int(np.argmax(seen[place]))
        side, _, family = tried[place]
        bound, deviation = (float(each[chosen]) for each in beliefs[place])
        best = Standing(max(0.0, bound), deviation, float(own[place][chosen]), side)
        inside = np.zeros(len(both))
        cells = family.cells(int(family.tails.at[chosen]))
        inside[cells] = both[cells]
        common = [family.sums(inside)[family.tails.at] for *_, family in tried]
    else:
        common = [np.minimum(each, best.hits) for each in own]
    sign = np.repeat([1.0 if p == best.side else -1.0 for p, *_ in tried], [len(each) for each in own])
    bounds, deviations = (np.concatenate(each) for each in zip(*beliefs, strict=True))
    shared = sign * np.concatenate(common) / np.sqrt(np.maximum(np.concatenate(own) * best.hits, 1.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = deviations**2 + best.deviation**2 - 2.0 * shared * deviations * best.deviation
        moved = np.sqrt(np.maximum(part * variance, 0.0))
        off = (bounds - best.bound) / moved
        gain = moved * (off * ndtr(off) + np.exp(-(off**2) / 2.0) / math.sqrt(2.0 * math.pi))
    return float(np.where(np.isfinite(gain), gain, 0.0).max(initial=0.0)), best


def _belief(tails: Tails, runs: tuple[float, float], goal: Goal) -> tuple[Reals, Reals]:
    """The bounds that events are worth, and what they are worth more where luck was one deviation against them."""
    p, q = (np.minimum(hits / (many + 1.0), 1.0) for hits, many in ((tails.x, runs[0]), (tails.y, runs[1])))
    none, one = tails.spread(0.0), tails.spread(1.0)
    size = np.sqrt(one.p + one.q - 2.0 * one.both)
    more = np.minimum(p * np.exp((one.p - one.both) / size), 1.0), q * np.exp(-(one.q - one.both) / size)
    bounds, better = (np.maximum(goal.predicted(x, y, none), 0.0) for x, y in ((p, q), more))
    return bounds, better - bounds


def _clear_of_edge(family: _Candidates, chosen: int) -> int:
    """The candidate, or where the other side's outputs end inside or just outside it, one well clear of that edge.

    Giving up a `MARGIN` of this side's hits would leave most of the other side's, were there no edge.
    """
    x, y = family.sides
    never = int(np.searchsorted(y, 0.0, side="right")) - 1  # the largest candidate that it never showed
    if y[chosen] > 0.0 and (never < 0 or x[never] < MARGIN * x[chosen]):
        return chosen
    edge = min(never, chosen)
    clear = int(np.searchsorted(x[: edge + 1], MARGIN * x[edge]))
    # as many hits of this side within the edge came with so many of the other: beyond it they would have, too
    seen = int(np.searchsorted(y, CLEAR))
    if seen == len(y):
        return clear
    return max(clear, int(np.searchsorted(x[: edge + 1], x[edge] - (x[seen] - x[max(never, 0)]), side="right")) - 1)


def event_of(feature: Feature, bins: Binning, cells: Places) -> Event:
    """The event that some cells of a feature make: their places, rising, bins before tokens."""
    numbers = cells[cells < bins.bins]
    breaks = np.flatnonzero(np.diff(numbers) > 1)
    starts = numbers[np.concatenate([[0], breaks + 1])] if len(numbers) else []
    ends = numbers[np.concatenate([breaks, [len(numbers) - 1]])] if len(numbers) else []
    tokens = tuple(bins.tokens[cell - bins.bins] for cell in cells[cells >= bins.bins])
    return Event(feature, tuple(bins.interval(int(a), int(b)) for a, b in zip(starts, ends, strict=True)), tokens)


def cells_inside(bins: Binning, event: Event) -> Places:
    """The cells of an event's own feature that make it up."""
    ends = bins.edges.astype(np.float64)
    low, high = np.append(-np.inf, ends), np.append(ends, np.inf)
    mask = np.zeros(bins.cells, np.bool_)
    for start, end in event.intervals:
        mask[: bins.bins] |= (start <= low) & (high <= end)
    codes = {token.code for token in event.tokens}
    mask[[bins.bins + place for place, token in enumerate(bins.tokens) if token.code in codes]] = True
    return np.flatnonzero(mask)
