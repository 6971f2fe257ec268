"""The bounds on adaptive choices: their algebra, their domain, and exact laws that must keep them."""

from __future__ import annotations

import doctest
import itertools
import math

import numpy as np
import pytest
from scipy import optimize, stats

from audits.lectures.claims import bounds
from audits.lectures.claims.adaptive_information import mutual_information
from audits.lectures.claims.information import (
    independent,
    max_divergence,
    max_information,
)

GRID = list(itertools.product((50, 400, 2_000), (0.1, 0.2)))


def test_the_examples_hold() -> None:
    run = doctest.testmod(bounds)
    assert (run.failed, run.attempted > 12) == (0, True)


@pytest.mark.parametrize(("n", "tau"), GRID)
def test_the_corollary_is_the_theorem_at_the_beta_of_hoeffding(n: int, tau: float) -> None:
    beta = bounds.hoeffding(n, tau)
    assert bounds.statistical_query(n, tau) == pytest.approx(bounds.generalisation_by_dp(beta))
    if beta < 1.0:
        assert bounds.statistical_query_epsilon(n, tau) == pytest.approx(bounds.generalisation_epsilon(n, beta))
    else:
        assert bounds.statistical_query_epsilon(n, tau) == 0.0


def test_the_corollary_has_no_epsilon_where_tau_is_below_the_noise() -> None:
    assert bounds.statistical_query_epsilon(10, 0.01) == 0.0


@pytest.mark.parametrize(("n", "tau"), GRID)
def test_generalisation_is_the_probability_bound_of_what_can_be_afforded(n: int, tau: float) -> None:
    c, beta = 1.0 / n, 0.01
    bits = bounds.affordable_information(n, tau, c)
    assert bounds.probability_bound(bits, bounds.mcdiarmid(n, tau, c), beta) == pytest.approx(
        bounds.generalisation_by_information(n, tau, c, beta)
    )
    assert bounds.max_information_pure(bounds.pure_epsilon(n, tau, c), n) == pytest.approx(bits)


@pytest.mark.parametrize(("n", "tau", "c"), [(400, 0.1, 1 / 400), (100, 5.0, 0.3), (30, 2.0, 0.2)])
def test_take_two_is_the_approximate_bound_at_its_own_beta(n: int, tau: float, c: float) -> None:
    x = tau**2 / (n * c**2)
    beta = 2.0 * math.exp(-x)
    bits = bounds.max_information_approximate(bounds.approximate_epsilon(n, tau, c), n, beta)
    assert bits == pytest.approx(bounds.BITS * x * (0.5 + math.sqrt(0.5)))
    assert bounds.probability_bound(bits, bounds.mcdiarmid(n, tau, c), beta) == pytest.approx(
        bounds.generalisation_take_two(n, tau, c)
    )


@pytest.mark.parametrize(("x", "below"), [(5.95, False), (5.96, True), (10.0, True), (100.0, True)])
def test_the_rounded_form_holds_from_six_on(x: float, below: bool) -> None:
    tau = math.sqrt(x / 1_000)
    exact, rounded = (
        f(1_000, tau, 1e-3) for f in (bounds.generalisation_take_two, bounds.generalisation_take_two_rounded)
    )
    assert (exact <= rounded) is below


def test_hoeffding_holds_for_exact_binomials() -> None:
    for n, k in itertools.product((10, 100, 1_000), range(1, 6)):
        tau = k * 0.1 if n == 10 else k * 0.02
        exact = 2 * stats.binom.sf(math.floor(n * (0.5 + tau) + 1e-9), n, 0.5)
        assert exact <= bounds.hoeffding(n, tau)


def test_the_most_of_the_ratio_over_sets_by_brute_force() -> None:
    """Every set of outcomes of 20 random pairs; the seed is fixed and nothing is left to chance."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        p, q = rng.dirichlet(np.full(7, 0.4), 2)
        for delta in (0.0, 0.05, 0.3):
            ratios = []
            for chosen in itertools.product((False, True), repeat=7):
                held = np.array(chosen)
                if p[held].sum() > delta:
                    ratios.append((p[held].sum() - delta) / q[held].sum())
            assert max_divergence(p, q, delta) == pytest.approx(math.log2(max(ratios)), abs=1e-9)


def test_max_divergence_at_its_ends() -> None:
    certain = np.array([1.0, 0.0])
    assert max_divergence(certain, certain) == 0.0
    assert max_divergence(np.array([0.5, 0.5]), certain) == math.inf
    assert max_divergence(np.array([0.5, 0.5]), certain, 0.6) == pytest.approx(math.log2(0.4))
    assert max_divergence(certain, certain, 1.0) == -math.inf


def test_mutual_information_is_at_most_max_information() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        table = rng.dirichlet(np.full(12, 0.3)).reshape(3, 4)
        assert mutual_information(table) <= max_information(table) + 1e-12
        assert independent(table).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("beta", [1e-3, 0.01, 0.1])
def test_the_approximate_bound_for_the_shift_of_normal_data(beta: float) -> None:
    """n normal samples that one epsilon-DP bit each has shifted, as a normal law: its max-information stays below."""
    n, epsilon = 400, 0.1
    shift = math.sqrt(n) * epsilon / 2.0

    def bits(cut: float) -> float:
        return -math.log2(max(1e-300, (stats.norm.sf(cut - shift) - beta) / stats.norm.sf(cut)))

    best = -optimize.minimize_scalar(bits, bounds=(-4, 6), method="bounded").fun
    assert 0.0 < best < bounds.max_information_approximate(epsilon, n, beta)
