"""What a report says an audit could have seen, against the probability that it does see it.

The probability is exact: a sum over the hits of side Q, for each the least hits of side P that refute.
"""

from __future__ import annotations

import math

import pytest

from dpaudit.certify import smallest_epsilon_caught
from dpaudit.certify.certificate import error_probability
from dpaudit.claims import ApproximateDP, Claim, PureDP
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


@pytest.mark.parametrize("confidence", [0.95, 0.999])
@pytest.mark.parametrize(("claim", "runs", "mass"), SIZES, ids=str)
def test_what_is_said_to_be_caught_is_caught(claim: Claim, runs: int, mass: float, confidence: float) -> None:
    least = smallest_epsilon_caught(claim, runs, mass, confidence=confidence)
    assert least is not None
    q = max(0.0, mass - claim.delta) * math.exp(-least)
    power = level_reached(claim, runs, mass, q, error_probability(confidence))
    assert power >= 0.95 - SHORT_BY
    nearer = max(0.0, mass - claim.delta) * math.exp(-(float(getattr(claim, "epsilon")) * 0.2 + least * 0.8))
    assert level_reached(claim, runs, mass, nearer, error_probability(confidence)) < power + 1e-9


def test_more_runs_and_more_mass_catch_more() -> None:
    def least(runs: int, mass: float, confidence: float = 0.95) -> float:
        return smallest_epsilon_caught(PureDP(1.0), runs, mass, confidence=confidence) or math.inf

    by_runs = [least(runs, 0.1) for runs in (200, 2_000, 20_000, 200_000, 2_000_000)]
    assert by_runs == sorted(by_runs, reverse=True)
    by_mass = [least(20_000, mass) for mass in (1e-4, 1e-3, 0.01, 0.1, 0.5)]
    assert by_mass == sorted(by_mass, reverse=True)
    assert least(20_000, 0.1) < least(20_000, 0.1, confidence=0.999)
    assert least(200, 1e-4) == math.inf


def test_an_event_within_delta_is_never_caught() -> None:
    assert smallest_epsilon_caught(ApproximateDP(1.0, 0.01), 10**9, 0.01, confidence=0.95) is None
    assert smallest_epsilon_caught(ApproximateDP(1.0, 0.01), 10**9, 0.001, confidence=0.95) is None


def test_the_docs_agree_with_the_tables_of_the_field() -> None:
    """Of an event of mass 0.5 and 10^6 runs a side: 1.008 with the best joint test; this one may lose some."""
    found = smallest_epsilon_caught(PureDP(1.0), 2_000_000, 0.5, confidence=0.95)
    assert found is not None
    assert 1.008 < found < 1.012
