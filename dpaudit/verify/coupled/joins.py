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
    ABSTRACT,
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
                a.same and b.same, a.span | b.span, a.moved | b.moved, a.whole and b.whole, start, a.offset | b.offset
            )
        if isinstance(one, Function | type(None) | Rng) and one == two:
            return one
        if is_same(one) and is_same(two) and not holds((one, two)):
            return Unlisted() if isinstance(one, Unlisted) and isinstance(two, Unlisted) else UnknownValue()
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

    def alike(self, one: Any, two: Any) -> bool:
        """Whether the same is known of two values."""
        if one is two:
            return True
        match one, two:
            case PairedNumber(), PairedNumber():
                fields = ("same", "span", "moved", "whole", "start", "offset")
                return all(getattr(one, name) == getattr(two, name) for name in fields)
            case NormedVector(), NormedVector():
                return one.axis is two.axis and self.alike(one.number, two.number)
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
            return type(one) is type(two) and type(one) in (UnknownValue, Unlisted) and one.same == two.same
        return type(one) is type(two) and bool(np.all(one == two))

    def alike_contents(self, before: Contents, after: Contents) -> bool:
        """Whether everything that was there before holds what it held."""
        return all(key in after and self.alike_held(held, after[key][1]) for key, (_, held) in before.items())

    def untouched_contents(self, before: Contents, after: Contents) -> bool:
        """Whether everything that was there before holds the very values that it held."""

        def untouched(one: Any, two: Any) -> bool:
            plain = type(one) is type(two) and isinstance(one, int | float | str | bool | frozenset) and one == two
            return one is two or plain

        for key, (_, held) in before.items():
            if key not in after:
                return False
            now = after[key][1]
            if isinstance(held, set):
                if held != now:
                    return False
            elif isinstance(held, dict):
                frame = "(locals)" in held
                if (
                    not frame
                    and held.keys() != now.keys()
                    or not all(name in now and untouched(held[name], now[name]) for name in held)
                ):
                    return False
            elif len(held) != len(now) or not all(map(untouched, held, now)):
                return False
        return True

    def alike_held(self, one: Any, two: Any) -> bool:
        if isinstance(one, dict) and "(locals)" in one:
            return all(name in two and self.alike(one[name], two[name]) for name in one)
        return self.alike(one, two)
