"""The search for lemmas: cvc5 proves an obligation, and of its Alethe proof the steps of arithmetic are kept.

Nothing here is believed. The rest of such a proof, 98 steps in 100, is left out: rewriting, clauses, holes, for which
Alethe has no rule. The branches of an obligation are few and followed anew. Where the steps do not close them, cvc5 is
asked about numbers in the place of products of symbols, beside products of what is known with what is positive.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from itertools import islice, product
from typing import Any

from dpaudit.base.installed import cvc5
from dpaudit.verify.alethe.branches import Inequality, Unknown, positive
from dpaudit.verify.alethe.obligations import Obligation
from dpaudit.verify.alethe.steps import Weighed, contradicting, lemma, weighed
from dpaudit.verify.alethe.terms import asserted, expressions, read_number, written
from dpaudit.verify.deadline import left_s
from dpaudit.verify.language.algebra import Formula, Monomial, Polynomial, Truth, mapped
from dpaudit.verify.proof import Basis, ProofRejected

PATIENCE_S = 5.0  # for one question; those of a sound proof take milliseconds
MOST_PRODUCTS = 2_000
OPTIONS = {"produce-proofs": "true", "proof-format-mode": "alethe", "simplification": "none", "produce-models": "true"}


class Search:
    """Bases that are found when they are asked for, and are then in the certificate."""

    def __init__(self) -> None:
        self.certificate: dict[str, Basis] = {}

    def __call__(self, obligation: Obligation) -> Basis:
        """Steps that refute the obligation, or values that meet it, if they were found."""
        if obligation.digest not in self.certificate:
            question = _Question(obligation)
            basis, steps = Basis(state=question.state), dict[str, None]()
            for way in (map(_step, question.sums), () if basis.state else _linear(obligation)):
                steps |= dict.fromkeys(way)
                if obligation.refuted(steps):
                    basis = Basis(tuple(steps))
                    break
            self.certificate[obligation.digest] = basis
        return self.certificate[obligation.digest]


class _Question:
    """An obligation put to cvc5."""

    def __init__(self, obligation: Obligation) -> None:
        self._symbols = obligation.symbols
        self._module = cvc5()
        self._solver = self._module.Solver(self._module.TermManager())
        patience = {"tlimit-per": str(math.ceil(1000 * left_s(PATIENCE_S)))}
        for option, value in (OPTIONS | patience).items():
            self._solver.setOption(option, value)
        self._parser = self._module.InputParser(self._solver)
        self._answer = self._said(obligation.text).strip()
        left_s()

    @property
    def state(self) -> Mapping[str, Fraction]:
        """Values that meet it; none where there are none, or not rational ones."""
        said = {name: self._said(f"(get-value (|{name}|))") for name in self._symbols if self._answer == "sat"}
        with suppress(ProofRejected):  # of a root, say
            return {name: read_number(expressions(value)[0][0][1]) for name, value in said.items()}
        return {}

    @property
    def sums(self) -> Iterator[Weighed]:
        """The contradictions of its refutation."""
        if self._answer != "unsat":
            return
        (proof,) = self._solver.getProof()
        named: dict[str, Any] = {}
        for step in expressions(self._solver.proofToString(proof, self._module.ProofFormat.ALETHE).decode())[0]:
            match _unnamed(step, named):
                case ["step", _, ["cl", *literals], ":rule", "la_generic", ":args", factors]:
                    with suppress(ProofRejected):
                        facts = weighed(literals, factors, self._symbols)
                        contradicting(facts)
                        yield facts

    def _said(self, text: str) -> str:
        """What cvc5 says to commands."""
        self._parser.setStringInput(self._module.InputLanguage.SMT_LIB_2_6, text, "obligation")
        said = []
        while not (command := self._parser.nextCommand()).isNull():
            said.append(str(command.invoke(self._solver, self._parser.getSymbolManager())))
        return "".join(said)


def _unnamed(expression: Any, named: dict[str, Any]) -> Any:
    """The expression with terms in the place of the names that they were given."""
    match expression:
        case ["!", term, ":named", str(name)]:
            named[name] = _unnamed(term, named)
            return named[name]
        case list():
            return [_unnamed(each, named) for each in expression]
    return named.get(expression, expression)


def _linear(obligation: Obligation) -> Iterator[str]:
    """Steps of a refutation by linear arithmetic alone.

    Each monomial is a number plus a multiple of one that all share, and that is 0 in the end: of two numbers that are
    equal cvc5 would put one for the other, and such steps are not of arithmetic.
    """
    products = dict(_products(obligation)) if obligation.degree > 1 else {}
    formulas = (*obligation.formulas, *(lemma(step, obligation.symbols) for step in products.values()))
    shared = Unknown("shared", "", whole=True)
    back: dict[Monomial, Polynomial] = {((shared, 1),): Polynomial()}
    numbers: dict[Monomial, Polynomial] = {}
    for monomial in sorted({m for each in Obligation(formulas).inequalities for m, _ in each.form.terms}):
        number = Unknown("product", f"{len(back)}", whole=all(symbol.whole for symbol, _ in monomial))
        numbers[monomial] = Polynomial.of(number) + Polynomial.of(shared).times(len(back))
        back[(number, 1),] = Polynomial(((monomial, Fraction(1)),))
    linear = (mapped(each, Inequality, lambda leaf: _put(leaf, numbers)) for each in formulas)
    for facts in _Question(Obligation(tuple(linear))).sums:
        meant = [(_put(fact, back), weight) for fact, weight in facts]
        known = [(fact, weight) for fact, weight in meant if isinstance(fact, Inequality)]
        if all(fact != Truth(False) for fact, _ in meant):
            yield from (products[fact] for fact, _ in known if fact in products)
            yield _step(known)


def _step(facts: Weighed) -> str:
    clause = " ".join(f"(not {asserted(fact)})" for fact, _ in facts)
    return f"(step t (cl {clause}) :rule la_generic :args ({' '.join(str(weight) for _, weight in facts)}))"


def _put(inequality: Inequality, values: Mapping[Monomial, Polynomial]) -> Formula:
    """With polynomials in the place of its monomials."""
    excess = (values[m].times(c) if m else Polynomial.number(c) for m, c in inequality.excess.terms)
    return positive(sum(excess, start=Polynomial()), strict=inequality.strict)


def _products(obligation: Obligation) -> Iterator[tuple[Formula, str]]:
    """What follows for products of its inequalities with what is positive, each with its step."""
    for sign, each in islice(product(obligation.inequalities, repeat=2), MOST_PRODUCTS):
        if sign.least > 0 or sign.least == 0 and sign.strict:
            factor = -sign.form if sign.opposite else sign.form
            shown = positive(factor * each.excess, strict=each.strict)
            if isinstance(shown, Inequality) and Obligation((shown,)).degree <= obligation.degree:
                m, left, order = written(factor), written(each.excess), ">" if each.strict else ">="
                clause = f"(=> (and (> {m} 0.0) ({order} {left} 0.0)) ({order} (* {m} {left}) (* {m} 0.0)))"
                yield shown, f"(step t (cl {clause}) :rule la_mult_pos)"
