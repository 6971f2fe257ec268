"""Lists, dictionaries, arrays and vectors: what is in them, and what is put into them."""

from __future__ import annotations

import ast
import functools
import math
import operator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.verify.coupled.joins import ANY, JoinRules
from dpaudit.verify.coupled.values import (
    STILL,
    Axis,
    EntryIndex,
    FreshNoise,
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
    Replaced,
    Rest,
    Several,
    Span,
    UnknownValue,
    Unlisted,
    UserRows,
    Vector,
    holds,
    is_plain,
    is_same,
    number_of,
)
from dpaudit.verify.coupled.ways import OtherKind, RaisedAlike

MOST_PLACES = 1_000  # of an index that may be one of several


class ValueRules(JoinRules):
    """What Python does with values that are unknown, as far as it is known."""

    def items(self, value: Any) -> Any:
        """The entries of what is iterated over."""
        match value:
            case KnownArray():
                return list(value.items)
            case Keyed():
                return self.indices(value.vector)
            case Order():
                raise self.run.refusal("a loop over an order", "take the first or the last k of it")
            case UserRows():
                raise self.run.refusal(
                    "rows of users in any order", "go over them by one loop that counts the rows of each user"
                )
            case Vector(ordered=False) | Several(vector=Vector(ordered=False)):
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
            return list(self.both(lambda one: tuple(self.unpacked(one, number)), value))
        if not isinstance(value, Vector) and value.same:
            return [UnknownValue() for _ in range(number)]
        raise self.run.refusal("data in several names", "read them by their index")

    def entry(self, owner: Any, index: Any) -> Any:
        """owner[index]."""
        if isinstance(owner, Replaced):
            return self.both(lambda one: self.entry(one, index), owner)
        if isinstance(owner, Noisy):
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
                return functools.reduce(self.join, [replace(each) for each in numbers])
        if isinstance(index, slice) and vector.extra is None and is_plain(index):
            changed = vector.changed if vector.changed and self.in_slice(vector.axis, index) else ()
            return Vector(usual=vector.usual, changed=changed, axis=Axis(len(changed)), array=vector.array)
        raise Listed()

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
        return replace(vector, changed=changed, extra=extra, axis=Axis(len(changed)), array=True)

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
                if is_plain(key) and not isinstance(key, Own):
                    equal = self.run.compared(ast.Eq(), index, key)
                    if isinstance(equal, bool | np.bool_) and equal:
                        return key
            place = index.region.get(index.path)
            if place is not None and place.exactly:
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
        if isinstance(owner, Unlisted) and self.single is None and is_same([owner, index, value]):
            return  # it stays one that both runs have, and that nothing is known of
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
        noisy = isinstance(value, Noisy | FreshNoise) and KnownArray([value]).kind != "O"
        if array.kind == "f" and (number is not None or noisy or isinstance(value, float)):
            return np.float64(value) if isinstance(value, float | int | np.generic) else value
        if array.kind in ("i", "") and number is not None and number.whole:
            return np.int64(value) if array.kind == "i" and isinstance(value, int | np.generic) else number
        raise self.run.refusal("an array that may not hold such a value", "make it one of doubles, by np.zeros say")


class Listed(Exception):
    """A dataset is read by the place of its answers: how many there are must be known."""
