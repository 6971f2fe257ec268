"""The phases of a look: each run counted once, what is learned judged on other runs, and outputs of every kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.auditing.clock import Clock
from dpaudit.auditing.search_stage import proposed
from dpaudit.claims import PureDP
from dpaudit.errors import OutOfTime
from dpaudit.events import Event
from dpaudit.events.scores import Linear, LogRatio
from dpaudit.outputs.canonical import Outputs, Pilot
from dpaudit.outputs.encode import encode_objects
from dpaudit.running.guard import failure
from dpaudit.search.crossfit import Coded, cross_fitted
from dpaudit.search.explore import plan
from dpaudit.search.goal import Goal
from dpaudit.search.look import COUNT_SHARD, GROWTH, LEARN_FROM, SEARCH_SHARE, SETTLE_PART, SHARES, Look
from tests.auditing.looks import Drawn, look_at, vectors
from tests.cases import for_each

Rng = np.random.Generator
RUNS = LEARN_FROM + 3_001
PILOT = 2_000


def shifted(first: bool, runs: int, rng: Rng) -> Outputs:
    """Four numbers, each moved up or down: their score is the best event, and neither a sum nor the least of them."""
    return vectors(rng.laplace(size=(runs, 4)) + (0.6 if first else 0.0) * np.array([1.0, -1.0, 1.0, -1.0]))


def coin(first: bool, runs: int, rng: Rng) -> Outputs:
    """One of three values: no score is to be learned."""
    return vectors(rng.choice(3, (runs, 1), p=[0.6, 0.3, 0.1] if first else [0.3, 0.6, 0.1]).astype(float))


@cache
def closed(
    draw: Any, pool: int, share: float | None = None, *, times: int = 1, fits: int = 1
) -> tuple[Look, Drawn, int]:
    session = Drawn(draw, times)
    look = look_at(session)
    return look, session, look.close(pool, share, lambda wanted: wanted // fits)


def is_score(feature: Any) -> bool:
    return isinstance(feature, LogRatio)


@pytest.mark.long
@for_each("draw", [shifted, coin])
@for_each("pool, share", [(1_000, 0.01), (1_000, 0.6), (20_000, 0.2), (20_000, 0.99)])
def test_a_share_that_is_given_is_obeyed(draw: Any, pool: int, share: float) -> None:
    """But for the runs that would have settled a score, where the event is on none. No stream is used twice."""
    look, session, made = closed(draw, pool, share)
    assert (1.0 - SETTLE_PART) * int(share * pool) - 2 <= made <= share * pool or made == 2
    assert look.now.runs == made == sum(shard.runs for shard in session.work)
    keys = [(shard.stage, shard.pair, shard.index) for shard in session.work]
    assert len(set(keys)) == len(keys)


@pytest.mark.long
@for_each("draw, fits", [(shifted, 1), (coin, 4)], nightly=[(shifted, 4), (coin, 1)])
def test_an_open_share_ends_at_one_of_those_there_are(draw: Any, fits: int) -> None:
    look, _, made = closed(draw, 40_000, fits=fits)
    first = int(0.5 * SEARCH_SHARE * 40_000)  # of half the first are features chosen
    pool = first + (40_000 - first) // fits
    ends = [first, *(each * pool for each in SHARES)]
    assert any(0.0 <= made - int(end) <= SETTLE_PART * end + 1 for end in ends)
    assert abs(look.now.goal.runs - (pool - made)) <= SETTLE_PART * made + 5, "it certifies with the rest"
    assert draw is not coin or made <= max(first, 0.25 * pool), "what is plain to see needs no more"


def test_scores_of_outputs_held_are_judged_by_the_half_that_did_not_teach_them() -> None:
    """Other outputs in the second half leave the first score as it is; and what is counted is plain to count again."""
    pilots = [
        Pilot(*(shifted(first, 3_000, np.random.default_rng([7, first])) for first in (True, False))),
        Pilot(*(shifted(first, 3_000, np.random.default_rng([7, first])) for first in (True, False))),
    ]
    for side in (pilots[1].first, pilots[1].second):
        for column in side.columns.values():
            np.asarray(column.values)[1::2] += 0.25
    terms = plan(pilots[0], Goal(PureDP(1.0), 10_000, 0.05)).terms
    assert len(terms) == 4
    for group in terms:
        plain, other = (cross_fitted(Coded.of(group, pilot)) for pilot in pilots)
        assert [each.halves[0] for each in plain] == [each.halves[0] for each in other]
        assert all(one.halves[1] != two.halves[1] for one, two in zip(plain, other, strict=True))
        for each in plain:
            sides = []
            for side in (pilots[0].first, pilots[0].second):
                rows = np.arange(side.runs) % 2
                parts = [each.halves[half].column(side.take(rows != half)) for half in (0, 1)]
                sides.append(sum(each.bins.counts(part) for part in parts))
            assert each.counts.tolist() == np.stack(sides, axis=1).tolist()


@pytest.mark.long
def test_every_lot_of_runs_counts_scores_that_were_there_before_it_and_the_last_one_settles() -> None:
    """All streams differ, and plain features count every run once."""
    pool, share = 10 * RUNS, 0.9
    look, session, made = closed(shifted, pool, share, times=50)
    taught = int(share * (1.0 - SETTLE_PART) * pool)
    assert all(any(is_score(each) for each, _ in tables.features) for tables in session.tables)
    lots = [shard.runs for shard in session.work]
    assert sum(lots) == made == look.now.runs
    assert len({(shard.stage, shard.pair, shard.index) for shard in session.work}) == len(lots)
    again, own = (feature for feature, _ in session.tables[-1].features)
    assert is_score(again)
    assert look.now.settled.event.feature in (again, own)
    before = [each for tables in session.tables[:-1] for each, _ in tables.features]
    assert own in before
    assert again not in before, "learned from all runs, it is judged by the last alone"
    seen = [len(each.features) * (made - int(share * pool) + taught) for each in look.now.plan.terms]
    assert [int(table.sum()) for table in look.now.terms] == seen, (
        "all runs but those that settle it taught the last score"
    )
    tables = look.now.plan.tables
    for (feature, _), table in zip(tables.features, tables.split(look.now.counts), strict=True):
        assert isinstance(feature, LogRatio | Linear) or int(table.sum()) == taught


@pytest.mark.long
@for_each(("least", "most"), [(0, 900_000 // 64), (100_000, 100_000)])
def test_shards_that_are_counted_are_enough_for_many_workers_and_none_is_less_than_its_calls(
    least: int, most: int
) -> None:
    session: Any = Drawn(coin, times=1_000)
    look = Look(session, 0, Goal(PureDP(1.0), 4_000_000, 0.05), shard_runs=1 << 18, least_shard=least)
    look.hold(100_000)
    held = len(session.work)
    look.count(900_000)
    sizes = [shard.runs for shard in session.work[held:]]
    assert max(sizes) <= most
    assert sum(runs < (least or COUNT_SHARD) for runs in sizes) <= len(session.tables)  # what is left of each lot


def test_equal_looks_find_equal_events() -> None:
    found, again = (each(shifted, 20_000)[0].proposal() for each in (closed, closed.__wrapped__))
    assert found == again
    assert isinstance(found.event, Event)
    assert isinstance(found.event.feature, LogRatio | Linear)


@for_each("runs", [-5, 0, 1, GROWTH])
def test_hardly_a_run_is_no_error(runs: int) -> None:
    session = Drawn(shifted)
    look = look_at(session)
    look.hold(PILOT)
    assert look.count(runs) == max(runs, 0)
    assert look.now.runs == PILOT + max(runs, 0) == sum(shard.runs for shard in session.work)
    assert (look.hold(100) == 0) == (runs > 0)  # once others were counted


def objects(run: Callable[[Rng, bool], Any]) -> Any:
    return lambda first, runs, rng: encode_objects([run(rng, first) for _ in range(runs)])


def leaky(rng: Rng, first: bool) -> bool:
    return bool(rng.random() < (0.3 if first else 0.1))


def changing_keys(rng: Rng, first: bool) -> dict[str, float]:
    return {f"key {j}": float(rng.normal()) for j in rng.choice(9, rng.integers(1, 4), replace=False)} | (
        {"leak": 1.0} if leaky(rng, first) else {}
    )


WORDS = ["", "a", "ü", "a" * 300, "nan", "inf", "1", "\0", "\ud800", "absent", " ", "line\nbreak"]
FAILED = failure(ValueError("secret"))


def numbers(count: int) -> Any:
    return lambda first, runs, rng: vectors(rng.laplace(size=(runs, count)) + 0.1 * first)


KINDS: dict[str, Any] = {
    "constant vector": objects(lambda rng, first: (1.0, "a", None)),
    "nothing": objects(lambda rng, first: ()),
    "None": objects(lambda rng, first: None),
    "failures": objects(lambda rng, first: FAILED),
    "NaN": objects(lambda rng, first: (math.nan, math.nan)),
    "integers beyond double": objects(lambda rng, first: 10**400 + leaky(rng, first)),
    "words": objects(lambda rng, first: WORDS[int(rng.integers(6 if leaky(rng, first) else 12))]),
    "every word another": objects(lambda rng, first: f"{rng.integers(10**9)}"),
    "changing keys": objects(changing_keys),
    "infinities": objects(lambda rng, first: tuple(rng.choice([math.inf, -math.inf, 1.5, float(rng.normal())], 3))),
    "lengths": objects(lambda rng, first: tuple(rng.normal(size=rng.integers(0, 4) + leaky(rng, first)))),
    "70 numbers": numbers(70),
}
BY_NIGHT: dict[str, Any] = {
    "constant number": objects(lambda rng, first: 7.5),
    "nothing in a dictionary": objects(lambda rng, first: {}),
    "integers beyond float32": objects(
        lambda rng, first: (2**62 + 2**50 * leaky(rng, first) + int(rng.integers(99)), 1)
    ),
    "vectors of words": objects(lambda rng, first: [WORDS[int(j)] for j in rng.integers(12, size=rng.integers(4))]),
    "truth values": objects(lambda rng, first: (leaky(rng, first), leaky(rng, False), True)),
    "one infinity": objects(lambda rng, first: (math.inf if leaky(rng, first) else float(rng.normal()), 0.0)),
    "constant on one side": objects(lambda rng, first: (0.0 if first else float(rng.normal()), float(rng.normal()))),
    **{f"{count} numbers": numbers(count) for count in (1, 2, 3, 64)},
}


@pytest.mark.long
@for_each("kind", KINDS, nightly=BY_NIGHT)
def test_outputs_of_every_kind_go_through_all_phases(kind: str) -> None:
    """No error, no warning, every run counted; the event can be asked for, printed and stored."""
    session = Drawn((KINDS | BY_NIGHT)[kind], times=4_000)
    look = look_at(session, shard_runs=RUNS)
    look.hold(300)
    look.count(5_000 if kind == "64 numbers" else RUNS)  # as 70, which are looked at as 64
    look.close(4_000, 0.5, lambda wanted: wanted)
    found = look.now.last(look.proposal())
    assert isinstance(found.event, Event)
    pilot = look.now.pilot.first
    assert found.event.contains(pilot).shape == (pilot.runs,)
    again = dpaudit.events.event_from_dict(found.event.to_dict())
    assert str(again) == str(found.event)
    assert again.contains(pilot).tolist() == found.event.contains(pilot).tolist()


def spoiled(data: int, runs: int, rng: Rng) -> Any:
    """Numbers, infinities, NaN, and numbers beyond float32; the first is 0 on one side."""
    matrix = rng.laplace(size=(runs, 3))
    matrix[:, 0] *= data
    matrix[rng.random(runs) < 0.1, 1] = math.inf
    matrix[rng.random(runs) < 0.1 + 0.1 * data, 2] = math.nan
    matrix[rng.random(runs) < 0.1, 2] *= 1e300
    return matrix


@pytest.mark.long
@for_each(
    ("mechanism", "runs", "verdict"),
    [(lambda data, runs, rng: np.full((runs, 2), np.nan), 300_000, "NOT_REFUTED"), (spoiled, 300_000, "REFUTED")],
    ids=["nothing", "spoiled"],
)
def test_a_whole_audit_of_many_runs(mechanism: Any, runs: int, verdict: str) -> None:
    result = dpaudit.audit(dpaudit.batched(mechanism), pair=(0, 1), epsilon=1.0, runs=runs, n_jobs=1)
    assert result.verdict.value == verdict
    assert len(result.to_json()) > 0


@pytest.mark.long
@for_each(
    "draw, made",
    [(shifted, 0), (shifted, 4), (shifted, 8), (coin, 2)],
    nightly=[(shifted, 2), (shifted, 6), (coin, 4)],
)
def test_what_there_is_when_time_ends_a_computation_is_proposed(draw: Any, made: int) -> None:
    """After so many computations the next two are ended: what was seen still gives an event."""

    class Cut(Drawn):
        engine: Any = None  # which no clock without a deadline limits
        computed = 0

        def thinking(self, think: Callable[..., Any], *given: Any, **options: Any) -> Any:
            self.computed += 1
            if made < self.computed <= made + 2:
                raise OutOfTime
            return think(*given, **options)

    look = look_at(Cut(draw))
    with suppress(OutOfTime):
        look.close(20_000, None, lambda wanted: wanted)
    assert look.now.runs > 0
    found = proposed(look, Clock())
    assert found.score > 0.0
