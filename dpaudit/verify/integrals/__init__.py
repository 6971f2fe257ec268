"""Rigorous integrals: probabilities of outputs of programs with continuous noise, enclosed in balls.

A probability is computed with as many bits as it takes to be precise; the loss and the delta of a pair follow from it.

Single releases have closed forms: Laplace, normal and uniform noise on one shifted number. Each compares the release of
a number with that of the number plus `shift`. Parameters are taken as the exact numbers they are; a ball (`flint.arb`)
may stand wherever a parameter is irrational, such as a scale with a root in it.
"""

import functools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from dpaudit.base.installed import flint
from dpaudit.errors import InvalidSpec
from dpaudit.verify.enclosure import BITS, LEAST, Enclosure, ball, of_ball
from dpaudit.verify.integrals import exponentials, quadrature
from dpaudit.verify.integrals.parts import Between, Density, Event, Factor, Line, Slice, Term, parts
from dpaudit.verify.integrals.quadrature import normal_tail

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

PRECISE = 48  # bits of relative accuracy that are asked for: a relative radius of 4e-15
MOST_BITS = 12_800  # no more precision is tried: the ball is wide, but it holds


def probability(event: Event) -> Any:
    """The probability of an event as a ball (`flint.arb`); exactly 0 where the event is impossible.

    The closed form is used where all noise of a slice is Laplace or exponential, verified quadrature elsewhere. The
    relative radius is below 1e-13, except where not even 12,800 bits are enough; the ball is an enclosure always.

    >>> from dpaudit.verify.integrals.parts import Between, Line
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


def within_one(probability: Any) -> Enclosure:
    """The doubles around a probability: a ball may reach below 0 or above 1, a probability does not.

    >>> within_one(flint().arb(2))
    Enclosure(lower=1.0, upper=1.0)
    """
    if abs(probability) < flint().arb(2) ** -1_100:  # far below every double
        return Enclosure(0.0, 0.0 if probability <= 0 else LEAST)
    enclosed = of_ball(probability)
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
            ball = computed()
        if ball.rel_accuracy_bits() >= PRECISE or 2 * bits > MOST_BITS:
            return ball
        bits *= 2


Number = Fraction | int | float
STEPS = 1_100  # of a bisection between doubles: there are fewer halvings between any two of them
MOST_DELTA_BITS = 3_200


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
            difference = first - epsilon_.exp() * second
        if difference.rel_accuracy_bits() >= 60 or 2 * bits > MOST_DELTA_BITS:
            return difference.max(zero)
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
    """Two neighbouring doubles: the first holds (or is the given `low`), the second does not."""
    for _ in range(STEPS):
        middle = low + (high - low) / 2.0
        if not low < middle < high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def _positive(name: str, value: Number, *, or_zero: bool = False) -> Any:
    ball = as_ball(value)
    if not (ball >= 0 if or_zero else ball > 0):
        raise InvalidSpec(f"{name} must be {'at least 0' if or_zero else 'positive'}, got {value!r}")
    return ball
