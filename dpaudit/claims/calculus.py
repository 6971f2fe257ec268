"""A small calculus of claims: what one claim implies, and what the claims of several mechanisms on the same data imply.

Every result is rounded so that it promises no more than the theory. Post-processing needs no function: what a claim
says of a mechanism's outputs it says of anything computed from them without another look at the data (Dwork & Roth
2014, proposition 2.1). `implies` compares two claims. Of composed mechanisms each may be chosen after seeing the
outputs of those before it; their claims must be stated for one relation. Group privacy is `claim.at_distance(k)`.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from dpaudit.base import validate
from dpaudit.claims.claim import Claim, Relation
from dpaudit.claims.profile import PrivacyProfile
from dpaudit.claims.pure import ApproximateDP, PureDP
from dpaudit.claims.renyi import ORDERS, RenyiDP, ZeroConcentratedDP, order_above_one
from dpaudit.claims.renyi_curve import log_cosh
from dpaudit.claims.rounding import UNIT, above, up
from dpaudit.claims.tradeoff import RIGHT_TO, GaussianDP, TradeOffDP
from dpaudit.errors import InvalidSpec

RAREST, POINTS = 1e-12, 400  # of a profile's deltas
WAYS = ("region", "orders", "simple")


def to_approximate(claim: Claim, delta: float, *, way: str = "region") -> ApproximateDP:
    """The (epsilon, delta)-DP that a claim implies at this delta.

    `way` "region" is the least epsilon that follows from the claim; for RenyiDP it is the optimal conversion
    (Asoodeh, Liao, Calmon, Kosut & Sankar 2021), for GaussianDP the exact profile. The formulas of the literature are
    there to compare with, for RenyiDP and ZeroConcentratedDP only: "orders" is Canonne, Kamath & Steinke 2020,
    proposition 12, at the best order; "simple" is Mironov 2017, proposition 3, and Bun & Steinke 2016, proposition
    1.3. Raises `InvalidSpec` where no finite epsilon follows.

    >>> claim = ZeroConcentratedDP(rho=0.5)
    >>> [round(to_approximate(claim, 1e-5, way=way).epsilon, 3) for way in WAYS]
    [4.728, 4.728, 5.299]
    """
    delta = validate.probability("delta", delta)
    validate.one_of("way", way, WAYS)
    if way == "region":
        epsilon = claim.epsilon_at(delta)
    elif not isinstance(claim, RenyiDP | ZeroConcentratedDP):
        raise InvalidSpec(f"way {way!r} is for RenyiDP and ZeroConcentratedDP, got {claim}; take 'region'")
    elif delta == 0.0:
        epsilon = math.inf
    else:
        epsilon = _by_orders(claim, delta) if way == "orders" else _simple(claim, delta)
    if epsilon == math.inf:
        raise InvalidSpec(f"delta must be larger, got {delta!r}: {claim} implies no finite epsilon there")
    return ApproximateDP(epsilon, delta, claim.relation)


def to_profile(claim: Claim) -> PrivacyProfile:
    """The privacy profile of a claim; for a curved form 400 points of it, from a delta of 1e-12 to that at epsilon 0.

    Between two points a profile allows what a mixture of the two lines allows, which is a little more.

    >>> len(to_profile(GaussianDP(1.0)).curve)
    400
    """
    if isinstance(claim, PrivacyProfile):
        return claim
    if isinstance(claim, PureDP | ApproximateDP):
        return PrivacyProfile(((claim.epsilon, claim.delta),), claim.relation)
    if isinstance(claim, TradeOffDP):
        return PrivacyProfile(claim.region.lines, claim.relation)
    most = claim.delta_at(0.0)
    if most <= RAREST:
        return PrivacyProfile(((0.0, most),), claim.relation)
    points = [(claim.epsilon_at(delta), delta) for delta in np.geomspace(RAREST, most, POINTS).tolist()]
    finite = tuple(point for point in points if point[0] < math.inf)
    return PrivacyProfile(finite or ((0.0, 1.0),), claim.relation)


def to_zcdp(claim: Claim) -> ZeroConcentratedDP:
    """rho = epsilon^2 / 2 for pure DP (Bun & Steinke 2016, proposition 1.4), mu^2 / 2 for Gaussian DP.

    mu-GDP outputs can be computed from one draw of N(0, 1) or N(mu, 1) (Dong, Roth & Su 2022, theorem 2.10), whose
    divergence of order a is a mu^2 / 2. Raises `InvalidSpec` for other forms.

    >>> to_zcdp(PureDP(1.0)).rho, to_zcdp(GaussianDP(3.0)).rho
    (0.5, 4.5)
    """
    if isinstance(claim, ZeroConcentratedDP):
        return claim
    if isinstance(claim, PureDP | GaussianDP):
        size = claim.epsilon if isinstance(claim, PureDP) else claim.mu
        return ZeroConcentratedDP(above(Fraction(size) ** 2 / 2), 0.0, claim.relation)
    raise InvalidSpec(f"only PureDP, GaussianDP and ZeroConcentratedDP imply zCDP, got {claim}")


def to_renyi(claim: Claim, order: float) -> RenyiDP:
    """The Rényi DP of one order.

    For pure DP that of randomised response, the extremal mechanism (Kairouz, Oh & Viswanath 2015, theorem 2.4; Mironov
    2017, proposition 5); order mu^2 / 2 for Gaussian DP, xi + rho order for zCDP; the same epsilon at a smaller order
    for Rényi DP (van Erven & Harremoës 2014, theorem 3). Raises `InvalidSpec` for other forms.

    >>> to_renyi(ZeroConcentratedDP(rho=0.5), 2.0)
    RenyiDP(order=2.0, epsilon=1.0, relation=None)
    >>> round(to_renyi(PureDP(1.0), 2.0).epsilon, 4)
    0.7353
    """
    order = order_above_one("order", order)
    if isinstance(claim, RenyiDP):
        if order > claim.order:
            raise InvalidSpec(f"order must be at most that of the claim, {claim.order:g}, got {order:g}")
        return RenyiDP(order, claim.epsilon, claim.relation)
    if isinstance(claim, PureDP):
        return RenyiDP(order, min(claim.epsilon, _randomised_response(claim.epsilon, order)), claim.relation)
    if isinstance(claim, GaussianDP):
        return RenyiDP(order, above(Fraction(order) * Fraction(claim.mu) ** 2 / 2), claim.relation)
    if isinstance(claim, ZeroConcentratedDP):
        epsilon = above(Fraction(claim.xi) + Fraction(claim.rho) * Fraction(order))
        return RenyiDP(order, epsilon, claim.relation)
    raise InvalidSpec(f"only PureDP, GaussianDP, ZeroConcentratedDP and RenyiDP imply Rényi DP, got {claim}")


def to_gaussian(claim: Claim) -> GaussianDP:
    """mu = 2 PhiInv(e^epsilon / (1 + e^epsilon)) for pure DP: the least region of the form that holds its corner.

    A concave G through (0, 0), that corner and (1, 1) holds the region of pure DP. Raises `InvalidSpec` for forms that
    imply no Gaussian DP.

    >>> round(to_gaussian(PureDP(1.0)).mu, 4)
    1.232
    """
    if isinstance(claim, GaussianDP):
        return claim
    if not isinstance(claim, PureDP):
        raise InvalidSpec(f"only PureDP and GaussianDP imply Gaussian DP, got {claim}")
    from scipy.special import erfinv, log_expit, ndtri_exp

    if claim.epsilon < 1.0:  # near 1/2 the other formula cancels
        mu = math.sqrt(8.0) * float(erfinv(math.tanh(claim.epsilon / 2.0)))
    else:
        mu = -2.0 * float(ndtri_exp(log_expit(-claim.epsilon)))
    return GaussianDP(up(mu, 64.0), claim.relation)


def implies(claim: Claim, other: Claim) -> bool:
    """Whether a claim promises all that another promises, as far as can be shown: False where it cannot.

    Both must be stated for one relation, or `other` for none. A proof rests on this, so the rounding is the other way
    round than in an audit: what follows from `claim` is rounded up, `other` is taken as it stands, never by a grid
    that allows more. A Rényi divergence is more than its events show, so for those forms there are formulas alone.

    >>> implies(PureDP(1.0), ApproximateDP(1.0, 1e-6)), implies(ApproximateDP(1.0, 1e-6), PureDP(1.0))
    (True, False)
    >>> implies(GaussianDP(1.0), ZeroConcentratedDP(0.5)), implies(GaussianDP(1.0), ApproximateDP(4.378, 1e-5))
    (True, True)
    """
    if other.relation is not None and other.relation is not claim.relation:
        return False
    known = not isinstance(other, TradeOffDP) or not other.outer
    if claim is other or (known and claim == other):
        return True
    if isinstance(other, PureDP | ApproximateDP | PrivacyProfile):
        return all(claim.epsilon_at(delta) <= epsilon for epsilon, delta in to_profile(other).curve)
    if isinstance(other, TradeOffDP):  # f is convex: between two corners it lies below what it allows at both
        return all(other.least_error(q) <= missed + RIGHT_TO for q, missed in _corners(claim))
    if _by_formula(claim, other):
        return True
    pure = claim.epsilon_at(0.0)
    if pure < math.inf and _by_formula(PureDP(pure), other):
        return True
    return isinstance(other, GaussianDP) and _least_mu(claim) <= other.mu


def _by_formula(claim: Claim, other: Claim) -> bool:
    try:
        if isinstance(other, RenyiDP):
            return to_renyi(claim, other.order).epsilon <= other.epsilon
        if not isinstance(other, ZeroConcentratedDP):
            return isinstance(other, GaussianDP) and to_gaussian(claim).mu <= other.mu
        if isinstance(claim, PureDP):
            return _pure_is_concentrated(claim.epsilon, other)
        mine = to_zcdp(claim)  # of two lines in the order it is the lower from 1 on
        ends = [Fraction(each.xi) + Fraction(each.rho) for each in (mine, other)]
        return mine.rho <= other.rho and ends[0] <= ends[1]
    except InvalidSpec:
        return False  # there is no formula


def _pure_is_concentrated(epsilon: float, other: ZeroConcentratedDP) -> bool:
    """Whether D_a of randomised response, the extremal mechanism, is at most xi + rho a for every order a > 1.

    With L(w) = ln cosh(epsilon sqrt(w)) and w = (a - 1/2)^2 the quotient D_a / a is (L(w) - L(1/4)) / (w - 1/4). L is
    concave, for tanh(x) / x falls, so the quotient falls with the order from its limit at 1, the relative entropy
    epsilon tanh(epsilon / 2). So D_a is at most a times that, and at most epsilon: the worst order is where these meet.
    """
    entropy = math.nextafter(up(epsilon * math.tanh(epsilon / 2.0), 8.0), math.inf) if epsilon else 0.0
    return entropy <= other.rho or Fraction(epsilon) * (1 - Fraction(other.rho) / Fraction(entropy)) <= other.xi


def _corners(claim: Claim) -> list[tuple[float, float]]:
    """The corners (Q(S), 1 - P(S)) of a region that holds the claim's, the second as the first of the mirror image."""
    points = to_profile(claim).region.vertices()[:-1]
    return [(q, missed) for (q, _), (missed, _) in zip(points, reversed(points), strict=True)]


