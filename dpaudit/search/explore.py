"""Which features are counted: read off a pilot, never from what the mechanism is called, and then from counts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpaudit.base.arrays import Integers
from dpaudit.events.event import Event
from dpaudit.events.features import Coordinate, Feature, Whole
from dpaudit.events.grammar import Expression
from dpaudit.events.scores import Binning, Linear, LogRatio
from dpaudit.outputs.canonical import Outputs, Path, Pilot, Sample
from dpaudit.search.binning import Tables, binning, binning_of
from dpaudit.search.candidates import features_of, lines_of, terms_of
from dpaudit.search.entries import looked_at
from dpaudit.search.expressions import expressions_of, parted
from dpaudit.search.goal import Goal
from dpaudit.search.learning import scores_of
from dpaudit.search.plainer import EASIER, named, plainer, readable, tells
from dpaudit.search.selection import (
    GROUPS,
    MANY_CELLS,
    Proposal,
    propose,
)

LEARNED_PRICE, DERIVED_PRICE = 0.02, 0.01  # of the bound: an event that people can read is worth that much
KEPT = 6  # features that the longer search counts, learned scores apart
MOST_ASKED = 8  # of many more, that are asked for their best event once more
SCREENED = 1 << 13  # outputs on which every feature is tried
ENOUGH = 1 << 15  # outputs that show cells which need no value of their own


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The features that the longer search will count, which of them were learned, and what was looked at."""

    tables: Tables
    learned: tuple[bool, ...]
    looked_at: tuple[tuple[str, float | None], ...]
    terms: tuple[Tables, ...] = ()  # of the log-ratio scores, which more counts of them would make better

    @property
    def plainly(self) -> tuple[Feature, ...]:
        """The features that were not learned, but for whole outputs."""
        rows = zip(self.tables.features, self.learned, strict=True)
        return tuple(each for (each, _), learned in rows if not (learned or isinstance(each, Whole)))

    def counted(self, feature: Feature, counts: Integers) -> tuple[Binning, Integers, bool]:
        """The cells of one of the features, its own counts among these, and whether it was learned."""
        place = [each for each, _ in self.tables.features].index(feature)
        return self.tables.features[place][1], self.tables.split(counts)[place], self.learned[place]


def plan(
    pilot: Pilot,
    goal: Goal,
    *,
    keep: int = KEPT,
    scores: bool = True,
    lines: bool = True,
    before: SearchPlan | None = None,
) -> SearchPlan:
    """Every feature scored on the pilot, and the best few kept; learned scores are kept unscored.

    Without `scores` the log-ratio scores are left to be learned, from the terms that the plan has for them; without
    `lines` weighted sums are not learned either. The features of a plan made `before` stay, with cells chosen anew.
    """
    both = pilot.both
    paths = looked_at(pilot, both)
    if before is None:
        scored = _scored(pilot, goal, paths)
        named = [(str(feature), None if score == -np.inf else float(score)) for score, feature in scored]
        plain = [
            feature
            for rank, (score, feature) in enumerate(scored)
            if _stays(feature, rank, keep) and (score > -np.inf or rank < KEPT or keep > KEPT)
        ]
    else:
        plain, again = (
            [each for (each, _), own in zip(before.tables.features, before.learned, strict=True) if own == learned]
            for learned in (False, True)
        )
        named = [each for each in before.looked_at if each[0] not in {str(feature) for feature in again}]
    part = part_of(pilot, ENOUGH)
    some = both if part.runs == both.runs else part.both
    one = len(both.columns) == 1
    cells = [
        (feature, binning_of(feature, both if one or isinstance(feature, Coordinate | Whole) else some))
        for feature in plain
    ]
    few = any(isinstance(feature, Whole) and len(bins.tokens) <= MANY_CELLS for feature, bins in cells)
    together = [feature for feature in plain[:KEPT] if isinstance(feature, Expression)]
    terms = () if few else terms_of(some, paths, together)  # sets of few outputs need no score
    learned: list[Feature] = [
        score for each in terms if scores for score in scores_of(each, each(Sample(pilot.first), Sample(pilot.second)))
    ]
    learned += () if few or not lines else lines_of(pilot, both)
    extra = [(feature, binning(feature.column(both), {})) for feature in learned]
    return SearchPlan(
        Tables((*cells, *extra)),
        (False,) * len(cells) + (True,) * len(extra),
        (*named, *((str(feature), None) for feature in learned)),
        terms,
    )


