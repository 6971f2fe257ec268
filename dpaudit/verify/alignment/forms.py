"""Linear forms: what a value is made of, and how far it is from its value in the second run.

A form is a mapping from atoms to factors; `ONE` stands for the number 1. Forms are never changed in place.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from fractions import Fraction

Atom = Hashable
Form = dict[Atom, Fraction]

ONE = ""
ANSWER, INDEX, LENGTH = "@answer", "@index", "@length"
MOVED = "@d"  # how far the current answer moves from the first dataset to the second


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
    result = form.get(ONE, Fraction(0))
    for atom, value in form.items():
        if atom in values:
            result += value * values[atom]
    return result
