"""A plan on its way: features left out, scores learned anew, the event moved to the last one, and when search ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from dpaudit.base.arrays import Reals
from dpaudit.claims import PureDP
from dpaudit.events.features import Coordinate, Feature, Whole
from dpaudit.events.scores import Binning, Linear, LogRatio
from dpaudit.outputs.canonical import Outputs, Pilot, Sample
from dpaudit.outputs.encode import encode_objects
from dpaudit.search.binning import Tables
from dpaudit.search.crossfit import Coded, cross_fitted, learned_again, moved, relearned
from dpaudit.search.explore import SearchPlan, best, narrowed, pilot_counts, plan, with_scores
from dpaudit.search.goal import Goal
from dpaudit.search.learning import scores_of
from dpaudit.search.look import Snapshot, _not_negative, worth
from tests.auditing.looks import vectors
from tests.cases import for_each

GOAL = Goal(PureDP(1.0), 50_000, 0.05)
RNG = np.random.default_rng(51)


def outputs(first: bool, runs: int) -> Outputs:
    """Three numbers, one up, one down, and one that says nothing."""
    return vectors(RNG.laplace(size=(runs, 3)) + (0.8 if first else 0.0) * np.array([1.0, -1.0, 0.0]))


PILOT = Pilot(outputs(True, 2_000), outputs(False, 2_000))
MORE = outputs(True, 20_000), outputs(False, 20_000)
CHOSEN = plan(PILOT, GOAL, keep=100)
COUNTS = pilot_counts(CHOSEN, PILOT) + CHOSEN.tables(*(Sample(side) for side in MORE))
TERMS = [each(*(Sample(side) for side in MORE)) for each in CHOSEN.terms]
HELD = [Coded.of(each, PILOT) for each in CHOSEN.terms]


def by_feature(chosen: SearchPlan, counts: np.ndarray) -> dict[Feature, list[list[int]]]:  # type: ignore[type-arg]
    tables = chosen.tables.split(counts)
    return {each: table.tolist() for (each, _), table in zip(chosen.tables.features, tables, strict=True)}


def is_score(feature: Feature) -> bool:
    return isinstance(feature, LogRatio | Linear)


def of_scores(chosen: SearchPlan) -> SearchPlan:
    """The plan of its scores alone."""
    scores = tuple(each for each in chosen.tables.features if is_score(each[0]))
    return replace(chosen, tables=Tables(scores), learned=(True,) * len(scores))


@pytest.mark.long
@for_each("keep", [0, 4], nightly=[1, 100])
def test_the_best_few_stay_with_their_counts_and_learned_scores_all(keep: int) -> None:
    chosen, counts = narrowed(CHOSEN, COUNTS, GOAL, keep=keep)
    before, after = by_feature(CHOSEN, COUNTS), by_feature(chosen, counts)
    assert len(before) == len(CHOSEN.tables.features)
    assert all(before[feature] == table for feature, table in after.items())
    plain = [each for (each, _), learned in zip(chosen.tables.features, chosen.learned, strict=True) if not learned]
    assert len(plain) == min(keep, CHOSEN.learned.count(False))
    assert [*filter(is_score, after)] == [*filter(is_score, before)]
    assert chosen.learned == tuple(map(is_score, after))
    # the first two entries, their sum and what is made of them say something; the third says nothing
    assert keep != 1 or plain != [Coordinate((2,))]
    assert chosen.looked_at == CHOSEN.looked_at
    assert chosen.terms == CHOSEN.terms


def test_whole_outputs_always_stay() -> None:
    same = encode_objects([(j % 3, j // 2 % 2) for j in range(400)])
    pilot = Pilot(same, same)
    chosen = plan(pilot, GOAL, keep=100)
    kept, _ = narrowed(chosen, pilot_counts(chosen, pilot), GOAL, keep=0)
    assert [feature for feature, _ in kept.tables.features] == [Whole()]


def test_scores_left_out_and_learned_anew() -> None:
    chosen, counts = with_scores(CHOSEN, COUNTS, [])
    before, after = by_feature(CHOSEN, COUNTS), by_feature(chosen, counts)
    assert after == {feature: table for feature, table in before.items() if not is_score(feature)}
    anew, fresh, tables = relearned(CHOSEN, COUNTS, TERMS, GOAL, HELD)
    scores = [each for each, _ in anew.tables.features if is_score(each)]
    every = [score for each, table in zip(CHOSEN.terms, TERMS, strict=True) for score in scores_of(each, table)]
    close = {(*(term.coordinate for term in each.terms), each.pooled) for each in scores if isinstance(each, LogRatio)}
    assert scores[1:] == [each for each in every if (*(term.coordinate for term in each.terms), each.pooled) in close]
    parts = {tuple(term.coordinate for term in each.terms) for each in scores if isinstance(each, LogRatio)}
    counted = [each for each in CHOSEN.terms if tuple(feature for feature, _ in each.features) in parts]
    assert list(anew.terms) == counted, "terms of no score that is learned are not counted"
    assert [table.tolist() for table in tables] == [TERMS[CHOSEN.terms.index(each)].tolist() for each in counted]
    assert len(scores) > 2, "those that are about as good as the best are learned, those that lost clearly are not"
    now = by_feature(anew, fresh)
    assert {feature: table for feature, table in now.items() if not is_score(feature)} == after
    assert now[scores[0]] == before[scores[0]], "the best score so far stays, with what was counted of it"
    assert all(np.sum(now[score]) == 0 for score in scores[1:])
    assert all(learned for (each, _), learned in zip(anew.tables.features, anew.learned, strict=True) if is_score(each))
    nothing = np.zeros_like(COUNTS)
    anew, _, tables = relearned(CHOSEN, nothing, TERMS, GOAL, HELD)
    assert [each for each, _ in anew.tables.features if is_score(each)] == every, "none was counted: all are learned"
    assert (anew.terms, len(tables)) == (CHOSEN.terms, len(TERMS))


@for_each("swapped", [False, True])
def test_the_moved_event_is_passed_by_as_many_runs(swapped: bool) -> None:
    """Thresholds above and below; against the plain share of runs inside, of the old event and the new one.

    The shares differ by the mass of a cell, and by what falls beside an edge of an even grid.
    """
    sides = MORE[::-1] if swapped else MORE
    pilot = Pilot(PILOT.second, PILOT.first) if swapped else PILOT
    chosen = of_scores(plan(pilot, GOAL))
    counts = chosen.tables(*(Sample(side) for side in sides))
    found = best(chosen, counts, GOAL)
    terms = [each(*(Sample(side) for side in sides)) for each in chosen.terms]
    again = learned_again(found, chosen, terms, pilot)
    (score, _), (own, _) = again.features
    assert is_score(score)
    assert score != found.event.feature == own
    fresh = outputs(not swapped, 20_000), outputs(swapped, 20_000)
    table = again(*(Sample(side) for side in fresh))
    new = moved(found, chosen, counts, again, table, GOAL)
    assert (new.p_side, new.family, new.delta) == (found.p_side, found.family, found.delta)
    assert new.event.feature == score
    assert new.score != found.score, "a prediction is of the event that it stands beside"
    (low, high), (old_low, old_high) = new.event.intervals[0], found.event.intervals[0]
    assert (np.isinf(low), np.isinf(high)) == (np.isinf(old_low), np.isinf(old_high))
    before = np.mean([found.event.contains(side).mean() for side in sides])
    after = np.mean([new.event.contains(side).mean() for side in fresh])
    cell = again.split(table)[0].sum(axis=1).max() / (2 * 20_000)
    assert after == pytest.approx(before, abs=2.0 * cell + 1e-3)


def test_a_score_that_is_worse_on_runs_that_made_neither_replaces_nothing() -> None:
    """Weights that became 0 but for the entry that says nothing; and runs too few to tell."""
    sides, chosen = [Sample(side) for side in MORE], of_scores(CHOSEN)
    counts = chosen.tables(*sides)
    found = best(chosen, counts, GOAL)
    assert found is not None
    lost = [each(*sides) for each in chosen.terms]
    for terms, table in zip(chosen.terms, lost, strict=True):
        for part in terms.split(table)[:2]:
            part[:] = part.sum(axis=1, keepdims=True) // 2
    again = learned_again(found, chosen, lost, PILOT)
    assert again is not None
    fresh = [Sample(outputs(first, 20_000)) for first in (True, False)]
    assert moved(found, chosen, counts, again, again(*fresh), GOAL) is found
    good = learned_again(found, chosen, TERMS, PILOT)
    assert moved(found, chosen, counts, good, np.zeros((good.cells, 2), np.int64), GOAL) is found


def test_events_on_other_features_are_not_learned_again() -> None:
    plain, counts = with_scores(CHOSEN, COUNTS, [])
    found = best(plain, counts, GOAL)
    assert found is not None
    assert learned_again(found, CHOSEN, TERMS, PILOT) is None


def test_the_luckiest_tail_of_many_even_scores_does_not_win() -> None:
    """A table that says nothing, the luckiest of 2,500, beside one that says a little."""
    bins, features = Binning(np.arange(1023, dtype=np.float32)), (Coordinate((0,)), Coordinate((1,)))
    rare = [0.7, 0.5, 0.35, 0.25, 0.17, 0.12, 0.09, 0.06, 0.045, 0.06, 0.0]  # of cells in the upper tail, beside 1
    even = np.append(np.ones(1014), rare)
    slope = np.exp(np.append(np.linspace(-0.03, 0.03, 1024), 0.0))
    lucky = np.random.default_rng(375).multinomial(531_000, even / even.sum(), 2).T
    little = np.stack([even * slope, even / slope], axis=1)
    little = np.round(little / little.sum(axis=0) * 531_000).astype(np.int64)
    goal = Goal(PureDP(0.1), 19_000_000, 1e-4)
    found = best(
        SearchPlan(Tables(tuple((each, bins) for each in features)), (True, True), (), ()),
        np.concatenate([lucky, little]),
        goal,
    )
    tails = np.cumsum(lucky[::-1].T, axis=1).astype(np.float64)
    assert goal.scores(*tails, 531_000, 531_000, 0.0).max() > 0.08
    assert found.event.feature == features[1]
    assert found.score < 0.06


def test_a_linear_score_that_leads_ends_no_log_ratio_score() -> None:
    """It learns nothing more from the runs to come, and they do."""
    chosen, counts = CHOSEN, COUNTS.copy()
    leads = np.zeros((2, 2), np.int64)
    leads[:] = [[10_000, 20_000], [20_000, 10_000]]
    line = Linear(((0,), (1,)), (0.0, 0.0), (1.0, 1.0), (1.0, -1.0))
    own = list(zip(chosen.tables.features, chosen.tables.split(counts), strict=True))
    ratios = [(each, bins, table) for (each, bins), table in own if isinstance(each, LogRatio)]
    for *_, table in ratios:
        table[:] = table.sum(axis=1, keepdims=True) // 2
    judged = with_scores(
        chosen, counts, [*ratios, (line, Binning(np.zeros(1, np.float32)), np.pad(leads, ((0, 1), (0, 0))))]
    )
    anew, *_ = relearned(*judged, TERMS, GOAL, HELD)
    assert next(each for each, _ in anew.tables.features if is_score(each)) == line
    assert sum(isinstance(each, LogRatio) for each, _ in anew.tables.features) == len(ratios) > 0


Rng = np.random.Generator


def asked(first: Reals, second: Reals, *, total: int, more: int) -> bool:
    pilot = Pilot(vectors(first), vectors(second))
    runs = len(first) + len(second)
    goal = Goal(PureDP(1.0), total - runs, 0.001)
    chosen = plan(pilot, goal, scores=False, lines=False)
    counts = pilot_counts(chosen, pilot)
    folds = [each for terms in chosen.terms for each in cross_fitted(Coded.of(terms, pilot))]
    chosen, counts = with_scores(chosen, counts, [(each.halves[0], each.bins, each.counts) for each in folds])
    return worth(Snapshot(goal, pilot, runs=runs, plan=chosen, counts=counts, folds=tuple(folds)), more)


@pytest.mark.long
def test_a_coin_is_known_soon_and_many_weights_are_not() -> None:
    rng = np.random.default_rng(1)
    coins = [(rng.random((5_000, 1)) < p).astype(float) for p in (0.6, 0.3)]
    assert not asked(*coins, total=40_000, more=10_000)
    shifts = 0.35 * rng.choice([-1.0, 1.0], 12)
    vectors = [rng.laplace(size=(1_000, 12)) + move for move in (shifts, -shifts)]
    assert asked(*vectors, total=200_000, more=2_000)
    assert not asked(*vectors, total=4_000, more=1_990), "what little would be left certifies"


@for_each(("seen", "deviation"), [(0.5, 0.1), (0.0, 0.2), (-0.1, 0.1), (-3.0, 0.1), (0.2, 0.0), (-1.0, 0.0)])
def test_a_gain_that_cannot_be_negative_is_the_mean_of_a_normal_cut_at_0(seen: float, deviation: float) -> None:
    if deviation == 0.0:
        plain = max(0.0, seen)
    else:
        grid = np.linspace(0.0, 12.0 * deviation + max(seen, 0.0), 400_001)
        density = norm.logpdf(grid, seen, deviation)
        weight = np.exp(density - density.max())
        plain = float((grid * weight).sum() / weight.sum())
    assert _not_negative(seen, deviation) == pytest.approx(plain, rel=1e-3, abs=1e-6)
