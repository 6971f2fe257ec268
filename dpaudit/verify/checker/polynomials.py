"""Polynomials with rational coefficients: the checker's own arithmetic, exact and small.

A symbol stands for one number of a state: a parameter, a counter, a draw, how far an answer moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from dpaudit.verify.checker.rejection import ProofRejected

MOST_TERMS, MOST_POWER, MOST_BITS = 1_000, 24, 8_000  # of what is computed; proofs that were found need far less


class Symbol(NamedTuple):
    """One unknown number; `whole` says that it is an integer."""

    kind: str
    name: str
    whole: bool = False


Monomial = tuple[tuple[Symbol, int], ...]


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of coefficient times monomial, sorted, without zero coefficients.

    >>> x = Polynomial.of(Symbol("parameter", "x"))
    >>> str((x + Polynomial.number(1)) * (x - Polynomial.number(1)))
    '-1 + x^2'
    """

    terms: tuple[tuple[Monomial, Fraction], ...] = ()

    @staticmethod
    def number(value: Fraction | int) -> Polynomial:
        """The constant polynomial."""
        return _made({(): Fraction(value)})

    @staticmethod
    def of(symbol: Symbol) -> Polynomial:
        """The polynomial that is one symbol."""
        return _made({((symbol, 1),): Fraction(1)})

    def __add__(self, other: Polynomial) -> Polynomial:
        found = dict(self.terms)
        for monomial, coefficient in other.terms:
            found[monomial] = found.get(monomial, Fraction(0)) + coefficient
        return _made(found)

    def __neg__(self) -> Polynomial:
        return self.times(Fraction(-1))

    def __sub__(self, other: Polynomial) -> Polynomial:
        return self + -other

    def __mul__(self, other: Polynomial) -> Polynomial:
        if len(self.terms) * len(other.terms) > 10 * MOST_TERMS:
            raise too_large(f"{len(self.terms)} times {len(other.terms)} terms")
        found: dict[Monomial, Fraction] = {}
        for left, a in self.terms:
            for right, b in other.terms:
                both = _product(left, right)
                found[both] = found.get(both, Fraction(0)) + a * b
        return _made(found)

    def times(self, factor: Fraction | int) -> Polynomial:
        """The polynomial with every coefficient multiplied."""
        return _made({monomial: coefficient * factor for monomial, coefficient in self.terms})

    @property
    def constant(self) -> Fraction | None:
        """The number that the polynomial is, None where it holds a symbol."""
        if not self.terms:
            return Fraction(0)
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    @property
    def symbols(self) -> frozenset[Symbol]:
        """Every symbol that occurs."""
        return frozenset(symbol for monomial, _ in self.terms for symbol, _ in monomial)

    @property
    def whole(self) -> bool:
        """Whether the value is an integer for every state: whole symbols and whole coefficients."""
        return all(c.denominator == 1 and all(s.whole for s, _ in monomial) for monomial, c in self.terms)

    def common(self) -> Monomial:
        """The largest monomial that divides every term."""
        if not self.terms:
            return ()
        powers = dict(self.terms[0][0])
        for monomial, _ in self.terms[1:]:
            mine = dict(monomial)
            powers = {symbol: min(power, mine[symbol]) for symbol, power in powers.items() if symbol in mine}
        return tuple(sorted(powers.items()))

    def without(self, divisor: Monomial) -> Polynomial:
        """The polynomial divided by a monomial that divides every term."""
        if not divisor:
            return self
        found = {}
        for monomial, coefficient in self.terms:
            powers = dict(monomial)
            for symbol, power in divisor:
                powers[symbol] -= power
            assert all(power >= 0 for power in powers.values())
            found[tuple(sorted((s, p) for s, p in powers.items() if p))] = coefficient
        return _made(found)

    def __str__(self) -> str:
        return " + ".join(_term(monomial, c) for monomial, c in self.terms) or "0"


def power_of(base: Polynomial, exponent: int) -> Polynomial:
    """A polynomial to a whole power, at least 0."""
    found = Polynomial.number(1)
    for _ in range(exponent):
        found = found * base
    return found


def name_of(symbol: Symbol) -> str:
    """A symbol in words, as messages print it."""
    match symbol.kind:
        case "difference":
            return f"({symbol.name}' - {symbol.name})"
        case "second":
            return f"{symbol.name}'"
        case "size":
            return f"|{symbol.name}|"
        case _:
            return symbol.name


def too_large(what: str) -> ProofRejected:
    """The refusal of numbers and polynomials that would take for ever."""
    return ProofRejected(f"the program or the proof makes {what}, more than the checker computes with; simplify it")


def _made(found: Mapping[Monomial, Fraction]) -> Polynomial:
    if len(found) > MOST_TERMS:
        raise too_large(f"a polynomial of {len(found)} terms")
    for monomial, c in found.items():
        if max(c.numerator.bit_length(), c.denominator.bit_length()) > MOST_BITS:
            raise too_large(f"a number of more than {MOST_BITS} bits")
        if sum(power for _, power in monomial) > MOST_POWER:
            raise too_large(f"a power above {MOST_POWER}")
    return Polynomial(tuple(sorted((monomial, c) for monomial, c in found.items() if c)))


def _product(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for symbol, power in right:
        powers[symbol] = powers.get(symbol, 0) + power
    return tuple(sorted(powers.items()))


def _term(monomial: Monomial, coefficient: Fraction) -> str:
    words = [name_of(symbol) + (f"^{power}" if power > 1 else "") for symbol, power in monomial]
    if coefficient != 1 or not words:
        words.insert(0, str(coefficient))
    return "*".join(words)
