"""Numbers of two runs in Python's and numpy's functions: entry by entry, sums, the largest, orders and norms."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import math
import operator
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from dpaudit.verify.coupled import arithmetic
from dpaudit.verify.coupled.noise import terms_of
from dpaudit.verify.coupled.operators import NAMED
from dpaudit.verify.coupled.rules import ValueRules
from dpaudit.verify.coupled.templates import seen_in
from dpaudit.verify.coupled.values import (
    ALL,
    AT_LEAST_0,
    STILL,
    EntryIndex,
    FreshNoise,
    Function,
    KnownArray,
    Noisy,
    Norm,
    NormedVector,
    Order,
    PairedNumber,
    PairedTruth,
    Record,
    Replaced,
    Span,
    UnknownValue,
    Vector,
    fraction_of,
    holds,
    is_number,
    is_plain,
    is_same,
    number_of,
    parts,
)

ARRAYS = KnownArray | Vector
OF_NUMBER: dict[str, Callable[[PairedNumber], PairedNumber]] = {
    "abs": arithmetic.absolute,
    "round": functools.partial(arithmetic.whole_steps, to_even=True),
    "floor": arithmetic.whole_steps,
    "ceil": arithmetic.whole_steps,
    "trunc": functools.partial(arithmetic.whole_steps, to_zero=True),
    "square": functools.partial(arithmetic.power, exponent=2),
}
ALIKE = {  # names of one rule
    "absolute": "abs",
    "fabs": "abs",
    "amax": "max",
    "amin": "min",
    "around": "round",
    "rint": "round",
    "fsum": "sum",
    "power": "pow",
    "float64": "float",
    "int64": "int",
    "tolist": "list",
    **dict.fromkeys(("copy", "ravel", "asarray"), "array"),
}
VARIANTS: dict[str, tuple[str, Any]] = {  # a rule, and its first argument
    "max": ("most", max),
    "min": ("most", min),
    "maximum": ("either", max),
    "minimum": ("either", min),
    "argmax": ("place", max),
    "argmin": ("place", min),
    "all": ("truths", True),
    "any": ("truths", False),
}


class NumberRules(ValueRules):
    """Functions of numbers: the rule for a function `name` is the method `_name_of`, or a row of a table above."""

    def by_rule(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """A call with something unknown in it."""
        name = ALIKE.get(name, name)
        found: Any = NotImplemented
        if name in OF_NUMBER or name == "exp":
            found = self.of_number(name, *args) if len(args) == 1 and not kwargs else NotImplemented
        else:
            rule, *first = VARIANTS.get(name, (name,))
            method = getattr(self, f"_{rule}_of".replace(".", "_"), None)
            if method is not None and takes(method, (*first, *args), kwargs):
                found = method(*first, *args, **kwargs)
        if found is not NotImplemented:
            return found
        return self.unknown(name, *args, *kwargs.values())

    def unknown(self, name: str, *values: Any) -> UnknownValue:
        """What a total function makes of values that both runs have."""
        looked = [*map(self.look, values)]
        if any(map(holds, looked)) or name in ("max", "min") and holds(looked):
            raise self.run.refusal(f"`{name}` of containers", "use numbers")
        own = any(isinstance(each, Function) and each.node is not None for each in looked)
        return UnknownValue() if self.single is None and not own and is_same(looked) else self.refused(name)

    def refused(self, name: str) -> Any:
        """A function of data without noise that no rule covers."""
        cure = "leave it out" if name == "isinstance" else "add noise first, or use sums, means, clips and counts"
        raise self.run.refusal(f"`{name}` of data without noise", cure)

    # --- of one number, or two ------------------------------------------------------------------------------------

    def of_number(self, name: str, value: Any) -> Any:
        """A function of one number, entry by entry on arrays."""
        if isinstance(value, ARRAYS | list | tuple):
            return self.elementwise(lambda one, _: self.by_rule(name, [one], {}), value, 0)
        number = self.number(value)
        if number is None:
            return NotImplemented
        if name == "exp":
            if number.span.high > 700 and not (number.same and self.single is None):
                raise self.run.refusal("exp of what may overflow", "subtract the largest first")
            return replace(arithmetic.monotone(number, math.exp), log=number)
        found = OF_NUMBER[name](number)
        return replace(found, size_of=value) if name == "abs" and isinstance(value, Record) else found

    def _int_of(self, value: Any) -> Any:
        terms = terms_of(value)
        if terms is not None and all(drawn.law == "geometric" and abs(f) == 1 for f, drawn in terms):
            base = self.number(value.base) if isinstance(value, Noisy) else number_of(0)
            if base is not None and base.whole:
                return value
        return self.of_number("trunc", value)

    def _float_of(self, value: Any) -> Any:
        if isinstance(value, FreshNoise) and value.law != "share" and value.axis is None:
            return value  # the same number
        found = self.look(value)
        return self.numeric(found) if isinstance(found, PairedNumber | Record) else NotImplemented

    def _pow_of(self, value: Any, exponent: Any) -> Any:
        return self.run.binary(ast.Pow(), value, exponent)

    def _either_of(self, pick: Any, one: Any, two: Any) -> Any:
        """The smaller or the larger of two, entry by entry where one is an array."""
        if isinstance(one, ARRAYS) or isinstance(two, ARRAYS):
            return self.elementwise(functools.partial(self._either_of, pick), one, two)
        for norm, other in ((one, two), (two, one)):
            if isinstance(norm, Norm) and is_number(other):
                if (pick is max) is norm.inverse:
                    return self.refused(pick.__name__)
                return replace(norm, kept=norm.kept or (other >= 0 if norm.inverse else other > 0))
        if is_plain((one, two)):
            return self.run.plain(pick, one, two)
        x, y = self.number(one), self.number(two)
        return self.unknown(pick.__name__, one, two) if x is None or y is None else arithmetic.extreme(x, y, pick)

    def _clip_of(self, value: Any, a_min: Any = None, a_max: Any = None) -> Any:
        for bound, pick in ((a_min, max), (a_max, min)):
            value = value if bound is None else self._either_of(pick, value, bound)
        return value

    def _where_of(self, condition: Any, one: Any, two: Any) -> Any:
        def chosen(pair: tuple[Any, Any], no: Any) -> Any:
            truth = self.run.truth(pair[0])
            if not isinstance(truth, PairedTruth):
                return pair[1] if truth else no
            if not truth.same:
                raise self.run.refusal("np.where by data without noise", "decide by noisy or public values only")
            return self.join(pair[1], no)

        if not isinstance(condition, ARRAYS):
            return NotImplemented
        return self.elementwise(chosen, self.elementwise(lambda truth, yes: (truth, yes), condition, one), two)

    # --- sums -----------------------------------------------------------------------------------------------------

    def _sum_of(self, value: Any, start: Any = 0, axis: Any = None) -> Any:
        if axis not in (None, 0):
            return NotImplemented
        found = self.run.items(value) if not isinstance(value, Record) else value
        if isinstance(found, Vector) and start == 0:
            return self.sum_of_vector(self.each(found, self.summand), axis)
        if not isinstance(found, list):
            return NotImplemented
        total: Any = start
        for each in found:
            first = is_plain(total) and total == 0 and not isinstance(each, Replaced | KnownArray)
            total = each if first else self.run.binary(ast.Add(), total, self.summand(each))
        total = self.summand(total)
        settled = found and not any(isinstance(each, Noisy | FreshNoise) for each in (start, *found))
        if settled and is_plain(start) and start == 0 and all(map(is_power, map(self.look, found))):
            return replace(total, summed=tuple(found), log=None, over=None)
        return total

    def summand(self, value: Any) -> Any:
        """What is added up: True counts 1."""
        if isinstance(value, bool):
            return int(value)
        return number_of(value) if isinstance(value, PairedTruth) else self.numeric(value)

    def sum_of_vector(self, vector: Vector, axis: Any) -> Any:
        """The sum of a vector's entries."""
        every = [self.many(lambda: self.look(vector.usual)), *map(self.look, [*parts(vector)][1:])]
        if any(isinstance(each, NormedVector) for each in every):
            if vector.array and axis is None:
                raise self.run.refusal("a sum over rows and columns", "give axis=0")
            return self.lifted(functools.partial(self.total, vector), *every)
        numbers = [each for each in map(number_of, every) if each is not None]
        rows = axis is not None and vector.array and not isinstance(vector.usual, PairedNumber)
        if rows or len(numbers) < len(every):
            return self.refused("sum")
        return self.total(vector, *numbers)

    @staticmethod
    def total(vector: Vector, *numbers: PairedNumber) -> PairedNumber:
        """The sum of a vector's entries, which are these: it moves as the changed ones do, and by that of one run."""
        first, extra = numbers[0], numbers[1 + len(vector.changed) :]
        low = Fraction(0) if all(each.span.low >= 0 for each in numbers) else -math.inf
        high = Fraction(0) if all(each.span.high <= 0 for each in numbers) else math.inf
        moves = [each.moved for each in numbers[1 : 1 + len(vector.changed)]]
        moves += [each.span if second else -each.span for second, each in zip(vector.axis.extras, extra, strict=True)]
        moved = functools.reduce(operator.add, moves, STILL) if first.moved == STILL else ALL
        summed = numbers if not extra and all(map(is_power, numbers)) else ()
        same, whole = not extra and all(each.same for each in numbers), all(each.whole for each in numbers)
        return PairedNumber(same, Span(low, high), moved, whole, summed=summed, along=vector.axis if summed else None)

    def _mean_of(self, value: Any, axis: Any = None) -> Any:
        total, number = self.by_rule("sum", [value], {"axis": axis}), self.run.apply(Function("len"), [value], {})
        return self.run.binary(ast.Div(), total, number)

    def _cumsum_of(self, value: Any) -> Any:
        found = self.as_array(value)
        if not isinstance(found, KnownArray):
            return NotImplemented
        return KnownArray(list(itertools.accumulate(found.items, functools.partial(self.run.binary, ast.Add()))))

    def _count_of(self, value: Any, wanted: Any) -> Any:
        found = self.run.items(value)
        if not isinstance(found, Vector):
            return NotImplemented
        return self._sum_of(self.each(found, lambda each: self.run.compared(ast.Eq(), each, wanted)))

    def _truths_of(self, every: bool, value: Any) -> Any:
        """Whether all, or any, of known entries are true."""
        found = self.run.items(value)
        if not isinstance(found, list):
            return NotImplemented
        truths = [self.run.truth(each) for each in found]
        if any(each is (not every) for each in truths):
            return not every
        return self.decided(PairedTruth()) if any(isinstance(each, PairedTruth) for each in truths) else every

    # --- the largest ----------------------------------------------------------------------------------------------

    def _most_of(self, pick: Any, *values: Any, key: Any = None) -> Any:
        """The largest or the smallest, of several or of the entries of one."""
        if key is not None:
            return self.most_by(pick, self.run.items(values[0]), key) if len(values) == 1 else NotImplemented
        entries = list(values) if len(values) > 1 else self.run.items(values[0])
        if self.single is not None and isinstance(entries, Vector) and not entries.axis.filled:
            raise self.run.refusal("the largest or the least of what may be empty", "give a default")
        if isinstance(entries, list) and entries:
            found = functools.reduce(functools.partial(self._either_of, pick), entries)
            top = type(found) is PairedNumber and pick is max and len(values) == 1 < len(entries)
            return replace(found, top=tuple(entries)) if top else found
        if not isinstance(entries, Vector) or entries.extras:
            return NotImplemented
        numbers = [self.many(lambda: self.number(entries.usual)), *map(self.number, entries.changed)]
        if None in numbers:
            return NotImplemented
        hull = functools.reduce(operator.or_, (each.moved for each in numbers))
        whole = all(each.whole for each in numbers)
        same = all(each.same for each in numbers)
        return PairedNumber(same, ALL, hull, whole, top=(entries,) if pick is max else ())

    def most_by(self, pick: Any, entries: Any, key: Any) -> Any:
        """The entry for which a key function gives the most: public ones, by what has noise or is public."""
        found, items = self.keyed(entries, key), self.keyed(entries)
        if not found or not items or not all(isinstance(each, EntryIndex) or is_same(each) for each in items):
            return NotImplemented
        if isinstance(entries, list) and is_plain(found):
            return items[found.index(self.run.plain(pick, found))]
        if holds(items):
            return NotImplemented
        if self.largest(found, smallest=pick is min):
            return UnknownValue()
        # the first entry of a vector stands for many
        first = self.look(found[0]) if isinstance(entries, list) else self.many(lambda: self.look(found[0]))
        return UnknownValue() if is_same([first, *map(self.look, found[1:])]) else NotImplemented

    def keyed(self, entries: Any, key: Any = None) -> list[Any] | None:
        """What a key function makes of each entry, of a list or a vector; None where one run has more of them."""
        clock = self.clock
        if not isinstance(entries, list | Vector) or isinstance(entries, Vector) and entries.extras:
            return None
        items = list(parts(entries))
        if key is None:
            return items
        if isinstance(entries, Vector):
            before = self.run.contents()
            found = self.each(entries, lambda each: self.check_own(self.run.apply(key, [each], {}), clock))
            if not self.untouched_contents(before, self.run.contents()):
                raise self.run.refusal("a key function that changes something", "write a loop")
            return [*parts(found)]
        return [self.run.apply(key, [each], {}) for each in items]

    def _place_of(self, pick: Any, value: Any) -> Any:
        """The place of the largest or the smallest."""
        entries = self.keyed(self.run.items(value))
        return UnknownValue() if entries is not None and self.largest(entries, smallest=pick is min) else NotImplemented

    def _argsort_of(self, value: Any) -> Any:
        entries = self.keyed(self.run.items(value))
        return NotImplemented if entries is None else Order(entries)

    def index_of_largest(self, node: ast.Call) -> Any:
        """`v.index(max(v))`: the place of the largest, where the noise of v was not looked at; None for other calls."""
        for pick in (max, min):
            seen = seen_in(node, f"v_.index({pick.__name__}(v_))")
            value = None if seen is None else self.run.name(seen["v_"])
            found = self._place_of(pick, value) if isinstance(value, list | Vector) else NotImplemented
            if found is not NotImplemented:
                return found
        return None

    def of_order(self, order: Order, index: Any) -> Any:
        """Some of the first or last places of an order, in it: that many are the largest."""
        if index == slice(None, None, -1):
            return Order(order.entries, not order.down)
        if isinstance(index, int):
            index = slice(None, index + 1) if index >= 0 else slice(index, None)
        match index:
            case slice(start=None | 0, stop=int() as times, step=None) if times >= 0:
                first = True
            case slice(start=int() as start, stop=None, step=None) if start < 0:
                first, times = False, -start
            case _:
                raise self.run.refusal("an order of which this is taken", "take the first or the last k of it")
        paid = self.largest(order.entries, times, smallest=first is not order.down)
        if not paid and not is_same(self.look(order.entries)):
            raise self.run.refusal("an order of data without noise", "add noise to each entry")
        return UnknownValue()

    # --- norms ----------------------------------------------------------------------------------------------------

    def _linalg_norm_of(self, value: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        def norm(one: Any) -> Norm:
            moved = STILL if is_same(one) else ALL
            return Norm(True, AT_LEAST_0, moved, of=one, column=axis is None or keepdims is True)

        if isinstance(value, Vector) and axis in (1, -1):
            return self.each(value, norm, array=True)
        if isinstance(value, Record | PairedNumber | KnownArray) and axis is None and not isinstance(value, Norm):
            return norm(value)
        return NotImplemented

    def _dot_of(self, left: Any, right: Any) -> Any:
        if Record in map(type, (left, right)):
            raise self.run.refusal("a product of a part of a record whose length is not known", NAMED)
        if not isinstance(left, KnownArray) or not isinstance(right, KnownArray):
            return NotImplemented
        return self._sum_of(self.elementwise(functools.partial(self.run.binary, ast.Mult()), left, right))

    def binary(self, op: ast.operator, left: Any, right: Any) -> Any:
        """left op right: what is said of norms, then of all."""
        for norm, other in ((left, right), (right, left)):
            if isinstance(norm, Norm) and (other is norm.of or not isinstance(other, Vector | KnownArray)):
                found = self.of_norm(op, norm, other, norm is left)
                if found is not None:
                    return found
        if isinstance(op, ast.MatMult):
            found = self._dot_of(self.as_array(left), self.as_array(right))
            if found is not NotImplemented:
                return found
        for total, more in ((left, right), (right, left)):
            added = isinstance(op, ast.Add) and isinstance(total, KnownArray) and isinstance(more, NormedVector)
            if added and is_same(total):
                self.rows_have(len(total.items))
                return replace(more, number=replace(more.number, span=ALL, start=None))
        return super().binary(op, left, right)

    def entry(self, owner: Any, index: Any) -> Any:
        """owner[index]: of an order, the places of some of the largest."""
        if isinstance(owner, Order):
            return self.of_order(owner, index)
        if isinstance(owner, Vector) and index == (slice(None), None) and isinstance(owner.usual, Norm):
            return self.each(owner, lambda one: replace(one, column=True))
        return super().entry(owner, index)

    def of_norm(self, op: ast.operator, norm: Norm, other: Any, is_left: bool) -> PairedNumber | NormedVector | None:
        """A norm times, over or under a positive number, or with one added; a vector over a bound of its norm."""
        if other is norm.of:
            if isinstance(other, Record) and other.path:  # it may be a number, which meets every entry of an array
                raise self.run.refusal("the norm of a part of a record", "let each record be a row of numbers")
            if isinstance(other, Record):
                self.numbers.add((".row",))
            if isinstance(other, KnownArray):
                self.rows_have(len(other.items))
            fits = isinstance(op, ast.Mult) if norm.inverse else isinstance(op, ast.Div) and not is_left
            if not (norm.column and norm.kept and fits):
                raise self.run.refusal("this operation on a vector", "divide it by max(1, norm / bound)")
            size = within(norm.factor if norm.inverse else 1 / norm.factor)
            return size if isinstance(other, PairedNumber) else NormedVector(number=size, axis=self.rows)
        by = fraction_of(other) if is_number(other) else Fraction(0)
        if by <= 0:
            return None
        match op:
            case ast.Add() if not norm.inverse:
                return replace(norm, kept=True)
            case ast.Mult():
                return replace(norm, factor=norm.factor * by)
            case ast.Div() if is_left:
                return replace(norm, factor=norm.factor / by)
            case ast.Div() if not norm.inverse:
                return replace(norm, factor=by / norm.factor, inverse=True)
        return None


def within(size: Fraction) -> PairedNumber:
    """A number that is no larger."""
    return PairedNumber(True, Span(-size, size))


def is_power(value: Any) -> bool:
    """Whether a value is e to a number that is known of."""
    return isinstance(value, PairedNumber) and value.log is not None


def takes(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether a rule has these arguments."""
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True