def planned(pilot: Pilot, goal: Goal, **how: Any) -> tuple[SearchPlan, Integers]:
    """The plan with its counts on the pilot."""
    new = plan(pilot, goal, **how)
    return new, pilot_counts(new, pilot)


def _scored(pilot: Pilot, goal: Goal, paths: Sequence[Path]) -> list[tuple[float, Feature]]:
    """All features of a glance at the pilot, the best first: those that promise most by their best event there."""
    glance = part_of(pilot, SCREENED)
    look = glance.both
    features = list(features_of(look, paths))
    tables = [_table(feature, glance, look) for feature in features]
    features += expressions_of(glance, paths, max((parted(table) for _, table in tables), default=0.0))
    tables += [_table(feature, glance, look) for feature in features[len(tables) :]]
    cells, shown = [bins for bins, _ in tables], [table for _, table in tables]
    many, first = _rivals([*zip(features, cells, strict=True)], shown), promising(shown, goal)
    scored: list[tuple[float, Feature]] = []
    for place, (feature, bins, table) in enumerate(zip(features, cells, shown, strict=True)):
        ask = place in first or isinstance(feature, Whole) or feature == Coordinate()  # how runs end
        proposal = propose(feature, bins, table, goal, closely=False, rivals=many) if ask else None
        scored.append((-np.inf if proposal is None else goal.rank(proposal.score, proposal.delta), feature))
    endings = {
        feature for feature, bins in zip(features, cells, strict=True) if any(tells(feature, t) for t in bins.tokens)
    }
    return sorted(scored, key=lambda entry: -entry[0] - EASIER * max(0.0, entry[0]) * (entry[1] in endings))


def _table(feature: Feature, pilot: Pilot, both: Outputs) -> tuple[Binning, Integers]:
    """The cells of a feature, and the counts of a pilot in them."""
    column = feature.column(both)
    bins = binning_of(feature, both, column)
    cells = np.split(bins.places(column), [pilot.first.runs])
    return bins, np.stack([np.bincount(side, minlength=bins.cells) for side in cells], axis=1)


def _stays(feature: Feature, rank: int, keep: int) -> bool:
    """The whole output contains every event there is, so where outputs recur it always gets the longer look."""
    return rank < keep or isinstance(feature, Whole) or (isinstance(feature, Coordinate) and not feature.path)


def narrowed(chosen: SearchPlan, counts: Integers, goal: Goal, *, keep: int = KEPT) -> tuple[SearchPlan, Integers]:
    """The plan with the best few of its features by these counts, and learned scores unscored; and their counts.

    Of `MOST_ASKED` or more stay those that promise most and a few, not asked for their best event.
    Counts here and below are those of the plan's tables: int64[cells, sides].
    """
    tables = chosen.tables.split(counts)
    places = sorted(asked(chosen, tables, goal, keep))
    if keep < MOST_ASKED:
        many, scores = _rivals(chosen.tables.features, tables), dict.fromkeys(places, -np.inf)
        for place in places:
            feature, bins = chosen.tables.features[place]
            proposal = propose(feature, bins, tables[place], goal, rivals=many)
            if proposal is not None:
                scores[place] = _worth(feature, proposal, goal)
        places.sort(key=lambda place: -scores[place])
        places = [each for rank, each in enumerate(places) if _stays(chosen.tables.features[each][0], rank, keep)]
    places += (place for place, learned in enumerate(chosen.learned) if learned)
    return _at_places(chosen, counts, places)


