"""Scores learned and judged: by two folds of the outputs held, by runs that come later, and the last one by a few more.

Any event that replaces another was judged on runs that did not make it. On outputs held, a score learned on one half is
counted on the other, and the other way round (cross-fitting: Schick 1986; Chernozhukov et al. 2018, 3.1): all of them
teach and all of them judge. Of runs that are counted as they come, each lot judges the scores that the lots before it
taught (Dawid 1984, prequential). What is learned last, from all runs, has been judged by none: it takes the place of
the event that was found only where runs after that, which made neither, show it to be no worse (`moved`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.base.arrays import Bools, Integers, Places, Singles
from dpaudit.events.features import Feature, single
from dpaudit.events.scores import Binning, Linear, LogRatio, Part
from dpaudit.outputs.canonical import Column, Pilot
from dpaudit.search.binning import Tables, binning
from dpaudit.search.candidates import lines_of
from dpaudit.search.explore import ENOUGH, SearchPlan, is_score, part_of, with_scores
from dpaudit.search.goal import Goal
from dpaudit.search.learning import log_ratio, scores_of, ways
from dpaudit.search.selection import Proposal, cells_inside, event_of, propose

LOST, FAINT = 0.25, 0.2  # of the best score's bound, and a bound that counts as no less: so far behind, a score lost
SOME_Z = 1.0  # deviations of luck by which a score learned again may be worse


@dataclass(frozen=True, slots=True)
class Coded:
    """Outputs held, as the cells of one group of terms: a row for each term, a column for each output."""

    terms: Tables
    cells: Sequence[Places]
    first: int  # outputs of the first side, which stand before those of the second

    @classmethod
    def of(cls, terms: Tables, pilot: Pilot) -> "Coded":
        """The outputs of a pilot."""
        both = pilot.both
        cells = [bins.places(feature.column(both)) for feature, bins in terms.features]
        return cls(terms, cells, pilot.first.runs)

    @property
    def runs(self) -> int:
        """The number of outputs."""
        return len(self.cells[0])

    def part(self, number: int, parts: int) -> Bools:
        """Which outputs are in part `number` of `parts`, each side divided evenly."""
        places = np.arange(self.runs)
        places[self.first :] -= self.first
        return np.asarray(places % parts == number)

    def counts(self, among: Bools) -> Integers:
        """What the tables count of these outputs."""
        sides = [np.flatnonzero(among[: self.first]), self.first + np.flatnonzero(among[self.first :])]
        tables = [
            np.stack([np.bincount(cell[side], minlength=bins.cells) for side in sides], axis=1)
            for cell, (_, bins) in zip(self.cells, self.terms.features, strict=True)
        ]
        return np.concatenate(tables)

    def scored(self, score: LogRatio, among: Bools) -> tuple[Singles, Singles]:
        """The score of these outputs, of each side; what its column would be."""
        total, rows = np.zeros(int(among.sum())), np.flatnonzero(among)
        for term, cell in zip(score.terms, self.cells, strict=True):
            total += term.table.take(cell[rows])
        first = int(among[: self.first].sum())
        return single(total[:first]), single(total[first:])

    def binned(self, score: LogRatio) -> Binning:
        """The cells that a score is counted in, chosen on the outputs that `part_of` would take."""
        among = np.zeros(self.runs, np.bool_)
        for low, high in ((0, self.first), (self.first, self.runs)):
            among[np.linspace(low, high - 1, min(high - low, ENOUGH // 2)).astype(np.intp)] = True
        return binning(Column(np.concatenate(self.scored(score, among))), {})


@dataclass(frozen=True, slots=True)
class Folds:
    """A score learned on each half of the outputs held; cells of it, and counts of each half by the other's score."""

    coded: Coded
    halves: tuple[LogRatio, LogRatio]
    bins: Binning
    counts: Integers


def cross_fitted(coded: Coded) -> list[Folds]:
    """Every score that the terms make; cells are those of the scores of all outputs held."""
    halves = [coded.part(number, 2) for number in (0, 1)]
    folds = []
    for one, other in zip(*(scores_of(coded.terms, coded.counts(half)) for half in halves), strict=True):
        columns = coded.scored(one, halves[1]), coded.scored(other, halves[0])
        sides = [np.concatenate(side) for side in zip(*columns, strict=True)]
        bins = binning(Column(np.concatenate(sides)), {})
        counts = np.stack([bins.counts(Column(side)) for side in sides], axis=1)
        folds.append(Folds(coded, (one, other), bins, counts))
    return folds


def lines_judged(pilot: Pilot) -> list[tuple[Feature, Binning, Integers]]:
    """The linear score of each half of the outputs held, its cells, and counts of each half by the other's score.

    Where the halves weigh different things, only the first one's score is counted; none where that half has none.
    """
    sides = [[side.take(np.arange(number, side.runs, 2)) for side in (pilot.first, pilot.second)] for number in (0, 1)]
    halves = [Pilot(first, second) for first, second in sides]
    scores = [lines_of(half, half.both)[:1] for half in halves]
    if not scores[0]:
        return []
    alike = bool(scores[1]) and scores[0][0].of == scores[1][0].of
    judged = [(scores[0][0], halves[1]), *([(scores[1][0], halves[0])] if alike else [])]
    columns = [
        Column(np.concatenate([score.column(half.first if first else half.second).values for score, half in judged]))
        for first in (True, False)
    ]
    bins = binning(Column(np.concatenate([each.values for each in columns])), {})
    return [(scores[0][0], bins, np.stack([bins.counts(each) for each in columns], axis=1))]


