"""The statements on adaptive data analysis: exact laws by independent quadrature, and the simulations.

Random tests have fixed seeds, and fail by chance with probability at most 1e-8 each.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import ndtr

from audits.lectures.claims import adaptive_example as example
from audits.lectures.claims.adaptive import REUSED, proved_factor, reused_holdouts
from audits.lectures.claims.adaptive_information import geometric_count, randomised_response
from audits.lectures.claims.simulations import Example, Holdout, best_of, final_queries, holdouts

SIX_DEVIATIONS = 6.0  # exceeded with probability 2e-9


# --- exact laws against independent quadrature ----------------------------------------------------------------


@pytest.mark.parametrize("per_group", [2, 5])
def test_the_law_of_the_maximum(per_group: int) -> None:
    """E max of two normals is 1 / sqrt(pi); of five 1.16296."""
    known = {2: 1.0 / math.sqrt(math.pi), 5: 1.1629644736}
    assert example.mean_of(example.law_of_the_chosen(per_group, 0.0)) == pytest.approx(known[per_group], abs=1e-9)


def test_the_law_of_a_noisy_choice_by_double_quadrature() -> None:
    """Two subsets: the first is chosen where its noise exceeds the other sum; the mean of the chosen one, by hand."""
    scale = 2.0

    # the difference of two Laplace variables has this tail; the means differ by a normal of variance 2
    def above(gap: float) -> float:
        tail = (0.5 + abs(gap) / (4.0 * scale)) * math.exp(-abs(gap) / scale)
        return tail if gap > 0 else 1.0 - tail

    def one(gap: float) -> float:
        return gap / 2.0 * (1.0 - 2.0 * above(gap)) * math.exp(-gap * gap / 4.0) / math.sqrt(4.0 * math.pi)

    expected = 2.0 * integrate.quad(one, 0.0, 30.0)[0]
    assert example.mean_of(example.law_of_the_chosen(2, scale)) == pytest.approx(expected, abs=1e-6)


def test_the_probability_of_being_off() -> None:
    law = example.law_of_the_chosen(33, 0.0)
    assert example.beyond(law, 1.96) == pytest.approx(1.0 - ndtr(1.96) ** 33 + ndtr(-1.96) ** 33, abs=1e-5)
    _, height = noisy = example.law_of_the_chosen(33, Example.of(10_000).noise(0.05))
    assert float(integrate.trapezoid(height, noisy[0])) == pytest.approx(1.0, abs=1e-6)


def test_noise_leaves_the_bias_of_its_own_scale() -> None:
    """Many subsets: the tail of the noise tilts the normal by e^(x / b), so its mean is 1 / b."""
    assert example.mean_of(example.law_of_the_chosen(2_000, 2.5)) == pytest.approx(0.4, abs=1e-5)


def test_the_tables_are_laws_and_private() -> None:
    for told in (randomised_response(3, 0.7), geometric_count(3, 0.7)):
        assert told.sum(axis=1) == pytest.approx(np.ones(8))
        for one in range(8):
            for bit in (1, 2, 4):
                assert np.max(np.abs(np.log(told[one] / told[one ^ bit]))) <= 0.7 + 1e-9


@pytest.mark.parametrize("beta", [0.3, 1e-3, 1e-9])
def test_the_factor_of_the_theorem_is_the_integral_of_the_tail(beta: float) -> None:
    """Pr(bad | y) <= int_0^oo min(beta, exp(-2 (ln u)^2 / (n epsilon^2))) du, with n epsilon^2 = ln(1 / beta) / 2."""
    half = math.log(1.0 / beta) / 2.0
    tail, _ = integrate.quad(lambda v: math.exp(v - 2.0 * v * v / half), half, half + 60.0, epsabs=0.0)
    assert (beta * math.exp(half) + tail) / math.sqrt(beta) == pytest.approx(proved_factor(beta), rel=1e-9)
    assert proved_factor(beta) <= 4.0 / 3.0


# --- simulations ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, 2.0, math.inf])
def test_final_queries_have_the_exact_mean(noise: float) -> None:
    sizes, runs = Example(4, 6), 4_000
    seen = final_queries(sizes, noise, runs, np.random.default_rng(3))
    exact = 0.0 if math.isinf(noise) else example.mean_of(example.law_of_the_chosen(6, noise)) / 2.0
    assert abs(seen.mean() - exact) < SIX_DEVIATIONS * seen.std() / math.sqrt(runs)


def test_the_best_of_many_queries_has_the_law_of_a_maximum() -> None:
    runs, queries, n = 4_000, 50, 20
    exact, private = best_of(n, queries, np.array([0.0, 40.0]), runs, np.random.default_rng(4))
    for k in (13, 15, 17):
        chance = -math.expm1(queries * math.log(stats.binom.cdf(k - 1, n, 0.5)))
        assert stats.binomtest(int((exact >= k).sum()), runs, chance).pvalue > 1e-9
    blind = stats.binom.sf(12, n, 0.5)  # at epsilon 0 any query is taken
    assert stats.binomtest(int((private[0] > 12).sum()), runs, blind).pvalue > 1e-9
    assert (private[1] == exact).mean() > 0.999  # at a huge epsilon, the best


def test_a_holdout_through_thresholdout_is_not_overfitted() -> None:
    seen = reused_holdouts()
    assert np.all(seen["naive: holdout"] - seen["naive: fresh"] > 0.1)
    assert np.all(np.abs(seen["thresholdout: holdout"] - seen["thresholdout: fresh"]) < 0.1)
    assert np.all(seen["used"] < REUSED.budget)
    assert REUSED.epsilon == pytest.approx(60.0)


def test_a_spent_budget_stops_the_answers() -> None:
    with pytest.raises(RuntimeError, match="budget of the holdout is spent"):
        holdouts(Holdout(n=50, features=100, keep=5, budget=1), 1, np.random.default_rng(5))
