"""Rigorous integrals: probabilities of outputs of programs with continuous noise, enclosed in balls.

Single releases have closed forms: Laplace, normal and uniform noise on one shifted number. Each compares the release of
a number with that of the number plus `shift`. Parameters are taken as the exact numbers they are; a ball (`flint.arb`)
may stand wherever a parameter is irrational, such as a scale with a root in it.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dpaudit.base.installed import flint
from dpaudit.errors import InvalidSpec
from dpaudit.verify.enclosure import BITS, Enclosure, of_ball
from dpaudit.verify.integrals.events import Between, Density, Event, Factor, Line, Slice, Term
from dpaudit.verify.integrals.laws import normal_tail
from dpaudit.verify.integrals.probabilities import as_ball, delta, log_ratio, log_ratio_of, probability, within_one

__all__ = [
    "Between",
    "Density",
    "Event",
    "Factor",
    "Line",
    "Slice",
    "Term",
    "delta",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "laplace_delta",
    "laplace_epsilon",
    "log_ratio",
    "log_ratio_of",
    "probability",
    "uniform_delta",
]

Number = Fraction | int | float
STEPS = 1_100  # of a bisection between doubles: there are fewer halvings between any two of them
MOST_BITS = 3_200


def laplace_epsilon(shift: Number, scale: Number) -> Enclosure:
    """The loss of a number with Laplace noise: shift / scale.

    >>> laplace_epsilon(1, 4)
    Enclosure(lower=0.25, upper=0.25)
    """
    with flint().ctx.workprec(BITS):
        return of_ball(abs(as_ball(shift)) / _positive("scale", scale))


def laplace_delta(shift: Number, scale: Number, epsilon: Number) -> Enclosure:
    """The least delta at an epsilon of a number with Laplace noise: 1 - e^((epsilon - shift/scale)/2), at least 0.

    For a negative epsilon below -shift/scale it is 1 - e^epsilon.

    >>> found = laplace_delta(1, 1, 0)
    >>> round(found.lower, 6), found.upper - found.lower < 1e-15
    (0.393469, True)
    """
    with flint().ctx.workprec(BITS):
        epsilon_, loss = as_ball(epsilon), abs(as_ball(shift)) / _positive("scale", scale)
        zero = flint().arb(0)
        inner = -((epsilon_ - loss) / 2).expm1()
        # the formula holds down to -loss; below, all outputs have a loss above epsilon, and that is the larger
        return within_one(inner.max(-epsilon_.expm1()).max(zero))


def gaussian_delta(mu: Number, epsilon: Number) -> Enclosure:
    """The least delta at an epsilon of a number with normal noise; `mu` is the shift in standard deviations.

    Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) (Balle & Wang 2018, theorem 8).

    >>> round(gaussian_delta(1, 1).middle, 9)
    0.126936738
    """
    with flint().ctx.workprec(BITS):
        return within_one(_gaussian_delta(mu, epsilon))


def gaussian_epsilon(mu: Number, delta: Number) -> Enclosure:
    """The least epsilon at a delta of a number with normal noise, at least 0; infinite at delta 0.

    >>> found = gaussian_epsilon(0.2, 1e-5)
    >>> round(found.middle, 6), found.upper - found.lower < 1e-12
    (0.725522, True)
    """
    with flint().ctx.workprec(BITS):
        most = as_ball(delta)
        if not 0 <= most <= 1:
            raise InvalidSpec(f"delta must lie between 0 and 1, got {delta!r}")
        if most.is_zero():
            end = 0.0 if _positive("mu", mu, or_zero=True).is_zero() else math.inf
            return Enclosure(end, end)
        return _between_doubles(lambda epsilon: _sign(_gaussian_delta(mu, epsilon) - most))


def gaussian_mu(epsilon: Number, delta: Number) -> Enclosure:
    """The largest mu whose delta at an epsilon is at most delta: of the least noise, shift / sigma.

    >>> found = gaussian_mu(1, 1e-5)
    >>> round(1 / found.middle, 3)
    3.731
    """
    with flint().ctx.workprec(BITS):
        most = as_ball(delta)
        if not 0 < most < 1:
            raise InvalidSpec(f"delta must lie strictly between 0 and 1, got {delta!r}")
        _positive("epsilon", epsilon, or_zero=True)
        return _between_doubles(lambda mu: _sign(most - _gaussian_delta(mu, epsilon)))


def uniform_delta(shift: Number, width: Number) -> Enclosure:
    """The delta of a number with noise uniform on an interval of this width: shift / width, the same at every epsilon.

    Outputs that both datasets can give have loss 0; the others have an infinite one.

    >>> uniform_delta(1, 4)
    Enclosure(lower=0.25, upper=0.25)
    """
    with flint().ctx.workprec(BITS):
        return within_one((abs(as_ball(shift)) / _positive("width", width)).min(flint().arb(1)))


def _gaussian_delta(mu: Number, epsilon: Number) -> Any:
    """The delta as a ball, with more bits where the two terms cancel."""
    ctx, bits = flint().ctx, BITS
    while True:
        with ctx.workprec(bits):
            mu_, epsilon_ = _positive("mu", mu, or_zero=True), as_ball(epsilon)
            zero = flint().arb(0)
            if mu_.is_zero():
                return (-epsilon_.expm1()).max(zero)
            first, second = (normal_tail(epsilon_ / mu_ - sign * mu_ / 2) for sign in (1, -1))
            found = first - epsilon_.exp() * second
        if found.rel_accuracy_bits() >= 60 or 2 * bits > MOST_BITS:
            return found.max(zero)
        bits *= 2


def _sign(ball: Any) -> int:
    return 1 if ball > 0 else -1 if ball < 0 else 0


def _between_doubles(falling: Callable[[float], int]) -> Enclosure:
    """Where a falling function of numbers from 0 on is not above 0 any more, given its sign (0: not known).

    Bisection for each end: the lower one is a double where the sign is certainly 1, the upper one where it is -1.
    """
    if falling(0.0) < 0:
        return Enclosure(0.0, 0.0)
    beyond = 1.0
    while falling(beyond) >= 0:
        beyond *= 2.0
        if math.isinf(beyond):
            return Enclosure(0.0, math.inf)
    low = _last(lambda at: falling(at) > 0, 0.0, beyond)[0]
    high = _last(lambda at: falling(at) >= 0, low, beyond)[1]
    return Enclosure(low, high)


def _last(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Two doubles side by side, the first of which holds (or is the first `low`) and the second does not."""
    for _ in range(STEPS):
        middle = low + (high - low) / 2.0
        if not low < middle < high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def _positive(name: str, value: Number, *, or_zero: bool = False) -> Any:
    found = as_ball(value)
    if not (found >= 0 if or_zero else found > 0):
        raise InvalidSpec(f"{name} must be {'at least 0' if or_zero else 'positive'}, got {value!r}")
    return found
