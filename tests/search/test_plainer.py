"""Plainer events in place of better ones: not by the low luck of a few outputs, where all search runs know better."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.claims import PureDP
from dpaudit.events import Event
from dpaudit.events.features import Coordinate
from dpaudit.events.scores import Binning
from dpaudit.outputs.canonical import Outputs, Pilot
from dpaudit.outputs.encode import encode_objects
from dpaudit.search.goal import Goal
from dpaudit.search.plainer import together
from dpaudit.search.selection import Proposal

RUNS, ALL, GOAL = 8_000, 500_000, Goal(PureDP(2.0), 1_400_000, 0.001)
BEYOND = Event(Coordinate((1,)), ((10.0, np.inf),))


def side(common: int, beyond: int, seed: int) -> Outputs:
    """Two numbers: the first is 1 in so many of the runs, the second beyond 10 in so many of those that judge."""
    rng = np.random.default_rng(seed)
    first, second = rng.permutation(np.arange(RUNS) < common).astype(float), rng.random(RUNS)
    second[np.arange(beyond) * (RUNS // beyond) // 2 * 2 + 1] += 10.0
    return encode_objects(list(zip(first.tolist(), second.tolist(), strict=True)))


@pytest.mark.parametrize(("hits", "rarer"), [((1_500, 100), True), ((1_500, 450), False)])
def test_low_luck_of_a_rare_event_is_not_taken_for_what_it_is_worth(hits: tuple[int, int], rarer: bool) -> None:
    """By the outputs held it shows 1.0, as 12 runs against 4; another one shows 1.6, as 800 against 160."""
    pilot = Pilot(side(800, 12, 1), side(160, 4, 2))
    cells = Binning(np.array([10.0], np.float32))
    table = np.array([[ALL - each for each in hits], hits, (0, 0)], np.int64)
    found = together(Proposal(BEYOND, "first", "any", 2.4), cells, table, (), pilot, GOAL)
    assert (found is None) == rarer
    assert found is None or found.event.feature == Coordinate((0,))
