"""Linear forms: what a value is made of, and how far it is from its value in the second run; and z3's answers on them.

A form is a mapping from atoms to factors; `ONE` stands for the number 1. Forms are never changed in place.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

from dpaudit.base.installed import z3
from dpaudit.verify.deadline import left_s
from dpaudit.verify.language.algebra import (
    Both,
    Either,
    Formula,
    Monomial,
    Opposite,
    Polynomial,
    Ratio,
    Truth,
    decided,
    leaves,
    mapped,
    multiplied,
)
from dpaudit.verify.language.facts import ORDERS
from dpaudit.verify.language.nodes import Order
from dpaudit.verify.proof import Unproved

Atom = Hashable
Form = dict[Atom, Fraction]
State = dict[Atom, Fraction]  # what atoms are in a counterexample

ONE = ""
ANSWER, INDEX, LENGTH = "@answer", "@index", "@length"
MOVED = "@d"  # how far the current answer moves from the first dataset to the second


class NoProof(Exception):
    """Raised inside the search where it cannot go on."""

    def __init__(self, reason: str, line: int | None = None, growing: str | None = None) -> None:
        super().__init__(reason)
        self.unproved = Unproved(reason, line, growing)


def head(variable: str) -> str:
    """A variable's value at the head of the loop.

    >>> head("count")
    'head:count'
    """
    return f"head:{variable}"


def drawn(draw: str) -> str:
    """The value of a draw in the first run."""
    return f"draw:{draw}"


def shift_of(draw: str) -> str:
    """How far the draw is shifted."""
    return f"shift:{draw}"


def difference(variable: str) -> str:
    """v' - v at the head of the loop."""
    return f"difference:{variable}"


def constant(value: Fraction | int) -> Form:
    """The form of a number.

    >>> constant(0)
    {}
    """
    return {ONE: Fraction(value)} if value else {}


def number_of(form: Form) -> Fraction | None:
    """The number that a form is; None where it holds an atom."""
    return form.get(ONE, Fraction(0)) if set(form) <= {ONE} else None


def one(atom: Atom) -> Form:
    """The form of an atom."""
    return {atom: Fraction(1)}


def add(left: Form, right: Form, factor: Fraction | int = 1) -> Form:
    """left + factor * right.

    >>> add({"a": Fraction(1)}, {"a": Fraction(1)}, -1)
    {}
    """
    result = dict(left)
    for atom, value in right.items():
        result[atom] = result.get(atom, Fraction(0)) + value * factor
    return {atom: value for atom, value in result.items() if value}


def scaled(form: Form, factor: Fraction) -> Form:
    """factor * form."""
    return {atom: value * factor for atom, value in form.items()} if factor else {}


def substituted(form: Form, values: Mapping[Atom, Form]) -> Form:
    """The form with these atoms replaced by forms.

    >>> substituted({"a": Fraction(2)}, {"a": {"b": Fraction(1), ONE: Fraction(1)}}) == {"b": 2, ONE: 2}
    True
    """
    result: Form = {}
    for atom, value in form.items():
        result = add(result, values[atom] if atom in values else {atom: Fraction(1)}, value)
    return result


def at(form: Form, values: Mapping[Atom, Fraction]) -> Fraction:
    """The value of a form; atoms that are not named are 0, `ONE` is 1."""
    return form.get(ONE, Fraction(0)) + sum(value * values[atom] for atom, value in form.items() if atom in values)


# --- conditions over linear forms, in the first run and, moved, in the second ---------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Leaf(Formula):
    """value (order) 0; in the second run value + moved (order) 0."""

    order: Order
    value: Form
    moved: Form


def public(formula: Formula) -> bool:
    """Whether nothing in it moves, so that both runs agree on it."""
    return not any(leaf.moved for leaf in leaves(formula, Leaf))


def with_moves(formula: Formula, values: Mapping[Atom, Form]) -> Formula:
    """The formula with atoms of its moves replaced, such as the shift of a draw."""
    return mapped(formula, Leaf, lambda leaf: Leaf(leaf.order, leaf.value, substituted(leaf.moved, values)))


def second(formula: Formula) -> Formula:
    """What the second run asks."""
    return mapped(formula, Leaf, lambda leaf: Leaf(leaf.order, add(leaf.value, leaf.moved), {}))


def holds(formula: Formula, values: Mapping[Atom, Fraction]) -> bool:
    """The truth in the first run at a state that gives every atom a value (0 where it names none)."""

    def of_leaf(leaf: Formula) -> bool:
        return isinstance(leaf, Leaf) and bool(ORDERS[leaf.order](at(leaf.value, values), 0))

    return bool(decided(formula, of_leaf))


PATIENCE_S = 2.0  # for one question; without an answer in time it counts as not shown


