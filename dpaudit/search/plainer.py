"""Events that people can read in place of better ones that they cannot: how runs end, one condition, or two together.

Each may cost `EASIER` of the bound. All of it is decided on search runs: it may cost a little power and never truth.
"""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Literal

import numpy as np

from dpaudit.base.arrays import Bools, Integers, Places, Reals
from dpaudit.events.bits import BitScore
from dpaudit.events.event import Event, TwoEvents
from dpaudit.events.features import Coordinate, Feature, Shape, Whole, single
from dpaudit.events.joint import Equal, FirstOf
from dpaudit.events.scores import Binning, Linear, LogRatio
from dpaudit.outputs.canonical import (
    ABSENT,
    NONE,
    NOT_A_NUMBER,
    TIMED_OUT,
    Outputs,
    Pilot,
    Token,
    concatenate,
    derived,
    is_entry,
)
from dpaudit.search.binning import binning
from dpaudit.search.entries import coordinates_of, varies
from dpaudit.search.goal import FEWEST_HITS, Goal, Spread
from dpaudit.search.selection import BY_RATIO, CHOSEN_Z, MANY_CELLS, Proposal, cells_inside, event_of, proposals

EASIER = 0.02  # of the bound, at most, that an event which people can read may cost beside a better one
AS_MANY = 0.8  # of the better event's hits, at least: a rarer one may be luck
NAMED = 6  # values that a sentence names
OF_TEN_Z = 2.57  # deviations of luck, those of the luckiest of ten: one of five kinds is chosen, on either side
LEVELS = np.array([1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 60, 62, 63]) / 64  # of the numbers, at which two conditions part
PLACES = 8  # entries of an output that conditions are tried of
LONE = 3  # times as often as any other value: one that recurs alone
WHOLE = 2.0**24  # numbers below it are whole as float32 where they are as doubles
Counted = Sequence[tuple[Feature, Binning, Integers]]
Conditions = tuple[Binning, list[Event]]  # the cells that they are made of, and they
Side = Literal["first", "second"]


def readable(event: Event) -> bool:
    """Whether an event is one condition of something that has a name."""
    unnamed = isinstance(event.feature, LogRatio | Linear | Shape | BitScore)
    return not unnamed and len(event.intervals) + len(event.tokens) <= 1


@np.errstate(over="ignore")  # after the largest single number comes infinity
def named(event: Event) -> bool:
    """Whether an event is some values of a place, few enough to be named."""
    alone = all(np.nextafter(np.float32(low), np.float32(inf)) >= high for low, high in event.intervals)
    return isinstance(event.feature, Coordinate) and alone and len(event.intervals) + len(event.tokens) <= NAMED


def tells(feature: Feature, token: Token) -> bool:
    """Whether a token at a place is the end of a run, None or NaN in an output, or a key or entry that is not there."""
    if not isinstance(feature, Coordinate):
        return False
    if not feature.path:
        return token in (NONE, NOT_A_NUMBER, TIMED_OUT) or token.label.startswith("raised ")
    if token in (NONE, NOT_A_NUMBER):
        return is_entry(feature.path) and not derived(feature.path)
    return token == ABSENT and is_entry(feature.path) and isinstance(feature.path[-1], str)


