"""When a search ends: by search outputs alone, and the more is left to learn the later."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from dpaudit.base.arrays import Reals
from dpaudit.claims import PureDP
from dpaudit.outputs.canonical import Pilot
from dpaudit.search.crossfit import Coded, cross_fitted
from dpaudit.search.explore import best, pilot_counts, plan, with_scores
from dpaudit.search.goal import Goal
from dpaudit.search.look import _not_negative, worth
from tests.auditing.looks import vectors
from tests.cases import for_each

Rng = np.random.Generator


def asked(first: Reals, second: Reals, *, total: int, more: int) -> bool:
    pilot = Pilot(vectors(first), vectors(second))
    runs = len(first) + len(second)
    goal = Goal(PureDP(1.0), total - runs, 0.001)
    chosen = plan(pilot, goal, scores=False, lines=False)
    counts = pilot_counts(chosen, pilot)
    folds = [each for terms in chosen.terms for each in cross_fitted(Coded.of(terms, pilot))]
    chosen, counts = with_scores(chosen, counts, [(each.halves[0], each.bins, each.counts) for each in folds])
    return worth(best(chosen, counts, goal), chosen, counts, folds, goal, runs, more)


@pytest.mark.long
def test_a_coin_is_known_soon_and_many_weights_are_not() -> None:
    rng = np.random.default_rng(1)
    coins = [(rng.random((5_000, 1)) < p).astype(float) for p in (0.6, 0.3)]
    assert not asked(*coins, total=40_000, more=10_000)
    shifts = 0.35 * rng.choice([-1.0, 1.0], 12)
    vectors = [rng.laplace(size=(1_000, 12)) + move for move in (shifts, -shifts)]
    assert asked(*vectors, total=200_000, more=2_000)
    assert not asked(*vectors, total=4_000, more=1_990), "what little would be left certifies"


@for_each(("seen", "deviation"), [(0.5, 0.1), (0.0, 0.2), (-0.1, 0.1), (-3.0, 0.1), (0.2, 0.0), (-1.0, 0.0)])
def test_a_gain_that_cannot_be_negative_is_the_mean_of_a_normal_cut_at_0(seen: float, deviation: float) -> None:
    if deviation == 0.0:
        plain = max(0.0, seen)
    else:
        grid = np.linspace(0.0, 12.0 * deviation + max(seen, 0.0), 400_001)
        density = norm.logpdf(grid, seen, deviation)
        weight = np.exp(density - density.max())
        plain = float((grid * weight).sum() / weight.sum())
    assert _not_negative(seen, deviation) == pytest.approx(plain, rel=1e-3, abs=1e-6)