def _least_mu(claim: Claim) -> float:
    """A mu whose region holds the corners of the claim, and so all of it; infinite where there is none."""
    from scipy.special import ndtri

    half = [(q, max(q, missed - 4.0 * UNIT)) for q, missed in _corners(claim) if q <= missed < 1.0]
    return max((up(16.0 * UNIT - float(ndtri(q) + ndtri(missed)), 64.0) for q, missed in half), default=0.0)


def _by_orders(claim: RenyiDP | ZeroConcentratedDP, delta: float) -> float:
    def epsilon(order: float) -> float:
        level = claim.epsilon if isinstance(claim, RenyiDP) else claim.xi + claim.rho * order
        return level + math.log1p(-1.0 / order) - (math.log(delta) + math.log(order)) / (order - 1.0)

    if isinstance(claim, RenyiDP):
        return max(0.0, up(epsilon(claim.order), 64.0))
    least = min(range(len(ORDERS)), key=lambda i: epsilon(ORDERS[i]))
    low, high = ORDERS[max(0, least - 1)], ORDERS[min(len(ORDERS) - 1, least + 1)]
    return max(0.0, up(min(epsilon(order) for order in np.linspace(low, high, 512).tolist()), 64.0))


def _simple(claim: RenyiDP | ZeroConcentratedDP, delta: float) -> float:
    tail = -math.log(delta)
    if isinstance(claim, RenyiDP):
        return up(claim.epsilon + tail / (claim.order - 1.0), 16.0)
    return up(claim.xi + claim.rho + 2.0 * math.sqrt(claim.rho * tail), 16.0)