def plainer(counted: Counted, place: int, best: Proposal, rivals: Sequence[Proposal], goal: Goal) -> Proposal:
    """The plainest event that is as good as the best one, of the table at `place`, but for `EASIER` of the bound.

    How a run ends and a missing key are plainer than all others; a threshold or a value is plainer than what nobody can
    read. Judged by the counts alone; beside a learned score, which its runs did not choose, by the scores of `rivals`.
    """
    asked = [(0, place, cells_inside(counted[place][1], best.event))]  # how plain, the table, and the cells
    own = isinstance(best.event.feature, LogRatio | Linear)
    own = own or (readable(best.event) and getattr(best.event.feature, "word", "")[:3] != "arg")  # equality says more
    for j, (feature, bins, table) in enumerate(counted):
        if isinstance(feature, Coordinate) and not feature.centre:
            ends = [bins.bins + at for at, each in enumerate(bins.tokens) if tells(feature, each)]
            asked += [(99 - len(feature.path), j, np.array([cell])) for cell in ends]
            if ABSENT in bins.tokens and tells(feature, ABSENT):  # a key that is there
                asked.append((98 - len(feature.path), j, np.arange(bins.bins)))
        if not (own or isinstance(feature, Whole)):
            first = [each for each in proposals(feature, bins, table, goal, closely=False)[:1] if each is not None]
            cells = [cells_inside(bins, each.event) for _, each in first if readable(each.event)]
            asked += [(_plain(feature, each), j, each) for each in cells]
    bins = counted[place][1]
    numbers = asked[0][2][asked[0][2] < bins.bins]
    if isinstance(best.event.feature, Coordinate) and len(best.event.intervals) > 1:  # without the gaps between them
        low, high = int(numbers[0]), int(numbers[-1]) + 1
        asked += [(5, place, np.arange(*span)) for span in ((low, high), (0, high), (low, bins.bins))]
    hits = np.array([counted[j][2][cells].sum(axis=0) for _, j, cells in asked], np.float64)
    runs = np.array([counted[j][2].sum(axis=0) for _, j, _ in asked])
    share = (hits / np.maximum(runs, 1)).sum(axis=1)
    mine = _scores(hits[:1], runs[:1], int(best.p_side == "second"), goal)[0]
    choices = [
        (asked[k][0], float(score), p, k)
        for p in ((0, 1) if mine > 0.0 else ())
        for k, score in enumerate(_scores(hits, runs, p, goal))
        if k and score >= (1.0 - EASIER) * mine and (asked[k][0] > NAMED or share[k] >= AS_MANY * share[0])
    ]
    if choices:
        _, score, p, k = max(choices)
        (feature, bins, _), taken = counted[asked[k][1]], asked[k][2]
        event = event_of(feature, bins, taken)
        return _proposal(event, p, "a plain event", min(best.score, score), hits[k], runs[k], goal)
    plain = [each for each in rivals if readable(each.event) and each.family != BY_RATIO]
    good = [each for each in plain if each.score >= (1.0 - EASIER) * best.score]
    return max(good, key=lambda each: each.score) if good and not readable(best.event) else best


def _plain(feature: Feature, cells: Places) -> int:
    """How plain a condition is, from 1 up to `NAMED`: a value at a place, a threshold there, a position, a rank."""
    kinds = [(Coordinate, 5), (FirstOf, 3), (Equal, 2)]
    of_rank = getattr(feature, "word", "") in ("min", "max", "ordered")
    return next((rank for kind, rank in kinds if isinstance(feature, kind)), 1 + of_rank) + (len(cells) == 1)


def together(
    best: Proposal, bins: Binning, table: Integers, features: Sequence[Feature], pilot: Pilot, goal: Goal
) -> Proposal | None:
    """One condition, or two together, in place of an event that nobody can read; None where they are not as good.

    Every other output held chooses the two, the rest judges by how much oftener they happen than the best event (Stone
    1974), whose feature has these counts in all search runs: as good but for `EASIER` of the bound.
    """
    sides = pilot.first, pilot.second
    look = concatenate(sides)
    places = [Coordinate(path) for path in coordinates_of(look) if varies(look.column(path))][:PLACES]
    features = [*places, *(each for each in features if readable(Event(each)) and each not in places)]
    chosen, rest = ([each.take(np.arange(number, each.runs, 2)) for each in sides] for number in (0, 1))
    tried = [_conditions(feature, concatenate(chosen)) for feature in features]
    events = [event for _, conditions in tried for event in conditions]
    if not events:
        return None
    both = _hits_of_two(features, tried, chosen)
    one, other = np.triu_indices(len(events))
    own = np.repeat(np.arange(len(features)), [len(conditions) for _, conditions in tried])
    plain = np.array([isinstance(each, Coordinate) for each in features], np.int64)[own]
    # how many of the two are of one place alone; one condition is plainer than two, -1 stands for two of one feature
    alike = np.where(one == other, 3 + plain[one], np.where(own[one] != own[other], plain[one] + plain[other], -1))
    runs, judging = (np.array([each.runs for each in part]) for part in (chosen, rest))
    members = [best.event.contains(each) for each in rest]
    own_hits = judging * table[cells_inside(bins, best.event)].sum(axis=0) / np.maximum(table.sum(axis=0), 1)
    mine = _scores(own_hits[None], judging, int(best.p_side == "second"), goal)[0]
    choices: list[tuple[int, float, int, Event, Reals]] = []
    for p, kind in itertools.product((0, 1), range(5)):
        among = np.flatnonzero(alike == kind)
        front = among[_front(both[one[among], other[among]][:, [p, 1 - p]])]
        if len(front):
            top = front[int(np.argmax(_scores(both[one[front], other[front]], runs, p, goal, CHOSEN_Z)))]
            event, more = events[one[top]], events[other[top]]
            event = event if kind > 2 else Event(TwoEvents(event, more), ((0.5, inf),))
            new = [event.contains(each) for each in rest]
            hits = np.array([np.count_nonzero(each) for each in new], np.float64)
            # luck is in what only one of the two events holds: of the same runs, that is how they differ
            luck = OF_TEN_Z * np.sqrt([np.count_nonzero(a != b) for a, b in zip(new, members, strict=True)])
            hits += own_hits - [np.count_nonzero(each) for each in members]
            lowered = np.clip(hits + np.where(np.arange(2) == p, -luck, luck), 0.0, judging)
            choices.append((kind, float(_scores(lowered[None], judging, p, goal)[0]), p, event, hits))
    choices = [each for each in choices if each[1] >= (1.0 - EASIER) * mine > 0.0]
    if not choices:
        return None
    _, score, p, event, hits = max(choices, key=lambda each: each[:2])
    family = "two conditions together" if isinstance(event.feature, TwoEvents) else "a plain event"
    return _proposal(event, p, family, min(best.score, score), hits, judging, goal)


