"""Questions to z3 about linear forms over the reals and the whole numbers."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpaudit.base.installed import z3
from dpaudit.verify.alignment.forms import INDEX, LENGTH, ONE, Atom, Form, Leaf
from dpaudit.verify.deadline import left_s
from dpaudit.verify.language import algebra
from dpaudit.verify.language.facts import ORDERS

PATIENCE_S = 2.0  # for one question; without an answer in time it counts as not shown


@dataclass(frozen=True, slots=True)
class Counterexample:
    """A counterexample: what the atoms are."""

    values: Mapping[Atom, Fraction]


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
            terms = [_number(form.get(ONE, Fraction(0)))]
            terms += [self.atom(atom) * _number(value) for atom, value in form.items() if atom != ONE]
            self._forms[key] = self._z3.Sum(terms) if len(terms) > 1 else terms[0]
        return self._forms[key]

    def formula(self, formula: algebra.Formula) -> Any:
        """A condition of the first run."""
        return algebra.term(formula, self._leaf)

    def _leaf(self, leaf: algebra.Formula) -> Any:
        assert isinstance(leaf, Leaf)
        return ORDERS[leaf.order](self.form(leaf.value), 0)

    def within(self, atom: Atom, least: Fraction | int, most: Fraction | int) -> Any:
        """least <= atom <= most."""
        return self._z3.And(self.atom(atom) >= _number(Fraction(least)), self.atom(atom) <= _number(Fraction(most)))

    def possible(self, assumed: Iterable[Any]) -> bool:
        """Whether the assumptions can hold together, as far as z3 knows."""
        solver = self.solver(assumed)
        return bool(solver.check() != self._z3.unsat)

    def follows(self, solver: Any, goal: Any) -> Counterexample | bool:
        """Whether the goal follows from what the solver holds: True, a state where it fails, or False (not known)."""
        solver.push()
        solver.set("timeout", math.ceil(1000 * left_s(PATIENCE_S)))
        solver.add(self._z3.Not(goal))
        answer = solver.check()
        found: Counterexample | bool = answer == self._z3.unsat
        if answer == self._z3.sat:
            found = self._state(solver.model())
        solver.pop()
        return found

    def solver(self, assumed: Iterable[Any]) -> Any:
        """A solver that holds these assumptions."""
        solver = self._z3.SimpleSolver()
        solver.set("timeout", math.ceil(1000 * left_s(PATIENCE_S)))
        for part in assumed:
            solver.add(part)
        return solver

    def _state(self, model: Any) -> Counterexample:
        values: dict[Atom, Fraction] = {}
        for atom, term in self._atoms.items():
            value = model[term]
            if value is not None and (self._z3.is_int_value(value) or self._z3.is_rational_value(value)):
                values[atom] = Fraction(value.as_string())
        return Counterexample(values)


def _number(value: Fraction) -> Any:
    return z3().RealVal(f"{value.numerator}/{value.denominator}") if value.denominator != 1 else int(value)
