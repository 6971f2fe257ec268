"""Bounds from one training: valid against the best mechanism there is, tight, and the values of other tools.

Guesses whose number was given, weighted guesses, the recursion against a whole curve; and the product form, which
assumes that canaries are answered independently.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, binom

from dpaudit.certify.binomial import lower_limit
from dpaudit.claims import ApproximateDP, GaussianDP, PureDP
from dpaudit.errors import InvalidSpec
from dpaudit.scores import counts, one_run
from dpaudit.scores.one_run import Guesses, Weights, design, epsilon_lower, p_value, parameter_lower, tail
from tests.cases import for_each
from tests.scores.naive import guess_vectors, largest_chance, published_p_value, weighted_tail, weighted_vectors

ORACLE = json.loads(Path(__file__).with_name("oracle_values.json").read_text())["canary"]
LP, ALPHA = 1e-7, 0.05  # what the linear program is good to
PUBLISHED = [  # mu, m, r, mistakes, epsilon at 1e-5: the recorded outcomes of 2509.08704's repository
    (0.5, 1_000, 100, 26, 1.193),
    (0.5, 100_000, 10_000, 2585, 1.917),
    (1.0, 1_000, 500, 103, 3.756),
    (1.0, 10_000, 5_000, 1034, 4.179),
    (2.0, 1_000, 1_000, 159, 9.004),
    (2.0, 100_000, 100_000, 15866, 9.900),
]


def fixed(right: int, made: int, canaries: int) -> Guesses:
    return Guesses(right, made, canaries, fixed=True)


def logistic(epsilon: float) -> float:
    return 1.0 / (1.0 + math.exp(-epsilon))


@for_each(("canaries", "made"), [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)])
@for_each(("epsilon", "delta"), [(0.0, 0.01), (0.0, 0.1), (0.7, 0.0), (0.7, 0.1), (2.0, 0.003), (2.0, 0.01)])
def test_valid_no_mechanism_does_better(canaries: int, made: int, epsilon: float, delta: float) -> None:
    outputs, claim = guess_vectors(canaries, made), ApproximateDP(epsilon, delta)
    for right in range(1, made + 1):
        best = largest_chance(canaries, epsilon, delta, outputs, lambda v, r, least=right: v >= least)
        seen = fixed(right, made, canaries)
        assert best <= p_value(seen, epsilon, delta) + LP
        assert best <= one_run.curve_p_value(seen, claim) + 2e-6


@for_each(("weights", "canaries"), [((2, 1), 2), ((2, 1), 3), ((2, 2, 1), 3), ((3, 1, 1), 3), ((2, 1, 1), 3)])
@for_each(("epsilon", "delta"), [(0.0, 0.02), (0.7, 0.0), (1.5, 0.05)])
def test_valid_no_mechanism_does_better_by_weights(
    weights: tuple[int, ...], canaries: int, epsilon: float, delta: float
) -> None:
    each = sorted(set(weights), reverse=True)
    used = Weights(tuple(each), tuple(map(weights.count, each)))
    outputs = weighted_vectors(weights, canaries)
    for least in range(1, used.total + 1):
        best = largest_chance(canaries, epsilon, delta, outputs, lambda v, r, least=least: v >= least)
        stated = one_run.weighted_p_value(used, least, canaries, epsilon, delta)
        assert best <= stated + LP
        if weights == (2, 1, 1) and delta == 0.0:
            assert stated == pytest.approx(best, abs=1e-6)


def test_tight_the_best_mechanism_reaches_it_where_all_guesses_are_right() -> None:
    for canaries in (1, 2, 3):
        best = largest_chance(canaries, 0.7, 0.01, guess_vectors(canaries, canaries), lambda v, r: v == r)
        assert p_value(fixed(canaries, canaries, canaries), 0.7, 0.01) == pytest.approx(best, abs=1e-6)
    assert one_run.curve_p_value(fixed(3, 3, 3), ApproximateDP(0.7, 0.01)) == pytest.approx(best, abs=1e-5)


@for_each(("epsilon", "delta"), [(0.0, 0.02), (1.0, 0.005)])
def test_valid_when_the_mechanism_chooses_the_number_of_guesses(epsilon: float, delta: float) -> None:
    made = {(v, r): p_value(Guesses(v, r, 3, fixed=False), epsilon, delta) for r in range(4) for v in range(r + 1)}
    for alpha in (0.2, 0.6, 0.9):
        wins = {key for key, value in made.items() if value <= alpha}
        best = largest_chance(3, epsilon, delta, guess_vectors(3, None), lambda v, r, wins=wins: (v, r) in wins)
        assert best <= alpha + LP


def test_the_published_correction_is_exceeded_by_a_mechanism_and_above_ours() -> None:
    """(0, delta)-DP: guess at random, but move 7/8 delta away from the answer that is wrong everywhere."""
    delta = 0.01
    best = largest_chance(3, 0.0, delta, guess_vectors(3, 3), lambda v, r: v >= 1)
    assert best == pytest.approx(0.875 + 0.875 * delta, abs=1e-6)
    three = fixed(1, 3, 3)
    assert published_p_value(three, 0.0, delta) == pytest.approx(0.875 + 0.75 * delta, abs=1e-9)
    assert p_value(three, 0.0, delta) >= best - LP
    for right, made, canaries in ((170, 200, 1000), (95, 100, 5000), (1700, 2000, 2000)):
        for delta in (1e-5, 1e-4):
            seen = fixed(right, made, canaries)
            assert published_p_value(seen, epsilon_lower(seen, delta, ALPHA), delta) > ALPHA


@for_each("epsilon", [0.0, 0.35, 0.5, 1.0, 2.0])
def test_valid_and_tight_exact_coverage_of_randomised_response(epsilon: float) -> None:
    """On every canary it is right Bin(m, q) times, which lies on the boundary; weights refute as often as tails say."""
    m, q = 60, logistic(epsilon)
    wrong = sum(binom.pmf(v, m, q) for v in range(m + 1) if p_value(fixed(v, m, m), epsilon, 0.0) <= ALPHA)
    assert 0.3 * ALPHA < wrong <= ALPHA
    used = design(m, step_of(epsilon)[1], 0.0, ALPHA, "both", step_of(epsilon)[0])
    least = next(v for v in range(used.total + 1) if tail(used, v, q) <= ALPHA)
    assert tail(used, least, q) > 0.3 * ALPHA
    rng = np.random.default_rng(5)
    for _ in range(3):
        right = rng.random(m) < q + 0.1
        assert one_run.weighted_lower(right, 0.0, ALPHA)[0] <= epsilon or used.won(right) >= least


def step_of(epsilon: float) -> tuple[float, float]:
    """The step that shares a design."""
    return next((a, b) for a, b in pairwise(one_run.EPSILONS) if a <= epsilon < b)


def test_without_delta_it_is_one_clopper_pearson_limit() -> None:
    for right, made in ((100, 100), (70, 100), (90, 120)):
        share = lower_limit(right, made, ALPHA)
        bound = epsilon_lower(Guesses(right, made, 500, fixed=False), 0.0, ALPHA)
        assert bound == pytest.approx(math.log(share / (1.0 - share)), abs=1e-5)


@for_each(("weights", "sizes"), [((4, 3, 2, 1), (3, 2, 5, 8)), ((3, 1), (20, 40)), ((5, 2), (1, 7)), ((2,), (9,))])
def test_the_tail_is_that_of_integers(weights: tuple[int, ...], sizes: tuple[int, ...]) -> None:
    used, each = Weights(weights, sizes), dict(zip(weights, sizes, strict=True))
    for q in (Fraction(1, 2), Fraction(7, 8)):
        for v in {1, used.total // 2, used.total - 3, used.total}:
            exact = float(weighted_tail(each, v, q))
            assert exact * (1.0 - 1e-12) <= tail(used, v, float(q)) <= exact * (1.0 + 1e-6)
    assert (tail(used, 0, 0.5), tail(used, used.total + 1, 0.5)) == (1.0, 0.0)


def test_one_weight_is_the_plain_bound_and_delta_costs_at_least_as_much() -> None:
    for right, made in ((80, 100), (95, 100)):
        plain, one = p_value(fixed(right, made, 1000), 1.0, 0.0), Weights((1,), (made,))
        assert one_run.weighted_p_value(one, right, 1000, 1.0, 0.0) == plain
        more = p_value(fixed(right, made, 1000), 1.0, 1e-5)
        assert more <= one_run.weighted_p_value(one, right, 1000, 1.0, 1e-5) + 1e-12
    few, many = (one_run.excess(Weights((2, 1), (n, n)), 1000, 0.7, 1e-5) for n in (5, 500))
    assert few > many > 0.0


def test_the_product_form_by_its_definition() -> None:
    """Order statistics integrated, rounded up by less than the width of a cell; all canaries: one binomial."""

    def chance(x: int, r: int, m: int, mu: float) -> float:
        def given(part: float) -> float:
            return float(binom.cdf(x, r, one_run.wrong_beyond(mu, part)) * beta.pdf(part, r + 1, m - r))

        return float(quad(given, 0.0, 1.0)[0])

    for x, r, m, mu in ((1, 3, 5, 0.7), (2, 6, 20, 1.5), (0, 2, 9, 2.0)):
        mine, exact = one_run.largest_chance(fixed(r - x, r, m), mu), chance(x, r, m, mu)
        assert exact <= mine <= exact + 0.01
    for mu in (0.0, 1.0):
        exact = binom.cdf(8, 30, 0.5 * math.erfc(mu / 2.0 / math.sqrt(2.0)))
        assert one_run.largest_chance(fixed(22, 30, 30), mu) == pytest.approx(exact, rel=1e-6)


@for_each(("mu", "m", "r", "mistakes", "published"), PUBLISHED)
def test_the_product_form_is_the_published_one(mu: float, m: int, r: int, mistakes: int, published: float) -> None:
    bound = one_run.mu_lower(fixed(r - mistakes, r, m), ALPHA)
    assert bound < mu
    assert counts.epsilon_of_mu(bound, 1e-5) == pytest.approx(published, abs=0.02)


def test_equals_the_values_of_other_tools() -> None:
    plain, small, large = ORACLE["one_run"]
    assert epsilon_lower(fixed(170, 200, 1000), 0.0, ALPHA) == pytest.approx(plain, abs=1e-5)
    assert published_p_value(fixed(170, 200, 1000), small, 1e-5) == pytest.approx(ALPHA, abs=1e-5)
    assert published_p_value(fixed(95, 100, 5000), large, 1e-4) == pytest.approx(ALPHA, abs=1e-5)
    assert epsilon_lower(fixed(170, 200, 1000), 1e-5, ALPHA) > small - 1e-6
    assert epsilon_lower(fixed(95, 100, 5000), 1e-4, ALPHA) > large
    for seen, expected in zip((fixed(170, 200, 1000), fixed(400, 500, 500)), ORACLE["one_run_fdp"], strict=True):
        mu = parameter_lower(None, GaussianDP(1.0), ALPHA, seen)[0]
        assert counts.epsilon_of_mu(mu, 1e-5) == pytest.approx(expected, abs=1e-4)


BOUNDS: dict[str, Callable[[Guesses], float]] = {
    "given": lambda seen: epsilon_lower(seen, 0.0, ALPHA),
    "given, delta": lambda seen: epsilon_lower(seen, 1e-3, ALPHA),
    "recursion": lambda seen: parameter_lower(None, PureDP(1.0), ALPHA, seen)[0],
    "recursion, mu": lambda seen: parameter_lower(None, GaussianDP(1.0), ALPHA, seen)[0],
    "product form": lambda seen: one_run.mu_lower(seen, ALPHA),
    "weighted": lambda seen: one_run.weighted_lower(np.arange(seen.made) % seen.made < seen.right, 1e-5, ALPHA)[0],
}


@for_each("name", BOUNDS)
def test_null_half_right_says_nothing_and_nearly_all_right_says_much(name: str) -> None:
    mixed = np.arange(100) % 2 == 0
    half = one_run.weighted_lower(mixed, 1e-5, ALPHA)[0] if name == "weighted" else BOUNDS[name](fixed(50, 100, 100))
    assert half == 0.0
    assert BOUNDS[name](fixed(95, 100, 100)) > 1.0
    assert one_run.curve_p_value(fixed(50, 100, 100), PureDP(0.0)) > 0.5
    assert not one_run.is_refuted(fixed(0, 0, 10), PureDP(0.0).max_probability, ALPHA)
    assert epsilon_lower(fixed(0, 0, 100), 0.0, ALPHA) == 0.0


def test_the_bound_and_the_p_value_agree() -> None:
    seen = fixed(170, 200, 1000)
    bound = parameter_lower(None, PureDP(1.0), ALPHA, seen)[0]
    assert one_run.curve_p_value(seen, PureDP(bound)) <= ALPHA < one_run.curve_p_value(seen, PureDP(bound + 1e-3))
    right = np.random.default_rng(2).random(300) < np.linspace(0.95, 0.5, 300)
    first = one_run.weighted_lower(right, 0.0, 0.1)[0]
    assert first > 0.3
    for epsilon in (0.0, 0.8 * first, 1.1 * first):
        bound, p, _ = one_run.weighted_lower(right, 0.0, 0.1, "both", epsilon)
        assert ((p or 0.0) <= 0.1) == (bound > epsilon)


def test_the_number_of_guesses_is_the_claims_alone_and_a_bound_agrees_with_its_verdict() -> None:
    right = np.random.default_rng(4).random(800) < 0.8
    for claim in (GaussianDP(0.5), GaussianDP(1.3)):
        bound, last = parameter_lower(right, claim, ALPHA)
        for value, refuted in ((bound - 1e-3, True), (bound + 1e-3, False)):
            assert one_run.is_refuted(last, one_run.region_of(GaussianDP(value)), ALPHA) is refuted
        ends = sorted({claim.mu, *(one_run.STEP**i for i in range(-24, 25))})
        step = next(end for end in ends if end >= bound)
        assert last.made == one_run.guesses_for(GaussianDP(step), 800, ALPHA)
    for p in (1e-9, 0.2, 0.9):
        assert one_run.region_of(GaussianDP(1.3))(p) == pytest.approx(GaussianDP(1.3).max_probability(p), rel=1e-12)


def test_a_design_of_weights_knows_numbers_alone() -> None:
    rng = np.random.default_rng(1)
    coins = rng.random(4000) < 0.5
    bound, _, used = one_run.weighted_lower(
        one_run.ranked(rng.normal(size=4000) + 1.5 * coins, coins, rng), 1e-5, ALPHA
    )
    assert used == design(4000, step_of(bound)[1], 1e-5, ALPHA, "both", step_of(bound)[0])
    assert bound > 2.7


def test_mirror_the_opposite_attack_on_the_opposite_coins_is_as_good() -> None:
    rng = np.random.default_rng(3)
    scores, members = rng.normal(size=80), rng.random(80) < 0.5
    one = one_run.guess_ends(scores, members, (20, 10), np.random.default_rng(0))
    assert one == one_run.guess_ends(-scores, ~members, (10, 20), np.random.default_rng(0))
    for event, other in (("in", "out"), ("both", "both")):
        first = one_run.ranked(scores, members, np.random.default_rng(0), event)
        second = one_run.ranked(-scores, ~members, np.random.default_rng(0), other)
        assert first.sum() == second.sum()
        assert event == "both" or (first == second).all()


def test_ties_are_broken_by_the_generator_and_not_by_the_order_of_the_file() -> None:
    """All scores equal: the right guesses are hypergeometric, here within 9 standard deviations of half."""
    members = np.arange(1000) < 500
    streams = [np.random.default_rng(seed) for seed in range(20)]
    ends = [one_run.guess_ends(np.zeros(1000), members, (100, 0), rng).right for rng in streams]
    first = [int(one_run.ranked(np.zeros(1000), members, rng, "in")[:100].sum()) for rng in streams]
    for right in (ends, first):
        assert abs(np.mean(right) - 50.0) < 9.0 * 4.75 / math.sqrt(20)
        assert len(set(right)) > 1


def test_impossible_guesses_are_refused() -> None:
    with pytest.raises(InvalidSpec, match="0 <= right <= made <= canaries, got 3, 2, 5"):
        fixed(3, 2, 5)
    with pytest.raises(InvalidSpec, match="two numbers that 4 canaries allow together"):
        one_run.guess_ends(np.arange(4.0), np.arange(4) < 2, (3, 2), np.random.default_rng(0))
