"""The algebra of search and checker: polynomials with rational coefficients, and facts joined by and, or, not.

A symbol of a polynomial is any name that can be sorted. Search and checker state facts in their own terms. Nothing here
judges anything, but a mistake would be in both: this module is among those that must be right for PROVED.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from dpaudit.base.installed import z3
from dpaudit.errors import DpAuditError

MOST_TERMS, MOST_POWER, MOST_BITS = 1_000, 24, 8_000  # of what is computed; proofs of the search need far less

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
        power = Polynomial.number(1)
        for _ in range(exponent):
            power = power * self
        return power

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
        quotient = _collected((multiplied(monomial, inverse), coefficient) for monomial, coefficient in self.terms)
        assert all(power > 0 for monomial, _ in quotient.terms for _, power in monomial)
        return quotient

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
    sums: dict[Monomial, Fraction] = {}
    for monomial, coefficient in terms:
        sums[monomial] = sums[monomial] + coefficient if monomial in sums else coefficient
    if len(sums) > MOST_TERMS:
        raise TooLarge(f"a polynomial of {len(sums)} terms")
    for monomial, c in sums.items():
        if max(c.numerator.bit_length(), c.denominator.bit_length()) > MOST_BITS:
            raise TooLarge(f"a number of more than {MOST_BITS} bits")
        if sum(power for _, power in monomial) > MOST_POWER:
            raise TooLarge(f"a power above {MOST_POWER}")
    return Polynomial(tuple(sorted((monomial, c) for monomial, c in sums.items() if c)))


def _term(monomial: Monomial, coefficient: Fraction) -> str:
    words = [str(symbol) + (f"^{power}" if power > 1 else "") for symbol, power in monomial]
    if coefficient != 1 or not words:
        words.insert(0, str(coefficient))
    return "*".join(words)


class Formula:
    """A fact: one of those below, or a leaf, which derives from this class and says something about numbers."""

    __slots__ = ()


Leaf = TypeVar("Leaf", bound=Formula)


@dataclass(frozen=True, slots=True)
class Truth(Formula):
    """True or false for every state."""

    holds: bool


@dataclass(frozen=True, slots=True)
class Both(Formula):
    """Every part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Either(Formula):
    """Some part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Opposite(Formula):
    """The part does not hold."""

    part: Formula


def leaves(formula: Formula, kind: type[Leaf]) -> Iterator[Leaf]:
    """The leaves of this kind."""
    match formula:
        case Both(parts) | Either(parts):
            for part in parts:
                yield from leaves(part, kind)
        case Opposite(part):
            yield from leaves(part, kind)
        case kind():
            yield formula


def mapped(formula: Formula, kind: type[Leaf], change: Callable[[Leaf], Formula]) -> Formula:
    """The formula with others in the place of its leaves of this kind."""
    match formula:
        case Both(parts) | Either(parts):
            return type(formula)(tuple(mapped(part, kind, change) for part in parts))
        case Opposite(part):
            return Opposite(mapped(part, kind, change))
        case kind():
            return change(formula)
    return formula


def decided(formula: Formula, known: Callable[[Formula], bool | None]) -> bool | None:
    """Whether the formula holds, where `known` says it of leaves; None where that does not decide it.

    >>> decided(Either((Opposite(Truth(True)), Formula())), lambda leaf: None)
    """
    match formula:
        case Truth(holds):
            return holds
        case Both(parts) | Either(parts):
            ends = isinstance(formula, Either)  # one such part is enough
            truths = [decided(part, known) for part in parts]
            return ends if ends in truths else None if None in truths else not ends
        case Opposite(part):
            opposite = decided(part, known)
            return None if opposite is None else not opposite
    return known(formula)


def term(formula: Formula, leaf: Callable[[Any], Any]) -> Any:
    """The formula as z3 has it, where `leaf` says it of leaves."""
    match formula:
        case Truth(holds):
            return z3().BoolVal(holds)
        case Both(parts):
            return z3().And([term(part, leaf) for part in parts])
        case Either(parts):
            return z3().Or([term(part, leaf) for part in parts])
        case Opposite(part):
            return z3().Not(term(part, leaf))
    return leaf(formula)
