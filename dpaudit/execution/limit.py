"""A limit on time: what is done by then stays, what is under way is ended; and who is told how far the work is."""

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from dpaudit.errors import OutOfTime
from dpaudit.execution.journal import Recorder
from dpaudit.running.guard import ended_at

Result = TypeVar("Result")


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


def thought(recorder: Recorder, until: float, think: Callable[[], Result]) -> Result:
    """What `think` gives; raises `OutOfTime` where it is later than `until` before, or was when it was first made.

    It may be ended anywhere, so it must leave nothing half done; on the main thread alone, as alarms are.
    """
    results: list[Result] = []

    def cut() -> int:
        with suppress(OutOfTime), ended_at(until, imports=False):
            results.append(think())
        return not results

    if recorder.decide("thinking took too long", cut):
        raise OutOfTime
    return results[0] if results else think()
