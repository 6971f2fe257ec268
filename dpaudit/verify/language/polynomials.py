"""Polynomials with rational coefficients: the exact arithmetic of the search and of the checker.

A symbol is any name that can be sorted. Arithmetic judges nothing, but a wrong product here would be wrong for both:
this module is among those that must be right for PROVED.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpaudit.errors import DpAuditError

MOST_TERMS, MOST_POWER, MOST_BITS = 1_000, 24, 8_000  # of what is computed; proofs that were found need far less

Monomial = tuple[tuple[Any, int], ...]  # symbols and their powers, sorted


class TooLarge(DpAuditError):
    """Numbers and polynomials that would take for ever; the text says what they are."""


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of coefficient times monomial, sorted, without zero coefficients. Raises `TooLarge`.

    >>> x, one = Polynomial.of("x"), Polynomial.number(1)
    >>> str((x + one) * (x - one))
    '-1 + x^2'
    """

    terms: tuple[tuple[Monomial, Fraction], ...] = ()

    @staticmethod
    def number(value: Fraction | int) -> Polynomial:
        """The constant polynomial."""
        return _collected([((), Fraction(value))])

    @staticmethod
    def of(symbol: Any) -> Polynomial:
        """The polynomial that is one symbol."""
        return _collected([(((symbol, 1),), Fraction(1))])

    def __add__(self, other: Polynomial) -> Polynomial:
        return _collected([*self.terms, *other.terms])

    def __neg__(self) -> Polynomial:
        return self.times(-1)

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial) -> Polynomial:
        if len(self.terms) * len(other.terms) > 10 * MOST_TERMS:
            raise TooLarge(f"{len(self.terms)} times {len(other.terms)} terms")
        return _collected((multiplied(left, right), a * b) for left, a in self.terms for right, b in other.terms)

    def __pow__(self, exponent: int) -> Polynomial:
        found = Polynomial.number(1)
        for _ in range(exponent):
            found = found * self
        return found

    def times(self, factor: Fraction | int) -> Polynomial:
        """The polynomial with every coefficient multiplied."""
        return _collected((monomial, coefficient * factor) for monomial, coefficient in self.terms)

    def multiple_of(self, other: Polynomial) -> Fraction | None:
        """The number c with self = c * other, if there is one and it is not 0."""
        if not self.terms or len(self.terms) != len(other.terms):
            return None
        number = self.terms[0][1] / other.terms[0][1]
        return number if other.times(number) == self else None

    @property
    def constant(self) -> Fraction | None:
        """The number that the polynomial is, None where it holds a symbol."""
        if not self.terms:
            return Fraction(0)
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def symbols(self) -> frozenset[Any]:
        """Every symbol that occurs."""
        return frozenset(symbol for monomial, _ in self.terms for symbol, _ in monomial)

    def without(self, divisor: Monomial) -> Polynomial:
        """The polynomial divided by a monomial that divides every term."""
        if not divisor:
            return self
        inverse = tuple((symbol, -power) for symbol, power in divisor)
        found = _collected((multiplied(monomial, inverse), coefficient) for monomial, coefficient in self.terms)
        assert all(power > 0 for monomial, _ in found.terms for _, power in monomial)
        return found

    def __str__(self) -> str:
        return " + ".join(_term(monomial, c) for monomial, c in self.terms) or "0"


def common(*polynomials: Polynomial) -> Monomial:
    """The largest monomial that divides every term."""
    monomials = [dict(monomial) for polynomial in polynomials for monomial, _ in polynomial.terms]
    if not monomials:
        return ()
    powers = {symbol: min(each.get(symbol, 0) for each in monomials) for symbol in monomials[0]}
    return tuple(sorted((symbol, power) for symbol, power in powers.items() if power))


def multiplied(left: Monomial, right: Monomial) -> Monomial:
    """The product of two monomials; powers of 0 go."""
    powers = dict(left)
    for symbol, power in right:
        powers[symbol] = powers.get(symbol, 0) + power
    return tuple(sorted((symbol, power) for symbol, power in powers.items() if power))


def _collected(terms: Iterable[tuple[Monomial, Fraction]]) -> Polynomial:
    found: dict[Monomial, Fraction] = {}
    for monomial, coefficient in terms:
        found[monomial] = found[monomial] + coefficient if monomial in found else coefficient
    if len(found) > MOST_TERMS:
        raise TooLarge(f"a polynomial of {len(found)} terms")
    for monomial, c in found.items():
        if max(c.numerator.bit_length(), c.denominator.bit_length()) > MOST_BITS:
            raise TooLarge(f"a number of more than {MOST_BITS} bits")
        if sum(power for _, power in monomial) > MOST_POWER:
            raise TooLarge(f"a power above {MOST_POWER}")
    return Polynomial(tuple(sorted((monomial, c) for monomial, c in found.items() if c)))


def _term(monomial: Monomial, coefficient: Fraction) -> str:
    words = [str(symbol) + (f"^{power}" if power > 1 else "") for symbol, power in monomial]
    if coefficient != 1 or not words:
        words.insert(0, str(coefficient))
    return "*".join(words)
