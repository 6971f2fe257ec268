"""Quotients of polynomials, with the denominator in factors whose signs are asked for when they matter; comparisons of
them with 0, joined to facts about a state; and the one error of the checker.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from dpaudit.errors import DpAuditError
from dpaudit.verify.language import algebra
from dpaudit.verify.language.algebra import MOST_POWER, Formula, Polynomial, TooLarge, Truth, common
from dpaudit.verify.language.facts import ORDERS
from dpaudit.verify.language.nodes import Order

Factors = tuple[tuple[Polynomial, int], ...]


class Unknown(NamedTuple):
    """One unknown number of a state: a parameter, a counter, a draw, how far an answer moves; `whole`: an integer."""

    kind: str
    name: str
    whole: bool = False

    def __str__(self) -> str:
        match self.kind:
            case "difference":
                return f"({self.name}' - {self.name})"
            case "second":
                return f"{self.name}'"
            case "size":
                return f"|{self.name}|"
        return self.name


@dataclass(frozen=True, slots=True)
class Ratio:
    """`above` divided by the product of the factors `below`, each to its power; no factor is a constant.

    >>> n, e = (Ratio.of(Unknown("parameter", name)) for name in ("n", "e"))
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
    def of(symbol: Unknown) -> Ratio:
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
    def symbols(self) -> frozenset[Unknown]:
        """Every symbol that occurs, above or below."""
        return self.above.symbols.union(*(factor.symbols for factor, _ in self.below))

    @property
    def whole(self) -> bool:
        """Whether the value is an integer for every state."""
        whole = all(c.denominator == 1 for _, c in self.above.terms) and all(symbol.whole for symbol in self.symbols)
        return whole and not self.below

    def put(self, values: Mapping[Unknown, Ratio]) -> Ratio:
        """The ratio with ratios in the place of symbols."""
        if values.keys().isdisjoint(self.symbols):
            return self
        found = _put(self.above, values)
        for factor, power in self.below:
            for _ in range(power):
                found = found / _put(factor, values)
        return found

    def __str__(self) -> str:
        below = " * ".join(f"({factor})" + (f"^{power}" if power > 1 else "") for factor, power in self.below)
        if not below:
            return str(self.above)
        above = f"({self.above})" if len(self.above.terms) > 1 else str(self.above)
        return f"{above} / {below if len(self.below) == 1 else f'({below})'}"


def _put(polynomial: Polynomial, values: Mapping[Unknown, Ratio]) -> Ratio:
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
    divisor: dict[Unknown, int] = {}
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


def _symbol(factor: Polynomial) -> Unknown | None:
    """The symbol that a factor is, None where it is more than one."""
    if len(factor.terms) != 1:
        return None
    (monomial, coefficient), *_ = factor.terms
    return monomial[0][0] if coefficient == 1 and len(monomial) == 1 and monomial[0][1] == 1 else None


class ProofRejected(DpAuditError):
    """A stored proof does not show what it says: the message names the obligation, and a state that breaks it.

    That the program breaks its claim does not follow; another proof may exist.
    """

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Sign(Formula):
    """ratio (order) 0."""

    order: Order
    ratio: Ratio


def compared(order: Order, left: Ratio, right: Ratio) -> Formula:
    """left (order) right; decided at once where both are the same or numbers."""
    difference = left - right
    number = difference.constant
    return Sign(order, difference) if number is None else Truth(bool(ORDERS[order](number, 0)))


def put(formula: Formula, values: Mapping[Unknown, Ratio]) -> Formula:
    """The formula with ratios in the place of symbols."""
    zero = Ratio.number(0)
    return algebra.mapped(formula, Sign, lambda sign: compared(sign.order, sign.ratio.put(values), zero))


def symbols(formula: Formula) -> frozenset[Unknown]:
    """Every symbol that occurs."""
    return frozenset().union(*(sign.ratio.symbols for sign in algebra.leaves(formula, Sign)))


def decided(formula: Formula, known: Callable[[Sign], bool | None] = lambda sign: None) -> bool | None:
    """Whether the formula holds whatever the state; None where that is not plain. `known` may decide more signs."""

    def of_sign(sign: Formula) -> bool | None:
        assert isinstance(sign, Sign)
        number = sign.ratio.constant
        return known(sign) if number is None else bool(ORDERS[sign.order](number, 0))

    return algebra.decided(formula, of_sign)
