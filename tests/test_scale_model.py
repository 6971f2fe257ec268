"""The model of `python -m benchmarks scale`: exact small cases of a timeline, and of threads that share one GIL."""

from __future__ import annotations

from itertools import pairwise

import pytest

from benchmarks.timeline import (
    BESIDE,
    DRIVER,
    FRESH,
    GROW,
    HERE,
    PROCESSES,
    START,
    THREADS,
    Replay,
    Segment,
    Timeline,
    shared,
)
from tests.cases import for_each

FOUR = Segment(PROCESSES, tasks=(1.0,) * 4)
CASES: dict[str, tuple[tuple[Segment, ...], dict[int, tuple[float, float, float]]]] = {
    "four tasks of a second": ((FOUR,), {1: (4, 0, 0), 2: (2, 0, 0), 3: (2, 0, 0), 4: (1, 0, 0), 64: (1, 0, 0)}),
    "each to the first that is free": ((Segment(PROCESSES, tasks=(3, 1, 1, 1, 4)),), {2: (7, 0, 0), 3: (5, 0, 0)}),
    "the driver never shrinks": ((Segment(DRIVER, 0.5), FOUR, Segment(DRIVER, 0.25)), {4: (1.75, 0.75, 0.75)}),
    "tasks in the driver are one after the other": (
        (Segment(HERE, 0.5, (1, 2), most=1),),
        {1: (4, 4, 0), 8: (4, 4, 4)},
    ),
    "every worker's start costs the driver": (
        (Segment(START, 0.25, (2,)), FOUR),
        {1: (6.25, 0.25, 0.25), 4: (4, 1, 1)},
    ),
    "what comes before a worker is ready runs beside its start": (
        (Segment(START, 0, (2,)), Segment(DRIVER, 1.5), FOUR),
        {4: (3, 1.5, 1.5)},
    ),
    "a pool that grows starts workers with the first call that needs them": (
        (Segment(GROW, 0, (2,)), Segment(PROCESSES, tasks=(1,)), Segment(PROCESSES, tasks=(1,) * 4)),
        {1: (7, 0, 0), 2: (6, 0, 0), 4: (6, 0, 0)},
    ),
    "so many at once": ((Segment(FRESH, 0, (1,) * 6, most=3),), {2: (3, 0, 0), 16: (2, 0, 0)}),
    "fresh processes wait for no worker": (
        (Segment(START, 0, (2,)), Segment(FRESH, 0, (1, 1))),
        {1: (2, 0, 0), 2: (1, 0, 0)},
    ),
    "a driver hands on one task at a time": ((Segment(PROCESSES, 0.5, (1.0,) * 4),), {1: (6, 2, 0), 4: (3, 2, 0)}),
    "a driver that is the limit": ((Segment(PROCESSES, 1.0, (1.0,) * 8),), {4: (9, 8, 0), 64: (9, 8, 0)}),
    "threads without the GIL": ((Segment(THREADS, 0, (1.0,) * 4),), {1: (4, 4, 0), 4: (1, 4, 0)}),
    "threads that never give the GIL away": ((Segment(THREADS, 0, (1.0,) * 4, 1.0),), {1: (4, 4, 0), 4: (4, 4, 0)}),
    "in turn, where turns do not come out even": (
        (Segment(THREADS, 0, (1.0,) * 5, 1.0),),
        {2: (5, 5, 0), 3: (5, 5, 0)},
    ),
    "what runs beside the driver has workers that others wait for": (
        (Segment(BESIDE, 0, (1.0, 1.0)), Segment(DRIVER, 0.5), FOUR),
        {2: (3, 0.5, 0.5), 4: (2, 0.5, 0.5)},
    ),
    "nothing": ((), {1: (0, 0, 0), 16: (0, 0, 0)}),
}


@for_each("name", CASES)
def test_a_timeline_takes_what_is_counted_by_hand(name: str) -> None:
    segments, expected = CASES[name]
    for workers, seconds in expected.items():
        assert Timeline(segments).replay(workers) == Replay(*map(float, seconds)), workers


def test_rows_of_a_recording_become_segments() -> None:
    """A start beside its first call is of a pool that grows; hosts of fresh processes are waited for by their tasks."""
    none: list[float] = []
    start, call = [START, [0.1], [2.0], 0.0, 0], [PROCESSES, [0.25, 0.5], [1.0, 1.0], 0.0, 16]
    gap, host = [DRIVER, [0.0], none, 0.0, 0], [START, [0.1], none, 0.0, 0]
    grown = Timeline.recorded([start, gap, call])
    assert [each.where for each in grown.segments] == [GROW, DRIVER, PROCESSES]
    assert grown.segments[2] == Segment(PROCESSES, 0.375, (1.0, 1.0), most=16)
    early = Timeline.recorded([start, [DRIVER, [1.0], none, 0.0, 0], [HERE, none, [1.0], 0.0, 1], gap, call])
    assert early.segments[0] == Segment(START, 0.1, (2.0,))
    first, more = [FRESH, none, [4.5, 0.5, 0.5], 0.0, 2], [FRESH, none, [0.5] * 4, 0.0, 3]
    fresh = Timeline.recorded([host, gap, host, gap, first, more])
    assert [each.where for each in fresh.segments] == [DRIVER] * 4 + [FRESH] * 2
    assert fresh.segments[4].tasks == (2.5, 2.5, 0.5)  # both hosts started while the first task waited
    assert fresh.segments[5].tasks == (0.5, 0.5, 2.5, 0.5)  # a third one, which a recording of one worker has not


def test_no_number_of_workers_beats_the_serial_part_or_an_even_share() -> None:
    tasks = tuple(0.01 * (1 + place % 7) for place in range(200))
    timeline = Timeline((Segment(DRIVER, 1.0), Segment(PROCESSES, 1e-4, tasks), Segment(HERE, 0.0, (0.5,), most=1)))
    walls = {workers: timeline.replay(workers).wall_s for workers in (1, 2, 3, 16, 64)}
    for workers, wall in walls.items():
        even = 1.5 + sum(tasks) / workers
        assert even <= wall <= even + max(tasks) + 1e-4 * len(tasks), workers  # what list scheduling is known to keep


def test_threads_share_the_gil() -> None:
    for serial in (0.0, 0.1, 0.5, 0.9, 1.0):
        assert shared(serial, 1) == pytest.approx(1.0)
        assert shared(serial, 2) == pytest.approx((1.0 + serial**2) / 2.0)  # what a recording turns round
        times = [shared(serial, threads) for threads in range(1, 65)]
        assert all(after <= before + 1e-12 for before, after in pairwise(times))
        assert all(max(serial, 1.0 / place) <= time + 1e-12 for place, time in enumerate(times, 1))
    assert shared(0.5, 64) == pytest.approx(0.5)
