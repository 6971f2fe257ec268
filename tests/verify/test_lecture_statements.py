"""Statements of lecture notes about privacy, each with its true value from the verifier's own engines.

Rows a to j. Upper bounds are proofs, optimal composition or exact replay; where a statement is called tight, loose or
wrong, the exact loss of a pair or an enclosed delta says so. Nothing depends on chance.
"""

# ruff: noqa: N803
from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from audits.lectures.claims import holdout
from audits.lectures.claims.proofs import thresholdout
from dpaudit.claims.calculus import compose_basic, compose_optimal
from dpaudit.claims.pure import PureDP
from dpaudit.verify.alignment import prove
from dpaudit.verify.checker import check
from dpaudit.verify.checker import epsilon as proof_epsilon
from dpaudit.verify.enclosure import Enclosure
from dpaudit.verify.integrals import (
    Between,
    Event,
    Line,
    Slice,
    gaussian_delta,
    gaussian_mu,
    laplace_delta,
    laplace_epsilon,
    log_ratio,
    uniform_delta,
)
from dpaudit.verify.language import read
from dpaudit.verify.proof import Adjacency, Proof
from dpaudit.verify.replay import Choices, FiniteLosses, replay
from dpaudit.verify.witnesses import pair_loss
from dpaudit.verify.witnesses.outputs import at_least
from tests.cases import for_each

ROUNDED_UP = 1.0 + 1e-9  # optimal composition rounds its deltas up by less than this


def proved(function: Callable[..., Any], adjacency: Adjacency, claim: str, fixed: dict[str, int] | None = None) -> str:
    """The cost of a proof that the search finds and the checker accepts, for any number of answers."""
    proof = prove(read(function), adjacency, claim=claim, fixed=fixed)
    assert isinstance(proof, Proof), proof
    assert proof.answers is None
    checked = check(proof)
    assert checked.keeps_claim
    return checked.cost


def of_laws(first: dict[int, Fraction], second: dict[int, Fraction]) -> FiniteLosses:
    """The losses of one output with these exact laws on two datasets."""
    return FiniteLosses.of([0, 1], [(0, 1)], [first, second])


# --- a: sparse vector, threshold redrawn --------------------------------------------------------------------------


def sparse(q, rng, eps, c, T):
    assert eps > 0
    assert c >= 1
    t = T + rng.laplace(scale=2 * c / eps)
    count = 0
    out = []
    for x in q:
        if x + rng.laplace(scale=4 * c / eps) >= t:
            out.append(True)
            count += 1
            if count >= c:
                break
            t = T + rng.laplace(scale=2 * c / eps)
        else:
            out.append(None)
    return out


@pytest.mark.parametrize("c", [1, 2, 3, 10, None])
def test_a_sparse_with_redraw_is_epsilon_dp(c: int | None) -> None:
    """sigma = 2 c / epsilon for the threshold, 2 sigma for the queries; None: for every c at once."""
    assert proved(sparse, "all-differ", "eps", {"c": c} if c else None) == "eps"


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(2)])
def test_a_is_tight(epsilon: Fraction) -> None:
    """32 queries, two epochs of 15 below and one above, all within 2 of the threshold."""
    first, second = [1] * 15 + [-1], [2] * 15 + [-2]
    output = ([None] * 15 + [True]) * 2
    found = pair_loss(read(sparse), first * 2, second * 2, {"eps": epsilon, "c": 2, "T": 0}, [output]).forward
    assert 0.9999 * epsilon <= found.at_event.lower <= found.at_event.upper <= epsilon


# --- g: report noisy max -------------------------------------------------------------------------------------------


def noisy_max(q, rng, eps):
    assert eps > 0
    best = 0
    winner = 0
    for i in range(len(q)):
        y = q[i] + rng.laplace(scale=1 / eps)
        if i == 0 or y > best:
            winner = i
            best = y
    return winner


@pytest.mark.parametrize("adjacency", ["up", "down"])
def test_g_noisy_max_over_counts_is_epsilon_dp_when_a_record_comes_or_goes(adjacency: Adjacency) -> None:
    """All counts move one way; both ways together are adding and removing."""
    assert proved(noisy_max, adjacency, "eps") == "eps"