def _hits_of_two(features: Sequence[Feature], tried: Sequence[Conditions], sides: Sequence[Outputs]) -> Reals:
    """How many outputs are in both of two conditions, the first not after the other: float64[events, events, sides].

    Counted cell by cell: two features have far less of these than there are outputs.
    """
    starts = np.cumsum([0, *(bins.cells for bins, _ in tried)])
    places = [starts[j] + cells_inside(bins, event) for j, (bins, events) in enumerate(tried) for event in events]
    inside, hits = np.zeros((len(places), starts[-1])), []
    for row, own in zip(inside, places, strict=True):
        row[own] = 1.0
    for outputs in sides:
        cells = [bins.places(feature.column(outputs)) for feature, (bins, _) in zip(features, tried, strict=True)]
        counts = np.zeros((starts[-1], starts[-1]))
        for one, other in itertools.combinations_with_replacement(range(len(tried)), 2):
            block = counts[starts[one] : starts[one + 1], starts[other] : starts[other + 1]]
            both = cells[one] * block.shape[1] + cells[other]
            block[:] = np.bincount(both, minlength=block.size).reshape(block.shape)
        hits.append(inside @ counts @ inside.T)
    return np.stack(hits, axis=-1)


def _conditions(feature: Feature, both: Outputs) -> Conditions:
    """Thresholds at some levels of a feature, and values where there are few; none for what nobody can read."""
    column = feature.column(both)
    bins = binning(column, dict(both.labels))
    numbers = np.sort(column.values[np.isfinite(column.values) & (column.tokens == 0)])
    few = len(bins.edges) < len(LEVELS) or not len(numbers)
    edges = bins.edges if few else np.unique(numbers[(LEVELS * (len(numbers) - 1)).astype(np.intp)])
    cells = Binning(edges, bins.tokens[:NAMED])
    last = cells.bins - 1
    spans = [(0, j) for j in range(last)] + [(j + 1, last) for j in range(last)]
    spans += [(j, j) for j in range(1, last)] if few else []
    events = [Event(feature, (cells.interval(*span),)) for span in spans]
    index = (
        isinstance(feature, Coordinate) and feature.path and isinstance(feature.path[-1], int)
    )  # a length says that it is not there
    events += [Event(feature, tokens=(token,)) for token in cells.tokens if token != ABSENT or not index]
    return cells, list(filter(readable, events))


def _front(hits: Reals) -> Places:
    """The places of the events of which none other has more hits of P and fewer of Q; hits float64[events, (P, Q)]."""
    order = np.lexsort((hits[:, 1], -hits[:, 0]))
    least = np.minimum.accumulate(np.append(np.inf, hits[order, 1]))
    return np.asarray(order[hits[order, 1] < least[:-1]])


