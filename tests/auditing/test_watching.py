"""The time that is told, by audits made up of tasks whose lengths are known; the clock is moved here, none waits."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from dpaudit.auditing.watching import SHORTER, Watcher
from tests.cases import for_each

Seen = list[tuple[float, float | None]]  # at each second: when it was, and the seconds that were told to be left


@dataclass(frozen=True)
class Made:
    """A mechanism: seconds of a start in each process, of a call, of a run that search looks at, and that certifies."""

    first_s: float
    call_s: float
    search_s: float
    certify_s: float
    probed: int = 32

    def task(self, run_s: float) -> int:
        """Runs of a task, as the engine groups them."""
        return max(1, int(0.15 / run_s))


class Audit:
    """An audit of `runs` runs, the first part of which search, on some workers; `seen` is what was told."""

    def __init__(self, made: Made, runs: int, workers: int, searched: float = 0.25) -> None:
        self.now, self.said, self.seen, self.next = 0.0, list[str](), Seen(), 2.0
        self.made, self.workers = made, workers
        self.watcher = Watcher(write=self.said.append, clock=lambda: self.now)
        self.watcher.audit(1, "made up")
        self.pass_time(0.1)
        self.watcher.plan(runs, workers)
        self.watcher.begin("probe", 2 * made.probed)
        for first_s in (made.first_s, 0.0):
            self.make(made.probed, made.certify_s, 1, made.probed, first_s)
        self.watcher.begin("search", runs // 4)
        held = min(1 << 18, int(searched * runs))
        self.make(256, made.certify_s, 1, 256)
        self.make(held - 256, made.certify_s, workers if held * made.certify_s > 1.0 else 1, 4_096)
        self.pass_time(0.2)  # features are chosen
        self.make(int(searched * runs) - held, made.search_s, workers, made.task(made.search_s))
        self.pass_time(0.5)
        self.watcher.begin("certify", runs - self.watcher.done)
        self.make(runs - self.watcher.done, made.certify_s, workers, made.task(made.certify_s), made.first_s)
        self.whole_s = self.now

    def pass_time(self, seconds: float) -> None:
        end = self.now + seconds
        while self.next <= end:
            self.now = self.next
            self.seen.append((self.now, self.watcher.left_s()))
            self.next += 1.0
        self.now = end

    def make(self, runs: int, run_s: float, workers: int, size: int, first_s: float = 0.0) -> None:
        """Tasks of `size` runs, one after the other on each worker, whose first has `first_s` more."""
        free = [(self.now + first_s, first_s)] * workers
        ends = []
        while runs > 0:
            some, runs = min(size, runs), runs - size
            at, before = free.pop(0)
            took = self.made.call_s + some * run_s
            ends.append((at + took, some, before + took))
            free = sorted([*free, (at + took, 0.0)])
        for at, some, took in sorted(ends):
            self.pass_time(at - self.now)
            self.watcher.advance(some, took)

    def off(self) -> Iterator[float]:
        """The whole time as it was told at each second, in parts of what it was; infinite where none was told."""
        for at, left_s in self.seen:
            yield math.inf if left_s is None else (at + left_s) / self.whole_s


def drawn(rng: random.Random, **fixed: float) -> Made:
    run_s = 10.0 ** rng.uniform(-7.5, -3.0)
    return Made(**{"first_s": rng.uniform(0.0, 0.5), "call_s": 0.0, "search_s": run_s, "certify_s": run_s, **fixed})


def test_the_time_is_within_two_from_the_second_second_on_however_slow_the_first_look() -> None:
    """At constant speed after it; on up to 16 workers."""
    rng = random.Random(1)
    for _ in range(40):
        made, workers, whole_s = drawn(rng), rng.choice([1, 2, 16]), 10.0 ** rng.uniform(1.0, 2.2)
        audit = Audit(made, int(whole_s * workers / made.certify_s), workers)
        ratios = list(audit.off())
        assert len(ratios) > 5
        assert 0.5 <= min(ratios) <= max(ratios) <= 2.0, (made, workers, min(ratios), max(ratios))
        assert len(audit.said) == (whole_s > 60.0) or 50.0 < audit.whole_s < 120.0, (made, workers, audit.said)
        assert all(line.endswith(SHORTER) for line in audit.said)


TEN_NUMBERS = Made(0.0, 0.0, 2e-6, 2e-7, 1_024)  # search looks at many features of them


@for_each(
    ("made", "runs", "workers", "searched"),
    [
        (TEN_NUMBERS, 100_000_000, 2, 0.25),
        (TEN_NUMBERS, 100_000_000, 2, 0.5),
        (Made(0.0, 0.04, 4e-6, 4e-6, 1_024), 5_000_000, 1, 0.25),  # a program that is started for each call
        (Made(1.2, 0.0, 9e-4, 9e-4), 40_000, 1, 0.05),  # certification begins slowly, too
        (Made(1.0, 0.0, 1e-8, 1e-8, 1_024), 10**10, 16, 0.25),  # the first look alone would tell 3 days
    ],
)
def test_it_is_within_two_where_search_takes_longer(made: Made, runs: int, workers: int, searched: float) -> None:
    """Where runs of search do, or there is more of it than usual, or calls are short there."""
    ratios = list(Audit(made, runs, workers, searched).off())
    assert len(ratios) > 5
    assert 0.5 <= min(ratios) <= max(ratios) <= 2.0


def begun(runs: int) -> Watcher:
    """That of an audit of the clock's third second."""
    now = [0.0]
    watcher = Watcher(write=lambda line: None, clock=lambda: now[0])
    now[0] = 3.0
    watcher.plan(runs, 1)
    watcher.begin("probe", 64)
    return watcher


