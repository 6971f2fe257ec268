"""The prequential learner: what it bets on, how carefully, and that it looks back alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpaudit.certify.sequential import offsets
from dpaudit.claims import ApproximateDP, GaussianDP, PureDP
from dpaudit.events import Event, HitCounter
from dpaudit.events.features import Coordinate
from dpaudit.outputs.canonical import Pilot, Sample
from dpaudit.outputs.encode import encode_objects
from dpaudit.search import betting
from dpaudit.search.betting import Learner, outlook, shrunk, stake
from dpaudit.search.binning import Tables
from tests.cases import for_each

LINES = offsets(PureDP(1.0))


def learner_of(first: list[Any], second: list[Any], *, parts: int = 1, lines: betting.Lines = LINES) -> Learner:
    """What has seen these outputs, in so many parts."""
    learner = Learner(lines)
    for j in range(parts):
        learner.see(Pilot(encode_objects(first[j::parts]), encode_objects(second[j::parts])))
    return learner


def normal(mean: float, runs: int, seed: int) -> list[float]:
    """Outputs around a mean."""
    return np.random.default_rng(seed).normal(mean, 1.0, runs).tolist()


def rates(event: Event, first: list[Any], second: list[Any]) -> tuple[float, float]:
    """How often each side falls into an event."""
    hits = [float(np.mean(event.contains(encode_objects(side)))) for side in (first, second)]
    return hits[0], hits[1]


@for_each("runs", [1, 4, 10_000])
@for_each("z", [0.0, 1.0, 3.0])
def test_limits_of_a_rate_lie_around_it_and_inside_of_one(runs: int, z: float) -> None:
    hits = np.unique(np.linspace(0, runs, 11).round())
    low, high = shrunk(hits, runs, -z), shrunk(hits, runs, z)
    assert np.all((low > 0.0) & (high < 1.0) & (low <= high))
    middle = (hits + 0.25) / (runs + 0.5)
    assert np.all((low <= middle + 1e-12) & (middle <= high + 1e-12))
    assert np.all((np.diff(low) > 0.0) & (np.diff(high) > 0.0))


def test_the_line_that_is_broken_most_is_bet_against() -> None:
    lines = offsets(GaussianDP(1.0))
    hits, runs = (np.array([800.0, 300.0]), np.array([200.0, 5.0])), (1000, 1000)
    p, q, line, gain = outlook(*hits, runs, lines, 1.0)
    every = [[float(betting.growth(p[j], q[j], np.array(math.exp(e)), np.array(d))) for e, d in lines] for j in (0, 1)]
    assert np.all(gain >= 0.9 * np.max(every, axis=1))
    assert stake(800.0, 200.0, runs, lines)[2] == lines[int(line[0])][1]


@for_each(("one", "other", "runs"), [(0.0, 1.0, 10), ("a", "b", 30)])
def test_two_constants_are_told_apart_after_a_few_runs(one: Any, other: Any, runs: int) -> None:
    bet = learner_of([one] * runs, [other] * runs).bet()
    assert rates(bet.event, [one], [other]) == ((1.0, 0.0) if bet.p_side == "first" else (0.0, 1.0))
    assert bet.p > 0.7 > 0.2 > bet.q


def test_nothing_is_staked_on_nothing() -> None:
    empty = Learner(LINES).bet()
    assert empty.p == empty.q
    assert Learner(offsets(ApproximateDP(1.0, 1.0))).bet().p == 0.5  # a claim that allows everything
    same = learner_of([0.0] * 50, [0.0] * 50).bet()
    assert same.p == same.q
    few = learner_of([0.0] * 3, [1.0] * 9).bet()
    assert few.p == few.q


@pytest.mark.long
def test_equal_sides_are_rarely_bet_on() -> None:
    """100 looks at noise: a stake needs luck of 1.5 deviations beyond a claim that is far off; none is expected."""
    staked = 0
    for seed in range(10):
        learner = Learner(LINES)
        for part in range(10):
            place = 100 * seed + part
            learner.see(Pilot(*(encode_objects(normal(0.0, 20, each)) for each in (place, 7777 + place))))
            bet = learner.bet()
            staked += bet.p > math.e * bet.q
    assert staked <= 2


def test_a_threshold_is_learned() -> None:
    first, second = normal(0.0, 500, 1), normal(4.0, 500, 2)
    bet = learner_of(first, second, parts=5).bet()
    p, q = rates(bet.event, normal(0.0, 5_000, 3), normal(4.0, 5_000, 4))
    p, q = (p, q) if bet.p_side == "first" else (q, p)
    assert p > 0.9
    assert q < 0.1
    assert "threshold" in bet.family


def test_a_set_of_values_is_learned() -> None:
    rng = np.random.default_rng(5)
    first = rng.choice(6, 3_000, p=[0.3, 0.02, 0.3, 0.02, 0.3, 0.06]).astype(float).tolist()
    second = rng.choice(6, 3_000, p=[0.02, 0.3, 0.02, 0.3, 0.06, 0.3]).astype(float).tolist()
    bet = learner_of(first, second).bet()
    inside = {value for value in range(6) if bet.event.contains(encode_objects([float(value)]))[0]}
    assert inside in ({0, 2, 4}, {1, 3, 5})
    assert "ratio" in bet.family


def test_one_entry_of_many_is_found() -> None:
    sides = np.random.default_rng(6).normal(size=(2, 200, 6))
    sides[1, :, 3] += 4.0
    first, second = ([tuple(row) for row in side.tolist()] for side in sides)
    p, q = rates(learner_of(first, second, parts=4).bet().event, first, second)
    assert abs(p - q) > 0.7


def test_tables_count_what_events_hold() -> None:
    first, second = [*normal(0.0, 300, 7), math.nan, "x"], [*normal(1.0, 280, 8), math.inf]
    learner = learner_of(first, second)
    bet = learner.bet()
    counted = HitCounter(bet.event)(Sample(encode_objects(first)), Sample(encode_objects(second)))
    assert learner.seen(bet.event).tolist() == counted.tolist()
    assert learner.seen(Event(Coordinate(("other",)))).tolist() == [0, 0, 0, 0]


def test_after_the_outputs_are_let_go_tables_go_on() -> None:
    first, second = normal(0.0, 200, 9), normal(2.0, 200, 10)
    learner = learner_of(first, second)
    held = learner.bet()
    learner.settle(learner.tables, learner.counts, [False] * len(learner.tables.features))
    assert learner.pilot is None
    assert learner.bet() == held
    more = learner.tables(Sample(encode_objects(normal(0.0, 500, 11))), Sample(encode_objects(normal(2.0, 500, 12))))
    learner.count(more)
    assert learner.counts.sum() == len(learner.tables.features) * 1_400
    again = learner.again(learner.bet(), (40, 2), (50, 50))
    assert (again.p, again.q, again.delta) == stake(40, 2, (50, 50), LINES)
    unseen = learner.again(learner.bet(), (0, 0), (0, 0))
    assert unseen.p == unseen.q


def test_a_learned_score_gets_no_second_order() -> None:
    rng = np.random.default_rng(13)
    first, second = rng.integers(0, 8, 2_000) * 2.0, rng.integers(0, 8, 2_000) * 2.0 + 1.0
    learner = learner_of(first.tolist(), second.tolist())
    assert "ratio" in learner.bet().family  # even against odd: no threshold says so
    features: Tables = learner.tables
    learner.settle(features, learner.counts, [True] * len(features.features))
    assert "ratio" not in learner.bet().family
