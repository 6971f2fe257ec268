"""What either of two values may be, and whether as much is known of two."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.verify.coupled.expressions import MISSING
from dpaudit.verify.coupled.noise import Rng
from dpaudit.verify.coupled.operators import OperatorRules
from dpaudit.verify.coupled.values import (
    ALL,
    Function,
    KnownArray,
    NormedVector,
    Only,
    PairedNumber,
    PairedTruth,
    Rest,
    Span,
    UnknownValue,
    Unlisted,
    holds,
    is_same,
    number_of,
)
from dpaudit.verify.coupled.ways import Contents, NotShown

ANY = Rest()  # a key that stands for any number of public ones


class JoinRules(OperatorRules):
    """Joins of what both runs have come to on several ways."""

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
        a, b = number_of(one), number_of(two)
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
            if isinstance(held, dict) and isinstance(now, dict):
                if "(locals)" not in held and held.keys() != now.keys():
                    return False
                if not all(name in now and alike(held[name], now[name]) for name in held):
                    return False
            elif isinstance(held, set) or now is None:
                if held != now:
                    return False
            elif len(held) != len(now) or not all(map(alike, held, now)):
                return False
        return True

    def untouched_contents(self, before: Contents, after: Contents) -> bool:
        """Whether everything that was there before holds the very values that it held."""
        return self.alike_contents(before, after, unchanged)


def unchanged(one: Any, two: Any) -> bool:
    """Whether two values are the very same, or two that Python tells apart in nothing."""
    plain = type(one) is type(two) and isinstance(one, int | float | str | bool | frozenset | np.generic)
    return one is two or plain and bool(one == two) and repr(one) == repr(two)


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
        case np.ndarray():
            return known_of(value.tolist())
    return (UnknownValue, value.same) if type(value) is UnknownValue else (type(value), value)
