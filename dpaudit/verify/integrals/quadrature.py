"""Integrals of products that have no closed form: normal and Gumbel noise, by verified quadrature.

On each part of the outer draw's range the integrand is entire, and `acb.integral` encloses its integral. An endless
range is cut far out in the outer draw's tail, and a bound on what the tail holds widens the ball.

The four laws are centred at 0 with scale 1 (normal: standard deviation 1), at real and complex balls. Between two
numbers the form is the one that loses the fewest digits; every form is entire, so it may be integrated along a line.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, prod, sqrt
from typing import Any

from dpaudit.base.installed import flint
from dpaudit.verify.enclosure import ball, normal_tail
from dpaudit.verify.integrals.parts import Gap, Part, Parts, Slice, Whole, waves
from dpaudit.verify.language.nodes import Law

GOAL = 2.0**-56  # relative error of each part
BITS, REACH = 128, 200  # of the first try: the precision, and the tail that is cut off, 2^-reach
PRECISE = 48  # bits of relative accuracy that are asked for
MOST = 12_800  # of bits and of reach; beyond, the ball is what it is

Function = Callable[[Any], Any]


def integral(outer: Slice, cut: Parts) -> Any:
    """The probability of a slice as a ball: more bits where terms cancel, a longer reach where it is tiny."""
    bits, reach = BITS, REACH
    while True:
        with flint().ctx.workprec(bits):
            body, tail = _followed(outer, cut, reach)
            whole = body + flint().arb(0).union(flint().arb(tail.upper()))
            tiny = body.rel_accuracy_bits() >= PRECISE or body.abs_upper() < flint().arb(2) ** (-reach)
        if whole.rel_accuracy_bits() >= PRECISE or (reach if tiny else bits) >= MOST:
            return whole
        bits, reach = (bits, 2 * reach) if tiny else (2 * bits, reach)


def _followed(outer: Slice, cut: Parts, reach: int) -> tuple[Any, Any]:
    """The integral over a range that leaves a probability of about 2^-reach outside, and a bound on the rest."""
    arb, fmpq = flint().arb, flint().fmpq
    assert outer.law is not None
    # how far from 0 the outer draw is followed, in scales and in multiples of 1 / unit
    scales = ceil(sqrt(2 * 0.7 * reach) if outer.law == "normal" else 0.7 * reach)
    end = int(outer.scale * cut.unit) * scales
    total = arb(0)
    for part in cut.parts:
        low = -end if part.left is None else max(-end, part.left)
        high = end if part.right is None else min(end, part.right)
        if low < high:
            function = _integrand(cut, part)
            enough = total.abs_lower() * GOAL + arb(2) ** (-4 * reach)
            area = flint().acb.integral(
                lambda t, _, function=function: function(t),
                arb(fmpq(low, cut.unit)),
                arb(fmpq(high, cut.unit)),
                rel_tol=GOAL,
                abs_tol=enough,
            )
            total += area.real
    beyond = normal_tail(arb(scales)) if outer.law == "normal" else (-arb(scales)).exp()  # of other laws at least that
    right = any(part.right is None or part.right > end for part in cut.parts)
    left = any(part.left is None or part.left < -end for part in cut.parts)
    return total, beyond * (right + left)  # the factors are probabilities


def value(cut: Parts) -> Any:
    """The probability of a slice without an outer draw: a product, at the current precision."""
    zero = flint().arb(0)
    return sum((_integrand(cut, part)(zero) for part in cut.parts), start=zero)


def _integrand(cut: Parts, part: Part) -> Function:
    """The product of all factors, the outer density among them, as a function of t."""
    forms = ((part.forms[number], power) for number, power in cut.products[0].items())
    powers = [(_of_gap(form.gap, part, cut.unit), power) for form, power in forms if form is not None]
    return lambda t: prod((function(t) ** power for function, power in powers), start=flint().arb(1))


def _of_gap(term: Gap, part: Part, unit: int) -> Function:
    if term.law in ("laplace", "exponential"):
        return _of_waves(term, part, unit)
    scale = flint().arb(flint().fmpq(term.scale, unit))
    if term.density and term.lower is not None:
        at = _of_line(term.lower, unit)
        return lambda t: density(term.law, at(t) / scale) / scale
    lower, upper = (None if line is None else _of_line(line, unit) for line in (term.lower, term.upper))
    above = term.lower is None or term.lower[0] * part.inside + term.lower[1] >= 0
    return lambda t: between(
        term.law, None if lower is None else lower(t) / scale, None if upper is None else upper(t) / scale, above
    )


def _of_waves(term: Gap, part: Part, unit: int) -> Function:
    exponentials = [
        (
            ball(wave.weight) * flint().arb(flint().fmpq(wave.at, wave.scale)).exp(),
            flint().arb(flint().fmpq(wave.rate * unit, wave.scale)),
        )
        for wave in waves(term, part.inside, unit)
    ]

    def total(t: Any) -> Any:
        return sum((t * rate).exp() * weight for weight, rate in exponentials)

    return total


def _of_line(line: Whole, unit: int) -> Function:
    slope, at = line[0], flint().arb(flint().fmpq(line[1], unit))
    return lambda t: slope * t + at


def between(law: Law, lower: Any, upper: Any, above: bool) -> Any:
    """P(lower < X < upper) of a normal or Gumbel draw; None is no limit. `above`: take upper tails if both are given.

    >>> arb = flint().arb
    >>> float(between("normal", arb(0), None, True)), round(float(between("gumbel", None, arb(0), True)), 6)
    (0.5, 0.367879)
    """
    if law == "normal":
        if lower is None and upper is None:
            return 1
        if upper is None:
            return normal_tail(lower)
        if lower is None:
            return normal_tail(-upper)
        return normal_tail(lower) - normal_tail(upper) if above else normal_tail(-upper) - normal_tail(-lower)
    if lower is None:
        return 1 if upper is None else _gumbel(upper)
    if upper is None:
        return -(-(-lower).exp()).expm1()
    return -_gumbel(upper) * ((-upper).exp() - (-lower).exp()).expm1()


def density(law: Law, at: Any) -> Any:
    """The density of a normal or Gumbel draw at a number.

    >>> round(float(density("normal", flint().arb(0))), 6)
    0.398942
    """
    if law == "normal":
        return (-(at * at) / 2).exp() / (2 * flint().arb.pi()).sqrt()
    return (-at - (-at).exp()).exp()


def _gumbel(at: Any) -> Any:
    return (-(-at).exp()).exp()