def test_g_it_is_tight_for_counts() -> None:
    found = pair_loss(read(noisy_max), [0, 40, 40], [1, 40, 40], {"eps": Fraction(1)})
    assert found.exact
    assert 1.0 - 1e-12 <= found.backward.loss.lower <= 1.0 <= found.backward.loss.upper + 1e-12


def test_g_it_is_two_epsilon_where_counts_move_both_ways() -> None:
    """General queries of sensitivity 1, and counts when a record is replaced: proved, and reached with three."""
    assert proved(noisy_max, "all-differ", "2*eps") == "2*eps"
    unkept = prove(read(noisy_max), "all-differ", claim="eps")
    assert isinstance(unkept, Proof)
    assert check(unkept).keeps_claim is False
    found = pair_loss(read(noisy_max), [0, 40, 40], [1, 39, 39], {"eps": Fraction(1)})
    assert 2.0 - 1e-12 <= found.backward.loss.lower <= found.backward.loss.upper <= 2.0 + 1e-12


def test_g_no_extreme_answers_are_needed_to_see_it() -> None:
    found = pair_loss(read(noisy_max), [0] * 10, [1] + [-1] * 9, {"eps": Fraction(1)})
    assert found.backward.loss.upper < found.forward.loss.lower or found.forward.loss.upper < found.backward.loss.lower
    assert max(found.forward.loss.lower, found.backward.loss.lower) == pytest.approx(1.6072, abs=6e-5)


# --- h: Thresholdout ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("budget", "cost"), [(1, "2/sigma"), (5, "10/sigma"), (None, "2*budget/sigma")])
def test_h_thresholdout_keeps_its_budget(budget: int | None, cost: str) -> None:
    """Numbers in units of 1 / n, by which a record moves them: 2 B / (sigma n) for sigma in the units of answers.

    What is compared and what is told are two numbers; an analyst may choose each query by the outputs so far.
    """
    assert proved(thresholdout, "all-differ", "2*budget/sigma", {"budget": budget} if budget else None) == cost


@pytest.mark.parametrize("budget", [1, 2])
def test_h_it_loses_what_the_catalogue_says_of_holdout_sets(budget: int) -> None:
    """Per answer 12 queries 13 / n away from the training set, that go to 14, and one 11 away; the threshold is 12."""
    first, second = [13] * 12 + [11, 19], [14] * 12 + [10, 18]
    given, output = {"sigma": 2 * budget, "budget": budget, "threshold": 12}, [None] * 12 + [at_least(200)]
    found = pair_loss(read(thresholdout), first * budget, second * budget, given, [output * budget])
    assert found.loss.lower == pytest.approx(holdout.loss(holdout.EPOCH * budget, budget), rel=1e-9)


def test_h_one_positive_answer_costs_a_threshold_a_comparison_and_a_value() -> None:
    """1/2 + 1/2 + 1 over sigma; without the value noise's share the claim would not be kept."""
    proof = prove(read(thresholdout), "all-differ", claim="3*budget/(2*sigma)")
    assert isinstance(proof, Proof)
    assert check(proof).keeps_claim is False
    assert proof_epsilon(proof, {"budget": 3, "sigma": 4, "threshold": 0}) == Fraction(3, 2)


# --- b: sparse vector with sigma = 2 sqrt(2 c ln(1/delta)) / epsilon -------------------------------------------


def sparse_delta(c: int, epsilon: float, delta: float, factor: float = 2.0) -> float:
    """The delta of c epochs that are 2/sigma-DP each, sigma = 2 sqrt(factor c ln(1/delta)) / epsilon."""
    each = epsilon / math.sqrt(factor * c * math.log(1.0 / delta))
    return compose_optimal(PureDP(each), c).delta_at(epsilon)