def _scores(hits: Reals, runs: Integers, p: int, goal: Goal, z: float = 0.0) -> Reals:
    """Of events with these hits, float64[events, sides]; `runs` of each event, or of all."""
    many = runs.astype(np.float64)
    return goal.scores(hits[:, p], hits[:, 1 - p], many[..., p], many[..., 1 - p], z)


def _proposal(event: Event, p: int, family: str, score: float, hits: Reals, runs: Integers, goal: Goal) -> Proposal:
    rates = [(hits[side] + 0.5) / (runs[side] + 1.0) for side in (p, 1 - p)]
    delta = goal.delta(rates[0], rates[1], Spread(np.zeros(1), np.zeros(1)))
    side: Side = "second" if p else "first"
    return Proposal(event, side, family, float(score), delta)


def finished(proposal: Proposal, pilot: Pilot, goal: Goal) -> Proposal:
    """The proposal with a value that recurs for the interval about it where that is as good, whole numbers as such."""
    both = pilot.both
    part = None if proposal.part is None else finished(proposal.part, pilot, goal)
    proposal = pointed(proposal, pilot, goal)
    return replace(proposal, event=exact(proposal.event, both), part=part)


def pointed(proposal: Proposal, pilot: Pilot, goal: Goal) -> Proposal:
    """The commonest output of the likelier side at a place, where it is as good as the event but for `EASIER`.

    One that recurs alone, and on one side alone, is no luck: none is taken off.
    """
    event, sides, p = proposal.event, (pilot.first, pilot.second), int(proposal.p_side == "second")
    if named(event) or isinstance(event.feature, TwoEvents):
        return proposal
    inside, runs = [event.contains(each) for each in sides], np.array([each.runs for each in sides])
    own = np.array([[np.count_nonzero(each) for each in inside]], np.float64)
    for path in [path for path in event.wanted or () if is_entry(path) or not path][:PLACES]:
        columns = [single(each.column(path).values) for each in sides]
        numbers = columns[p][inside[p]]
        values, times = np.unique(numbers[np.isfinite(numbers)], return_counts=True)
        if len(times) and times.max() >= FEWEST_HITS:
            value = values[times.argmax()]
            hits = np.array([[np.count_nonzero(each == value) for each in columns]], np.float64)
            lone = hits[0, 1 - p] == 0.0 and np.count_nonzero(LONE * times > times.max()) == 1
            most = own[0, p] / AS_MANY  # beyond it is another event, and a rare one was hardly seen here
            if not lone and (hits[0, p] > most or (readable(event) and hits[0, p] < own[0, p])):  # as plain
                continue
            ways = [
                _scores(np.concatenate([own, hits]), runs, p, goal, z) for z in (0.0, *(() if lone else (CHOSEN_Z,)))
            ]
            score = float(min(each[1] for each in ways))
            if all(each[1] >= (1.0 - EASIER) * each[0] > 0.0 for each in ways):
                alone = Event(Coordinate(path), ((float(np.nextafter(value, np.float32(-inf))), float(value)),))
                return _proposal(alone, p, "a plain event", min(proposal.score, score), hits[0], runs, goal)
    return proposal


def exact(event: Event, both: Outputs) -> Event:
    """The event with whole numbers for the intervals about them, where the outputs held are whole and say which."""
    feature = event.feature
    if isinstance(feature, TwoEvents):
        return replace(event, feature=TwoEvents(exact(feature.one, both), exact(feature.other, both)))
    if not isinstance(feature, Coordinate) or feature.centre or not event.intervals:
        return event
    column = feature.column(both)
    numbers: Bools = column.tokens == 0
    if not np.all((column.values == np.rint(column.values))[numbers] & (np.abs(column.values[numbers]) < WHOLE)):
        return event
    values = np.unique(column.values[numbers & event.among(column)])
    if len(event.intervals) == 1 and len(values) > 1:
        ends = np.floor(event.intervals[0]).tolist()
        return replace(event, intervals=((ends[0], ends[1]),))
    if not 0 < len(values) <= (1 if len(event.intervals) == 1 else MANY_CELLS):
        return event
    below = np.nextafter(values, np.float32(-np.inf))
    return replace(event, intervals=tuple(zip(below.tolist(), values.tolist(), strict=True)))
