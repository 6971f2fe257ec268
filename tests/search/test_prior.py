"""What is believed of cells: the naive posterior of the same model, no luck taken for a leak, and mirrored sides."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.base.arrays import Reals
from dpaudit.search.smoothing import EM_STEPS, EVEN, FARTHEST, FOLDS, NEAREST, POINTS, believed


def naive(x: Reals, y: Reals, alone: float) -> tuple[Reals, Reals]:
    """The same posterior cell by cell, with scipy's binomial law, of cells that the grid is fine enough for."""
    width = math.asinh(FARTHEST / NEAREST)
    grid = math.log((x.sum() + 1.0) / (y.sum() + 1.0)) + NEAREST * np.sinh(np.linspace(-width, width, POINTS))
    share = 1.0 / (1.0 + np.exp(-grid))
    found = []
    for cell in range(len(x)):
        others = [j for j in range(len(x)) if j % FOLDS != cell % FOLDS]
        law = np.full(POINTS, (1.0 - EVEN) / POINTS)
        law[POINTS // 2] += EVEN
        for _ in range(EM_STEPS):
            sums = np.full(POINTS, alone / POINTS)
            for j in others:
                part = law * binom.pmf(x[j], x[j] + y[j], share)
                sums += part / part.sum()
            law = sums / sums.sum()
        odds = law * binom.pmf(x[cell], x[cell] + y[cell], share)
        odds /= odds.sum()
        mean = odds @ share
        found.append((mean, odds @ (share - mean) ** 2))
    mean, variance = np.array(found).T
    hits = x + y
    up, down = (x.sum() + 0.5) / (hits @ mean + 0.5), (y.sum() + 0.5) / (hits @ (1.0 - mean) + 0.5)
    return mean * up / (mean * up + (1.0 - mean) * down), variance


@pytest.mark.parametrize("alone", [0.05, 1.0])
def test_the_posterior_is_that_of_the_naive_sum(alone: float) -> None:
    x, y = np.array([12.0, 3, 0, 5, 9, 7, 2, 30]), np.array([10.0, 4, 6, 6, 8, 9, 2, 4])
    made, (share, variance) = believed(x, y, alone), naive(x, y, alone)
    assert made.share == pytest.approx(share, rel=1e-9)
    assert made.variance == pytest.approx(variance, rel=1e-7, abs=1e-15)


def test_a_cell_with_many_hits_is_what_they_say() -> None:
    """Two cells: the log odds that were seen, and their binomial deviation, to a tenth of it."""
    for runs in (1_000.0, 100_000.0, 1e8):
        made = believed(np.array([0.73, 0.27]) * runs, np.array([0.27, 0.73]) * runs)
        luck = math.sqrt(0.73 * 0.27 / runs)
        assert abs(made.share[0] - 0.73) < 0.5 * luck
        assert math.sqrt(made.variance[0]) == pytest.approx(luck, rel=0.1)


def test_the_luckiest_of_equal_cells_is_one_of_them_and_one_too_far_out_is_not() -> None:
    """100 cells of 100 hits: the luckiest of equal ones keeps less than a tenth of its log odds on average.

    Over 30 seeded tables; one table keeps more than a quarter with probability of about 1 in 100. A cell of log odds 2
    keeps nine tenths.
    """
    rng = np.random.default_rng(1)
    lucky, planted = [], []
    for _ in range(30):
        x, y = rng.poisson(50.0, (2, 100)).astype(float)
        made = believed(x, y)
        seen, kept = np.log((x + 0.5) / (y + 0.5)), np.log(made.share / (1.0 - made.share))
        lucky.append(kept[np.argmax(seen)] / seen.max())
        x[3], y[3] = 88.0, 12.0
        made = believed(x, y)
        planted.append(math.log(made.share[3] / (1.0 - made.share[3])) / math.log(88.5 / 12.5))
    assert np.mean(lucky) < 0.1
    assert min(planted) > 0.9


def test_mirror_exchanging_the_sides_mirrors_what_is_believed() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.poisson(40.0, (2, 300)).astype(float)
    x[:20] *= 3.0
    straight, swapped = believed(x, y), believed(y, x)
    assert swapped.mirrored().share == pytest.approx(straight.share, abs=1e-9)
    assert swapped.variance == pytest.approx(straight.variance, abs=1e-12)
    assert straight.mirrored().share == pytest.approx(1.0 - straight.share)


def test_nothing_seen_says_nothing() -> None:
    made = believed(np.zeros(3), np.zeros(3))
    assert made.share == pytest.approx(np.full(3, 0.5))
