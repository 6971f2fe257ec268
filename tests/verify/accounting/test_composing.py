"""Accounting against closed forms, frozen values of dp-accounting, and brute force. Nothing depends on chance."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from dpaudit.claims.composition import compose_optimal
from dpaudit.claims.gaussian import GaussianDP
from dpaudit.claims.pure import ApproximateDP, PureDP
from dpaudit.claims.relation import Relation
from dpaudit.errors import InvalidSpec
from dpaudit.losses.composing import laplace_epsilon, responses
from dpaudit.losses.discrete import delta_of, epsilon_of
from dpaudit.losses.normal import gaussian_epsilon
from dpaudit.results.upper import Arithmetic, Label
from dpaudit.verify.accounting import (
    FinitePair,
    Laplace,
    SubsampledGaussian,
    compose,
    compose_replayed,
    composed_delta,
)
from dpaudit.verify.accounting.composing import _grids
from dpaudit.verify.accounting.parts import discretised
from dpaudit.verify.accounting.summing import delta_of_sum, epsilon_of_sum, tail
from dpaudit.verify.replay import replay
from tests.cases import for_each
from tests.catalogue.between import between_epsilons

FROZEN = json.loads(Path(__file__).with_name("accounting_values.json").read_text())
CLOSE = 2e-5  # of epsilon: what the grid may cost
COIN = FinitePair((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))


def named(row: dict[str, float]) -> str:
    return ",".join(f"{value:g}" for key, value in row.items() if key not in ("high", "low"))


# --- against dp-accounting ----------------------------------------------------------------------------------------


@for_each("row", FROZEN["subsampled"], ids=named)
def test_subsampled_normal_noise_agrees_with_dp_accounting(row: dict[str, float]) -> None:
    found = compose([SubsampledGaussian(row["noise"], row["rate"])] * int(row["steps"]), row["delta"]).epsilon_upper
    assert row["low"] <= found <= row["high"] * (1.0 + CLOSE)
    assert abs(found - row["high"]) <= row["steps"] * FROZEN["interval"]


@for_each("row", FROZEN["laplace"], ids=named)
def test_laplace_noise_agrees_with_dp_accounting(row: dict[str, float]) -> None:
    found = compose([Laplace(row["epsilon"])] * int(row["steps"]), row["delta"]).epsilon_upper
    assert row["low"] <= found
    assert found == pytest.approx(row["high"], rel=CLOSE)


@pytest.mark.parametrize("row", FROZEN["mixed"], ids=named)
def test_different_releases_agree_with_dp_accounting(row: dict[str, float]) -> None:
    parts = [Laplace(0.3), Laplace(0.2), GaussianDP(0.25), GaussianDP(0.2), SubsampledGaussian(1.0, 0.1)]
    found = compose(parts, row["delta"])
    assert row["low"] <= found.epsilon_upper
    assert found.epsilon_upper == pytest.approx(row["high"], rel=CLOSE)
    assert (found.label, found.arithmetic, found.epsilon_lower) == (Label.NUMERIC_UPPER, Arithmetic.FLOATS, None)


# --- the grid is above what is exact, and close -------------------------------------------------------------------


@for_each("delta", [0.3, 1e-3, 1e-8, 1e-15])
@for_each(("mu", "times"), [(1.0, 1), (0.02, 1000), (0.5, 30)])
def test_the_grid_stays_above_normal_noise(mu: float, times: int, delta: float) -> None:
    exact = gaussian_epsilon(delta, mu * math.sqrt(times))
    found = max(epsilon_of_sum(order, delta) for order in _grids([GaussianDP(mu)] * times))
    assert exact <= found <= exact * (1.0 + CLOSE)


@pytest.mark.parametrize("delta", [0.2, 1e-4, 1e-9])
@pytest.mark.parametrize(("noise", "rate", "steps"), [(1.0, 0.2, 20), (0.5, 0.5, 3)])
def test_the_grid_stays_above_what_cannot_be_undercut(noise: float, rate: float, steps: int, delta: float) -> None:
    low, high = between_epsilons(delta, noise, rate, steps)
    found = compose([SubsampledGaussian(noise, rate)] * steps, delta).epsilon_upper
    assert low <= found <= high * (1.0 + CLOSE)


@for_each("delta", [0.1, 1e-6, 1e-20, 1e-60, 1e-150])
@for_each(("epsilon", "times"), [(1.0, 1), (0.1, 100), (0.5, 50), (2.0, 7), (0.013, 800)])
def test_the_grid_stays_above_optimal_composition_at_tiny_deltas(epsilon: float, times: int, delta: float) -> None:
    exact = compose_optimal(PureDP(epsilon), times).epsilon_at(delta)
    found = max(epsilon_of_sum(order, delta) for order in _grids([PureDP(epsilon)] * times))
    assert exact - 1e-12 <= found <= exact + CLOSE  # the exact one is rounded up too


@for_each("delta", [0.1, 1e-4, 1e-7])
@for_each(("epsilon", "times"), [(0.5, 3), (0.1, 20), (1.5, 8)])
def test_the_grid_stays_above_laplace_noise(epsilon: float, times: int, delta: float) -> None:
    exact = laplace_epsilon(times, epsilon, delta)
    found = max(epsilon_of_sum(order, delta) for order in _grids([Laplace(epsilon)] * times))
    assert exact - 1e-9 <= found <= exact * (1.0 + CLOSE)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, 2.5, 6.0])
def test_the_grid_stays_above_the_delta_of_responses_that_leak(epsilon: float) -> None:
    exact = delta_of(*responses(20, 0.3, 1e-4), epsilon)
    found = max(delta_of_sum(order, epsilon) for order in _grids([ApproximateDP(0.3, 1e-4)] * 20))
    assert exact * (1.0 - 1e-9) <= found <= exact * (1.0 + 1e-4)


@pytest.mark.parametrize("width", [2.0**-9, 2.0**-4, 0.25])
def test_one_step_is_above_its_exact_delta_however_wide_the_cells(width: float) -> None:
    losses, back = discretised(Laplace(0.7), width)
    for epsilon in np.linspace(0.0, 0.75, 76):
        exact = max(0.0, -math.expm1((epsilon - 0.7) / 2.0))
        assert min(losses.delta(epsilon), back.delta(epsilon)) >= exact - 1e-15
        assert losses.delta(epsilon) <= exact + width


@pytest.mark.parametrize("tilt", [1e-4, 0.05, 0.5, 3.0, 30.0])
def test_whatever_the_tilt_the_tail_is_above_what_is_exact(tilt: float) -> None:
    """100 coins, from 5e-1 down to 1e-35: where the tilt is far off, the errors that are added have to cover it."""
    ones = np.arange(101)
    chances = [math.comb(100, int(k)) * 3.0 ** float(k) / 4.0**100 for k in ones]
    (steps, _), times = discretised(PureDP(math.log(3.0)), 2.0**-7), 100
    found = tail([(steps, times)], tilt)
    losses = math.log(3.0) * (2.0 * ones - 100.0)
    epsilons = np.linspace(1.0, 109.0, 37)
    for at in epsilons:
        above = zip(chances, losses, strict=True)
        exact = math.fsum(p * -math.expm1(at - loss) for p, loss in above if loss > at)
        assert found.delta(float(at)) >= exact * (1.0 - 1e-12)
    assert found.delta(float(epsilons[-1])) < 1e-8


def test_the_errors_of_the_transform_are_counted() -> None:
    """Untilted, masses below 1e-16 are noise, and the bound says so; tilted, the tail is known to many digits."""
    (steps, _) = discretised(PureDP(math.log(3.0)), 2.0**-7)
    blunt, sharp = (tail([(steps, 100)], tilt) for tilt in (1e-4, 3.0))
    assert np.interp(106.0, blunt.values, blunt.wrong) > 1e-19
    assert sharp.delta(106.0) < 2.0 * (0.75**100 + 100 * 0.75**99 * 0.25)


def test_what_the_window_leaves_out_is_counted() -> None:
    (steps, _) = discretised(Laplace(0.5), 2.0**-8)
    assert 0.0 < tail([(steps, 400)], 0.5).infinite < 1e-20
    assert tail([(steps, 2)], 0.5).infinite == 0.0  # nothing is left out


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 2.0])
def test_one_subsampled_release_takes_the_worse_of_the_two_orders(epsilon: float) -> None:
    """The best events are half-lines: the record's sum above, or below, where the ratio is e^epsilon."""
    rate, noise = 0.3, 0.8

    def place(ratio: float) -> float:
        return noise**2 * math.log((ratio - 1.0 + rate) / rate) + 0.5

    at = place(math.exp(epsilon))
    mixed, alone = (1.0 - rate) * norm.sf(at / noise) + rate * norm.sf((at - 1.0) / noise), norm.sf(at / noise)
    removed, added = mixed - math.exp(epsilon) * alone, 0.0
    if math.exp(-epsilon) > 1.0 - rate:
        at = place(math.exp(-epsilon))
        mixed, alone = (1.0 - rate) * norm.cdf(at / noise) + rate * norm.cdf((at - 1.0) / noise), norm.cdf(at / noise)
        added = alone - math.exp(epsilon) * mixed
    assert removed > added
    found = composed_delta([SubsampledGaussian(noise, rate)], epsilon).upper
    assert removed <= found <= removed * (1.0 + 1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_different_finite_pairs_against_all_outputs(seed: int) -> None:
    """Three pairs of 4 outputs, some of probability 0: the grid, and the exact composition, against 64 outputs."""
    rng = np.random.default_rng(seed)
    pairs = []
    for _ in range(3):
        laws = rng.integers(0, 6, (2, 4))
        laws[:, 0] += 1  # so that neither law is empty
        pairs.append(FinitePair(*(tuple(Fraction(int(each), int(law.sum())) for each in law) for law in laws)))
    p, q = (
        np.array([float(math.prod(each)) for each in itertools.product(*laws)])
        for laws in ([pair.first for pair in pairs], [pair.second for pair in pairs])
    )
    for delta in (0.0, 0.05, 0.3, 0.9):
        exact = epsilon_of(p, q, delta)
        found = compose(pairs, delta)
        assert found.label is Label.EXACT_PAIR
        assert found.epsilon_lower is not None
        assert found.epsilon_upper == pytest.approx(exact, abs=1e-9)
        assert 0.0 <= found.epsilon_upper - found.epsilon_lower <= 1e-14 or math.isinf(exact)
        grid = max(epsilon_of_sum(order, delta) for order in _grids(pairs)) if delta else math.inf
        assert grid >= exact - 1e-9
    for epsilon in (0.0, 0.4, 2.0):
        exact = delta_of(p, q, epsilon)
        enclosed = composed_delta(pairs, epsilon)
        assert enclosed.lower - 1e-12 <= exact <= enclosed.upper + 1e-12
        assert enclosed.upper - enclosed.lower <= 1e-15
        grid = max(delta_of_sum(order, epsilon) for order in _grids(pairs))
        assert exact - 1e-12 <= grid <= exact + 1e-5


def test_many_outputs_go_to_the_grid() -> None:
    exact = compose([COIN] * 100, 1e-6)
    many = compose([COIN] * 600, 1e-6)
    assert (exact.arithmetic, many.arithmetic) == (Arithmetic.BALLS, Arithmetic.FLOATS)
    optimal = compose_optimal(PureDP(math.log(3.0)), 600).epsilon_at(1e-6)
    assert optimal <= many.epsilon_upper <= optimal * (1.0 + CLOSE)
    assert exact.epsilon_upper == pytest.approx(compose_optimal(PureDP(math.log(3.0)), 100).epsilon_at(1e-6), rel=1e-9)


# --- which method -------------------------------------------------------------------------------------------------


def test_normal_noise_is_enclosed() -> None:
    found = compose([GaussianDP(0.02)] * 100, 1e-5)
    assert found.epsilon_upper == pytest.approx(0.725521750857797, abs=1e-12)
    assert found.arithmetic is Arithmetic.BALLS
    assert found.epsilon_lower is None  # what keeps the promise may lose less
    enclosed = composed_delta([GaussianDP(0.02)] * 100, found.epsilon_upper)
    assert enclosed.lower <= enclosed.upper <= 1e-5


def test_equal_promises_compose_optimally() -> None:
    found = compose([PureDP(1 / 800)] * 10_000, math.exp(-32))
    assert (round(found.epsilon_upper, 4), found.source) == (0.8916, "optimal composition")
    assert composed_delta([PureDP(1 / 800)] * 10_000, found.epsilon_upper).upper <= math.exp(-32) * (1 + 1e-9)


def test_different_promises_lie_between_those_of_the_least_and_the_greatest() -> None:
    def each(epsilon: float) -> float:
        return compose([PureDP(epsilon)] * 60, 1e-6).epsilon_upper

    found = compose([PureDP(0.09 + 0.02 * (i % 2)) for i in range(60)], 1e-6).epsilon_upper
    assert each(0.09) < found < each(0.11)
    assert compose([PureDP(0.5), ApproximateDP(0.25, 1e-6)], 1e-5).epsilon_upper < 0.75 + 1e-12


def test_nothing_is_better_than_basic_composition_at_delta_0() -> None:
    assert compose([Laplace(0.1), PureDP(0.2)], 0.0).epsilon_upper == pytest.approx(0.3, abs=1e-15)
    assert compose([Laplace(0.25)], 0.0).epsilon_upper == 0.25
    assert math.isinf(compose([SubsampledGaussian(1.0, 0.5)], 0.0).epsilon_upper)
    assert math.isinf(compose([ApproximateDP(0.1, 1e-3), PureDP(0.1)], 0.0).epsilon_upper)
    one_sided = FinitePair((Fraction(1), Fraction(0)), (Fraction(1, 2), Fraction(1, 2)))
    for pair in (one_sided, FinitePair(one_sided.second, one_sided.first)):
        assert math.isinf(compose([pair, PureDP(0.1)], 0.0).epsilon_upper)
        assert math.isinf(compose([pair, PureDP(0.1)], 0.4).epsilon_upper)


def test_one_laplace_release_is_exact() -> None:
    assert compose([Laplace(1.0)], 0.25).epsilon_upper == pytest.approx(1.0 + 2.0 * math.log(0.75), abs=1e-15)
    assert compose([Laplace(1.0)], 0.9).epsilon_upper == 0.0
    assert compose([Laplace(1.0)], 1.0).epsilon_upper == 0.0


def test_outputs_that_only_one_dataset_has() -> None:
    uniform = FinitePair((Fraction(1, 6),) * 6 + (Fraction(0),), (Fraction(0),) + (Fraction(1, 6),) * 6)
    assert math.isinf(compose([uniform], 0.1).epsilon_upper)
    assert compose([uniform], Fraction(1, 6) + Fraction(1, 10**9)).epsilon_upper == 0.0
    assert composed_delta([uniform], 5.0).upper == pytest.approx(1 / 6, abs=1e-15)
    both = composed_delta([uniform, COIN], 1.0)
    assert both.lower >= 1 / 6


def test_datasets_without_a_common_output_have_no_epsilon() -> None:
    apart = FinitePair((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1)))
    for parts in ([apart], [apart, PureDP(0.1), Laplace(0.1)]):
        assert math.isinf(compose(parts, 0.999).epsilon_upper)
        assert compose(parts, 1.0).epsilon_upper == 0.0
        assert composed_delta(parts, 3.0).upper == 1.0


