"""Composition against products written out, exact sums, and the frozen values of another accountant."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit.claims import (
    ApproximateDP,
    GaussianDP,
    PrivacyProfile,
    PureDP,
    Relation,
    RenyiDP,
    ZeroConcentratedDP,
    compose_advanced,
    compose_basic,
    compose_gaussian,
    compose_optimal,
    compose_renyi,
    compose_zcdp,
    implies,
    subsample_poisson,
    to_approximate,
    to_zcdp,
)
from dpaudit.errors import InvalidSpec
from tests.cases import for_each

USERS, RECORDS = Relation.ADD_OR_REMOVE_USER, Relation.ADD_OR_REMOVE_ONE
ORACLE: dict[str, Any] = json.loads((Path(__file__).parent / "oracle" / "dp_accounting.json").read_text())
INTERVAL = ORACLE["interval"]  # of the oracle's discretised losses: its epsilons are too large by at most this a step


def excess(p: list[float], q: list[float], epsilon: float) -> float:
    """delta(epsilon) of two distributions on the same outcomes."""
    return math.fsum(max(0.0, x - math.exp(epsilon) * y) for x, y in zip(p, q, strict=True))


def extremal(epsilon: float, delta: float) -> tuple[list[float], list[float]]:
    """The pair that reaches every bound of (epsilon, delta)-DP."""
    share = (1.0 - delta) / (1.0 + math.exp(-epsilon))
    return [delta, 0.0, share, 1.0 - delta - share], [0.0, delta, 1.0 - delta - share, share]


@for_each(("epsilon", "delta", "times"), [(0.5, 0.0, 5), (1.0, 0.01, 3), (0.1, 0.1, 4), (2.0, 0.0, 2)])
def test_optimal_composition_is_that_of_the_extremal_pair_written_out(epsilon: float, delta: float, times: int) -> None:
    profile = compose_optimal(ApproximateDP(epsilon, delta), times)
    many_p, many_q = (
        [math.prod(each) for each in itertools.product(side, repeat=times)] for side in extremal(epsilon, delta)
    )
    for at in (0.0, 0.05, 0.3, 0.7, 1.1, 2.0, 3.5, epsilon * times):
        assert profile.delta_at(at) == pytest.approx(excess(many_p, many_q, at), rel=1e-9, abs=1e-14)


@for_each("times", [1, 2, 7, 30])
def test_optimal_composition_is_the_sum_of_the_theorem(times: int) -> None:
    """Kairouz, Oh & Viswanath 2015, theorem 3.3, with e^epsilon = 3/2 and delta = 1/64 in exact fractions."""
    base, own = Fraction(3, 2), Fraction(1, 64)
    claim = ApproximateDP(math.log(1.5), 1.0 / 64.0)
    value = {round(epsilon / claim.epsilon): delta for epsilon, delta in compose_optimal(claim, times).curve}
    for i in range(times // 2 + 1):
        terms = (
            math.comb(times, j) * (base ** (times - j) - base ** (times - 2 * i + j)) / (1 + base) ** times
            for j in range(i)
        )
        exact = 1 - (1 - own) ** times * (1 - sum(terms, Fraction(0)))
        assert value[times - 2 * i] >= exact
        assert value[times - 2 * i] == pytest.approx(float(exact), rel=1e-11)


def test_optimal_composition_is_the_best_and_basic_the_worst() -> None:
    for claim, times in ((PureDP(0.1), 100), (ApproximateDP(0.5, 1e-6), 20), (PureDP(1.0), 3)):
        best, many = compose_optimal(claim, times), [claim] * times
        for slack in (1e-6, 1e-3, 0.05):
            advanced = compose_advanced(many, slack)
            assert implies(best, advanced)
            assert advanced.epsilon <= compose_basic(many).epsilon
            rest = math.sqrt(2.0 * times * math.log(1.0 / slack))  # Dwork, Rothblum & Vadhan 2010, theorem III.3
            assert advanced.epsilon <= claim.epsilon * rest + times * claim.epsilon * math.expm1(claim.epsilon) + 1e-12
        assert implies(best, compose_basic(many)) or claim.delta > 0.0
        assert best.curve[-1][0] == pytest.approx(times * claim.epsilon)
    one = compose_optimal(ApproximateDP(0.7, 0.01), 1)
    assert one.curve == ((0.7, pytest.approx(0.01, rel=1e-12)),)
    assert one.delta >= 0.01
    assert compose_optimal(ApproximateDP(1.0, 1.0), 3).delta == 1.0
    assert compose_optimal(PureDP(0.0), 5).delta_at(0.0) == 0.0
    assert compose_optimal(PureDP(0.01), 20_000).epsilon_at(1e-6) == pytest.approx(7.6, abs=0.5)


def test_sums_are_exact_and_never_below() -> None:
    tenths = [PureDP(0.1)] * 10
    assert Fraction(compose_basic(tenths).epsilon) >= 10 * Fraction(0.1)
    assert compose_basic([PureDP(1.0, Relation.LOCAL)] * 3) == PureDP(3.0, Relation.LOCAL)
    assert compose_basic([ApproximateDP(1.0, 0.75)] * 2) == ApproximateDP(2.0, 1.0)
    thirds = [GaussianDP(1.0 / 3.0)] * 7
    assert Fraction(compose_gaussian(thirds).mu) ** 2 >= 7 * Fraction(1.0 / 3.0) ** 2
    assert compose_gaussian(thirds).mu == pytest.approx(math.sqrt(7.0) / 3.0, rel=1e-15)
    assert compose_zcdp([ZeroConcentratedDP(0.1, 0.01)] * 3).xi == pytest.approx(0.03)
    assert compose_renyi([RenyiDP(3.0, 0.1)] * 3).epsilon >= 0.3


@for_each("rate", [0.01, 0.3, 1.0])
@for_each(("epsilon", "delta"), [(1.0, 0.0), (1.0, 0.05), (0.0, 0.2), (4.0, 1e-6)])
def test_sampling_meets_the_mechanism_that_reaches_the_bound(epsilon: float, delta: float, rate: float) -> None:
    """With the record the extremal P with probability `rate`, else Q; without it Q: both orders keep to the claim."""
    p, q = extremal(epsilon, delta)
    mixed = [rate * x + (1.0 - rate) * y for x, y in zip(p, q, strict=True)]
    claim = ApproximateDP(epsilon, delta, RECORDS)
    sampled = subsample_poisson(claim, rate)
    assert isinstance(sampled, ApproximateDP)
    assert excess(mixed, q, sampled.epsilon) == pytest.approx(sampled.delta, rel=1e-12, abs=1e-15)
    assert excess(q, mixed, sampled.epsilon) <= sampled.delta + 1e-15
    if rate == 1.0:
        assert sampled == claim


def test_sampling_takes_profiles_line_by_line() -> None:
    claim = PrivacyProfile(((0.5, 0.1), (1.0, 0.02)))
    sampled = subsample_poisson(claim, 0.1)
    assert isinstance(sampled, PrivacyProfile)
    assert sampled.relation is RECORDS
    for (epsilon, delta), (before, own) in zip(sampled.curve, claim.curve, strict=True):
        assert epsilon == pytest.approx(math.log1p(0.1 * math.expm1(before)), rel=1e-14)
        assert delta == pytest.approx(0.1 * own)
    assert subsample_poisson(PureDP(100.0), 0.5).epsilon_at(0.0) == pytest.approx(100.0 + math.log(0.5))
    assert isinstance(subsample_poisson(PureDP(1.0), 0.5), PureDP)
    # Gaussian noise on a sample: bounded by the mixture itself, whose excess is an integral
    from scipy.integrate import quad

    mu, rate, epsilon = 1.0, 0.2, 0.3
    value = subsample_poisson(GaussianDP(mu), rate).delta_at(epsilon)
    density = lambda x, m: math.exp(-((x - m) ** 2) / 2.0) / math.sqrt(2.0 * math.pi)  # noqa: E731
    exact = quad(
        lambda x: max(0.0, rate * density(x, mu) + (1.0 - rate) * density(x, 0.0) - math.exp(epsilon) * density(x, 0)),
        -10.0,
        12.0,
        points=[1.4, 1.5],
        limit=200,
    )[0]
    assert exact <= value <= exact * (1.0 + 5e-3)


def gaussian(row: dict[str, float]) -> None:
    assert GaussianDP(row["mu"]).delta_at(row["epsilon"]) == pytest.approx(row["delta"], rel=1e-9, abs=1e-200)


def gaussian_epsilon(row: dict[str, float]) -> None:
    value = compose_gaussian([GaussianDP(row["mu"])] * int(row["times"])).epsilon_at(row["delta"])
    assert row["epsilon"] - INTERVAL * row["times"] <= value <= row["epsilon"] + 1e-9


def optimal(row: dict[str, float]) -> None:
    """Its epsilons are multiples of the oracle's interval, so nothing is lost there but rounding."""
    profile = compose_optimal(ApproximateDP(row["of"], row["own"]), int(row["times"]))
    assert profile.epsilon_at(row["delta"]) == pytest.approx(row["epsilon"], abs=1e-9)


