"""Comparisons of quotients with 0, joined to facts about a state, and obligations put to z3.

An obligation has facts and a goal: a state that has the facts and not the goal must not exist. Anything but "there is
no such state" rejects: a state is shown as a counterexample, "unknown" and a timeout say so. Denominators are cleared
here, and only where each factor is shown to be positive by the facts before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpaudit.base.installed import z3
from dpaudit.errors import DpAuditError
from dpaudit.verify.deadline import left_s
from dpaudit.verify.language import algebra
from dpaudit.verify.language.algebra import Formula, Polynomial, Ratio, Truth, common, term
from dpaudit.verify.language.facts import ORDERS
from dpaudit.verify.language.nodes import Order


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