def asked(chosen: SearchPlan, tables: Sequence[Integers], goal: Goal, most: int = MOST_ASKED) -> set[int]:
    """The places of the features that were not learned and promise most, and of those that always stay."""
    plain = [place for place, learned in enumerate(chosen.learned) if not learned]
    first = {plain[rank] for rank in promising([tables[place] for place in plain], goal, most)}
    return first | {place for place in plain if _stays(chosen.tables.features[place][0], 1, 0)}


def with_scores(
    chosen: SearchPlan, counts: Integers, scores: Sequence[tuple[Feature, Binning, Integers]]
) -> tuple[SearchPlan, Integers]:
    """The plan with these log-ratio scores in place of its own, and their counts."""
    others = [j for j, (each, _) in enumerate(chosen.tables.features) if not is_score(each)]
    chosen, counts = _at_places(chosen, counts, others)
    tables = Tables((*chosen.tables.features, *((feature, bins) for feature, bins, _ in scores)))
    learned = (*chosen.learned, *(True for _ in scores))
    return replace(chosen, tables=tables, learned=learned), np.concatenate([counts, *(table for *_, table in scores)])


def is_score(feature: Feature) -> bool:
    """Whether it is a score that outputs held, or counts of terms, have taught."""
    return isinstance(feature, LogRatio | Linear)


def _at_places(chosen: SearchPlan, counts: Integers, places: Sequence[int]) -> tuple[SearchPlan, Integers]:
    """The plan with the features at some places only, and their counts."""
    tables = chosen.tables.split(counts)
    features = Tables(tuple(chosen.tables.features[place] for place in places))
    learned = tuple(chosen.learned[place] for place in places)
    return (
        replace(chosen, tables=features, learned=learned),
        np.concatenate([np.zeros((0, 2), np.int64), *(tables[place] for place in places)]),
    )


def pilot_counts(chosen: SearchPlan, pilot: Pilot) -> Integers:
    """The pilot in the plan's tables; nothing for learned features, which have seen it before."""
    counts = chosen.tables(Sample(pilot.first), Sample(pilot.second))
    for table, learned in zip(chosen.tables.split(counts), chosen.learned, strict=True):
        if learned:
            table[:] = 0
    return counts


def best(chosen: SearchPlan, counts: Integers, goal: Goal) -> Proposal | None:
    """The best event of all features counted, less what it costs a reader to be more than a value of the output."""
    tables = chosen.tables.split(counts)
    # of several features the luckiest wins, learned scores too: runs that did not make them choose among them
    many = _rivals(chosen.tables.features, tables)
    plainly = asked(chosen, tables, goal)
    ranking: list[tuple[float, int, Proposal]] = []
    for place, ((feature, bins), table) in enumerate(zip(chosen.tables.features, tables, strict=True)):
        learned = chosen.learned[place]
        ask = learned or place in plainly
        proposal = propose(feature, bins, table, goal, thresholds_only=learned, rivals=many) if ask else None
        if proposal is not None:
            ranking.append((_worth(feature, proposal, goal, learned=learned), place, proposal))
    if not ranking:
        return None
    _, place, proposal = max(ranking, key=lambda each: each[0])
    plain = [each for _, j, each in sorted(ranking, key=lambda one: -one[0]) if not chosen.learned[j]]
    counted = [(*each, table) for each, table in zip(chosen.tables.features, tables, strict=True)]
    choice = plainer(counted, place, proposal, plain, goal)
    parts = [each for each in plain if readable(each.event) and not isinstance(each.event.feature, Whole)]
    if not parts or readable(choice.event) or named(choice.event):
        return choice
    return replace(choice, part=next((each for each in parts if each.p_side == choice.p_side), parts[0]))


def _worth(feature: Feature, proposal: Proposal, goal: Goal, *, learned: bool = False) -> float:
    """The predicted bound of an event less what it costs a reader."""
    rank = goal.rank(proposal.score, proposal.delta)
    return rank - price(feature, learned, rank)


def price(feature: Feature, learned: bool, bound: float = 1.0) -> float:
    """What an event on this feature costs a reader, in units of the bound: a part of it, where it is below 1."""
    part = LEARNED_PRICE if learned else 0.0 if isinstance(feature, Coordinate | Whole) else DERIVED_PRICE
    return part * min(1.0, max(0.0, bound))


