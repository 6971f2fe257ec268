"""Whether more search runs are worth the certifying runs that they cost, by search outputs alone.

What a choice by `n` runs lacks of the best bound falls about as 1 / n. So it is told by halves: a choice by a quarter
of the runs and one by a half are judged on the other half, and what the larger one is better by is twice what all runs
still lack (the learning curve, Cortes et al. 1994).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpaudit.base.arrays import Integers
from dpaudit.events.features import Feature
from dpaudit.events.scores import Binning
from dpaudit.search.crossfit import Folds, made_alike
from dpaudit.search.explore import Plan
from dpaudit.search.goal import Goal
from dpaudit.search.learning import log_ratio
from dpaudit.search.selection import Proposal, cells_inside, hoped, propose

LEAST_HOPE = 1e-6  # of a bound: where there is nothing to lose, hardly any is enough
SPLITS = 2  # of the counts into halves, at random
SHARED = 0.5  # of the luck in a bound is not that of another event on the same outputs


def worth(
    found: Proposal | None, chosen: Plan, counts: Integers, scores: Sequence[Folds], goal: Goal, runs: int, more: int
) -> bool:
    """Whether a search of `runs` runs should have `more`, which `goal` has to certify with now.

    `found` is what it would end with; `scores` are those of the outputs held, the best of which may come to be better.
    """
    if found is None or goal.bins:
        return found is None
    later = replace(goal, runs=goal.runs - more)
    feature = found.event.feature
    bins, table, learned = chosen.counted(feature, counts)
    now = _value(found, bins, table, later)
    cost = _value(found, bins, table, goal) - now
    # a single value that was hardly seen yet may be worth more than all that is known
    sure = max(0.0, min(now, goal.rank(found.score, found.delta)))
    if _hope(found, chosen, counts, later, sure) * (1.0 - runs / (runs + more)) > cost + LEAST_HOPE:
        return True
    gains = [_of_choice(feature, bins, table, later, learned=learned)]
    kinds = [each for each in scores if made_alike(feature, each.halves[0])] or scores
    judged = [(each, propose(each.halves[0], each.bins, each.counts, later, thresholds_only=True)) for each in kinds]
    values = [(_value(event, each.bins, each.counts, later), j) for j, (each, event) in enumerate(judged) if event]
    if values:
        value, j = max(values)
        folds, event = judged[j]
        assert event is not None
        behind = max(0.0, now - value) if len(kinds) > 1 else 0.0
        lacking = _of_learning(event, folds, later) * folds.coded.runs / runs
        own = gains[0] if len(kinds) == 1 else 0.0
        gains.append(own + lacking - 2.0 * behind / (1.0 - runs / (runs + more)))
    return max(gains) / 2.0 * (1.0 - runs / (runs + more)) > cost


def _hope(found: Proposal, chosen: Plan, counts: Integers, goal: Goal, value: float) -> float:
    """What values outside the event may be worth beyond it; those of learned scores are in order already."""
    most = 0.0
    tables = zip(chosen.tables.features, chosen.tables.split(counts), chosen.learned, strict=True)
    for (feature, bins), table in ((each, table) for each, table, learned in tables if not learned):
        known = cells_inside(bins, found.event) if feature == found.event.feature else np.zeros(0, np.intp)
        most = max(most, hoped(bins, table, goal, value, known))
    return most


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
    rng, found = np.random.default_rng(int(table.sum())), []
    for _ in range(SPLITS):
        half = rng.binomial(table, 0.5)
        for one, other in ((half, table - half), (table - half, half)):
            events = [
                propose(feature, bins, part, goal, thresholds_only=learned, closely=False)
                for part in (one, rng.binomial(one, 0.5))
            ]
            better, worse = (0.0 if event is None else _value(event, bins, other, goal) for event in events)
            found.append(better - worse)
    return _not_negative(float(np.mean(found)), float(np.std(found, ddof=1)) / np.sqrt(len(found)))


def _of_learning(found: Proposal, folds: Folds, goal: Goal) -> float:
    """What the score learned from half of the outputs is better by than that from a quarter, at the event's mass."""
    coded, total, luck = folds.coded, 0.0, 0.0
    low, high = found.event.intervals[0]
    for number, half in enumerate(folds.halves):
        quarter = log_ratio(coded.terms, coded.counts(coded.part(number, 4)), pooled=half.pooled)
        rest = coded.part(1 - number, 2)
        sides = [coded.scored(each, rest) for each in (half, quarter)]
        inside = np.array([np.count_nonzero((side > low) & (side <= high)) for side in sides[0]])
        mass = int(inside.sum())
        if not mass:
            continue
        luck += float((1.0 / (inside + 0.5)).sum())
        for pair, sign in zip(sides, (1.0, -1.0), strict=True):
            both = np.sort(np.concatenate(pair))
            edge = both[-mass] if high == np.inf else both[mass - 1]
            hits = [int(np.count_nonzero(side >= edge if high == np.inf else side <= edge)) for side in pair]
            runs = np.array([len(side) for side in pair])
            total += sign * _bound(np.array(hits), runs, found.p_side, goal)
    return _not_negative(total / 2.0, SHARED * np.sqrt(luck) / 2.0)


def _not_negative(seen: float, deviation: float) -> float:
    """What is expected of a gain, seen with a normal error, that cannot be negative."""
    from scipy.special import log_ndtr

    if deviation <= 0.0:
        return max(0.0, seen)
    z = seen / deviation
    return seen + deviation * float(np.exp(-(z**2) / 2.0 - log_ndtr(z)) / np.sqrt(2.0 * np.pi))
