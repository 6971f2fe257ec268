"""Obligations put to z3: facts, a goal, and a state that has the facts and not the goal must not exist.

Anything but "there is no such state" rejects: a state is shown as a counterexample, "unknown" and a timeout say so.
Denominators are cleared here, and only where each factor is shown to be positive by the facts before.
"""

import math
from dataclasses import dataclass
from typing import Any

from dpaudit.base.installed import z3
from dpaudit.verify.checker.formulas import ProofRejected, Ratio, Sign, Unknown, symbols
from dpaudit.verify.deadline import left_s
from dpaudit.verify.language.algebra import Formula, Polynomial, Truth, common, term
from dpaudit.verify.language.facts import ORDERS

PATIENCE_MS = 10_000  # for one obligation; the ones of a sound proof take a few
SHOWN = 8  # values of a counterexample


@dataclass(frozen=True, slots=True)
class Facts:
    """What may be used: facts as z3 knows them, and polynomials that were shown to be positive."""

    known: tuple[Any, ...] = ()
    positive: frozenset[Polynomial] = frozenset()
    about: frozenset[Unknown] = frozenset()

    def assuming(self, *formulas: Formula) -> "Facts":
        """These facts and further ones, in order: each may rest its denominators on those before it."""
        facts = self
        for formula in formulas:
            if formula == Truth(True):
                continue
            about = facts.about | symbols(formula)
            facts = Facts((*facts.known, facts._told(formula)), facts.positive | facts._bare(formula), about)
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
        found = z3().Solver()
        found.set("timeout", math.ceil(1000 * left_s(PATIENCE_MS / 1000)))
        found.add(*self.known, z3().Not(self._told(goal)))
        answer = str(found.check())
        left_s()  # z3 may have had less than its time
        return answer, found.model() if answer == "sat" else None

    def _told(self, formula: Formula) -> Any:
        return term(formula, lambda sign: ORDERS[sign.order](_term(self._numerator(sign.ratio)), 0))

    def _numerator(self, ratio: Ratio) -> Polynomial:
        """A polynomial with the sign of the ratio: over positive denominators, less positive common symbols."""
        for factor, _ in ratio.below:
            if factor not in self.positive:
                self.must(Sign(">", Ratio(factor)), f"{factor} is a positive divisor")
        shared = common(ratio.above)
        return ratio.above.without(tuple((s, p) for s, p in shared if Polynomial.of(s) in self.positive))

    def _bare(self, formula: Formula) -> frozenset[Polynomial]:
        """The polynomial that a fact says is positive, if it says so in plain words."""
        if isinstance(formula, Sign) and formula.order == ">" and not formula.ratio.below:
            return frozenset({formula.ratio.above})
        return frozenset()

    def _where(self, state: Any, goal: Formula) -> str:
        if state is None:
            return ""
        shown = sorted(symbols(goal) | {s for s in self.about if s.kind in ("parameter", "moved", "used")})
        told = [f"{s} = {state.eval(_variable(s), model_completion=True)}" for s in shown]
        if not told:
            return ""
        return " at " + ", ".join(told[:SHOWN]) + (", ..." if len(told) > SHOWN else "")


def _term(polynomial: Polynomial) -> Any:
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
