"""Wealth of bets: fair under every claim, worth what it should be, replayed from the blocks alone; and milestones."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import optimize, stats

from dpaudit.base.strict import stored, value_of
from dpaudit.certify import coin_flip, sequential
from dpaudit.certify.evidence import CoinFlip
from dpaudit.certify.sequential import Block, certificate, epsilon_lower, log_factors, log_wealth, lower, offsets
from dpaudit.claims import Claim, GaussianDP, PureDP
from dpaudit.errors import InvalidSpec
from dpaudit.events import Event, event_from_dict
from dpaudit.events.features import Coordinate
from tests.cases import NIGHTLY, for_each, some
from tests.certify import exact
from tests.claims.definitions import CLAIMS

EVENT = Event(Coordinate(), ((0.0, math.inf),))
RATES = np.array([1e-9, 1e-4, 0.01, 0.2, 0.5, 0.8, 0.99, 1.0 - 1e-9])


def block(p: float, q: float, counts: tuple[int, int, int, int], delta: float = 0.0) -> Block:
    """A bet and the block that followed."""
    return Block(EVENT, "first", p, q, delta, CoinFlip(*counts))


def mean(four: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The mean factor of a run whose side is a fair coin's."""
    hit_p, miss_p, hit_q, miss_q = np.exp(four)
    return (p * hit_p + (1.0 - p) * miss_p + q * hit_q + (1.0 - q) * miss_q) / 2.0


@pytest.mark.long
@for_each("claim", [PureDP(0.0), PureDP(12.0), *some(CLAIMS, 9)])
def test_no_bet_has_a_mean_above_one_anywhere_in_the_region(claim: Claim) -> None:
    q = np.unique(np.concatenate([[0.0, 1.0], np.geomspace(1e-12, 1.0, 30), 1.0 - np.geomspace(1e-12, 1.0, 30)]))
    edge = np.array([claim.max_probability(float(each)) for each in q])
    for epsilon, delta in offsets(claim)[::9]:
        four = np.moveaxis(log_factors(RATES[:, None], RATES[None, :], epsilon, delta), -1, 0)[..., None]
        for p in (np.zeros_like(q), edge / 2.0, edge):
            assert np.max(mean(four, p, q)) <= 1.0 + 1e-12, (epsilon, delta)


