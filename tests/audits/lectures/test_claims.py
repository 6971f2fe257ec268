"""What the statements stand on: closed forms, exact laws by other ways, and simulations.

Random tests have fixed seeds, and fail by chance with probability at most 1e-8 each.
"""

from __future__ import annotations

import doctest
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from scipy.linalg import hadamard
from scipy.special import ndtr

from audits.lectures.claims import adaptive_example as example
from audits.lectures.claims import (
    adversary,
    attacks_inference,
    attacks_models,
    bounds,
    conversions,
    releases,
    releases_linkage,
    utility,
    utility_queries,
)
from audits.lectures.claims.adaptive import REUSED, proved_factor, reused_holdouts
from audits.lectures.claims.adaptive_information import geometric_count, mutual_information, randomised_response
from audits.lectures.claims.batches import (
    DELTA,
    DRAWN,
    EPSILON,
    STEPS,
    advanced_epsilon,
    epsilon_of_steps,
    fixed_epsilon,
    noise_for,
    reached_epsilon,
    replaced_epsilon,
)
from audits.lectures.claims.convexity import distances, largest_excess, predicted
from audits.lectures.claims.information import (
    independent,
    max_divergence,
    max_information,
)
from audits.lectures.claims.learning_classes import ALPHA, BETA, CLASSES, Class, at_most, errors
from audits.lectures.claims.learning_parities import answers, drawn, eliminated, elimination_law, reduced
from audits.lectures.claims.private_erm import excess_risks, simulated
from audits.lectures.claims.regressions import largest_move
from audits.lectures.claims.simulations import Example, Holdout, best_of, final_queries, holdouts
from dpaudit.catalogue.attacks.on_tables import least_squares
from dpaudit.claims import GaussianDP, PureDP, compose_optimal
from dpaudit.losses.comparisons import halting, winning
from tests.audits.lectures.statements import truth
from tests.cases import for_each
from tests.catalogue.between import between_epsilons

# --- bounds on adaptive choices --------------------------------------------------------------------------------------


def test_the_examples_hold() -> None:
    run = doctest.testmod(bounds)
    assert (run.failed, run.attempted > 12) == (0, True)


@for_each(("n", "tau"), [*itertools.product((50, 400, 2_000), (0.1, 0.2)), (10, 0.01)])
def test_one_bound_is_another_at_its_own_beta(n: int, tau: float) -> None:
    """The corollary is the theorem at the beta of Hoeffding, and generalisation what information can be afforded."""
    beta = bounds.hoeffding(n, tau)
    afforded = bounds.generalisation_epsilon(n, beta) if beta < 1.0 else 0.0
    assert bounds.statistical_query(n, tau) == pytest.approx(bounds.generalisation_by_dp(beta))
    assert bounds.statistical_query_epsilon(n, tau) == pytest.approx(afforded)
    if n * tau > 1.0:
        c, beta = 1.0 / n, 0.01
        bits = bounds.affordable_information(n, tau, c)
        found = bounds.probability_bound(bits, bounds.mcdiarmid(n, tau, c), beta)
        assert found == pytest.approx(bounds.generalisation_by_information(n, tau, c, beta))
        assert bounds.max_information_pure(bounds.pure_epsilon(n, tau, c), n) == pytest.approx(bits)


@for_each(("n", "tau", "c"), [(400, 0.1, 1 / 400), (100, 5.0, 0.3), (30, 2.0, 0.2)])
def test_take_two_is_the_approximate_bound_at_its_own_beta(n: int, tau: float, c: float) -> None:
    x = tau**2 / (n * c**2)
    beta = 2.0 * math.exp(-x)
    bits = bounds.max_information_approximate(bounds.approximate_epsilon(n, tau, c), n, beta)
    assert bits == pytest.approx(bounds.BITS * x * (0.5 + math.sqrt(0.5)))
    assert bounds.probability_bound(bits, bounds.mcdiarmid(n, tau, c), beta) == pytest.approx(
        bounds.generalisation_take_two(n, tau, c)
    )


