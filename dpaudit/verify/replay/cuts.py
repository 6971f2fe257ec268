"""Outputs with tails, cut alike on all datasets, so that laws over them can be compared like any others."""

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain, product
from typing import Any

from dpaudit.errors import InvalidSpec
from dpaudit.verify.replay.canonical import Raised, Shaped
from dpaudit.verify.replay.tails import ENDLESS, Tail

Law = Mapping[Hashable, Fraction]

MOST_CELLS = 100_000  # outputs that one family of outputs is cut into


class TailCuts:
    """Outputs of some laws, cut so that two are one or have nothing in common: far out, one for each tail.

    Where all laws agree on how their tails fall, the ratio of two is the same all along a tail, so that what is
    computed of `laws`, those of the outputs that are cut, is right for the outputs themselves.
    """

    def __init__(self, laws: Sequence[Law]) -> None:
        self._tails: dict[tuple[Hashable, int, bool], Tail] = {}
        self._ends: dict[tuple[Hashable, int], tuple[int, int]] = {}
        for shape, parts in {_split(output) for law in laws for output in law}:
            for place, part in enumerate(parts):
                value = part.start if type(part) is Tail else part
                low, high = self._ends.get((shape, place), (value, value))
                self._ends[shape, place] = min(low, value), max(high, value)
                same = self._tails.setdefault((shape, place, part.step > 0), part) if type(part) is Tail else part
                if type(part) is Tail and (same.step, same.rate) != (part.step, part.rate):
                    raise InvalidSpec(f"{ENDLESS} falls at two rates or in two steps, which are not compared")
        self.laws = [self._law(law) for law in laws]

    def of(self, output: Hashable) -> Hashable:
        """The output that one of the mechanism's own is part of."""
        shape, parts = _split(output)
        return _filled(shape, (self._far(shape, place, part) for place, part in enumerate(parts)))  # type: ignore[no-any-return]

    def _far(self, shape: Hashable, place: int, value: int) -> "int | Tail":
        low, high = self._ends.get((shape, place), (value, value))
        tail = self._tails.get((shape, place, value > high))
        if tail is None or low <= value <= high:
            return value
        first = high + 1 + (value - high - 1) % tail.step if value > high else low - 1 + (value - low + 1) % tail.step
        return replace(tail, start=first)

    def _law(self, law: Law) -> Law:
        cut: dict[Hashable, Fraction] = defaultdict(Fraction)
        for output, p in law.items():
            shape, parts = _split(output)
            cells = [self._cells(part, *self._ends[shape, place]) for place, part in enumerate(parts)]
            if math.prod(map(len, cells)) > MOST_CELLS:
                raise InvalidSpec(f"{ENDLESS} is compared with more than {MOST_CELLS:,} others; give fewer datasets")
            for chosen in product(*cells):
                values, shares = zip(*chosen, strict=True) if chosen else ((), ())
                cut[_filled(shape, iter(values))] += math.prod(shares, start=p)
        return cut

    def _cells(self, part: "int | Tail", low: int, high: int) -> "list[tuple[int | Tail, Fraction]]":
        if type(part) is not Tail:
            return [(part, Fraction(1))]
        cells, value, left = list[tuple[int | Tail, Fraction]](), part.start, Fraction(1)
        while low <= value <= high and len(cells) <= MOST_CELLS:
            cells.append((value, left * (1 - part.rate)))
            value, left = value + part.step, left * part.rate
        return [*cells, (replace(part, start=value), left)]


def _split(form: Any) -> tuple[Hashable, tuple[Any, ...]]:
    """The shape of an output, and the whole numbers in it."""
    if type(form) in (int, Tail):
        return Tail, (form,)
    if type(form) in (Shaped, Raised):
        shape, parts = _split(form.content)
        return replace(form, content=shape), parts
    if type(form) is not tuple:
        return form, ()
    shapes, parts = zip(*map(_split, form), strict=True) if form else ((), ())
    return tuple(shapes), tuple(chain.from_iterable(parts))


def _filled(shape: Any, parts: Iterator[Any]) -> Any:
    """The output of a shape with these numbers, the first ones first."""
    if shape is Tail:
        return next(parts)
    if type(shape) in (Shaped, Raised):
        return replace(shape, content=_filled(shape.content, parts))
    return tuple(_filled(each, parts) for each in shape) if type(shape) is tuple else shape
