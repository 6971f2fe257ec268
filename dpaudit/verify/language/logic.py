"""And, or, not: how facts about a state are joined, whatever they say.

Search and checker state facts in their own terms. Logic judges nothing, but what is wrong here is wrong for both:
this module is among those that must be right for PROVED.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from dpaudit.base.installed import z3


class Formula:
    """A fact: one of those below, or a leaf, which derives from this class and says something about numbers."""

    __slots__ = ()


Leaf = TypeVar("Leaf", bound=Formula)


@dataclass(frozen=True, slots=True)
class Truth(Formula):
    """True or false for every state."""

    holds: bool


@dataclass(frozen=True, slots=True)
class Both(Formula):
    """Every part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Either(Formula):
    """Some part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Opposite(Formula):
    """The part does not hold."""

    part: Formula


def leaves(formula: Formula, kind: type[Leaf]) -> Iterator[Leaf]:
    """The leaves of this kind."""
    match formula:
        case Both(parts) | Either(parts):
            for part in parts:
                yield from leaves(part, kind)
        case Opposite(part):
            yield from leaves(part, kind)
        case kind():
            yield formula


def mapped(formula: Formula, kind: type[Leaf], change: Callable[[Leaf], Formula]) -> Formula:
    """The formula with others in the place of its leaves of this kind."""
    match formula:
        case Both(parts):
            return Both(tuple(mapped(part, kind, change) for part in parts))
        case Either(parts):
            return Either(tuple(mapped(part, kind, change) for part in parts))
        case Opposite(part):
            return Opposite(mapped(part, kind, change))
        case kind():
            return change(formula)
    return formula


def decided(formula: Formula, known: Callable[[Formula], bool | None]) -> bool | None:
    """Whether the formula holds, where `known` says it of leaves; None where that does not decide it.

    >>> decided(Either((Opposite(Truth(True)), Formula())), lambda leaf: None)
    """
    match formula:
        case Truth(holds):
            return holds
        case Both(parts) | Either(parts):
            ends = isinstance(formula, Either)  # one such part is enough
            found = [decided(part, known) for part in parts]
            return ends if ends in found else None if None in found else not ends
        case Opposite(part):
            opposite = decided(part, known)
            return None if opposite is None else not opposite
    return known(formula)


def term(formula: Formula, leaf: Callable[[Any], Any]) -> Any:
    """The formula as z3 has it, where `leaf` says it of leaves."""
    match formula:
        case Truth(holds):
            return z3().BoolVal(holds)
        case Both(parts):
            return z3().And([term(part, leaf) for part in parts])
        case Either(parts):
            return z3().Or([term(part, leaf) for part in parts])
        case Opposite(part):
            return z3().Not(term(part, leaf))
    return leaf(formula)