def everything(pilot: Pilot) -> Proposal:
    """The event of last resort, when nothing was seen often enough: the commonest output of the pilot."""
    both = pilot.both
    bins = binning_of(Whole(), both)
    return Proposal(Event(Whole(), tokens=bins.tokens[:1]), "first", "last resort", 0.0)


def part_of(pilot: Pilot, runs: int) -> Pilot:
    """About `runs` of the outputs, evenly spread."""
    first, second = (
        side if side.runs <= runs // 2 else side.take(np.linspace(0, side.runs - 1, runs // 2).astype(np.intp))
        for side in (pilot.first, pilot.second)
    )
    return Pilot(first, second)


def _rivals(features: Sequence[tuple[Feature, Binning]], tables: Sequence[Integers]) -> float:
    """How many features compete: by the cells they could show, one counted once whose cells hold what others' hold.

    Where whole outputs are few, the cells of all others are sets of theirs.
    """
    if any(isinstance(feature, Whole) and len(bins.tokens) <= MANY_CELLS for feature, bins in features):
        return 1.0
    cells = {}
    for table in tables:
        filled = table[table[:, 0] + table[:, 1] > 0]
        cells[np.sort((filled[:, 0] << 32) + filled[:, 1]).tobytes()] = min(len(filled), GROUPS)
    return max(1.0, sum(cells.values()) / max(1, *cells.values()))


# which of many features are worth asking for an event: by what all tables show at a glance, a few operations each


BY_BOUND, BY_SPREAD = 8, 4  # features that are asked: for one event of theirs, and for all of their cells together
PARTS, HALVINGS = 32, range(6, 10)  # parts of the mass at which thresholds are tried, and halvings towards both ends
ALONE = 4  # cells that are tried one by one: those furthest from even
LUCK_Z = 1.0  # deviations of luck taken off


def promising(tables: Sequence[Integers], goal: Goal, most: int = BY_BOUND) -> frozenset[int]:
    """The places of the `most` promising tables of counts and a few, int64[cells, sides] each, of the same runs."""
    if len(tables) <= most + BY_SPREAD:
        return frozenset(range(len(tables)))
    ends = 0.5 ** np.array(HALVINGS)
    levels = np.sort(np.concatenate([ends, np.arange(1, PARTS) / PARTS, 1.0 - ends]))
    nested, single = [], []
    for table in tables:
        grown = np.cumsum(table, axis=0)
        both, hits = grown.sum(axis=1), table.sum(axis=1)
        nested.append(grown[np.minimum(np.searchsorted(both, levels * both[-1]), len(both) - 1)])
        apart = (table[:, 0] * grown[-1, 1] - table[:, 1] * grown[-1, 0]) ** 2.0 / np.maximum(hits, 1)
        single.append(table[np.resize(np.argsort(-apart)[:ALONE], ALONE)])
    below, runs = np.array(nested), tables[0].sum(axis=0)
    events = np.concatenate([below, runs - below, np.array(single)], axis=1).astype(np.float64)
    bounds = [
        goal.scores(events[..., p].ravel(), events[..., 1 - p].ravel(), int(runs[p]), int(runs[1 - p]), LUCK_Z)
        for p in (0, 1)
    ]
    bound = np.max(np.array(bounds).reshape(2, len(tables), -1), axis=(0, 2))
    cells = np.diff(np.append(below, np.broadcast_to(runs, (len(tables), 1, 2)), axis=1), axis=1, prepend=0)
    luck = np.maximum(cells.sum(axis=2) * float(runs[0]) * float(runs[1]), 1.0)
    spread = ((cells[..., 0] * float(runs[1]) - cells[..., 1] * float(runs[0])) ** 2 / luck - 1.0).sum(axis=1)
    first = np.argsort(-bound, kind="stable")[:most].tolist()
    rest = [place for place in np.argsort(-spread, kind="stable").tolist() if place not in first]
    return frozenset([*first, *rest[:BY_SPREAD]])
