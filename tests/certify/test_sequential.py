"""Wealth of bets: fair under every claim, worth what it should be, and replayed from the blocks alone."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, stats

from dpaudit.base.strict import stored, value_of
from dpaudit.certify import sequential
from dpaudit.certify.evidence import CoinFlip
from dpaudit.certify.sequential import (
    Block,
    certificate,
    epsilon_lower,
    growth,
    log_factors,
    log_wealth,
    lower,
    nearest,
    offsets,
)
from dpaudit.claims import (
    ApproximateDP,
    Claim,
    GaussianDP,
    PrivacyProfile,
    PureDP,
    RenyiDP,
    TradeOffDP,
    ZeroConcentratedDP,
)
from dpaudit.errors import InvalidSpec
from dpaudit.events import Event, event_from_dict
from dpaudit.events.features import Coordinate
from tests.certify import exact

EVENT = Event(Coordinate(), ((0.0, math.inf),))
CLAIMS: tuple[Claim, ...] = (
    PureDP(0.0),
    PureDP(0.01),
    PureDP(1.0),
    PureDP(12.0),
    ApproximateDP(1.0, 1e-5),
    ApproximateDP(0.0, 0.2),
    ApproximateDP(3.0, 0.4),
    GaussianDP(0.268),
    GaussianDP(3.0),
    RenyiDP(2.0, 0.5),
    RenyiDP(20.0, 0.1),
    ZeroConcentratedDP(0.1),
    ZeroConcentratedDP(0.5, 0.1),
    PrivacyProfile([(1.0, 0.02), (0.5, 0.1), (2.0, 0.001)]),
    TradeOffDP([(0.0, 0.9), (0.1, 0.5), (0.4, 0.1), (1.0, 0.0)]),
)
RATES = (1e-9, 1e-4, 0.01, 0.2, 0.5, 0.8, 0.99, 1.0 - 1e-9)


def block(p: float, q: float, counts: tuple[int, int, int, int], delta: float = 0.0) -> Block:
    """A bet and the block that followed."""
    return Block(EVENT, "first", p, q, delta, CoinFlip(*counts))


def mean(four: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The mean factor of a run whose side is a fair coin's."""
    hit_p, miss_p, hit_q, miss_q = np.exp(four)
    return (p * hit_p + (1.0 - p) * miss_p + q * hit_q + (1.0 - q) * miss_q) / 2.0


# --- valid ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_no_bet_has_a_mean_above_one_anywhere_in_the_region(claim: Claim) -> None:
    q = np.unique(np.concatenate([[0.0, 1.0], np.geomspace(1e-12, 1.0, 60), 1.0 - np.geomspace(1e-12, 1.0, 60)]))
    edge = np.array([claim.max_probability(float(each)) for each in q])
    for (epsilon, delta), p_bet, q_bet in itertools.product(offsets(claim)[::9], RATES, RATES):
        four = log_factors(p_bet, q_bet, epsilon, delta)
        for p in (np.zeros_like(q), edge / 2.0, edge):
            assert np.max(mean(four, p, q)) <= 1.0 + 1e-12, (epsilon, delta, p_bet, q_bet)