def relearned(
    chosen: SearchPlan, counts: Integers, terms: Sequence[Integers], goal: Goal, held: Sequence[Coded]
) -> tuple[SearchPlan, Integers, tuple[Integers, ...]]:
    """The plan with log-ratio scores learned again from counts of their terms; their own counts are still 0.

    The best score so far stays: what is learned last need not be better, and only later runs can say. Kinds of scores
    that were judged and lost clearly are not learned again, and their terms not counted any more: the counts of the
    others come last. Cells are chosen on the outputs `held`.
    """
    own = [
        (feature, bins, table)
        for (feature, bins), table in zip(chosen.tables.features, chosen.tables.split(counts), strict=True)
        if is_score(feature)
    ]
    judged = [
        -np.inf if proposal is None else goal.rank(proposal.score, proposal.delta)
        for feature, bins, table in own
        for proposal in [propose(feature, bins, table, goal, thresholds_only=True, rivals=len(own))]
    ]
    top = max(judged, default=-np.inf)
    # a linear score is learned from outputs held alone, and so is not what those that go on learning have to reach
    ratios = [(each, bound) for (each, *_), bound in zip(own, judged, strict=True) if isinstance(each, LogRatio)]
    reach = max((bound for _, bound in ratios), default=top)
    close = {kind_of(score) for score, bound in ratios if bound >= reach - LOST * max(reach, FAINT)}
    again = [
        (each, table, kinds)
        for each, table in zip(chosen.terms, terms, strict=True)
        if (kinds := [pooled for pooled in ways(each) if top == -np.inf or (each.features, pooled) in close])
    ]
    fresh = [
        (score, bins, np.zeros((bins.cells, 2), np.int64))
        for each, table, kinds in again
        for score in (log_ratio(each, table, pooled=pooled) for pooled in kinds)
        for bins in [next(one for one in held if one.terms == each).binned(score)]
    ]
    best = [each for each, score in zip(own, judged, strict=True) if score == top > -np.inf][:1]
    plan, counts = with_scores(chosen, counts, [*best, *fresh])
    return replace(plan, terms=tuple(each for each, *_ in again)), counts, tuple(table for _, table, _ in again)


def learned_again(proposal: Proposal, chosen: SearchPlan, terms: Sequence[Integers], pilot: Pilot) -> Tables | None:
    """The score of an event learned from all counts of its terms, and the event's own; None where it is on no score.

    A linear score is learned from all outputs held.
    """
    own = proposal.event.feature
    if isinstance(own, Linear):
        lines = lines_of(pilot, pilot.both)
        new: Linear | LogRatio = next((each for each in lines if each.of == own.of), own)
    elif isinstance(own, LogRatio):
        which = [each.features for each in chosen.terms].index(kind_of(own)[0])
        new = log_ratio(chosen.terms[which], terms[which], pooled=own.pooled)
    else:
        return None
    bins = binning(new.column(part_of(pilot, ENOUGH).both), {})
    return None if new == own else Tables(((new, bins), (own, dict(chosen.tables.features)[own])))


def kind_of(score: LogRatio) -> tuple[tuple[tuple[Part, Binning], ...], bool]:
    """All of a score but its weights: the terms with their cells, and whether it is pooled."""
    return tuple((term.coordinate, term.bins) for term in score.terms), score.pooled


def moved(
    proposal: Proposal, chosen: SearchPlan, counts: Integers, again: Tables, table: Integers, goal: Goal
) -> Proposal:
    """The event on its score learned again: beyond a threshold that as large a part of the runs passes as before.

    `table` counts both scores on runs that made neither: where the new event has less there than the old one has with
    a deviation of luck taken off, or too few hits to tell, the old one stays.
    """
    bins, old, _ = chosen.counted(proposal.event.feature, counts)
    inside = cells_inside(bins, proposal.event)
    share = float(old[inside].sum()) / max(float(old.sum()), 1.0)
    new, was = again.split(table if proposal.p_side == "first" else table[:, ::-1])
    mass = new.sum(axis=1)[: again.features[0][1].bins] / max(float(new.sum()), 1.0)
    up = proposal.event.intervals[0][1] == np.inf
    beyond = np.cumsum(mass[::-1] if up else mass)
    last = int(np.argmin(np.abs(beyond - share)))
    cells = np.arange(len(mass) - 1 - last, len(mass)) if up else np.arange(last + 1)
    x, y = np.stack([new[cells].sum(axis=0), was[inside].sum(axis=0)], axis=1).astype(np.float64)
    runs_p, runs_q = (int(runs) for runs in new.sum(axis=0))
    lowered, plain = (goal.scores(x, y, runs_p, runs_q, z).tolist() for z in (SOME_Z, 0.0))
    if plain[0] < lowered[1] or plain[0] == -np.inf:
        return proposal
    return replace(proposal, event=event_of(*again.features[0], cells), score=goal.score(lowered[0], proposal.delta))
