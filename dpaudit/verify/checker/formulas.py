"""Facts about a state: comparisons of ratios with 0, joined; and the one error of the checker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dpaudit.errors import DpAuditError
from dpaudit.verify.checker.ratios import Ratio, Unknown
from dpaudit.verify.language import logic
from dpaudit.verify.language.facts import ORDERS
from dpaudit.verify.language.logic import Formula, Truth
from dpaudit.verify.language.nodes import Order


class ProofRejected(DpAuditError):
    """A stored proof does not show what it says: the message names the obligation, and a state that breaks it.

    That the program breaks its claim does not follow; another proof may exist.
    """

    exit_code = 1


@dataclass(frozen=True, slots=True)
class Sign(Formula):
    """ratio (order) 0."""

    order: Order
    ratio: Ratio


def compared(order: Order, left: Ratio, right: Ratio) -> Formula:
    """left (order) right; decided at once where both are the same or numbers."""
    difference = left - right
    number = difference.constant
    return Sign(order, difference) if number is None else Truth(bool(ORDERS[order](number, 0)))


def put(formula: Formula, values: Mapping[Unknown, Ratio]) -> Formula:
    """The formula with ratios in the place of symbols."""
    zero = Ratio.number(0)
    return logic.mapped(formula, Sign, lambda sign: compared(sign.order, sign.ratio.put(values), zero))


def symbols(formula: Formula) -> frozenset[Unknown]:
    """Every symbol that occurs."""
    return frozenset().union(*(sign.ratio.symbols for sign in logic.leaves(formula, Sign)))


def decided(formula: Formula, known: Callable[[Sign], bool | None] = lambda sign: None) -> bool | None:
    """Whether the formula holds whatever the state; None where that is not plain. `known` may decide more signs."""

    def of_sign(sign: Formula) -> bool | None:
        assert isinstance(sign, Sign)
        number = sign.ratio.constant
        return known(sign) if number is None else bool(ORDERS[sign.order](number, 0))

    return logic.decided(formula, of_sign)
