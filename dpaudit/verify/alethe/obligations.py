"""Obligations: formulas that must not hold together; as SMT-LIB for any solver, and refuted here by lemmas."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dpaudit.verify.alethe.branches import Inequality, contradictory, plain
from dpaudit.verify.alethe.steps import lemma
from dpaudit.verify.alethe.terms import asserted, name_of
from dpaudit.verify.language.algebra import Formula, leaves
from dpaudit.verify.proof import Basis


@dataclass(frozen=True)
class Obligation:
    """Formulas of inequalities; that no numbers meet all of them is to be shown."""

    formulas: tuple[Formula, ...]

    @cached_property
    def inequalities(self) -> tuple[Inequality, ...]:
        """All that occur, in order."""
        return tuple(dict.fromkeys(each for formula in self.formulas for each in leaves(formula, Inequality)))

    @cached_property
    def symbols(self) -> dict[str, Any]:
        """Every symbol that occurs, by its name, in order."""
        found = {symbol for each in self.inequalities for symbol in each.form.symbols}
        return {name_of(symbol): symbol for symbol in sorted(found)}

    @property
    def degree(self) -> int:
        """The largest number of factors in a product of symbols."""
        powers = (sum(power for _, power in m) for each in self.inequalities for m, _ in each.form.terms)
        return max(powers, default=0)

    @cached_property
    def text(self) -> str:
        """The obligation in SMT-LIB: "unsat" is to be shown of it."""
        lines = [f"(set-logic QF_{'N' if self.degree > 1 else 'L'}IRA)"]
        lines += [f"(declare-const |{name}| {'Int' if s.whole else 'Real'})" for name, s in self.symbols.items()]
        lines += [f"(assert {asserted(plain(formula))})" for formula in self.formulas]
        return "\n".join([*lines, "(check-sat)\n"])

    @cached_property
    def digest(self) -> str:
        """By which a certificate names it."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def refuted(self, steps: Iterable[str]) -> bool:
        """Whether no numbers meet the formulas, by the lemmas of steps. Raises `ProofRejected` where one is none."""
        return contradictory([*self.formulas, *(lemma(step, self.symbols) for step in steps)])


Bases = Callable[[Obligation], Basis]  # where they come from; nothing of a basis is believed unseen
