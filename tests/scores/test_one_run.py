"""The one-run bound: valid against the best mechanism there is, tight, silent at the null, and the same in mirror."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.certify.binomial import lower_limit
from dpaudit.errors import InvalidSpec
from dpaudit.scores.one_run import Guesses, epsilon_lower, guess_ends, p_value
from tests.cases import for_each
from tests.scores.naive import guess_vectors, largest_chance, published_p_value

ORACLE = json.loads(Path(__file__).with_name("oracle_values.json").read_text())["canary"]
LP = 1e-7  # what the linear program is good to


@for_each(("canaries", "made"), [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)])
@for_each(("epsilon", "delta"), [(0.0, 0.01), (0.7, 0.0), (0.7, 0.1), (2.0, 0.003)])
def test_valid_no_mechanism_does_better(canaries: int, made: int, epsilon: float, delta: float) -> None:
    outputs = guess_vectors(canaries, made)
    for right in range(1, made + 1):
        best = largest_chance(canaries, epsilon, delta, outputs, lambda v, r, least=right: v >= least)
        assert best <= p_value(Guesses(right, made, canaries, fixed=True), epsilon, delta) + LP


def test_tight_the_best_mechanism_reaches_it_where_all_guesses_are_right() -> None:
    for canaries in (1, 2, 3):
        best = largest_chance(canaries, 0.7, 0.01, guess_vectors(canaries, canaries), lambda v, r: v == r)
        assert p_value(Guesses(canaries, canaries, canaries, fixed=True), 0.7, 0.01) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("alpha", [0.2, 0.6, 0.9])
def test_valid_when_the_mechanism_chooses_the_number_of_guesses(alpha: float) -> None:
    for epsilon, delta in ((0.0, 0.02), (1.0, 0.005)):
        rule = {
            (v, r): p_value(Guesses(v, r, 3, fixed=False), epsilon, delta) <= alpha
            for r in range(4)
            for v in range(r + 1)
        }
        best = largest_chance(3, epsilon, delta, guess_vectors(3, None), lambda v, r, rule=rule: rule[v, r])
        assert best <= alpha + LP


def test_the_published_correction_is_exceeded_by_a_mechanism() -> None:
    """(0, delta)-DP: guess at random, but move 7/8 delta away from the answer that is wrong everywhere."""
    delta = 0.01
    best = largest_chance(3, 0.0, delta, guess_vectors(3, 3), lambda v, r: v >= 1)
    assert best == pytest.approx(0.875 + 0.875 * delta, abs=1e-6)
    three = Guesses(1, 3, 3, fixed=True)
    assert published_p_value(three, 0.0, delta) == pytest.approx(0.875 + 0.75 * delta, abs=1e-9)
    assert p_value(three, 0.0, delta) >= best - LP


@pytest.mark.parametrize(("canaries", "made", "right"), [(1000, 200, 170), (5000, 100, 95), (2000, 2000, 1700)])
def test_the_bound_is_above_the_one_of_the_published_correction(canaries: int, made: int, right: int) -> None:
    for delta in (1e-5, 1e-4):
        seen = Guesses(right, made, canaries, fixed=True)
        assert published_p_value(seen, epsilon_lower(seen, delta, 0.05), delta) > 0.05


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_valid_and_tight_exact_coverage_of_randomised_response(epsilon: float) -> None:
    """Randomised response on every canary is right Bin(m, q) times, which lies on the boundary."""
    m, alpha = 60, 0.05
    q = 1.0 / (1.0 + math.exp(-epsilon))
    wrong = sum(
        binom.pmf(v, m, q) for v in range(m + 1) if p_value(Guesses(v, m, m, fixed=True), epsilon, 0.0) <= alpha
    )
    assert 0.3 * alpha < wrong <= alpha


def test_without_delta_it_is_one_clopper_pearson_limit() -> None:
    for right, made in ((100, 100), (70, 100), (90, 120)):
        share = lower_limit(right, made, 0.05)
        bound = epsilon_lower(Guesses(right, made, 500, fixed=False), 0.0, 0.05)
        assert bound == pytest.approx(math.log(share / (1.0 - share)), abs=1e-5)


def test_null_half_right_says_nothing() -> None:
    for delta in (0.0, 1e-3):
        assert epsilon_lower(Guesses(50, 100, 100, fixed=True), delta, 0.05) == 0.0
        assert epsilon_lower(Guesses(0, 0, 100, fixed=True), delta, 0.05) == 0.0


def test_mirror_the_opposite_attack_on_the_opposite_coins_is_as_good() -> None:
    rng = np.random.default_rng(3)
    scores, members = rng.normal(size=80), rng.random(80) < 0.5
    one = guess_ends(scores, members, (20, 10), np.random.default_rng(0))
    other = guess_ends(-scores, ~members, (10, 20), np.random.default_rng(0))
    assert one == other


def test_ties_are_broken_by_the_generator_and_not_by_the_order_of_the_file() -> None:
    """All scores equal: the right guesses are hypergeometric, here within 9 standard deviations of half."""
    members = np.arange(1000) < 500
    right = [guess_ends(np.zeros(1000), members, (100, 0), np.random.default_rng(s)).right for s in range(20)]
    assert abs(np.mean(right) - 50.0) < 9.0 * 4.75 / math.sqrt(20)
    assert len(set(right)) > 1


def test_equals_the_values_of_other_tools() -> None:
    plain, small, large = ORACLE["one_run"]
    assert epsilon_lower(Guesses(170, 200, 1000, fixed=True), 0.0, 0.05) == pytest.approx(plain, abs=1e-5)
    assert published_p_value(Guesses(170, 200, 1000, fixed=True), small, 1e-5) == pytest.approx(0.05, abs=1e-5)
    assert published_p_value(Guesses(95, 100, 5000, fixed=True), large, 1e-4) == pytest.approx(0.05, abs=1e-5)
    assert epsilon_lower(Guesses(170, 200, 1000, fixed=True), 1e-5, 0.05) > small - 1e-6
    assert epsilon_lower(Guesses(95, 100, 5000, fixed=True), 1e-4, 0.05) > large


def test_impossible_guesses_are_refused() -> None:
    with pytest.raises(InvalidSpec, match="0 <= right <= made <= canaries, got 3, 2, 5"):
        Guesses(3, 2, 5, fixed=True)
    with pytest.raises(InvalidSpec, match="two numbers that 4 canaries allow together"):
        guess_ends(np.arange(4.0), np.arange(4) < 2, (3, 2), np.random.default_rng(0))
