"""Operators and comparisons on values of two runs, and what stands in the place of one another."""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.verify.coupled import arithmetic
from dpaudit.verify.coupled.expressions import MISSING, ORDERS
from dpaudit.verify.coupled.noise import NoiseLedger, weights_of
from dpaudit.verify.coupled.values import (
    ALL,
    AT_LEAST_0,
    CLOCK,
    AnyRow,
    EntryAxis,
    FreshNoise,
    Keyed,
    KnownArray,
    Noisy,
    Norm,
    NormedVector,
    Own,
    PairedNumber,
    PairedTruth,
    Place,
    Record,
    Replaced,
    Rest,
    Span,
    UnknownValue,
    Vector,
    form_of,
    fraction_of,
    is_number,
    is_plain,
    is_same,
    number_of,
    parts,
    unchanged,
)
from dpaudit.verify.coupled.ways import OtherKind, RaisedAlike

SIZES = {ast.Lt: (True, True), ast.LtE: (False, True), ast.Gt: (False, False), ast.GtE: (True, False)}  # |x| op c
LARGEST = 2**32  # a public number that is added or multiplies: noise and data keep 20 bits below 1 beside it
OPPOSITE = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}


NAMED = "name its numbers: for a, b, y in data: x = np.array([a, b])"


class Split(Exception):
    """What a part of a record is compared with: the regions of records are to be told apart by it."""

    def __init__(self, path: tuple[Any, ...], value: Any) -> None:
        self.path, self.value = path, value


