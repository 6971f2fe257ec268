"""A cap on the time of an audit: how many of the runs that are still wanted fit into what is left of it."""

from __future__ import annotations

import time
from collections.abc import Callable

from dpaudit.results.beside import Explored
from dpaudit.sampling import Session

CAUTIOUS = 0.9  # of the runs that fit, where not all do: the load may go on growing


class Clock:
    """Started when it is made, with `limit_s` seconds to go; `now` tells the time in seconds.

    It is looked at between stages: once certification has begun, its runs are made, for when a run ends may depend on
    what it gave.
    """

    def __init__(self, limit_s: float, now: Callable[[], float] = time.monotonic) -> None:
        self.now = now
        self.end = now() + limit_s
        self.run_s = 0.0
        self.begin()

    def begin(self, made: int = 0) -> None:
        """The next speed is that of the runs from here on; `made` is how many there were before."""
        self.made, self.since = made, self.now()

    def fitting(self, wanted: int, session: Session) -> int:
        """How many of `wanted` runs there is time for, at the speed of the session's runs since the last look."""
        return session.decided(lambda: self._fitting(wanted, session.asked_for))

    def _fitting(self, wanted: int, made: int) -> int:
        now = self.now()
        if made > self.made:  # else the speed is that of the look before
            self.run_s = (now - self.since) / (made - self.made)
        self.made, self.since = made, now
        left = max(0.0, self.end - now)
        return wanted if left >= wanted * self.run_s else int(CAUTIOUS * left / self.run_s)


def cut(made: str, planned: int) -> Explored:
    """What is said where there was no time for all runs: a repetition gives other counts."""
    status = f"there was time for {made} of {planned:,}; a repetition without max_time_s makes all of them"
    return Explored("time", "max_time_s", status)
