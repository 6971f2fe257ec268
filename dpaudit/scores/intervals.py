"""Limits of two error rates and of epsilon: certified ones, and others without a guarantee.

Certified where every score comes from a model of its own, and the numbers in and out were fixed. For every threshold at
once: the k-th largest of n scores is a threshold whose true rate is Beta(k, n + 1 - k), so the Clopper-Pearson limits
of all ranks, at alpha / (2 n), hold together, and with them those of every threshold between.

Zanella-Beguelin et al. 2023 (ICML): the posterior of the two error rates under Jeffreys priors, and of epsilon with it.
The four cells with a Dirichlet(1/2, 1/2, 1/2, 1/2) prior give the very same law of (fpr, fnr) as two independent Betas,
so "joint-dirichlet" is "joint-beta" by another name, and is computed as it.

Of the logarithm of a ratio of two binomial rates, at delta = 0, to compare other tools with: names, and rules for zero
counts, as in Aho & Bowyer 2015; all four miss their level where the counts are small.

The bootstrap is of a measure of the two samples of scores, not of epsilon. Efron 1987 (JASA 82): percentile,
bias-corrected (BC), and bias-corrected with acceleration (BCa, by the jackknife).
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.base import validate
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


def right_limits(in_scores: Any, out_scores: Any, alpha: float) -> tuple[Any, Any]:
    """Upper limits of (tpr, tnr) at every threshold, shape (thresholds,); all of them hold together at `alpha`."""
    curve = roc(in_scores, out_scores)
    return _upper(curve.tp, curve.members, alpha), _upper(curve.others - curve.fp, curve.others, alpha)


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


# --- without a guarantee ---

PANELS, NODES = 48, 16  # of the Gauss-Legendre rule along the posterior of fnr
LARGEST_EPSILON = 60.0


@dataclass(frozen=True, slots=True)
class Posterior:
    """The joint posterior of (fpr, fnr) for the counts of one attack.

    >>> p = Posterior(AttackCounts(tp=60, fp=20, tn=80, fn=40))
    >>> 0.5 < p.quantile(0.05, 0.0) < p.quantile(0.95, 0.0) < 1.6
    True
    """

    counts: AttackCounts

    def probability_private(self, epsilon: float, delta: float) -> float:
        """The posterior probability that the attack's error rates are allowed by (epsilon, delta)-DP."""
        from scipy.special import betainc

        x, weights = self._nodes(epsilon, delta)
        a, b = self.counts.fp + 0.5, self.counts.tn + 0.5
        low, high = _edges(x, epsilon, delta)
        return float(min(1.0, max(0.0, (weights * (betainc(a, b, high) - betainc(a, b, low))).sum())))

    def quantile(self, share: float, delta: float) -> float:
        """The epsilon below which the posterior has a part `share`; 0.0 where epsilon = 0 has it already."""
        if self.probability_private(0.0, delta) >= share:
            return 0.0
        low, high = 0.0, 1.0
        while high < LARGEST_EPSILON and self.probability_private(high, delta) < share:
            low, high = high, 2.0 * high
        if high >= LARGEST_EPSILON:
            return math.inf
        return narrowed(lambda epsilon: self.probability_private(epsilon, delta) < share, low, high, 1e-8)[0]

    def _nodes(self, epsilon: float, delta: float) -> tuple[Any, Any]:
        """Nodes of fnr and their posterior weights: panels of equal mass, cut where an edge of the region bends."""
        from scipy.special import betainc, betaincinv

        a, b = self.counts.fn + 0.5, self.counts.tp + 0.5
        corner = (1.0 - delta) / (1.0 + math.exp(epsilon))
        bends = np.clip([0.0, delta, corner, 1.0 - corner, 1.0 - delta, (1.0 - delta) * math.exp(-epsilon)], 0.0, 1.0)
        tails = np.geomspace(1e-12, 0.02, 12)
        cuts = np.unique(
            np.concatenate([[0.0, 1.0], np.linspace(0.0, 1.0, PANELS + 1), tails, 1.0 - tails, betainc(a, b, bends)])
        )
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        half = np.diff(cuts) / 2.0
        mass = (cuts[:-1] + half)[:, None] + half[:, None] * nodes[None, :]
        return betaincinv(a, b, mass.ravel()), (half[:, None] * weights[None, :]).ravel()


