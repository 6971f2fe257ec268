"""What a report says an audit could have seen, against the probability that it does see it.

The probability is exact: a sum over the hits of side Q, for each the least hits of side P that refute.
"""

from __future__ import annotations

import math

import pytest
from scipy import stats

from dpaudit.base.validate import error_probability
from dpaudit.certify import FixedSides, smallest_caught
from dpaudit.certify.certifiers import MASSES
from dpaudit.certify.unconditional import p_value
from dpaudit.claims import ApproximateDP, Claim, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from tests.cases import some
from tests.certify.test_coin_flip import level_reached

SHORT_BY = 0.02  # the fluctuation of the hits is put at a normal quantile, which may miss by so much
SIZES: list[tuple[Claim, int, float]] = [
    (PureDP(1.0), 2_000, 0.5),
    (PureDP(1.0), 20_000, 0.5),
    (PureDP(1.0), 20_000, 0.01),
    (PureDP(1.0), 200_000, 1e-3),
    (PureDP(0.2), 20_000, 0.1),
    (PureDP(3.0), 20_000, 0.5),
    (PureDP(3.0), 20_000, 0.05),
    (ApproximateDP(1.0, 1e-3), 20_000, 0.1),
    (ApproximateDP(1.0, 1e-5), 20_000, 0.5),
]


@pytest.mark.long
@pytest.mark.parametrize("confidence", some([0.95, 0.999], 1))
@pytest.mark.parametrize(("claim", "runs", "mass"), some(SIZES, 5), ids=str)
def test_what_is_said_to_be_caught_is_caught(claim: Claim, runs: int, mass: float, confidence: float) -> None:
    least = smallest_caught(claim, runs, mass, confidence=confidence)
    assert least is not None
    q = max(0.0, mass - claim.delta) * math.exp(-least)
    power = level_reached(claim, runs, mass, q, error_probability(confidence))
    assert power >= 0.95 - SHORT_BY
    nearer = max(0.0, mass - claim.delta) * math.exp(-(float(getattr(claim, "epsilon")) * 0.2 + least * 0.8))
    assert level_reached(claim, runs, mass, nearer, error_probability(confidence)) < power + 1e-9


def test_more_runs_and_more_mass_catch_more() -> None:
    def least(runs: int, mass: float, confidence: float = 0.95) -> float:
        return smallest_caught(PureDP(1.0), runs, mass, confidence=confidence) or math.inf

    by_runs = [least(runs, 0.1) for runs in (200, 2_000, 20_000, 200_000, 2_000_000)]
    assert by_runs == sorted(by_runs, reverse=True)
    by_mass = [least(20_000, mass) for mass in (1e-4, 1e-3, 0.01, 0.1, 0.5)]
    assert by_mass == sorted(by_mass, reverse=True)
    assert least(20_000, 0.1) < least(20_000, 0.1, confidence=0.999)
    assert least(200, 1e-4) == math.inf


def test_an_event_within_delta_is_never_caught() -> None:
    assert smallest_caught(ApproximateDP(1.0, 0.01), 10**9, 0.01, confidence=0.95) is None
    assert smallest_caught(ApproximateDP(1.0, 0.01), 10**9, 0.001, confidence=0.95) is None


def test_the_docs_agree_with_the_tables_of_the_field() -> None:
    """Of an event of mass 0.5 and 10^6 runs a side: 1.008 with the best joint test; this one may lose some."""
    value = smallest_caught(PureDP(1.0), 2_000_000, 0.5, confidence=0.95)
    assert value is not None
    assert 1.008 < value < 1.012


def power_of(claim: Claim, size: int, p: float, q: float, delta: float, alpha: float) -> float:
    """Pr(refuted) by the unconditional certifier: for each y the least x that refutes, by bisection."""
    law, total, least = stats.binom(size, q), 0.0, 0
    for y in range(int(law.ppf(1e-4)), int(law.ppf(1.0 - 1e-4)) + 1):
        high = size
        while least < high:  # it rises with y
            middle = (least + high) // 2
            caught = p_value(FixedSides(middle, y, size, size), claim.epsilon_at(delta), delta, alpha) <= alpha
            least, high = (least, middle) if caught else (middle + 1, high)
        total += law.pmf(y) * stats.binom.sf(least - 1, size, p)
    return float(total)


