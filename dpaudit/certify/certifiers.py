"""The certifiers by name: one is chosen before the first run and makes every certificate of an audit."""

from __future__ import annotations

from typing import Literal

from dpaudit.certify import binned, coin_flip, unconditional
from dpaudit.certify.certificate import Certificate, error_probability
from dpaudit.certify.evidence import Binned, CoinFlip, Evidence, FixedSides
from dpaudit.claims import Claim, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.errors import InvalidSpec

CERTIFIERS = ("coin-flip", "unconditional", "binned")
TAKES: dict[str, tuple[type[Evidence], ...]] = {
    "coin-flip": (CoinFlip,),
    "unconditional": (CoinFlip, FixedSides),
    "binned": (Binned,),
}


def suited(claim: Claim, stopping: str = "fixed") -> Literal["coin-flip", "unconditional", "binned"]:
    """The certifier for a claim where the spec names none: by its form alone, so before anything runs.

    >>> from dpaudit.claims import GaussianDP, PureDP
    >>> suited(PureDP(1.0)), suited(GaussianDP(1.0))
    ('coin-flip', 'unconditional')
    """
    if isinstance(claim, PureDP):
        return "coin-flip"
    several = isinstance(claim, RenyiDP | ZeroConcentratedDP) and stopping == "fixed"
    return "binned" if several else "unconditional"


def certify(
    evidence: Evidence, claim: Claim, confidence: float, *, certifier: str = "coin-flip", delta: float | None = None
) -> Certificate:
    """The certificate of one frozen event, or partition, on fresh runs.

    `delta` is the one frozen with the event (None: the claim's own). The claim implies p <= R q + delta with
    R = e^claim.epsilon_at(delta), and that is what the p-value tests; the bound on epsilon at delta is turned into the
    claim's parameter by `claim.lower`. Binned evidence bounds the parameter itself, and takes no delta. Raises
    `InvalidSpec` for an unknown certifier, or one that does not take this evidence.

    >>> from dpaudit.claims import PureDP
    >>> certify(CoinFlip(900, 100, 1000, 1000), PureDP(1.0), confidence=0.95).refuted
    True
    >>> round(certify(FixedSides(900, 100, 1000, 1000), PureDP(1.0), 0.95, certifier="unconditional").lower, 2)
    2.04
    """
    if not isinstance(evidence, _takes(certifier)):
        kinds = " or ".join(kind.__name__ for kind in TAKES[certifier])
        raise InvalidSpec(f"the {certifier} certifier takes {kinds}, got {type(evidence).__name__}")
    if isinstance(evidence, Binned):
        return binned.certify(evidence, claim, confidence)
    d = claim.delta if delta is None else delta
    alpha, claimed = error_probability(confidence), claim.epsilon_at(d)
    if isinstance(evidence, CoinFlip) and certifier == "coin-flip":
        method, epsilon = coin_flip.METHOD, coin_flip.epsilon_lower(evidence, d, alpha)
        value = coin_flip.p_value(evidence, claimed, d)
    else:
        method, epsilon = unconditional.METHOD, unconditional.epsilon_lower(evidence, d, alpha)
        value = unconditional.p_value(evidence, claimed, d, alpha)
        # both are valid: the bound and the p-value differ by the slack of their sums, and must not disagree
        epsilon = max(epsilon, claimed) if value <= alpha else min(epsilon, claimed)
    return Certificate(
        lower=claim.lower(epsilon, d),
        epsilon_lower=epsilon,
        p_value=value,
        delta=d,
        confidence=confidence,
        method=method,
    )


def ceiling(runs_p: int, runs_q: int, delta: float, confidence: float, *, certifier: str = "coin-flip") -> float:
    """The epsilon at delta that all hits on one side would give: no audit of this size can certify more.

    Of the binned certifier: the divergence that no order and no bins can exceed.

    >>> round(ceiling(1000, 1000, 0.0, 0.95), 2)
    5.81
    """
    alpha = error_probability(confidence)
    _takes(certifier)
    if certifier == "binned":
        return binned.ceiling(runs_p, runs_q, alpha)
    if certifier == "unconditional":
        return unconditional.ceiling(runs_p, runs_q, delta, alpha)
    return coin_flip.epsilon_lower(CoinFlip(runs_p, 0, runs_p, runs_q), delta, alpha)


def _takes(certifier: str) -> tuple[type[Evidence], ...]:
    if certifier not in TAKES:
        raise InvalidSpec(f"certifier must be one of {', '.join(CERTIFIERS)}, got {certifier!r}")
    return TAKES[certifier]