def jeffreys(counts: AttackCounts, delta: float, alpha: float) -> tuple[float, float]:
    """(lower, upper) epsilon from equal-tailed Jeffreys intervals of fpr and fnr, alpha / 4 in each of the four tails.

    The intervals reach 0 and 1 where a count is 0 or all (Brown, Cai & DasGupta 2001, section 4.1.2).
    """
    from scipy.special import betaincinv

    def limits(hits: int, size: int) -> tuple[float, float]:
        a, b, tail = hits + 0.5, size - hits + 0.5, alpha / 4.0
        low = 0.0 if hits == 0 else float(betaincinv(a, b, tail))
        return low, 1.0 if hits == size else float(betaincinv(a, b, 1.0 - tail))

    (x_low, x_high), (y_low, y_high) = limits(counts.fp, counts.others), limits(counts.fn, counts.members)
    ends = epsilon_of(x_low, y_low, delta), epsilon_of(x_high, y_high, delta)
    crossed = (x_low + y_low < 1.0) != (x_high + y_high < 1.0)  # the rectangle holds guessing at random
    return 0.0 if crossed else min(ends), max(ends)


def _edges(x: Any, epsilon: float, delta: float) -> tuple[Any, Any]:
    """The least and the largest fpr that (epsilon, delta)-DP allows at fnr = x."""
    grow, shrink = math.exp(epsilon), math.exp(-epsilon)
    low = np.maximum(0.0, np.maximum(1.0 - delta - grow * x, shrink * (1.0 - delta - x)))
    high = np.minimum(1.0, np.minimum(1.0 + (delta - x) * shrink, delta + (1.0 - x) * grow))
    return low, np.maximum(low, high)


RATIOS = ("katz-log", "adjusted-log", "bailey", "inverse-sinh")


def log_ratio_limit(method: str, hits_p: int, runs_p: int, hits_q: int, runs_q: int, z: float) -> float:
    """ln of the limit of (hits_p / runs_p) / (hits_q / runs_q) at the normal quantile `z` (negative: lower limit).

    >>> round(math.exp(log_ratio_limit("bailey", 100, 110, 10, 80, -1.6448536269514722)), 6)
    4.619539
    >>> round(math.exp(log_ratio_limit("katz-log", 90, 110, 5, 80, -1.6448536269514722)), 6)
    6.397126
    """
    if hits_p == 0:
        return -math.inf if z < 0.0 or hits_q else math.inf
    x, y = (hits_p - 0.5, hits_q - 0.5) if hits_p == runs_p and hits_q == runs_q else (hits_p, hits_q)
    return _METHODS[method](x, runs_p, y, runs_q, z)


def epsilon_limit(method: str, c: AttackCounts, z: float) -> float:
    """The larger of the two lines' limits, ln(tpr / fpr) and ln(tnr / fnr); at least 0."""
    lines = (c.tp, c.members, c.fp, c.others), (c.tn, c.others, c.fn, c.members)
    return max(0.0, *(log_ratio_limit(method, *each, z) for each in lines))


def _katz(x: float, m: float, y: float, n: float, z: float) -> float:
    """Katz, Baptista, Azen & Pike 1978, method C."""
    y = y or 0.5
    return math.log(x / m) - math.log(y / n) + z * math.sqrt(1.0 / x - 1.0 / m + 1.0 / y - 1.0 / n)