@pytest.mark.long
@pytest.mark.parametrize(
    ("claim", "size", "mass"),
    some([(PureDP(1.0), 200, 0.5), (PureDP(1.0), 2_000, 0.02), (ApproximateDP(0.5, 0.01), 200, 0.2)], 2),
    ids=str,
)
def test_what_the_unconditional_certifier_is_said_to_catch_is_caught(claim: Claim, size: int, mass: float) -> None:
    least = smallest_caught(claim, 2 * size, mass, confidence=0.95, certifier="unconditional")
    assert least is not None
    q = (mass - claim.delta) * math.exp(-least)
    assert power_of(claim, size, mass, q, claim.delta, 0.05) >= 0.95 - 1e-3


@pytest.mark.long
@pytest.mark.parametrize("certifier", ["coin-flip", "unconditional"])
@pytest.mark.parametrize(
    "claim", [GaussianDP(0.268), RenyiDP(2.0, 0.1), ZeroConcentratedDP(0.05), ApproximateDP(1.0, 1e-6)], ids=str
)
def test_claims_on_a_curve_are_answered_in_their_own_parameter(claim: Claim, certifier: str) -> None:
    """More runs come nearer to what is promised, and never under it."""
    promised = claim.promised(claim.delta)
    values = [
        smallest_caught(claim, runs, 0.1, confidence=0.95, certifier=certifier) or math.inf
        for runs in (20_000, 200_000, 2_000_000)
    ]
    assert values[0] > values[1] > values[2] > promised
    assert values[2] < 1.25 * promised


def test_a_frozen_delta_is_kept() -> None:
    """The best one for the event is the one that search freezes; another catches less."""
    claim, runs = GaussianDP(0.268), 2_000_000
    for certifier in ("coin-flip", "unconditional"):
        best = smallest_caught(claim, runs, 0.1, confidence=0.95, certifier=certifier)
        other = smallest_caught(claim, runs, 0.1, confidence=0.95, certifier=certifier, delta=1e-6)
        assert best is not None
        assert other is None or other > best


def test_bins_catch_a_renyi_claim_in_its_parameter() -> None:
    for claim in (RenyiDP(2.0, 0.1), ZeroConcentratedDP(0.05)):
        value = smallest_caught(claim, 2_000_000, 0.3, confidence=0.95, certifier="binned")
        assert value is not None
        assert claim.promised(0.0) < value < 1.3 * claim.promised(0.0)
        assert smallest_caught(claim, 100, 1e-5, confidence=0.95, certifier="binned") is None


def test_the_unconditional_certifier_catches_no_less() -> None:
    for runs in (20_000, 2_000_000):
        for mass in MASSES:
            one, other = (
                smallest_caught(PureDP(1.0), runs, mass, confidence=0.95, certifier=certifier) or math.inf
                for certifier in ("coin-flip", "unconditional")
            )
            assert other <= one + 1e-3


# --- the search counted in


SEARCHED: list[tuple[Claim, str]] = [
    (PureDP(1.0), "coin-flip"),
    (ApproximateDP(1.0, 1e-4), "coin-flip"),
    (PureDP(1.0), "unconditional"),
    (GaussianDP(1.0), "unconditional"),
    (RenyiDP(2.0, 0.1), "binned"),
]


@pytest.mark.long
def test_what_has_to_be_found_is_larger_than_what_is_known_and_falls_with_the_runs_of_the_search() -> None:
    for claim, certifier in SEARCHED:
        for mass in (0.5, 0.01):
            known, *values = (
                smallest_caught(claim, 150_000, mass, confidence=0.999, certifier=certifier, searching=runs) or math.inf
                for runs in (None, 400_000, 50_000, 5_000, 5)
            )
            assert values == sorted(values), (claim, certifier, mass)
            assert known <= values[0] * 1.01
            assert values[-1] == math.inf
    rare = smallest_caught(PureDP(1.0), 10**8, 1e-3, confidence=0.95, searching=5_000)
    assert rare is None  # one or two hits in search are no event


def test_search_and_certificate_must_both_see_it() -> None:
    """Exact: what search must see leaves a part of the failures only to the certifying runs."""
    least = smallest_caught(PureDP(1.0), 15_000, 0.1, confidence=0.999, searching=5_000)
    assert least is not None
    alone = level_reached(PureDP(1.0), 15_000, 0.1, 0.1 * math.exp(-least), error_probability(0.999))
    assert alone > 0.975