@pytest.mark.parametrize(("epsilon", "delta", "argued"), [(1.0, 0.01, 1.109), (5.0, 1e-6, 5.919)])
def test_b_advanced_composition_gives_more_than_epsilon(epsilon: float, delta: float, argued: float) -> None:
    c = 1000
    each = epsilon / math.sqrt(2.0 * c * math.log(1.0 / delta))
    assert epsilon + c * each * math.expm1(each) == pytest.approx(argued, abs=6e-4)
    assert sparse_delta(c, epsilon, delta) < delta  # and yet it is true here


@for_each(
    ("c", "delta", "ends"),
    [
        *((1000, delta, ends) for delta, ends in ((1e-2, 6.27), (1e-4, 7.59), (1e-6, 8.47), (1e-9, 9.47))),
        *((10_000, delta, ends) for delta, ends in ((1e-2, 6.25), (1e-4, 7.53), (1e-6, 8.35), (1e-9, 9.22))),
    ],
)
def test_b_optimal_composition_saves_it_up_to_some_epsilon(c: int, delta: float, ends: float) -> None:
    assert sparse_delta(c, ends - 0.01, delta) <= delta
    assert sparse_delta(c, ends + 0.01, delta) > delta * ROUNDED_UP


@pytest.mark.parametrize(("epsilon", "delta", "times"), [(8.0, 0.01, 2.27), (20.0, 1e-6, 186.6)])
def test_b_beyond_it_the_epochs_exceed_delta(epsilon: float, delta: float, times: float) -> None:
    assert sparse_delta(1000, epsilon, delta) / delta == pytest.approx(times, rel=2e-3)


def test_b_few_epochs_need_no_delta_at_all() -> None:
    assert all(sparse_delta(c, 20.0, delta) == 0.0 for c in (1, 2, 5) for delta in (0.01, 1e-6))


@pytest.mark.parametrize("delta", [0.01, 1e-4, 1e-6, 1e-9])
def test_b_the_sigma_of_the_book_is_safe_and_loose(delta: float) -> None:
    """sqrt(32 c ln(1/delta)) / epsilon, twice as large."""
    for c in (1, 10, 1000):
        assert all(sparse_delta(c, epsilon, delta, 8.0) <= delta for epsilon in (0.1, 1.0, 5.0, 10.0, 20.0))
        assert sparse_delta(c, 1.0, delta, 8.0) <= delta / 4e8


# --- c: normal noise ---------------------------------------------------------------------------------------------


def usual_sigma(epsilon: float, delta: float) -> float:
    return math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon


def other_sigma(epsilon: float, delta: float, factor: float) -> float:
    """(c + sqrt(c^2 + epsilon)) / (epsilon sqrt 2), c^2 = factor ln(2 / (sqrt(16 delta + 1) - 1))."""
    square = factor * math.log(2.0 / (math.sqrt(16.0 * delta + 1.0) - 1.0))
    return (math.sqrt(square) + math.sqrt(square + epsilon)) / (epsilon * math.sqrt(2.0))


def ratio(sigma: float, epsilon: float, delta: float) -> float:
    """The true delta over the stated one, rounded up."""
    return gaussian_delta(1.0 / sigma, epsilon).upper / delta


def test_c1_is_right_and_loose_for_epsilon_below_1() -> None:
    grid = [(e, d) for e in (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999) for d in (0.9, 0.5, 0.1, 0.01, 1e-5, 1e-10)]
    assert max(ratio(usual_sigma(*at), *at) for at in grid) <= 0.32
    assert max(ratio(usual_sigma(e, d), e, d) for e, d in grid if d <= 1e-5) <= 0.0042


def test_c1_at_epsilon_1() -> None:
    sigma, true = usual_sigma(1.0, 1e-5), gaussian_delta(1.0 / usual_sigma(1.0, 1e-5), 1.0)
    assert round(sigma, 3) == 4.845
    assert 4.1e-8 <= true.lower <= true.upper <= 4.12e-8
    assert round(1.0 / gaussian_mu(1.0, 1e-5).middle, 3) == 3.731


