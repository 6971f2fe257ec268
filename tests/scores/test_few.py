"""Several trainings: no mechanism whatever has e-values with a mean above 1; what they find; what they are told."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from dpaudit.claims import ApproximateDP, Claim, GaussianDP, PrivacyProfile, PureDP
from dpaudit.errors import InvalidSpec
from dpaudit.scores import few, one_run
from dpaudit.scores.few import Evidence, ceiling, refutable
from tests.cases import for_each
from tests.scores import naive

ALPHA = 0.05
PROFILE = ((1.2, 0.01), (0.6, 0.08), (0.1, 0.25))


def normal(rng: np.random.Generator, mu: float, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Scores of an ideal Gaussian audit, and their coins."""
    coins = rng.random(shape) < 0.5
    return mu * coins + rng.normal(size=shape), coins


def after(evidence: Evidence, scores: naive.Signs, coins: naive.Signs) -> Evidence:
    return evidence.after(np.array(scores), np.array(coins) > 0)


@for_each(
    "claim, lines, earlier",
    [
        (PureDP(0.8), [(0.8, 0.0)], 1),
        (ApproximateDP(0.1, 0.0005), [(0.1, 0.0005)], 9),
        (ApproximateDP(0.1, 0.001), [(0.1, 0.01)], 1),
        (PrivacyProfile(PROFILE), list(PROFILE), 1),
    ],
)
def test_valid_no_mechanism_has_an_e_value_above_one_on_average(
    claim: Claim, lines: list[tuple[float, float]], earlier: int
) -> None:
    """All mechanisms on three coins with scores in {-1, 0, 1}, by a linear program; also after earlier trainings."""
    before = few.begin(claim, 3, ALPHA)
    for _ in range(earlier):
        before = after(before, (1, 1, -1), (1, 1, -1))

    @cache
    def worth(coins: naive.Signs, scores: naive.Signs) -> float:
        return after(before, scores, coins).e_value / before.e_value

    outputs = naive.guess_vectors(3, None)
    assert naive.largest_mean(3, lines, outputs, worth) <= 1.0 + 1e-9
    if earlier != 1:
        assert max(worth((1, 1, -1), each) for each in outputs) > 1.01  # they do bet


def test_tight_randomised_response_at_the_claim_has_a_mean_of_nearly_one() -> None:
    q, mean = 1.0 / (1.0 + math.exp(-0.8)), 0.0
    bits = [np.array([code >> k & 1 for k in range(3)], bool) for code in range(8)]
    for coins in bits:
        for right in bits:
            chance = q ** right.sum() * (1.0 - q) ** (3 - right.sum()) / 8.0
            mean += chance * few.begin(PureDP(0.8), 3, ALPHA).after(np.where(right, coins, ~coins), coins).e_value
    assert 0.98 < mean <= 1.0 + 1e-9  # a little is lost where all answers are equal: their rank is the middle


def test_the_information_of_a_claim_is_that_of_its_own_pair() -> None:
    from scipy.integrate import quad
    from scipy.stats import norm

    for mu in (0.1, 1.0):

        def told(x: float, mu: float = mu) -> float:
            return float(norm.pdf(x, mu / 2.0) * (math.log(2.0) - np.log1p(np.exp(-mu * x))))

        exact = quad(told, -12.0, 12.0)[0]
        assert exact <= few.information(GaussianDP(mu)) <= 1.001 * exact
    q = 1.0 / (1.0 + math.exp(-1.0))
    answer = math.log(2.0) + q * math.log(q) + (1.0 - q) * math.log(1.0 - q)
    assert few.information(PureDP(1.0)) == pytest.approx(answer, rel=1e-6)
    assert few.information(ApproximateDP(1.0, 0.1)) == pytest.approx(0.1 * math.log(2.0) + 0.9 * answer, rel=1e-6)


def test_a_prediction_has_a_mean_of_one_over_fair_coins_whatever_was_before() -> None:
    scores, told = np.array([0.3, -1.0, 2.0, 0.3]), []
    history = few.binned(np.array([1.0, 0.0, 1.0, 0.0]), np.array([True, False, True, False]))
    for code in range(16):
        coins = np.array([code >> k & 1 for k in range(4)], bool)
        told.append(few.predicted(np.stack([history, few.binned(scores, coins)]))[1])
    assert np.exp(told).mean() == pytest.approx(1.0, abs=1e-12)


