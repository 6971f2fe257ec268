"""When two outputs are one, and what has no canonical form."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import itertools
import math
from collections import Counter, OrderedDict, deque, namedtuple
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpaudit.errors import UnsoundAudit
from dpaudit.verify.replay import canonical, replay

Place = namedtuple("Place", "x y")


class Colour(enum.Enum):
    RED = 1
    BLUE = 1.5


@dataclasses.dataclass
class Record:
    name: str
    values: list[int]


@dataclasses.dataclass
class Other:
    name: str
    values: list[int]


ALIKE: list[list[Any]] = [
    [1, 1.0, True, np.int8(1), np.float32(1), np.True_, Fraction(1), Decimal(1), 1 + 0j, np.array(1)[()]],
    [0.0, -0.0, 0, False],
    [math.nan, -math.nan, np.float64("nan"), Decimal("nan"), np.float32("nan")],
    [math.inf, np.inf, Decimal("inf")],
    [0.1, np.float64(0.1)],
    ["1", np.str_("1")],
    [b"1", bytearray(b"1"), memoryview(b"1")],
    [None],
    [(1, 2), (1.0, np.int64(2))],
    [(math.nan,), (np.float64("nan"),)],
    [[1, 2], [True, 2.0]],
    [[1, (2, [3])], [1.0, (2.0, [3])]],
    [{1, 2}, {2.0, 1}],
    [frozenset({1, 2})],
    [{"a": 1, "b": [2]}, {"b": [2.0], "a": True}],
    [np.array([1, 2]), np.array([1.0, 2.0])],
    [np.array([[1, 2]])],
    [deque([1, 2])],
    [range(2), range(0, 2, 1)],
    [Place(1, 2), Place(1.0, 2)],
    [Colour.RED],
    [Colour.BLUE],
    [Record("a", [1]), Record("a", [1.0])],  # type: ignore[list-item]
    [Other("a", [1])],
    [Counter({"a": 1, "b": 2}), Counter("abb")],
    [OrderedDict(a=1)],
    [np.float32(0.1), float(np.float32(0.1))],
    [Fraction(1, 3)],
    [2**53 + 1, Fraction(2**53 + 1)],
    [2**53, 2.0**53],
    [datetime.date(2020, 1, 1)],
    [1j],
    [""],
    [()],
    [[]],
    ["nan"],
    ["list"],
    [("list", ())],
]


@pytest.mark.parametrize("alike", ALIKE, ids=lambda alike: repr(alike[0])[:30])
def test_equal_outputs_have_one_form(alike: list[Any]) -> None:
    assert len({canonical(output) for output in alike}) == 1


def test_different_outputs_have_different_forms() -> None:
    forms = [canonical(alike[0]) for alike in ALIKE]
    assert all(a != b for a, b in itertools.combinations(forms, 2))


def test_an_iterator_is_what_it_gives() -> None:
    assert canonical(iter([1, 2])) == canonical(iter((1.0, 2)))
    law = replay(lambda data, rng: (rng.bit() for _ in range(2)), [0, 1], "all").laws[0]
    assert sorted(law.values()) == [Fraction(1, 4)] * 4


class Opaque:
    pass


class Equal:
    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)


class Unhashable(Equal):
    __hash__ = None  # type: ignore[assignment]


def test_objects_with_an_equality_of_their_own_are_taken_at_their_word() -> None:
    assert canonical(Equal(1)) == canonical(Equal(1)) != canonical(Equal(2))
    assert canonical(Equal(1)) != 1


nested: list[Any] = []
nested.append(nested)


@pytest.mark.parametrize(
    "output",
    [
        Opaque(),
        [Opaque()],
        len,
        Opaque,
        Unhashable(1),
        nested,
        np.ma.array([1]),
        itertools.count(),
        np.zeros(1, "M8[s]"),
    ],
    ids=["object", "in a list", "function", "type", "unhashable", "in itself", "masked", "endless", "dates"],
)
def test_what_cannot_be_told_apart_is_refused(output: Any) -> None:
    with pytest.raises(UnsoundAudit, match="an output"):
        canonical(output)


def test_forms_read_like_what_they_stand_for() -> None:
    assert repr(canonical([1, "a"])) == "list((1, 'a'))"
    assert canonical((1, "a")) == (1, "a")
