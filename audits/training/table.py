"""What a table of these audits is made of: rows, each measured beside what it is held against."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True)
class Row:
    """One audit: what ran, the figure that it is held against, what was found, and whether that is as expected.

    `as_expected` is None where the figure only stands beside what was found: no outcome would be odd.
    """

    name: str
    anchor: str
    found: str
    as_expected: bool | None
    cpu_s: float

    def __str__(self) -> str:
        mark = {True: "ok ", False: "ODD", None: " . "}[self.as_expected]
        return f"{mark} {self.name:<58} {self.anchor:<38} {self.found}  [{self.cpu_s:.1f} CPU s]"


def timed(work: Callable[[], Value]) -> tuple[Value, float]:
    """What `work` returns, and the CPU seconds that it took; processes that it started and ended count."""
    begun = sum(os.times()[:4])
    return work(), sum(os.times()[:4]) - begun
