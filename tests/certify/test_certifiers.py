"""One door to all certifiers: which evidence each takes, and what a curved claim makes of a bound at a frozen delta."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom

from dpaudit.certify import CERTIFIERS, Binned, CoinFlip, FixedSides, certifier_names, certify
from dpaudit.certify.coin_flip import epsilon_lower
from dpaudit.claims import ApproximateDP, GaussianDP, PureDP, RenyiDP
from dpaudit.errors import InvalidSpec
from tests.cases import NIGHTLY

COINS, FIXED, BINS = (
    CoinFlip(900, 100, 1000, 1000),
    FixedSides(900, 100, 1000, 1000),
    Binned((900, 100), (100, 900), 1000, 1000),
)


@pytest.mark.parametrize(
    ("certifier", "evidence", "words"),
    [
        ("coin-flip", FIXED, "the coin-flip certifier takes CoinFlip, got FixedSides"),
        ("coin-flip", BINS, "the coin-flip certifier takes CoinFlip, got Binned"),
        ("unconditional", BINS, "the unconditional certifier takes CoinFlip or FixedSides, got Binned"),
        ("binned", COINS, "the binned certifier takes Binned, got CoinFlip"),
        ("bayes", COINS, f"certifier must be one of {', '.join(certifier_names())}, got 'bayes'"),
    ],
)
def test_evidence_of_another_design_is_refused(certifier: str, evidence: object, words: str) -> None:
    with pytest.raises(InvalidSpec, match=rf"^{words}$"):
        certify(evidence, PureDP(1.0), 0.95, certifier=certifier)  # type: ignore[arg-type]


def test_every_certifier_has_a_ceiling() -> None:
    values = [certifier.perfect(1000, 1000, RenyiDP(64.0, 1.0), 0.95, 0.0) for certifier in CERTIFIERS]
    assert all(5.0 < most < 6.0 for most in values)


@pytest.mark.parametrize("certifier", ["coin-flip", "unconditional"])
def test_the_frozen_delta_decides(certifier: str) -> None:
    """Of a claim on a curve: the p-value tests its epsilon at that delta, the bound is turned into its parameter."""
    evidence = CoinFlip(30_000, 5_000, 10**5, 10**5)
    for delta in (0.01, 0.05):
        claim = GaussianDP(0.5)
        certificate = certify(evidence, claim, 0.95, certifier=certifier, delta=delta)
        straight = certify(evidence, ApproximateDP(claim.epsilon_at(delta), delta), 0.95, certifier=certifier)
        assert (certificate.delta, certificate.p_value) == (delta, straight.p_value)
        assert certificate.epsilon_lower == straight.epsilon_lower
        assert certificate.lower == claim.lower(certificate.epsilon_lower or 0.0, delta) > 0.5
        assert certificate.refuted


@pytest.mark.parametrize("certifier", ["coin-flip", "unconditional"])
def test_without_a_delta_the_claims_own_is_taken(certifier: str) -> None:
    claim = ApproximateDP(1.0, 0.01)
    assert certify(COINS, claim, 0.95, certifier=certifier) == certify(
        COINS, claim, 0.95, certifier=certifier, delta=0.01
    )


def test_an_endless_epsilon_is_never_refuted() -> None:
    """No member of the family of GDP has an epsilon at delta 0."""
    for certifier in ("coin-flip", "unconditional"):
        certificate = certify(COINS, GaussianDP(0.1), 0.95, certifier=certifier, delta=0.0)
        assert (certificate.p_value, certificate.refuted, certificate.lower) == (1.0, False, 0.0)


def test_both_certifiers_of_one_event_agree_about_what_is_seen() -> None:
    """The unconditional bound is the larger one where hits are many of the runs, and near the other elsewhere."""
    for mass, least in ((0.5, 0.0015), (0.05, 0.0), (0.005, 0.0)):
        runs = 10**5
        counts = CoinFlip(round(runs * mass), round(runs * mass / math.e), runs, runs)
        one, other = (certify(counts, PureDP(1.0), 0.95, certifier=name).lower for name in CERTIFIERS[:2])
        assert other >= one + least
        assert other - one < 0.02
        assert one == epsilon_lower(counts, 0.0, 0.05)


@pytest.mark.long
@pytest.mark.parametrize(("delta", "confidence"), [(0.0, 0.9), (0.1, 0.8)])
def test_valid_the_claim_that_is_tested_never_lifts_a_bound_above_the_truth(delta: float, confidence: float) -> None:
    """Exact: bound and p-value are made to agree, and the bound still covers, whatever the claim is."""
    runs_p, runs_q, truth = (8, 7, 0.5) if NIGHTLY else (6, 5, 0.5)
    q = np.linspace(1e-4, (1.0 - delta) / math.exp(truth), 300)
    p = np.minimum(1.0, math.exp(truth) * q + delta)
    weights = binom.pmf(np.arange(runs_p + 1)[:, None], runs_p, p), binom.pmf(np.arange(runs_q + 1)[:, None], runs_q, q)
    for claimed in (0.3, truth + 1e-3):
        claim = ApproximateDP(claimed, delta)
        above = [
            [
                certify(FixedSides(x, y, runs_p, runs_q), claim, confidence, certifier="unconditional").epsilon_lower
                > truth
                for y in range(runs_q + 1)
            ]
            for x in range(runs_p + 1)
        ]
        assert np.einsum("iq,ij,jq->q", weights[0], np.array(above, float), weights[1]).max() <= 1.0 - confidence + 1e-9
