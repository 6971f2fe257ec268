"""What is said of a result of two runs holds for all numbers of the spans: tried on numbers of both runs."""

from __future__ import annotations

import ast
import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from dpaudit.verify.coupled import arithmetic
from dpaudit.verify.coupled.values import ALL, STILL, PairedNumber, Span
from tests.cases import for_each

TRIED = 400


def numbers(draws: random.Random, whole: bool = False) -> tuple[PairedNumber, Fraction, Fraction]:
    """A number of two runs, and what it is in the first run and in the second."""
    parts = 1 if whole else 4
    low, wide, moved = draws.randint(-12, 8), draws.randint(0, 12), draws.choice([0, 0, 1, 1, 3, 6])
    first = Fraction(low + draws.randint(0, wide), parts)
    far = draws.randint(-moved, moved)
    second = min(max(first + Fraction(far, parts), Fraction(low, parts)), Fraction(low + wide, parts))
    span = Span(Fraction(low, parts), Fraction(low + wide, parts))
    if draws.random() < 0.2:
        span = ALL
    return PairedNumber(True, span, Span(Fraction(-moved, parts), Fraction(moved, parts)), whole), first, second


def within(found: PairedNumber, first: Any, second: Any) -> bool:
    near = 1e-9 if isinstance(first, float) else 0
    return (
        found.span.low - near <= first <= found.span.high + near
        and found.span.low - near <= second <= found.span.high + near
        and found.moved.low - near <= second - first <= found.moved.high + near
        and (not found.whole or first == int(first))
    )


TWO: dict[str, tuple[Callable[..., PairedNumber], Callable[[Any, Any], Any]]] = {
    "add": (arithmetic.add, lambda a, b: a + b),
    "subtract": (arithmetic.subtract, lambda a, b: a - b),
    "multiply": (arithmetic.multiply, lambda a, b: a * b),
    "divide": (arithmetic.divide, lambda a, b: a / b),
    "minimum": (lambda a, b: arithmetic.extreme(a, b, min), min),
    "maximum": (lambda a, b: arithmetic.extreme(a, b, max), max),
}
ONE: dict[str, tuple[Callable[[PairedNumber], PairedNumber], Callable[[Any], Any]]] = {
    "floor": (arithmetic.whole_steps, math.floor),
    "ceil": (arithmetic.whole_steps, math.ceil),
    "int": (lambda a: arithmetic.whole_steps(a, to_zero=True), int),
    "round": (lambda a: arithmetic.whole_steps(a, to_even=True), round),
    "abs": (arithmetic.absolute, abs),
    "square": (lambda a: arithmetic.power(a, 2), lambda a: a**2),
    "cube": (lambda a: arithmetic.power(a, 3), lambda a: a**3),
    "exp": (lambda a: arithmetic.monotone(a, math.exp), math.exp),
    "atan": (lambda a: arithmetic.monotone(a, math.atan), math.atan),
}


@for_each("name", TWO)
def test_what_comes_of_two_numbers(name: str) -> None:
    rule, python = TWO[name]
    draws, undefined = random.Random(1), 0
    for _ in range(TRIED):
        (one, a, a2), (two, b, b2) = numbers(draws, draws.random() < 0.5), numbers(draws, draws.random() < 0.5)
        try:
            found = rule(one, two)
        except arithmetic.Undefined:
            undefined += 1
            assert two.span.low <= 0 <= two.span.high
            continue
        if b and b2:
            assert within(found, python(a, b), python(a2, b2)), (one, two, found)
    assert undefined < TRIED / 2


@for_each("name", ONE)
def test_what_comes_of_one_number(name: str) -> None:
    rule, python = ONE[name]
    draws = random.Random(2)
    for _ in range(TRIED):
        one, a, a2 = numbers(draws, draws.random() < 0.3)
        assert within(rule(one), python(a), python(a2)), one


def test_rounding_to_even_moves_by_two() -> None:
    """From 1/2 to 3/2 is from 0 to 2: the bound of a step would be broken."""
    moved = arithmetic.whole_steps(PairedNumber(True, ALL, Span(Fraction(1), Fraction(1))), to_even=True).moved
    assert moved.low <= round(1.5) - round(0.5) <= moved.high
    assert round(1.5) - round(0.5) == 2


@for_each("order", [ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq])
def test_what_spans_decide_is_what_python_decides(order: type[ast.cmpop]) -> None:
    from dpaudit.verify.coupled.expressions import ORDERS

    draws, known = random.Random(3), 0
    for _ in range(TRIED):
        (one, a, a2), (two, b, b2) = numbers(draws, draws.random() < 0.5), numbers(draws, draws.random() < 0.5)
        found = arithmetic.compare(order(), one, two)
        if isinstance(found, bool):
            known += 1
            assert found is ORDERS[order](a, b) is ORDERS[order](a2, b2)
    assert known > TRIED / 20


def test_doubles_are_not_told_apart_by_less_than_a_hair() -> None:
    tenth = PairedNumber(True, Span(Fraction(0), Fraction(0.1)))
    three = arithmetic.scaled(tenth, Fraction(3))
    assert not isinstance(
        arithmetic.compare(ast.Lt(), three, PairedNumber(True, Span(Fraction(0.1 * 3), Fraction(1)))), bool
    )


def test_a_number_is_the_same_where_nothing_that_differs_is_in_it() -> None:
    assert PairedNumber(True, ALL, STILL).same
    assert not PairedNumber(True, ALL, Span(Fraction(0), Fraction(1))).same
    fixed = PairedNumber(True, Span(Fraction(2), Fraction(2)), Span(Fraction(-1), Fraction(1)))
    assert fixed.moved == STILL
    assert not fixed.same  # 2 in one run may be 2.0 in the other
    assert not arithmetic.scaled(PairedNumber(True, ALL, Span(Fraction(0), Fraction(1))), Fraction(0)).same


@pytest.mark.parametrize("least", [Fraction(0), Fraction(-1)])
def test_a_division_by_what_may_be_0_is_refused(least: Fraction) -> None:
    by = PairedNumber(True, Span(least, Fraction(3)), Span(Fraction(0), Fraction(1)))
    with pytest.raises(arithmetic.Undefined):
        arithmetic.divide(PairedNumber(), by)
