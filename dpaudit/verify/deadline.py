"""The time that the engines of this package may take: past it each of them raises `OutOfTime` at its next step."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from dpaudit.errors import OutOfTime

_END: ContextVar[float] = ContextVar("end", default=math.inf)  # of `time.monotonic`


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """The engines take no longer than this in the block, nor than a block around it allows.

    >>> with within(0.0):
    ...     left_s()
    Traceback (most recent call last):
    dpaudit.errors.OutOfTime: max_time_s was over before enough was done: give more time
    """
    token = _END.set(min(_END.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _END.reset(token)


def time_over() -> float:
    """When the time is over, as `time.monotonic` tells it."""
    return _END.get()


def left_s(most: float = math.inf) -> float:
    """The seconds that are left, at most `most`. Raises `OutOfTime` where the time is over."""
    left = _END.get() - time.monotonic()
    if left <= 0.0:
        raise OutOfTime("max_time_s was over before enough was done: give more time")
    return min(left, most)
