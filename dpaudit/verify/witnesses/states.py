"""One run in progress at concrete answers: what its names stand for, what its draws must satisfy, what it gave out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dpaudit.verify.language import nodes
from dpaudit.verify.witnesses.errors import OutsideIntegrals
from dpaudit.verify.witnesses.linear import Draw, Linear, Unknown, Value
from dpaudit.verify.witnesses.outputs import Released


@dataclass(slots=True)
class State:
    """Where a run is. `constraints` are positive: together they are what makes the run take its path."""

    answers: tuple[Fraction, ...]
    parameters: Mapping[str, Fraction]
    names: dict[str, Value | Unknown] = field(default_factory=dict)
    index: int | None = None
    draws: tuple[Draw, ...] = ()
    constraints: tuple[Linear, ...] = ()
    outputs: tuple[Released, ...] = ()
    seen: int = 0  # values that the running maximum was offered
    rivals: tuple[Linear, ...] = ()  # those that came before the one that wins
    best: Linear | None = None  # the value that wins

    def copy(self) -> State:
        """The same run, to go on by itself."""
        return State(
            self.answers,
            self.parameters,
            dict(self.names),
            self.index,
            self.draws,
            self.constraints,
            self.outputs,
            self.seen,
            self.rivals,
            self.best,
        )


def number(expression: nodes.Expression, state: State, line: int | None) -> Linear:
    """The value of an expression that is a number. Raises `OutsideIntegrals` where it is none."""
    value = evaluated(expression, state, line)
    if isinstance(value, Linear):
        return value
    raise OutsideIntegrals("a number is needed here, not a symbol or a value that is not known yet", line)


def evaluated(expression: nodes.Expression, state: State, line: int | None) -> Value | Unknown:
    """The value of an expression without comparisons."""
    match expression:
        case nodes.Number(value):
            return Linear(value)
        case nodes.Symbol():
            return expression
        case nodes.Parameter(name):
            return Linear(state.parameters[name])
        case nodes.Variable(name):
            if name not in state.names:
                raise OutsideIntegrals(f"{name} has no value here", line)
            return state.names[name]
        case nodes.Answer():
            return Linear(state.answers[0 if state.index is None else state.index])
        case nodes.Index():
            return Linear(Fraction(_index(state, line)))
        case nodes.Length():
            return Linear(Fraction(len(state.answers)))
        case nodes.Arithmetical(operation, left, right):
            return _computed(operation, number(left, state, line), number(right, state, line), line)
    raise OutsideIntegrals(f"a {type(expression).__name__} cannot stand here", line)


def _index(state: State, line: int | None) -> int:
    if state.index is None:
        raise OutsideIntegrals("the index of the loop is used outside it", line)
    return state.index


def _computed(operation: nodes.Operation, left: Linear, right: Linear, line: int | None) -> Linear:
    if operation == "+":
        return left + right
    if operation == "-":
        return left - right
    if operation == "*":
        if left.is_number:
            return right.times(left.constant)
        if right.is_number:
            return left.times(right.constant)
        raise OutsideIntegrals("a product of two draws is outside the integrals", line)
    if not right.is_number:
        raise OutsideIntegrals("a division by a draw is outside the integrals", line)
    if right.constant == 0:
        raise OutsideIntegrals("a division by 0", line)
    if operation == "/":
        return left.times(1 / right.constant)
    if not left.is_number:
        raise OutsideIntegrals(f"{operation} of a draw is outside the integrals", line)
    quotient = Fraction(math.floor(left.constant / right.constant))
    return Linear(quotient if operation == "//" else left.constant - quotient * right.constant)


Split = tuple[bool, tuple[Linear, ...]]  # whether a condition is true, and what must be positive for it


def splits(condition: nodes.Expression, state: State, line: int | None) -> list[Split]:
    """How a condition can come out: cases that exclude one another and leave out only probability 0."""
    match condition:
        case nodes.Compared(order, left, right):
            return _compared(order, evaluated(left, state, line), evaluated(right, state, line), line)
        case nodes.Not(part):
            return [(not truth, needs) for truth, needs in splits(part, state, line)]
        case nodes.All(parts):
            return _in_order(parts, state, line, ends=False)
        case nodes.Any(parts):
            return _in_order(parts, state, line, ends=True)
    value = evaluated(condition, state, line)
    if isinstance(value, nodes.Symbol) and value.name in ("True", "False"):
        return [(value.name == "True", ())]
    raise OutsideIntegrals("a condition must be a comparison", line)


def _in_order(parts: tuple[nodes.Expression, ...], state: State, line: int | None, *, ends: bool) -> list[Split]:
    """`and` (the first False ends it) and `or` (the first True does), read from the left."""
    found: list[Split] = []
    reached: list[tuple[Linear, ...]] = [()]
    for part in parts:
        if not reached:
            break
        cases = splits(part, state, line)
        found += [(ends, before + needs) for before in reached for truth, needs in cases if truth is ends]
        reached = [before + needs for before in reached for truth, needs in cases if truth is not ends]
    return found + [(not ends, needs) for needs in reached]


def _compared(order: nodes.Order, left: Value | Unknown, right: Value | Unknown, line: int | None) -> list[Split]:
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        raise OutsideIntegrals("the running maximum is used for more than its result", line)
    if isinstance(left, nodes.Symbol) or isinstance(right, nodes.Symbol):
        if order not in ("==", "!="):
            raise OutsideIntegrals(f"a symbol is compared with {order}", line)
        return [((left == right) is (order == "=="), ())]
    difference = left - right
    if difference.is_number:
        return [(_holds(order, difference.constant), ())]
    if order in ("==", "!="):  # a sum of draws has no atoms
        return [(order == "!=", ())]
    above = order in (">", ">=")
    return [(above, (difference,)), (not above, (-difference,))]


def _holds(order: nodes.Order, difference: Fraction) -> bool:
    match order:
        case "<":
            return difference < 0
        case "<=":
            return difference <= 0
        case ">":
            return difference > 0
        case ">=":
            return difference >= 0
        case "==":
            return difference == 0
        case "!=":
            return difference != 0
