"""Rational functions of the parameters, exactly: what a shift costs is one of them, such as eps / (2 N)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpaudit.verify.language.algebra import Monomial, Polynomial, common, multiplied

UNIT = Polynomial.number(1)


@dataclass(frozen=True, slots=True)
class Rational:
    """A quotient of two polynomials; equal ones need not look alike, so compare with `same`.

    >>> eps, n = variable("eps"), variable("N")
    >>> str(eps / (number(2) * n) + (n - number(1)) * eps / n + eps / (number(2) * n))
    'eps'
    """

    numerator: Polynomial
    denominator: Polynomial

    def __add__(self, other: Rational) -> Rational:
        shared, for_ours, for_theirs = _common(self.denominator, other.denominator)
        return _quotient(self.numerator * for_ours + other.numerator * for_theirs, shared)

    def __sub__(self, other: Rational) -> Rational:
        return self + other * number(-1)

    def __mul__(self, other: Rational) -> Rational:
        return _quotient(self.numerator * other.numerator, self.denominator * other.denominator)

    def __truediv__(self, other: Rational) -> Rational:
        if other.zero:
            raise ZeroDivisionError("a rational function is divided by 0")
        return _quotient(self.numerator * other.denominator, self.denominator * other.numerator)

    def __str__(self) -> str:
        factor = math.lcm(*(value.denominator for _, value in self.numerator.terms))
        both = (*self.numerator.terms, *self.denominator.terms)
        scale = Fraction(factor, math.gcd(*(int(value * factor) for _, value in both)))
        above, below = self.numerator.times(scale), self.denominator.times(scale)
        if below == UNIT:
            return _text(above)
        top = f"({_text(above)})" if len(above.terms) > 1 else _text(above)
        bottom = _text(below)
        return f"{top}/{bottom}" if bottom.isalnum() else f"{top}/({bottom})"

    @property
    def zero(self) -> bool:
        """Whether it is 0 everywhere."""
        return not self.numerator.terms

    @property
    def constant(self) -> Fraction | None:
        """Its value, where it is the same everywhere."""
        return Fraction(0) if self.zero else self.numerator.multiple_of(self.denominator)

    @property
    def names(self) -> frozenset[str]:
        """The names that occur in it."""
        return self.numerator.symbols | self.denominator.symbols

    @property
    def polynomial(self) -> Polynomial | None:
        """The polynomial that it is, where the denominator is a number."""
        below = self.denominator.constant
        return None if below is None else self.numerator.times(1 / below)

    def same(self, other: Rational) -> bool:
        """Whether both are the same function."""
        return (self - other).zero

    def at(self, values: Mapping[str, Fraction]) -> Fraction:
        """The value where the parameters have these values.

        >>> (variable("eps") / number(4)).at({"eps": Fraction(2)})
        Fraction(1, 2)
        """
        return _value(self.numerator, values) / _value(self.denominator, values)


def number(value: Fraction | int) -> Rational:
    """A constant.

    >>> str(number(Fraction(1, 2)))
    '1/2'
    """
    return _quotient(Polynomial.number(value), UNIT)


def variable(name: str) -> Rational:
    """A name.

    >>> str(variable("eps") * variable("eps"))
    'eps*eps'
    """
    return Rational(Polynomial.of(name), UNIT)


def total(parts: Iterable[Rational]) -> Rational:
    """The sum.

    >>> str(total([variable("eps"), number(1)]))
    'eps + 1'
    """
    return sum(parts, start=number(0))


def _quotient(above: Polynomial, below: Polynomial) -> Rational:
    if not above.terms:
        return Rational(above, UNIT)
    shared = common(above, below)
    above, below = above.without(shared), below.without(shared)
    if len(below.terms) > 1:
        whole = _divided(above, below)
        if whole is not None:
            above, below = whole, UNIT
        elif len(above.terms) > 1 and (inverse := _divided(below, above)) is not None:
            above, below = UNIT, inverse
    # whole numbers without a common divisor remain in the denominator, the leading one positive
    shared_below = math.lcm(*(value.denominator for _, value in below.terms))
    divisor = math.gcd(*(int(value * shared_below) for _, value in below.terms))
    _, leading = max(below.terms, key=_order(below))
    scale = 1 / Fraction(divisor if leading > 0 else -divisor, shared_below)
    return Rational(above.times(scale), below.times(scale))


def _common(ours: Polynomial, theirs: Polynomial) -> tuple[Polynomial, Polynomial, Polynomial]:
    """A common multiple of two denominators, and what each is multiplied by to become it."""
    if (factor := _divided(theirs, ours)) is not None:
        return theirs, factor, UNIT
    if (factor := _divided(ours, theirs)) is not None:
        return ours, UNIT, factor
    shared = common(ours, theirs)
    return ours * theirs.without(shared), theirs.without(shared), ours.without(shared)


def _divided(above: Polynomial, below: Polynomial) -> Polynomial | None:
    """above / below where that leaves no remainder."""
    result, order = Polynomial(), _order(above, below)
    leading, by = max(below.terms, key=order)
    inverse = tuple((symbol, -power) for symbol, power in leading)
    while above.terms:
        highest, value = max(above.terms, key=order)
        factor = multiplied(highest, inverse)
        if any(power < 0 for _, power in factor):
            return None
        step = Polynomial(((factor, value / by),))
        result, above = result + step, above - below * step
    return result


def _order(*polynomials: Polynomial) -> Callable[[tuple[Monomial, Fraction]], tuple[int, ...]]:
    """The graded lexicographic order of terms over the names of these polynomials, as a key."""
    names = sorted(frozenset().union(*(polynomial.symbols for polynomial in polynomials)))

    def key(term: tuple[Monomial, Fraction]) -> tuple[int, ...]:
        powers = dict(term[0])
        return sum(powers.values()), *(powers.get(name, 0) for name in names)

    return key


def _value(polynomial: Polynomial, values: Mapping[str, Fraction]) -> Fraction:
    terms = (c * math.prod(values[name] ** power for name, power in monomial) for monomial, c in polynomial.terms)
    return sum(terms, Fraction(0))


def _text(polynomial: Polynomial) -> str:
    parts: list[str] = []
    for monomial, value in sorted(polynomial.terms, key=lambda term: (-sum(power for _, power in term[0]), term[0])):
        names = "*".join(name for name, power in monomial for _ in range(power))
        size = abs(value)
        part = names if names and size == 1 else f"{size}*{names}" if names else str(size)
        sign = "-" if value < 0 else "+"
        parts.append(f" {sign} {part}" if parts else f"-{part}" if value < 0 else part)
    return "".join(parts) or "0"
