"""Utility and conversions: chances are those of exact laws."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from audits.lectures.claims import conversions, utility, utility_queries
from dpaudit.losses.comparisons import halting, winning

# --- the chances of being right, by the losses' own integrals -------------------------------------------------


def test_the_chance_of_the_leader_is_that_of_the_race() -> None:
    for counts, gap, scale in ((2, 0.5, 1.0), (5, 3.0, 2.0), (12, 7.0, 1.5)):
        expected = winning(np.array([gap] + [0.0] * (counts - 1)), scale)[0]
        assert utility_queries.leads(counts, gap, scale) == pytest.approx(expected, abs=1e-10)


def test_the_chance_of_the_first_top_is_that_of_above_threshold() -> None:
    for bottoms, gap, scale in ((0, 1.0, 2.0), (1, 4.0, 2.0), (9, 20.0, 3.0)):
        law = halting(np.array([-gap] * bottoms + [gap]), 0.0, scale, 2.0 * scale)
        assert utility_queries.first_top(bottoms, gap, scale) == pytest.approx(law[bottoms], abs=1e-10)


def test_no_order_of_the_tops_is_worse_than_an_even_one() -> None:
    """All ways to put three tops among nine answers, each top with the bottoms before it; the last answer is a top."""
    gap, scale = 30.0, 6.0
    chances = {
        math.prod(
            utility_queries.first_top(after - before - 1, gap, scale) for before, after in itertools.pairwise((-1, *at))
        )
        for at in itertools.product(range(9), repeat=3)
        if at[0] < at[1] < at[2] == 8
    }
    assert utility_queries.sparse_right(9, 3, gap, 1.0) == pytest.approx(min(chances), abs=1e-12)
    assert max(chances) > min(chances)


def test_the_least_gap_is_where_the_chance_is() -> None:
    for queries, tops in ((10, 1), (500, 7)):
        gap = utility_queries.gap_of(queries, tops)
        assert 1.0 - utility_queries.sparse_right(queries, tops, gap, 1.0) == pytest.approx(
            utility_queries.BETA, rel=1e-6
        )
    gap = utility_queries.gap_of_all(50)
    assert (1.0 - math.exp(-gap / 50.0) / 2.0) ** 50 == pytest.approx(1.0 - utility_queries.BETA)


def test_the_cost_of_moved_noise_is_its_mean() -> None:
    at = np.linspace(-60.0, 60.0, 240_001)
    law = np.exp(-np.abs(at - 0.7) / 1.5) / 3.0
    mean = float(np.sum(law * np.where(at > 0.0, at, -4.0 * at)) * (at[1] - at[0]))
    assert utility.laplace_cost(0.7, 1.5, 4.0, 1.0) == pytest.approx(mean, abs=1e-6)


# --- conversions ----------------------------------------------------------------------------------------------


def test_the_tail_of_normal_noise_and_the_least_rho() -> None:
    losses = np.random.default_rng(3).normal(0.5, 1.0, 200_000)  # N(rho, 2 rho) at rho = 0.5
    share = conversions.normal_tail(1.0, 0.5)
    assert abs(float(np.mean(losses > 1.5)) - share) < 6.0 * math.sqrt(share / len(losses))  # by chance: 2e-9
    p, q = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    assert conversions.concentrated(p, q) == pytest.approx(math.log(3.0) / 2.0, rel=1e-3)  # the relative entropy