class SolverTerms:
    """The names of z3 for atoms; `whole` says which of them are whole numbers."""

    def __init__(self, whole: frozenset[str]) -> None:
        self._z3 = z3()
        self._whole = whole | {INDEX, LENGTH}
        self._atoms: dict[Atom, Any] = {}
        self._forms: dict[frozenset[tuple[Atom, Fraction]], Any] = {}

    def atom(self, atom: Atom) -> Any:
        """The name of an atom."""
        if atom not in self._atoms:
            name = atom if isinstance(atom, str) else repr(atom)
            self._atoms[atom] = self._z3.Int(name) if atom in self._whole else self._z3.Real(name)
        return self._atoms[atom]

    def form(self, form: Form) -> Any:
        """A linear form."""
        key = frozenset(form.items())
        if key not in self._forms:
            terms = [_numeral(form.get(ONE, Fraction(0)))]
            terms += [self.atom(atom) * _numeral(value) for atom, value in form.items() if atom != ONE]
            self._forms[key] = self._z3.Sum(terms) if len(terms) > 1 else terms[0]
        return self._forms[key]

    def formula(self, formula: Formula) -> Any:
        """A condition of the first run."""
        return _term(formula, self._leaf)

    def _leaf(self, leaf: Formula) -> Any:
        assert isinstance(leaf, Leaf)
        return ORDERS[leaf.order](self.form(leaf.value), 0)

    def within(self, atom: Atom, least: Fraction | int, most: Fraction | int) -> Any:
        """least <= atom <= most."""
        return self._z3.And(self.atom(atom) >= _numeral(Fraction(least)), self.atom(atom) <= _numeral(Fraction(most)))

    def possible(self, assumed: Iterable[Any]) -> bool:
        """Whether the assumptions can hold together, as far as z3 knows."""
        solver = self.solver(assumed)
        return bool(solver.check() != self._z3.unsat)

    def follows(self, solver: Any, goal: Any) -> State | bool:
        """Whether the goal follows from what the solver holds: True, a state where it fails, or False (not known)."""
        solver.push()
        solver.set("timeout", math.ceil(1000 * left_s(PATIENCE_S)))
        solver.add(self._z3.Not(goal))
        answer = solver.check()
        result: State | bool = answer == self._z3.unsat
        if answer == self._z3.sat:
            result = self._state(solver.model())
        solver.pop()
        return result

    def solver(self, assumed: Iterable[Any]) -> Any:
        """A solver that holds these assumptions."""
        solver = self._z3.SimpleSolver()
        solver.set("timeout", math.ceil(1000 * left_s(PATIENCE_S)))
        for part in assumed:
            solver.add(part)
        return solver

    def _state(self, model: Any) -> State:
        values: dict[Atom, Fraction] = {}
        for atom, name in self._atoms.items():
            value = model[name]
            if value is not None and (self._z3.is_int_value(value) or self._z3.is_rational_value(value)):
                values[atom] = Fraction(value.as_string())
        return values


def _numeral(value: Fraction) -> Any:
    return z3().RealVal(f"{value.numerator}/{value.denominator}") if value.denominator != 1 else int(value)


number, variable = Ratio.number, Ratio.of
ZERO, UNIT = number(0), Polynomial.number(1)


def cost_text(cost: Ratio) -> str:
    """A cost as an expression of the language.

    >>> eps, n = variable("eps"), variable("N")
    >>> cost_text(eps / (n + n) + (n - number(1)) * eps / n + eps / (n + n)), cost_text(eps / (n + n))
    ('eps', 'eps/(2*N)')
    """
    above, left = cost.above, dict(cost.below)
    for factor in left:
        while left[factor] and (quotient := _divided(above, factor)) is not None:
            above, left[factor] = quotient, left[factor] - 1
    below = expanded(left.items())
    if len(above.terms) > 1 and len(below.terms) > 1 and (inverse := _divided(below, above)) is not None:
        above, below = UNIT, inverse
    # whole numbers without a common divisor remain, the leading one of the denominator positive
    both = (*above.terms, *below.terms)
    shared = math.lcm(*(value.denominator for _, value in both))
    scale = Fraction(shared, math.gcd(*(int(value * shared) for _, value in both)))
    _, leading = max(below.terms, key=_order(below))
    scale = scale if leading > 0 else -scale
    top, bottom = _text(above.times(scale)), _text(below.times(scale))
    if bottom == "1":
        return top
    return f"{f'({top})' if len(above.terms) > 1 else top}/{bottom if bottom.isalnum() else f'({bottom})'}"


def expanded(factors: Iterable[tuple[Polynomial, int]]) -> Polynomial:
    """The product of factors."""
    return reduce(operator.mul, (factor**power for factor, power in factors), UNIT)


def _divided(above: Polynomial, below: Polynomial) -> Polynomial | None:
    """above / below where that leaves no remainder."""
    result, order = Polynomial(), _order(above, below)
    leading, by = max(below.terms, key=order)
    inverse = tuple((symbol, -power) for symbol, power in leading)
    while above.terms:
        highest, value = max(above.terms, key=order)
        factor = multiplied(highest, inverse)
        if any(power < 0 for _, power in factor):
            return None
        step = Polynomial(((factor, value / by),))
        result, above = result + step, above - below * step
    return result


def _order(*polynomials: Polynomial) -> Callable[[tuple[Monomial, Fraction]], tuple[int, ...]]:
    """The graded lexicographic order of terms over the names of these polynomials, as a key."""
    names = sorted(frozenset().union(*(polynomial.symbols for polynomial in polynomials)))

    def key(term: tuple[Monomial, Fraction]) -> tuple[int, ...]:
        powers = dict(term[0])
        return sum(powers.values()), *(powers.get(name, 0) for name in names)

    return key


def _text(polynomial: Polynomial) -> str:
    parts: list[str] = []
    for monomial, value in sorted(polynomial.terms, key=lambda term: (-sum(power for _, power in term[0]), term[0])):
        names = "*".join(name for name, power in monomial for _ in range(power))
        size = abs(value)
        part = names if names and size == 1 else f"{size}*{names}" if names else str(size)
        sign = "-" if value < 0 else "+"
        parts.append(f" {sign} {part}" if parts else f"-{part}" if value < 0 else part)
    return "".join(parts) or "0"


def _term(formula: Formula, leaf: Callable[[Any], Any]) -> Any:
    """The formula as z3 has it, where `leaf` says it of leaves."""
    match formula:
        case Truth(holds):
            return z3().BoolVal(holds)
        case Both(parts):
            return z3().And([_term(part, leaf) for part in parts])
        case Either(parts):
            return z3().Or([_term(part, leaf) for part in parts])
        case Opposite(part):
            return z3().Not(_term(part, leaf))
    return leaf(formula)
