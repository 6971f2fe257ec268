"""The probability of an event, with as many bits as it takes to be precise; and the loss and delta of a pair."""

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from dpaudit.base.installed import flint
from dpaudit.errors import InvalidSpec
from dpaudit.verify.enclosure import BITS, LEAST, Enclosure, ball, of_ball
from dpaudit.verify.integrals import exponentials, quadrature
from dpaudit.verify.integrals.events import Event, Slice
from dpaudit.verify.integrals.parts import parts

PRECISE = 48  # bits of relative accuracy that are asked for: a relative radius of 4e-15
MOST_BITS = 12_800  # no more precision is tried: the ball is wide, but it holds


def probability(event: Event) -> Any:
    """The probability of an event as a ball (`flint.arb`); exactly 0 where the event is impossible.

    The closed form is used where all noise of a slice is Laplace or exponential, verified quadrature elsewhere. The
    relative radius is below 1e-13, except where not even 12,800 bits are enough; the ball is an enclosure always.

    >>> from dpaudit.verify.integrals.events import Between, Line
    >>> above = Between("laplace", Fraction(4), (Line(1, Fraction(0)),), ())
    >>> found = probability(((Slice("laplace", Fraction(2), None, None, (((above,),),)),),))
    >>> round(float(found), 12)
    0.5
    """
    return summed(event, functools.cache(_of_slice))


def summed(event: Event, of_slice: Callable[[Slice], Any]) -> Any:
    """The probability of an event from those of its slices, all as balls."""
    one = flint().arb(1)
    with flint().ctx.workprec(BITS):
        return sum((math.prod(map(of_slice, product), start=one) for product in event), start=flint().arb(0))


def log_ratio(first: Event, second: Event) -> Enclosure:
    """ln(P(first) / P(second)), enclosed; infinite where exactly one of the two is impossible.

    Raises `InvalidSpec` where both are: such an event says nothing.

    >>> log_ratio(((),), ())
    Enclosure(lower=inf, upper=inf)
    """
    return log_ratio_of(probability(first), probability(second))


def log_ratio_of(first: Any, second: Any) -> Enclosure:
    """ln(first / second) of two probabilities given as balls; see `log_ratio`.

    >>> log_ratio_of(flint().arb(0), flint().arb(1))
    Enclosure(lower=-inf, upper=-inf)
    """
    if first.is_zero() and second.is_zero():
        raise InvalidSpec("the event is impossible on both datasets: it has no loss; take another event")
    if first.is_zero() or second.is_zero():
        loss = -math.inf if first.is_zero() else math.inf
        return Enclosure(loss, loss)
    with flint().ctx.workprec(BITS):
        if not (first > 0 and second > 0):
            return Enclosure(-math.inf, math.inf)
        return of_ball(first.log() - second.log())


def delta(first: Sequence[Any], second: Sequence[Any], epsilon: Fraction | float) -> Enclosure:
    """The least delta of a pair at an epsilon, from the two laws: the sum of max(0, P - e^epsilon P').

    The laws are probabilities (balls, fractions or floats) of outputs that exclude one another, in the same order.
    Outputs left out count for nothing, so the upper end is one only if the outputs are all there are.

    >>> delta([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)], 0)
    Enclosure(lower=0.5, upper=0.5)
    """
    if len(first) != len(second):
        raise InvalidSpec(f"the two laws must list the same outputs, got {len(first)} and {len(second)} probabilities")
    with flint().ctx.workprec(BITS):
        slope = as_ball(epsilon).exp()
        total = flint().arb(0)
        for p, q in zip(first, second, strict=True):
            total += (as_ball(p) - slope * as_ball(q)).max(flint().arb(0))
        return within_one(total)


def as_ball(number: Any) -> Any:
    """A fraction, an integer, or a float as a ball; a ball as it is.

    >>> as_ball(Fraction(1, 4)) == 0.25
    True
    """
    if isinstance(number, flint().arb):
        return number
    try:
        return ball(number)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidSpec(f"a number must be finite, got {number!r}") from error


def within_one(found: Any) -> Enclosure:
    """The doubles around a probability: a ball may reach below 0 or above 1, a probability does not.

    >>> within_one(flint().arb(2))
    Enclosure(lower=1.0, upper=1.0)
    """
    if abs(found) < flint().arb(2) ** -1_100:  # far below every double
        return Enclosure(0.0, 0.0 if found <= 0 else LEAST)
    enclosed = of_ball(found)
    return Enclosure(min(1.0, max(0.0, enclosed.lower)), min(1.0, max(0.0, enclosed.upper)))


def _of_slice(each: Slice) -> Any:
    cut = parts(each)
    if not cut.parts:
        return flint().arb(0)
    if cut.law is None:
        return _precise(lambda: quadrature.value(cut))
    if exponentials.applies(cut):
        try:
            return _precise(lambda: exponentials.integral(cut))
        except exponentials.TooManyTerms:
            pass
    return quadrature.integral(cut)


def _precise(computed: Callable[[], Any]) -> Any:
    """A ball, computed with twice the bits until it is precise."""
    bits = BITS
    while True:
        with flint().ctx.workprec(bits):
            found = computed()
        if found.rel_accuracy_bits() >= PRECISE or 2 * bits > MOST_BITS:
            return found
        bits *= 2
