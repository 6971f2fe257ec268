"""A limit on the time that work may take: what is done by then stays, and what is under way is ended.

Whether a call was cut is stored with its shards, so that an audit that is taken up again is cut at the same places.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from dpaudit.errors import OutOfTime
from dpaudit.sampling.store import Asked, decided
from dpaudit.sampling.streams import Shard, Stage

PLACE = Shard(Stage.PROBE, 0, 0, 1)

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


def in_time(limit: Limit, late: Asked, results: Iterator[Result], expected: int) -> Iterator[Result]:
    """The results while there is time. Raises `OutOfTime`, and stores that it did, where more were to come.

    So it does at once where this call of the audit was cut when it was made.
    """
    if expected and late.held([PLACE]):
        raise OutOfTime
    try:
        for _ in range(expected):
            if limit.left() <= 0.0:
                raise OutOfTime
            yield next(results)
    except OutOfTime:
        decided(late, lambda: 1)
        raise