@pytest.mark.parametrize(("delta", "ends"), [(0.01, 6.77), (1e-5, 8.42), (1e-10, 9.85)])
def test_c1_ends_well_beyond_1(delta: float, ends: float) -> None:
    assert ratio(usual_sigma(ends - 0.01, delta), ends - 0.01, delta) < 1.0
    assert gaussian_delta(1.0 / usual_sigma(ends + 0.01, delta), ends + 0.01).lower > delta


@pytest.mark.parametrize(("delta", "times"), [(0.01, 4.058), (1e-5, 2.265), (1e-10, 1.086)])
def test_c1_is_wrong_at_epsilon_10(delta: float, times: float) -> None:
    assert ratio(usual_sigma(10.0, delta), 10.0, delta) == pytest.approx(times, abs=6e-4)


@pytest.mark.parametrize(("factor", "worst"), [(2.0, 0.926), (1.0, 0.932)])
def test_c2_is_sound_with_and_without_the_factor_2(factor: float, worst: float) -> None:
    epsilons, deltas = (1e-3, 0.01, 0.1, 1.0, 10.0, 100.0), (1e-12, 1e-6, 1e-3, 0.1, 0.3, 0.4999)
    found = max(ratio(other_sigma(e, d, factor), e, d) for e in epsilons for d in deltas)
    assert worst - 0.002 <= found <= worst


def test_c2_with_the_factor_is_worse_than_c1() -> None:
    with_factor, without = (other_sigma(1.0, 1e-5, factor) for factor in (2.0, 1.0))
    assert (round(with_factor, 3), round(without, 3)) == (6.442, 4.609)
    assert gaussian_delta(1.0 / with_factor, 1.0).upper == pytest.approx(2.2e-12, rel=0.02)
    assert gaussian_delta(1.0 / without, 1.0).upper == pytest.approx(1.4e-7, rel=0.04)
    assert without < usual_sigma(1.0, 1e-5) < with_factor


# --- d: noise with density ~ exp(-epsilon ||z|| / (2 GS)) -------------------------------------------------------


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(2)])
@pytest.mark.parametrize("sensitivity", [Fraction(1), Fraction(3)])
def test_d_the_half_in_the_exponent_halves_the_loss(epsilon: Fraction, sensitivity: Fraction) -> None:
    """On the line the density is Lap(2 GS / epsilon); without the 2 the loss is epsilon."""
    half = laplace_epsilon(sensitivity, 2 * sensitivity / epsilon)
    whole = laplace_epsilon(sensitivity, sensitivity / epsilon)
    assert half.lower <= float(epsilon / 2) <= half.upper
    assert whole.lower <= float(epsilon) <= whole.upper
    assert half.upper - half.lower <= 1e-15
    assert laplace_delta(sensitivity, 2 * sensitivity / epsilon, epsilon / 2).upper == 0.0
    assert laplace_delta(sensitivity, 2 * sensitivity / epsilon, epsilon / 2 - Fraction(1, 1000)).lower > 0.0


# --- e: uniform noise ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 50.0])
def test_e_uniform_noise_on_a_count_has_no_epsilon(epsilon: float) -> None:
    """Noise on [0, 5]: the outputs in [x, x + 1), [x + 1, x + 5] and (x + 5, x + 6] tell all there is to tell."""
    pair = of_laws({0: Fraction(1, 5), 1: Fraction(4, 5)}, {1: Fraction(4, 5), 2: Fraction(1, 5)})
    assert math.isinf(pair.epsilon_at(0.19).lower)
    delta = pair.delta(epsilon)
    assert delta.lower <= 0.2 <= delta.upper <= 0.2 + 1e-15
    assert uniform_delta(1, 5).lower <= 0.2 <= uniform_delta(1, 5).upper


def test_e_uniform_whole_numbers() -> None:
    def noisy_count(data: int, rng: Any) -> int:
        return data + int(rng.integers(6))

    found = replay(noisy_count, range(8), lambda x, y: abs(x - y) == 1)
    assert math.isinf(found.epsilon.upper)
    assert found.delta(0.0).lower <= 1 / 6 <= found.delta(0.0).upper
    assert found.delta(30.0).lower <= 1 / 6 <= found.delta(30.0).upper <= 1 / 6 + 1e-15


