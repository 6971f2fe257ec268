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
from tests.cases import for_each
from tests.certify.exact import power
from tests.certify.test_coin_flip import level_reached

SHORT_BY = 0.02  # the fluctuation of the hits is put at a normal quantile, which may miss by so much


def least(claim: Claim, runs: int, mass: float, certifier: str = "coin-flip", confidence: float = 0.95) -> float:
    """The smallest value that is caught; infinite where none is."""
    value = smallest_caught(claim, runs, mass, confidence=confidence, certifier=certifier)
    return math.inf if value is None else value


@pytest.mark.long
@for_each(
    ("claim", "runs", "mass", "confidence"),
    [
        (PureDP(1.0), 2_000, 0.5, 0.95),
        (PureDP(3.0), 20_000, 0.05, 0.999),
        (ApproximateDP(1.0, 1e-3), 2_000, 0.1, 0.95),
    ],
    nightly=[
        (PureDP(1.0), 20_000, 0.5, 0.999),
        (PureDP(1.0), 20_000, 0.01, 0.95),
        (PureDP(1.0), 200_000, 1e-3, 0.95),
        (PureDP(0.2), 20_000, 0.1, 0.95),
        (PureDP(3.0), 20_000, 0.5, 0.95),
        (ApproximateDP(1.0, 1e-3), 20_000, 0.1, 0.999),
        (ApproximateDP(1.0, 1e-5), 20_000, 0.5, 0.95),
    ],
)
def test_what_is_said_to_be_caught_is_caught(
    claim: PureDP | ApproximateDP, runs: int, mass: float, confidence: float
) -> None:
    caught = least(claim, runs, mass, confidence=confidence)
    q, nearer = ((mass - claim.delta) * math.exp(-each) for each in (caught, 0.2 * claim.epsilon + 0.8 * caught))
    reached = level_reached(claim, runs, mass, q, error_probability(confidence))
    assert reached >= 0.95 - SHORT_BY
    assert level_reached(claim, runs, mass, nearer, error_probability(confidence)) < reached + 1e-9


@pytest.mark.long
@for_each(
    ("claim", "size", "mass"),
    [(PureDP(1.0), 100, 0.5), (ApproximateDP(0.5, 0.01), 100, 0.2)],
    nightly=[(PureDP(1.0), 200, 0.5), (PureDP(1.0), 2_000, 0.02), (ApproximateDP(0.5, 0.01), 200, 0.2)],
)
def test_what_the_unconditional_certifier_is_said_to_catch_is_caught(claim: Claim, size: int, mass: float) -> None:
    def refuted(x: int, y: int) -> bool:
        return p_value(FixedSides(x, y, size, size), claim.epsilon_at(claim.delta), claim.delta, 0.05) <= 0.05

    q = (mass - claim.delta) * math.exp(-least(claim, 2 * size, mass, "unconditional"))
    assert power(refuted, stats.binom(size, q), lambda y: size + 0 * y, mass, rare=1e-4) >= 0.95 - 1e-3


def test_more_runs_and_more_mass_catch_more() -> None:
    """And of an event of mass 0.5 and 10^6 runs a side the best joint test 1.008; this one may lose some."""
    by_runs = [least(PureDP(1.0), runs, 0.1) for runs in (200, 2_000, 20_000, 200_000, 2_000_000)]
    assert by_runs == sorted(by_runs, reverse=True)
    by_mass = [least(PureDP(1.0), 20_000, mass) for mass in (1e-4, 1e-3, 0.01, 0.1, 0.5)]
    assert by_mass == sorted(by_mass, reverse=True)
    assert by_runs[2] < least(PureDP(1.0), 20_000, 0.1, confidence=0.999)
    assert 1.008 < least(PureDP(1.0), 2_000_000, 0.5) < 1.012
    assert least(PureDP(1.0), 200, 1e-4) == math.inf
    for mass in (0.01, 0.001):  # an event within delta
        assert smallest_caught(ApproximateDP(1.0, 0.01), 10**9, mass, confidence=0.95) is None
    for runs in (20_000, 2_000_000):
        for mass in MASSES[::2] if runs == 20_000 else MASSES[1::2]:
            assert least(PureDP(1.0), runs, mass, "unconditional") <= least(PureDP(1.0), runs, mass) + 1e-3


@pytest.mark.long
@for_each(
    ("claim", "certifier"),
    [
        (GaussianDP(0.268), "unconditional"),
        (RenyiDP(2.0, 0.1), "coin-flip"),
        (ApproximateDP(1.0, 1e-6), "unconditional"),
    ],
    nightly=[
        (GaussianDP(0.268), "coin-flip"),
        (RenyiDP(2.0, 0.1), "unconditional"),
        (ApproximateDP(1.0, 1e-6), "coin-flip"),
        (ZeroConcentratedDP(0.05), "coin-flip"),
        (ZeroConcentratedDP(0.05), "unconditional"),
    ],
)
def test_claims_on_a_curve_are_answered_in_their_own_parameter(claim: Claim, certifier: str) -> None:
    """More runs come nearer to what is promised, and never under it."""
    promised = claim.promised(claim.delta)
    few, some, many = (least(claim, runs, 0.1, certifier) for runs in (20_000, 200_000, 2_000_000))
    assert few > some > many > promised
    assert many < 1.25 * promised


def test_bins_and_a_frozen_delta() -> None:
    """Bins catch a Rényi claim in its parameter; the delta that search freezes for an event catches most."""
    for claim in (RenyiDP(2.0, 0.1), ZeroConcentratedDP(0.05)):
        assert claim.promised(0.0) < least(claim, 2_000_000, 0.3, "binned") < 1.3 * claim.promised(0.0)
        assert least(claim, 100, 1e-5, "binned") == math.inf
    for certifier in ("coin-flip", "unconditional"):
        best = least(GaussianDP(0.268), 2_000_000, 0.1, certifier)
        other = smallest_caught(GaussianDP(0.268), 2_000_000, 0.1, confidence=0.95, certifier=certifier, delta=1e-6)
        assert best < (other or math.inf)


@pytest.mark.long
@for_each("mass", [0.5, 0.01])
@for_each(
    ("claim", "certifier"),
    [
        (ApproximateDP(1.0, 1e-4), "coin-flip"),
        (GaussianDP(1.0), "unconditional"),
        (RenyiDP(2.0, 0.1), "binned"),
    ],
    nightly=[(PureDP(1.0), "coin-flip"), (PureDP(1.0), "unconditional")],
)
def test_what_has_to_be_found_is_larger_than_what_is_known_and_falls_with_the_runs_of_the_search(
    claim: Claim, certifier: str, mass: float
) -> None:
    known, *values = (
        smallest_caught(claim, 150_000, mass, confidence=0.999, certifier=certifier, searching=runs) or math.inf
        for runs in (None, 400_000, 50_000, 5_000, 5)
    )
    assert values == sorted(values)
    assert known <= values[0] * 1.01
    assert values[-1] == math.inf


def test_search_and_certificate_must_both_see_it() -> None:
    """Exact: what search must see leaves a part of the failures only to the certifying runs."""
    caught = smallest_caught(PureDP(1.0), 15_000, 0.1, confidence=0.999, searching=5_000)
    assert caught is not None
    alone = level_reached(PureDP(1.0), 15_000, 0.1, 0.1 * math.exp(-caught), error_probability(0.999))
    assert alone > 0.975
    rare = smallest_caught(PureDP(1.0), 10**8, 1e-3, confidence=0.95, searching=5_000)
    assert rare is None  # one or two hits in search are no event
