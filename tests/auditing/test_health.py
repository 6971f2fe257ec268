"""The checks as a function of what was seen: levels, names, cures, and how often a sound audit is stopped."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, UnsoundAudit, audit, batched
from dpaudit.auditing.health.checks import TESTS, SeenBy, Twins, judge
from dpaudit.auditing.health.pilot import constants, pilot_looks
from dpaudit.auditing.health.processes import processes_needed
from dpaudit.certify.independence import repeats
from dpaudit.errors import DpAuditError
from dpaudit.events import Event
from dpaudit.events.features import Coordinate
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import wrap
from dpaudit.outputs.canonical import Failure, Pilot, token
from dpaudit.outputs.encode import encode_objects
from dpaudit.results.observations import CHECKS, CURES, LEVEL, Health
from dpaudit.running.order import Looked, looked
from dpaudit.running.streams import Stage, shards
from dpaudit.running.watch import Watch
from tests.auditing import unsound
from tests.cases import NIGHTLY, for_each

PAIR = (AdjacentPair(0.0, 1.0),)


def pilot_of(outputs: list[Any], sides: Any, sizes: tuple[int, ...]) -> Pilot:
    """A pilot of outputs that stand in the order of their runs."""
    whole, sides = encode_objects(outputs), np.asarray(sides, np.bool_)
    return Pilot(whole.take(~sides), whole.take(sides), sides, sizes)


def look_of(hits: Any, sides: Any, parts: int = 8) -> Looked:
    """What shards of these 0-1 states tell, without first outputs."""
    states = np.array_split(np.asarray(hits, np.uint8), parts)
    return looked(
        zip(states, np.array_split(np.asarray(sides, np.bool_), parts), strict=True), np.zeros((0, 256), np.uint64)
    )


def alarms(health: Health) -> list[str]:
    return [check.name for check in health.alarms]


def test_the_checks_share_the_level() -> None:
    health = judge(None)
    assert [check.name for check in health.checks] == list(CHECKS) == list(CURES)
    assert sum(check.level for check in health.checks) == pytest.approx(LEVEL)
    assert LEVEL == 1e-6
    assert health.sound
    assert health.raise_if_unsound() is health


def test_a_pilot_and_later_groups_have_parts_of_the_level() -> None:
    """Half for the pilot, over its states and all pairs; 1 / (g (g + 1)) of the other half for group g."""
    rng = np.random.default_rng(1)
    sides = rng.random(4_000) < 0.5
    hits = rng.random(4_000) < np.linspace(0.2, 0.3, 4_000)
    look, even = look_of(hits, sides), look_of(np.tile([0, 1], 2_000), sides)
    place = CHECKS.index("drift over shards")
    first, second, fifth = (
        judge(None, groups).checks[place].log10_p for groups in ([look], [even, look], [even] * 4 + [look])
    )
    assert second == pytest.approx(first + np.log10(3.0), abs=2e-3)
    assert fifth == pytest.approx(first + np.log10(15.0), abs=2e-3)
    pilot = pilot_of(hits.astype(float).tolist(), sides, (500,) * 8)
    one, ten = (judge(pilot, pairs=pairs).checks[place].log10_p for pairs in (1, 10))
    assert ten == pytest.approx(one + 1.0, abs=2e-3)


def test_an_alarm_is_one_line_with_name_numbers_and_cure_and_the_strongest_speaks() -> None:
    rng = np.random.default_rng(2)
    hits = np.repeat(rng.random(2_000) < 0.3, 2)
    health = judge(None, [look_of(hits, rng.random(4_000) < 0.5)])
    assert alarms(health) == ["serial dependence"]
    with pytest.raises(UnsoundAudit, match=r"^serial dependence: a run is a hit in .*%.*level 1.4e-07") as caught:
        health.raise_if_unsound()
    assert str(caught.value).endswith(CURES["serial dependence"])
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, DpAuditError)
    assert caught.value.exit_code == 3
    health = judge(None, [look_of(np.arange(8_000) < 1_000, np.tile([False, True], 4_000))])
    assert {"drift over shards", "over-dispersion between shards"} <= set(alarms(health))
    with pytest.raises(UnsoundAudit, match=f"{alarms(health)[0]}: .*also .*{alarms(health)[1]}"):
        health.raise_if_unsound()


def test_processes_speak_for_constant_outputs() -> None:
    health = judge(None, processes=[SeenBy(-40.0, "an answer is kept")])
    assert alarms(health) == ["constant outputs"]
    assert judge(None, processes=[SeenBy(-10.0, "an answer is kept")]).sound
    edge = SeenBy(-16.0, "an answer is kept")  # 1.1e-7, and the check's level is 1.4e-7
    assert not judge(None, processes=[edge]).sound
    assert judge(None, processes=[edge, SeenBy(0.0, "")]).sound  # two witnesses share it, and so do two ends
    assert judge(None, processes=[edge], ends=2).sound


def test_a_pilot_without_order_is_not_judged() -> None:
    outputs = encode_objects([0.0] * 500 + [1.0] * 500)
    assert judge(Pilot(outputs, outputs)).sound


@for_each(
    ("outputs", "found"),
    [
        ([1.0] * 40, (True, True, True)),
        ([1.0, "a"] * 20, (True, True, False)),
        ([1.0, 2.0] * 20, (True, True, False)),
        ([float("nan"), float("nan")] * 20, (True, True, True)),
        ([(1, None), (1, [])] * 20, (True, True, False)),
        ([1.0] * 38 + [2.0, 1.0], (False, True, False)),
    ],
)
def test_constants_are_told_by_whole_outputs(outputs: list[Any], found: tuple[bool, bool, bool]) -> None:
    pilot = pilot_of(outputs, [False, True] * 20, (40,))
    seen = constants(pilot)
    assert (seen.first, seen.second, seen.equal) == found
    assert seen.give_away is (found[0] and found[1] and not found[2])


def test_constants_are_noted_and_no_failure() -> None:
    raised = [Failure(token("raised", "ValueError"), f"at {k}") if k % 2 else float(k) for k in range(40)]
    for outputs, words in (
        (["x"] * 40, "a constant tells nothing of the data"),
        (
            [1.0 if k % 2 else k for k in range(40)],
            "every search run on the second dataset gave one and the same output",
        ),
        (raised, "every search run on the second dataset raised ValueError"),
    ):
        health = judge(pilot_of(outputs, [False, True] * 20, (40,)))
        assert health.sound
        assert [words in note for note in health.notes] == [True]


@pytest.mark.long
def test_nothing_is_said_of_outputs_that_were_not_looked_at_whole() -> None:
    """What lies too deep tells the datasets apart: no sentence about constants, and no verdict."""

    def deep(number: float) -> list[Any]:
        return [[[[[[[number]]]]]]]

    wide = [[0.0] * 300 + deep(float(k % 2)) for k in range(40)]
    for outputs in (wide, [[float(k), *each] for k, each in enumerate(wide)]):
        assert judge(pilot_of(outputs, [False, True] * 20, (40,))).notes == ()

    def hidden(data: float, rng: np.random.Generator) -> list[Any]:
        return [0.0] * 300 + deep(data + rng.laplace())

    asked: dict[str, Any] = {"pair": (0, 1), "epsilon": 1.0, "runs": 300, "n_jobs": 1}
    for stopping in ("fixed", "anytime") if NIGHTLY else ("fixed",):
        with pytest.raises(UnsoundAudit, match=r"differ only in what is not looked at \(entries of output\[300\]"):
            audit(hidden, stopping=stopping, **asked)
    seen = audit(lambda data, rng: [rng.random(), *hidden(data, rng)], **asked)
    assert (seen.unseen, seen.unpaired) == (1, 237)


def test_states_do_not_depend_on_the_order_of_the_runs() -> None:
    """The states of a side are the same set of runs when its runs are shuffled."""
    rng = np.random.default_rng(3)
    outputs = [*rng.normal(size=60).tolist(), *["a", None, "b"] * 10, *rng.integers(3, size=30).tolist()]
    sides = rng.random(len(outputs)) < 0.5
    order = rng.permutation(len(outputs))
    one = pilot_looks(pilot_of(outputs, sides, (len(outputs),)))
    other = pilot_looks(pilot_of([outputs[k] for k in order], sides[order], (len(outputs),)))
    assert len(one) > 1
    assert [look.hits.sum(axis=(0, 1)).tolist() for look in one] == [
        look.hits.sum(axis=(0, 1)).tolist() for look in other
    ]


@pytest.mark.long
@for_each("hits", [(1, 0), (2, 2)], nightly=[(1, 1), (3, 2)])
def test_no_check_of_rare_outputs_exceeds_its_level(hits: tuple[int, int]) -> None:
    """Every arrangement of so many hits among the six runs of each side, in three shards: at no level are there more
    alarms than the level says."""
    sides = np.tile([False, True, True, False], 3)
    places = [itertools.combinations(np.flatnonzero(sides == side).tolist(), count) for side, count in enumerate(hits)]
    looks = []
    for there in itertools.product(*places):
        states = np.zeros(12, np.uint8)
        states[[*there[0], *there[1]]] = 1
        looks.append(look_of(states, sides, parts=3))
    for name, test in TESTS.items():
        found = np.sort([test(look).log_p for look in looks])
        reached = np.searchsorted(found, found + 1e-9, side="right") / len(found)
        assert (reached <= np.exp(found) + 1e-9).all(), name


def test_no_repetition_of_rare_outputs_exceeds_its_level() -> None:
    """Every pair of arrangements of one rare output, or two, among six runs of two shards."""
    for rare in (0, 1, 2, 3):
        rows = [
            np.array([6 if k in there else 4 for k in range(6)], np.uint64)
            for there in itertools.combinations(range(6), rare)
        ]
        found = np.sort([repeats(np.stack(both))[0] for both in itertools.product(rows, repeat=2)])
        reached = np.searchsorted(found, found + 1e-9, side="right") / len(found)
        assert (reached <= np.exp(found) + 1e-6).all()


def test_a_fresh_process_of_another_kind_is_set_apart() -> None:
    rng = np.random.default_rng(4)
    usual = pilot_of(rng.normal(size=2_000).tolist(), rng.random(2_000) < 0.5, (1_000, 1_000))
    for moved in (0.0, 2.0):
        twin = pilot_of((moved + rng.normal(size=200)).tolist(), [False] * 100 + [True] * 100, (200,))
        health = judge(usual, twins=Twins(twin, spread=False))
        assert health.sound == (moved == 0.0)
        assert health.checks[-1].alarm == (moved > 0.0)


@for_each("spread", [False, True])
def test_equal_processes_matter_where_runs_were_spread(spread: bool) -> None:
    rng = np.random.default_rng(5)
    usual = pilot_of(rng.normal(size=2_000).tolist(), rng.random(2_000) < 0.5, (1_000, 1_000))
    twin = pilot_of(rng.normal(size=100).tolist(), [False] * 50 + [True] * 50, (100,))
    twins = Twins(Pilot.joined([twin, twin]) if spread else twin, spread)
    assert twins.runs == (200 if spread else 100)
    assert alarms(judge(usual, twins=twins)) == (["repeated streams"] if spread else [])


@for_each("least", [1, 2, 23, 500])
def test_enough_processes_for_both_sides(least: int) -> None:
    """A side has fewer than it needs in one case of a thousand at the most; too many are no verdict."""
    count = processes_needed(lambda runs: runs >= least)
    assert 2 * sum(math.comb(count, few) for few in range(least)) <= 2**count // 1000
    assert count <= 2 * least + 5 + 6 * least**0.5
    with pytest.raises(UnsoundAudit, match=r"constant outputs: .* more than 4,096"):
        processes_needed(lambda runs: runs >= 3_000)


SOUND: list[tuple[Any, float]] = [
    (unsound.laplace, 1.5),
    (batched(unsound.laplace_batch), 0.5),
    (unsound.coins, 0.5),
    (batched(unsound.integers), 0.5),
    (unsound.rare, 0.5),
    (batched(unsound.drawn_from_a_pool), 0.5),
    (batched(unsound.rounded), 0.5),
]


def sound_audit(mechanism: Any, threshold: float, seed: int, runs: int, parts: int, level: float) -> Health:
    """One audit's checks: a pilot, then several groups of certifying runs."""
    event = Event(Coordinate(()), intervals=((threshold, np.inf),))
    watch = Watch(event)
    with Engine(1) as engine, engine.session(wrap(mechanism), PAIR, seed, None) as session:
        pilot = session.pilot(shards(Stage.SEARCH, 0, runs // 4, max(8, runs // 16)))
        watched, start = [], 0
        for _ in range(parts):
            work = shards(Stage.CERTIFY, 0, runs // parts, max(8, runs // parts // 8), start=start)
            start += len(work)
            watched.append(watch.read(session.shard_counts(work, watch)))
    return judge(pilot, watched, level=level)


@pytest.mark.long
def test_sound_audits_are_rarely_stopped() -> None:
    """50 audits at a level of 0.01: at most 1 stopped is expected, 7 or more have a chance below 1e-6."""
    stopped = 0
    for seed in range(50):
        mechanism, threshold = SOUND[seed % len(SOUND)]
        health = sound_audit(mechanism, threshold, seed, (60, 200, 600)[seed % 3], 1 + seed % 2, 0.01)
        stopped += not health.sound
    assert stopped <= 6


@for_each(("mechanism", "threshold"), SOUND)
def test_sound_audits_pass(mechanism: Any, threshold: float) -> None:
    """One of 8,000 runs each: stopped with probability 1e-6."""
    assert sound_audit(mechanism, threshold, seed=9, runs=8_000, parts=2, level=LEVEL).sound