def test_a_few_trainings_refute_what_one_cannot_and_bound_what_is_true() -> None:
    rng = np.random.default_rng(20)
    evidence = few.begin(GaussianDP(0.268), 1_000, ALPHA, delta=1e-5)
    used = 0
    while not evidence.refuted and used < 5:
        evidence, used = evidence.after(*normal(rng, 0.502, (1_000,))), used + 1
    certified, independent, estimate = evidence.estimates()
    assert evidence.refuted
    assert 0.268 < certified.detail["mu_lower"] < 0.502
    lines = [each.line for each in (certified, independent, estimate)]
    assert lines == ["certified", "given independent canaries", "estimate"]
    assert certified.p_value is not None
    assert (certified.p_value <= ALPHA, independent.p_value) == (True, None)


def test_a_strong_leak_is_refuted_by_the_tails_of_a_few_trainings() -> None:
    rng = np.random.default_rng(25)
    evidence = few.begin(GaussianDP(2.0), 2_000, ALPHA, delta=1e-5)
    for _ in range(4):
        evidence = evidence.after(*normal(rng, 4.0, (2_000,)))
    assert evidence.refuted
    assert evidence.estimates()[0].detail["mu_lower"] > 2.0
    alone = np.cumsum(few.log_doublings(evidence.counts, GaussianDP(2.0), GaussianDP(2.0), ALPHA))
    more = np.cumsum(few.log_doublings(evidence.counts, GaussianDP(2.0), GaussianDP(2.5), ALPHA))
    assert alone[-1] > math.log(20.0)
    assert (more < alone).all()


def test_the_bound_and_the_verdict_agree() -> None:
    evidence = few.begin(PureDP(1.0), 1_000, ALPHA).after(*normal(np.random.default_rng(22), 2.0, (1_000,)))
    bound = evidence.estimates()[0].lower
    assert bound is not None
    for epsilon, refuted in ((bound - 1e-3, True), (bound + 1e-3, False)):
        assert (evidence.log_path(PureDP(epsilon)).max() >= math.log(1.0 / ALPHA)) == refuted


def test_rows_that_share_a_coin_are_seen_in_their_spread_and_are_no_verdict() -> None:
    rng = np.random.default_rng(26)
    coins = rng.random((30, 500)) < 0.5
    alone = (rng.random(coins.shape) < 0.7) == coins
    shared = np.where(rng.random((30, 1)) < 0.5, alone, rng.random(coins.shape))
    told = 9.0 * coins + rng.normal(size=coins.shape)  # wrong where coins are not even
    for scores, seen in ((alone, False), (shared, True), (told, False)):
        evidence = few.begin(GaussianDP(1.5), 500, ALPHA, delta=1e-5, steps=30).after(scores, coins)
        assert (evidence.estimates()[1].detail["spread_p_value"] == 1e-3) == seen  # the least that there is
        assert evidence.refuted == (scores is told)


@for_each("step, tied", [(step, tied) for step in (0, 6, 12, 24) for tied in (False, True)])
def test_a_step_without_noise_is_found_wherever_it_is(step: int, tied: bool) -> None:
    scores, coins = normal(np.random.default_rng(30), 0.4, (25, 200))
    before = few.begin(GaussianDP(0.4), 200, ALPHA, delta=1e-5, steps=25)
    assert not before.after(scores, coins).refuted
    scores[step] = coins[step] if tied else coins[step] + 0.1 * scores[step]
    evidence = before.after(scores, coins)
    assert evidence.refuted
    assert evidence.composed(25, 1e-5).detail["step_mu_lower"] < 0.4  # one step says little of all together


