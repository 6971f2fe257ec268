"""The algebra of search and checker: polynomials with rational coefficients and their quotients; facts joined by words.

A symbol of a polynomial is any name that can be sorted. Search and checker state facts in their own terms. Nothing here
judges anything, but a mistake would be in both: this module is among those that must be right for PROVED.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

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


Factors = tuple[tuple[Polynomial, int], ...]


@dataclass(frozen=True, slots=True)
class Ratio:
    """`above` divided by the product of the factors `below`, each to its power; no factor is a constant.

    Equal ones need not look alike: only 0 has one form, so compare differences with it.

    >>> n, e = Ratio.of("n"), Ratio.of("e")
    >>> str(e / n + e), str(n / n)
    ('(e + e*n) / (n)', '1')
    """

    above: Polynomial
    below: Factors = ()

    @staticmethod
    def number(value: Fraction | int) -> Ratio:
        """A constant."""
        return Ratio(Polynomial.number(value))

    @staticmethod
    def of(symbol: Any) -> Ratio:
        """One symbol."""
        return Ratio(Polynomial.of(symbol))

    def __add__(self, other: Ratio) -> Ratio:
        mine, theirs = dict(self.below), dict(other.below)
        shared = {factor: max(mine.get(factor, 0), theirs.get(factor, 0)) for factor in mine | theirs}
        return _cancelled(_over(self, shared) + _over(other, shared), shared)

    def __neg__(self) -> Ratio:
        return Ratio(-self.above, self.below)

    def __sub__(self, other: Ratio) -> Ratio:
        return self + -other

    def __mul__(self, other: Ratio) -> Ratio:
        factors = dict(self.below)
        for factor, power in other.below:
            factors[factor] = factors.get(factor, 0) + power
        return _cancelled(self.above * other.above, factors)

    def __truediv__(self, other: Ratio) -> Ratio:
        """The quotient. Raises `ZeroDivisionError` where the divisor is 0 for every state."""
        return self * _inverse(other)

    @property
    def constant(self) -> Fraction | None:
        """The number that this is, None where it holds a symbol."""
        return None if self.below else self.above.constant

    @property
    def symbols(self) -> frozenset[Any]:
        """Every symbol that occurs, above or below."""
        return self.above.symbols.union(*(factor.symbols for factor, _ in self.below))

    def put(self, values: Mapping[Any, Ratio]) -> Ratio:
        """The ratio with ratios in the place of symbols."""
        if values.keys().isdisjoint(self.symbols):
            return self
        result = _put(self.above, values)
        for factor, power in self.below:
            for _ in range(power):
                result = result / _put(factor, values)
        return result

    def __str__(self) -> str:
        below = " * ".join(f"({factor})" + (f"^{power}" if power > 1 else "") for factor, power in self.below)
        if not below:
            return str(self.above)
        above = f"({self.above})" if len(self.above.terms) > 1 else str(self.above)
        return f"{above} / {below if len(self.below) == 1 else f'({below})'}"


def _put(polynomial: Polynomial, values: Mapping[Any, Ratio]) -> Ratio:
    total = Ratio(Polynomial())
    for monomial, coefficient in polynomial.terms:
        term = Ratio.number(coefficient)
        for symbol, power in monomial:
            factor = values[symbol] if symbol in values else Ratio.of(symbol)
            for _ in range(power):
                term = term * factor
        total = total + term
    return total


def _over(ratio: Ratio, shared: Mapping[Polynomial, int]) -> Polynomial:
    """The numerator over a larger denominator."""
    above, mine = ratio.above, dict(ratio.below)
    for factor, power in shared.items():
        above = above * factor ** (power - mine.get(factor, 0))
    return above


def _cancelled(above: Polynomial, factors: Mapping[Polynomial, int]) -> Ratio:
    """Symbols, and whole factors that are the numerator, are cancelled; nothing else is."""
    left = dict(factors)
    shared = dict(common(above))
    divisor: dict[Any, int] = {}
    for factor, power in factors.items():
        symbol = _symbol(factor)
        if symbol is not None and symbol in shared:
            divisor[symbol] = min(power, shared[symbol])
            left[factor] -= divisor[symbol]
    above = above.without(tuple(sorted(divisor.items())))
    for factor in [factor for factor, power in left.items() if power]:
        multiple = above.multiple_of(factor)
        if multiple is not None:
            above, left[factor] = Polynomial.number(multiple), left[factor] - 1
    if not above.terms:
        return Ratio(above)
    if any(power > MOST_POWER for power in left.values()):
        raise TooLarge(f"a power above {MOST_POWER}")
    return Ratio(above, tuple(sorted(((f, p) for f, p in left.items() if p), key=lambda item: item[0].terms)))


def _inverse(ratio: Ratio) -> Ratio:
    if not ratio.above.terms:
        raise ZeroDivisionError("division by 0")
    shared = common(ratio.above)
    rest = ratio.above.without(shared)
    leading = rest.terms[-1][1]
    factors = {Polynomial.of(symbol): power for symbol, power in shared}
    if rest.constant is None:
        factors[rest.times(1 / leading)] = 1
    above = Polynomial.number(1 / leading)
    for factor, power in ratio.below:
        above = above * factor**power
    return _cancelled(above, factors)


def _symbol(factor: Polynomial) -> Any | None:
    """The symbol that a factor is, None where it is more than one."""
    if len(factor.terms) != 1:
        return None
    (monomial, coefficient), *_ = factor.terms
    return monomial[0][0] if coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1 else None


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