@pytest.mark.parametrize("n", [1, 10, 1000])
def test_e_uniform_noise_on_a_mean(n: int) -> None:
    """Noise on [-L/n, L/n]; one record moves the mean by the length of the data's interval over n."""
    width = Fraction(2, n)
    assert uniform_delta(Fraction(1, n), width).lower <= 0.5 <= uniform_delta(Fraction(1, n), width).upper
    assert uniform_delta(Fraction(2, n), width).upper == 1.0  # an interval of length 2 L: disjoint supports
    assert uniform_delta(Fraction(2, n), width).lower >= 1.0 - 2e-16


# --- f: advanced composition ---------------------------------------------------------------------------------------


def first_formula(k: int, epsilon: float, slack: float) -> float:
    return epsilon * math.sqrt(2.0 * k * math.log(1.0 / slack)) + k * epsilon * math.expm1(epsilon)


def second_formula(k: int, epsilon: float, slack: float) -> float:
    return epsilon * math.sqrt(2.0 * k * math.log(1.0 / slack)) + k * epsilon**2 / 2.0


@for_each("slack", [0.1, 1e-3, 1e-6, 1e-12])
@for_each("k", [1, 2, 7, 30, 100, 1000])
def test_f_both_formulas_are_sound(k: int, slack: float) -> None:
    for epsilon in (0.001, 0.01, 0.05, 0.1, 0.3, 1.0, 2.0):
        least = compose_optimal(PureDP(epsilon), k).epsilon_at(slack)
        assert least <= second_formula(k, epsilon, slack) <= first_formula(k, epsilon, slack)


def test_f_the_example_does_not_follow_from_the_first_formula() -> None:
    k, slack = 10_000, math.exp(-32)
    assert round(first_formula(k, 1 / 800, slack), 4) == 1.0156
    assert round(second_formula(k, 1 / 800, slack), 4) == 1.0078
    assert round(compose_optimal(PureDP(1 / 800), k).epsilon_at(slack), 4) == 0.8916
    assert first_formula(k, 1 / 812.3, slack) == pytest.approx(1.0, abs=5e-5)
    assert second_formula(k, 1 / 806.2, slack) == pytest.approx(1.0, abs=5e-5)
    enough, short = (compose_optimal(PureDP(1 / x), k).epsilon_at(slack) for x in (715.6, 715.4))
    assert enough <= 1.0 < short


def test_f_few_releases_are_better_off_with_the_plain_sum() -> None:
    assert round(first_formula(10, 0.1, 1e-6), 2) == 1.77
    assert round(second_formula(10, 0.1, 1e-6), 2) == 1.71
    assert round(compose_optimal(PureDP(0.1), 10).epsilon_at(1e-6), 4) == 0.9994


# --- i: the exponential mechanism ------------------------------------------------------------------------------------

LOSSES = [
    [Fraction(0), Fraction(1), Fraction(1, 2)],
    [Fraction(1), Fraction(0), Fraction(1, 2)],
    [Fraction(1), Fraction(1), Fraction(0)],
    [Fraction(0), Fraction(0), Fraction(1)],
    [Fraction(1), Fraction(0), Fraction(0)],
]  # of each type of record, for three candidates


def chosen(data: tuple[int, ...], rng: Choices, factor: float) -> int:
    """Candidate j with probability proportional to exp(factor u_j / 2), u_j minus the average loss."""
    utilities = [-sum((LOSSES[record][j] for record in data), Fraction(0)) / len(data) for j in range(3)]
    return rng.finite([math.exp(factor * float(utility) / 2.0) for utility in utilities])


def one_record_differs(x: tuple[int, ...], y: tuple[int, ...]) -> bool:
    return sum((Counter(x) - Counter(y)).values()) == 1


def exponential_mechanism(factor: float) -> Enclosure:
    """Five records of five types, one replaced: their order does not matter."""
    domain = list(itertools.combinations_with_replacement(range(5), 5))
    return replay(chosen, domain, one_record_differs, parameters={"factor": factor}, generator="replay").epsilon


