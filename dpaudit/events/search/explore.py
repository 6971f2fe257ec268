"""Which features are counted: read off a pilot, never from what the mechanism is called, and then from counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.arrays import Integers
from dpaudit.events.cells import Binning
from dpaudit.events.event import Event
from dpaudit.events.features import Coordinate, Feature, Whole
from dpaudit.events.scores import LogRatio
from dpaudit.events.search.binning import Tables, binning
from dpaudit.events.search.candidates import features_of, lines_of, terms_of
from dpaudit.events.search.entries import looked_at
from dpaudit.events.search.goal import Goal
from dpaudit.events.search.labels import binning_of
from dpaudit.events.search.learning import log_ratio
from dpaudit.events.search.selection import (
    MANY_CELLS,
    RIVALS_Z,
    SMOOTHED_Z,
    Proposal,
    event_of,
    propose,
)
from dpaudit.outputs import Pilot, Sample, concatenate

LEARNED_PRICE, DERIVED_PRICE = 0.02, 0.01  # of the bound: an event that people can read is worth that much
SOME_Z = 1.0  # deviations of luck by which a score learned again may be worse
KEPT = 6  # features that the longer search counts, learned scores apart
SCREENED = 1 << 13  # outputs on which every feature is tried


@dataclass(frozen=True, slots=True)
class Plan:
    """The features that the longer search will count, which of them were learned, and what was looked at."""

    tables: Tables
    learned: tuple[bool, ...]
    looked_at: tuple[tuple[str, float | None], ...]
    left_out: tuple[tuple[str, str], ...]
    terms: tuple[Tables, ...] = ()  # of the log-ratio scores, which more counts of them would make better

    @property
    def plain(self) -> bool:
        """Whether every feature has few cells, so that no score is learned and no tail is looked for."""
        return not self.terms and all(bins.cells <= MANY_CELLS for _, bins in self.tables.features)


def plan(pilot: Pilot, goal: Goal, *, keep: int = KEPT) -> Plan:
    """Every feature scored on the pilot, and the best few kept; learned scores are kept unscored."""
    both = concatenate([pilot.first, pilot.second])
    glance = _part_of(pilot, SCREENED)
    look = concatenate([glance.first, glance.second])
    scored: list[tuple[float, Feature]] = []
    paths = looked_at(pilot, both)
    features = list(features_of(look, paths))
    for feature in features:
        found = _on_pilot(feature, binning_of(feature, look), glance, goal, len(features))
        scored.append((-np.inf if found is None else goal.rank(found.score, found.delta), feature))
    scored.sort(key=lambda entry: -entry[0])
    kept = [
        (feature, binning_of(feature, both))
        for rank, (score, feature) in enumerate(scored)
        if _stays(feature, rank, keep) and (score > -np.inf or rank < KEPT)
    ]
    few = any(isinstance(feature, Whole) and len(bins.tokens) <= MANY_CELLS for feature, bins in kept)
    terms = () if few else terms_of(both, paths)  # sets of few outputs need no score
    learned: list[Feature] = [log_ratio(each, each(Sample(pilot.first), Sample(pilot.second))) for each in terms]
    learned += () if few else lines_of(pilot, both)
    extra = [(feature, binning(feature.column(both), {})) for feature in learned]
    named = [(str(feature), None if score == -np.inf else float(score)) for score, feature in scored]
    return Plan(
        Tables((*kept, *extra)),
        (False,) * len(kept) + (True,) * len(extra),
        (*named, *((str(feature), None) for feature in learned)),
        (),
        terms,
    )


def _stays(feature: Feature, rank: int, keep: int) -> bool:
    """The whole output contains every event there is, so where outputs recur it always gets the longer look."""
    return rank < keep or isinstance(feature, Whole)


def narrowed(chosen: Plan, counts: Integers, goal: Goal, *, keep: int = KEPT) -> tuple[Plan, Integers]:
    """The plan with the best few of its features by these counts, and learned scores unscored; and their counts.

    Counts here and below are those of the plan's tables: int64[cells, sides].
    """
    tables = chosen.tables.split(counts)
    scores = [
        -np.inf if found is None else _worth(feature, found, goal)
        for (feature, bins), table in zip(chosen.tables.features, tables, strict=True)
        for found in [propose(feature, bins, table, goal, smoothed_z=RIVALS_Z, rivals=len(tables))]
    ]
    plain = [place for place, learned in enumerate(chosen.learned) if not learned]
    plain.sort(key=lambda place: -scores[place])
    places = [place for rank, place in enumerate(plain) if _stays(chosen.tables.features[place][0], rank, keep)] + [
        place for place, learned in enumerate(chosen.learned) if learned
    ]
    return _kept(chosen, counts, places)


def unlearned(chosen: Plan, counts: Integers) -> tuple[Plan, Integers]:
    """The plan without its log-ratio scores, where they will be learned from more runs."""
    return _kept(chosen, counts, [j for j, (each, _) in enumerate(chosen.tables.features) if not _is_score(each)])


def relearned(
    chosen: Plan, counts: Integers, terms: Sequence[Integers], goal: Goal, pilot: Pilot
) -> tuple[Plan, Integers]:
    """The plan with log-ratio scores learned anew from counts of their terms; nothing of these is counted yet.

    The best score so far stays: what is learned last need not be better, and only later runs can say.
    """
    of_score = [_is_score(feature) for feature, _ in chosen.tables.features]
    judged = [
        -np.inf if found is None or not score else _worth(feature, found, goal)
        for (feature, bins), table, score in zip(
            chosen.tables.features, chosen.tables.split(counts), of_score, strict=True
        )
        for found in [propose(feature, bins, table, goal, thresholds_only=True) if score else None]
    ]
    top = max(judged, default=-np.inf)
    chosen, counts = _kept(
        chosen, counts, [j for j, score in enumerate(of_score) if not score or judged[j] == top > -np.inf]
    )
    fresh = [_counted(log_ratio(each, table), pilot) for each, table in zip(chosen.terms, terms, strict=True)]
    return (
        replace(
            chosen,
            tables=Tables((*chosen.tables.features, *fresh)),
            learned=(*chosen.learned, *(True for _ in fresh)),
        ),
        np.concatenate([counts, *(np.zeros((bins.cells, 2), np.int64) for _, bins in fresh)]),
    )


def learned_again(found: Proposal, chosen: Plan, terms: Sequence[Integers], pilot: Pilot) -> Tables | None:
    """The score of an event learned from all counts of its terms, and the event's own; None where it is on no score."""
    own = found.event.feature
    if not isinstance(own, LogRatio):
        return None
    parts = tuple(term.coordinate for term in own.terms)
    which = [tuple(dict(each.features)) for each in chosen.terms].index(parts)
    return Tables(
        (_counted(log_ratio(chosen.terms[which], terms[which]), pilot), (own, dict(chosen.tables.features)[own]))
    )