@for_each(("x", "below"), [(5.95, False), (5.96, True), (10.0, True), (100.0, True)])
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
    for _ in range(10):
        p, q = rng.dirichlet(np.full(7, 0.4), 2)
        for delta in (0.0, 0.05, 0.3):
            ratios = []
            for chosen in itertools.product((False, True), repeat=7):
                held = np.array(chosen)
                if p[held].sum() > delta:
                    ratios.append((p[held].sum() - delta) / q[held].sum())
            assert max_divergence(p, q, delta) == pytest.approx(math.log2(max(ratios)), abs=1e-9)
        table = rng.dirichlet(np.full(12, 0.3)).reshape(3, 4)
        assert mutual_information(table) <= max_information(table) + 1e-12
        assert independent(table).sum() == pytest.approx(1.0)


def test_max_divergence_at_its_ends() -> None:
    certain = np.array([1.0, 0.0])
    assert max_divergence(certain, certain) == 0.0
    assert max_divergence(np.array([0.5, 0.5]), certain) == math.inf
    assert max_divergence(np.array([0.5, 0.5]), certain, 0.6) == pytest.approx(math.log2(0.4))
    assert max_divergence(certain, certain, 1.0) == -math.inf


@for_each("beta", [1e-3, 0.01, 0.1])
def test_the_approximate_bound_for_the_shift_of_normal_data(beta: float) -> None:
    """n normal samples that one epsilon-DP bit each has shifted, as a normal law: its max-information stays below."""
    n, epsilon = 400, 0.1
    shift = math.sqrt(n) * epsilon / 2.0

    def bits(cut: float) -> float:
        return -math.log2(max(1e-300, (stats.norm.sf(cut - shift) - beta) / stats.norm.sf(cut)))

    best = -optimize.minimize_scalar(bits, bounds=(-4, 6), method="bounded").fun
    assert 0.0 < best < bounds.max_information_approximate(epsilon, n, beta)


# --- adaptive data analysis ------------------------------------------------------------------------------------------


SIX_DEVIATIONS = 6.0  # exceeded with probability 2e-9


@for_each("per_group", [2, 5])
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


@for_each("beta", [0.3, 1e-3, 1e-9])
def test_the_factor_of_the_theorem_is_the_integral_of_the_tail(beta: float) -> None:
    """Pr(bad | y) <= int_0^oo min(beta, exp(-2 (ln u)^2 / (n epsilon^2))) du, with n epsilon^2 = ln(1 / beta) / 2."""
    half = math.log(1.0 / beta) / 2.0
    tail, _ = integrate.quad(lambda v: math.exp(v - 2.0 * v * v / half), half, half + 60.0, epsabs=0.0)
    assert (beta * math.exp(half) + tail) / math.sqrt(beta) == pytest.approx(proved_factor(beta), rel=1e-9)
    assert proved_factor(beta) <= 4.0 / 3.0


@for_each("noise", [0.0, 2.0, math.inf])
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


# --- gradient descent ------------------------------------------------------------------------------------------------


def test_the_noise_of_full_batches_is_that_of_gaussian_dp() -> None:
    mu = GaussianDP(1.0).lower(EPSILON, DELTA)
    assert noise_for(EPSILON, 1.0, STEPS) == pytest.approx(math.sqrt(STEPS) / mu, rel=3e-4)
    numbers = truth("dp-gd-noise-on-the-average").numbers
    assert numbers["sigma / Delta, replaced"] == 2.0 * numbers["sigma / Delta, added or removed"]


def test_the_noise_of_small_batches_keeps_epsilon() -> None:
    """The two-sided bracket at a finer grid, for the batches of 100 of 1,000."""
    low, high = between_epsilons(DELTA, noise_for(EPSILON, 0.1, STEPS), 0.1, STEPS, 2.5e-4)
    assert low <= EPSILON * 1.003
    assert high >= EPSILON * 0.997


def test_the_figure_keeps_its_order() -> None:
    """Exact is least, advanced composition is no better than the optimal composition of what it composes."""
    for steps in DRAWN:
        assert epsilon_of_steps(1.0, 0.05, steps) < min(advanced_epsilon(steps), epsilon_of_steps(1.0, 1.0, steps))
    whole = GaussianDP(1.0).epsilon_at(DELTA / (2.0 * 8 * 0.05))
    each = math.log1p(0.05 * math.expm1(whole))
    assert compose_optimal(PureDP(each), 8).epsilon_at(DELTA / 2.0) <= advanced_epsilon(8)