def renyi_order(row: dict[str, float]) -> None:
    claim = RenyiDP(row["order"], row["level"])
    assert to_approximate(claim, row["delta"], way="orders").epsilon == pytest.approx(row["epsilon"], rel=1e-9)
    assert to_approximate(claim, row["delta"]).epsilon <= row["epsilon"]


def renyi(row: dict[str, float]) -> None:
    """The oracle's orders are some of ours: it cannot be better, and is the same where its best order is inside."""
    for way in ("region", "orders"):
        value = to_approximate(ZeroConcentratedDP(row["rho"]), row["delta"], way=way).epsilon
        assert value <= row["epsilon"] * (1.0 + 3e-4)
        if 2.0 < row["order"] < 60.0 and row["delta"] <= 1e-5:
            assert value >= row["epsilon"] * (1.0 - 1e-3)


def composed_renyi(row: dict[str, float]) -> None:
    total = compose_zcdp([to_zcdp(GaussianDP(0.5))] * 3 + [to_zcdp(GaussianDP(0.2))] * 10)
    assert to_approximate(total, row["delta"]).epsilon == pytest.approx(row["epsilon"], rel=1e-3)


def sampled(row: dict[str, float]) -> None:
    """delta(epsilon) = 1 - e^((epsilon - loss) / 2) of Laplace noise, at 2,001 points; the amplification is tight."""
    losses = np.linspace(0.0, row["loss"], 2_001).tolist()
    laplace = PrivacyProfile([(at, -math.expm1((at - row["loss"]) / 2.0)) for at in losses])
    value = subsample_poisson(laplace, row["rate"]).delta_at(row["epsilon"])
    assert row["delta"] - INTERVAL <= value
    assert value == pytest.approx(row["delta"], abs=1e-7)


