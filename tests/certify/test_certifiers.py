"""One door to all certifiers: which evidence each takes, and what a curved claim makes of a bound at a frozen delta."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.certify import CERTIFIERS, Binned, CoinFlip, FixedSides, certifier_names, certify
from dpaudit.certify.coin_flip import epsilon_lower
from dpaudit.claims import ApproximateDP, GaussianDP, PureDP, RenyiDP
from dpaudit.errors import InvalidSpec
from tests.cases import NIGHTLY, for_each
from tests.certify.exact import chances_of_sides

COINS, FIXED, BINS = (
    CoinFlip(900, 100, 1000, 1000),
    FixedSides(900, 100, 1000, 1000),
    Binned((900, 100), (100, 900), 1000, 1000),
)


@for_each(
    ("certifier", "evidence", "words"),
    [
        ("coin-flip", FIXED, "the coin-flip certifier takes CoinFlip, got FixedSides"),
        ("unconditional", BINS, "the unconditional certifier takes CoinFlip or FixedSides, got Binned"),
        ("binned", COINS, "the binned certifier takes Binned, got CoinFlip"),
        ("bayes", COINS, f"certifier must be one of {', '.join(certifier_names())}, got 'bayes'"),
    ],
)
def test_evidence_of_another_design_is_refused(certifier: str, evidence: object, words: str) -> None:
    with pytest.raises(InvalidSpec, match=rf"^{words}$"):
        certify(evidence, PureDP(1.0), 0.95, certifier=certifier)  # type: ignore[arg-type]


@for_each("certifier", ["coin-flip", "unconditional"])
def test_the_frozen_delta_decides(certifier: str) -> None:
    """Of a claim on a curve: the p-value tests its epsilon at that delta, the bound is turned into its parameter."""
    evidence, claim = CoinFlip(30_000, 5_000, 10**5, 10**5), GaussianDP(0.5)
    for delta in (0.01, 0.05):
        certificate = certify(evidence, claim, 0.95, certifier=certifier, delta=delta)
        straight = certify(evidence, ApproximateDP(claim.epsilon_at(delta), delta), 0.95, certifier=certifier)
        assert (certificate.delta, certificate.p_value) == (delta, straight.p_value)
        assert certificate.epsilon_lower == straight.epsilon_lower
        assert certificate.lower == claim.lower(certificate.epsilon_lower or 0.0, delta) > 0.5
        assert certificate.refuted
    own, endless = ApproximateDP(1.0, 0.01), GaussianDP(0.1)  # no member of the family of GDP has one at delta 0
    assert certify(COINS, own, 0.95, certifier=certifier) == certify(COINS, own, 0.95, certifier=certifier, delta=0.01)
    nothing = certify(COINS, endless, 0.95, certifier=certifier, delta=0.0)
    assert (nothing.p_value, nothing.refuted, nothing.lower) == (1.0, False, 0.0)


def test_the_certifiers_agree_about_what_is_seen() -> None:
    """The unconditional bound is the larger one where hits are many of the runs, and near the other elsewhere."""
    for mass, more in ((0.5, 0.0015), (0.05, 0.0), (0.005, 0.0)):
        runs = 10**5
        counts = CoinFlip(round(runs * mass), round(runs * mass / math.e), runs, runs)
        one, other = (certify(counts, PureDP(1.0), 0.95, certifier=name).lower for name in CERTIFIERS[:2])
        assert one + more <= other < one + 0.02
        assert one == epsilon_lower(counts, 0.0, 0.05)
    ceilings = [certifier.perfect(1000, 1000, RenyiDP(64.0, 1.0), 0.95, 0.0) for certifier in CERTIFIERS]
    assert all(5.0 < most < 6.0 for most in ceilings)


@pytest.mark.long
@for_each(("delta", "confidence"), [(0.0, 0.9), (0.1, 0.8)])
def test_valid_the_claim_that_is_tested_never_lifts_a_bound_above_the_truth(delta: float, confidence: float) -> None:
    """Exact: bound and p-value are made to agree, and the bound still covers, whatever the claim is."""
    n, m, truth = (8, 7, 0.5) if NIGHTLY else (5, 4, 0.5)
    points = [(math.exp(truth) * q + delta, q) for q in np.linspace(1e-4, (1.0 - delta) / math.exp(truth), 60)]
    for claimed in (0.3, truth + 1e-3):
        bounds = [
            [
                certify(FixedSides(x, y, n, m), ApproximateDP(claimed, delta), confidence, certifier="unconditional")
                for y in range(m + 1)
            ]
            for x in range(n + 1)
        ]
        above = np.array([[(each.epsilon_lower or 0.0) > truth for each in row] for row in bounds])
        wrong = max(chances_of_sides(n, m, min(1.0, p), q)[above].sum() for p, q in points)
        assert wrong <= 1.0 - confidence + 1e-9
