"""Whether more search runs are worth the certifying runs that they cost, by search outputs alone.

What a choice by `n` runs lacks of the best bound falls about as 1 / n. So it is told by halves: a choice by a quarter
of the runs and one by a half are judged on the other half, and what the larger one is better by is twice what all runs
still lack (the learning curve, Cortes et al. 1994).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpaudit.arrays import Integers, Singles
from dpaudit.events.cells import Binning
from dpaudit.events.features import Feature
from dpaudit.events.search.crossfit import Folds, cells_inside
from dpaudit.events.search.explore import Plan
from dpaudit.events.search.goal import Goal
from dpaudit.events.search.learning import log_ratio
from dpaudit.events.search.selection import Proposal, propose

SPLITS = 2  # of the counts into halves, at random


def worth(
    found: Proposal | None, chosen: Plan, counts: Integers, folds: Folds | None, goal: Goal, runs: int, more: int
) -> bool:
    """Whether a search of `runs` runs should have `more`, which `goal` has to certify with now.

    `found` is what it would end with, `folds` its kind of score on the outputs held.
    """
    if found is None or goal.bins:
        return found is None
    later = replace(goal, runs=goal.runs - more)
    place = [feature for feature, _ in chosen.tables.features].index(found.event.feature)
    feature, bins = chosen.tables.features[place]
    table = chosen.tables.split(counts)[place]
    cost = _value(found, bins, table, goal) - _value(found, bins, table, later)
    lacking = _of_choice(feature, bins, table, later, learned=chosen.learned[place])
    if folds is not None:
        lacking += _of_learning(found, folds, later) * folds.coded.runs / runs
    return lacking / 2.0 * (1.0 - runs / (runs + more)) > cost


def _value(found: Proposal, bins: Binning, table: Integers, goal: Goal) -> float:
    """The bound that an event is worth by these counts, luck left in."""
    inside = table[cells_inside(bins, found.event)].sum(axis=0)
    return _bound(inside, table.sum(axis=0), found.p_side, goal)


def _bound(inside: Integers, runs: Integers, p_side: str, goal: Goal) -> float:
    p = 0 if p_side == "first" else 1
    x, y = (np.array([float(inside[side])]) for side in (p, 1 - p))
    return max(0.0, float(goal.scores(x, y, int(runs[p]), int(runs[1 - p]), 0.0)[0]))


def _of_choice(feature: Feature, bins: Binning, table: Integers, goal: Goal, *, learned: bool) -> float:
    """What the choice of cells by half of the counts is better by than that by a quarter."""
    rng, total = np.random.default_rng(int(table.sum())), 0.0
    for _ in range(SPLITS):
        half = rng.binomial(table, 0.5)
        for one, other in ((half, table - half), (table - half, half)):
            for part, sign in ((one, 1.0), (rng.binomial(one, 0.5), -1.0)):
                event = propose(feature, bins, part, goal, thresholds_only=learned, closely=False)
                total += 0.0 if event is None else sign * _value(event, bins, other, goal)
    return max(0.0, total / (2 * SPLITS))


def _of_learning(found: Proposal, folds: Folds, goal: Goal) -> float:
    """What the score learned from half of the outputs is better by than that from a quarter, at the event's mass."""
    coded, total = folds.coded, 0.0
    low, high = found.event.intervals[0]
    for number, half in enumerate(folds.halves):
        quarter = log_ratio(coded.terms, coded.counts(coded.part(number, 4)), pooled=half.pooled)
        rest = coded.part(1 - number, 2)
        sides = [coded.scored(each, rest) for each in (half, quarter)]
        inside = [np.count_nonzero((side > low) & (side <= high)) for side in sides[0]]
        mass = sum(inside)
        for pair, sign in zip(sides, (1.0, -1.0), strict=True):
            both = np.sort(np.concatenate(pair))
            edge = both[-mass] if high == np.inf else both[mass - 1] if mass else both[0]
            hits = [_beyond(side, edge, up=high == np.inf) for side in pair]
            runs = np.array([len(side) for side in pair])
            total += sign * _bound(np.array(hits), runs, found.p_side, goal)
    return max(0.0, total / 2.0)


def _beyond(side: Singles, edge: np.float32, *, up: bool) -> int:
    return int(np.count_nonzero(side >= edge if up else side <= edge))
