"""Lists, dictionaries, arrays and vectors: what is in them, what is put into them, and what either of two may be."""

from __future__ import annotations

import ast
import functools
import math
import operator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.verify.coupled.expressions import MISSING
from dpaudit.verify.coupled.noise import Rng
from dpaudit.verify.coupled.operators import NAMED, OperatorRules
from dpaudit.verify.coupled.values import (
    ALL,
    AT_LEAST_0,
    USER,
    EntryAxis,
    EntryIndex,
    FreshNoise,
    Function,
    Keyed,
    KnownArray,
    Noisy,
    NormedVector,
    Only,
    Order,
    Own,
    PairedNumber,
    PairedTruth,
    Record,
    Rest,
    Span,
    UnknownValue,
    Unlisted,
    UserRows,
    Vector,
    copied,
    has_inside,
    holds,
    is_plain,
    is_same,
    number_of,
    parts,
    unchanged,
)
from dpaudit.verify.coupled.ways import Contents, NotShown, OtherKind

MOST_PLACES = 1_000  # of an index that may be one of several
ANY = Rest()  # a key that stands for any number of public ones


class ValueRules(OperatorRules):
    """What Python does with values that are unknown, as far as it is known."""

    def items(self, value: Any) -> Any:
        """The entries of what is iterated over."""
        match value:
            case KnownArray():
                return list(value.items)
            case Keyed():
                return self.places(value.vector.axis)
            case Order():
                raise self.run.refusal("a loop over an order", "take the first or the last k of it")
            case UserRows():
                raise self.run.refusal(
                    "rows of users in any order", "go over them by one loop that counts the rows of each user"
                )
            case Vector(ordered=False):
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

    @staticmethod
    def places(axis: EntryAxis) -> Vector:
        """The places of the entries along an axis: extras come between the others anywhere."""
        extras = Fraction(len(axis.extras))
        index = EntryIndex(True, AT_LEAST_0, Span(-extras, extras), True, axis=axis)
        changed = tuple(replace(index, of_changed=place) for place in range(axis.changed))
        more = tuple(PairedNumber(whole=True) for _ in axis.extras)
        return Vector(usual=index, changed=changed, extras=more, axis=axis)

    def unpacked(self, value: Any, number: int) -> list[Any]:
        """The parts of an unknown value that is assigned to several names."""
        if isinstance(value, Record):
            return [self.part(value, place) for place in range(number)]
        if not isinstance(value, Vector) and value.same and self.single is None:
            return [UnknownValue() for _ in range(number)]
        raise self.run.refusal("data in several names", "read them by their index")

    def entry(self, owner: Any, index: Any) -> Any:
        """owner[index]."""
        if isinstance(owner, Noisy):
            owner = self.look(owner)
        if isinstance(owner, Record) and is_plain(index):
            if has_inside(index, slice | list | dict):
                raise self.run.refusal("several parts of a record at once", NAMED)
            return self.part(owner, index)
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
            owner = owner.items
        if isinstance(owner, dict) and isinstance(index, Rest) and index in owner:
            return owner[index]
        if isinstance(owner, list | tuple) and isinstance(index, PairedNumber):
            kept = any(isinstance(each, list | dict | KnownArray | tuple) for each in owner)
            if index.same and self.single is None and is_same(owner) and not kept:
                return UnknownValue() if not owner else functools.reduce(self.join, owner)
            return owner[self.one_of(index, len(owner))]
        if isinstance(owner, dict) and isinstance(index, Record) and index.region is not None:
            key = self.key(owner, index)
            if key in owner:
                return owner[key]
            raise self.run.refusal("a key of the record that the dictionary does not have", "check it with `in` first")
        if is_same(self.look(owner)) and is_same(self.look(index)) and self.single is None and not holds(owner):
            return UnknownValue()  # in one run alone it may raise
        raise self.run.refusal("an entry of data", "read it by a public index")

    def of_vector(self, vector: Vector, index: Any) -> Any:
        """An entry, or some, of a vector."""
        if isinstance(index, EntryIndex) and index.axis is vector.axis:
            return copied(vector.usual if index.of_changed is None else vector.changed[index.of_changed])
        if vector.same and is_same(index) and self.single is None and not holds((vector.usual, *vector.changed)):
            return UnknownValue()
        if isinstance(index, Vector) and index.axis is vector.axis:
            return self.selected(vector, index)
        if isinstance(index, UnknownValue) and index.same and not isinstance(index, Vector) and not vector.extras:
            numbers = [self.many(lambda: self.number(vector.usual)), *map(self.number, vector.changed)]
            if None not in numbers:  # both runs take the same place
                return functools.reduce(self.join, [replace(each) for each in numbers])
        if isinstance(index, slice) and not vector.extras and len(vector.changed) < 2 and is_plain(index):
            changed = vector.changed if vector.changed and self.in_slice(vector.axis, index) else ()
            return Vector(usual=vector.usual, changed=changed, axis=EntryAxis(len(changed)), array=vector.array)
        if isinstance(index, str):
            raise self.run.refusal(f"a column {index!r}: no table is read", "loop over rows, as dictionaries say")
        raise self.run.refusal("an answer by its place", "give `answers`, how many there are")

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
        every = zip(vector.axis.extras, vector.extras, mask.extras, strict=True)
        extras = [(second, one) for second, one, keep in every if self.taken(keep)]
        if any(not isinstance(each, bool) for each in mask.changed):
            raise self.run.refusal("a selection by data without noise", "select by public values")
        changed = tuple(one for one, keep in zip(vector.changed, mask.changed, strict=True) if keep)
        axis = EntryAxis(len(changed), tuple(second for second, _ in extras))
        return replace(vector, changed=changed, extras=tuple(one for _, one in extras), axis=axis, array=True)

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
                if is_plain(key) and not isinstance(key, Own):
                    equal = self.run.compared(ast.Eq(), index, key)
                    if isinstance(equal, bool | np.bool_) and equal:
                        return key
            place = index.region.get(index.path)
            if place is not None and place.exactly:
                if ANY in owner and not isinstance(place.value, Own):
                    raise self.run.refusal("a key that the dictionary may have or not", "give it its public keys first")
                return place.value
            own, which = self.own_key(index), ("shared", id(owner))
            self.kept.append(owner)
            if (*which, own) not in self.facts:
                self.facts[*which, own] = not self.run.choose()
            if self.facts[*which, own] and own not in owner and ANY in owner:
                value = owner[ANY]  # another record has it too
                owner[own] = replace(value, start=(id(owner), own)) if isinstance(value, PairedNumber) else value
            return own
        if self.single is not None and isinstance(index, PairedNumber) and isinstance(owner, list | KnownArray):
            return self.one_of(index, len(owner.items if isinstance(owner, KnownArray) else owner))
        return index

    def own_key(self, index: Record) -> Own:
        """The name of a part of a record that is no public value: one for those that are equal."""
        which = "own", id(index.region), index.path
        if which not in self.facts:
            names = sorted({each for each in self.facts.values() if isinstance(each, Own)})
            place = self.run.choose(len(names) + 1)
            self.facts[which] = [*names, Own(f"value {len(names)}")][place]
            self.kept.append(index.region)
        return self.facts[which]  # type: ignore[no-any-return]

    def check_keys(self, owner: Any, index: Any, written: str = "") -> None:
        """Raises where a dictionary has users and other parts of rows for keys, or is `written` to in two ways.

        An entry at a key of the data may be written by several records; what it is must not depend on which is first.
        """
        if not isinstance(owner, dict):
            return
        if written and self.single is not None and isinstance(index, Own) and index not in owner:
            raise self.run.refusal("keys of another dictionary", "go over the records")  # any record may have it here
        _, users, ways = self.habits.setdefault(id(owner), (owner, set(), set()))
        users |= {each.path in USER for each in (index, *parts(index)) if isinstance(each, Record)}
        if len(users) > 1:
            raise self.run.refusal("a dictionary of users and of other parts of rows", "use one for each")
        user = self.of_users and isinstance(index, Record) and index.path in USER  # whom no other row has
        ways |= {written} if written and not user and not is_plain(index) else set()
        if len(ways) > 1:
            raise self.run.refusal("a dictionary that is written to in two ways", "use one `c[k] = c.get(k, 0) + x`")

    def adds_somewhere(
        self, owner: Any, index: Any, op: ast.operator, value: ast.expr, start: ast.expr | None = None
    ) -> bool:
        """owner[index] += value, where the runs share an index that is not known: each entry may be the one.

        `start`: what an entry that is not there yet is taken for.
        """
        self.check_keys(owner, index)
        known = isinstance(owner, dict | list | KnownArray) and isinstance(op, ast.Add | ast.Sub)
        if not known or is_plain(index) or not is_same(index) or self.single is not None:
            return False
        more = self.look(self.run.value(value))
        if not is_same(more):
            raise self.run.refusal("data at a place that noise chose", "add noise first")
        if start is not None and ANY not in owner:
            begun = self.look(self.run.value(start))
            if not is_same(begun):
                raise self.run.refusal("data at a place that noise chose", "add noise first")
            owner[ANY] = self.run.binary(op, begun, more)
        held = owner.items if isinstance(owner, KnownArray) else owner
        self.run.check_alone(owner)
        for key in self.others(held):
            found = self.run.binary(op, held[key], more)
            held[key] = self.join(held[key], self.fitting(owner, found) if isinstance(owner, KnownArray) else found)
        return True

    def store(self, owner: Any, index: Any, value: Any) -> None:
        """owner[index] = value."""
        self.run.check_alone(owner)
        self.check_keys(owner, index)
        if isinstance(owner, KnownArray):
            value = self.fitting(owner, value)
            if not owner.shared and isinstance(index, int | np.integer):
                self.run.store(owner.items, index, value)
                return
            owner = owner if owner.shared else owner.items
        one = self.single is not None or is_same(index) and not is_same(value)
        if one and isinstance(owner, list) and isinstance(index, PairedNumber):
            owner[self.one_of(index, len(owner))] = value
            return
        if isinstance(owner, dict) and isinstance(index, Record) and index.region is not None:
            owner[self.key(owner, index)] = value
            return
        value = self.look(value)
        if isinstance(owner, Unlisted) and self.single is None and is_same([owner, index, value]):
            return  # it stays one that both runs have, and that nothing is known of
        public = self.single is None and is_same(index)  # a number of one run alone is not
        if isinstance(owner, dict | list) and public and (is_same(value) or isinstance(value, PairedNumber)):
            for key in self.others(owner):
                owner[key] = self.join(owner[key], value)
            if isinstance(owner, dict) and ANY not in owner:
                owner[ANY] = value
            return
        raise self.run.refusal("an entry of this", "keep values in lists and dictionaries with public keys")

    def fitting(self, array: KnownArray, value: Any) -> Any:
        """A value as an array of this kind holds it."""
        number = number_of(self.numeric(value))
        noisy = isinstance(value, Noisy | FreshNoise) and KnownArray([value]).kind != "O"
        if array.kind == "f" and (number is not None or noisy or isinstance(value, float)):
            return np.float64(value) if isinstance(value, float | int | np.generic) else value
        if array.kind in ("i", "") and number is not None and number.whole:
            return np.int64(value) if array.kind == "i" and isinstance(value, int | np.generic) else number
        raise self.run.refusal("an array that may not hold such a value", "make it one of doubles, by np.zeros say")

    # --- joins of what both runs have come to on several ways -------------------------------------------------------

    def join(self, one: Any, two: Any, seen: dict[Any, Any] | None = None) -> Any:
        """What both may be: both runs have the one, or both the other."""
        seen = {} if seen is None else seen
        if one is two:
            return one
        if one is MISSING or two is MISSING:
            return MISSING
        arrays = isinstance(one, NormedVector | KnownArray) and isinstance(two, NormedVector | KnownArray)
        if arrays and (isinstance(one, NormedVector) or isinstance(two, NormedVector)):
            key = id(one), id(two)
            seen[key] = seen.get(key) or self.lifted(self.join, one, two)
            return seen[key]
        if unchanged(one, two):
            return one
        if isinstance(one, list | dict | KnownArray) or isinstance(two, list | dict | KnownArray):
            raise self.run.refusal("one of two containers", "give it one name on every way")
        if isinstance(one, tuple) and isinstance(two, tuple) and len(one) == len(two):
            return tuple(self.join(a, b, seen) for a, b in zip(one, two, strict=True))
        one, two = self.look(one), self.look(two)
        if isinstance(one, bool | PairedTruth) and isinstance(two, bool | PairedTruth):
            return self.decided(PairedTruth(is_same(one) and is_same(two)))
        a, b = (number_of(self.numeric(each) if number_of(other) else each) for each, other in ((one, two), (two, one)))
        if a is not None and b is not None and not isinstance(one, bool) and not isinstance(two, bool):
            start = a.start if a.start is b.start else None
            return PairedNumber(
                a.same and b.same, a.span | b.span, a.moved | b.moved, a.whole and b.whole, start, a.offset | b.offset
            )
        if isinstance(one, Function | type(None) | Rng) and one == two:
            return one
        if is_same(one) and is_same(two) and not holds((one, two)):
            return Unlisted() if isinstance(one, Unlisted) and isinstance(two, Unlisted) else UnknownValue()
        raise self.run.refusal("values of different kinds on different ways", "give it one kind of value")

    def join_contents(self, container: Any, one: Any, two: Any, seen: dict[Any, Any]) -> Any:
        """What a container may hold where it may hold one thing or the other."""
        if container is self.facts:
            failing = {"failing": max(each.get("failing", Fraction(0)) for each in (one, two))}
            if {**one, **failing} != {**two, **failing}:
                raise self.run.refusal("what is found out of a record on some ways alone", "decide less by noise")
            return {**one, **failing}
        if isinstance(one, dict):
            frame = "(locals)" in one or "(locals)" in two
            if not frame and listed(one) != listed(two):
                both = [*one.values(), *two.values()]
                if not is_same(self.look(both)) or not is_same([*one, *two]):
                    raise self.run.refusal("keys that are not on every way", "use public keys")
                return {ANY: functools.reduce(self.join, both)}
            return {
                name: self._joined(one.get(name, MISSING), two.get(name, MISSING), seen, frame)
                for name in {**one, **two}
            }
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
                return replace(new, number=wide(getattr(old, "number", new.number), new.number))
            if isinstance(new, PairedNumber) and not self.alike(old, new):
                was = number_of(old)
                if was is None:
                    return new
                low = new.span.low if new.span.low >= was.span.low else -math.inf
                high = new.span.high if new.span.high <= was.span.high else math.inf
                moved = new.moved if self.alike_spans(was.moved, new.moved) else ALL
                offset = new.offset if self.alike_spans(was.offset, new.offset) else ALL
                return PairedNumber(new.same, Span(low, high), moved, new.whole, new.start, offset)
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

    @staticmethod
    def alike(one: Any, two: Any) -> bool:
        """Whether the same is known of two values."""
        return one is two or bool(known_of(one) == known_of(two))

    def alike_contents(self, before: Contents, after: Contents, alike: Any = None) -> bool:
        """Whether everything that was there before holds what it held, as far as it is known."""
        alike = alike or self.alike
        for key, (_, held) in before.items():
            now = after.get(key, (None, None))[1]
            named = isinstance(held, dict) and "(locals)" not in held
            if now is None or named and listed(held) != listed(now):
                return False
            if isinstance(held, dict):
                if not all(name in now and alike(held[name], now[name]) for name in held):
                    return False
            elif len(held) != len(now) or not all(map(alike, held, now)):
                return False
        return True

    def untouched_contents(self, before: Contents, after: Contents) -> bool:
        """Whether everything that was there before holds the very values that it held."""
        return self.alike_contents(before, after, unchanged)


def listed(held: Any) -> list[str]:
    """The keys of a dictionary as they come, as Python tells them apart: 1 and 1.0 are two."""
    return [*map(repr, held)]


def known_of(value: Any) -> Any:
    """What is known of a value, to be compared with ==."""
    match value:
        case PairedNumber():
            return value.same, value.span, value.moved, value.whole, value.start, value.offset
        case NormedVector():
            return NormedVector, value.axis, known_of(value.number)
        case Only():
            return Only, value.second, known_of(value.value)
        case PairedTruth() | Rest() | Unlisted():
            return type(value), value.same
        case list() | tuple():
            return type(value), [known_of(each) for each in value]
        case dict():
            return {key: known_of(each) for key, each in value.items()}
        case KnownArray():
            return KnownArray, known_of(value.items)
    return (UnknownValue, value.same) if type(value) is UnknownValue else (type(value), value)
