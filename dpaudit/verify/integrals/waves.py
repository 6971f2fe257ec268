"""Terms of Laplace and exponential draws as sums of exponentials, one form on each part of the outer draw's range."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from dpaudit.verify.integrals.parts import DensityAt, Gap, Whole

HALF, ONE = Fraction(1, 2), Fraction(1)


class Wave(NamedTuple):
    """weight * e^((rate * t + at) / scale); rate is -1, 0 or 1."""

    weight: Fraction
    rate: int
    at: int
    scale: int


CONSTANT = Wave(ONE, 0, 0, 1)


def waves(term: Gap | DensityAt, inside: int, unit: int) -> tuple[Wave, ...]:
    """A term of a Laplace or exponential draw, on the part that holds `inside`.

    >>> waves(Gap("laplace", 4, (1, 0), None), inside=2, unit=1)  # the upper tail, e^(-t/4) / 2
    (Wave(weight=Fraction(1, 2), rate=-1, at=0, scale=4),)
    """
    if isinstance(term, DensityAt):
        return (_density(term, inside, unit),)
    half = HALF if term.law == "laplace" else ONE
    lower, upper = (None if line is None else _side(line, inside) for line in (term.lower, term.upper))
    if upper is not None and upper < 0:  # both below 0: a difference of lower tails
        found = [_tail(term.upper, 1, half, term.scale)]
        return (*found, _tail(term.lower, 1, -half, term.scale)) if term.lower is not None else tuple(found)
    if lower is not None and lower > 0:  # both above: of upper tails
        found = [_tail(term.lower, -1, half, term.scale)]
        return (*found, _tail(term.upper, -1, -half, term.scale)) if term.upper is not None else tuple(found)
    found = [CONSTANT]
    if term.lower is not None:
        found.append(_tail(term.lower, 1, -half, term.scale))
    if term.upper is not None:
        found.append(_tail(term.upper, -1, -half, term.scale))
    return tuple(found)


def _side(line: Whole, inside: int) -> int:
    return line[0] * inside + line[1]


def _tail(line: Whole | None, sign: int, weight: Fraction, scale: int) -> Wave:
    assert line is not None
    return Wave(weight, sign * line[0], sign * line[1], scale)


def _density(term: DensityAt, inside: int, unit: int) -> Wave:
    weight = Fraction(unit, term.scale) * (HALF if term.law == "laplace" else ONE)
    sign = -1 if _side(term.at, inside) > 0 or term.law == "exponential" else 1
    return _tail(term.at, sign, weight, term.scale)
