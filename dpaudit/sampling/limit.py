"""A limit on time: what is done by then stays, what is under way is ended; and who is told how far the work is."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from dpaudit.errors import OutOfTime
from dpaudit.sampling.guard import ended_at
from dpaudit.sampling.store import MOMENT, Asked, decided

Result = TypeVar("Result")


class Progress:
    """Hears of the runs of each stage as they are done; this one keeps it to itself."""

    def plan(self, runs: int, workers: int, left_s: float = math.inf) -> None:
        """An audit begins: so many runs in all its stages, on so many workers, in so many seconds at the most."""

    def speed(self, run_s: float, runs: int) -> None:
        """So many runs took so many seconds each."""

    def begin(self, stage: str, runs: int) -> None:
        """A stage of `runs` runs begins."""

    def advance(self, runs: int, *, stored: bool = False) -> None:
        """So many more runs are done; `stored` ones were made before."""

    def end(self) -> None:
        """The stage is over."""


SILENT = Progress()


@dataclass(frozen=True, slots=True)
class Limit:
    """`left` tells how many seconds are left; `outside`: work is to be made where it can be ended at any moment.

    What is under way when none is left is ended `grace_s` later: where a process ends another has to begin.
    """

    left: Callable[[], float]
    outside: bool = True
    grace_s: float = 0.0

    @property
    def until(self) -> float:
        """The end by `time.monotonic()`; never where another clock tells the time."""
        return time.monotonic() + self.left() + self.grace_s if self.outside else math.inf


def thought(ended: Asked, until: float, think: Callable[[], Result]) -> Result:
    """What `think` gives; raises `OutOfTime` where it is later than `until` before, or was when it was first made.

    It may be ended anywhere, so it must leave nothing half done; on the main thread alone, as alarms are.
    """
    made: list[Result] = []

    def cut() -> int:
        with suppress(OutOfTime), ended_at(until, imports=False):
            made.append(think())
        return not made

    if decided(ended, cut):
        raise OutOfTime
    return made[0] if made else think()


def in_time(limit: Limit, late: Asked, results: Iterator[Result], expected: int) -> Iterator[Result]:
    """The results while there is time. Raises `OutOfTime`, and stores that it did, where more were to come.

    So it does at once where this call of the audit was cut when it was made.
    """
    if expected and late.held([MOMENT]):
        raise OutOfTime
    try:
        for _ in range(expected):
            if limit.left() <= 0.0:
                raise OutOfTime
            yield next(results)
    except OutOfTime:
        decided(late, lambda: 1)
        raise
