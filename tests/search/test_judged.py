"""Sets of values against thresholds, on halves of the counts; empty bins and the runs of numbers around them."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.base.arrays import Integers, Reals
from dpaudit.claims import PureDP
from dpaudit.events.features import Coordinate
from dpaudit.events.scores import Binning
from dpaudit.search.explore import judged
from dpaudit.search.goal import Goal
from dpaudit.search.selection import BY_RATIO, Proposal, cells_inside, groups_of, propose

CELLS, RUNS = 400, 50_000
BINS = Binning(np.arange(1, CELLS, dtype=np.float32))
GOAL = Goal(PureDP(1.0), 200_000, 0.001)
EVEN = np.full(CELLS, 1.0 / CELLS)
STEP = np.where(np.arange(CELLS) < CELLS // 2, 0.9, 1.1)  # the ratio is the same on either side of the middle


def table(p: Reals, q: Reals, seed: int) -> Integers:
    rng = np.random.default_rng(seed)
    drawn = [rng.multinomial(RUNS, law / law.sum()) for law in (p, q)]
    return np.vstack([np.stack(drawn, axis=1), np.zeros((1, 2), np.int64)])


def true_bound(found: Proposal, p: Reals, q: Reals) -> float:
    """What the certificate is expected to show."""
    inside = cells_inside(BINS, found.event)
    x, y = (np.array([RUNS * law[inside].sum() / law.sum()]) for law in (p, q))
    x, y = (x, y) if found.p_side == "first" else (y, x)
    return float(GOAL.scores(x, y, RUNS, RUNS, 0.0)[0])


@pytest.mark.long
def test_a_lucky_set_of_a_step_is_found_out() -> None:
    """Over ten seeds the events keep more of the step's own bound than where no halves judge."""
    for mirrored in (False, True):
        p, q = (EVEN, EVEN * STEP) if mirrored else (EVEN * STEP, EVEN)
        best = max(
            float(GOAL.scores(RUNS * a[part].sum(keepdims=True), RUNS * b[part].sum(keepdims=True), RUNS, RUNS, 0.0)[0])
            for a, b in ((p, q), (q, p))
            for part in (slice(0, CELLS // 2), slice(CELLS // 2, None))
        )
        parts, unjudged = [], []
        for seed in range(10):
            counts = table(p, q, seed)
            first = propose(Coordinate(()), BINS, counts, GOAL)
            assert first is not None
            unjudged.append(true_bound(first, p, q) / best)
            again = judged(Coordinate(()), BINS, counts, GOAL, smoothed_z=0.8, rivals=1.0)
            assert again is not None
            parts.append(true_bound(again, p, q) / best if first.family == BY_RATIO else unjudged[-1])
        assert np.mean(parts) > np.mean(unjudged), (parts, unjudged)


def test_values_that_tell_are_found_wherever_they_are() -> None:
    law = EVEN * np.where(np.arange(CELLS) % 40 == 7, 4.0, 1.0)  # ten of them, far apart
    for seed in range(5):
        found = judged(Coordinate(()), BINS, table(law, EVEN, seed), GOAL, smoothed_z=0.8, rivals=1.0)
        assert found is not None
        assert np.all(cells_inside(BINS, found.event) % 40 == 7)
        assert true_bound(found, law, EVEN) > 1.0  # of ln 4 less the certificate's errors


@pytest.mark.long
def test_null_equal_laws_give_next_to_nothing() -> None:
    for seed in range(10):
        found = judged(Coordinate(()), BINS, table(EVEN, EVEN, seed), GOAL, smoothed_z=0.8, rivals=1.0)
        assert found is None or found.score < 0.05


def test_empty_bins_belong_to_the_run_of_numbers_around_them() -> None:
    both = np.zeros(1_001)
    both[100:900:4] = 20.0
    both[500] = 5_000.0  # a bin of its own
    group, _ = groups_of(Binning(np.arange(1, 1_000, dtype=np.float32)), both)
    assert np.all(group[:499] >= 0)
    assert np.all(group[501:1_000] >= 0)
    assert np.count_nonzero(group == group[500]) == 1
    assert np.all(np.diff(group[:1_000]) >= 0)
