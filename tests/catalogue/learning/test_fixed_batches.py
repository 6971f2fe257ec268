"""DP-SGD with batches of exactly B: the accounted epsilon by integration and naive convolution, and exact losses.

Nothing here is random but the test of the batches, which fails by chance with probability at most 1e-8.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from dpaudit.catalogue import find
from dpaudit.catalogue.learning.descent import programs
from dpaudit.catalogue.learning.descent import runs as many
from dpaudit.catalogue.learning.descent.programs import Descent
from dpaudit.losses.distribution import ALONE, fixed_batch_epsilon, poisson, repeated_epsilon, step_losses

FIXED = find("dp_sgd_fixed_batches")
DELTA = 0.01


def accounted(rate: float, shift: float, steps: int) -> float:
    return fixed_batch_epsilon(DELTA, 2.0 / shift, rate, steps)


def profile(epsilon: float, rate: float, shift: float) -> float:
    """Balle, Barthe & Gaboardi 2018, without replacement: rate times the delta of a whole step further out."""
    inner = math.log1p(math.expm1(epsilon) / rate)
    cdf = stats.norm.cdf
    return float(rate * (cdf(shift / 2.0 - inner / shift) - math.exp(inner) * cdf(-shift / 2.0 - inner / shift)))


def naive(rate: float, shift: float, steps: int, width: float = 0.004) -> float:
    """Losses above 0 have the law of a Poisson step, those below are its mirror image: cells, summed up by hand."""
    edges = np.arange(width / 2.0, 14.0, width)
    x = np.log1p(np.expm1(edges) / rate) / shift + shift / 2.0
    beyond = (1.0 - rate) * stats.norm.sf(x) + rate * stats.norm.sf(x - shift)
    gains, values = -np.diff(beyond), (edges[:-1] + edges[1:]) / 2.0
    losing = gains * np.exp(-values)
    one = np.concatenate([losing[::-1], [1.0 - gains.sum() - losing.sum()], gains])
    all_steps = one
    for _ in range(steps - 1):
        all_steps = np.convolve(all_steps, one)
    totals = width * (np.arange(len(all_steps)) - steps * len(gains))

    def excess(epsilon: float) -> float:
        return float(all_steps @ np.maximum(0.0, -np.expm1(epsilon - totals))) - DELTA

    return float(optimize.brentq(excess, 0.0, 20.0))


def test_one_step_has_the_profile_of_the_theorem() -> None:
    for rate, shift in ((0.4, 1.0), (0.1, 0.5), (1.0, 1.0)):
        exact = optimize.brentq(lambda epsilon, at=(rate, shift): profile(epsilon, *at) - DELTA, 0.0, 20.0)
        assert accounted(rate, shift, 1) == pytest.approx(exact, abs=4e-6)


def test_a_second_and_a_third_step_are_a_convolution() -> None:
    for steps in (2, 3):
        assert accounted(0.4, 1.0, steps) == pytest.approx(naive(0.4, 1.0, steps), rel=1e-4)


def test_the_accounted_epsilon_is_above_what_any_one_order_gives_and_close_to_it() -> None:
    for rate, steps in ((0.4, 4), (0.1, 8), (0.5, 2)):
        reached = repeated_epsilon(DELTA, step_losses(poisson(rate, 1.0), ALONE, "above"), steps)
        assert reached < accounted(rate, 1.0, steps) < 1.15 * reached


def test_the_exact_loss_of_one_step_by_integration() -> None:
    """Of records that pull both ways, all batches written out; the law of a batch is a mixture on both sides."""
    labels = ([1.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0])
    given = {"steps": 1, "records": 4, "batch_size": 2, "noise_multiplier": 1.5}
    first, second = ([[[1.0, 0.0], label] for label in each] for each in labels)
    epsilon = FIXED.true_loss(first, second, given)
    assert epsilon is not None

    def density(x: float, each: list[float]) -> float:
        sums = [sum(2.0 * label - 1.0 for label in batch) for batch in itertools.combinations(each, 2)]
        return float(np.mean([stats.norm.pdf(x, total, 1.5) for total in sums]))

    def delta(one: list[float], other: list[float]) -> float:
        ends = (-20.0, 20.0)
        over = integrate.quad(lambda x: max(0.0, density(x, one) - math.exp(epsilon) * density(x, other)), *ends)
        return float(over[0])

    assert max(delta(*labels), delta(*labels[::-1])) == pytest.approx(DELTA, rel=1e-4)


def test_batches_have_their_size_and_all_batches_are_equally_likely() -> None:
    """10 batches of 2 of 5 records. Chi-square, at 1e-8."""
    at, rng = Descent(learning_rate=1.0, steps=1, size=2.0), np.random.default_rng(3)
    joins = many.of_exactly(rng, 5, 20_000, at)(0)
    assert set(joins.sum(axis=0).tolist()) == {2}
    counts = np.unique((1 << np.arange(5)) @ joins, return_counts=True)[1]
    assert len(counts) == 10
    assert stats.chisquare(counts).pvalue > 1e-8
    data: list[Any] = [[[1.0], float(i)] for i in range(5)]
    assert len({str(sorted(next(programs.of_exactly(data, rng, at)))) for _ in range(200)}) == 10
    drawn = programs.once(programs.of_exactly)(data, rng, at)
    assert next(drawn) is next(drawn)
