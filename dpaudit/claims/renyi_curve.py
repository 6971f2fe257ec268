"""The boundary of a Rényi region: the points at which one binary Rényi divergence is as large as it may be.

With u = p / q above 1 and v = (1 - p) / (1 - q) below 1 the divergence of order a is ln(q u^a + (1 - q) v^a) / (a - 1)
and q = (1 - v) / (u - v). Where p + q <= 1 the divergence of P from Q binds; beyond, that of Q from P, which is the
mirror image. So the region is one arc, its mirror image, and the corner on p + q = 1 where they meet. Its sublevel
sets are convex (van Erven & Harremoës 2014, theorem 13), hence every tangent of the arc holds the whole region, and
so does the tangent of any larger level: the level is rounded up.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpaudit.base.arrays import Reals
from dpaudit.claims.pure import line_delta_at, line_epsilon_at
from dpaudit.claims.rounding import UNIT, crossing, down

MOST = 600.0  # of an epsilon and of logarithms: beyond it doubles run out
LARGEST = 700.0  # of a logarithm that is exponentiated
NEWTON_STEPS = 60


@dataclass(frozen=True, slots=True)
class Tangent:
    """A line p <= e^epsilon q + delta that holds the region and touches it at (q, p), rounded outwards."""

    q: float
    p: float
    epsilon: float
    delta: float


VERTICAL = Tangent(0.0, 0.0, math.inf, 1e-300)  # no line that doubles can write is steeper


@lru_cache(maxsize=1 << 12)
def corner(order: float, epsilon: float) -> Tangent | None:
    """The tangent of the arc at its end on p + q = 1; None where epsilon is 0 or beyond doubles.

    There u = 1 / v = e^eta, with eta the loss of the randomised response that has this divergence.
    """
    if not 0.0 < epsilon < MOST:
        return None

    def excess(eta: float) -> float:
        return (order - 1.0) * epsilon - (log_cosh((order - 0.5) * eta) - log_cosh(0.5 * eta))

    low, high = epsilon / 2.0, (epsilon + math.log(2.0) / (order - 1.0)) * (1.0 + 1e-9)
    eta = crossing(excess, low, high)[1] if excess(low) > 0.0 else low
    return None if eta > MOST else tangent_at(order, epsilon, -math.log(-math.expm1(-eta)))


def tangent_at(order: float, epsilon: float, t: float) -> Tangent:
    """The tangent at the point of the arc with v = 1 - e^-t, for t above 0: the larger t, the nearer to (0, 0).

    u solves y u^a = (K - v^a) (u - 1) + K y, with y = e^-t and K = e^((a - 1) epsilon), by Newton's method from above
    on the logarithms of both sides, divided by K y; there is one root above 1. The slope is (a - 1) / a times
    (u^a - v^a) / (u^(a-1) - v^(a-1)).
    """
    y, level = math.exp(-t), (order - 1.0) * epsilon
    log_v = math.log1p(-y) if y < 1.0 else -math.inf
    weight = -math.expm1(order * log_v - level)
    w = min(MOST, (level + t) / (order - 1.0))
    slope = 1.0
    for _ in range(NEWTON_STEPS):
        slope, excess = _newton(order, t, y, weight, level, w)
        if slope <= 0.0:  # noise
            break
        step = excess / slope
        w = min(LARGEST, max(w - step, 0.25 * w))
        if abs(step) <= 4e-16 * w:
            break
    noise = 8.0 * UNIT * (order * w + level)
    w += noise / slope if slope > 0.0 else 0.0  # to a level above, whatever was rounded
    if w > LARGEST or _newton(order, t, y, weight, level, w)[1] < -2.0 * noise:
        return VERTICAL
    q = y / (math.expm1(w) + y)
    u = math.exp(w)
    log_ratio = log_slope(order, w, log_v)
    error = UNIT * (16.0 + w + min(order * (w - log_v), 50.0))
    delta = max(0.0, q * u * -math.expm1(log_ratio - w)) + 4.0 * q * u * error
    return Tangent(q, min(1.0, q * u), log_ratio + 4.0 * error, min(1.0, delta))


def _newton(order: float, t: float, y: float, weight: float, level: float, w: float) -> tuple[float, float]:
    """The slope of the equation at ln u = w, and by how much its left side is larger."""
    rise = math.expm1(w)
    grown = math.log1p(weight * rise / y) if w + t < LARGEST else math.log(weight) + w + t
    return order - weight * (rise + 1.0) / (weight * rise + y), order * w - level - grown


def log_slope(order: float, log_u: float, log_v: float) -> float:
    """The logarithm of the slope dp/dq of the level curve, by implicit differentiation."""
    s = log_v - log_u
    share = math.expm1(order * s) / math.expm1((order - 1.0) * s) if s < 0.0 else order / (order - 1.0)
    return math.log((order - 1.0) / order) + log_u + math.log(share)


def epsilon_at(order: float, epsilon: float, delta: float) -> float:
    """The slope's logarithm of the tangent that meets q = 0 at delta, or just below."""
    if epsilon == 0.0 or delta == 1.0:
        return 0.0
    end = corner(order, epsilon)
    if end is None or delta <= 0.0:
        return math.inf
    if delta >= end.delta:
        return line_epsilon_at(end.epsilon, end.delta, delta)
    return _epsilon_at(order, epsilon, delta)


