"""Numbers of two runs: where a result lies, and how far the second run's is from the first's.

Each rule holds for all pairs of numbers in the spans that are given; `moved` of a result is a bound for every pair.
"""

import ast
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpaudit.verify.coupled.values import ALL, AT_LEAST_0, STILL, Bound, PairedNumber, PairedTruth, Span

ZERO, ONE = Fraction(0), Fraction(1)
UNIT = Span(-ONE, ONE)
HAIR = Fraction(1, 10**9)  # relative: between numbers that doubles surely tell apart


class Undefined(Exception):
    """An operation that raises for some of the numbers, on one dataset perhaps and not on the other."""


def add(one: PairedNumber, two: PairedNumber) -> PairedNumber:
    """one + two."""
    start, offset = one.start, one.offset + two.span
    if start is None:
        start, offset = two.start, two.offset + one.span
    elif two.start is not None:
        start = None
    less, alone = one.less, one.alone + two.moved
    if less is None:
        less, alone = two.less, two.alone + one.moved
    elif two.less is not None:
        less = None
    whole = one.whole and two.whole
    same = one.same and two.same
    return PairedNumber(same, one.span + two.span, one.moved + two.moved, whole, start, offset, less, alone)


def subtract(one: PairedNumber, two: PairedNumber) -> PairedNumber:
    """one - two: where two is one number for all that it is taken from, how each moves without it is remembered."""
    found = add(one, scaled(two, -ONE, True))
    if any(one is each or one.entry_of is each is not None for each in two.top):
        found = replace(found, span=found.span & Span(-math.inf, ZERO))
    if two.moved != STILL and one.less is None:
        return replace(found, less=(two, -ONE), alone=one.moved)
    return found


def scaled(one: PairedNumber, factor: Fraction, whole: bool = False) -> PairedNumber:
    """factor * one."""
    by = Span(factor, factor)
    less = None if one.less is None else (one.less[0], one.less[1] * factor)
    return PairedNumber(one.same, one.span * by, one.moved * by, one.whole and whole, less=less, alone=one.alone * by)


def multiply(one: PairedNumber, two: PairedNumber) -> PairedNumber:
    """one * two."""
    for number, other in ((one, two), (two, one)):
        if number.span.width == 0 and not math.isinf(number.span.low):
            found = scaled(other, Fraction(number.span.low), number.whole)
            return found if number.same else replace(found, same=False)
    moved = one.span * two.moved + two.span * one.moved + one.moved * two.moved
    return PairedNumber(one.same and two.same, one.span * two.span, moved, one.whole and two.whole)


def divide(one: PairedNumber, two: PairedNumber, alone: bool = False) -> PairedNumber:
    """one / two. Raises `Undefined` where two may be 0 in one run alone; `alone`: only one run divides."""
    over = two.span.inverse() if two.span.low > 0 or two.span.high < 0 else None
    if over is None:
        if not two.same or alone:
            raise Undefined("a division by what may be 0")
        return PairedNumber(one.same, ALL, STILL if one.moved == STILL else ALL)
    if two.span.width == 0:
        found = scaled(one, Fraction(over.low))
        return found if two.same else replace(found, same=False)
    if two.moved == STILL:
        return PairedNumber(one.same and two.same, one.span * over, one.moved * over)
    return PairedNumber(False, one.span * over, ALL)


def whole_steps(one: PairedNumber, to_even: bool = False, to_zero: bool = False) -> PairedNumber:
    """The number rounded up, down, towards 0, or to the nearest (`to_even`: from 1/2 to 0, and from 3/2 to 2)."""
    if one.whole:
        return one
    moved = one.moved
    if moved != STILL:
        low, high = moved = outwards(moved)
        moved = moved + UNIT if to_even else Span(min(low, ZERO), max(high, ZERO)) if to_zero else moved
    return PairedNumber(one.same, outwards(one.span), moved, True)


def outwards(span: Span) -> Span:
    """The ends rounded to whole numbers, away from one another."""
    low, high = span
    return Span(
        low if math.isinf(low) else Fraction(math.floor(low)), high if math.isinf(high) else Fraction(math.ceil(high))
    )


def extreme(one: PairedNumber, two: PairedNumber, pick: Callable[[Any, Any], Any]) -> PairedNumber:
    """The smaller or the larger of two numbers: it moves no further than they do."""
    span = Span(pick(one.span.low, two.span.low), pick(one.span.high, two.span.high))
    still = one.moved == STILL and two.moved == STILL
    moved = STILL if still else one.moved | two.moved
    return PairedNumber(one.same and two.same, span, moved, one.whole and two.whole)


def absolute(one: PairedNumber) -> PairedNumber:
    """|one|."""
    most, low = one.span.most, max(ZERO, one.span.low, -one.span.high)
    far = one.moved.most
    return PairedNumber(one.same, Span(low, most), Span(-far, far), one.whole)


def power(one: PairedNumber, exponent: int) -> PairedNumber:
    """one ** exponent, a whole number from 0 on."""
    result = PairedNumber(one.same, Span(ONE, ONE), STILL, True)
    for _ in range(exponent):
        result = multiply(result, one)
    return result if exponent % 2 else replace(result, span=Span(max(Fraction(0), result.span.low), result.span.high))


def monotone(one: PairedNumber, function: Callable[[float], float]) -> PairedNumber:
    """An increasing function of the number, with ends rounded outwards: it moves the same way, by any amount."""
    ends = []
    for end, away in zip(one.span, (-math.inf, math.inf), strict=True):
        try:
            value = function(float(end))
        except (OverflowError, ValueError):
            value = away
        value = math.nextafter(value, away) if math.isfinite(value) else value
        ends.append(value if math.isinf(value) else Fraction(value))
    return PairedNumber(one.same, Span(*ends), STILL if one.moved == STILL else one.moved * AT_LEAST_0)


def compare(op: ast.cmpop, one: PairedNumber, two: PairedNumber) -> bool | PairedTruth:
    """one op two: known where the spans say so in both runs."""
    match op:
        case ast.Gt() | ast.GtE():
            return compare(ast.Lt() if isinstance(op, ast.Gt) else ast.LtE(), two, one)
        case ast.NotEq():
            found = compare(ast.Eq(), one, two)
            return found if isinstance(found, PairedTruth) else not found
    same = PairedTruth(one.same and two.same)
    (low, high), (least, most) = one.span, two.span
    if not (one.whole and two.whole):  # doubles decide, so that a hair stays between the two
        ends: list[Bound] = [low, high, least, most]
        hair = max([ZERO, *(abs(Fraction(end)) for end in ends if not math.isinf(end))]) * HAIR
        far = high + hair < least or low - hair > most
        return PairedTruth(one.same and two.same) if not far else not isinstance(op, ast.Eq) and high < least
    surely, never = {
        ast.Lt: (high < least, low >= most),
        ast.LtE: (high <= least, low > most),
        ast.Eq: (low == high == least == most and not math.isinf(low), high < least or low > most),
    }[type(op)]
    return True if surely else False if never else same


OPERATIONS: dict[type[ast.operator], Callable[[PairedNumber, PairedNumber], PairedNumber]] = {
    ast.Add: add,
    ast.Sub: subtract,
    ast.Mult: multiply,
    ast.Div: divide,
}
