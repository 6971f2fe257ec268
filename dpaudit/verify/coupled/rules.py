"""What Python does with values that are unknown, as far as it is known: operators, containers, what may be either."""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.verify.coupled import arithmetic
from dpaudit.verify.coupled.executor import MISSING, ORDERS, Contents, NotShown, OtherKind, RaisedAlike
from dpaudit.verify.coupled.noise import EntryAxis, NoiseLedger, Rng
from dpaudit.verify.coupled.values import (
    ABSTRACT,
    ALL,
    AT_LEAST_0,
    NEW,
    STILL,
    DrawnVector,
    EntryIndex,
    FreshNoise,
    Function,
    Keyed,
    KnownArray,
    Noisy,
    NoisyVector,
    Norm,
    NormedVector,
    Only,
    Order,
    Own,
    PairedNumber,
    PairedTruth,
    Place,
    Record,
    Replaced,
    Rest,
    Span,
    UnknownValue,
    UserRows,
    Vector,
    holds,
    is_number,
    is_plain,
    is_same,
    number_of,
    parts,
)

SIZES = {ast.Lt: (True, True), ast.LtE: (False, True), ast.Gt: (False, False), ast.GtE: (True, False)}  # |x| op c
OPPOSITE = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
MOST_PLACES = 1_000  # of an index that may be one of several


class Split(Exception):
    """What a part of a record is compared with: the regions of records are to be told apart by it."""

    def __init__(self, path: tuple[Any, ...], value: Any) -> None:
        self.path, self.value = path, value