@lru_cache(maxsize=1 << 14)
def _epsilon_at(order: float, epsilon: float, delta: float) -> float:
    target = math.log(delta)

    def excess(t: float) -> float:
        return math.log(max(tangent_at(order, epsilon, t).delta, math.ulp(0.0))) - target

    bracket = _bracket(excess, order, epsilon)
    tangent = tangent_at(order, epsilon, crossing(excess, *bracket)[1]) if bracket else None
    return math.inf if tangent is None or tangent.delta <= 0.0 else tangent.epsilon  # nothing where q is no double


def delta_at(order: float, epsilon: float, at: float) -> float:
    """Where the tangent whose slope is e^at, or just below, meets q = 0."""
    if epsilon == 0.0:
        return 0.0 if at >= 0.0 else line_delta_at(0.0, 0.0, at)
    end = corner(order, epsilon)
    if end is None:
        return 1.0
    if at <= end.epsilon:
        return line_delta_at(end.epsilon, end.delta, at)
    bracket = _bracket(lambda t: at - tangent_at(order, epsilon, t).epsilon, order, epsilon)
    if bracket is None:
        return tangent_at(order, epsilon, MOST).delta
    t = crossing(lambda t: at - tangent_at(order, epsilon, t).epsilon, *bracket)[0]
    return tangent_at(order, epsilon, t).delta


def touching(order: float, epsilon: float, q: float) -> tuple[Tangent | None, bool]:
    """The tangent at q, and whether the mirror image of it is meant; None where the region is the whole square."""
    end = corner(order, epsilon)
    if end is None:
        return None, False
    if q <= end.q:
        return _reached(order, epsilon, math.log(q) if q > 0.0 else -math.inf, of_p=False), False
    if q >= 1.0 - 1e-300:
        return tangent_at(order, epsilon, MOST), True
    return _reached(order, epsilon, math.log1p(-q), of_p=True), True


def _reached(order: float, epsilon: float, log_value: float, *, of_p: bool) -> Tangent:
    """The tangent at the point of the arc whose q, or p, has this logarithm."""

    def excess(t: float) -> float:
        tangent = tangent_at(order, epsilon, t)
        return math.log(max(1e-320, tangent.p if of_p else tangent.q)) - log_value

    bracket = _bracket(excess, order, epsilon)
    t = MOST if bracket is None else crossing(excess, *bracket)[1]
    return tangent_at(order, epsilon, t)


def least_level(order: float, log_ratio: float, delta: float) -> float:
    """The least divergence, of this order and both ways, of a point on the line p = e^log_ratio q + delta.

    Rounded down. Along a line e^((a - 1) D) is convex; it is least where the level curve has the line's slope, or on
    p + q = 1 where it still falls there.
    """
    slope = math.exp(log_ratio)
    middle = (1.0 - delta) / (1.0 + slope)

    def excess(q: float) -> float:
        log_u, log_v = _logarithms(q, slope * q + delta)
        return log_slope(order, log_u, log_v) - log_ratio

    q = middle
    if excess(middle) < 0.0:
        low = middle / 2.0
        while excess(low) <= 0.0:
            low /= 16.0
            if low < 1e-300:
                return 0.0
        q = crossing(excess, low, middle)[1]
    p = slope * q + delta
    log_u, log_v = _logarithms(q, p)
    logs = math.log(q) + order * log_u, math.log1p(-q) + order * log_v
    noise = UNIT * (32.0 + abs(logs[0]) + order * (log_u + 8.0)) / (order - 1.0)  # also of u and v, near 1
    log_sum = max(logs) + math.log1p(math.exp(-abs(logs[0] - logs[1])))
    return max(0.0, down(log_sum / (order - 1.0), 64.0) - noise)


def divergence(order: Reals | float, q: Reals, p: Reals) -> Reals:
    """D_order(p || q) of two coins, vectorised, for 0 < q <= p < 1; not rounded."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        first = np.log(q) + order * np.log(p / q)
        second = np.log1p(-q) + order * np.log1p((q - p) / (1.0 - q))
        return np.asarray(np.logaddexp(first, second) / (order - 1.0))


def mirrored(q: Reals, p: Reals) -> tuple[Reals, Reals]:
    """The points with p + q <= 1: those beyond are replaced by their mirror images (1 - p, 1 - q)."""
    beyond = p + q > 1.0
    return np.where(beyond, 1.0 - p, q), np.where(beyond, 1.0 - q, p)


def _logarithms(q: float, p: float) -> tuple[float, float]:
    return math.log(p / q), math.log1p((q - p) / (1.0 - q)) if p < 1.0 else -math.inf


def _bracket(excess: Callable[[float], float], order: float, epsilon: float) -> tuple[float, float] | None:
    """Two t with excess(low) > 0 >= excess(high), low not before the corner; None where there is no such high."""
    end = corner(order, epsilon)
    assert end is not None
    low = -math.log((end.p - end.q) / (1.0 - end.q))
    if low >= MOST:
        return None
    width = 1.0
    while True:
        high = min(MOST, low + width)
        if excess(high) <= 0.0:
            return low, high
        if high == MOST:
            return None
        low, width = high, 2.0 * width


def log_cosh(x: float) -> float:
    """ln cosh x for x at least 0, to the last digits where x is small too."""
    return math.log1p(2.0 * math.sinh(x / 2.0) ** 2) if x < 1.0 else x + math.log1p(math.exp(-2.0 * x)) - math.log(2.0)
