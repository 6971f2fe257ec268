"""Samplers of the room against exact laws. All seeds are fixed; each test fails by chance with at most 1e-8."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit.catalogue import find

LEVEL, RUNS = 1e-9, 100_000


def sampled(name: str, data: Any, seed: int, **given: Any) -> Any:
    entry = find(name).with_parameters(given)
    return entry.open().call(data, RUNS, np.random.Generator(np.random.SFC64(seed)))


def fits(seen: Any, law: Any) -> bool:
    return bool(stats.chisquare(seen, np.asarray(law) * np.sum(seen)).pvalue > LEVEL)


@pytest.mark.parametrize(("name", "leak"), [("leaky_responses", 0.05), ("leaky_responses.delta_not_divided", 0.2)])
@pytest.mark.parametrize("bit", [0, 1])
def test_leaky_responses_give_the_bit_away_as_often_as_they_say(name: str, leak: float, bit: int) -> None:
    told = sampled(name, bit, 2, epsilon=4.0, delta=0.2, k=4)
    keep = (1 - leak) * math.exp(1.0) / (1 + math.exp(1.0))
    law = [1 - leak - keep, keep, 0.0, leak] if bit else [keep, 1 - leak - keep, leak, 0.0]
    for place in range(4):
        seen = np.bincount(told[:, place], minlength=4)
        assert seen[3 - bit] == 0
        assert fits(np.delete(seen, 3 - bit), np.delete(law, 3 - bit))


def test_one_draw_of_noise_cancels() -> None:
    noisy = sampled("composed_counts.noise_reused", [10, 9, 12], 4)
    assert np.allclose(noisy[:, 0] - noisy[:, 1], 1.0)
    assert np.allclose(noisy[:, 2] - noisy[:, 0], 2.0)


def test_bisection_turns_by_its_own_answers() -> None:
    """The path of three turns by the noisy answers has the product of their chances."""
    data = [0, 1, 6]
    answers = sampled("noisy_bisection", data, 5, epsilon=2.0)
    noise = stats.laplace(0.0, 1.5)
    law = []
    for path in range(8):
        low, high, chance = 0, 8, 1.0
        for turn in (path >> 2 & 1, path >> 1 & 1, path & 1):
            middle = (low + high) // 2
            lead = sum(1 if value < middle else -1 for value in data)
            chance *= float(noise.cdf(-lead) if turn else noise.sf(-lead))
            low, high = (middle, high) if turn else (low, middle)
        law.append(chance)
    seen = np.bincount((answers <= 0) @ np.array([4, 2, 1]), minlength=8)
    assert sum(law) == pytest.approx(1.0)
    assert fits(seen, law)


def test_bisection_that_stops_publishes_no_more() -> None:
    balanced, not_balanced = ([0, 0, 7, 7], [0, 0, 0, 0, 0])
    assert set(np.ma.count(sampled("noisy_bisection.stop_by_truth", balanced, 6), axis=1)) == {1}
    assert set(np.ma.count(sampled("noisy_bisection.stop_by_truth", not_balanced, 6), axis=1)) == {3}


@pytest.mark.parametrize("count", [0, 1, 3])
def test_counts_drawn_again_are_a_cut_laplace(count: int) -> None:
    law = stats.laplace(count, 1.0)
    again = sampled("nonnegative_count.drawn_again", count, 7)
    below = law.cdf(0.0)
    assert again.min() >= 0.0
    assert stats.kstest(again, lambda z: (law.cdf(z) - below) / (1 - below)).pvalue > LEVEL
    draws = sampled("nonnegative_count.draws_counted", count, 8)[:, 1]
    seen = [np.count_nonzero(draws == 1), np.count_nonzero(draws == 2), np.count_nonzero(draws > 2)]
    assert fits(seen, [1 - below, below * (1 - below), below**2])
    assert (
        stats.binomtest(int(np.count_nonzero(sampled("nonnegative_count", count, 9) == 0.0)), RUNS, below).pvalue
        > LEVEL
    )


def test_noise_is_cut_towards_the_truth() -> None:
    found = sampled("rounded_count.rounded_to_truth", 10, 10)
    seen = [np.count_nonzero(found == 10), np.count_nonzero(found == 11), np.count_nonzero(found == 9)]
    step = math.exp(-1.0)
    law = [1 - step, step * (1 - step) / 2, step * (1 - step) / 2]
    assert fits([*seen, RUNS - sum(seen)], [*law, 1 - sum(law)])


def test_suppression_by_the_truth_is_never_wrong() -> None:
    assert not sampled("rounded_count.suppressed_by_truth", 4, 11).any()
    assert np.mean(sampled("rounded_count.suppressed_by_truth", 5, 11) != 0) > 0.9


def test_one_sample_is_shared_and_fresh_samples_are_not() -> None:
    for name, shared in (("sampled_counts", False), ("sampled_counts.one_sample", True)):
        noisy = sampled(name, 40, 12, epsilon=2.0, rate=0.5)
        correlation = float(np.corrcoef(noisy.T)[0, 1])
        expected = 10.0 / (10.0 + 0.5) if shared else 0.0  # binomial variance, and Laplace noise of scale 1/2
        assert abs(correlation - expected) < 6.5 / math.sqrt(RUNS)
    published = sampled("sampled_counts.size_published", 2, 13, rate=0.3)
    assert fits(np.bincount(published[:, 0].astype(int)), stats.binom(2, 0.3).pmf(range(3)))


def test_totals() -> None:
    data = [[0], [1, 2], [2], [0, 1]]
    assert set(sampled("parallel_counts.exact_total", data, 14)[:, 0]) == {4.0}
    noisy = sampled("parallel_counts.total_of_noisy", data, 14)
    assert np.allclose(noisy[:, 0], noisy[:, 1:].sum(axis=1))
    overlap = sampled("parallel_counts.parts_overlap", data, 15)
    assert np.abs(overlap.mean(axis=0) - [2, 2, 2]).max() < 6.5 * math.sqrt(2 / RUNS)
