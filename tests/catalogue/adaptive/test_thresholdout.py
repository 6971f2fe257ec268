"""Thresholdout: its noise, its exact loss and those of its twins. Random tests are seeded and fail below 1e-8."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.catalogue import Entry, find

LEVEL = 1e-8
Records = list[list[float]]


def records(*queries: tuple[int, int]) -> tuple[Records, Records]:
    """Ten records: a query holds on so many of nine, and comes to hold on the tenth (1) or ceases to (0)."""
    rest = [[float(place < count) for count, _ in queries] for place in range(9)]
    return [*rest, [1.0 - up for _, up in queries]], [*rest, [float(up) for _, up in queries]]


def of(name: str) -> Entry:
    return find(f"thresholdout.{name}" if name else "thresholdout")


@pytest.mark.parametrize("budget", [1, 2])
def test_it_costs_sparse_at_half_of_epsilon_and_laplace_at_the_other_half(budget: int) -> None:
    """In units of 1/n it is Sparse with sigma = 4 B / epsilon, and a value moves by 1 with Lap(2 B / epsilon)."""
    epoch = ((6, 1), (6, 1), (3, 0))
    found = find("thresholdout").true_epsilon(*records(*epoch * budget), {"budget": budget})
    answers = [1.0, 1.0, -1.0] * budget, [2.0, 2.0, -2.0] * budget
    bits = find("sparse").true_epsilon(*answers, {"epsilon": 0.5, "c": budget})
    assert bits is not None
    assert found == pytest.approx(bits + 0.5, rel=1e-9)


def test_the_claim_is_kept_on_many_pairs() -> None:
    rng = np.random.default_rng(3)
    for name in ("", "threshold_kept"):
        for _ in range(10):
            queries = rng.integers((0, 0), (10, 2), (4, 2)).tolist()
            assert (of(name).true_epsilon(*records(*queries), {"trained": 0.5, "threshold": 0.1}) or 0.0) <= 1.0 + 1e-9


def test_a_kept_threshold_is_paid_for_once() -> None:
    """(1 + 3 B) / (2 sigma n) by alignment, which is (1 + 3 B) / (4 B) of epsilon: less than epsilon from B = 2 on."""
    for budget in (2, 3):
        queries = ((6, 1),) * 6 + ((3, 0),) * budget
        found = of("threshold_kept").true_epsilon(*records(*queries), {"budget": budget})
        assert found is not None
        assert 0.5 < found <= (1 + 3 * budget) / (4 * budget) + 1e-9


def test_without_a_count_every_value_is_paid_for() -> None:
    pair = records(*((9, 1),) * 6)
    found = of("budget_not_counted").true_epsilon(*pair)
    assert found is not None
    assert 6 / 4 < found <= 6 / 2


def test_unhidden_values_have_no_epsilon() -> None:
    assert of("exact_value").true_epsilon(*records((5, 1), (5, 1))) == math.inf
    first = [[1.0, 1.0]] * 5 + [[0.0, 0.0]] * 5
    second = [*first[:-1], [1.0, 0.0]]
    assert of("one_noise").true_epsilon(first, second) == math.inf
    both = [*first[:-1], [1.0, 1.0]]  # the two values move together, so their difference tells nothing
    assert math.isfinite(of("one_noise").true_epsilon(first, both) or 0.0)


def test_the_noise_of_its_comparison_costs_one_half_a_query() -> None:
    pair = records(*((4, 1),) * 5)
    assert of("comparison_noise_released").true_epsilon(*pair, {"budget": 1}) == pytest.approx(5 / 2, rel=1e-6)


def test_with_twice_the_records_the_loss_is_that_of_twice_the_claim() -> None:
    pair = records((6, 1), (6, 1), (3, 0))
    doubled = find("thresholdout").true_epsilon(*pair, {"epsilon": 2.0})
    assert of("training_set_counted").true_epsilon(*pair) == pytest.approx(doubled, rel=1e-12)


def test_a_value_is_the_average_and_laplace_noise() -> None:
    data = records((9, 1))[1]
    given = {"budget": 1, "threshold": -50.0}  # always above
    raw = (
        find("thresholdout").with_parameters(given).open().call(data, 100_000, np.random.Generator(np.random.SFC64(4)))
    )
    assert not np.ma.getmaskarray(raw).any()
    assert stats.kstest(raw.data[:, 0], stats.laplace(1.0, 0.2).cdf).pvalue > LEVEL


def test_it_halts_when_the_budget_is_used() -> None:
    data = records(*((9, 1),) * 6)[1]
    rng = np.random.Generator(np.random.SFC64(5))
    counted = find("thresholdout").open().call(data, 20_000, rng)
    free = of("budget_not_counted").open().call(data, 20_000, rng)
    assert np.ma.count(counted, axis=1).max() == 2
    assert np.ma.count(free, axis=1).max() == 6
