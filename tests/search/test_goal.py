"""The score of an event: what the certificate will say at the expected counts, for every claim form.

And what docs/statistics/search.md proves: no value or threshold is missed that a part of the runs shows.
"""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pytest
from scipy.special import ndtri

from dpaudit.base.arrays import Integers, Reals
from dpaudit.certify import CoinFlip, certify
from dpaudit.claims import ApproximateDP, Claim, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.events.features import Coordinate
from dpaudit.events.scores import Binning
from dpaudit.outputs.canonical import Token
from dpaudit.search.goal import Goal, Spread
from dpaudit.search.selection import MARGIN, propose, surely
from tests.cases import for_each

SIDE = 50_000  # certifying runs
POINTS = [(0.1, 0.03), (0.5, 0.3), (0.02, 0.002)]
NO_LUCK = Spread(np.zeros(1), np.zeros(1))


def of(value: float) -> Reals:
    return np.array([value])


@for_each("point", POINTS)
@for_each(
    ("claim", "certifier"),
    [
        (PureDP(1.0), "coin-flip"),
        (PureDP(1.0), "unconditional"),
        (ApproximateDP(1.0, 1e-3), "unconditional"),
        (GaussianDP(0.5), "unconditional"),
        (RenyiDP(2.0, 0.5), "unconditional"),
        (ZeroConcentratedDP(0.1), "unconditional"),
    ],
)
def test_the_score_is_what_the_certificate_will_say(claim: Claim, certifier: str, point: tuple[float, float]) -> None:
    """Without luck to take off, at the delta that the goal freezes: to within a twentieth of the bound."""
    p, q = point
    goal = Goal(claim, 2 * SIDE, 0.05, coins=certifier == "coin-flip", bins=certifier == "binned")
    score = float(goal.predicted(of(p), of(q), NO_LUCK)[0])
    evidence = CoinFlip(round(SIDE * p), round(SIDE * q), SIDE, SIDE)
    found = certify(evidence, claim, 0.95, certifier=certifier, delta=goal.delta(p, q, NO_LUCK))
    assert score == pytest.approx(found.lower, rel=0.05)


@for_each("claim", [PureDP(1.0), ApproximateDP(1.0, 1e-3), GaussianDP(1.0), RenyiDP(2.0, 1.0)])
def test_luck_and_few_runs_lower_the_score(claim: Claim) -> None:
    p, q = of(0.1), of(0.03)
    luck = Spread(of(0.01), of(0.02))
    for certifier in ("coin-flip", "unconditional") if claim.form in ("PureDP", "ApproximateDP") else ("binned",):
        coins, bins = certifier == "coin-flip", certifier == "binned"
        many, few = (Goal(claim, runs, 0.05, coins, bins) for runs in (1_000_000, 10_000))
        sure = float(many.predicted(p, q, NO_LUCK)[0])
        assert sure > float(many.predicted(p, q, luck)[0])
        assert sure > float(few.predicted(p, q, NO_LUCK)[0])
        assert sure <= float(np.asarray(claim.least_parameter(q, p))[0])


def test_a_line_loses_its_deviations_one_by_one() -> None:
    """Pure DP: the log ratio, less the luck, less the quantile of the certificate; the delta is that of the claim."""
    goal = Goal(PureDP(1.0), 100_000, 0.05)
    final = 1.6448536 * math.sqrt(2.0 / 100_000 * (1.0 / 0.2 + 1.0 / 0.1))
    for luck, less in ((Spread(of(0.03), of(0.01)), 0.2), (Spread(of(0.01), of(0.01), of(-0.01)), 0.2)):
        score = float(goal.predicted(of(0.2), of(0.1), luck)[0])
        assert score == pytest.approx(math.log(2.0) - less - final, abs=2e-4)
    together = float(goal.predicted(of(0.2), of(0.1), Spread(of(0.01), of(0.01), of(0.01)))[0])
    assert together - score == pytest.approx(0.2), "hits that change sides cost more than those that come together"
    for delta in (0.0, 0.01):
        assert Goal(ApproximateDP(1.0, delta), 1_000, 0.05).delta(0.3, 0.1, NO_LUCK) == delta


