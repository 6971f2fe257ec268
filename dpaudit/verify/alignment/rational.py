"""Rational functions of the parameters, exactly: what a shift costs is one of them, such as eps / (2 N)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpaudit.errors import InvalidSpec

MOST_TERMS, MOST_POWER, MOST_BITS = 1_000, 24, 8_000  # as the checker computes with

Monomial = tuple[tuple[str, int], ...]
Polynomial = dict[Monomial, Fraction]

UNIT: Monomial = ()
TOO_LARGE = "the program makes numbers or polynomials that are too large to compute with; simplify it"


@dataclass(frozen=True, slots=True)
class Rational:
    """A quotient of two polynomials; equal ones need not look alike, so compare with `same`.

    >>> eps, n = variable("eps"), variable("N")
    >>> str(eps / (number(2) * n) + (n - number(1)) * eps / n + eps / (number(2) * n))
    'eps'
    """

    numerator: tuple[tuple[Monomial, Fraction], ...]
    denominator: tuple[tuple[Monomial, Fraction], ...]

    def __add__(self, other: Rational) -> Rational:
        ours, theirs = dict(self.denominator), dict(other.denominator)
        if ours == theirs:
            return _quotient(_sum(dict(self.numerator), dict(other.numerator)), ours)
        common, for_ours, for_theirs = _common(ours, theirs)
        return _quotient(
            _sum(_product(dict(self.numerator), for_ours), _product(dict(other.numerator), for_theirs)), common
        )

    def __sub__(self, other: Rational) -> Rational:
        return self + other * number(-1)

    def __mul__(self, other: Rational) -> Rational:
        return _quotient(
            _product(dict(self.numerator), dict(other.numerator)),
            _product(dict(self.denominator), dict(other.denominator)),
        )

    def __truediv__(self, other: Rational) -> Rational:
        if not other.numerator:
            raise ZeroDivisionError("a rational function is divided by 0")
        return _quotient(
            _product(dict(self.numerator), dict(other.denominator)),
            _product(dict(self.denominator), dict(other.numerator)),
        )

    def __str__(self) -> str:
        above, below = dict(self.numerator), dict(self.denominator)
        factor = math.lcm(*(value.denominator for value in above.values())) if above else 1
        above = {monomial: value * factor for monomial, value in above.items()}
        below = {monomial: value * factor for monomial, value in below.items()}
        divisor = math.gcd(*(int(value) for value in (*above.values(), *below.values())))
        above = {monomial: value / divisor for monomial, value in above.items()}
        below = {monomial: value / divisor for monomial, value in below.items()}
        if below == {UNIT: 1}:
            return _text(above)
        top = f"({_text(above)})" if len(above) > 1 else _text(above)
        bottom = _text(below)
        return f"{top}/{bottom}" if bottom.isalnum() else f"{top}/({bottom})"

    @property
    def zero(self) -> bool:
        """Whether it is 0 everywhere."""
        return not self.numerator

    @property
    def constant(self) -> Fraction | None:
        """Its value, where it is the same everywhere."""
        if not self.numerator:
            return Fraction(0)
        above, below = dict(self.numerator), dict(self.denominator)
        if set(above) != set(below):
            return None
        ratios = {above[monomial] / below[monomial] for monomial in above}
        return ratios.pop() if len(ratios) == 1 else None

    @property
    def names(self) -> frozenset[str]:
        """The names that occur in it."""
        both = (*self.numerator, *self.denominator)
        return frozenset(name for monomial, _ in both for name, _ in monomial)

    @property
    def polynomial(self) -> Polynomial | None:
        """Its terms, where the denominator is a number."""
        below = dict(self.denominator)
        if set(below) != {UNIT}:
            return None
        return {monomial: value / below[UNIT] for monomial, value in self.numerator}

    def same(self, other: Rational) -> bool:
        """Whether both are the same function."""
        return (self - other).zero

    def at(self, values: Mapping[str, Fraction]) -> Fraction:
        """The value where the parameters have these values.

        >>> (variable("eps") / number(4)).at({"eps": Fraction(2)})
        Fraction(1, 2)
        """
        return _value(dict(self.numerator), values) / _value(dict(self.denominator), values)


def number(value: Fraction | int) -> Rational:
    """A constant.

    >>> str(number(Fraction(1, 2)))
    '1/2'
    """
    return _quotient({UNIT: Fraction(value)} if value else {}, {UNIT: Fraction(1)})


def variable(name: str) -> Rational:
    """A name.

    >>> str(variable("eps") * variable("eps"))
    'eps*eps'
    """
    return _quotient({((name, 1),): Fraction(1)}, {UNIT: Fraction(1)})


def total(parts: Iterator[Rational] | list[Rational]) -> Rational:
    """The sum.

    >>> str(total([variable("eps"), number(1)]))
    'eps + 1'
    """
    result = number(0)
    for part in parts:
        result = result + part
    return result


def _quotient(above: Polynomial, below: Polynomial) -> Rational:
    if max(len(above), len(below)) > MOST_TERMS:
        raise InvalidSpec(TOO_LARGE)
    for monomial, value in (*above.items(), *below.items()):
        bits = max(value.numerator.bit_length(), value.denominator.bit_length())
        if bits > MOST_BITS or sum(power for _, power in monomial) > MOST_POWER:
            raise InvalidSpec(TOO_LARGE)
    if not above:
        return Rational((), ((UNIT, Fraction(1)),))
    shared = _shared_monomial([*above, *below])
    if shared:
        above = {_without(monomial, shared): value for monomial, value in above.items()}
        below = {_without(monomial, shared): value for monomial, value in below.items()}
    if len(below) > 1:
        whole = _divided(above, below)
        if whole is not None:
            above, below = whole, {UNIT: Fraction(1)}
        elif len(above) > 1 and (inverse := _divided(below, above)) is not None:
            above, below = {UNIT: Fraction(1)}, inverse
    scale = Fraction(1) / _content(below)
    above = {monomial: value * scale for monomial, value in above.items()}
    below = {monomial: value * scale for monomial, value in below.items()}
    return Rational(tuple(sorted(above.items())), tuple(sorted(below.items())))


def _content(polynomial: Polynomial) -> Fraction:
    """The number to divide by so that whole numbers without a common divisor remain, the leading one positive."""
    common = math.lcm(*(value.denominator for value in polynomial.values()))
    divisor = math.gcd(*(int(value * common) for value in polynomial.values()))
    sign = 1 if polynomial[max(polynomial, key=_order(polynomial))] > 0 else -1
    return Fraction(sign * divisor, common)


def _common(ours: Polynomial, theirs: Polynomial) -> tuple[Polynomial, Polynomial, Polynomial]:
    """A common multiple of two denominators, and what each is multiplied by to become it."""
    if (factor := _divided(theirs, ours)) is not None:
        return theirs, factor, {UNIT: Fraction(1)}
    if (factor := _divided(ours, theirs)) is not None:
        return ours, {UNIT: Fraction(1)}, factor
    shared = _shared_monomial([*ours, *theirs])
    for_ours = {_without(monomial, shared): value for monomial, value in theirs.items()}
    for_theirs = {_without(monomial, shared): value for monomial, value in ours.items()}
    return _product(ours, for_ours), for_ours, for_theirs


def _sum(left: Polynomial, right: Polynomial) -> Polynomial:
    result = dict(left)
    for monomial, value in right.items():
        result[monomial] = result.get(monomial, Fraction(0)) + value
    return {monomial: value for monomial, value in result.items() if value}


def _product(left: Polynomial, right: Polynomial) -> Polynomial:
    if len(left) * len(right) > 10 * MOST_TERMS:
        raise InvalidSpec(TOO_LARGE)
    result: Polynomial = {}
    for first, value in left.items():
        for second, other in right.items():
            monomial = _joined(first, second)
            result[monomial] = result.get(monomial, Fraction(0)) + value * other
    return {monomial: value for monomial, value in result.items() if value}


def _divided(above: Polynomial, below: Polynomial) -> Polynomial | None:
    """above / below where that leaves no remainder."""
    result: Polynomial = {}
    order = _order(above, below)
    left, leading = dict(above), max(below, key=order)
    while left:
        highest = max(left, key=order)
        ours, theirs = dict(highest), dict(leading)
        if any(ours.get(name, 0) < power for name, power in theirs.items()):
            return None
        factor, value = _without(highest, leading), left[highest] / below[leading]
        result[factor] = value
        left = _sum(left, _product(below, {factor: -value}))
    return result


def _order(*polynomials: Polynomial) -> Callable[[Monomial], tuple[int, ...]]:
    """The graded lexicographic order over the names of these polynomials, as a key."""
    names = sorted({name for polynomial in polynomials for monomial in polynomial for name, _ in monomial})

    def key(monomial: Monomial) -> tuple[int, ...]:
        powers = dict(monomial)
        return sum(powers.values()), *(powers.get(name, 0) for name in names)

    return key


def _joined(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for name, power in right:
        powers[name] = powers.get(name, 0) + power
    return tuple(sorted(powers.items()))


def _without(monomial: Monomial, factor: Monomial) -> Monomial:
    powers = dict(monomial)
    for name, power in factor:
        powers[name] -= power
    return tuple(sorted((name, power) for name, power in powers.items() if power))


def _shared_monomial(monomials: list[Monomial]) -> Monomial:
    powers = dict(monomials[0])
    for monomial in monomials[1:]:
        other = dict(monomial)
        powers = {name: min(power, other[name]) for name, power in powers.items() if name in other}
    return tuple(sorted(powers.items()))


def _value(polynomial: Polynomial, values: Mapping[str, Fraction]) -> Fraction:
    result = Fraction(0)
    for monomial, factor in polynomial.items():
        for name, power in monomial:
            factor *= values[name] ** power
        result += factor
    return result


def _text(polynomial: Polynomial) -> str:
    parts: list[str] = []
    for monomial in sorted(polynomial, key=lambda monomial: (-sum(power for _, power in monomial), monomial)):
        value = polynomial[monomial]
        names = "*".join(name for name, power in monomial for _ in range(power))
        size = abs(value)
        part = names if names and size == 1 else f"{size}*{names}" if names else str(size)
        sign = "-" if value < 0 else "+"
        parts.append(f" {sign} {part}" if parts else f"-{part}" if value < 0 else part)
    return "".join(parts) or "0"
