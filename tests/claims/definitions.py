"""What each claim form says, straight from its definition: naive, vectorised, and knowing nothing of the package."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from dpaudit.claims import (
    ApproximateDP,
    Claim,
    GaussianDP,
    PrivacyProfile,
    PureDP,
    RenyiDP,
    TradeOffDP,
    ZeroConcentratedDP,
)
from dpaudit.claims.renyi import ORDERS

Reals = npt.NDArray[np.float64]
Allowed = Callable[[Reals, Reals], npt.NDArray[np.bool_]]

TABLE = ((0.0, 0.9), (0.1, 0.5), (0.4, 0.1), (1.0, 0.0))
CURVE = ((0.5, 0.1), (1.0, 0.02), (2.0, 0.001))

CLAIMS: list[Claim] = [
    PureDP(0.1),
    PureDP(3.0),
    ApproximateDP(1.0, 1e-5),
    ApproximateDP(1.0, 0.01),
    ApproximateDP(0.0, 0.3),
    GaussianDP(0.05),
    GaussianDP(1.0),
    GaussianDP(4.0),
    RenyiDP(2.0, 0.5),
    RenyiDP(1.3, 0.2),
    RenyiDP(16.0, 1.5),
    ZeroConcentratedDP(0.5),
    ZeroConcentratedDP(0.01, 0.05),
    TradeOffDP(TABLE),
    PrivacyProfile(CURVE),
    PrivacyProfile(((0.0, 0.2), (1.5, 0.0))),
]
MEMBERS: list[tuple[str, Callable[[float], Claim]]] = [
    ("pure", PureDP),
    ("approximate", lambda epsilon: ApproximateDP(epsilon, 1e-3)),
    ("gaussian", GaussianDP),
    ("renyi-2", lambda epsilon: RenyiDP(2.0, epsilon)),
    ("renyi-10", lambda epsilon: RenyiDP(10.0, epsilon)),
    ("zcdp", ZeroConcentratedDP),
    ("zcdp-xi", lambda rho: ZeroConcentratedDP(rho, 0.1)),
]


def renyi(order: float, p: Reals, q: Reals) -> Reals:
    """D_order of the coin p from the coin q."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        heads = order * np.log(p) + (1.0 - order) * np.log(q)
        tails = order * np.log1p(-p) + (1.0 - order) * np.log1p(-q)
        return np.asarray(np.logaddexp(heads, tails) / (order - 1.0))


def allowed(claim: Claim) -> Allowed:
    """Whether the claim allows the points (q, p) with p >= q, in both orders of the datasets."""
    match claim:
        case PureDP(epsilon=epsilon):
            return _lines([(epsilon, 0.0)])
        case ApproximateDP(epsilon=epsilon, delta=delta):
            return _lines([(epsilon, delta)])
        case PrivacyProfile(curve=curve):
            return _lines(list(curve))
        case GaussianDP(mu=mu):
            return lambda q, p: p <= ndtr(ndtri(q) + mu)
        case RenyiDP(order=order, epsilon=epsilon):
            return _orders([order], lambda order: epsilon)
        case ZeroConcentratedDP(rho=rho, xi=xi):
            return _orders(list(ORDERS[::4]), lambda order: xi + rho * order)
        case TradeOffDP():
            x, y = np.array(claim.table).T
            # p <= 1 - f(q), and with the datasets exchanged 1 - q <= 1 - f(1 - p)
            return lambda q, p: (p <= 1.0 - np.interp(q, x, y)) & (q >= np.interp(1.0 - p, x, y))
    raise AssertionError(claim)


def _lines(lines: list[tuple[float, float]]) -> Allowed:
    def test(q: Reals, p: Reals) -> npt.NDArray[np.bool_]:
        inside = np.ones(np.broadcast(q, p).shape, bool)
        for epsilon, delta in lines:
            inside &= p <= math.exp(epsilon) * q + delta
            inside &= 1.0 - q <= math.exp(epsilon) * (1.0 - p) + delta
        return inside

    return test


def _orders(orders: list[float], level: Callable[[float], float]) -> Allowed:
    def test(q: Reals, p: Reals) -> npt.NDArray[np.bool_]:
        inside = np.ones(np.broadcast(q, p).shape, bool)
        for order in orders:
            inside &= (renyi(order, p, q) <= level(order)) & (renyi(order, q, p) <= level(order))
        return inside

    return test


def boundary(claim: Claim, q: Reals) -> Reals:
    """G(q) by bisection on the definition, from below; geometric where the bracket is wide."""
    test = allowed(claim)
    low, high = np.array(q, np.float64), np.ones_like(q)
    for _ in range(64):
        middle = np.where(high > 2.0 * low, np.sqrt(low * high), (low + high) / 2.0)
        inside = test(q, middle)
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return low
