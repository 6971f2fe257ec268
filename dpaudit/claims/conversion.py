"""From one claim to another that it implies. Every result is rounded so that it promises no more than the theory.

Post-processing needs no function: what a claim says of a mechanism's outputs it says of anything computed from them
without another look at the data (Dwork & Roth 2014, proposition 2.1). `implies` compares two claims.
"""

import math
from fractions import Fraction

import numpy as np

from dpaudit.base import validate
from dpaudit.claims.claim import Claim
from dpaudit.claims.gaussian import GaussianDP
from dpaudit.claims.profile import PrivacyProfile
from dpaudit.claims.pure import ApproximateDP, PureDP
from dpaudit.claims.renyi import RenyiDP, order_above_one
from dpaudit.claims.renyi_curve import log_cosh
from dpaudit.claims.rounding import UNIT, above, up
from dpaudit.claims.tradeoff import RIGHT_TO, TradeOffDP
from dpaudit.claims.zcdp import ORDERS, ZeroConcentratedDP
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