def test_parts_that_tell_nothing() -> None:
    same = FinitePair((Fraction(1, 2),) * 2, (Fraction(1, 2),) * 2)
    assert compose([same, PureDP(0.0), GaussianDP(0.0)], 1e-9).epsilon_upper <= 1e-4
    assert compose([PureDP(0.0)] * 5, 0.0).epsilon_upper == 0.0
    assert compose([GaussianDP(0.0)] * 5, 0.0).epsilon_upper == 0.0


def test_a_pair_that_dominates_holds_for_all_inputs() -> None:
    alone, all_inputs = COIN, FinitePair(COIN.first, COIN.second, dominating=True)
    assert compose([alone], 0.0).label is Label.EXACT_PAIR
    assert not compose([alone, PureDP(0.1)], 0.01).holds_for_all_inputs
    found = compose([all_inputs], 0.0)
    assert found.label is Label.NUMERIC_UPPER
    assert found.epsilon_upper == pytest.approx(math.log(3.0), abs=1e-15)
    assert found.epsilon_upper >= math.log(3.0)


def test_a_law_may_be_named_by_outputs() -> None:
    counted = Counter({"a": Fraction(1, 3), "b": Fraction(2, 3)})
    pair = FinitePair.of_laws(counted, {"b": Fraction(2, 3), "a": Fraction(1, 3)})
    assert compose([pair], 0.0).epsilon_upper == 0.0


