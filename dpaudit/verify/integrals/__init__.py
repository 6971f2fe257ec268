"""Rigorous integrals: probabilities of outputs of programs with continuous noise, enclosed in balls.

A probability is computed with as many bits as it takes to be precise; the loss and the delta of a pair follow from it.

Single releases have closed forms: Laplace and normal noise on one shifted number. Each compares the release of a number
with that of the number plus `shift`. Parameters are taken as the exact numbers they are; a ball (`flint.arb`)
may stand wherever a parameter is irrational, such as a scale with a root in it.
"""

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from dpaudit.base.installed import flint
from dpaudit.errors import InvalidSpec
from dpaudit.verify import enclosure
from dpaudit.verify.enclosure import BITS, Enclosure, as_ball, of_ball, within_one
from dpaudit.verify.integrals import exponentials, quadrature
from dpaudit.verify.integrals.exponentials import together
from dpaudit.verify.integrals.parts import Between, Event, Line, Slice, cut

__all__ = [
    "Between",
    "Event",
    "Line",
    "Slice",
    "gaussian_delta",
    "laplace_delta",
    "log_ratio",
    "probability",
    "summed",
    "together",
]

PRECISE = 48  # bits of relative accuracy that are asked for: a relative radius of 4e-15
MOST_BITS = 12_800  # no more precision is tried: the ball is wide, but it holds


def probability(event: Event) -> Any:
    """The probability of an event as a ball (`flint.arb`); exactly 0 where the event is impossible.

    The closed form is used where all noise of a slice is Laplace or exponential, verified quadrature elsewhere. The
    relative radius is below 1e-13, except where not even 12,800 bits are enough; the ball is an enclosure always.

    >>> from dpaudit.verify.integrals.parts import Between, Line
    >>> above = Between("laplace", Fraction(4), (Line(1, Fraction(0)),), ())
    >>> found = probability(((Slice("laplace", Fraction(2), None, None, (above,)),),))
    >>> round(float(found), 12)
    0.5
    """
    return summed(event, functools.cache(_of_slice))


def summed(event: Event, of_slice: Callable[[Slice], Any]) -> Any:
    """The probability of an event from those of its slices, all as balls."""
    one = flint().arb(1)
    with flint().ctx.workprec(BITS):
        return sum((math.prod(map(of_slice, product), start=one) for product in event), start=flint().arb(0))


def log_ratio(first: Any, second: Any) -> Enclosure:
    """ln(first / second) of two probabilities given as balls; minus infinity where the first is 0.

    >>> log_ratio(flint().arb(0), flint().arb(1))
    Enclosure(lower=-inf, upper=-inf)
    """
    if first.is_zero() or second.is_zero():
        loss = -math.inf if first.is_zero() else math.inf
        return Enclosure(loss, loss)
    with flint().ctx.workprec(BITS):
        if not (first > 0 and second > 0):
            return Enclosure(-math.inf, math.inf)
        return of_ball(first.log() - second.log())


def _of_slice(each: Slice) -> Any:
    within = cut(each)
    if not within.parts:
        return flint().arb(0)
    if each.law is None:
        return _precise(lambda: quadrature.value(within))
    if each.laws <= exponentials.CLOSED:
        try:
            return _precise(lambda: exponentials.integrals(within)[0])
        except exponentials.TooManyTerms:
            pass
    return quadrature.integral(each, within)


def _precise(computed: Callable[[], Any], accuracy: int = PRECISE, most: int = MOST_BITS) -> Any:
    """A ball, computed with twice the bits until it is precise."""
    bits = BITS
    while True:
        with flint().ctx.workprec(bits):
            ball = computed()
        if ball.rel_accuracy_bits() >= accuracy or 2 * bits > most:
            return ball
        bits *= 2


Number = Fraction | int | float
MOST_DELTA_BITS = 3_200


def laplace_delta(loss: Number, epsilon: Number) -> Enclosure:
    """The least delta at an epsilon of a number with Laplace noise: 1 - e^((epsilon - loss)/2), at least 0.

    `loss` is the shift over the scale. For a negative epsilon below -loss it is 1 - e^epsilon.

    >>> found = laplace_delta(1, 0)
    >>> round(found.lower, 6), found.upper - found.lower < 1e-15
    (0.393469, True)
    """
    with flint().ctx.workprec(BITS):
        epsilon_ = as_ball(epsilon)
        inner = -((epsilon_ - abs(as_ball(loss))) / 2).expm1()
        # the formula holds down to -loss; below, all outputs have a loss above epsilon, and that is the larger
        return within_one(inner.max(-epsilon_.expm1()).max(flint().arb(0)))


def gaussian_delta(mu: Number, epsilon: Number) -> Enclosure:
    """The least delta at an epsilon of a number with normal noise; `mu` is the shift in standard deviations.

    >>> round(gaussian_delta(1, 1).middle, 9)
    0.126936738
    """

    def difference() -> Any:
        mu_, epsilon_ = as_ball(mu), as_ball(epsilon)
        if not mu_ >= 0:
            raise InvalidSpec(f"mu must be at least 0, got {mu!r}")
        return -epsilon_.expm1() if mu_.is_zero() else enclosure.gaussian_delta(mu_, epsilon_)

    with flint().ctx.workprec(BITS):
        return within_one(_precise(difference, 60, MOST_DELTA_BITS).max(flint().arb(0)))