class ValueRules(NoiseLedger):
    """Operators, comparisons, containers."""

    numbers: set[tuple[Any, ...]]  # parts of records that are used as numbers
    single: bool | None = None  # whether only the second run does this, or only the first; None: both

    def numeric(self, value: Any) -> Any:
        """A record's part as the number that it is taken for."""
        if isinstance(value, Record):
            self.numbers.add(value.path)
            place = self.place(value)
            if place is None:
                return PairedNumber()
            if place.exactly:
                return number_of(place.value) or self.not_number(value)
            return PairedNumber(True, place.span)
        return value

    def not_number(self, value: Record) -> Any:
        """A text where a number is needed raises, on the dataset that has it."""
        raise self.run.refusal(
            "a part of a record that is compared with texts and used as a number", "do one of the two"
        )

    def place(self, value: Record) -> Place | None:
        """What is known of a part of the one record; None of any other record."""
        return None if value.region is None else value.region.get(value.path, Place(False))

    def number(self, value: Any) -> PairedNumber | None:
        """A value as a number, looked at; None for what is none."""
        found = self.look(value)
        if isinstance(found, UnknownValue) and type(found) is UnknownValue and found.same:
            return PairedNumber()
        return number_of(self.numeric(found))

    # --- operators ------------------------------------------------------------------------------------------------

    def binary(self, op: ast.operator, left: Any, right: Any) -> Any:
        """left op right, where one of them is unknown."""
        noisy = self.combined(op, left, right)
        if noisy is not None:
            return noisy
        left, right = (
            self.as_noise(left, right) if isinstance(right, NormedVector) else left,
            self.as_noise(right, left) if isinstance(left, NormedVector) else right,
        )
        for one in (left, right):
            if isinstance(one, DrawnVector) and isinstance(op, ast.Add) and one.spent is None:
                other = right if one is left else left
                if isinstance(other, Vector | NormedVector) and self.fits(other, one):
                    return self.made(NoisyVector(other, one))
        if isinstance(left, KnownArray | Vector | NoisyVector | DrawnVector) or isinstance(
            right, KnownArray | Vector | NoisyVector | DrawnVector
        ):
            if any(isinstance(each, Vector) and not each.array for each in (left, right)) and not any(
                isinstance(each, KnownArray | DrawnVector | NoisyVector) or isinstance(each, Vector) and each.array
                for each in (left, right)
            ):
                raise self.run.refusal("an operation on a list", "make it an array, by np.array(...)")
            return self.elementwise(lambda one, two: self.run.binary(op, one, two), left, right)
        left, right = self.look(left), self.look(right)
        if isinstance(left, NormedVector) or isinstance(right, NormedVector):
            return self.of_block(op, left, right)
        if isinstance(left, list | tuple | str) or isinstance(right, list | tuple | str):
            if isinstance(op, ast.Mult) and isinstance(left, list) and isinstance(right, int):
                return left * right
            if is_same(left) and is_same(right):
                return UnknownValue()
            raise self.run.refusal("an operation on containers of data", "use numbers")
        if isinstance(left, Keyed) or isinstance(right, Keyed):
            raise OtherKind(self.run.line, "arithmetic with a mapping", "use its values")
        one, two = self.number(left), self.number(right)
        if isinstance(op, ast.Mult) and left is right and one is not None:
            return arithmetic.power(one, 2)
        if one is None or two is None:
            if is_same(left) and is_same(right):
                return UnknownValue()
            raise self.run.refusal("arithmetic with what is no number", "use numbers")
        scaled = self.of_lengths(op, one, two)
        if scaled is not None:
            return scaled
        if (
            one.same
            and two.same
            and not (one.start or two.start)
            and self.single is None
            and not (isinstance(op, ast.Add | ast.Sub | ast.Mult))
        ):
            return (
                self.quotient(op, one, two)
                if isinstance(op, ast.Div)
                else PairedNumber(whole=one.whole and two.whole and not isinstance(op, ast.Pow))
            )
        if isinstance(op, ast.MatMult):
            raise self.run.refusal("a product of vectors of data", "use norms and sums")
        if type(op) in arithmetic.OPERATIONS and not isinstance(op, ast.Div):
            return arithmetic.OPERATIONS[type(op)](one, two)
        return self.quotient(op, one, two)

    def of_lengths(self, op: ast.operator, one: PairedNumber, two: PairedNumber) -> PairedNumber | None:
        """What a public number of records multiplies or divides; None where it does not."""
        if isinstance(op, ast.Mult | ast.Div) and (one.count or two.count):
            ours, theirs = one.count or (None, 0, one), two.count or (None, 0, two)
            if None in (ours[0], theirs[0]) or ours[0] is theirs[0]:
                power = ours[1] + (theirs[1] if isinstance(op, ast.Mult) else -theirs[1])
                if isinstance(op, ast.Div) and theirs[2].span.low <= 0 <= theirs[2].span.high:
                    return None
                inner = arithmetic.OPERATIONS[type(op)](ours[2], theirs[2])
                return self.counted(ours[0] or theirs[0], power, inner)
        if isinstance(op, ast.Add | ast.Sub) and one.count and two.count and one.count[:2] == two.count[:2]:
            return self.counted(*one.count[:2], arithmetic.OPERATIONS[type(op)](one.count[2], two.count[2]))
        return None

    @staticmethod
    def counted(axis: Any, power: int, inner: PairedNumber) -> PairedNumber:
        """inner * n^power, for the number n, at least 1, of entries along an axis."""
        if not axis.filled:
            return PairedNumber(True, AT_LEAST_0, whole=True, axis=axis)
        if power == 0:
            return inner
        most = Span(Fraction(0), Fraction(1)) if power < 0 else Span(Fraction(1), math.inf)
        found = PairedNumber(True, inner.span * most, inner.moved * most, inner.whole and power > 0)
        return replace(
            found,
            count=(axis, power, inner),
            axis=axis if power == 1 and inner.span == Span(Fraction(1), Fraction(1)) else None,
        )

    def quotient(self, op: ast.operator, one: PairedNumber, two: PairedNumber) -> Any:
        """Division, whole division, remainder, power."""
        match op:
            case ast.Div():
                if one.log is not None and any(one.log is getattr(each, "log", None) for each in two.summed):
                    return replace(
                        one,
                        log=one.log,
                        over=two,
                        span=Span(Fraction(0), Fraction(1)),
                        moved=one.moved and ALL,
                        summed=(),
                    )
                try:
                    return arithmetic.divide(one, two, self.single is not None)
                except arithmetic.Undefined as error:
                    raise self.run.refusal(
                        str(error), "divide by a public or a noisy number, or keep it from 0"
                    ) from None
            case ast.FloorDiv() if two.span.width == 0 and two.span.low != 0:
                return arithmetic.whole_steps(arithmetic.divide(one, two))
            case ast.Mod() if two.span.width == 0 and two.span.low > 0:
                return PairedNumber(
                    one.same, Span(Fraction(0), two.span.high), STILL if one.same else ALL, one.whole and two.whole
                )
            case ast.Pow() if two.span.width == 0 and two.whole and 0 <= two.span.low <= 8:
                return arithmetic.power(one, int(two.span.low))
        raise self.run.refusal("this operation on data without noise", "use + - * and / by public numbers")

    def of_block(self, op: ast.operator, left: Any, right: Any) -> Any:
        """Sums of blocks, and a block times or over a public number."""
        if (
            isinstance(left, NormedVector)
            and isinstance(right, NormedVector)
            and isinstance(op, ast.Add | ast.Sub)
            and left.axis is right.axis
        ):
            one, two = (left, right) if left.start is not None else (right, left)
            start = None if two.start is not None or isinstance(op, ast.Sub) else one.start
            moved = left.moved_1 + right.moved_1, left.moved_2 + right.moved_2
            return NormedVector(True, left.size + right.size, *moved, left.axis, start, one.added + two.size)
        by = right if isinstance(left, NormedVector) else left
        block = left if isinstance(left, NormedVector) else right
        if (
            is_number(by)
            and isinstance(op, ast.Mult | ast.Div)
            and (by != 0 and isinstance(left, NormedVector) or isinstance(op, ast.Mult))
        ):
            factor = abs(Fraction(by) if isinstance(op, ast.Mult) else 1 / Fraction(by))
            return NormedVector(True, block.size * factor, block.moved_1 * factor, block.moved_2 * factor, block.axis)
        if (
            not isinstance(left, Record | Norm)
            and not isinstance(right, Record | Norm)
            and is_same(left)
            and is_same(right)
        ):
            return UnknownValue()
        return self.clipped_block(op, left, right)

    def clipped_block(self, op: ast.operator, left: Any, right: Any) -> Any:
        """A vector over its norm, kept below a bound: see `functions`."""
        raise self.run.refusal("this operation on a vector", "add vectors, or multiply them by public numbers")

    def fits(self, vector: Vector | NormedVector, draws: DrawnVector) -> bool:
        """Whether there is one draw for each entry."""
        return vector.axis is draws.axis

    def as_noise(self, value: Any, block: NormedVector) -> Any:
        """An array of fresh draws of one law as the noise of a block."""
        if (
            isinstance(value, KnownArray)
            and value.items
            and all(isinstance(each, FreshNoise) and each.spent is None for each in value.items)
        ):
            first = value.items[0]
            if all((each.law, each.scale) == (first.law, first.scale) for each in value.items) and self.rows_have(
                len(value.items), block
            ):
                for each in value.items:
                    self.used(each, "a vector")
                return self.made(DrawnVector(first.law, first.scale, first.line, block.axis))
        return value

    def elementwise(self, function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
        """What a function of two makes of arrays, entry by entry."""
        left, right = (self.as_array(each) for each in (left, right))
        if isinstance(left, KnownArray) and isinstance(right, KnownArray):
            if len(left.items) != len(right.items):
                if 1 not in (len(left.items), len(right.items)):
                    raise RaisedAlike("ValueError")
                raise self.run.refusal("an array of one entry with a longer one", "write the one number")
            return KnownArray([function(one, two) for one, two in zip(left.items, right.items, strict=True)])
        if isinstance(left, Vector) and isinstance(right, Vector):
            return self.paired(function, left, right)
        if isinstance(left, KnownArray):
            return KnownArray([function(one, self.scalar(right)) for one in left.items])
        if isinstance(right, KnownArray):
            return KnownArray([function(self.scalar(left), two) for two in right.items])
        if not isinstance(left, Vector) and not isinstance(right, Vector):
            return function(left, right)  # an array that was looked at whole
        if isinstance(left, Vector):
            return self.each(left, lambda one: function(one, self.scalar(right)), array=True, fresh=True)
        return self.each(right, lambda two: function(self.scalar(left), two), array=True, fresh=True)

    def as_array(self, value: Any) -> Any:
        """Lists and vectors of noise as arrays."""
        if isinstance(value, NoisyVector | DrawnVector):
            return self.look(value)
        if isinstance(value, np.ndarray) and value.ndim == 1 or isinstance(value, list | tuple):
            if any(isinstance(each, list | tuple | KnownArray | np.ndarray) for each in value):
                raise self.run.refusal("an array of several axes", "use one for each row")
            return KnownArray(list(value))
        return value

    def scalar(self, value: Any) -> Any:
        """What meets every entry of an array: noise would be one for all."""
        if isinstance(value, FreshNoise | Noisy):
            return self.look(value)
        if isinstance(value, NormedVector | Keyed | dict | set):
            raise self.run.refusal("an array with this", "use arrays of one form")
        return value

    def paired(self, function: Callable[[Any, Any], Any], left: Vector, right: Vector) -> Vector:
        """Entry by entry of two vectors in step."""
        if left.axis is not right.axis or len(left.changed) != len(right.changed):
            raise self.run.refusal("two vectors that need not be in step", "take both from one dataset")
        changed = tuple(self.both(function, one, two) for one, two in zip(left.changed, right.changed, strict=True))
        extra = None
        if left.extra is not None and right.extra is not None:
            extra = left.extra[0], self.alone(left.extra[0], lambda: function(left.extra[1], right.extra[1]))  # type: ignore[index]
        usual = self.many(lambda: function(left.usual, right.usual))
        return Vector(usual=usual, changed=changed, extra=extra, axis=left.axis, array=True, fresh=True)

    def both(self, function: Callable[..., Any], *values: Any) -> Any:
        """A function of what stands in the place of one another in the two runs."""
        if not any(isinstance(each, Replaced) for each in values):
            return function(*values)
        first, second = (
            [getattr(each, side) if isinstance(each, Replaced) else each for each in values]
            for side in ("first", "second")
        )
        return self.beside(self.alone(False, lambda: function(*first)), self.alone(True, lambda: function(*second)))

    def alone(self, second: bool, action: Callable[[], Any]) -> Any:
        """What one run does alone."""
        before, self.single = self.single, second
        try:
            return action()
        finally:
            self.single = before

    def beside(self, first: Any, second: Any) -> Any:
        """One value for what the first run has and what the second."""
        if isinstance(first, Record) or isinstance(second, Record):
            return Replaced(False, first, second)
        if (
            is_plain(first)
            and is_plain(second)
            and type(first) is type(second)
            and self.run.plain(operator.eq, first, second) is True
        ):
            return first
        if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
            return tuple(map(self.beside, first, second))
        one, two = number_of(first), number_of(second)
        if one is not None and two is not None:
            return PairedNumber(True, one.span | two.span, two.span + -one.span, one.whole and two.whole)
        if isinstance(first, NormedVector) and isinstance(second, NormedVector):
            return NormedVector(False, max(first.size, second.size), math.inf, first.size + second.size, first.axis)
        return Replaced(False, first, second)

    def each(self, vector: Vector, function: Callable[[Any], Any], **more: Any) -> Vector:
        """The vector of what a function makes of each entry."""

        def entry(one: Any) -> Any:
            return replace(one, entry_of=vector) if type(one) is PairedNumber else one

        extra = vector.extra
        if extra is not None:
            extra = extra[0], self.alone(extra[0], lambda: function(vector.extra[1]))  # type: ignore[index]
        changed = tuple(self.both(function, entry(each)) for each in vector.changed)
        usual = self.many(lambda: function(entry(vector.usual)))
        return replace(vector, usual=usual, changed=changed, extra=extra, **more)

    def unary(self, op: ast.unaryop, value: Any) -> Any:
        """op value."""
        if isinstance(op, ast.USub):
            return self.binary(ast.Mult(), -1, value)
        if isinstance(op, ast.UAdd):
            return value
        if isinstance(op, ast.Invert) and isinstance(value, Vector):
            return self.each(value, self.opposite, fresh=True)
        raise self.run.refusal("this operation", "write the mechanism without it")

    def opposite(self, value: Any) -> Any:
        """Not a truth value."""
        if not isinstance(value, bool | PairedTruth):
            raise self.run.refusal("the opposite of what is no truth value", "compare it")
        return PairedTruth(value.same) if isinstance(value, PairedTruth) else not value

    def compared(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        """left op right."""
        if isinstance(op, ast.In | ast.NotIn):
            found = self.inside(left, right)
            return found if isinstance(found, PairedTruth) or isinstance(op, ast.In) else not found
        arrays = (KnownArray, Vector, NoisyVector, np.ndarray)
        if isinstance(left, arrays) or isinstance(right, arrays):
            return self.elementwise(lambda one, two: self.run.compared(op, one, two), left, right)
        if self.single is not None:
            found = self.by_chance(op, left, right)
            if found is not None:
                return found
        left, right = self.exact(left), self.exact(right)
        if isinstance(left, Own) is not isinstance(right, Own) and is_plain(left) and is_plain(right):
            raise self.run.refusal("a user who is compared with a public name", "treat all users alike")
        if is_plain(left) and is_plain(right):
            return self.run.plain(ORDERS[type(op)], left, right)
        for one, two, swapped in ((left, right, False), (right, left, True)):
            if isinstance(one, PairedNumber) and one.size_of is not None and is_number(two) and type(op) in SIZES:
                strict, inside = SIZES[type(op)] if not swapped else SIZES[OPPOSITE[type(op)]]
                ends = (ast.Lt(), ast.Gt()) if strict else (ast.LtE(), ast.GtE())
                found = [
                    self.of_record(each, one.size_of, end, False) for each, end in zip(ends, (two, -two), strict=True)
                ]
                if not any(isinstance(each, PairedTruth) for each in found):
                    return all(found) is inside
            if isinstance(one, Record) and is_plain(two):
                return self.of_record(op, one, two, swapped)
        left, right = self.look(left), self.look(right)
        one, two = self.number(left), self.number(right)
        if one is not None and two is not None and not isinstance(op, ast.Is | ast.IsNot):
            found = arithmetic.compare(op, one, two)
            return self.decided(found) if isinstance(found, PairedTruth) else found
        unknown, plain = (right, left) if is_plain(left) else (left, right)
        if (
            isinstance(op, ast.Eq | ast.NotEq)
            and type(unknown) is PairedNumber
            and not is_number(plain)
            and is_plain(plain)
        ):
            return isinstance(op, ast.NotEq)
        return self.decided(PairedTruth(is_same(left) and is_same(right)))

    @staticmethod
    def exact(value: Any) -> Any:
        """A part of the one record as the value that it is known to be."""
        place = value.region.get(value.path) if isinstance(value, Record) and value.region is not None else None
        return place.value if place is not None and place.exactly else value

    def by_chance(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        """What noise decides for an entry that one run alone has: a coin, or nearly always no."""
        if (
            isinstance(left, FreshNoise)
            and left.law == "uniform"
            and left.spent is None
            and is_number(right)
            and isinstance(op, ast.Lt | ast.LtE)
        ):
            self.look(left)
            return PairedTruth(chance=max(Fraction(0), min(Fraction(1), Fraction(right))))
        if isinstance(op, ast.Lt | ast.LtE):
            op, left, right = ast.Gt(), right, left
        if isinstance(left, Noisy) and left.value is None and is_number(right) and isinstance(op, ast.Gt | ast.GtE):
            failing = self.tail(left, Fraction(right))
            if failing is not None:
                self.facts["failing"] = self.facts.get("failing", Fraction(0)) + failing
                return False
        return None

    def decided(self, found: PairedTruth) -> PairedTruth:
        """A decision of one run alone is its own."""
        return PairedTruth() if self.single is not None else found

    def of_record(self, op: ast.cmpop, record: Record, value: Any, swapped: bool) -> Any:
        """A part of a record compared with a public value."""
        if isinstance(value, float | np.floating) and math.isinf(value):
            return self.run.plain(ORDERS[type(op)], *((value, 0) if swapped else (0, value)))
        if record.region is None:
            return PairedTruth()
        if (
            not isinstance(value, int | float | str | bool | None | np.generic)
            or isinstance(value, float)
            and math.isnan(value)
        ):
            raise self.run.refusal("a record compared with this", "compare its parts with numbers or texts")
        place = record.region.get(record.path)
        if place is None:
            raise Split(record.path, value)
        if place.exactly:
            pair = (value, place.value) if swapped else (place.value, value)
            return self.run.plain(ORDERS[type(op)], *pair)
        if isinstance(op, ast.Eq | ast.NotEq):
            if value not in place.value:
                raise Split(record.path, value)
            return isinstance(op, ast.NotEq)
        if isinstance(op, ast.Is | ast.IsNot):
            return isinstance(op, ast.IsNot)
        if not is_number(value):
            raise self.run.refusal("an order of records that are no numbers", "compare them by ==")
        if place.span.low < value < place.span.high:
            raise Split(record.path, value)
        below = place.span.high <= value
        smaller = isinstance(op, ast.Lt | ast.LtE)
        return (below is smaller) is not swapped

    def inside(self, value: Any, container: Any) -> Any:
        """value in container."""
        if isinstance(container, UnknownValue | str):
            return self.decided(PairedTruth(is_same(value) and is_same(container)))
        found: Any = False
        for each in self.run.known_items(container):
            one = self.run.compared(ast.Eq(), value, each)
            if one is True:
                return True
            if isinstance(one, PairedTruth):
                found = one if found is False or not one.same else found
        return found

    def truth(self, value: Any) -> Any:
        """Whether an unknown value counts as true."""
        value = self.look(value)
        match value:
            case PairedTruth():
                return value
            case PairedNumber():
                found = arithmetic.compare(ast.NotEq(), value, number_of(0))  # type: ignore[arg-type]
                return self.decided(found) if isinstance(found, PairedTruth) else found
            case KnownArray() if len(value.items) == 1:
                return self.run.truth(value.items[0])
            case KnownArray() if value.items:
                raise RaisedAlike("ValueError")
            case KnownArray():
                raise self.run.refusal("the truth of an empty array", "ask for its length")
            case list() | dict() | tuple() if not any(isinstance(each, Rest) for each in parts(value)):
                return bool(value)
        return self.decided(PairedTruth(is_same(value)))

    def both_true(self, one: Any, two: Any) -> Any:
        """A chain of two comparisons."""
        if one is False or two is False:
            return False
        if isinstance(one, PairedTruth) and isinstance(two, PairedTruth):
            return PairedTruth(one.same and two.same)
        return one if isinstance(one, PairedTruth | UnknownValue) else two

    def text(self, values: list[Any]) -> Any:
        """A text made of values."""
        if not is_same(self.look(values)):
            raise self.run.refusal("data in a text", "add noise first")
        return UnknownValue()

    # --- containers -----------------------------------------------------------------------------------------------

    def items(self, value: Any) -> Any:
        """The entries of what is iterated over."""
        match value:
            case KnownArray():
                return list(value.items)
            case NoisyVector() | DrawnVector():
                return self.look(value)
            case Keyed():
                return self.indices(value.vector)
            case Order():
                raise self.run.refusal("a loop over an order", "take the first or the last k of it")
            case UserRows():
                raise self.run.refusal(
                    "rows of users in any order", "go over them by one loop that counts the rows of each user"
                )
            case Vector() if not value.ordered:
                raise self.run.refusal("keys in the order of the data", "go over sorted(...) of them")
            case Vector():
                return value
            case PairedNumber() | PairedTruth() | FreshNoise() | Noisy() | NormedVector():
                raise OtherKind(
                    self.run.line, "a loop over one number", "give a list of answers, or an adjacency of records"
                )
            case Record() if value.region is not None or value.same:
                raise self.run.refusal("a loop over the parts of one record", "name the parts")
        return self.look(value)

    def indices(self, vector: Any) -> Vector:
        """The places of a vector's entries."""
        still = vector.extra is None
        index = EntryIndex(
            True,
            Span(Fraction(0), math.inf),
            STILL if still else Span(Fraction(-1), Fraction(1)),
            True,
            axis=vector.axis,
        )
        changed = tuple(replace(index, of_changed=True) for _ in vector.changed)
        return Vector(
            usual=index,
            changed=changed,
            extra=vector.extra and (vector.extra[0], PairedNumber(whole=True)),
            axis=vector.axis,
        )

    def unpacked(self, value: Any, number: int) -> list[Any]:
        """The parts of an unknown value that is assigned to several names."""
        if isinstance(value, Record):
            return [replace(value, path=(*value.path, place)) for place in range(number)]
        if isinstance(value, Replaced):
            return [
                self.beside(one, two)
                for one, two in zip(
                    self.unpacked(value.first, number), self.unpacked(value.second, number), strict=True
                )
            ]
        if not isinstance(value, Vector) and value.same:
            return [UnknownValue() for _ in range(number)]
        raise self.run.refusal("data in several names", "read them by their index")

    def entry(self, owner: Any, index: Any) -> Any:
        """owner[index]."""
        if isinstance(owner, Replaced):
            return self.both(lambda one: self.entry(one, index), owner)
        if isinstance(owner, NoisyVector | Noisy):
            owner = self.look(owner)
        if isinstance(owner, Record) and is_plain(index):
            return replace(owner, path=(*owner.path, index))
        if isinstance(owner, Keyed):
            owner = owner.vector
        if isinstance(owner, Vector):
            return self.of_vector(owner, index)
        if isinstance(owner, KnownArray):
            if is_plain(index) and isinstance(index, slice | int | np.integer):
                found = self.run.plain(operator.getitem, owner.items, index)
                if isinstance(index, bool):
                    raise self.run.refusal("an array at a truth value", "write its place")
                owner.shared |= isinstance(index, slice)
                return KnownArray(found, True, owner.kind) if isinstance(index, slice) else found
            if isinstance(index, KnownArray) and is_plain(index.items):
                return KnownArray(
                    [self.entry(owner, each) for each in np.flatnonzero(index.items)]
                    if all(isinstance(i, bool | np.bool_) for i in index.items)
                    else [self.entry(owner, each) for each in index.items]
                )
            owner = owner.items
        if isinstance(owner, dict) and isinstance(index, Rest) and index in owner:
            return owner[index]
        if isinstance(owner, dict | list | tuple) and isinstance(index, Record | PairedNumber | Replaced):
            return self.chosen_entry(owner, index)
        if is_same(self.look(owner)) and is_same(self.look(index)) and not holds(owner):
            return UnknownValue()
        raise self.run.refusal("an entry of data", "read it by a public index")

    def of_vector(self, vector: Vector, index: Any) -> Any:
        """An entry, or some, of a vector."""
        if isinstance(index, EntryIndex) and index.axis is vector.axis:
            return vector.changed[0] if index.of_changed and vector.changed else vector.usual
        if vector.same and is_same(index) and not holds((vector.usual, *vector.changed)):
            return UnknownValue()
        if isinstance(index, Vector) and index.axis is vector.axis:
            return self.selected(vector, index)
        if isinstance(index, UnknownValue) and index.same and not isinstance(index, Vector) and vector.extra is None:
            numbers = [self.many(lambda: self.number(vector.usual)), *map(self.number, vector.changed)]
            if None not in numbers:  # both runs take the same place
                return functools.reduce(self.join, [replace(each) for each in numbers])  # type: ignore[type-var]
        if isinstance(index, slice) and vector.extra is None and is_plain(index):
            changed = vector.changed if vector.changed and self.in_slice(vector.axis, index) else ()
            axis = EntryAxis()
            self.changed_axes[axis] = bool(changed)
            return Vector(usual=vector.usual, changed=changed, axis=axis, array=vector.array)
        if (
            isinstance(index, slice)
            and index.start is None
            and index.step is None
            and is_number(index.stop)
            and index.stop >= 0
            and self.single is not None
        ):
            return replace(vector, most=int(index.stop), axis=EntryAxis())
        raise Listed()

    changed_axes: dict[Any, bool] = {}
    facts: dict[Any, Any] = {}

    def in_slice(self, axis: Any, index: slice) -> bool:
        """Whether the changed entry is in a slice: both are followed."""
        low, high = self.facts.get(axis, (0, math.inf))
        ends = index.start or 0, math.inf if index.stop is None else index.stop
        if index.step not in (None, 1) or min(ends) < 0:
            return not self.run.choose()
        for end in ends:
            if low < end < high:
                low, high = (low, end) if not self.run.choose() else (end, high)
        self.facts[axis] = low, high
        return bool(ends[0] <= low and high <= ends[1])

    def selected(self, vector: Vector, mask: Vector) -> Vector:
        """The entries of a vector where a mask is true."""
        extra = vector.extra
        if extra is not None:
            keep = mask.extra[1] if mask.extra else False
            extra = extra if self.taken(keep) else None
        if any(not isinstance(each, bool) for each in mask.changed):
            raise self.run.refusal("a selection by data without noise", "select by public values")
        changed = tuple(one for one, keep in zip(vector.changed, mask.changed, strict=True) if keep)
        return replace(vector, changed=changed, extra=extra, axis=EntryAxis(), array=True)

    def taken(self, condition: Any) -> bool:
        """Whether the entry that one run has takes part: where a coin says so, with its chance."""
        if isinstance(condition, PairedTruth):
            if condition.chance is not None:
                if "coin" in self.facts:
                    raise self.run.refusal("a second sample of the records", "sample once")
                self.facts |= {"coin": condition.chance, "takes part": not self.run.choose()}
                return bool(self.facts["takes part"])
            return not self.run.choose()
        return bool(condition)

    def chosen_entry(self, owner: Any, index: Any) -> Any:
        """An entry by an index that may be one of several: what any of them is."""
        if isinstance(owner, list | tuple) and isinstance(index, PairedNumber):
            kept = any(isinstance(each, list | dict | set | KnownArray | tuple) for each in owner)
            if index.same and self.single is None and is_same(owner) and not kept:
                return UnknownValue() if not owner else functools.reduce(self.join, owner)
            return owner[self.one_of(index, len(owner))]
        if isinstance(index, Record) and index.region is not None and isinstance(owner, dict):
            key = self.key(owner, index)
            if key in owner:
                return owner[key]
            raise self.run.refusal("a key of the record that the dictionary does not have", "check it with `in` first")
        if is_same(owner) and is_same(index) and not holds(owner):
            return UnknownValue()
        raise self.run.refusal("an entry chosen by data", "choose by public or noisy values")

    @staticmethod
    def others(owner: Any) -> list[Any]:
        """The places and keys that are not those of one run alone."""
        if isinstance(owner, dict):
            return [key for key, value in owner.items() if not isinstance(value, Only)]
        return list(range(len(owner)))

    def one_of(self, index: PairedNumber, length: int) -> int:
        """Which of the places an index is: every one that it may be is followed."""
        if self.single is None and not index.same:
            raise self.run.refusal("an entry chosen by data", "choose by public or noisy values")
        low, high = max(index.span.low, 0), min(index.span.high, length - 1)
        if not index.whole or index.span.low < 0 or index.span.high > length - 1 or high - low > MOST_PLACES:
            raise self.run.refusal("an index that may be outside the list", "keep it inside, by min and max")
        low, high = math.ceil(low), math.floor(high)
        return low + self.run.choose(high - low + 1)

    def key(self, owner: Any, index: Any) -> Any:
        """The one place or key that an index is, where one run alone has it: each that it may be is followed."""
        if isinstance(index, Record) and index.region is not None and isinstance(owner, dict):
            for key in owner:
                if is_plain(key) and not isinstance(key, Own) and self.run.compared(ast.Eq(), index, key) is True:
                    return key
            place = index.region.get(index.path)
            if place is not None and place.exactly and isinstance(place.value, Own):
                return place.value
            if "shared" not in self.facts:
                self.facts["shared"] = not self.run.choose()
            if self.facts["shared"] and NEW not in owner and ANY in owner:
                value = owner[ANY]  # another record has it too
                owner[NEW] = replace(value, start=(id(owner), NEW)) if isinstance(value, PairedNumber) else value
            return NEW
        if self.single is not None and isinstance(index, PairedNumber) and isinstance(owner, list | KnownArray):
            return self.one_of(index, len(owner.items if isinstance(owner, KnownArray) else owner))
        return index

    def adds_somewhere(
        self, owner: Any, index: Any, op: ast.operator, value: ast.expr, start: ast.expr | None = None
    ) -> bool:
        """owner[index] += value, where the runs share an index that is not known: each entry may be the one.

        `start`: what an entry that is not there yet is taken for.
        """
        known = (
            isinstance(owner, dict | list | KnownArray)
            and not is_plain(index)
            and self.single is None
            and is_same(index)
        )
        if not known or not isinstance(op, ast.Add | ast.Sub):
            return False
        more = self.look(self.run.value(value))
        if not is_same(more):
            raise self.run.refusal("data at a place that noise chose", "add noise first")
        if start is not None and ANY not in owner:
            owner[ANY] = self.run.binary(op, self.run.value(start), more)
        held = owner.items if isinstance(owner, KnownArray) else owner
        self.run.check_alone(owner)
        for key in self.others(held):
            found = self.run.binary(op, held[key], more)
            held[key] = self.join(held[key], self.fitting(owner, found) if isinstance(owner, KnownArray) else found)
        return True

    def store(self, owner: Any, index: Any, value: Any) -> None:
        """owner[index] = value."""
        self.run.check_alone(owner)
        if isinstance(owner, KnownArray):
            value = self.fitting(owner, value)
        if isinstance(owner, KnownArray) and not owner.shared and isinstance(index, int | np.integer):
            try:
                owner.items[index] = value
            except IndexError:
                raise RaisedAlike("IndexError") from None
            return
        if isinstance(owner, KnownArray) and not owner.shared:
            owner = owner.items
        if (
            isinstance(owner, list)
            and isinstance(index, PairedNumber)
            and (self.single is not None or index.same and not is_same(value))
        ):
            owner[self.one_of(index, len(owner))] = value
            return
        if isinstance(owner, dict) and isinstance(index, Record) and index.region is not None:
            owner[self.key(owner, index)] = value
            return
        value = self.look(value)
        if isinstance(owner, dict | list) and is_same(index) and (is_same(value) or isinstance(value, PairedNumber)):
            for key in self.others(owner):
                owner[key] = self.join(owner[key], value)
            if isinstance(owner, dict) and ANY not in owner:
                owner[ANY] = value
            return
        raise self.run.refusal("an entry of this", "keep values in lists and dictionaries with public keys")

    def fitting(self, array: KnownArray, value: Any) -> Any:
        """A value as an array of this kind holds it."""
        number = number_of(self.numeric(value))
        if array.kind == "f" and (number is not None or isinstance(value, Noisy | FreshNoise | float)):
            return np.float64(value) if isinstance(value, float | int | np.generic) else value
        if array.kind in ("i", "") and number is not None and number.whole:
            return np.int64(value) if array.kind == "i" and isinstance(value, int | np.generic) else number
        raise self.run.refusal("an array that may not hold such a value", "make it one of doubles, by np.zeros say")

    # --- what may be either ---------------------------------------------------------------------------------------

    def join(self, one: Any, two: Any, seen: dict[Any, Any] | None = None) -> Any:
        """What both may be: both runs have the one, or both the other."""
        seen = {} if seen is None else seen
        if one is two:
            return one
        if one is MISSING or two is MISSING:
            return MISSING
        if (
            isinstance(one, NormedVector)
            and isinstance(two, NormedVector | KnownArray)
            or isinstance(one, KnownArray)
            and isinstance(two, NormedVector)
        ):
            return seen.get((id(one), id(two))) or self.join_blocks(one, two, seen)
        if (
            type(one) is type(two)
            and isinstance(one, int | float | str | bool | np.generic)
            and one == two
            and repr(one) == repr(two)
        ):
            return one
        if isinstance(one, list | dict | KnownArray) or isinstance(two, list | dict | KnownArray):
            return self.join_containers(one, two, seen)
        if isinstance(one, tuple) and isinstance(two, tuple) and len(one) == len(two):
            return tuple(self.join(a, b, seen) for a, b in zip(one, two, strict=True))
        one, two = self.look(one), self.look(two)
        if (
            isinstance(one, bool)
            and isinstance(two, bool)
            or isinstance(one, bool | PairedTruth)
            and isinstance(two, bool | PairedTruth)
        ):
            return self.decided(PairedTruth(is_same(one) and is_same(two)))
        a, b = number_of(one), number_of(two)
        if a is not None and b is not None and not isinstance(one, bool) and not isinstance(two, bool):
            start = a.start if a.start is b.start else None
            return PairedNumber(
                True, a.span | b.span, a.moved | b.moved, a.whole and b.whole, start, a.offset | b.offset
            )
        if isinstance(one, Function | type(None) | Rng) and one == two:
            return one
        if is_same(one) and is_same(two) and not holds((one, two)):
            return UnknownValue()
        raise self.run.refusal("values of different kinds on different ways", "give it one kind of value")

    def join_containers(self, one: Any, two: Any, seen: dict[Any, Any]) -> Any:
        """Two containers that stand in one place: new ones are joined, older ones have names of their own."""
        key = id(one), id(two)
        if key in seen:
            return seen[key]
        if "ways" not in seen or any(each in seen for each in key) or type(one) is not type(two):
            raise self.run.refusal("one of two containers", "give it one name on every way")
        result: Any = (
            KnownArray([], one.shared or two.shared, one.kind if one.kind == two.kind else "O")
            if isinstance(one, KnownArray)
            else type(one)()
        )
        seen |= {key: result, key[0]: key, key[1]: key}
        held = self.join_contents(
            result,
            one.items if isinstance(one, KnownArray) else one,
            two.items if isinstance(two, KnownArray) else two,
            seen,
        )
        if isinstance(result, dict):
            result.update(held)
        else:
            (result.items if isinstance(result, KnownArray) else result).extend(held)
        return result

    def join_blocks(self, one: Any, two: Any, seen: dict[Any, Any]) -> NormedVector:
        """Two vectors, one of which may be an array that both runs have."""
        blocks = [
            each if isinstance(each, NormedVector) else NormedVector(axis=self.rows if is_same(each) else None)
            for each in (one, two)
        ]
        (a, b), sizes = blocks, [each.size for each in blocks]
        if a.axis is not b.axis:
            raise self.run.refusal("vectors of two lengths", "use rows of one length")
        start = a.start if a.start == b.start else None
        seen[id(one), id(two)] = found = NormedVector(
            True, max(sizes), max(a.moved_1, b.moved_1), max(a.moved_2, b.moved_2), a.axis, start, max(a.added, b.added)
        )
        return found

    rows: Any = None
    standing: dict[int, Any] = {}  # containers in a vector, of which each stands for many

    def join_contents(self, container: Any, one: Any, two: Any, seen: dict[Any, Any]) -> Any:
        """What a container may hold where it may hold one thing or the other."""
        if isinstance(one, dict):
            frame = "(locals)" in one or "(locals)" in two
            if not frame and one.keys() != two.keys():
                both = [*one.values(), *two.values()]
                if not is_same(self.look(both)) or not is_same([*one, *two]):
                    raise self.run.refusal("keys that are not on every way", "use public keys")
                return {ANY: functools.reduce(self.join, both)}
            return {
                name: self._joined(one.get(name, MISSING), two.get(name, MISSING), seen, frame)
                for name in {**one, **two}
            }
        if isinstance(one, set):
            if one == two:
                return one
            raise self.run.refusal("a set that is not the same on every way", "use a list")
        if len(one) == len(two) and not any(isinstance(each, Rest) for each in (*one, *two)):
            return [self._joined(a, b, seen, False) for a, b in zip(one, two, strict=True)]
        if isinstance(container, KnownArray) or not is_same(self.look([*one, *two])):
            raise self.run.refusal("lists of different length on different ways", "give out public or noisy values")
        return [Rest()]

    def _joined(self, one: Any, two: Any, seen: dict[Any, Any], frame: bool) -> Any:
        try:
            return self.join(one, two, seen)
        except NotShown:
            if frame:  # a name that is not used any more costs nothing; one that is, is refused where it is used
                return UnknownValue(False)
            raise

    def widened(self, before: Contents, after: Contents) -> Contents:
        """What is known after any number of further turns: what still grows may be anything."""

        def wide(old: Any, new: Any) -> Any:
            if isinstance(new, NormedVector):
                return replace(new, size=math.inf)
            if isinstance(new, PairedNumber) and not self.alike(old, new):
                was = number_of(old)
                if was is None:
                    return new
                low = new.span.low if new.span.low >= was.span.low else -math.inf
                high = new.span.high if new.span.high <= was.span.high else math.inf
                moved = new.moved if self.alike_spans(was.moved, new.moved) else ALL
                offset = new.offset if self.alike_spans(was.offset, new.offset) else ALL
                return PairedNumber(True, Span(low, high), moved, new.whole, new.start, offset)
            return new

        result: Contents = {}
        for key, (container, held) in after.items():
            old = before.get(key, (None, None))[1]
            if isinstance(held, dict) and isinstance(old, dict):
                held = {name: wide(old.get(name, MISSING), value) for name, value in held.items()}
            elif isinstance(held, list) and isinstance(old, list) and len(old) == len(held):
                held = [wide(one, two) for one, two in zip(old, held, strict=True)]
            result[key] = container, held
        return result

    @staticmethod
    def alike_spans(one: Span, two: Span) -> bool:
        """Whether the second says no more."""
        return one.low <= two.low and two.high <= one.high

    def alike(self, one: Any, two: Any) -> bool:
        """Whether the same is known of two values."""
        if one is two:
            return True
        match one, two:
            case PairedNumber(), PairedNumber():
                fields = ("span", "moved", "whole", "start", "offset")
                return all(getattr(one, name) == getattr(two, name) for name in fields)
            case NormedVector(), NormedVector():
                return all(
                    getattr(one, name) == getattr(two, name) for name in ("size", "moved_1", "moved_2", "axis", "start")
                )
            case Only(), Only():
                return one.second == two.second and self.alike(one.value, two.value)
            case PairedTruth(), PairedTruth():
                return one.same == two.same
            case Rest(), Rest():
                return True
            case (list(), list()) | (tuple(), tuple()):
                return len(one) == len(two) and all(map(self.alike, one, two))
            case dict(), dict():
                return one.keys() == two.keys() and all(self.alike(one[key], two[key]) for key in one)
            case KnownArray(), KnownArray():
                return self.alike(one.items, two.items)
        if isinstance(one, ABSTRACT) or isinstance(two, ABSTRACT):
            return type(one) is type(two) is UnknownValue and one.same == two.same
        return type(one) is type(two) and bool(np.all(one == two))

    def alike_contents(self, before: Contents, after: Contents) -> bool:
        """Whether everything that was there before holds what it held."""
        return all(key in after and self.alike_held(held, after[key][1]) for key, (_, held) in before.items())

    def alike_held(self, one: Any, two: Any) -> bool:
        if isinstance(one, dict) and "(locals)" in one:
            return all(name in two and self.alike(one[name], two[name]) for name in one)
        return self.alike(one, two)


class Listed(Exception):
    """A dataset is read by the place of its answers: how many there are must be known."""


ANY = Rest()  # a key that stands for any number of public ones