def test_of_pairs_that_differ_those_that_are_searched_tell_how_long_it_takes() -> None:
    """And a quarter of the runs is expected to be as slow as those that choose the pair."""
    watcher = begun(1_000_000)
    for _ in range(2):
        watcher.advance(32, 0.032)
    watcher.begin("screen", 100_000)
    for seconds in (0.1, 1.0):
        watcher.advance(1_000, seconds)
    slow, quick = 250_000 - 2_064, 750_000
    run_s = 1.1 / 2_000
    assert watcher.left_s() == pytest.approx(slow * run_s + quick * math.sqrt(run_s * 1e-4), rel=0.1)
    watcher.begin("search", 250_000)
    watcher.advance(1_000, 1.0)
    assert watcher.left_s() == pytest.approx(997_000 * 1e-3, rel=0.1)


def test_a_long_audit_says_once_how_long_it_takes_where_no_shorter_time_was_asked_for() -> None:
    now = [0.0]
    for runs, left_s, told in ((1_000_000, math.inf, 1), (2_400, math.inf, 0), (1_000_000, 600.0, 0)):
        now[0], said = 0.0, list[str]()
        watcher = Watcher(write=said.append, clock=lambda: now[0])
        watcher.audit(1, "slow")
        watcher.plan(runs, 2, left_s + 3.2)
        watcher.begin("probe", 64)
        for now[0] in (1.6, 3.2):
            watcher.advance(32, 1.6)
        assert said == [f"slow: about 6 h 56 min (999,936 runs of 0.05 s, on 2 workers); {SHORTER}"] * told
        assert (watcher.left_s() == left_s) == (left_s == 600.0)


def test_it_says_so_again_where_it_was_off_by_more_than_two() -> None:
    """Runs become slower, then quick: two more lines, and none for each task."""
    said: list[str] = []
    now = [0.0]
    watcher = Watcher(write=said.append, clock=lambda: now[0])
    watcher.audit(1, "drifts")
    watcher.plan(1_000, 1)
    watcher.begin("certify", 1_000)
    told = []
    for run_s in [1.0] * 30 + [2.5] * 90 + [0.5] * 880:
        now[0] += run_s
        watcher.advance(1, run_s)
        told.append(len(said))
    assert (told[29], told[119], told[-1]) == (1, 2, 3)


def test_the_speed_is_that_of_the_last_minute() -> None:
    now = [0.0]
    watcher = Watcher(clock=lambda: now[0], silent=True)
    watcher.plan(10_000, 1)
    watcher.begin("certify", 10_000)
    for run_s in [1.0] * 1_000 + [3.0] * 21:
        now[0] += run_s
        watcher.advance(1, run_s)
    assert watcher.left_s() == pytest.approx(3.0 * (10_000 - 1_021), rel=0.05)


def test_nothing_is_told_in_the_first_two_seconds_nor_by_little_work() -> None:
    now = [0.0]
    watcher = Watcher(write=lambda line: None, clock=lambda: now[0])
    watcher.plan(1_000_000, 1)
    watcher.begin("search", 250_000)
    known = []
    for at, seconds in ((1.0, 1.0), (1.9, 0.9), (2.0, 0.1)):
        now[0] = at
        watcher.advance(100, seconds)
        known.append(watcher.left_s() is not None)
    assert known == [False, False, True]
    watcher = begun(1_000_000)
    for runs, seconds in ((32, 0.001), (32, 0.001), (1_000, 0.04)):
        watcher.advance(runs, seconds)
    assert watcher.left_s() is None


def test_one_look_tells_nothing_and_fresh_processes_take_the_place_of_other_runs() -> None:
    watcher = begun(1_000_000)
    watcher.advance(32, 100.0)
    assert watcher.left_s() is None
    watcher.advance(32, 32.0)
    assert 1e6 - 64 < (watcher.left_s() or 0.0) < 1e6 + 300  # and processes that start so slowly
    watcher.begin("fresh processes", 77)
    assert watcher.left_s() == 77.0
    assert watcher.words() == "fresh processes, 45 % of 141 runs, 1 min 17 s left"
