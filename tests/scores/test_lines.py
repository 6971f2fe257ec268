"""The three lines of one training: never mixed, each with its own truth; and what the test of dependence sees."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, binom

from dpaudit.claims import ApproximateDP, GaussianDP, PrivacyProfile, PureDP
from dpaudit.errors import InvalidSpec
from dpaudit.scores import audit_scores, counts, one_run
from dpaudit.scores.dependence import dependence
from dpaudit.scores.few import ceiling, refutable
from dpaudit.scores.one_run import Guesses
from dpaudit.scores.question import Every, ScoresQuestion
from dpaudit.scores.result import LINES, Estimate
from tests.cases import for_each

PUBLISHED = [  # mu, m, r, mistakes, epsilon at 1e-5: the recorded outcomes of 2509.08704's repository
    (0.5, 1_000, 100, 26, 1.193),
    (0.5, 100_000, 10_000, 2585, 1.917),
    (1.0, 1_000, 500, 103, 3.756),
    (1.0, 10_000, 5_000, 1034, 4.179),
    (2.0, 1_000, 1_000, 159, 9.004),
    (2.0, 100_000, 100_000, 15866, 9.900),
]


def guessed(right: int, made: int, canaries: int) -> Guesses:
    return Guesses(right, made, canaries, fixed=True)


@for_each(("mu", "m", "r", "mistakes", "published"), PUBLISHED)
def test_the_product_form_is_the_published_one(mu: float, m: int, r: int, mistakes: int, published: float) -> None:
    bound = one_run.mu_lower(guessed(r - mistakes, r, m), 0.05)
    assert bound < mu
    assert counts.epsilon_of_mu(bound, 1e-5) == pytest.approx(published, abs=0.02)


def test_the_product_form_by_its_definition() -> None:
    """Order statistics integrated, rounded up by less than the width of a cell; all canaries: one binomial."""

    def chance(x: int, r: int, m: int, mu: float) -> float:
        def given(part: float) -> float:
            return float(binom.cdf(x, r, one_run.wrong_beyond(mu, part)) * beta.pdf(part, r + 1, m - r))

        return float(quad(given, 0.0, 1.0)[0])

    for x, r, m, mu in ((1, 3, 5, 0.7), (2, 6, 20, 1.5), (0, 2, 9, 2.0)):
        mine, exact = one_run.largest_chance(guessed(r - x, r, m), mu), chance(x, r, m, mu)
        assert exact <= mine <= exact + 0.01
    for mu in (0.0, 1.0):
        exact = binom.cdf(8, 30, 0.5 * math.erfc(mu / 2.0 / math.sqrt(2.0)))
        assert one_run.largest_chance(guessed(22, 30, 30), mu) == pytest.approx(exact, rel=1e-6)
    assert one_run.mu_lower(guessed(15, 30, 30), 0.05) == 0.0


def three_lines(scores: np.ndarray, coins: np.ndarray, **asked: Any) -> tuple[Estimate, ...]:
    return audit_scores(scores[coins], scores[~coins], design="one-run", **asked).estimates


def trained(m: int, mu: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    coins = rng.random(m) < 0.5
    return rng.normal(size=m) + mu * coins, coins


@for_each("claim", [GaussianDP(0.5), ApproximateDP(0.5, 1e-4), PrivacyProfile(((0.5, 1e-3), (1.0, 1e-4)))])
def test_three_lines_in_their_order_and_only_the_first_decides(claim: PureDP) -> None:
    scores, coins = trained(600, 2.5, 1)
    options = {"claim": claim, "confidence": 0.9} | ({} if claim.linear else {"delta": 1e-4})
    found = three_lines(scores, coins, **options)
    assert tuple(dict.fromkeys(each.line for each in found)) == LINES
    assert [each.p_value is not None for each in found] == [True] + [False] * (len(found) - 1)
    assert (found[0].p_value or 0.0) < 0.02
    told = {each.line: (each.lower or 0.0) for each in found if each.quantity == "mu"}
    assert 0.5 < told["certified"] < told["given independent canaries"] < 2.6
    assert all("independent" in each.assumption for each in found if each.line == LINES[1])


def test_one_coin_for_all_canaries_deceives_the_product_form_alone() -> None:
    """Within 1-GDP: with probability .393 randomised response of 1.5 to every canary, or else nothing; here it told."""
    rng = np.random.default_rng(0)
    coins = rng.random(1000) < 0.5
    scores = np.where(rng.random(1000) < 1.0 / (1.0 + math.exp(-1.5)), coins, ~coins) + 0.0
    found = three_lines(scores, coins, claim=GaussianDP(1.0), delta=1e-5, confidence=0.95)
    told = {each.line: (each.lower or 0.0) for each in found if each.quantity == "mu"}
    assert told["certified"] < 1.0 < told["given independent canaries"]
    assert (found[0].p_value or 0.0) > 0.05
    assert dependence(scores, coins).p_value > 0.01  # which one training cannot show


def test_null_certifies_nothing() -> None:
    scores, coins = trained(400, 0.0, 3)
    found = three_lines(scores, coins, claim=GaussianDP(0.1), delta=1e-5, confidence=0.999)
    assert [each.lower for each in found if each.line != "estimate"] == [0.0] * 4
    assert found[0].p_value == 1.0


def test_the_number_of_guesses_is_the_claims_alone_and_a_bound_agrees_with_its_verdict() -> None:
    right = np.random.default_rng(4).random(800) < 0.8
    for claim in (GaussianDP(0.5), GaussianDP(1.3)):
        bound, last = one_run.parameter_lower(right, claim, 0.05)
        for value, refuted in ((bound - 1e-3, True), (bound + 1e-3, False)):
            assert one_run.is_refuted(last, one_run.region_of(GaussianDP(value)), 0.05) is refuted
        ends = sorted({claim.mu, *(one_run.STEP**i for i in range(-24, 25))})
        step = next(end for end in ends if end >= bound)
        assert last.made == one_run.guesses_for(GaussianDP(step), 800, 0.05)
    for p in (1e-9, 0.2, 0.9):
        assert one_run.region_of(GaussianDP(1.3))(p) == pytest.approx(GaussianDP(1.3).max_probability(p), rel=1e-12)


def test_a_claim_is_refuted_exactly_where_the_bound_reaches_it() -> None:
    right = np.random.default_rng(2).random(300) < np.linspace(0.95, 0.5, 300)
    first = one_run.weighted_lower(right, 0.0, 0.1)[0]
    assert first > 0.3
    for epsilon in (0.0, 0.8 * first, 1.1 * first):
        bound, p, _ = one_run.weighted_lower(right, 0.0, 0.1, "both", epsilon)
        assert ((p or 0.0) <= 0.1) == (bound > epsilon)
    scores, coins = trained(300, 1.5, 2)
    for mu in (0.3, 0.9):
        told = three_lines(scores, coins, claim=GaussianDP(mu), delta=1e-5, confidence=0.9, methods="one-run-f")[0]
        assert ((told.p_value or 0.0) <= 0.1) == (told.detail["mu_lower"] >= mu)


def test_what_so_many_canaries_can_show() -> None:
    bound, least = ceiling(100, PureDP(3.0), 0.0, 0.05)
    assert bound == pytest.approx(math.log(0.05**0.01 / (1.0 - 0.05**0.01)), abs=1e-3)
    assert least == math.ceil(math.log(0.05) / math.log(1.0 / (1.0 + math.exp(-3.0))))
    assert refutable(100, GaussianDP(1.0), 0.05)
    assert not refutable(20, GaussianDP(4.0), 0.05)


def test_dependence_is_seen_between_neighbours_and_blocks_and_not_where_there_is_none() -> None:
    rng = np.random.default_rng(6)
    coins = rng.random(900) < 0.5
    seen = [dependence(rng.normal(size=900) + coins, coins).p_value <= 0.01 for _ in range(200)]
    assert sum(seen) <= 14  # probability of more, at 1 %: below 1e-7
    rare = ((rng.random((20, 200)) < 0.01, rng.random((20, 200)) < 0.5) for _ in range(100))
    seen = [dependence(flags.astype(float), members).p_value <= 0.01 for flags, members in rare]
    assert sum(seen) <= 10  # as often as for normal scores, in 20 rows; by a normal law it was 13
    noise = rng.normal(size=901)
    assert dependence(noise[1:] + 0.5 * noise[:-1] + coins, coins).p_value == 1e-3  # the least that there is
    assert dependence(rng.normal(size=900) + np.repeat(rng.normal(size=30), 30) + coins, coins).p_value == 1e-3
    assert dependence(np.arange(4.0), coins[:4]).p_value == 1.0
    with pytest.raises(InvalidSpec, match="included must be bools, one for each of the 3 scores, got int64 of shape"):
        dependence([1.0, 2.0, 3.0], np.array([1, 0, 1]))


def test_ties_are_not_broken_alike_in_all_audits_of_one_seed() -> None:
    """Two-valued answers within the claim: of 400 at level .05 at most 47 refuted (false: 1e-7; once it was 107)."""
    rng, refuted, used = np.random.default_rng(31), 0, one_run.design(50, 1.0, 0.0, 0.05)
    least = next(v for v in range(used.total + 2) if one_run.tail(used, v, 1.0 / (1.0 + math.exp(-1.0))) <= 0.05)
    asked: dict[str, Any] = {"claim": PureDP(1.0), "delta": 0.0, "confidence": 0.95, "design": "one-run", "seed": 0}
    for _ in range(400):
        coins = rng.random(50) < 0.5
        said = (coins == (rng.random(50) < 1.0 / (1.0 + math.exp(-1.0)))).astype(float)
        question = ScoresQuestion(inside=said[coins], outside=said[~coins], choice=Every(), event="both", **asked)
        refuted += used.won(question.order) >= least
    assert refuted <= 47