def test_no_mechanism_that_speaks_seldom_and_then_loudly_earns_by_the_bet_on_one_step() -> None:
    """Within 1-GDP: with this chance randomised response to all coins, else nothing; exact means of the e-value."""
    from scipy.stats import binom

    scores = np.arange(1_000.0)
    told = few.binned(scores, scores >= 500)[None]
    share, claim = 1.0 / (2.0 * 25), GaussianDP(1.0)
    worth = (math.exp(few.log_one_tells(told, claim, claim, 0.005, 25, 1.0)[0]) - 1.0) / share + 1.0
    assert worth > 1.0 / (0.005 * share)  # it does bet
    r = int(few.folded(told)[1][:, 4:].sum())
    v = one_run.least_right(one_run.region_of(claim), r, 1_000, 0.005 * share, r // 2)
    for chance, epsilon in ((0.845, 0.95), (0.613, 1.2), (0.393, 1.5), (0.162, 2.0), (0.0149, 3.0)):
        q = 1.0 / (1.0 + math.exp(-epsilon))
        mean = chance * binom.sf(v - 1, r, q) + (1.0 - chance) * binom.sf(v - 1, r, 0.5)
        assert mean * worth <= 1.0


def test_steps_certify_the_step_and_compose() -> None:
    scores, coins = normal(np.random.default_rng(23), 0.4, (40, 1_000))
    evidence = few.begin(GaussianDP(0.2), 1_000, ALPHA, delta=1e-5, steps=40).after(scores, coins)
    run = evidence.composed(100, 1e-5)
    step = run.detail["step_mu_lower"]
    assert evidence.refuted
    assert 0.34 < step < 0.4
    assert run.lower == pytest.approx(GaussianDP(10.0 * step).epsilon_at(1e-5), rel=1e-9)
    assert few.composed_epsilon(ApproximateDP(0.1, 1e-7), 0.1, 10, 1e-5)[0] == pytest.approx(0.9, abs=0.11)


def test_steps_that_leak_at_first_are_not_composed_as_if_all_did() -> None:
    """The bound of a step may rest on the first ones; that of the run is above the truth in at most 1 of 20 seeds."""
    rng, mus = np.random.default_rng(29), np.repeat([1.0, 0.0], (4, 36))
    coins = rng.random((40, 1_000)) < 0.5
    evidence = few.begin(GaussianDP(0.2), 1_000, ALPHA, delta=1e-5, steps=40)
    evidence = evidence.after(mus[:, None] * coins + rng.normal(size=coins.shape), coins)
    own = evidence.estimates()[0].detail["mu_lower"]
    assert own * math.sqrt(40.0) > 2.0
    assert evidence.composed(40, 1e-5).lower < GaussianDP(2.0).epsilon_at(1e-5)


def test_sampled_steps_certify_the_step_before_sampling() -> None:
    from scipy.integrate import quad
    from scipy.stats import norm

    def told(x: float) -> float:  # of a fair coin, by N(0, 1) or 0.9 N(0, 1) + 0.1 N(1, 1)
        out, join = norm.pdf(x), 0.9 * norm.pdf(x) + 0.1 * norm.pdf(x - 1.0)
        return float(0.5 * sum(each * math.log(2.0 * each / (out + join)) for each in (out, join)))

    exact = quad(told, -10.0, 11.0)[0]
    assert exact <= few.information(GaussianDP(1.0), 0.1) <= 1.002 * exact
    rng = np.random.default_rng(24)
    coins = rng.random((50, 2_000)) < 0.5
    scores = (coins & (rng.random(coins.shape) < 0.1)) + rng.normal(size=coins.shape)
    assert not few.begin(GaussianDP(1.0), 2_000, ALPHA, steps=50, rate=0.1).after(scores, coins).refuted
    assert few.begin(GaussianDP(0.7), 2_000, ALPHA, steps=50, rate=0.1).after(scores, coins).refuted


def test_a_ceiling_says_what_all_guesses_right_would_show() -> None:
    bound, least = ceiling(100, PureDP(3.0), 0.0, ALPHA)
    assert bound == pytest.approx(math.log(ALPHA**0.01 / (1.0 - ALPHA**0.01)), abs=1e-3)
    assert least == math.ceil(math.log(ALPHA) / math.log(1.0 / (1.0 + math.exp(-3.0))))
    assert refutable(100, GaussianDP(1.0), ALPHA)
    assert not refutable(20, GaussianDP(4.0), ALPHA)
    best, least = ceiling(100, PureDP(1.0), 0.0, ALPHA, steps=1)
    assert 1.0 < best < math.log(100.0)
    assert least is not None
    assert ceiling(least, PureDP(1.0), 0.0, ALPHA, steps=1)[0] > 1.0 - 1e-3
    assert ceiling(1_000, GaussianDP(3.0), 1e-5, ALPHA, steps=1)[1] is None


def test_scores_of_another_shape_are_refused() -> None:
    with pytest.raises(InvalidSpec, match=r"with 10 canaries; got \(1, 9\), \(1, 10\)"):
        few.begin(PureDP(1.0), 10, ALPHA).after(np.zeros(9), np.zeros(10, bool))
