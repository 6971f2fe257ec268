"""Steps of Alethe that are lemmas of arithmetic: each is believed only where exact arithmetic shows its clause.

`la_generic`: the opposites of its literals, each times its factor, add up to a contradiction (Farkas): sums of what is
at least 0 cannot be a number below it. `la_mult_pos`: what is multiplied by a positive number keeps its sign. An
inequality of whole numbers is first brought to whole limits. Such a clause holds for all numbers, so the step needs no
premise, and a clause that was read wrongly but is shown is a lemma all the same.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpaudit.verify.alethe.branches import Inequality, positive, unit_of
from dpaudit.verify.alethe.terms import expressions, read_number, read_polynomial
from dpaudit.verify.language.algebra import Both, Either, Formula, Opposite, Polynomial, Truth
from dpaudit.verify.proof import ProofRejected

Weighed = list[tuple[Inequality, Fraction]]  # inequalities and how often each is taken, at least 0
AGAINST = {">=": "<", ">": "<=", "<=": ">", "<": ">="}


def lemma(step: str, symbols: Mapping[str, Any]) -> Formula:
    """The clause of a step over these symbols. Raises `ProofRejected` where it is not shown."""
    match expressions(step):
        case [["step", str(), ["cl", *literals], ":rule", "la_generic", ":args", [*factors]]]:
            return contradicting(weighed(literals, factors, symbols))
        case [["step", str(), ["cl", ["=>", ["and", sign, given], product]], ":rule", "la_mult_pos"]]:
            return multiplied(sign, given, product, symbols)
    raise ProofRejected(f"no step of a rule that is known: {step[:80]}")


def contradicting(facts: Weighed) -> Formula:
    """That not all of the inequalities hold. Raises `ProofRejected` unless their sum is a contradiction."""
    total = sum((fact.excess.times(weight) for fact, weight in facts), start=Polynomial())
    strict = any(fact.strict and weight for fact, weight in facts)
    if any(weight < 0 for _, weight in facts) or positive(total, strict=strict) != Truth(False):
        raise ProofRejected(f"la_generic: the sum {total} is no contradiction")
    return Opposite(Both(tuple(fact for fact, _ in facts)))


def weighed(literals: Sequence[Any], factors: Sequence[Any], symbols: Mapping[str, Any]) -> Weighed:
    """The opposites of literals with their factors; of an equation the side that its factor takes."""
    found: Weighed = []
    if len(literals) != len(factors):
        raise ProofRejected("la_generic: as many factors as literals are wanted")
    for literal, factor in zip(literals, map(read_number, factors), strict=True):
        match literal:
            case ["not", ["=", left, right]]:
                known = [">=" if factor >= 0 else "<=", left, right]
            case ["not", known]:
                pass
            case [">=" | ">" | "<=" | "<" as order, left, right]:
                known = [AGAINST[order], left, right]
            case _:
                raise ProofRejected(f"la_generic: no literal of arithmetic: {literal}")
        fact, difference = compared(known, symbols)
        if isinstance(fact, Inequality):
            found.append((fact, abs(factor * unit_of(difference))))
    return found


def multiplied(sign: Any, given: Any, product: Any, symbols: Mapping[str, Any]) -> Formula:
    """m > 0 and l (order) r imply m l (order) m r. Raises `ProofRejected` where these are not of that form."""
    (first, factor), (second, known), (third, shown) = (compared(each, symbols) for each in (sign, given, product))
    if sign[0] != ">" or given[0] != product[0] or shown != factor * known:
        raise ProofRejected("la_mult_pos: not the product of both")
    return Either((Opposite(first), Opposite(second), third))


def compared(expression: Any, symbols: Mapping[str, Any]) -> tuple[Formula, Polynomial]:
    """A comparison that is no equation, and the difference of its sides. Raises `ProofRejected`."""
    match expression:
        case [">=" | ">" | "<=" | "<" as order, left, right]:
            difference = read_polynomial(left, symbols) - read_polynomial(right, symbols)
            above = difference if order[0] == ">" else -difference
            return positive(above, strict=len(order) == 1), difference
    raise ProofRejected(f"no inequality: {expression}")
