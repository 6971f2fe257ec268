"""What an audit of a given size could have seen, for an event that is known beforehand."""

from __future__ import annotations

import math

from dpaudit.certify.binomial import quantile
from dpaudit.certify.certificate import error_probability
from dpaudit.certify.coin_flip import p_value
from dpaudit.certify.evidence import CoinFlip
from dpaudit.claims import Claim

MASSES = (0.5, 0.1, 0.01, 1e-3, 1e-4)
LARGEST_EPSILON = 40.0  # beyond this the rarer side has no hits in any audit


def smallest_epsilon_caught(
    claim: Claim, runs: int, mass: float, *, confidence: float, power: float = 0.95
) -> float | None:
    """The least true epsilon on an event of probability `mass` that `runs` certifying runs refute with `power`.

    Rounded up: the hits of both sides are put at quantiles that hold together with probability `power`. None where
    no epsilon is caught.

    >>> from dpaudit.claims import PureDP
    >>> smallest_epsilon_caught(PureDP(1.0), 2_000_000, 0.5, confidence=0.95) < 1.02
    True
    """

    def caught(epsilon: float) -> bool:
        rarer = max(0.0, mass - claim.delta) * math.exp(-epsilon)
        return _is_refuted(claim, runs, mass, rarer, confidence, power)

    low, high = float(getattr(claim, "epsilon")), LARGEST_EPSILON
    if mass <= claim.delta or not caught(high):
        return None
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (low, middle) if caught(middle) else (middle, high)
    return high


def _is_refuted(claim: Claim, runs: int, p: float, q: float, confidence: float, power: float) -> bool:
    """Whether the claim falls when P's hits are as few, and Q's as many, as the power allows for.

    Each at an exact binomial quantile of (1 - power) / 2, so together they are that bad with probability 1 - power
    at the most.
    """
    spared = (1.0 - power) / 2.0
    few = runs - quantile(runs, 1.0 - p / 2.0, spared)
    many = quantile(runs, q / 2.0, spared)
    if few <= many:
        return False
    evidence = CoinFlip(few, many, max(few, runs // 2), max(many, runs - runs // 2))
    return p_value(evidence, claim) <= error_probability(confidence)