def test_i_is_right_where_delta_bounds_the_loss_of_one_record() -> None:
    """epsilon = 1, Delta = 1: the exponent is n u / 2, and u, an average, has sensitivity 1 / n."""
    assert exponential_mechanism(5.0).upper == pytest.approx(0.934453610, abs=1e-9)


def test_i_is_wrong_where_delta_is_the_sensitivity_of_the_utility() -> None:
    """Delta = 1 / n: the exponent is n^2 u / 2, and the loss is nearly n epsilon."""
    assert 4.0 < exponential_mechanism(25.0).lower <= exponential_mechanism(25.0).upper <= 5.0


# --- j: replacing a record and removing one --------------------------------------------------------------------------


def corner(counts: list[Fraction], scale: Fraction, far: tuple[Fraction, Fraction]) -> Event:
    """The first noisy count is below its end, the second above: a product of independent Laplace draws."""
    first = Between("laplace", scale, (), (Line(0, far[0] - counts[0]),))
    second = Between("laplace", scale, (Line(0, far[1] - counts[1]),), ())
    return ((Slice(None, Fraction(1), None, None, (((first,),), ((second,),))),),)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(3)])
def test_j_a_histogram_loses_twice_as_much_when_a_record_is_replaced(epsilon: Fraction) -> None:
    """The record leaves one cell and enters another; each has Lap(1/epsilon). The largest ratio is at the far ends."""
    before, after = [Fraction(3), Fraction(2)], [Fraction(2), Fraction(3)]
    far = (Fraction(-5), Fraction(5))
    p, q = (corner(counts, 1 / epsilon, far) for counts in (after, before))
    loss = log_ratio(p, q)
    assert loss.lower <= 2.0 * float(epsilon) <= loss.upper
    assert loss.upper - loss.lower <= 1e-12
    upper = compose_basic([PureDP(float(epsilon))] * 2).epsilon_at(0.0)
    assert upper == pytest.approx(2.0 * float(epsilon), abs=1e-15)
    removed = log_ratio(*(corner(counts, 1 / epsilon, far) for counts in ([Fraction(2), Fraction(2)], before)))
    assert removed.upper == pytest.approx(float(epsilon), abs=1e-12)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(3)])
def test_j_a_single_count_loses_no_more_when_a_record_is_replaced(epsilon: Fraction) -> None:
    """One record more or less, or one replaced: the count moves by at most 1 either way."""
    loss = laplace_epsilon(1, 1 / epsilon)
    assert loss.lower <= float(epsilon) <= loss.upper < 1.0001 * float(epsilon)


@for_each("mu", [0.3, 0.5, 1.0, 3.0])
@for_each("epsilon", [0.1, 1.0, 4.0])
def test_j_with_a_delta_it_is_twice_epsilon_and_more_than_twice_delta(mu: float, epsilon: float) -> None:
    """(epsilon, delta) becomes (2 epsilon, (1 + e^epsilon) delta): normal noise, where replacing moves twice as far."""
    removed, replaced = gaussian_delta(mu, epsilon), gaussian_delta(2.0 * mu, 2.0 * epsilon)
    assert removed.lower < replaced.lower
    assert replaced.upper <= (1.0 + math.exp(epsilon)) * removed.lower


def test_j_twice_delta_would_not_do() -> None:
    """Three outputs whose first one loses as much as it may, from x to nothing and from nothing to y: 4 delta."""
    delta, ratio_ = Fraction(1, 100), Fraction(3)  # e^epsilon = 3
    first, last = Fraction(1, 50), Fraction(1, 100)
    nothing, with_x, with_y = (
        {0: first_of, 1: 1 - first_of - last, 2: last}
        for first_of in (first, ratio_ * first + delta, (first - delta) / ratio_)
    )
    one_step = [of_laws(each, nothing).delta(math.log(3.0)).upper for each in (with_x, with_y)]
    assert max(one_step) <= float(delta) + 1e-12
    two_steps = of_laws(with_x, with_y).delta(2.0 * math.log(3.0))
    assert two_steps.lower == pytest.approx(4.0 * float(delta), rel=1e-9)