def test_more_releases_lose_more_and_a_larger_delta_less() -> None:
    by_times = [compose([Laplace(0.2)] * k, 1e-6).epsilon_upper for k in (1, 2, 5, 20)]
    by_delta = [compose([Laplace(0.2)] * 20, d).epsilon_upper for d in (1e-12, 1e-6, 1e-2, 0.5)]
    assert by_times == sorted(by_times)
    assert by_delta == sorted(by_delta, reverse=True)


def test_the_scope_says_what_was_composed() -> None:
    sampled = compose([SubsampledGaussian(1.0, 0.1), *[PureDP(0.1)] * 3], 1e-5)
    assert "add_or_remove_one" in sampled.scope
    assert "3 x" in sampled.scope
    assert compose([COIN], 0.1).scope.endswith("this pair of datasets")


# --- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [20.0, 100.0, 1000.0])
def test_little_losses_have_little_cells(noise: float) -> None:
    """Sampled at rate 1 it is normal noise, which has an exact answer."""
    for delta in (1e-12, 1e-5):
        exact = gaussian_epsilon(delta, 1.0 / noise)
        for rate in (1.0, 1.0 - 1e-9):
            found = compose([SubsampledGaussian(noise, rate)], delta).epsilon_upper
            assert exact * (1.0 - 1e-7) <= found <= exact * 1.01


