"""Comparisons of quotients with 0, joined to facts about a state, and obligations that are refuted by lemmas.

An obligation has facts and a goal: a state that has the facts and not the goal must not exist. Anything but a
refutation that is checked here rejects; a state that is known is shown as a counterexample. Denominators are cleared
here, and only where each factor is shown to be positive by the facts before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpaudit.verify.alethe.branches import Unknown as Unknown
from dpaudit.verify.alethe.branches import positive
from dpaudit.verify.alethe.obligations import Bases, Obligation
from dpaudit.verify.alethe.terms import name_of
from dpaudit.verify.language import algebra
from dpaudit.verify.language.algebra import Both, Either, Formula, Opposite, Polynomial, Ratio, Truth, common
from dpaudit.verify.language.facts import ORDERS
from dpaudit.verify.language.nodes import Order
from dpaudit.verify.proof import ProofRejected as ProofRejected


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


def decided(formula: Formula) -> bool | None:
    """Whether the formula holds whatever the state; None where that is not plain."""

    def of_sign(sign: Formula) -> bool | None:
        assert isinstance(sign, Sign)
        number = sign.ratio.constant
        return None if number is None else bool(ORDERS[sign.order](number, 0))

    return algebra.decided(formula, of_sign)


SHOWN = 8  # values of a counterexample


@dataclass(frozen=True, slots=True)
class Facts:
    """What may be used: facts, polynomials that were shown to be positive, and where lemmas come from."""

    bases: Bases
    said: tuple[Formula, ...] = ()
    known: tuple[Formula, ...] = ()  # the same as inequalities
    positive: frozenset[Polynomial] = frozenset()

    @property
    def about(self) -> frozenset[Unknown]:
        """Every symbol of the facts."""
        return frozenset().union(*map(symbols, self.said))

    def assuming(self, *formulas: Formula) -> Facts:
        """These facts and further ones, in order: each may rest its denominators on those before it."""
        facts = self
        for formula in formulas:
            if formula == Truth(True):
                continue
            positive = facts.positive
            if isinstance(formula, Sign) and formula.order == ">" and not formula.ratio.below:
                positive |= {formula.ratio.above}  # it says so in plain words
            known = (*facts.known, facts._inequalities(formula))
            facts = Facts(facts.bases, (*facts.said, formula), known, positive)
        return facts

    def must(self, goal: Formula, what: str, done: list[str] | None = None) -> None:
        """Raises `ProofRejected`, naming `what`, unless the goal follows; what is shown is written down in `done`."""
        if not self.follows(goal):
            state = self._against(goal)
            raise ProofRejected(f"{what}: " + ("not shown" if state is None else f"false{self._where(state, goal)}"))
        if done is not None:
            done.append(what)

    def holds(self, goal: Formula) -> bool | None:
        """Whether the goal follows: True, False where a state says no, None where neither is shown."""
        return True if self.follows(goal) else None if self._against(goal) is None else False

    def follows(self, goal: Formula) -> bool:
        """Whether it is shown that the goal follows."""
        obligation = self._obligation(goal)
        return obligation.refuted(()) or obligation.refuted(self.bases(obligation).steps)

    def _against(self, goal: Formula) -> Mapping[Unknown, Ratio] | None:
        """A state with these facts and without the goal."""
        state = self.bases(self._obligation(goal)).state
        if not state:
            return None
        values = {s: state.get(name_of(s), Fraction(0)) for s in self.about | symbols(goal)}
        numbers = {symbol: Ratio.number(value) for symbol, value in values.items()}
        whole = all(value.denominator == 1 for symbol, value in values.items() if symbol.whole)
        met = whole and all(decided(put(each, numbers)) for each in (*self.said, Opposite(goal)))
        return numbers if met else None

    def _obligation(self, goal: Formula) -> Obligation:
        return Obligation((self._inequalities(Opposite(goal)), *self.known))

    def _inequalities(self, formula: Formula) -> Formula:
        return algebra.mapped(formula, Sign, lambda sign: inequalities(sign.order, self._numerator(sign.ratio)))

    def _numerator(self, ratio: Ratio) -> Polynomial:
        """A polynomial with the sign of the ratio: over positive denominators, less positive common symbols."""
        for factor, _ in ratio.below:
            if factor not in self.positive:
                self.must(Sign(">", Ratio(factor)), f"{factor} is a positive divisor")
        shared = common(ratio.above)
        return ratio.above.without(tuple((s, p) for s, p in shared if Polynomial.of(s) in self.positive))

    def _where(self, state: Mapping[Unknown, Ratio], goal: Formula) -> str:
        shown = sorted(symbols(goal) | {s for s in self.about if s.kind in ("parameter", "moved", "used")})
        values = [f"{symbol} = {state[symbol]}" for symbol in shown]
        if not values:
            return ""
        return " at " + ", ".join(values[:SHOWN]) + (", ..." if len(values) > SHOWN else "")


def inequalities(order: Order, value: Polynomial) -> Formula:
    """value (order) 0."""
    above, below = (positive(each, strict=order in ("<", ">", "!=")) for each in (value, -value))
    if order in ("==", "!="):
        return Both((above, below)) if order == "==" else Either((above, below))
    return above if order in (">", ">=") else below