class OperatorRules(NoiseLedger):
    """What Python does with numbers, vectors and truth values that are unknown."""

    numbers: set[tuple[Any, ...]]  # parts of records that are used as numbers
    facts: dict[Any, Any]
    of_users = False  # whether the data are rows of users
    habits: dict[int, tuple[Any, set[bool], set[str]]]  # of a dictionary: whether users are its keys, how it is written
    rows: EntryAxis
    standing: dict[int, Any]  # containers in a vector, of which each stands for many

    def rows_have(self, number: int) -> None:
        """Takes it that each row has so many entries; not two numbers."""
        if number == 1:
            raise self.run.refusal("rows of one column", "use plain numbers")
        if self.rows.number not in (None, number):
            raise self.run.refusal("rows of two lengths", "use one public number of columns")
        self.rows.number = number

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

    def part(self, record: Record, place: Any) -> Record:
        """A part of a record; that there is one is noted."""
        path = (*record.path, place)
        self.numbers.add((*path, ".part"))
        return replace(record, path=path)

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
        if isinstance(found, np.generic) and found.dtype not in (np.float64, np.int64, np.bool_):
            raise self.run.refusal(f"a number of type {found.dtype}", "use numbers of 64 bits")
        return number_of(self.numeric(found))

    def check_kind(self, *values: Any) -> None:
        """Raises where one run alone uses a value of no known kind: of an array, or a text, it may raise."""
        if self.single is not None and any(type(each) is UnknownValue for each in values):
            raise self.run.refusal("a value of any kind, used for one record alone", "use numbers")

    def binary(self, op: ast.operator, left: Any, right: Any) -> Any:
        """left op right, where one of them is unknown."""
        left, right = (
            self.as_noise(left, right) if isinstance(right, NormedVector) else left,
            self.as_noise(right, left) if isinstance(left, NormedVector) else right,
        )
        noisy = self.combined(op, left, right)
        if noisy is not None:
            return noisy
        vectors = (isinstance(each, Noisy) and isinstance(each.base, NormedVector) for each in (left, right))
        left, right = (self.look(each) if whole else each for each, whole in zip((left, right), vectors, strict=True))
        forms = [form_of(left), form_of(right)]
        if {"array", "vector", "list or array"} & {*forms}:
            other = left if forms[1] in ("vector", "list or array") else right
            fails = "list or array" in forms and (  # with a list it raises
                isinstance(op, ast.Sub | ast.Div) or isinstance(other, float | Noisy | FreshNoise)
            )
            if "array" not in forms and not fails:
                raise self.run.refusal("an operation on a list", "make it an array, by np.array(...)")
            found = self.elementwise(lambda one, two: self.run.binary(op, one, two), left, right)
            doubles = any(isinstance(each, float) or getattr(each, "kind", "") == "f" for each in (left, right))
            if isinstance(found, KnownArray) and found.kind == "" and (doubles or isinstance(op, ast.Div)):
                found.kind = "f"
            return found
        left, right = self.look(left), self.look(right)
        if isinstance(left, NormedVector) or isinstance(right, NormedVector):
            return self.of_block(op, left, right)
        if isinstance(op, ast.Mult) and isinstance(left, list) and isinstance(right, int):
            return left * right
        if isinstance(left, Keyed) or isinstance(right, Keyed):
            raise OtherKind(self.run.line, "arithmetic with a mapping", "use its values")
        one, two = self.number(left), self.number(right)
        large = any(is_number(each) and abs(each) > LARGEST for each in (left, right))
        if large and isinstance(op, ast.Add | ast.Sub | ast.Mult):
            raise self.run.refusal("a large number beside data or noise, which rounding may hide", "use smaller ones")
        if isinstance(op, ast.Mult) and left is right and one is not None:
            return arithmetic.power(one, 2)
        if one is None or two is None:
            listed = isinstance(left, list | tuple | dict) or isinstance(right, list | tuple | dict)
            if not listed and is_same(left) and is_same(right) and self.single is None:
                return UnknownValue()
            raise self.run.refusal("arithmetic with what no rule bounds", "clip a number, and a vector by its norm")
        fails = isinstance(op, ast.Pow) or math.isinf(two.span.width) and isinstance(op, ast.Div)
        if self.single is not None and fails and math.isinf(one.span.width):  # of inf / inf, of x ** 2
            raise self.run.refusal("data without bounds, which may overflow on one dataset", "clip them first")
        scaled = self.of_lengths(op, one, two)
        if scaled is not None:
            return scaled
        if type(op) in arithmetic.OPERATIONS and not isinstance(op, ast.Div):
            found = arithmetic.OPERATIONS[type(op)](one, two)
            ours, theirs = weights_of(one), weights_of(two)
            weights = isinstance(op, ast.Add) and theirs and (ours or is_number(left) and left == 0)
            return replace(found, summed=(*ours, *theirs)) if weights else found
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
        found = PairedNumber(inner.same, inner.span * most, inner.moved * most, inner.whole and power > 0)
        return replace(
            found,
            count=(axis, power, inner),
            axis=axis if power == 1 and inner.span == Span(Fraction(1), Fraction(1)) else None,
        )

    def quotient(self, op: ast.operator, one: PairedNumber, two: PairedNumber) -> Any:
        """Division, whole division, remainder, power."""
        match op:
            case ast.Div():
                raw = all(each.over is None for each in (one, *two.summed))  # weights that nothing was divided by yet
                if raw and one.log is not None and any(one.log is each.log for each in two.summed):
                    return replace(one, over=two, span=Span(Fraction(0), Fraction(1)), moved=ALL, summed=())
                try:
                    return arithmetic.divide(one, two, self.single is not None)
                except arithmetic.Undefined as error:
                    raise self.run.refusal(
                        str(error), "divide by a public or a noisy number, or keep it from 0"
                    ) from None
            case ast.FloorDiv() if two.span.width == 0 and two.span.low != 0:
                return arithmetic.whole_steps(arithmetic.divide(one, two))
            case ast.Pow() if two.span.width == 0 and two.whole and 0 <= two.span.low <= 8:
                return arithmetic.power(one, int(two.span.low))
        if one.same and two.same and self.single is None:
            return PairedNumber(whole=one.whole and two.whole and not isinstance(op, ast.Pow))
        raise self.run.refusal("this operation on data without noise", "use + - * and / by public numbers")

    def of_block(self, op: ast.operator, left: Any, right: Any) -> Any:
        """Sums of vectors, and a vector times or over a public number."""
        if isinstance(left, NormedVector) and isinstance(right, NormedVector) and isinstance(op, ast.Add | ast.Sub):
            return self.lifted(arithmetic.OPERATIONS[type(op)], left, right)
        block, by = (left, right) if isinstance(left, NormedVector) else (right, left)
        if is_number(by) and (isinstance(op, ast.Mult) or isinstance(op, ast.Div) and block is left and by != 0):
            factor = fraction_of(by) if isinstance(op, ast.Mult) else 1 / fraction_of(by)
            return self.lifted(functools.partial(arithmetic.scaled, factor=factor), block)
        data = isinstance(left, Record | Norm) or isinstance(right, Record | Norm)
        if not data and is_same([left, right]):
            return UnknownValue()
        raise self.run.refusal("this operation on a vector", "add vectors, or multiply them by public numbers")

    def lifted(self, rule: Callable[..., PairedNumber], *values: Any) -> NormedVector:
        """What a rule for numbers says of vectors: of their norms; an array that both runs have is of any size."""
        vectors = [NormedVector(axis=self.rows) if isinstance(each, KnownArray) else each for each in values]
        if not all(isinstance(each, NormedVector) and each.axis is vectors[0].axis for each in vectors) or not is_same(
            [each for each in values if isinstance(each, KnownArray)]
        ):
            raise self.run.refusal("vectors of two lengths or kinds", "use rows of one length, with bounded norms")
        return NormedVector(number=rule(*(each.number for each in vectors)), axis=vectors[0].axis)

    def as_noise(self, value: Any, block: NormedVector) -> Any:
        """An array of fresh draws of one law as the noise of a block."""
        draws = [each for each in value.items if isinstance(each, FreshNoise)] if isinstance(value, KnownArray) else []
        kinds = {(each.law, each.scale, each.spent, each.count, each.axis) for each in draws}
        if not draws or len(draws) < len(value.items) or kinds != {(draws[0].law, draws[0].scale, None, None, None)}:
            return value
        if len({*map(id, draws)}) < len(draws):
            raise self.run.refusal("one draw of noise for several entries", "draw fresh noise for each")
        self.rows_have(len(draws))
        for each in draws:
            self.used(each, "a vector")
        return self.made(FreshNoise(draws[0].law, draws[0].scale, draws[0].line, axis=block.axis))

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
            return self.each(left, function, right, array=True)
        if isinstance(left, KnownArray):
            other = self.scalar(right)
            return KnownArray([function(one, other) for one in left.items])
        if isinstance(right, KnownArray):
            other = self.scalar(left)
            return KnownArray([function(other, two) for two in right.items])
        if not isinstance(left, Vector) and not isinstance(right, Vector):
            return function(left, right)  # an array that was looked at whole
        if isinstance(left, Vector):
            return self.each(left, lambda one: function(one, self.scalar(right)), array=True)
        return self.each(right, lambda two: function(self.scalar(left), two), array=True)

    def as_array(self, value: Any) -> Any:
        """Lists as arrays."""
        if isinstance(value, list | tuple):
            if any(isinstance(each, list | tuple | KnownArray) for each in value):
                raise self.run.refusal("an array of several axes", "use one for each row")
            if any(isinstance(each, Rest) for each in value):
                return UnknownValue(is_same(self.look(value)))
            if any(isinstance(each, str | bytes) for each in value) and not is_plain(value):
                raise self.run.refusal("an array of texts and numbers", "use one for each")
            return KnownArray(list(value))
        return value

    def scalar(self, value: Any) -> Any:
        """What meets every entry of an array: noise would be one for all."""
        if isinstance(value, FreshNoise | Noisy):
            return self.look(value)
        if isinstance(value, NormedVector | Keyed | Vector | dict):
            raise self.run.refusal("an array with a vector of the data", "clip it by its norm, give noise its scale=")
        return value

    def both(self, function: Callable[..., Any], *values: Any) -> Any:
        """A function of what stands in the place of one another in the two runs."""
        if not any(isinstance(each, Replaced) for each in values):
            return function(*values)
        first, second = (
            [getattr(each, side) if isinstance(each, Replaced) else each for each in values]
            for side in ("first", "second")
        )
        return self.beside(self.alone(False, lambda: function(*first)), self.alone(True, lambda: function(*second)))

    def alone(self, second: bool | None, action: Callable[[], Any]) -> Any:
        """What one run does alone."""
        before, self.single = self.single, second
        try:
            return action()
        except RaisedAlike as error:
            cure = "let it raise for no record"
            raise self.run.refusal(f"a {error} that one record alone may raise", cure) from None
        finally:
            self.single = before

    def beside(self, first: Any, second: Any) -> Any:
        """One value for what the first run has and what the second."""
        if isinstance(first, Record) or isinstance(second, Record):
            return Replaced(False, first, second)
        if unchanged(first, second):
            return first
        if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
            return tuple(map(self.beside, first, second))
        one, two = number_of(first), number_of(second)
        if one is not None and two is not None:
            return PairedNumber(False, one.span | two.span, two.span + -one.span, one.whole and two.whole)
        if isinstance(first, NormedVector) and isinstance(second, NormedVector):
            return self.lifted(self.beside, first, second)
        return Replaced(False, first, second)

    def each(self, vector: Vector, function: Callable[..., Any], *others: Vector, **more: Any) -> Vector:
        """The vector of what a function makes of each entry, and of those of other vectors in step with it."""
        every = (vector, *others)
        if any(each.axis is not vector.axis for each in others):
            raise self.run.refusal("two vectors that need not be in step", "take both from one dataset")

        def made(*entries: Any) -> Any:
            since = next(CLOCK)
            own = (
                replace(one, entry_of=each) if type(one) is PairedNumber else one
                for one, each in zip(entries, every, strict=True)
            )
            found = function(*own)
            self.made_in.append((since, next(CLOCK)))
            return found

        def of_usual() -> Any:
            return self.many(lambda: self.of_any_row(made, *(each.usual for each in every)))

        usual = self.alone(self.single, of_usual) if vector.extras else of_usual()  # there may be no usual one
        changed = tuple(self.both(made, *entries) for entries in zip(*(each.changed for each in every), strict=True))
        extras = tuple(
            self.alone(second, functools.partial(function, *entries))
            for second, *entries in zip(vector.axis.extras, *(each.extras for each in every), strict=True)
        )
        return replace(vector, usual=usual, changed=changed, extras=extras, **more)

    def of_any_row(self, function: Callable[..., Any], *entries: Any) -> Any:
        """A function of entries; of the rows of a user what it may be for any."""
        several = max((len(each.records) for each in entries if isinstance(each, AnyRow)), default=0)
        if not several:
            return function(*entries)
        found = [
            function(*(each.records[place] if isinstance(each, AnyRow) else each for each in entries))
            for place in range(several)
        ]
        kept = [each for each in found if each is not MISSING]
        return functools.reduce(self.run.rules.join, kept) if kept else MISSING

    def unary(self, op: ast.unaryop, value: Any) -> Any:
        """op value."""
        if isinstance(op, ast.USub) and isinstance(value, PairedTruth):
            raise self.run.refusal("minus a truth value", "use int(...)")
        if isinstance(op, ast.USub):
            return self.binary(ast.Mult(), -1 if form_of(value) != "list or array" else -1.0, value)
        if isinstance(op, ast.UAdd):
            return value
        raise self.run.refusal("this operation", "write the mechanism without it")

    def compared(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        """left op right."""
        if isinstance(op, ast.In | ast.NotIn):
            found = self.inside(left, right)
            return found if isinstance(found, PairedTruth) or isinstance(op, ast.In) else not found
        arrays = (KnownArray, Vector)
        sums = right.items if isinstance(right, KnownArray) else [right]
        if isinstance(op, ast.Lt | ast.LtE) and sums and all(self.of_the_first(left, each) for each in sums):
            return KnownArray([PairedTruth() for _ in sums]) if isinstance(right, KnownArray) else PairedTruth()
        forms = {form_of(left), form_of(right)}
        listed = isinstance(op, ast.Eq | ast.NotEq) or isinstance(left, list) or isinstance(right, list)
        if {"list or array", "vector"} & forms and (listed or len(forms) == 1 or "vector" in forms):
            raise self.run.refusal("a list or an array that is compared", "make it an array, by np.array(...)")
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
        if isinstance(right, Record) or getattr(right, "size_of", None) is not None:
            op, left, right = OPPOSITE.get(type(op), type(op))(), right, left
        if isinstance(left, PairedNumber) and left.size_of is not None and is_number(right) and type(op) in SIZES:
            strict, inside = SIZES[type(op)]
            ends = (ast.Lt(), ast.Gt()) if strict else (ast.LtE(), ast.GtE())
            sides = [self.of_record(each, left.size_of, end) for each, end in zip(ends, (right, -right), strict=True)]
            if not any(isinstance(each, PairedTruth) for each in sides):
                return all(sides) is inside
        if isinstance(left, Record) and is_plain(right):
            return self.of_record(op, left, right)
        left, right = self.look(left), self.look(right)
        self.check_kind(left, right)
        one, two = self.number(left), self.number(right)
        if one is not None and two is not None:
            return self.decided(arithmetic.compare(op, one, two))
        return self.decided(PairedTruth(is_same(left) and is_same(right)))

    @staticmethod
    def exact(value: Any) -> Any:
        """A part of the one record as the value that it is known to be."""
        place = value.region.get(value.path) if isinstance(value, Record) and value.region is not None else None
        return place.value if place is not None and place.exactly else value

    def by_chance(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        """What noise decides for an entry that one run alone has: a coin, or nearly always no."""
        uniform = isinstance(left, FreshNoise) and left.law == "uniform" and left.spent is None and not self.within
        if uniform and is_number(right) and isinstance(op, ast.Lt | ast.LtE):
            self.look(left)
            return PairedTruth(chance=max(Fraction(0), min(Fraction(1), fraction_of(right))))
        if isinstance(op, ast.Lt | ast.LtE):
            op, left, right = ast.Gt(), right, left
        kept = isinstance(left, Noisy) and left.value is None and is_number(right) and not self.within
        if kept and isinstance(op, ast.Gt | ast.GtE):
            failing = self.tail(left, fraction_of(right))
            if failing is not None:
                self.facts["failing"] = self.facts.get("failing", Fraction(0)) + failing
                return False
        return None

    def decided(self, found: bool | PairedTruth) -> bool | PairedTruth:
        """A decision of one run alone is its own."""
        return PairedTruth() if self.single is not None and isinstance(found, PairedTruth) else found

    def of_record(self, op: ast.cmpop, record: Record, value: Any) -> Any:
        """A part of a record compared with a public value."""
        if isinstance(value, float | np.floating) and math.isinf(value):
            return self.run.plain(ORDERS[type(op)], 0, value)
        if record.region is None:
            return PairedTruth()
        none = isinstance(value, float) and math.isnan(value)
        if none or not isinstance(value, int | float | str | bool | None | np.generic):
            raise self.run.refusal("a record compared with this", "compare its parts with numbers or texts")
        place = record.region.get(record.path)
        if place is None:
            raise Split(record.path, value)
        if place.exactly:
            return self.run.plain(ORDERS[type(op)], place.value, value)
        if isinstance(op, ast.Eq | ast.NotEq):
            if value not in place.value:
                raise Split(record.path, value)
            return isinstance(op, ast.NotEq)
        if not is_number(value):
            raise self.run.refusal("an order of records that are no numbers", "compare them by ==")
        value = Fraction(float(value))  # type: ignore[arg-type]
        if place.span.low < value < place.span.high:
            raise Split(record.path, value)
        return (place.span.high <= value) is isinstance(op, ast.Lt | ast.LtE)

    def inside(self, value: Any, container: Any) -> Any:
        """value in container."""
        self.check_kind(container)
        if isinstance(container, UnknownValue | str):
            return self.decided(PairedTruth(is_same(value) and is_same(container)))
        own = isinstance(container, dict) and any(isinstance(each, Own) for each in container)
        if own and not isinstance(value, Own):
            raise self.run.refusal("whether the data have this key", "compare records with it")
        found: Any = False
        held = isinstance(container, list | tuple | dict)
        for each in [*container] if held else self.run.known_items(container):
            one = self.run.compared(ast.Eq(), value, each)
            if isinstance(one, PairedTruth):
                found = one if found is False or not one.same else found
            elif not isinstance(one, bool | np.bool_):
                raise self.run.refusal("`in` of arrays", "compare their entries")
            elif one:
                return True
        return found

    def truth(self, value: Any) -> Any:
        """Whether an unknown value counts as true."""
        if form_of(value) == "list or array":
            raise self.run.refusal("the truth of a list or an array", "ask for its length")
        value = self.look(value)
        self.check_kind(value)
        match value:
            case PairedTruth():
                return value
            case PairedNumber():
                return self.decided(arithmetic.compare(ast.NotEq(), value, number_of(0)))  # type: ignore[arg-type]
            case KnownArray():
                raise self.run.refusal("the truth of an array", "ask for its length or an entry")
            case list() | dict() | tuple() if not any(isinstance(each, Rest) for each in parts(value)):
                return bool(value)
        return self.decided(PairedTruth(is_same(value)))
