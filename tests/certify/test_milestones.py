"""Milestones by exact enumeration: whoever chooses which of them is certified, after whatever, errs at most alpha.

The adversary sees every output and ends the runs at will, so it refutes a true claim where any milestone would: that
probability is summed over all courses of the hits, at the very border of the claim. No random numbers.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest

from dpaudit.certify import CoinFlip, coin_flip
from dpaudit.certify.sequential import Milestones
from dpaudit.errors import InvalidSpec

SUMMED = 1e-11  # of sums of so many floats
RATES = (0.02, 0.1, 0.2, 0.35, 0.5)


def refuted(hits: int, others: int, runs: int, epsilon: float, alpha: float) -> bool:
    spare = (runs - hits - others) // 2
    evidence = CoinFlip(hits, others, hits + spare, runs - hits - spare)
    return coin_flip.p_value(evidence, epsilon, 0.0) <= alpha


def worst(milestones: Milestones, q: float, epsilon: float, alpha: float, *, shared: bool = True) -> float:
    """The probability that some milestone refutes p <= e^epsilon q at p = e^epsilon q, each at its share of alpha."""
    p = math.exp(epsilon) * q
    here = np.zeros(
        (milestones.planned_runs + 1,) * 2
    )  # by the hits of either side, of courses that refute nothing yet
    here[0, 0], chance = 1.0, 0.0
    for runs in range(1, milestones.planned_runs + 1):
        after = here * (1.0 - p / 2 - q / 2)
        after[1:, :] += here[:-1, :] * (p / 2)
        after[:, 1:] += here[:, :-1] * (q / 2)
        here = after
        if runs in milestones.ends:
            level = alpha * (milestones.share(runs) if shared else 1.0)
            for hits, others in zip(*np.nonzero(here), strict=True):
                if hits + others <= runs and refuted(int(hits), int(others), runs, epsilon, level):
                    chance, here[hits, others] = chance + here[hits, others], 0.0
    return chance


@pytest.mark.parametrize("epsilon", [0.0, 0.5])
def test_no_choice_among_milestones_errs_more_often_than_alpha(epsilon: float) -> None:
    milestones = Milestones.among(range(1, 61), lambda runs, share: runs >= 10)
    assert len(milestones.ends) >= 5
    errors = [worst(milestones, q, epsilon, 0.05) for q in RATES]
    assert max(errors) <= 0.05 + SUMMED
    assert max(errors) >= 0.02  # the level is used


def test_the_same_choice_at_the_whole_level_would_err_too_often() -> None:
    """What the shares are for: to stop when the moment suits is not free."""
    free = partial(worst, Milestones((10, 14, 20, 28, 40, 60)), epsilon=0.0, alpha=0.05, shared=False)
    assert max(free(q) for q in (0.35, 0.5)) > 0.08


def test_shares_add_up_to_the_whole() -> None:
    for ends in ((5,), (5, 6), tuple(range(10, 200, 7))):
        milestones = Milestones(ends)
        assert math.fsum(map(milestones.share, ends)) == pytest.approx(1.0, abs=1e-15)
        assert milestones.reached(ends[0] - 1) == 0
        assert milestones.reached(10**9) == ends[-1]


@pytest.mark.parametrize("ends", [(), (0, 1), (3, 3), (4, 2)])
def test_milestones_that_do_not_grow_are_refused(ends: tuple[int, ...]) -> None:
    with pytest.raises(InvalidSpec, match="milestones must be"):
        Milestones(ends)


def test_what_is_no_milestone_has_no_share() -> None:
    with pytest.raises(InvalidSpec, match="7 certifying runs are no milestone of 5, 10"):
        Milestones((5, 10)).share(7)