def test_errors_name_the_place_and_the_value() -> None:
    with pytest.raises(InvalidSpec, match="at least one release"):
        compose([], 1e-5)
    with pytest.raises(InvalidSpec, match=r"got 0\.5"):
        compose([0.5], 1e-5)  # type: ignore[list-item]
    with pytest.raises(InvalidSpec, match="one relation, got add_or_remove_one, replace_one"):
        compose([PureDP(0.1, Relation.REPLACE_ONE), SubsampledGaussian(1.0, 0.5)], 1e-5)
    with pytest.raises(InvalidSpec, match="delta must be in"):
        compose([Laplace(1.0)], 2.0)
    with pytest.raises(InvalidSpec, match="rate must be at most 1"):
        SubsampledGaussian(1.0, 1.5)
    with pytest.raises(InvalidSpec, match="epsilon must be finite and above 0"):
        Laplace(0.0)
    with pytest.raises(InvalidSpec, match="parts must be a list of releases, got 3"):
        compose(3, 1e-5)  # type: ignore[arg-type]
    with pytest.raises(InvalidSpec, match="first must hold probabilities, got 1"):
        FinitePair(1, 1)  # type: ignore[arg-type]
    with pytest.raises(InvalidSpec, match=r"first must sum to 1, got 0\.5"):
        FinitePair((Fraction(1, 2),), (Fraction(1),))
    with pytest.raises(InvalidSpec, match="same outputs"):
        FinitePair((Fraction(1),), (Fraction(1), Fraction(0)))
    with pytest.raises(InvalidSpec, match="at least 0"):
        FinitePair((Fraction(3, 2), Fraction(-1, 2)), (Fraction(1), Fraction(0)))
    with pytest.raises(InvalidSpec, match="losses of at most 700"):
        compose([PureDP(800.0), Laplace(0.1)], 1e-5)


