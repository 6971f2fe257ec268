"""The certifiers by name, and their power: what an audit of a given size could have seen of a known event.

One certifier is chosen before the first run, and makes every certificate of an audit.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from dpaudit.base.validate import error_probability
from dpaudit.certify.binned import BinnedCertifier
from dpaudit.certify.binomial import quantile
from dpaudit.certify.certificate import Certificate, Certifier
from dpaudit.certify.coin_flip import CoinFlipCertifier
from dpaudit.certify.evidence import Evidence
from dpaudit.certify.unconditional import UNCONDITIONAL
from dpaudit.claims.claim import Claim, frozen_delta
from dpaudit.errors import InvalidSpec

CERTIFIERS: list[Certifier] = [CoinFlipCertifier(), UNCONDITIONAL, BinnedCertifier()]
"""The certifiers there are. One of your own joins by `CERTIFIERS.append(...)`; nothing else has to know it."""


def certifier_names() -> tuple[str, ...]:
    """What spec files, sweeps and stored results may say, and their schemas with them."""
    return tuple(certifier.name for certifier in CERTIFIERS)


def certifier_named(certifier: str | Certifier) -> Certifier:
    """The certifier of this name; one that is given stays itself. Raises `InvalidSpec` for an unknown name."""
    matches = [each for each in CERTIFIERS if certifier in (each, each.name)]
    if not matches:
        raise InvalidSpec(f"certifier must be one of {', '.join(certifier_names())}, got {certifier!r}")
    return matches[0]


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


Refutes = Callable[[Any, Claim, float, float], bool]

MASSES = (0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-5)
LARGEST_EPSILON = 40.0  # beyond this the rarer side has no hits in any audit
HALVINGS = 50  # of the range of ln q where the p-value is cheap
SEARCH_Z, FEWEST_FOUND = 1.0, 10  # luck that search takes off, in deviations; hits without which it finds no event
PART, MOST_PARTS, PARTS_COVERED = 100, 256, 2.5  # hits of a part of the numbers, their number, those of a range
STEPS = 3  # and where it is not, from a guess that is off by about
GUESS = 0.1  # of the deviation of the log ratio of the hits


def smallest_caught(
    claim: Claim,
    runs: int,
    mass: float,
    *,
    confidence: float,
    certifier: str | Certifier = "coin-flip",
    delta: float | None = None,
    power: float = 0.95,
    searching: int | None = None,
) -> float | None:
    """The least true value of the claim's parameter that `runs` certifying runs refute with `power`.

    The event is known, or has to be found by `searching` runs: their hits, at quantiles too, must promise that the
    certifying runs will refute, `SEARCH_Z` deviations of luck taken off, and be `FEWEST_FOUND` at least.

    It is that of the member of the claim's family through an event of probability `mass` under P. `delta` is the one
    frozen with the event; None: the one that search would freeze for that event. None where nothing is caught.
    Rounded up: the hits of both sides are put at quantiles that hold together with probability `power`, and the
    certifier itself refutes there. A binned audit is taken to have two bins, the event and the rest.

    >>> from dpaudit.claims import PureDP
    >>> smallest_caught(PureDP(1.0), 2_000_000, 0.5, confidence=0.95) < 1.02
    True
    """
    q = _rarest(claim, runs, mass, confidence, certifier_named(certifier), delta, power, searching)
    if q is None:
        return None
    if claim.value is None:  # the parameter is the epsilon at delta
        rarer, likelier = _seen(claim, q, mass, delta)
        return math.log((likelier - _delta(claim, rarer, likelier, delta)) / rarer)
    return float(claim.least_parameter(np.array([q]), np.array([mass]))[0])


def narrowest(searching: int) -> float:
    """The probability from which on a narrow range inside the numbers is found like a value, by measurement.

    Search sorts numbers by parts of equal mass, of `PART` hits at least; a rarer range is diluted by what is beside it.
    """
    return PARTS_COVERED / min(MOST_PARTS, 1 + searching // PART)


def _delta(claim: Claim, q: float, p: float, delta: float | None) -> float:
    return frozen_delta(claim, q, p) if delta is None else delta


def _seen(claim: Claim, q: float, mass: float, delta: float | None) -> tuple[float, float]:
    """The point (q, p) that search would choose: of the event, or of its complement on the other side for a curve.

    Of the two only one has a tangent steeper than 1.
    """
    mirrored = delta is None and not claim.linear and mass + q > 1.0
    return (1.0 - mass, 1.0 - q) if mirrored else (q, mass)


def _search(
    claim: Claim,
    runs: int,
    mass: float,
    confidence: float,
    certifier: Certifier,
    delta: float | None,
    power: float,
    searching: int | None,
) -> float | None:
    """The largest probability under Q at which an event of `mass` under P is still caught."""
    alpha, spared = error_probability(confidence), (1.0 - power) / (2.0 if searching is None else 4.0)
    # with coins each run hits a side with half the probability; otherwise half of the runs are those of the side
    size, part = (runs, 0.5) if certifier.coins else (runs // 2, 1.0)

    def caught(log_q: float, refutes: Refutes = certifier.refutes) -> bool:
        q, p = _seen(claim, math.exp(log_q), mass, delta)
        few, many = size - quantile(size, 1.0 - part * p, spared), quantile(size, part * q, spared)
        if few <= 0 or many > size:
            return False
        if searching is not None:
            promised = _promised(searching, p, q, spared)
            if promised is None:
                return False
            # where search sees less than there is, it is what will be certified that has to suffice
            few, many = min(few, int(size * part * promised[0])), max(many, math.ceil(size * part * promised[1]))
        d = 0.0 if certifier.bins else _delta(claim, q, p, delta)
        return p > d and refutes(certifier.counts(few, many, runs), claim, d, alpha)

    low = floor = math.log(mass) - LARGEST_EPSILON
    high = math.log(mass)
    if not caught(low, certifier.guess) and not caught(low):
        return None
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if caught(middle, certifier.guess) else (low, middle)
    if not certifier.slow:
        return math.exp(low)
    step = GUESS * math.sqrt(1.0 / (1.0 + size * mass) + 1.0 / (1.0 + size * math.exp(low)))
    high = low + step
    while not caught(low):
        if low <= floor:
            return None
        low, high, step = max(floor, low - step), low, 3.0 * step
    for _ in range(STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if caught(middle) else (low, middle)
    return math.exp(low)


def _promised(searching: int, p: float, q: float, spared: float) -> tuple[float, float] | None:
    """The rates that search takes an event of (q, p) to have, after bad luck and with prudence; None: unseen."""
    half = searching // 2
    few, many = half - quantile(half, 1.0 - p, spared), quantile(half, q, spared)
    if few < FEWEST_FOUND:
        return None
    low, high = few - SEARCH_Z * math.sqrt(few * (1.0 - p)), many + SEARCH_Z * math.sqrt((many + 1.0) * (1.0 - q))
    return max(low, 0.0) / half, min(high / half, 1.0)


_remembered: Callable[..., float | None] = lru_cache(maxsize=1024)(_search)


def _rarest(claim: Claim, *asked: Any) -> float | None:
    try:
        hash(claim)
    except TypeError:  # a claim without a hash is searched for again each time
        return _search(claim, *asked)
    return _remembered(claim, *asked)
