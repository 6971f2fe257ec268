"""Conditions over linear forms, in the first run and, moved, in the second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from dpaudit.verify.alignment.forms import ONE, Atom, Form, add, at, substituted
from dpaudit.verify.language.facts import ORDERS
from dpaudit.verify.language.nodes import Order


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """value (order) 0; in the second run value + moved (order) 0."""

    order: Order
    value: Form
    moved: Form


@dataclass(frozen=True, slots=True)
class Truth:
    """True or false, in both runs."""

    value: bool


@dataclass(frozen=True, slots=True)
class Unknown:
    """A public condition that is not looked into: the same in both runs."""

    name: str


@dataclass(frozen=True, slots=True)
class Joined:
    """All parts, or some part."""

    every: bool
    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Negated:
    """Not the part."""

    part: Formula


Formula = Leaf | Truth | Unknown | Joined | Negated


def leaves(formula: Formula) -> Iterator[Leaf]:
    """The comparisons in a formula."""
    match formula:
        case Leaf():
            yield formula
        case Joined(_, parts):
            for part in parts:
                yield from leaves(part)
        case Negated(part):
            yield from leaves(part)


def public(formula: Formula) -> bool:
    """Whether nothing in it moves, so that both runs agree on it."""
    return not any(leaf.moved for leaf in leaves(formula))


def with_moves(formula: Formula, values: Mapping[Atom, Form]) -> Formula:
    """The formula with atoms of its moves replaced, such as the shift of a draw."""
    match formula:
        case Leaf(order, value, moved):
            return Leaf(order, value, substituted(moved, values)) if moved else formula
        case Joined(every, parts):
            return Joined(every, tuple(with_moves(part, values) for part in parts))
        case Negated(part):
            return Negated(with_moves(part, values))
    return formula


def second(formula: Formula) -> Formula:
    """What the second run asks."""
    match formula:
        case Leaf(order, value, moved):
            return Leaf(order, add(value, moved), {})
        case Joined(every, parts):
            return Joined(every, tuple(second(part) for part in parts))
        case Negated(part):
            return Negated(second(part))
    return formula


def decided(formula: Formula, values: Mapping[Atom, Fraction]) -> bool | None:
    """The truth in the first run where these atoms have these values; None where they do not decide it.

    >>> decided(Leaf(">=", {"a": Fraction(1), ONE: Fraction(-2)}, {}), {"a": Fraction(2)})
    True
    """
    match formula:
        case Truth(value):
            return value
        case Leaf(order, value, _):
            known = _number(value, values)
            return None if known is None else bool(ORDERS[order](known, 0))
        case Negated(part):
            found = decided(part, values)
            return None if found is None else not found
        case Joined(every, parts):
            found_all = [decided(part, values) for part in parts]
            if (not every) in found_all:
                return not every
            return None if None in found_all else every
    return None


def holds(formula: Formula, values: Mapping[Atom, Fraction], unknown: Mapping[str, bool]) -> bool:
    """The truth in the first run at a state that gives every atom a value (0 where it names none)."""
    match formula:
        case Truth(value):
            return value
        case Unknown(name):
            return unknown.get(name, False)
        case Leaf(order, value, _):
            return bool(ORDERS[order](at(value, values), 0))
        case Joined(every, parts):
            return (all if every else any)(holds(part, values, unknown) for part in parts)
        case Negated(part):
            return not holds(part, values, unknown)


def value_at(atom: Atom, values: Mapping[Atom, Fraction]) -> Fraction | None:
    """The value of an atom, also of a remainder or a whole quotient of known numbers."""
    if atom in values:
        return values[atom]
    if isinstance(atom, tuple) and atom[0] in ("//", "%"):
        left, right = (_number(dict(part), values) for part in atom[1:])
        if left is None or not right:
            return None
        return Fraction(left // right) if atom[0] == "//" else left % right
    return None


def _number(form: Form, values: Mapping[Atom, Fraction]) -> Fraction | None:
    result = Fraction(0)
    for atom, factor in form.items():
        known = Fraction(1) if atom == ONE else value_at(atom, values)
        if known is None:
            return None
        result += factor * known
    return result
