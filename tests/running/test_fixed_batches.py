"""Batched calls of a fixed size: each of exactly so many runs, in random order, the same bits wherever they run."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, AuditSpec, InvalidSpec, PureDP, UnsoundAudit, Verdict, audit, batched
from dpaudit.account.repeat import python_form
from dpaudit.auditing import run_audit
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import built_by, wrap
from dpaudit.mechanisms.spiked import LeakMark, Spiked, SpikedPair
from dpaudit.running.streams import Shard, Stage, calls, shards
from tests.cases import for_each, some

SIZE = 64


def compiled(data: float, runs: int, rng: np.random.Generator) -> Any:
    """As if it were compiled for one shape."""
    assert runs == SIZE
    return data + rng.laplace(size=runs)


def raising(data: float, runs: int, rng: np.random.Generator) -> Any:
    raise RuntimeError("no batch")


@dataclass
class Drifting:
    """Independent of the data; `moves` more with every call."""

    moves: float
    calls: int = field(default=0, compare=False)

    def __call__(self, data: float, runs: int, rng: np.random.Generator) -> Any:
        self.calls += 1
        return rng.laplace(size=runs) + self.moves * self.calls


def answer(mechanism: Any, **way: Any) -> str:
    with Engine(**way) as engine:
        spec = AuditSpec(claim=PureDP(1.0), mechanism=wrap(mechanism), pairs=(AdjacentPair(0, 1),), runs=3_000)
        found = run_audit(spec, engine).to_dict()
    found.pop("provenance")
    return json.dumps(found)


def test_calls_cover_each_run_once_and_are_as_few_as_can_be() -> None:
    for runs, size in ((1, 5), (1_000, 64), (4_096, 4_096), (777, 1)):
        found = list(calls(Shard(Stage.CERTIFY, 0, 3, runs).streams(7)[0], runs, 1 << 14, size))
        starts, parts, sides = zip(*found, strict=True)
        assert list(starts) == np.cumsum([0, *parts])[:-1].tolist()
        assert sum(parts) == runs
        assert max(parts) <= size
        for side in (0, 1):
            of_side = [part for part, each in zip(parts, sides, strict=True) if each == side]
            assert sum(part < size for part in of_side) <= 1  # only the last call of a side is not used up


def test_sides_are_fair_and_no_place_belongs_to_one() -> None:
    """2,000 shards of 256 runs: 512,000 coins, and the first and last calls, each within 5.3 deviations: below 1e-6."""
    seconds = first = last = 0
    for index in range(2_000):
        found = list(calls(Shard(Stage.CERTIFY, 0, index, 256).streams(5)[0], 256, 1, 32))
        seconds += sum(part for _, part, side in found if side)
        first, last = first + found[0][2], last + found[-1][2]
    assert abs(seconds - 256_000) < 5.3 * 0.5 * 512_000**0.5
    for count in (first, last):
        assert abs(count - 1_000) < 5.3 * 0.5 * 2_000**0.5


def test_a_shard_with_fixed_calls_counts_what_a_plain_loop_counts_whatever_its_outputs_are() -> None:
    """The naive oracle: the same coins and streams, calls made by hand, their first rows kept."""
    shard = Shard(Stage.SEARCH, 0, 0, 500)
    for size, by in ((SIZE, 0.0), (7, 0.0), (7, 1e9)):
        asked: list[float] = []

        def noted(data: float, runs: int, rng: np.random.Generator, asked: list[float] = asked, by: float = by) -> Any:
            asked.append(data)
            return data + rng.laplace(size=runs) + by * asked[-1]

        mechanism = wrap(batched(noted, size=size))
        with Engine(1) as engine, engine.session(mechanism, (AdjacentPair(0.0, 9.0),), 3, None) as session:
            pilot = session.pilot([shard])
        coins, rng = shard.streams(3)
        sides: tuple[list[float], list[float]] = ([], [])
        planned = list(calls(coins, 500, 1 << 14, size))
        for _, part, side in planned:
            sides[side].extend((9.0 * side + rng.laplace(size=size) + by * 9.0 * side)[:part].tolist())
        assert asked == [9.0 * side for *_, side in planned]
        assert [pilot.first.numbers([()])[0].tolist(), pilot.second.numbers([()])[0].tolist()] == list(sides)


@pytest.mark.long
@for_each(
    "way",
    [
        {"n_jobs": 2, "backend": "threading", "task_runs": 300},
        {"n_jobs": 1, "supervised": True},  # counted in a host
        {"n_jobs": 2, "supervised": True, "isolation": "none"},
    ],
)
def test_the_answer_does_not_depend_on_the_workers(way: Any) -> None:
    assert answer(batched(compiled, size=SIZE), **way) == answer(batched(compiled, size=SIZE), n_jobs=1)


@pytest.mark.long
def test_a_verdict_is_that_of_the_mechanism() -> None:
    """Laplace noise of scale 1, at claims on either side of its loss; bounds at confidence 1 - 1e-7."""
    wide: dict[str, Any] = {"pair": (0, 1), "runs": 20_000, "confidence": 1 - 1e-7, "n_jobs": 1}
    result = audit(batched(compiled, size=SIZE), epsilon=0.5, **wide)
    assert result.verdict is Verdict.REFUTED
    assert result.epsilon_lower <= 1.0
    assert any("compiled, size=64)" in line for line in python_form(result))
    assert audit(batched(compiled, size=SIZE), epsilon=1.0, **wide).verdict is Verdict.NOT_REFUTED


@dataclass
class Remembering:
    """Independent of the data; each call begins with the last outputs of the call before, used or not."""

    again: int
    before: Any = field(default=None, compare=False)

    def __call__(self, data: float, runs: int, rng: np.random.Generator) -> Any:
        found = rng.laplace(size=runs)
        if self.before is not None:
            found[: self.again] = self.before[-self.again :]
        self.before = found
        return found


DRIFTS = [Drifting(moves) for moves in (0.0, 1e-4, 1e-3, 1e-2, 0.1, 1.0)]
MEMORIES = [Remembering(again) for again in (1, 8, 64)]


@pytest.mark.long
@for_each("mechanism", [*some(DRIFTS, 3), *some(MEMORIES, 2)])
def test_neither_drift_in_time_nor_memory_of_a_call_looks_like_a_side(mechanism: Any) -> None:
    """Equal sides, dependent runs: an alarm, or no refutation. Chance of a refutation below 9e-7 for all nine."""
    asked: dict[str, Any] = {"pair": (0, 1), "runs": 8_000, "seed": 3, "confidence": 1 - 1e-7, "n_jobs": 1}
    with suppress(UnsoundAudit):
        assert audit(batched(mechanism, size=SIZE), epsilon=0.01, **asked).verdict is Verdict.NOT_REFUTED


def test_a_call_that_raises_is_no_verdict() -> None:
    """A call for one run would have every run of a batch raise where one does: another loss than that of a run."""
    with pytest.raises(UnsoundAudit, match="leave out size"):
        audit(batched(raising, size=SIZE), pair=(0, 1), epsilon=1.0, runs=1_000, n_jobs=1)


def test_marks_do_not_change_the_size_of_a_call() -> None:
    """All runs bear one: those of the first side the one mark, those of the second the other."""
    spiked = Spiked(wrap(batched(compiled, size=SIZE)), p=1.0, q=0.0, mark=LeakMark(1e6))
    with Engine(1) as engine, engine.session(spiked, (SpikedPair(AdjacentPair(0.0, 1.0)),), 1, None) as session:  # type: ignore[arg-type]
        pilot = session.pilot(shards(Stage.SEARCH, 0, 300, 100))
    first, second = (side.numbers([()])[0] for side in (pilot.first, pilot.second))
    assert first.min() > 9e5
    assert second.max() < -9e5
    assert len(first) + len(second) == 300


def test_the_size_is_kept_with_parameters_and_in_the_grid() -> None:
    fixed = batched(batched(compiled, size=SIZE))
    assert fixed.size == SIZE
    assert wrap(fixed, {"size": 8}) == replace(fixed, size=8)
    spec = AuditSpec(
        claim=PureDP(1.0), mechanism=batched(compiled, size=4_096), pairs=(AdjacentPair(0, 1),), runs=10**6
    )
    assert spec.resolved().shard_runs == 8 * 4_096
    assert built_by(lambda: fixed).open().size == SIZE
    with pytest.raises(InvalidSpec, match="size"):
        batched(compiled, size=0)