def test_an_event_is_no_better_for_more_hits_of_the_other_side() -> None:
    """Also where it will hardly have any: its limit is that of so many."""
    for coins in (True, False):
        goal = Goal(PureDP(1.0), 100_000, 0.05, coins=coins)
        q = np.geomspace(1e-9, 0.1, 200)
        none = np.zeros(len(q))
        scores = goal.predicted(np.full(len(q), 0.2), q, Spread(none, none))
        assert np.all(np.diff(scores) <= 1e-9)
        assert scores[0] == pytest.approx(math.log(0.2 * 50_000 / 3.0), abs=0.1)


def test_a_curve_freezes_the_tangent_where_the_certificate_will_end() -> None:
    """The point, lowered, lies on the member of the family that the score names; the delta is a little below its
    tangent's, so that bad luck leaves an epsilon to certify."""
    claim = GaussianDP(1.0)
    goal = Goal(claim, 100_000, 0.05, coins=False)
    p, q = goal.lowered(of(0.3), of(0.1), NO_LUCK)
    score = float(goal.predicted(of(0.3), of(0.1), NO_LUCK)[0])
    member = GaussianDP(score)
    assert member.max_probability(float(q[0])) == pytest.approx(float(p[0]), abs=1e-9)
    offset = member.tangent(float(q[0])).offset
    assert 0.9 * offset < goal.delta(0.3, 0.1, NO_LUCK) < offset


@for_each("claim", [GaussianDP(1.0), RenyiDP(2.0, 1.0), ZeroConcentratedDP(0.1)])
def test_null_an_event_that_is_as_likely_on_either_side_has_no_score(claim: Claim) -> None:
    """Also where a divergence would take the less likely side for a leak the other way."""
    goal = Goal(claim, 10_000, 0.05, coins=False)
    both = np.array([0.1, 0.1, 0.5]), np.array([0.1, 0.2, 0.5])
    none = Spread(np.zeros(3), np.zeros(3))
    assert not np.any(goal.predicted(*both, none) > 0.0)


def test_a_curve_without_a_parameter_scores_in_epsilon() -> None:
    """A shift of the whole profile by t reads as the epsilon promised at the frozen delta, plus t; ranks go by t."""
    from dpaudit.claims import PrivacyProfile

    goal = Goal(PrivacyProfile(((0.5, 0.1), (1.0, 0.01))), 10_000, 0.05, coins=False)
    score = goal.score(0.3, 0.01)
    assert score == pytest.approx(1.3)
    assert goal.rank(score, 0.01) == pytest.approx(0.3)
    plain = Goal(PureDP(1.0), 10_000, 0.05)
    assert plain.rank(plain.score(0.3, 0.0), 0.0) == 0.3