@for_each("agrees", [gaussian, gaussian_epsilon, optimal, renyi_order, renyi, composed_renyi, sampled])
def test_the_values_of_another_accountant(agrees: Callable[[dict[str, float]], None]) -> None:
    rows = ORACLE[agrees.__name__]
    assert len(rows) >= 4
    for row in rows:
        agrees(row)


@for_each(
    ("call", "message"),
    [
        (lambda: compose_basic([]), "claims must hold at least one claim, got none"),
        (
            lambda: compose_basic([GaussianDP(1.0)]),
            r"claims must be of form PureDP or ApproximateDP, got GaussianDP\(mu",
        ),
        (lambda: compose_gaussian([GaussianDP(1.0), PureDP(1.0)]), "claims must be of form GaussianDP, got PureDP"),
        (lambda: compose_basic([PureDP(1.0, Relation.LOCAL), PureDP(1.0)]), "claims must .* relation, got None, local"),
        (
            lambda: compose_basic([PureDP(1.0, USERS), PureDP(1.0, RECORDS)]),
            "claims must be stated for one relation, got add_or_remove_one, add_or_remove_user",
        ),
        (lambda: compose_renyi([RenyiDP(2.0, 1.0), RenyiDP(3.0, 1.0)]), "claims must have one order, got 2, 3"),
        (lambda: compose_advanced([PureDP(1.0)], 0.0), "slack must lie strictly between 0 and 1, got 0.0"),
        (lambda: compose_optimal(PureDP(1.0), 0), "times must be at least 1, got 0"),
        (lambda: compose_optimal(GaussianDP(1.0), 2), "claims must be of form PureDP or ApproximateDP"),
        (lambda: subsample_poisson(PureDP(1.0), 1.5), "rate must be at most 1, got 1.5"),
        (lambda: subsample_poisson(PureDP(1.0), 0.0), "rate must be finite and above 0, got 0.0"),
        (
            lambda: subsample_poisson(PureDP(1.0, Relation.REPLACE_ONE), 0.5),
            "subsample_poisson needs a claim for add_or_remove_one, got one for replace_one$",
        ),
        (
            lambda: subsample_poisson(PureDP(1.0, USERS), 0.5),
            "subsample_poisson needs a claim for add_or_remove_one, got one for add_or_remove_user: a sample",
        ),
    ],
)
def test_what_cannot_be_composed_is_refused(call: Any, message: str) -> None:
    with pytest.raises(InvalidSpec, match=f"^{message}") as caught:
        call()
    assert "\n" not in str(caught.value)


def test_claims_about_users_compose() -> None:
    users = PureDP(1.0, USERS)
    assert compose_basic([users, users]).relation is USERS
    assert users.at_distance(3) == PureDP(3.0, USERS)
