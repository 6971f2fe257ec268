"""The certifiers by name: one is chosen before the first run and makes every certificate of an audit."""

from dpaudit.certify.binned import BinnedCertifier
from dpaudit.certify.certificate import Certificate
from dpaudit.certify.certifier import Certifier
from dpaudit.certify.coin_flip import CoinFlipCertifier
from dpaudit.certify.evidence import Evidence
from dpaudit.certify.unconditional import UNCONDITIONAL
from dpaudit.claims.claim import Claim
from dpaudit.errors import InvalidSpec

CERTIFIERS: list[Certifier] = [CoinFlipCertifier(), UNCONDITIONAL, BinnedCertifier()]
"""The certifiers there are. One of your own joins by `CERTIFIERS.append(...)`; nothing else has to know it."""


def certifier_names() -> tuple[str, ...]:
    """What spec files, sweeps and stored results may say, and their schemas with them."""
    return tuple(certifier.name for certifier in CERTIFIERS)


def certifier_named(certifier: str | Certifier) -> Certifier:
    """The certifier of this name; one that is given stays itself. Raises `InvalidSpec` for an unknown name."""
    found = [each for each in CERTIFIERS if certifier in (each, each.name)]
    if not found:
        raise InvalidSpec(f"certifier must be one of {', '.join(certifier_names())}, got {certifier!r}")
    return found[0]


def suited(claim: Claim, stopping: str = "fixed") -> Certifier:
    """The certifier for a claim where the spec names none: by its form alone, so before anything runs.

    >>> from dpaudit.claims import GaussianDP, PureDP
    >>> suited(PureDP(1.0)).name, suited(GaussianDP(1.0)).name
    ('coin-flip', 'unconditional')
    """
    return next((certifier for certifier in CERTIFIERS if certifier.suits(claim, stopping)), UNCONDITIONAL)


def certify(
    evidence: Evidence,
    claim: Claim,
    confidence: float,
    *,
    certifier: str | Certifier = "coin-flip",
    delta: float | None = None,
) -> Certificate:
    """The certificate that a certifier makes of one frozen event, or partition, on fresh runs: `Certifier.certify`.

    Raises `InvalidSpec` for an unknown certifier, or one that does not take this evidence.

    >>> from dpaudit.certify.evidence import CoinFlip, FixedSides
    >>> from dpaudit.claims import PureDP
    >>> certify(CoinFlip(900, 100, 1000, 1000), PureDP(1.0), confidence=0.95).refuted
    True
    >>> round(certify(FixedSides(900, 100, 1000, 1000), PureDP(1.0), 0.95, certifier="unconditional").lower, 2)
    2.04
    """
    return certifier_named(certifier).certify(evidence, claim, confidence, delta)
