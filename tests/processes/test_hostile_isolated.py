"""Mechanisms that leak, and try to change what is seen of it: counted in a host, they are seen, or there is no verdict.

`benchmarks/hostile.py` has more than a hundred, in seven ways of being audited.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

from benchmarks.hostiles import leak
from dpaudit.data import AdjacentPair
from dpaudit.errors import UnsoundAudit
from dpaudit.events import Event
from dpaudit.events.features import Coordinate
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import wrap
from dpaudit.running.streams import Stage, shards
from dpaudit.running.watch import Watch
from tests.cases import for_each

WATCH = Watch(Event(Coordinate(()), intervals=((0.5, np.inf),)))
SEEN = ("frames_outputs", "frames_sides", "frames_states", "float that says 0", "collector_outputs", "environment")
NO_VERDICT = (
    "collector_line",
    "patches Event.contains",
    "patches Sending.fill",
    "patches FrameWriter.put",
    "exec true later",
)


@pytest.mark.long
@for_each("does", (*SEEN, *NO_VERDICT))
def test_no_leak_is_hidden(does: str) -> None:
    """Sides differ by 0.9 of 750 runs or so: half of that is missed with a chance far below 1e-30."""
    try:
        with (
            Engine(1, isolation="process") as engine,
            engine.session(wrap(functools.partial(leak, does=does)), (AdjacentPair(0, 1),), 5, None) as session,
        ):
            table = session.shard_counts(shards(Stage.SEARCH, 0, 1_500, 800), WATCH)
    except UnsoundAudit:
        assert does in NO_VERDICT
        return
    (first, second), runs = WATCH.hits(sum(table.values())).ravel(), sum(table.values())[:2]
    assert second / runs[1] - first / runs[0] > 0.5
    assert does in SEEN
