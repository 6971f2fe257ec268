"""Quotients of polynomials, comparisons of them with 0 joined to facts about a state, and obligations put to z3.

The denominator of a quotient is in factors, whose signs are asked for when they matter. An obligation has facts and a
goal: a state that has the facts and not the goal must not exist. Anything but "there is no such state" rejects: a state
is shown as a counterexample, "unknown" and a timeout say so. Denominators are cleared here, and only where each factor
is shown to be positive by the facts before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from dpaudit.base.installed import z3
from dpaudit.errors import DpAuditError
from dpaudit.verify.deadline import left_s
from dpaudit.verify.language import algebra
from dpaudit.verify.language.algebra import MOST_POWER, Formula, Polynomial, TooLarge, Truth, common, term
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


PATIENCE_MS = 10_000  # for one obligation; the ones of a sound proof take a few
SHOWN = 8  # values of a counterexample


@dataclass(frozen=True, slots=True)
class Facts:
    """What may be used: facts as z3 knows them, and polynomials that were shown to be positive."""

    known: tuple[Any, ...] = ()
    positive: frozenset[Polynomial] = frozenset()
    about: frozenset[Unknown] = frozenset()

    def assuming(self, *formulas: Formula) -> Facts:
        """These facts and further ones, in order: each may rest its denominators on those before it."""
        facts = self
        for formula in formulas:
            if formula == Truth(True):
                continue
            positive = facts.positive
            if isinstance(formula, Sign) and formula.order == ">" and not formula.ratio.below:
                positive |= {formula.ratio.above}  # it says so in plain words
            about = facts.about | symbols(formula)
            facts = Facts((*facts.known, facts._in_z3(formula)), positive, about)
        return facts

    def must(self, goal: Formula, what: str, done: list[str] | None = None) -> None:
        """Raises `ProofRejected`, naming `what`, unless the goal follows; what is shown is written down in `done`."""
        if not self._plainly(goal):
            answer, state = self._against(goal)
            if answer == "sat":
                raise ProofRejected(f"{what}: false{self._where(state, goal)}")
            if answer != "unsat":
                raise ProofRejected(f"{what}: z3 could not decide it in {PATIENCE_MS // 1000} s")
        if done is not None:
            done.append(what)

    def holds(self, goal: Formula) -> bool | None:
        """Whether the goal follows: True, False where a state says no, None where z3 does not know."""
        if self._plainly(goal):
            return True
        answer, _ = self._against(goal)
        return {"unsat": True, "sat": False}.get(answer)

    def follows(self, goal: Formula) -> bool:
        """Whether z3 shows that the goal follows."""
        return self.holds(goal) is True

    def _plainly(self, goal: Formula) -> bool:
        """Whether the goal is true without any fact but that its common symbols and divisors are positive."""
        if isinstance(goal, Sign):
            number = self._numerator(goal.ratio).constant
            return number is not None and bool(ORDERS[goal.order](number, 0))
        return goal == Truth(True)

    def _against(self, goal: Formula) -> tuple[str, Any]:
        solver = z3().Solver()
        solver.set("timeout", math.ceil(1000 * left_s(PATIENCE_MS / 1000)))
        solver.add(*self.known, z3().Not(self._in_z3(goal)))
        answer = str(solver.check())
        left_s()  # z3 may have had less than its time
        return answer, solver.model() if answer == "sat" else None

    def _in_z3(self, formula: Formula) -> Any:
        return term(formula, lambda sign: ORDERS[sign.order](_z3_term(self._numerator(sign.ratio)), 0))

    def _numerator(self, ratio: Ratio) -> Polynomial:
        """A polynomial with the sign of the ratio: over positive denominators, less positive common symbols."""
        for factor, _ in ratio.below:
            if factor not in self.positive:
                self.must(Sign(">", Ratio(factor)), f"{factor} is a positive divisor")
        shared = common(ratio.above)
        return ratio.above.without(tuple((s, p) for s, p in shared if Polynomial.of(s) in self.positive))

    def _where(self, state: Any, goal: Formula) -> str:
        if state is None:
            return ""
        shown = sorted(symbols(goal) | {s for s in self.about if s.kind in ("parameter", "moved", "used")})
        values = [f"{s} = {state.eval(_variable(s), model_completion=True)}" for s in shown]
        if not values:
            return ""
        return " at " + ", ".join(values[:SHOWN]) + (", ..." if len(values) > SHOWN else "")


def _z3_term(polynomial: Polynomial) -> Any:
    """The polynomial in z3: over the integers where every symbol is whole, otherwise over the reals."""
    whole = all(symbol.whole for symbol in polynomial.symbols)
    if whole:  # times a positive factor: the sign stays
        polynomial = polynomial.times(math.prod(coefficient.denominator for _, coefficient in polynomial.terms))
    total: Any = z3().IntVal(0) if whole else z3().RealVal(0)
    for monomial, coefficient in polynomial.terms:
        value = f"{coefficient.numerator}/{coefficient.denominator}"
        term = z3().IntVal(int(coefficient)) if whole else z3().RealVal(value)
        for symbol, power in monomial:
            for _ in range(power):
                term = term * _variable(symbol) if whole or not symbol.whole else term * z3().ToReal(_variable(symbol))
        total = total + term
    return total


def _variable(symbol: Unknown) -> Any:
    name = f"{symbol.kind}.{symbol.name}"
    return z3().Int(name) if symbol.whole else z3().Real(name)