def _bailey(x: float, m: float, y: float, n: float, z: float) -> float:
    """Bailey 1987: the cube root of the ratio is more nearly normal."""
    x, y = (m - 0.5 if x == m else x), (n - 0.5 if y == n else y or 0.5)
    missed_p, missed_q = 1.0 - x / m, 1.0 - y / n
    inner = missed_p / x + missed_q / y - z * z * missed_p * missed_q / (9.0 * x * y)
    below = 1.0 - z * z * missed_q / (9.0 * y)
    above = 1.0 + z / 3.0 * math.sqrt(max(0.0, inner))
    if below <= 0.0:  # too few hits for the approximation: it says nothing
        return -math.inf if z < 0.0 else math.inf
    return -math.inf if above <= 0.0 else math.log(x / m) - math.log(y / n) + 3.0 * math.log(above / below)


def _inverse_sinh(x: float, m: float, y: float, n: float, z: float) -> float:
    """Newcombe 2001."""
    y = y or z * z
    spread = math.sqrt(max(0.0, 1.0 / x - 1.0 / m + 1.0 / y - 1.0 / n))
    return math.log(x / m) - math.log(y / n) + 2.0 * math.asinh(z / 2.0 * spread)


_METHODS: dict[str, Callable[[float, float, float, float, float], float]] = {
    "katz-log": _katz,
    # Walter 1975: half a hit added everywhere
    "adjusted-log": lambda x, m, y, n, z: _katz(x + 0.5, m + 0.5, y + 0.5, n + 0.5, z),
    "bailey": _bailey,
    "inverse-sinh": _inverse_sinh,
}


KINDS = ("percentile", "bc", "bca")
Measure = Callable[[Any, Any], float]  # of the scores in and out


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """How to resample: `kind` is "percentile", "bc" or "bca", `resamples` how often, both sides each time."""

    kind: str = "bc"
    resamples: int = 1000

    def __post_init__(self) -> None:
        validate.one_of("bootstrap", self.kind, KINDS)
        object.__setattr__(self, "resamples", validate.whole("resamples", self.resamples, least=2))

    def quantiles(self, measure: Measure, in_scores: Any, out_scores: Any, shares: Any, seed: int) -> Any:
        """The bootstrap quantiles of `measure(in_scores, out_scores)`, at `shares` strictly between 0 and 1.

        >>> import numpy as np
        >>> a, b = np.arange(50) + 10.0, np.arange(50) + 0.0
        >>> low, high = Bootstrap("percentile", 200).quantiles(lambda a, b: roc(a, b).area, a, b, [0.05, 0.95], seed=0)
        >>> bool(low < roc(a, b).area < high)
        True
        """
        from scipy.special import ndtr, ndtri

        rng = np.random.default_rng(seed)
        sides = in_scores, out_scores
        values = np.array([measure(*(rng.choice(each, each.size) for each in sides)) for _ in range(self.resamples)])
        wanted = np.asarray(shares, dtype=float)
        if self.kind == "percentile":
            return np.quantile(values, wanted)
        below = np.sum(values < measure(in_scores, out_scores))
        shift = ndtri((below + 1.0) / (self.resamples + 2.0))  # one value more on each side: never an infinite shift
        speed = _acceleration(measure, in_scores, out_scores) if self.kind == "bca" else 0.0
        moved = shift + ndtri(wanted)
        return np.quantile(values, ndtr(shift + moved / (1.0 - speed * moved)))


def _acceleration(measure: Measure, in_scores: Any, out_scores: Any) -> float:
    """A sixth of the skewness of the measure with one score left out at a time."""
    left = [measure(np.delete(in_scores, i), out_scores) for i in range(in_scores.size) if in_scores.size > 1]
    left += [measure(in_scores, np.delete(out_scores, i)) for i in range(out_scores.size) if out_scores.size > 1]
    away = np.mean(left) - np.array(left)
    spread = 6.0 * np.sum(away**2) ** 1.5
    return 0.0 if spread == 0.0 else float(np.sum(away**3) / spread)