def moved(found: Proposal, chosen: Plan, counts: Integers, again: Tables, table: Integers, goal: Goal) -> Proposal:
    """The event on its score learned again: beyond a threshold that as large a part of the runs passes as before.

    `table` counts both scores on runs that made neither: where the new event has less there than the old one has with
    a deviation of luck taken off, or too few hits to tell, the old one stays.
    """
    place = [feature for feature, _ in chosen.tables.features].index(found.event.feature)
    bins, old = chosen.tables.features[place][1], chosen.tables.split(counts)[place].sum(axis=1)
    low, high = found.event.intervals[0]
    inside = np.array([low <= bins.interval(j, j)[0] and bins.interval(j, j)[1] <= high for j in range(bins.bins)])
    share = float(old[: bins.bins][inside].sum()) / max(float(old.sum()), 1.0)
    new, was = again.split(table if found.p_side == "first" else table[:, ::-1])
    mass = new.sum(axis=1)[: again.features[0][1].bins] / max(float(new.sum()), 1.0)
    up = high == np.inf
    beyond = np.cumsum(mass[::-1] if up else mass)
    last = int(np.argmin(np.abs(beyond - share)))
    cells = np.arange(len(mass) - 1 - last, len(mass)) if up else np.arange(last + 1)
    x, y = np.stack([new[cells].sum(axis=0), was[: bins.bins][inside].sum(axis=0)], axis=1).astype(np.float64)
    runs_p, runs_q = (int(runs) for runs in new.sum(axis=0))
    lowered, plain = (goal.scores(x, y, runs_p, runs_q, z).tolist() for z in (SOME_Z, 0.0))
    if plain[0] < lowered[1] or plain[0] == -np.inf:
        return found
    return replace(found, event=event_of(*again.features[0], cells), score=goal.score(lowered[0], found.delta))