def _randomised_response(epsilon: float, order: float) -> float:
    """(ln cosh((a - 1/2) epsilon) - ln cosh(epsilon / 2)) / (a - 1), rounded up."""
    both = log_cosh((order - 0.5) * epsilon), log_cosh(0.5 * epsilon)
    return (both[0] - both[1] + 8.0 * UNIT * (both[0] + both[1])) / (order - 1.0)


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
        values = ", ".join(f"{order:g}" for order in orders)
        raise InvalidSpec(f"claims must have one order, got {values}; take each to the smallest with to_renyi")
    return RenyiDP(orders[0], _sum(part.epsilon for part in parts), relation)


def subsample_poisson(claim: Claim, rate: float) -> PureDP | ApproximateDP | PrivacyProfile:
    """The claim of a mechanism that is run on a Poisson sample: each record is kept with probability `rate`, alone.

    For the relation add_or_remove_one only, as a sample of records hides no user with many: (epsilon, delta) becomes
    (ln(1 + rate (e^epsilon - 1)), rate delta) (Li, Qardaji & Su 2012, theorem 1; Balle, Barthe & Gaboardi 2018,
    theorem 8), for every point of a profile. Forms other than PureDP and ApproximateDP go through their profile.
    `claim` may name no relation; the result names it.

    >>> subsample_poisson(ApproximateDP(1.0, 1e-5), rate=0.5).delta
    5e-06
    """
    rate = validate.positive("rate", rate)
    if rate > 1.0:
        raise InvalidSpec(f"rate must be at most 1, got {rate!r}")
    relation = Relation.ADD_OR_REMOVE_ONE
    if claim.relation not in (None, relation):
        users = claim.relation is Relation.ADD_OR_REMOVE_USER
        why = ": a sample of records keeps some of nearly every user with many, and so hides none" if users else ""
        raise InvalidSpec(
            f"subsample_poisson needs a claim for {relation.value}, got one for {Relation.word(claim.relation)}{why}"
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
