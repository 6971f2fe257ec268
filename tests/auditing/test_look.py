"""The phases of a look: each run counted once, what is learned judged on other runs, and outputs of every kind."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.auditing.searching.look import LEARN_FROM, LEARN_PART, PLAIN_PART, SETTLE_PART, WIDE_PART, Look
from dpaudit.events import Event
from dpaudit.events.scores import Linear, LogRatio
from dpaudit.outputs import Outputs
from dpaudit.sampling.encode import encode_objects
from dpaudit.sampling.guard import failure
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
def looked(draw: Any, *counts: int, last: bool = True, times: int = 1) -> tuple[Look, Drawn, list[int]]:
    session = Drawn(draw, times)
    look = look_at(session)
    look.hold(PILOT)
    made = [look.count(runs, last=last and place == len(counts) - 1) for place, runs in enumerate(counts)]
    return look, session, made


def counted(look: Look) -> list[tuple[Any, int]]:
    """Each feature of the plan and the runs that are counted of it."""
    assert look.plan is not None
    tables = look.plan.tables.split(look._counts)
    return [(each, int(table.sum())) for (each, _), table in zip(look.plan.tables.features, tables, strict=True)]


@pytest.mark.parametrize("draw", [shifted, coin])
@pytest.mark.parametrize("counts", [(1_000,), (RUNS, 500), (900, RUNS)])
def test_the_runs_made_are_those_asked_for(draw: Any, counts: tuple[int, ...]) -> None:
    """Unless the last are many and nothing is to be learned: then they are fewer. No stream is used twice."""
    look, session, made = looked(draw, *counts, times=200)
    fewer = [*counts[:-1], max(int(PLAIN_PART * counts[-1]), LEARN_FROM)] if counts[-1] >= LEARN_FROM else [*counts]
    assert made == (fewer if draw is coin else [*counts])
    assert look.runs == PILOT + sum(made) == sum(shard.runs for shard in session.work)
    keys = [(shard.stage, shard.pair, shard.index) for shard in session.work]
    assert len(set(keys)) == len(keys)


def test_plain_features_count_every_run_once_and_learned_scores_only_what_they_have_not_seen() -> None:
    """A pilot; then every feature, learning, judging, and the end that settles the score of the best event."""
    look, session, (made,) = looked(shifted, RUNS, times=1)
    wide, learn, settle = (int(part * RUNS) for part in (WIDE_PART, LEARN_PART, SETTLE_PART))
    judged = made - wide - learn - settle
    assert look._settled is not None
    for feature, runs in counted(look):
        if isinstance(feature, LogRatio):
            assert runs == judged
        elif isinstance(feature, Linear):  # learned on the pilot
            assert runs == made - settle
        else:
            assert runs == PILOT + made - settle
    # what the settled score was learned from: all runs but those that settle it
    assert [int(table.sum()) for table in look._terms] == [
        len(each.features) * (PILOT + made - settle)
        for each in look.plan.terms  # type: ignore[union-attr]
    ]
    again, own = (feature for feature, _ in session.tables[-1].features)
    assert look._settled.event.feature in (again, own)
    assert own in look.plan.tables.features[-1] + look.plan.tables.features[-2]  # type: ignore[union-attr]
    # none of the scores that judge were counted before they were learned
    scores = [[each for each, _ in tables.features if isinstance(each, LogRatio)] for tables in session.tables]
    assert [len(each) > 0 for each in scores] == [False, False, True, True]
    assert not set(map(str, scores[2])) - {str(each) for each, _ in look.plan.tables.features}  # type: ignore[union-attr]


def test_a_second_count_of_many_learns_anew_beside_the_best_score_so_far() -> None:
    look, _, made = looked(shifted, RUNS, RUNS, last=False, times=200)
    judged = made[1] - int(LEARN_PART * RUNS)
    first = made[0] - int(WIDE_PART * RUNS) - int(LEARN_PART * RUNS)
    kept, *anew = [runs for feature, runs in counted(look) if isinstance(feature, LogRatio)]
    assert kept == first + made[1]
    assert set(anew) == {judged}
    assert {runs for feature, runs in counted(look) if not isinstance(feature, LogRatio | Linear)} == {
        PILOT + sum(made)
    }


def test_scores_of_a_small_look_are_judged_on_what_the_pilot_did_not_show() -> None:
    look, _, _ = looked(shifted, 5_000)
    assert {runs for feature, runs in counted(look) if isinstance(feature, LogRatio | Linear)} == {5_000}


def test_equal_looks_find_equal_events() -> None:
    found = [each(shifted, RUNS, times=10)[0].proposal() for each in (looked, looked.__wrapped__)]
    assert found[0] == found[1]
    assert found[0] is not None
    assert isinstance(found[0].event, Event)
    assert isinstance(found[0].event.feature, LogRatio)


@pytest.mark.parametrize("runs", [-5, 0, 1])
def test_hardly_a_run_is_no_error(runs: int) -> None:
    look, session, made = looked(shifted, runs)
    assert made == [max(runs, 0)]
    assert look.runs == PILOT + max(runs, 0) == sum(shard.runs for shard in session.work)
    assert look.hold(100) == 0  # features are chosen


# --- outputs of every kind --------------------------------------------------------------------------------------------


def objects(run: Callable[[Rng, bool], Any]) -> Any:
    return lambda first, runs, rng: encode_objects([run(rng, first) for _ in range(runs)])


def leaky(rng: Rng, first: bool) -> bool:
    return bool(rng.random() < (0.3 if first else 0.1))


def one_side_constant(rng: Rng, first: bool) -> tuple[float, float]:
    return (0.0 if first else float(rng.normal())), float(rng.normal())


def changing_keys(rng: Rng, first: bool) -> dict[str, float]:
    return {f"key {j}": float(rng.normal()) for j in rng.choice(9, rng.integers(1, 4), replace=False)} | (
        {"leak": 1.0} if leaky(rng, first) else {}
    )


WORDS = ["", "a", "ü", "a" * 300, "nan", "inf", "1", "\0", "\ud800", "absent", " ", "line\nbreak"]
FAILED = failure(ValueError("secret"))

KINDS: dict[str, Any] = {
    "constant number": objects(lambda rng, first: 7.5),
    "constant text": objects(lambda rng, first: "same"),
    "constant vector": objects(lambda rng, first: (1.0, "a", None)),
    "nothing": objects(lambda rng, first: ()),
    "nothing in a dictionary": objects(lambda rng, first: {}),
    "None": objects(lambda rng, first: None),
    "failures": objects(lambda rng, first: FAILED),
    "NaN": objects(lambda rng, first: (math.nan, math.nan)),
    "integers beyond float32": objects(
        lambda rng, first: (2**62 + int(rng.integers(99)) + 2**50 * leaky(rng, first), 1)
    ),
    "integers beyond double": objects(lambda rng, first: 10**400 + leaky(rng, first)),
    "words": objects(lambda rng, first: WORDS[int(rng.integers(6 if leaky(rng, first) else 12))]),
    "vectors of words": objects(lambda rng, first: [WORDS[int(j)] for j in rng.integers(12, size=rng.integers(4))]),
    "every word another": objects(lambda rng, first: f"{rng.integers(10**9)}"),
    "changing keys": objects(changing_keys),
    "truth values": objects(lambda rng, first: (leaky(rng, first), leaky(rng, False), True)),
    "infinities": objects(lambda rng, first: tuple(rng.choice([math.inf, -math.inf, 1.5, float(rng.normal())], 3))),
    "one infinity": objects(
        lambda rng, first: (math.inf if leaky(rng, first) else float(rng.normal()), float(rng.normal()))
    ),
    "constant on one side": objects(one_side_constant),
    "lengths": objects(lambda rng, first: tuple(rng.normal(size=rng.integers(0, 4) + leaky(rng, first)))),
    **{
        f"{count} numbers": lambda first, runs, rng, count=count: vectors(rng.laplace(size=(runs, count)) + 0.1 * first)
        for count in (1, 2, 3, 64, 70)
    },
}


@pytest.mark.long
@for_each("kind", KINDS)
def test_outputs_of_every_kind_go_through_all_phases(kind: str) -> None:
    """No error, no warning, every run counted; the event can be asked for, printed and stored."""
    session = Drawn(KINDS[kind], times=2_000)
    look = look_at(session, shard_runs=RUNS)
    look.hold(400)
    runs = 5_000 if kind == "64 numbers" else RUNS  # as 70, which are looked at as 64, but without learning anew
    made = look.count(runs, last=True)
    assert made in (runs, max(int(PLAIN_PART * RUNS), LEARN_FROM))
    found = look.proposal() or look.last_resort()
    assert isinstance(found.event, Event)
    pilot = look.pilot.first
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
@pytest.mark.parametrize(
    "mechanism",
    [lambda data, runs, rng: np.zeros(runs), lambda data, runs, rng: np.full((runs, 2), np.nan), spoiled],
    ids=["constant", "nothing", "spoiled"],
)
def test_a_whole_audit_of_many_runs(mechanism: Any) -> None:
    result = dpaudit.audit(dpaudit.batched(mechanism), pair=(0, 1), epsilon=1.0, runs=600_000, n_jobs=1)
    assert result.verdict.value == ("REFUTED" if mechanism is spoiled else "NOT_REFUTED")
    assert len(result.to_json()) > 0