@for_each("claim", [PureDP(1.0), GaussianDP(0.5)])
def test_a_bet_that_looks_back_is_fair_by_enumeration(claim: Claim) -> None:
    """Two blocks of six runs on the boundary; the second bet is what the first block seemed to show."""
    _, delta = offsets(claim)[len(offsets(claim)) // 2]
    q, p = 0.2, claim.max_probability(0.2)
    hits = exact.outcomes(6)
    chances = exact.chances(hits, 6, p, q)
    assert math.isclose(chances.sum(), 1.0, rel_tol=1e-12)

    def wealth(of_p: float, of_q: float) -> npt.NDArray[np.float64]:
        """What a bet makes of each outcome, the sides of the misses averaged out: coins, by their own chances."""
        hit_p, miss_p, hit_q, miss_q = np.exp(log_factors(of_p, of_q, claim.epsilon_at(delta), delta))
        share = (1.0 - p) / (2.0 - p - q)  # of the misses that are side P's
        x, y = hits.T
        return np.asarray(hit_p**x * hit_q**y * (share * miss_p + (1.0 - share) * miss_q) ** (6 - x - y))

    total, ruin = 0.0, 0.0
    for (x, y), chance, first in zip(hits.tolist(), chances, wealth(0.6, 0.05), strict=True):
        after = (x + 1.0) / (x + y + 2.0)
        both = first * wealth(after, 0.4 * (1.0 - after) + 0.01)
        total += chance * float(chances @ both)
        ruin += chance * float(chances @ (both >= 20.0))
    assert total <= 1.0 + 1e-9
    assert ruin <= 0.05


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


@for_each(("ratio", "offset"), [(1.0, 0.0), (2.0, 0.0), (math.e, 1e-5), (1.2, 0.3), (50.0, 0.01)])
@for_each(("p", "q"), [(0.5, 0.01), (0.9, 0.1), (0.999, 0.3), (0.05, 1e-4)])
def test_the_nearest_point_is_the_minimum(ratio: float, offset: float, p: float, q: float) -> None:
    def entropy(rate: float, other: float) -> float:
        return rate * math.log(rate / other) + (1.0 - rate) * math.log((1.0 - rate) / (1.0 - other))

    p0, q0 = (float(each) for each in sequential.nearest(np.array(p), np.array(q), np.array(ratio), np.array(offset)))
    if p <= ratio * q + offset:
        assert (p0, q0) == (p, q)
        return
    value = optimize.minimize_scalar(
        lambda at: entropy(p, ratio * at + offset) + entropy(q, at),
        method="bounded",
        bounds=(q, (p - offset) / ratio),
        options={"xatol": 1e-12},
    )
    assert math.isclose(p0, ratio * q0 + offset, rel_tol=1e-12)
    assert entropy(p, p0) + entropy(q, q0) <= value.fun * (1.0 + 1e-9)
    assert math.isclose(
        float(sequential.growth(np.array(p), np.array(q), np.array(ratio), np.array(offset))), value.fun / 2.0
    )
    four = log_factors(p, q, math.log(ratio), offset)
    assert math.isclose(float(mean(four, np.array(p0), np.array(q0))), 1.0, rel_tol=1e-9)


def test_a_long_bet_comes_near_the_truth() -> None:
    p, q = 0.5, 0.5 * math.exp(-2.0)
    result = certificate([block(p, q, (round(5e5 * p), round(5e5 * q), 500_000, 500_000))], PureDP(1.0), 0.95)
    assert 1.95 < result.lower <= 2.0
    assert (result.epsilon_lower, result.refuted) == (result.lower, True)


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


@pytest.mark.long
@for_each("claim", some(CLAIMS, 9))
def test_a_gross_fault_refutes_every_form_and_equal_sides_refute_none(claim: Claim) -> None:
    lines = offsets(claim)
    counts = 199_999, 1, 200_000, 200_000
    result = certificate([block(1.0 - 1e-5, 1e-6, counts, lines[-1][1])], claim, 0.95)
    assert result.refuted
    assert result.lower >= claim.promised(result.delta)
    assert result.epsilon_lower is not None
    assert result.epsilon_lower <= math.log(2e5)
    for hits in (0, 250, 500) if claim.value is None or claim.linear or NIGHTLY else (250,):
        result = certificate([block(0.6, 0.1, (hits, hits, 500, 500), lines[0][1])], claim, 0.95)
        assert (result.lower, result.p_value, result.refuted) == (0.0, 1.0, False)


def test_mirror_the_side_of_the_bet_is_what_counts() -> None:
    counts = 90, 10, 100, 100
    one, other = (Block(EVENT, side, 0.8, 0.15, 0.0, CoinFlip(*counts)) for side in ("first", "second"))
    assert certificate([one], PureDP(1.0), 0.95) == certificate([other], PureDP(1.0), 0.95)
    assert certificate([one], PureDP(1.0), 0.95).refuted
    assert certificate([block(0.8, 0.15, (10, 90, 100, 100))], PureDP(1.0), 0.95).lower == 0.0


def test_wealth_is_the_product_over_blocks_and_counts_at_its_highest() -> None:
    blocks = [block(0.8, 0.15, (90, 10, 100, 100)), block(0.8, 0.15, (10, 90, 100, 100))]
    alone = [float(log_wealth([each], PureDP(1.0))[0]) for each in blocks]
    assert log_wealth(blocks, PureDP(1.0)).tolist() == pytest.approx([alone[0], sum(alone)])
    assert certificate(blocks, PureDP(1.0), 0.95).p_value == certificate(blocks[:1], PureDP(1.0), 0.95).p_value
    assert log_wealth([], PureDP(1.0)).tolist() == []
    assert certificate([], PureDP(1.0), 0.95).p_value == 1.0


@for_each("hits", range(50, 100, 5))
def test_the_bound_reaches_the_claim_exactly_where_the_p_value_does(hits: int) -> None:
    result = certificate([block(0.7, 0.2, (hits, 15, 100, 100))], PureDP(1.0), 0.95, share=0.2)
    assert result.refuted == (result.lower >= 1.0)


@for_each("p, q, epsilon, delta", [(0.5, 0.5, 0.0, 0.0), (0.9, 0.1, math.inf, 0.0), (0.9, 0.1, 1e-9, 0.9)])
def test_a_bet_inside_the_claim_or_against_no_line_stakes_nothing(
    p: float, q: float, epsilon: float, delta: float
) -> None:
    assert log_factors(p, q, epsilon, delta).tolist() == [0.0] * 4


def test_both_parts_of_an_audit_are_united() -> None:
    blocks = [block(0.8, 0.15, (900, 100, 1000, 1000))]
    bets, fixed = certificate(blocks, PureDP(1.0), 0.95, share=0.2), certificate([], PureDP(1.0), 0.96)
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


def worst(milestones: sequential.Milestones, q: float, epsilon: float, alpha: float) -> float:
    """The probability that some milestone refutes p <= e^epsilon q at p = e^epsilon q, each at its share of alpha.

    Whoever sees every output and ends the runs at will refutes a true claim where any milestone would: that is summed
    over all courses of the hits.
    """
    p, size = math.exp(epsilon) * q, milestones.planned_runs + 1
    here, chance = np.zeros((size, size)), 0.0  # by the hits of either side, of courses that refute nothing yet
    here[0, 0] = 1.0
    for runs in range(1, size):
        after = here * (1.0 - p / 2 - q / 2)
        after[1:, :] += here[:-1, :] * (p / 2)
        after[:, 1:] += here[:, :-1] * (q / 2)
        here = after
        if runs in milestones.ends:
            level = alpha * milestones.share(runs)
            for x, y in np.argwhere(here > 0.0).tolist():
                spare = (runs - x - y) // 2
                counts = CoinFlip(x, y, x + spare, runs - x - spare)
                if coin_flip.p_value(counts, epsilon, 0.0) <= level:
                    chance, here[x, y] = chance + here[x, y], 0.0
    return chance


@for_each("epsilon", [0.0, 0.5])
def test_no_choice_among_milestones_errs_more_often_than_alpha(epsilon: float) -> None:
    milestones = sequential.Milestones.among(range(1, 61), lambda runs, share: runs >= 10)
    assert len(milestones.ends) >= 5
    errors = [worst(milestones, q, epsilon, 0.05) for q in (0.02, 0.2, 0.5)]
    assert 0.02 <= max(errors) <= 0.05 + 1e-11  # the level is used


@for_each("ends", [(5,), (5, 6), tuple(range(10, 200, 7))])
def test_shares_add_up_to_the_whole(ends: tuple[int, ...]) -> None:
    milestones = sequential.Milestones(ends)
    assert math.fsum(map(milestones.share, ends)) == pytest.approx(1.0, abs=1e-15)
    assert (milestones.reached(ends[0] - 1), milestones.reached(10**9)) == (0, ends[-1])


@for_each("ends", [(), (0, 1), (3, 3), (4, 2)])
def test_milestones_that_do_not_grow_are_refused(ends: tuple[int, ...]) -> None:
    with pytest.raises(InvalidSpec, match="milestones must be"):
        sequential.Milestones(ends)
    with pytest.raises(InvalidSpec, match="7 certifying runs are no milestone of 5, 10"):
        sequential.Milestones((5, 10)).share(7)