def test_the_kinds_of_batches_keep_their_order() -> None:
    """Replaced is at most twice as far as added or removed; a full batch tells more than a Poisson one does."""
    for steps in (1, 4):
        one, two = epsilon_of_steps(8.0, 0.5, steps), replaced_epsilon(8.0, 0.5, steps)
        assert one < two < reached_epsilon(8.0, 0.5, steps) <= fixed_epsilon(8.0, 0.5, steps) * (1.0 + 1e-5)
    assert reached_epsilon(8.0, 1.0, 4) == pytest.approx(GaussianDP(0.5).epsilon_at(DELTA), rel=1e-4)


def test_gradient_descent_is_as_far_as_its_eigenvalues_say() -> None:
    for rate in (0.5, 1.0, 1.9):
        assert predicted(5.0, rate, 20) == pytest.approx(distances(5.0, rate, 20), rel=1e-9, abs=1e-12)
    assert largest_excess(lambda x: x**2, (-1.0, 1.0)) <= 1e-12 < largest_excess(lambda x: -(x**2), (-1.0, 1.0))


# --- learning --------------------------------------------------------------------------------------------------------


@for_each("learned_class", CLASSES, ids=lambda each: each.title)
def test_a_sample_that_is_much_too_small_fails_more_often_than_beta(learned_class: Class) -> None:
    """The converse of theorem 3.2: the simulation can tell. Seeded."""
    failed = int(np.sum(errors(learned_class, learned_class.records // 1000 + 1, 200, seed=3) > ALPHA))
    assert stats.binom.sf(failed - 1, 200, BETA) < 1e-9


def test_no_failure_in_200_samples_is_less_than_beta() -> None:
    assert at_most(0, 200) < BETA < at_most(1, 200)


def test_a_parity_is_the_only_one_that_its_own_query_tells() -> None:
    """psi(x, y) = [y is the parity s of x] is 1 for s and 1/2 for the others; a mean of labels tells none."""
    sign = hadamard(16, dtype=float)[5]
    told = answers((1.0 + sign) / 2.0, (1.0 - sign) / 2.0)
    assert told.tolist() == [1.0 if s == 5 else 0.5 for s in range(16)]
    assert answers(np.zeros(16), np.ones(16)).tolist() == [0.0, *[0.5] * 15]


def test_elimination_needs_as_many_records_as_bits() -> None:
    """Full rank of m random vectors of n bits: the product of 1 - 2^-(m - i). A chance of 1e-9 to fail."""
    assert eliminated(6, 5, 50, seed=0) == 0.0
    exact = math.prod(1.0 - 2.0 ** -(8 - i) for i in range(6))
    assert abs(eliminated(6, 8, 1_000, seed=1) - exact) < 6.2 * math.sqrt(exact * (1.0 - exact) / 1_000)


def test_elimination_solves_what_can_be_solved() -> None:
    """Every solution that is drawn fits the equations, all of them are drawn, and a contradiction is seen."""
    rows, rng = [0b1_0110, 0b0_0011, 0b1_0101], np.random.default_rng(2)  # the last is the sum of the others
    basis = reduced(rows, 4)
    assert basis is not None
    assert len(basis) == 2
    fits = {s for s in range(16) if all(((row & s & 15).bit_count() & 1) == row >> 4 for row in rows)}
    assert {drawn(basis, 4, rng) for _ in range(400)} == fits  # one of the four is missed with 4 (3/4)^400
    assert reduced([*rows, 0b0_0101], 4) is None


def test_the_law_of_private_elimination_is_one() -> None:
    """One record x = 1, y = 1 of one bit: nothing with 1/2; s = 1 with (p + (1 - p) / 2) / 2, p = epsilon / 4."""
    assert np.allclose(elimination_law([0b11], 1), [0.75 / 4.0, (0.25 + 0.75 / 2.0) / 2.0, 0.5])


def test_optima_never_move_further_than_strong_convexity_allows() -> None:
    assert all(max(largest_move(weight, 6, seed=4)) <= 1.0 + 1e-9 for weight in (0.3, 0.5))


def test_noise_on_the_output_costs_its_closed_form_where_the_objective_is_flat() -> None:
    """Little noise: (J'' / 2) times the variance 2 scale^2, where J'' = lambda + the mean curvature of the loss."""
    output, _ = excess_risks(400, 0.2, 1.0)
    scale = 2.0 / (400 * 0.2)
    assert 0.2 * scale**2 < output < (0.2 + 0.25) * scale**2


def test_the_excess_falls_with_the_square_of_the_records_and_tells_where_it_is_exact() -> None:
    """Four times the records: a sixteenth, by both kinds of noise; seeded, and the same noise in both."""
    for few, many in zip(simulated(2, 1000), simulated(2, 4000), strict=True):
        assert 10.0 < few.mean / many.mean < 25.0
        assert few.mean < few.mean_bound
        assert few.mean_bound / many.mean_bound > 15.0


# --- releases and attacks --------------------------------------------------------------------------------------------


def test_certainty_in_the_notes_tables() -> None:
    assert [releases.certainty(each) for each in releases.FOUR.values()] == [Fraction(1, 2), Fraction(1, 2), 1]
    assert [releases.certainty(each) for each in releases.SIX.values()] == [Fraction(1, 3), Fraction(1, 2)]
    assert releases.both(releases.FOUR[releases.YOUNG], releases.SIX[releases.BELOW_35]) == {"AIDS": 1}
    old = releases.both(releases.FOUR[releases.OLD], releases.SIX[releases.FROM_35])
    assert old == {"Cancer": Fraction(3, 7), "Viral Infection": Fraction(4, 7)}


def test_the_inner_product_test_with_noise_by_simulation() -> None:
    """Score times n: normal around 1 and 0; the variance of the noise adds to that of the cohort."""
    n, d, runs = attacks_inference.PATIENTS, attacks_inference.VARIANTS, 4_000
    sigma = attacks_inference.noise_of(n, d, 3.0, attacks_inference.DELTA)
    rng = np.random.default_rng(11)
    person = 2.0 * rng.integers(0, 2, (runs, d)) - 1.0
    rest = 2.0 * rng.binomial(n - 1, 0.5, (runs, d)) - (n - 1)
    other = 2.0 * rng.integers(0, 2, (runs, d)) - 1.0
    noise = sigma * rng.standard_normal((runs, d))
    rates = [np.mean(((rest + each) / n + noise) * person @ np.full(d, 1 / d) > 0.5 / n) for each in (person, other)]
    assert rates[0] - rates[1] == pytest.approx(attacks_inference.homer_with_noise(3.0), abs=6 * math.sqrt(0.5 / runs))


def test_no_release_gives_more_bits_than_epsilon_allows() -> None:
    for epsilon in (1.0, 3.0):
        found = attacks_inference.recovered(least_squares, epsilon, 500)
        assert found < attacks_inference.most_bits(epsilon)
    assert attacks_inference.most_bits(0.0) == 0.5
    assert attacks_inference.most_bits(1.0) == pytest.approx(stats.logistic.cdf(1.0))


def test_how_many_are_alone_in_a_town() -> None:
    """With c equally likely combinations a person is alone with (1 - 1/c)^(n - 1); the shares deviate by 0.01."""
    expected = {"date of birth": 60 * 365, "date of birth and sex": 2 * 60 * 365, "all three": 14 * 60 * 365}
    for name, combinations in expected.items():
        alone = releases_linkage.alone(releases_linkage.KNOWN[name])
        assert alone == pytest.approx((1 - 1 / combinations) ** (releases_linkage.TOWN - 1), abs=0.025)


def test_one_of_ten_candidates_is_named_no_more_often_than_epsilon_allows() -> None:
    """400 runs in each of ten worlds: six deviations."""
    for attack, epsilon in (("last", 3.0), ("joined", 3.0), ("last", 100.0)):
        found = attacks_models.found_out(attack, epsilon)
        assert found <= math.exp(epsilon) / (math.exp(epsilon) + 9) + 6 * 0.5 / math.sqrt(4_000)
    assert found > 0.5, "with little noise most are named"


def test_what_no_change_of_a_record_shows() -> None:
    assert adversary.unchanged_functions(2) == (64, 2, 2)


# --- utility and conversions -----------------------------------------------------------------------------------------


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


def test_the_tail_of_normal_noise_and_the_least_rho() -> None:
    losses = np.random.default_rng(3).normal(0.5, 1.0, 200_000)  # N(rho, 2 rho) at rho = 0.5
    share = conversions.normal_tail(1.0, 0.5)
    assert abs(float(np.mean(losses > 1.5)) - share) < 6.0 * math.sqrt(share / len(losses))  # by chance: 2e-9
    p, q = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    assert conversions.concentrated(p, q) == pytest.approx(math.log(3.0) / 2.0, rel=1e-3)  # the relative entropy
