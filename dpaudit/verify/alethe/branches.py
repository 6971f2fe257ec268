"""Inequalities in one form, so that equal ones are equal objects; and whether formulas of them contradict each other.

Why that is a refutation. `contradictory` follows every way in which all formulas could hold together, and leaves one
only where an inequality contradicts another on the same linear form, one number against the other. All further
arithmetic is in lemmas, which are true of all numbers and stand among the formulas.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from dpaudit.verify.deadline import left_s
from dpaudit.verify.language.algebra import Both, Either, Formula, Opposite, Polynomial, TooLarge, Truth

MOST_WORK = 100_000  # inequalities looked at; an obligation of a proof needs some hundreds


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
class Inequality(Formula):
    """form >= least, or -form >= least where it is `opposite`; > where it is `strict`.

    The form has coprime whole coefficients, the first of them positive, and no constant. Where every symbol is whole,
    the least is whole and not strict.
    """

    form: Polynomial
    opposite: bool
    least: Fraction
    strict: bool

    @property
    def excess(self) -> Polynomial:
        """What is at least 0, or above it."""
        return (-self.form if self.opposite else self.form) - Polynomial.number(self.least)


def positive(polynomial: Polynomial, *, strict: bool) -> Formula:
    """polynomial > 0, or >= 0: an inequality, or a truth where there is no symbol."""
    constant = next((value for monomial, value in polynomial.terms if not monomial), Fraction(0))
    if len(polynomial.terms) == bool(constant):
        return Truth(constant > 0 or constant == 0 and not strict)
    unit = unit_of(polynomial)
    form = (polynomial - Polynomial.number(constant)).times(1 / unit)
    return _least(form, unit < 0, -constant / abs(unit), strict)


def unit_of(polynomial: Polynomial) -> Fraction:
    """What the coefficients are divided by to be coprime and whole, the first positive; the constant aside."""
    values = [value for monomial, value in polynomial.terms if monomial]
    size = Fraction(math.gcd(*(v.numerator for v in values)), math.lcm(*(v.denominator for v in values)))
    return size if values[0] > 0 else -size


def _least(form: Polynomial, opposite: bool, least: Fraction, strict: bool) -> Inequality:
    if all(symbol.whole for symbol in form.symbols):
        least, strict = Fraction(math.floor(least) + 1 if strict else math.ceil(least)), False
    return Inequality(form, opposite, least, strict)


def plain(formula: Formula, holds: bool = True) -> Formula:
    """The formula, or its opposite, without the word "not"."""
    match formula:
        case Opposite(part):
            return plain(part, not holds)
        case Both(parts) | Either(parts):
            kind = Both if isinstance(formula, Both) == holds else Either
            return kind(tuple(plain(part, holds) for part in parts))
        case Truth(truth):
            return Truth(truth == holds)
        case Inequality(form, opposite, least, strict) if not holds:
            return _least(form, not opposite, -least, not strict)
    return formula


Bounds = dict[tuple[Polynomial, bool], tuple[Fraction, bool]]  # of a branch: the largest least of each form


def contradictory(formulas: Iterable[Formula]) -> bool:
    """Whether no numbers meet all formulas, as far as that is seen without arithmetic. Raises `TooLarge`."""
    branches: list[tuple[Bounds, Sequence[Formula]]] = [({}, [plain(formula) for formula in formulas])]
    work = 0
    while branches:
        left_s()
        bounds, todo = branches.pop()
        work += sum(len(getattr(each, "parts", "-")) for each in todo)
        if work > MOST_WORK:
            raise TooLarge(f"more than {MOST_WORK} inequalities in the branches of an obligation")
        choices = _choices(bounds, todo)
        if choices:
            first, *rest = choices
            branches += [(dict(bounds), [part, *rest]) for part in reversed(first.parts)]
        elif choices is not None:
            return False
    return True


def _choices(bounds: Bounds, formulas: Iterable[Formula]) -> list[Either] | None:
    """Adds to the bounds what must hold; gives the choices that are left, None where there is a contradiction."""
    todo, choices = [*formulas][::-1], []
    while todo:
        match _reduced(todo.pop(), bounds):
            case Inequality() as each:
                bounds[each.form, each.opposite] = each.least, each.strict
            case Both(parts):
                todo += reversed(parts)
            case Either() as choice:
                choices.append(choice)
            case Truth(False):
                return None
    return choices


def _reduced(formula: Formula, bounds: Bounds) -> Formula:
    """What is left of a formula without "not" where the bounds hold."""
    match formula:
        case Inequality(form, opposite, least, strict):
            if (known := bounds.get((form, opposite))) is not None and known >= (least, strict):
                return Truth(True)
            if (against := bounds.get((form, not opposite))) is not None:
                total = least + against[0]  # at most 0, or no number lies between the two
                if total > 0 or total == 0 and (strict or against[1]):
                    return Truth(False)
        case Both(parts) | Either(parts):
            ends = isinstance(formula, Either)  # one such part is enough
            left = []
            for part in parts:
                reduced = _reduced(part, bounds)
                if not isinstance(reduced, Truth):
                    left.append(reduced)
                elif reduced.holds == ends:
                    return reduced
            return Truth(not ends) if not left else left[0] if len(left) == 1 else type(formula)(tuple(left))
    return formula