@pytest.mark.long
@pytest.mark.parametrize("claim", [PureDP(1.0), GaussianDP(0.5)], ids=str)
def test_a_bet_that_looks_back_is_fair_by_enumeration(claim: Claim) -> None:
    """Two blocks of six runs on the boundary; the second bet is what the first block seemed to show."""
    _, delta = offsets(claim)[len(offsets(claim)) // 2]
    q = 0.2
    p = claim.max_probability(q)
    hits = exact.outcomes(6)
    chances = exact.chances(hits, 6, p, q)
    assert math.isclose(chances.sum(), 1.0, rel_tol=1e-12)
    total, ruin = 0.0, 0.0
    for (x, y), chance in zip(hits.tolist(), chances, strict=True):
        first = block(0.6, 0.05, (x, y, *_runs(x, y, 6)), delta)
        after = (x + 1.0) / (x + y + 2.0)
        for (x2, y2), chance2 in zip(hits.tolist(), chances, strict=True):
            second = block(after, 0.4 * (1.0 - after) + 0.01, (x2, y2, *_runs(x2, y2, 6)), delta)
            # which side the misses were on does not matter here: hits alone are enumerated, misses are averaged
            wealth = _averaged([first, second], claim, (x, y), (x2, y2))
            total += chance * chance2 * wealth
            ruin += chance * chance2 * (wealth >= 20.0)
    assert total <= 1.0 + 1e-9
    assert ruin <= 0.05


def _runs(x: int, y: int, runs: int) -> tuple[int, int]:
    return x + (runs - x - y), y


def _averaged(blocks: list[Block], claim: Claim, *seen: tuple[int, int]) -> float:
    """The wealth with the sides of the misses averaged out: they are fair coins, weighted by their own chances."""
    wealth = 1.0
    q = 0.2
    p = claim.max_probability(q)
    share = (1.0 - p) / (2.0 - p - q)  # of the misses that are side P's
    for each, (x, y) in zip(blocks, seen, strict=True):
        hit_p, miss_p, hit_q, miss_q = np.exp(log_factors(each.p, each.q, claim.epsilon_at(each.delta), each.delta))
        misses = each.evidence.runs - x - y
        wealth *= hit_p**x * hit_q**y * (share * miss_p + (1.0 - share) * miss_q) ** misses
    return float(wealth)


def test_the_bound_holds_at_all_times_at_once() -> None:
    """200 paths at a true loss of 1: more than 31 wrong bounds have a chance below 1e-7 at 5 %."""
    rng = np.random.default_rng(1)
    p, q = math.e / (1.0 + math.e), 1.0 / (1.0 + math.e)
    wrong = 0
    for _ in range(200):
        blocks = []
        for size in (50, 100, 200, 400, 800):
            sides = int(rng.binomial(size, 0.5))
            counts = int(rng.binomial(sides, p)), int(rng.binomial(size - sides, q)), sides, size - sides
            blocks.append(block(0.78, 0.24, counts))
        wrong += lower(blocks, PureDP(0.9), 0.05) >= 1.0
    assert float(stats.binom.sf(31, 200, 0.05)) < 1e-7
    assert wrong <= 31


# --- tight ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ratio", "offset"), [(1.0, 0.0), (2.0, 0.0), (math.e, 1e-5), (1.2, 0.3), (50.0, 0.01)])
@pytest.mark.parametrize(("p", "q"), [(0.5, 0.01), (0.9, 0.1), (0.999, 0.3), (0.05, 1e-4)])
def test_the_nearest_point_is_the_minimum(ratio: float, offset: float, p: float, q: float) -> None:
    def entropy(rate: float, other: float) -> float:
        return rate * math.log(rate / other) + (1.0 - rate) * math.log((1.0 - rate) / (1.0 - other))

    p0, q0 = (float(each) for each in nearest(np.array(p), np.array(q), np.array(ratio), np.array(offset)))
    if p <= ratio * q + offset:
        assert (p0, q0) == (p, q)
        return
    value = optimize.minimize_scalar(
        lambda at: entropy(p, ratio * at + offset) + entropy(q, at),
        (q, (p - offset) / ratio),
        method="bounded",
        bounds=(q, (p - offset) / ratio),
        options={"xatol": 1e-12},
    )
    assert math.isclose(p0, ratio * q0 + offset, rel_tol=1e-12)
    assert entropy(p, p0) + entropy(q, q0) <= value.fun * (1.0 + 1e-9)
    assert math.isclose(float(growth(np.array(p), np.array(q), np.array(ratio), np.array(offset))), value.fun / 2.0)
    four = log_factors(p, q, math.log(ratio), offset)
    assert math.isclose(float(mean(four, np.array(p0), np.array(q0))), 1.0, rel_tol=1e-9)


def test_a_long_bet_comes_near_the_truth() -> None:
    p, q = 0.5, 0.5 * math.exp(-2.0)
    counts = round(5e5 * p), round(5e5 * q), 500_000, 500_000
    result = certificate([block(p, q, counts)], PureDP(1.0), 0.95)
    assert 1.95 < result.lower <= 2.0
    assert result.epsilon_lower == result.lower
    assert result.refuted


def test_a_curved_claim_is_bounded_in_its_own_parameter() -> None:
    claim, truth = GaussianDP(1.0), 2.0
    _, delta = min(offsets(claim), key=lambda line: abs(line[1] - 0.5))
    p, q = float(stats.norm.cdf(truth / 2.0)), float(stats.norm.cdf(-truth / 2.0))
    result = certificate([block(p, q, (round(1e5 * p), round(1e5 * q), 100_000, 100_000), delta)], claim, 0.95)
    assert 1.5 < result.lower <= truth  # at a delta of the claim, not of the truth
    assert result.delta == delta
    assert result.epsilon_lower is not None
    assert 0.0 < result.epsilon_lower <= GaussianDP(truth).epsilon_at(delta)
    assert epsilon_lower([block(p, q, (9, 1, 10, 10), 0.123)], claim, 0.05) == (0.0, 0.0)  # no line of the claim


# --- null, mirror, and the rest --------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("claim", [claim for claim in CLAIMS if claim != PureDP(12.0)], ids=str)
def test_a_gross_fault_refutes_every_form(claim: Claim) -> None:
    _, delta = offsets(claim)[-1]
    counts = 199_999, 1, 200_000, 200_000
    result = certificate([block(1.0 - 1e-5, 1e-6, counts, delta)], claim, 0.95)
    assert result.refuted
    assert result.lower >= claim.promised(result.delta)
    assert result.epsilon_lower is not None
    assert result.epsilon_lower <= math.log(2e5)


@pytest.mark.long
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_equal_sides_refute_nothing(claim: Claim) -> None:
    _, delta = offsets(claim)[0]
    for counts in ((0, 0, 500, 500), (250, 250, 500, 500), (500, 500, 500, 500)):
        result = certificate([block(0.6, 0.1, counts, delta)], claim, 0.95)
        assert (result.lower, result.p_value, result.refuted) == (0.0, 1.0, False)


def test_the_side_of_the_bet_is_what_counts() -> None:
    counts = 90, 10, 100, 100
    one = block(0.8, 0.15, counts)
    other = Block(EVENT, "second", 0.8, 0.15, 0.0, CoinFlip(*counts))
    swapped = block(0.8, 0.15, (10, 90, 100, 100))
    assert certificate([one], PureDP(1.0), 0.95) == certificate([other], PureDP(1.0), 0.95)
    assert certificate([one], PureDP(1.0), 0.95).refuted
    assert certificate([swapped], PureDP(1.0), 0.95).lower == 0.0


def test_wealth_is_the_product_over_blocks_and_counts_at_its_highest() -> None:
    blocks = [block(0.8, 0.15, (90, 10, 100, 100)), block(0.8, 0.15, (10, 90, 100, 100))]
    wealth = log_wealth(blocks, PureDP(1.0))
    alone = [float(log_wealth([each], PureDP(1.0))[0]) for each in blocks]
    assert wealth.tolist() == pytest.approx([alone[0], sum(alone)])
    assert certificate(blocks, PureDP(1.0), 0.95).p_value == certificate(blocks[:1], PureDP(1.0), 0.95).p_value
    assert log_wealth([], PureDP(1.0)).tolist() == []
    assert certificate([], PureDP(1.0), 0.95).p_value == 1.0


@pytest.mark.parametrize("hits", range(50, 100, 5))
def test_the_bound_reaches_the_claim_exactly_where_the_p_value_does(hits: int) -> None:
    result = certificate([block(0.7, 0.2, (hits, 15, 100, 100))], PureDP(1.0), 0.95, share=0.2)
    assert result.refuted == (result.lower >= 1.0)


def test_a_bet_inside_the_claim_or_against_no_line_stakes_nothing() -> None:
    assert log_factors(0.5, 0.5, 0.0, 0.0).tolist() == [0.0] * 4
    assert log_factors(0.9, 0.1, math.inf, 0.0).tolist() == [0.0] * 4
    assert log_factors(0.9, 0.1, 1e-9, 0.9).tolist() == [0.0] * 4


def test_both_parts_of_an_audit_are_united() -> None:
    blocks = [block(0.8, 0.15, (900, 100, 1000, 1000))]
    bets = certificate(blocks, PureDP(1.0), 0.95, share=0.2)
    fixed = certificate([], PureDP(1.0), 0.96)
    both = sequential.united(bets, fixed, share=0.2)
    assert (both.lower, both.p_value, both.confidence) == (bets.lower, bets.p_value, 0.95)
    assert bets.p_value == pytest.approx(certificate(blocks, PureDP(1.0), 0.99).p_value * 5.0)


def test_blocks_are_stored_whole() -> None:
    one = block(0.8, 0.15, (9, 1, 10, 12), 0.25)
    written = stored(one)
    assert written["event_in_words"] == str(one.event)
    assert value_of(Block, written, {Event: lambda event, _: event_from_dict(event)}) == one
    for p, q, delta in ((1.0, 0.1, 0.0), (0.5, 0.0, 0.0), (0.5, 0.1, 1.0), (0.5, 0.1, -0.1)):
        with pytest.raises(InvalidSpec):
            block(p, q, (0, 0, 0, 0), delta)
