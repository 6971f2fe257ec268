"""Aggregates and a model: losses against their definitions, sensitivities over grids, and the laws of the noise.

Random tests have fixed seeds, and fail by chance with probability at most 1e-8 each.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, stats

from dpaudit.catalogue.releases import (
    noisy_average,
    noisy_count_and_average,
    noisy_maxima,
    noisy_mean_vector,
    noisy_models,
    noisy_sum,
)
from dpaudit.catalogue.releases.tables import fit, population
from dpaudit.losses.distribution import gaussian_delta, gaussian_mu

LEVEL = 1e-8
RNG = np.random.default_rng(0)


def rng(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(seed))


# --- count and average ----------------------------------------------------------------------------------------


def test_the_loss_of_count_and_average_is_the_sum_of_both() -> None:
    """Somebody who leaves moves the count by 1 and the sum by at most the cap: the claim, exactly, at the cap."""
    data = [3, 5, 1, 0, 30]
    assert noisy_count_and_average.true_epsilon(data, data[:4]) == pytest.approx(1.0)
    assert noisy_count_and_average.true_epsilon(data, [3, 5, 1, 30]) == pytest.approx(0.5)
    assert noisy_count_and_average.true_epsilon(data, [3, 1, 0, 30], {"epsilon": 2.0}) == pytest.approx(1.25)
    assert noisy_count_and_average.exact_count.true_epsilon([3, 5], [4, 5]) == pytest.approx(0.05)
    assert noisy_count_and_average.exact_count.true_epsilon([3, 5], [3]) == math.inf


def test_an_average_alone_hides_only_who_is_average() -> None:
    assert noisy_count_and_average.average_alone.true_epsilon([2, 4, 3], [2, 4]) == 0.0
    assert noisy_count_and_average.average_alone.true_epsilon([2, 4, 5], [2, 4]) == math.inf


# --- the average of a class -----------------------------------------------------------------------------------


def test_which_grades_the_exact_statistics_show() -> None:
    grades = noisy_average.default_pair[0]
    others = {grade: [grade, *grades[1:]] for grade in range(10)}
    shown = {
        twin: [grade for grade, data in others.items() if entry.true_epsilon(grades, data) == math.inf]
        for twin, entry in noisy_average.twins.items()
    }
    assert shown["exact"] == shown["one_decimal"] == shown["exact_best"] == list(range(10))
    assert shown["exact_median"] == list(range(7))


# --- sums and largest values ----------------------------------------------------------------------------------


def test_refusals() -> None:
    assert noisy_sum.refused.run([1, 2, 3, 4], RNG) == {}
    assert noisy_sum.refused.run([1, 2, 3, 4, 5], RNG) == {0: 15.0}
    assert noisy_sum.refused_noisy.true_epsilon([1] * 5, [1] * 4) == math.inf
    assert noisy_sum.refused_noisy.true_epsilon([10] * 6, [10] * 5) == pytest.approx(1.0)
    assert noisy_sum.refused_noisy.true_epsilon([1] * 4, [1] * 3) == 0.0


def test_largest_values_move_by_at_most_the_claim() -> None:
    losses = [
        noisy_maxima.true_epsilon([a, b, c], [a, d, c])
        for a, b, c, d in itertools.product((0, 4, 10, 12), repeat=4)
        if b != d
    ]
    assert max(losses) == pytest.approx(1.0)  # type: ignore[type-var]


def test_a_refused_largest_value_is_the_last_one() -> None:
    for data in itertools.product(range(4), repeat=3):
        answers = noisy_maxima.query_auditing.run(data, RNG)
        assert (1 in answers) == (max(data[:-1]) == max(data))
        assert 1 in answers or answers[0] == data[-1]


# --- the average of many attributes ---------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.01), (1.0, 1e-5), (5.0, 0.001), (30.0, 1e-9)])
def test_the_noise_hides_exactly_what_it_must(epsilon: float, delta: float) -> None:
    """Against scipy's own root of the exact delta."""
    shift = optimize.brentq(lambda mu: gaussian_delta(epsilon, mu) - delta, 1e-6, 50.0, xtol=1e-13)
    assert gaussian_mu(epsilon, delta) == pytest.approx(shift, rel=1e-8)
    far = [[1.0, 1.0, 1.0]] + [[0.0, 0.0, 0.0]] * 4
    turned = [[-1.0, -1.0, -1.0], *far[1:]]
    found = noisy_mean_vector.true_epsilon(far, turned, {"epsilon": epsilon, "delta": delta})
    assert found == pytest.approx(epsilon, rel=1e-6)


def test_the_twin_hides_a_sixth_of_the_squared_shift() -> None:
    first, second = noisy_mean_vector.default_pair
    loss = noisy_mean_vector.noise_of_one_attribute.true_epsilon(first, second)
    assert loss is not None
    assert gaussian_delta(loss, math.sqrt(6.0) * gaussian_mu(1.0, 0.01)) == pytest.approx(0.01, abs=1e-9)


# --- two models -----------------------------------------------------------------------------------------------


def test_the_coefficients_are_the_smallest_of_their_objective() -> None:
    people = population(12, 3, 0)
    table = np.array([[*np.divide(x, max(1.0, np.linalg.norm(x))), label] for *x, label in people])

    def objective(w: np.ndarray) -> float:
        return float(np.logaddexp(0.0, -table[:, -1] * (table[:, :-1] @ w)).mean() + 0.2 * w @ w)

    assert fit(people, 0.4) == pytest.approx(optimize.minimize(objective, np.zeros(4), tol=1e-10).x, abs=1e-5)


def test_no_record_moves_two_models_further_than_the_claim() -> None:
    """With a large weight the worst record, against all others, comes near what the argument gives."""
    worst = 0.0
    for seed, weight in itertools.product(range(20), (0.1, 50.0)):
        *others, one, other = population(7, 1, seed)
        same = [[1.0, 1.0, 1.0]] * 5
        for rest, first, second in ((others, one, other), (same, [1.0, 1.0, 1.0], [1.0, 1.0, -1.0])):
            at = {"weight": weight, "epsilon": 2.0}
            losses = [noisy_models.true_epsilon([each, *rest], [last, *rest], at) for each, last in ((first, second),)]
            worst = max(worst, *(loss for loss in losses if loss is not None))
    assert 0.4 * 2.0 < worst <= 2.0


def test_models_before_and_after() -> None:
    data = noisy_models.default_pair[0]
    exact = np.reshape(noisy_models.exact.run(data, RNG), (2, -1))
    assert exact[0] == pytest.approx(fit(data[:-1], 0.4))
    assert exact[1] == pytest.approx(fit(data, 0.4))
    outputs = noisy_models.open().call(data, 20_000, rng(9))
    law = stats.laplace(scale=2 * 2 * math.sqrt(4) / (12 * 0.4)).cdf
    assert all(stats.kstest(column, law).pvalue > LEVEL for column in (outputs - exact.ravel()).T)
    assert len(noisy_models.labels_only.run(data, RNG)) == 42