# --- replayed mechanisms -------------------------------------------------------------------------------------------


def response(bits: tuple[int, ...], rng: Any) -> tuple[int, ...]:
    return tuple(bit if rng.bernoulli(Fraction(3, 4)) else 1 - bit for bit in bits)


def one_bit_differs(x: tuple[int, ...], y: tuple[int, ...]) -> bool:
    return sum(a != b for a, b in zip(x, y, strict=True)) == 1


def test_runs_of_a_replayed_mechanism_add_up() -> None:
    losses = replay(response, list(itertools.product((0, 1), repeat=2)), one_bit_differs, generator="replay")
    found = compose_replayed(losses, 20, 1e-3)
    exact = compose_optimal(PureDP(math.log(3.0)), 20).epsilon_at(1e-3)
    assert found.label is Label.EXACT_FINITE
    assert found.epsilon_lower is not None
    assert found.epsilon_lower <= found.epsilon_upper == pytest.approx(exact, rel=1e-12)
    many = compose_replayed(losses, 300, 1e-3)
    assert (many.label, many.epsilon_lower) == (Label.NUMERIC_UPPER, None)
    assert many.epsilon_upper == pytest.approx(compose_optimal(PureDP(math.log(3.0)), 300).epsilon_at(1e-3), rel=CLOSE)


def test_the_worst_pair_of_a_replayed_mechanism_decides() -> None:
    def tells_2(data: int, rng: Any) -> int:
        return data if data == 2 and rng.bernoulli(Fraction(1, 100)) else 0

    losses = replay(tells_2, [0, 1, 2], lambda x, y: abs(x - y) == 1, generator="replay")
    assert math.isinf(compose_replayed(losses, 3, 0.029).epsilon_upper)
    assert compose_replayed(losses, 3, 0.03).epsilon_upper == 0.0  # 1 - 0.99^3 = 0.029701
    assert "3 independent runs" in compose_replayed(losses, 3, 0.03).scope
    with pytest.raises(InvalidSpec, match="times must be at least 1"):
        compose_replayed(losses, 0, 0.1)
