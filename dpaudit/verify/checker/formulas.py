"""Facts about a state: comparisons with 0, joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dpaudit.verify.checker.ratios import Ratio, Symbol
from dpaudit.verify.language.facts import ORDERS
from dpaudit.verify.language.nodes import Order


@dataclass(frozen=True, slots=True)
class Truth:
    """True or false for every state."""

    holds: bool


@dataclass(frozen=True, slots=True)
class Sign:
    """ratio (order) 0."""

    order: Order
    ratio: Ratio


@dataclass(frozen=True, slots=True)
class Both:
    """Every part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """Some part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Opposite:
    """The part does not hold."""

    part: Formula


Formula = Truth | Sign | Both | Either | Opposite


def compared(order: Order, left: Ratio, right: Ratio) -> Formula:
    """left (order) right; decided at once where both are the same or numbers."""
    difference = left - right
    number = difference.constant
    return Sign(order, difference) if number is None else Truth(bool(ORDERS[order](number, 0)))


def put(formula: Formula, values: Mapping[Symbol, Ratio]) -> Formula:
    """The formula with ratios in the place of symbols."""
    match formula:
        case Truth():
            return formula
        case Sign(order, ratio):
            return compared(order, ratio.put(values), Ratio.number(0))
        case Both(parts):
            return Both(tuple(put(part, values) for part in parts))
        case Either(parts):
            return Either(tuple(put(part, values) for part in parts))
        case Opposite(part):
            return Opposite(put(part, values))


def symbols(formula: Formula) -> frozenset[Symbol]:
    """Every symbol that occurs."""
    match formula:
        case Truth():
            return frozenset()
        case Sign(_, ratio):
            return ratio.symbols
        case Both(parts) | Either(parts):
            return frozenset().union(*map(symbols, parts))
        case Opposite(part):
            return symbols(part)


def decided(formula: Formula, known: Callable[[Sign], bool | None] = lambda sign: None) -> bool | None:
    """Whether the formula holds whatever the state; None where that is not plain. `known` may decide more signs."""
    match formula:
        case Truth(holds):
            return holds
        case Sign(order, ratio):
            return known(formula) if ratio.constant is None else bool(ORDERS[order](ratio.constant, 0))
        case Both(parts):
            return _all([decided(part, known) for part in parts])
        case Either(parts):
            opposite = _all([_flipped(decided(part, known)) for part in parts])
            return _flipped(opposite)
        case Opposite(part):
            return _flipped(decided(part, known))


def _all(parts: list[bool | None]) -> bool | None:
    if any(part is False for part in parts):
        return False
    return None if any(part is None for part in parts) else True


def _flipped(part: bool | None) -> bool | None:
    return None if part is None else not part
