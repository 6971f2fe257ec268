"""Claims about several mechanisms run on the same data, from the claims of each. Results are rounded up.

Each mechanism may be chosen after seeing the outputs of those before it. Claims composed must be stated for one
relation. Group privacy is `claim.at_distance(k)`.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from dpaudit.base import validate
from dpaudit.claims.claim import Claim
from dpaudit.claims.conversion import to_profile
from dpaudit.claims.gaussian import GaussianDP
from dpaudit.claims.profile import PrivacyProfile
from dpaudit.claims.pure import ApproximateDP, PureDP
from dpaudit.claims.relation import Relation
from dpaudit.claims.renyi import RenyiDP
from dpaudit.claims.rounding import UNIT, above, up
from dpaudit.claims.zcdp import ZeroConcentratedDP
from dpaudit.errors import InvalidSpec

C = TypeVar("C")


def compose_basic(claims: Iterable[PureDP | ApproximateDP]) -> PureDP | ApproximateDP:
    """The epsilons and the deltas add up (Dwork & Roth 2014, theorem 3.16); PureDP if all are.

    >>> compose_basic([PureDP(1.0), ApproximateDP(0.5, 1e-6)])
    ApproximateDP(epsilon=1.5, delta=1e-06, relation=None)
    """
    parts, relation = _parts(claims, (PureDP, ApproximateDP))
    epsilon = _sum(part.epsilon for part in parts)
    if all(isinstance(part, PureDP) for part in parts):
        return PureDP(epsilon, relation)
    return ApproximateDP(epsilon, min(1.0, _sum(part.delta for part in parts)), relation)


def compose_advanced(claims: Iterable[PureDP | ApproximateDP], slack: float) -> ApproximateDP:
    """Advanced composition, with `slack` in (0, 1) as the further part of delta.

    The least of three epsilons (Kairouz, Oh & Viswanath 2015, theorem 3.5): one is the sum, another improves on Dwork,
    Rothblum & Vadhan 2010. The delta is 1 - (1 - slack) times the product of all 1 - delta.

    >>> composed = compose_advanced([PureDP(0.1)] * 100, slack=1e-6)
    >>> round(composed.epsilon, 3), composed.delta < 1.000001e-6
    (5.756, True)
    """
    parts, relation = _parts(claims, (PureDP, ApproximateDP))
    slack = validate.open_probability("slack", slack)
    total = _sum(part.epsilon for part in parts)
    square = math.fsum(part.epsilon**2 for part in parts)
    drift = math.fsum(part.epsilon * math.tanh(part.epsilon / 2.0) for part in parts)
    tails = (-math.log(slack), math.log(math.e + math.sqrt(square) / slack))
    epsilon = min(total, *(up(drift + math.sqrt(2.0 * square * tail), 32.0) for tail in tails))
    return ApproximateDP(epsilon, _union([*(part.delta for part in parts), slack]), relation)


def compose_optimal(claim: PureDP | ApproximateDP, times: int) -> PrivacyProfile:
    """All that follows for `times` mechanisms with one claim: exact (Kairouz, Oh & Viswanath 2015, theorem 3.3).

    Its points are ((k - 2i) epsilon, 1 - (1 - delta)^k (1 - delta_i)) for i = 0, ..., k/2. With B the number of the
    less likely answers of k randomised responses, delta_i is the mean of 1 - e^(-2 (i - B) epsilon) where B < i: a sum
    of positive terms. Cost: k steps.

    >>> profile = compose_optimal(PureDP(0.1), 100)
    >>> round(profile.epsilon_at(1e-6), 3)
    4.775
    """
    (part,), relation = _parts([claim], (PureDP, ApproximateDP))
    k = validate.whole("times", times, least=1)
    epsilon = part.epsilon
    if part.delta == 1.0:
        return PrivacyProfile(((0.0, 1.0),), relation)
    grows, fades = -math.expm1(-2.0 * epsilon), math.exp(-2.0 * epsilon)
    delta_i = weighted = 0.0
    points = []
    for i in range(k // 2 + 1):
        delta = up(-math.expm1(k * math.log1p(-part.delta) + math.log1p(-min(delta_i, 1.0 - 1e-16))), 16.0)
        points.append((above((k - 2 * i) * Fraction(epsilon)), min(1.0, delta)))
        weighted += _binomial(k, i, epsilon)
        delta_i += grows * weighted
        weighted *= fades
    return PrivacyProfile(points, relation)


def compose_gaussian(claims: Iterable[GaussianDP]) -> GaussianDP:
    """The squares of mu add up (Dong, Roth & Su 2022, corollary 3.3).

    >>> compose_gaussian([GaussianDP(3.0), GaussianDP(4.0)]).mu
    5.0
    """
    parts, relation = _parts(claims, (GaussianDP,))
    square = sum((Fraction(part.mu) ** 2 for part in parts), Fraction(0))
    mu = math.sqrt(square)
    return GaussianDP(mu if Fraction(mu) ** 2 >= square else math.nextafter(mu, math.inf), relation)


def compose_zcdp(claims: Iterable[ZeroConcentratedDP]) -> ZeroConcentratedDP:
    """rho and xi add up (Bun & Steinke 2016, lemma 1.7).

    >>> compose_zcdp([ZeroConcentratedDP(0.25), ZeroConcentratedDP(0.5, 0.125)])
    ZeroConcentratedDP(rho=0.75, xi=0.125, relation=None)
    """
    parts, relation = _parts(claims, (ZeroConcentratedDP,))
    return ZeroConcentratedDP(_sum(part.rho for part in parts), _sum(part.xi for part in parts), relation)


def compose_renyi(claims: Iterable[RenyiDP]) -> RenyiDP:
    """The epsilons of one order add up (Mironov 2017, proposition 1). Raises `InvalidSpec` for different orders.

    >>> compose_renyi([RenyiDP(2.0, 0.25), RenyiDP(2.0, 0.5)])
    RenyiDP(order=2.0, epsilon=0.75, relation=None)
    """
    parts, relation = _parts(claims, (RenyiDP,))
    orders = sorted({part.order for part in parts})
    if len(orders) > 1:
        found = ", ".join(f"{order:g}" for order in orders)
        raise InvalidSpec(f"claims must have one order, got {found}; take each to the smallest with to_renyi")
    return RenyiDP(orders[0], _sum(part.epsilon for part in parts), relation)


def subsample_poisson(claim: Claim, rate: float) -> PureDP | ApproximateDP | PrivacyProfile:
    """The claim of a mechanism that is run on a Poisson sample: each record is kept with probability `rate`, alone.

    For the relation add_or_remove_one only: (epsilon, delta) becomes (ln(1 + rate (e^epsilon - 1)), rate delta) (Li,
    Qardaji & Su 2012, theorem 1; Balle, Barthe & Gaboardi 2018, theorem 8), for every point of a profile. Forms
    other than PureDP and ApproximateDP go through their profile. `claim` may name no relation; the result names it.

    >>> subsample_poisson(ApproximateDP(1.0, 1e-5), rate=0.5).delta
    5e-06
    """
    rate = validate.positive("rate", rate)
    if rate > 1.0:
        raise InvalidSpec(f"rate must be at most 1, got {rate!r}")
    relation = Relation.ADD_OR_REMOVE_ONE
    if claim.relation not in (None, relation):
        raise InvalidSpec(
            f"subsample_poisson needs a claim for {relation.value}, got one for {Relation.word(claim.relation)}"
        )
    points = [
        (_amplified(epsilon, rate), above(Fraction(rate) * Fraction(d))) for epsilon, d in to_profile(claim).curve
    ]
    if isinstance(claim, PureDP):
        return PureDP(points[0][0], relation)
    if isinstance(claim, ApproximateDP):
        return ApproximateDP(*points[0], relation)
    return PrivacyProfile(points, relation)


def _amplified(epsilon: float, rate: float) -> float:
    if rate == 1.0:
        return epsilon
    if epsilon > 30.0:  # ln(rate e^epsilon + 1 - rate)
        return min(epsilon, up(epsilon + math.log(rate) + math.log1p((1.0 - rate) / rate * math.exp(-epsilon)), 16.0))
    return min(epsilon, up(math.log1p(rate * math.expm1(epsilon)), 16.0))


def _binomial(k: int, i: int, epsilon: float) -> float:
    """The probability of i less likely answers among k randomised responses, rounded up."""
    sizes = math.lgamma(k + 1.0), math.lgamma(i + 1.0), math.lgamma(k - i + 1.0)
    log = sizes[0] - sizes[1] - sizes[2] - i * epsilon - k * math.log1p(math.exp(-epsilon))
    return math.exp(log) * (1.0 + UNIT * (32.0 + 8.0 * sizes[0] + 2.0 * k * (1.0 + epsilon)))


def _sum(values: Iterable[float]) -> float:
    return above(sum(map(Fraction, values), Fraction(0)))


def _union(deltas: Sequence[float]) -> float:
    if 1.0 in deltas:
        return 1.0
    return min(1.0, up(-math.expm1(math.fsum(math.log1p(-delta) for delta in deltas)), 16.0))


def _parts(claims: Iterable[C], forms: tuple[type[Any], ...]) -> tuple[list[Any], Relation | None]:
    """The claims as a list and their one relation. Raises `InvalidSpec` for none, another form or two relations."""
    parts: list[Any] = list(claims)
    if not parts:
        raise InvalidSpec("claims must hold at least one claim, got none")
    for part in parts:
        if not isinstance(part, forms):
            raise InvalidSpec(f"claims must be of form {' or '.join(form.__name__ for form in forms)}, got {part!r}")
    relations = {part.relation for part in parts}
    if len(relations) > 1:
        words = ", ".join(sorted(str(Relation.word(relation)) for relation in relations))
        raise InvalidSpec(f"claims must be stated for one relation, got {words}")
    return parts, parts[0].relation
