"""Certified limits of two error rates, and of epsilon.

Certified where every score comes from a model of its own, and the numbers in and out were fixed. For every threshold at
once: the k-th largest of n scores is a threshold whose true rate is Beta(k, n + 1 - k), so the Clopper-Pearson limits
of all ranks, at alpha / (2 n), hold together, and with them those of every threshold between.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from dpaudit.certify.binomial import SLACK, lower_limit, upper_limit
from dpaudit.claims import Claim, claim_of
from dpaudit.claims.rounding import narrowed
from dpaudit.scores.counts import AttackCounts, epsilon_of, roc

LEAST_ALPHA = 1e-18  # a p-value below this is reported as this
MOST_CORNERS = 2000  # thresholds at which the bands are compared with a claim

WITHIN = "every score comes from a model trained independently of all others; the numbers in and out were fixed before"


Limits = Callable[[float], Iterable[tuple[float, float]]]  # of (fpr, fnr), that hold together at an alpha


def rectangle(counts: AttackCounts, alpha: float) -> tuple[float, float]:
    """The upper limits of fpr and fnr, each at alpha / 2: with probability 1 - alpha both hold."""
    return (upper_limit(counts.fp, counts.others, alpha / 2.0), upper_limit(counts.fn, counts.members, alpha / 2.0))


def fixed_rule(counts: AttackCounts) -> Limits:
    """The limits of one rule that was fixed before: its rectangle.

    >>> round(lower_of(fixed_rule(AttackCounts(tp=900, fp=100, tn=900, fn=100)), 0.0, 0.05), 3)
    1.99
    """
    return lambda alpha: [rectangle(counts, alpha)]


def every_rule(in_scores: Any, out_scores: Any) -> Limits:
    """The limits of every threshold: the bands, and those where members have the low scores, each at half of alpha."""

    def limits(alpha: float) -> Iterator[tuple[float, float]]:
        for inside, outside in ((in_scores, out_scores), (-in_scores, -out_scores)):
            fpr, fnr = bands(inside, outside, alpha / 2.0)
            yield from zip(fpr.tolist(), fnr.tolist(), strict=True)

    return limits


def lower_of(limits: Limits, delta: float, alpha: float) -> float:
    """epsilon lower bound at `delta`: the best of the lines of the region, which share all limits."""
    return max(shown(*each, delta) for each in limits(alpha))


def p_value_of(limits: Limits, claim: Claim) -> float:
    """The least error probability at which limits leave the claim's region, in either order of the sides."""
    return least_alpha(lambda alpha: any(_outside(claim, *each) for each in limits(alpha)))


def clopper_pearson_upper(counts: AttackCounts, delta: float, alpha: float) -> float:
    """Upper bound, at `delta`, of the epsilon that this one attack shows; not of the mechanism's own epsilon.

    >>> round(clopper_pearson_upper(AttackCounts(tp=900, fp=100, tn=900, fn=100), 0.0, 0.05), 3)
    2.414
    """
    low = (lower_limit(counts.fp, counts.others, alpha / 2.0), lower_limit(counts.fn, counts.members, alpha / 2.0))
    return max(epsilon_of(*low, delta), epsilon_of(*rectangle(counts, alpha), delta))


def exact(counts: AttackCounts, delta: float, alpha: float, claim: Claim | None, event: str) -> tuple[float, float]:
    """(epsilon lower bound at `delta`, p-value of the claim) by the exact unconditional test of one frozen event.

    `event` "in": tp of the members against fp of the others; "out": tn against fn; "both": the better of the two,
    each at half the error probability. Without a claim the p-value is that of epsilon = 0.
    """
    if event == "both":
        first, second = (exact(counts, delta, alpha / 2.0, claim, each) for each in ("in", "out"))
        return max(first[0], second[0]), min(1.0, 2.0 * min(first[1], second[1]))
    from dpaudit.certify import FixedSides
    from dpaudit.certify.unconditional import UNCONDITIONAL

    sides = (counts.tp, counts.fp, counts.members, counts.others)
    if event == "out":
        sides = (counts.tn, counts.fn, counts.others, counts.members)
    tested: Claim = claim_of(0.0, delta) if claim is None else claim
    certificate = UNCONDITIONAL.certify(FixedSides(*sides), tested, 1.0 - alpha, delta)
    return (certificate.epsilon_lower or 0.0), certificate.p_value


def bands(in_scores: Any, out_scores: Any, alpha: float) -> tuple[Any, Any]:
    """Upper limits of (fpr, fnr) at every threshold that can matter; all of them hold together at `alpha`.

    Arrays of shape (corners,): the thresholds where one more guess "in" would be a non-member.
    """
    curve = roc(in_scores, out_scores)
    corner = np.append((np.diff(curve.fp) > 0), True) & np.concatenate([[True], np.diff(curve.tp) > 0])
    places = np.flatnonzero(corner)
    if places.size > MOST_CORNERS:  # any of them may be left out: the limits hold at all
        places = places[np.unique(np.linspace(0, places.size - 1, MOST_CORNERS).astype(int))]
    fp, fn = curve.fp[places], curve.members - curve.tp[places]
    return _upper(fp, curve.others, alpha), _upper(fn, curve.members, alpha)


def _upper(hits: Any, size: int, alpha: float) -> Any:
    """Upper limits of a rate at every rank of one side, with half of `alpha` divided between its ranks."""
    from scipy.special import betainccinv

    some = np.minimum(hits, size - 1)
    inner = betainccinv(some + 1.0, size - some, alpha / (2.0 * size)) * (1.0 + SLACK)
    return np.where(hits >= size, 1.0, np.minimum(1.0, inner))


def least_alpha(refuted: Callable[[float], bool]) -> float:
    """The least error probability at which a rule that grows with it refutes, rounded up; 1.0 where none does.

    >>> round(least_alpha(lambda alpha: alpha >= 0.01), 6)
    0.01
    """
    if not refuted(0.999999):
        return 1.0
    if refuted(LEAST_ALPHA):
        return LEAST_ALPHA
    high = narrowed(lambda log: not refuted(math.exp(log)), math.log(LEAST_ALPHA), 0.0, 1e-6)[1]
    return min(1.0, math.exp(high) * (1.0 + SLACK))


def shown(fpr: float, fnr: float, delta: float) -> float:
    """The epsilon that error rates of at most these show: limits are never mirrored, and above 1 together show nothing.

    >>> round(shown(0.1, 0.5, 0.0), 4), shown(0.5, 0.5, 0.0), shown(1.0, 0.9, 0.0)
    (1.6094, 0.0, 0.0)
    """
    best = 0.0
    for likely, rare in ((1.0 - fnr, fpr), (1.0 - fpr, fnr)):
        if likely > delta and rare > 0.0:
            best = max(best, math.log(likely - delta) - math.log(rare))
    return best


def _outside(claim: Claim, fpr: float, fnr: float) -> bool:
    return 1.0 - fnr > claim.max_probability(fpr) or 1.0 - fpr > claim.max_probability(fnr)