def _counted(score: LogRatio, pilot: Pilot) -> tuple[Feature, Binning]:
    both = concatenate([pilot.first, pilot.second])
    return score, binning(score.column(both), {})


def _is_score(feature: Feature) -> bool:
    return isinstance(feature, LogRatio)


def _kept(chosen: Plan, counts: Integers, places: Sequence[int]) -> tuple[Plan, Integers]:
    """The plan with the features at some places only, and their counts."""
    tables = chosen.tables.split(counts)
    features = Tables(tuple(chosen.tables.features[place] for place in places))
    learned = tuple(chosen.learned[place] for place in places)
    return (
        replace(chosen, tables=features, learned=learned),
        np.concatenate([np.zeros((0, 2), np.int64), *(tables[place] for place in places)]),
    )


def pilot_counts(chosen: Plan, pilot: Pilot) -> Integers:
    """The pilot in the plan's tables; nothing for learned features, which have seen it before."""
    counts = chosen.tables(Sample(pilot.first), Sample(pilot.second))
    for table, learned in zip(chosen.tables.split(counts), chosen.learned, strict=True):
        if learned:
            table[:] = 0
    return counts


def best(chosen: Plan, counts: Integers, goal: Goal) -> Proposal | None:
    """The best event of all features counted, less what it costs a reader to be more than a value of the output."""
    tables = chosen.tables.split(counts)
    # features were kept for these counts, luck included; log-ratio scores are judged on runs that did not make them
    lucky_z = SMOOTHED_Z if len(tables) == 1 else RIVALS_Z
    found = [
        (_worth(feature, proposal, goal, learned=learned), proposal)
        for (feature, bins), table, learned in zip(chosen.tables.features, tables, chosen.learned, strict=True)
        if (
            proposal := propose(
                feature,
                bins,
                table,
                goal,
                thresholds_only=learned,
                smoothed_z=SMOOTHED_Z if _is_score(feature) else lucky_z,
                rivals=len(tables),
            )
        )
        is not None
    ]
    return max(found, key=lambda each: each[0], default=(0.0, None))[1]


def _worth(feature: Feature, found: Proposal, goal: Goal, *, learned: bool = False) -> float:
    """The predicted bound of an event less what it costs a reader."""
    rank = goal.rank(found.score, found.delta)
    return rank - price(feature, learned, rank)


def price(feature: Feature, learned: bool, bound: float = 1.0) -> float:
    """What an event on this feature costs a reader, in units of the bound: a part of it, where it is below 1."""
    part = LEARNED_PRICE if learned else 0.0 if isinstance(feature, Coordinate | Whole) else DERIVED_PRICE
    return part * min(1.0, max(0.0, bound))


def everything(pilot: Pilot) -> Proposal:
    """The event of last resort, when nothing was seen often enough: the commonest output of the pilot."""
    both = concatenate([pilot.first, pilot.second])
    bins = binning_of(Whole(), both)
    return Proposal(Event(Whole(), tokens=bins.tokens[:1]), "first", "last resort", 0.0)


def _part_of(pilot: Pilot, runs: int) -> Pilot:
    """About `runs` of the outputs, evenly spread."""
    first, second = (
        side if side.runs <= runs // 2 else side.take(np.linspace(0, side.runs - 1, runs // 2).astype(np.intp))
        for side in (pilot.first, pilot.second)
    )
    return Pilot(first, second)


def _on_pilot(feature: Feature, bins: Binning, pilot: Pilot, goal: Goal, rivals: int) -> Proposal | None:
    counts = np.stack([bins.counts(feature.column(side)) for side in (pilot.first, pilot.second)], axis=1)
    return propose(feature, bins, counts, goal, closely=False, rivals=rivals)