def test_no_claim_however_extreme_overflows() -> None:
    """Scores and tangents of events from certain to never seen, for few and for many certifying runs."""
    claims: list[Claim] = [
        *(PureDP(epsilon) for epsilon in (0.0, 1e-300, 710.0, 1_000.0)),
        *(ApproximateDP(epsilon, delta) for epsilon in (0.0, 1_000.0) for delta in (1e-300, 0.5)),
        *(GaussianDP(mu) for mu in (0.0, 1e-12, 1e6)),
        *(RenyiDP(order, 400.0) for order in (1.0001, 1e6)),
        *(ZeroConcentratedDP(rho) for rho in (1e-12, 1e6)),
    ]
    x, y = (each.ravel() for each in np.meshgrid(*[np.array([0.0, 3.0, 1e4, 5e5])] * 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for claim, certifier, runs in itertools.product(claims, ("coin-flip", "binned"), (10, 1_000_000)):
            goal = Goal(claim, runs, 1e-12, coins=certifier == "coin-flip", bins=certifier == "binned")
            scores = goal.scores(x, y, 500_000, 500_000, 2.5)
            assert not np.isnan(scores).any()
            deltas = [goal.delta((a + 0.5) / 500_001, (b + 0.5) / 500_001, NO_LUCK) for a, b in zip(x, y, strict=True)]
            assert all(0.0 <= delta <= 1.0 for delta in deltas)


BELOW, ABOVE, CONSTANT = 2.72, 2.89, 6.0  # deviations of hits of P and of Q, and what they cost together
FEWEST = 100.0  # hits of Q expected in the search
assert math.exp(-(BELOW**2) / 2.0) <= 0.025  # Chernoff's bound below, Bernstein's above: each fails in one of 40
assert math.exp(-(ABOVE**2) / (2.0 * (1.0 + ABOVE / (3.0 * math.sqrt(FEWEST))))) <= 0.0255
assert -math.log(MARGIN) < 0.17  # a threshold that is moved clear of an edge gives up so much of its bound


def part(z: float, sure: float, search: float, certifying: float) -> float:
    """The part of the certifying runs in the statement."""
    return (z / (z + (sure + CONSTANT) * math.sqrt(certifying / search))) ** 2


def shown(p: float, q: float, runs: float, z: float) -> float:
    """The bound of a known event at its expected counts, of so many runs of both sides."""
    return math.log(p / q) - z * math.sqrt(2.0 / runs * (1.0 / p + 1.0 / q))


@for_each("values", [2, 10_000])
def test_the_worst_counts_still_show_the_stated_part(values: int) -> None:
    """The inequality of the proof, over rates, runs and error probabilities."""
    sure, tried = surely(values), 0
    for alpha in (0.05, 1e-3, 1e-6):
        for search in (1e4, 1e6, 1e8):
            for share in (0.05, 0.25, 0.5):
                certifying = search * (1.0 - share) / share
                goal, z = Goal(PureDP(1.0), int(certifying), alpha), -float(ndtri(alpha))
                for q in np.geomspace(2.0 * FEWEST / search, 0.4, 12):
                    for p in q * np.exp([0.01, 0.1, 0.5, 1.0, 2.0, 4.0]):
                        if p > 1.0:
                            continue
                        x, y = (search / 2.0 * rate for rate in (p, q))
                        worst = np.array([x - BELOW * math.sqrt(x)]), np.array([y + ABOVE * math.sqrt(y)])
                        score = float(goal.scores(*worst, int(search / 2), int(search / 2), sure)[0])
                        at = part(z, sure, search, certifying) * certifying
                        assert score >= shown(p, q, at, z), (p, q, search, share, alpha)
                        tried += 1
    assert tried > 700


def law(values: int, rng: np.random.Generator) -> tuple[Reals, Reals]:
    """Outputs of random masses, a tenth of which are likelier on one side."""
    p = rng.dirichlet(np.full(values, 0.5))
    q = p * np.exp(np.where(rng.random(values) < 0.1, rng.normal(0.0, 1.5, values), 0.0))
    return p, q / q.sum()


def drawn(p: Reals, q: Reals, runs: int, rng: np.random.Generator) -> Integers:
    """Tokens of these laws: the table of their cells, of which the first and the last hold nothing."""
    return np.pad(np.stack([rng.multinomial(runs, side) for side in (p, q)], axis=1), ((1, 1), (0, 0)))


def tokens(values: int) -> Binning:
    return Binning(np.empty(0, np.float32), tuple(Token(str(j), 2 * j + 1) for j in range(values)))


@for_each("values", [3, 700], nightly=[40, 10_000])
def test_nothing_is_proposed_below_what_is_sure(values: int) -> None:
    """Whatever is believed: the score is at least that of each single value at `surely` deviations."""
    rng, bins = np.random.default_rng(values), tokens(values)
    goal = Goal(PureDP(1.0), 300_000, 1e-3)
    for _ in range(6):
        counts = drawn(*law(values, rng), 50_000, rng)
        found = propose(Coordinate(()), bins, counts, goal)
        seen = counts[counts.sum(axis=1) > 0]
        sure = [
            goal.scores(*seen[:, way].T.astype(float), 50_000, 50_000, surely(len(seen))).max()
            for way in ([0, 1], [1, 0])
        ]
        assert found.score >= max(sure) - 1e-12


@pytest.mark.long
@for_each("values", [10, 10_000], nightly=[1_000])
def test_the_score_reaches_the_oracle_of_the_stated_part(values: int) -> None:
    """In more than 0.95 of searches, all seeded: of twenty, nine would fail by chance with a probability of 2e-7."""
    search, certifying, alpha, missed = 200_000, 600_000, 1e-3, 0
    goal, z, bins = Goal(PureDP(1.0), certifying, alpha), -float(ndtri(alpha)), tokens(values)
    runs = part(z, surely(values), search, certifying) * certifying
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p, q = law(values, rng)
        found = propose(Coordinate(()), bins, drawn(p, q, search // 2, rng), goal)
        both = [*zip(p, q, strict=True), *zip(q, p, strict=True)]
        oracle = max((shown(a, b, runs, z) for a, b in both if b * search >= 2 * FEWEST), default=0.0)
        missed += found is None or found.score < oracle
    assert missed < 9
