"""What a table of these audits is made of: rows, each measured beside what it is held against."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True)
class Row:
    """One audit: what ran, the figure that it is held against, what was found, and whether that is as expected."""

    name: str
    anchor: str
    found: str
    as_expected: bool
    cpu_s: float

    def __str__(self) -> str:
        mark = "ok " if self.as_expected else "ODD"
        return f"{mark} {self.name:<58} {self.anchor:<38} {self.found}  [{self.cpu_s:.1f} CPU s]"


def timed(work: Callable[[], Value]) -> tuple[Value, float]:
    """What `work` returns, and the CPU seconds of this process that it took."""
    begun = time.process_time()
    return work(), time.process_time() - begun
