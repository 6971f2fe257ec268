"""When two outputs are one, and what has no canonical form."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import io
import itertools
import math
import re
import struct
import time
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpaudit.errors import UnsoundAudit
from dpaudit.verify.replay import canonical, replay
from tests.cases import for_each

pytestmark = pytest.mark.usefixtures("unwatched")

Place = namedtuple("Place", "x y")


class Colour(enum.Enum):
    RED = 1
    BLUE = 1.5


@dataclasses.dataclass
class Record:
    name: str
    values: list[int]


Other = dataclasses.make_dataclass("Other", [("name", str), ("values", list)])


class Named(float):
    """A number that may carry something besides."""


class Liar(float):
    def __float__(self) -> float:
        return 0.0

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    __repr__ = __str__ = lambda self: "0.0"  # type: ignore[assignment]


class LyingArray(np.ndarray):  # type: ignore[type-arg]
    shape = (0,)  # type: ignore[assignment]

    def tobytes(self, order: Any = None) -> bytes:
        return b""


class LyingError(ValueError):
    args = ()  # type: ignore[assignment]

    def __str__(self) -> str:
        return ""


class Coarse:
    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class Slotted(Coarse):
    __slots__ = ("more",)

    def __init__(self, value: int, more: int) -> None:
        super().__init__(value)
        self.more = more


class Silent:
    """Keeps a slot to itself, whoever asks for it by name."""

    __slots__ = ("secret",)

    def __init__(self, secret: int) -> None:
        self.secret = secret

    def __getattribute__(self, name: str) -> Any:
        if name == "secret":
            raise AttributeError(name)
        return object.__getattribute__(self, name)


class Misnamed:
    """Names other slots than it has."""

    __slots__ = ("secret",)
    __slotnames__ = ["other"]  # noqa: RUF012

    def __init__(self, secret: int) -> None:
        self.secret = secret


class Hiding:
    """One slot has both names, and the other none."""

    __slots__ = ("secret", "shown")


Hiding.secret = Hiding.shown  # type: ignore[misc]


class Opaque:
    pass


def turned(value: OrderedDict[Any, Any]) -> OrderedDict[Any, Any]:
    value.move_to_end("a")
    return value


def with_(value: Any, **attributes: Any) -> Any:
    """The value, with these attributes set."""
    for name, attribute in attributes.items():
        setattr(value, name, attribute)
    return value


DIFFERENT: dict[str, list[Callable[[], Any]]] = {  # in each, no two look the same; made anew, each is itself again
    "one": [
        lambda: 1, lambda: 1.0, lambda: True, lambda: np.int8(1), lambda: np.int64(1), lambda: np.float32(1),
        lambda: np.float64(1), lambda: np.longdouble(1), lambda: np.True_, lambda: Fraction(1), lambda: Decimal(1),
        lambda: Decimal("1.0"), lambda: Decimal("1.00"), lambda: 1 + 0j, lambda: complex(1, -0.0), lambda: "1",
        lambda: b"1", lambda: np.str_("1"), lambda: bytearray(b"1"), lambda: memoryview(b"1"), lambda: Named(1),
        lambda: np.str_("1\0"), lambda: np.bytes_(b"1"), lambda: np.bytes_(b"1\0"), lambda: memoryview(b"12")[::2],
        lambda: with_(Named(1), name="a"),
        lambda: Liar(1), lambda: Liar(2), lambda: Colour.RED, lambda: np.array(1), lambda: [1], lambda: (1,),
        lambda: {1}, lambda: frozenset({1}), lambda: iter([1]), lambda: (each for each in [1]), lambda: {1: None},
    ],
    "nothing": [
        lambda: 0, lambda: 0.0, lambda: -0.0, lambda: False, lambda: None, lambda: "", lambda: b"", lambda: (),
        list, dict, lambda: Decimal("-0"), lambda: np.array([]), lambda: np.zeros((0, 1)), lambda: range(0),
        lambda: range(0, 2, 5), lambda: range(0, 2, 3), lambda: OrderedDict(), lambda: Counter(), lambda: defaultdict(),
        lambda: defaultdict(int), lambda: deque(), lambda: deque(maxlen=1), lambda: Opaque(), lambda: NotImplemented,
    ],
    "no number": [
        lambda: math.nan, lambda: -math.nan, lambda: np.float64("nan"), lambda: Decimal("nan"), lambda: Decimal("nan1"),
        lambda: math.inf, lambda: -math.inf, lambda: Decimal("inf"), lambda: "nan",
        lambda: struct.unpack("d", struct.pack("q", (0x7FF8 << 48) + 7))[0],
    ],
    "arrays": [
        lambda: np.array([1, 0]), lambda: np.array([1.0, 0.0]), lambda: np.array([1.0, -0.0]),
        lambda: np.array([[1, 0]]),
        lambda: np.array([1, 0], np.int8), lambda: np.array([True, False]), lambda: np.array([1, 0], object),
        lambda: np.array([1, 0.0], object), lambda: np.array([1, 0], ">i8"), lambda: np.array([1, 0], np.longdouble),
        lambda: np.array([1, 0]).view(LyingArray), lambda: np.array([1, 1]).view(LyingArray),
        lambda: np.array(["1", "0"]), lambda: np.array([1, 0j]), lambda: [1, 0],
    ],
    "orders": [
        lambda: {"a": 1, "b": 2}, lambda: {"b": 2, "a": 1}, lambda: {"a": 1.0, "b": 2}, lambda: OrderedDict(a=1, b=2),
        lambda: turned(OrderedDict(a=1, b=2)), lambda: Counter(a=1, b=2), lambda: Counter(b=2, a=1), lambda: {0, 8},
        lambda: {8, 0}, lambda: frozenset([8, 0]), lambda: {(0,): {"a": 0, "b": 1}}, lambda: {(0,): {"b": 1, "a": 0}},
    ],
    "classes": [
        lambda: Place(1, 2), lambda: Place(1.0, 2), lambda: (1, 2), lambda: Record("a", [1]), lambda: Other("a", [1]),
        lambda: Record("a", [True]), lambda: Coarse(1), lambda: Coarse(2), lambda: Slotted(1, 1), lambda: Slotted(1, 2),
        lambda: [Coarse(1)], lambda: [Coarse(2)], lambda: Colour.BLUE,
        lambda: Silent(1), lambda: Silent(2), lambda: Misnamed(1), lambda: Misnamed(2),
    ],
    "times": [
        lambda: datetime.date(2020, 1, 1), lambda: datetime.datetime(2020, 1, 1), lambda: datetime.timedelta(1),
        lambda: datetime.datetime(2020, 1, 1, fold=1), lambda: datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
    ],
    "raised": [
        lambda: ValueError(), lambda: ValueError("a"), lambda: ValueError("b"), lambda: TypeError("a"),
        lambda: ValueError(1), lambda: ValueError(True), lambda: ValueError("1"),
        lambda: with_(ValueError("a"), __notes__=["b"]), lambda: with_(ValueError("a"), __cause__=KeyError("b")),
        lambda: with_(ValueError("a"), __cause__=KeyError("c")),
        lambda: LyingError(1), lambda: LyingError(2), lambda: OSError(2, "no", "a"), lambda: OSError(2, "no", "b"),
    ],
}  # fmt: skip


@for_each("name", DIFFERENT)
def test_outputs_are_one_where_nobody_can_tell_them_apart(name: str) -> None:
    forms = [(canonical(make()), canonical(make())) for make in DIFFERENT[name]]
    assert all(form == again and hash(form) == hash(again) for form, again in forms)
    assert all(a != b for (a, _), (b, _) in itertools.combinations(forms, 2))


@for_each("name", ["classes", "raised"], nightly=[name for name in DIFFERENT if name not in ("classes", "raised")])
def test_what_an_observer_sees_is_lost(name: str) -> None:
    """Each answer is sure on two data sets, and another on the next two: the loss is 0 within, and infinite between."""
    makers = DIFFERENT[name]
    twice = range(2 * len(makers))

    def answer(data: int, rng: Any) -> Any:
        made = makers[data // 2]()
        if rng.random() < 0.5 and isinstance(made, BaseException):
            raise made
        return made

    assert replay(answer, twice, [(2 * each, 2 * each + 1) for each in range(len(makers))]).epsilon.upper == 0.0
    between = replay(answer, twice, [(2 * each + 1, 2 * each + 2) for each in range(len(makers) - 1)])
    assert between.infinite
    assert all(not (one.keys() & other.keys()) for one, other in itertools.pairwise(between.laws[::2]))


def test_an_iterator_is_what_it_gives() -> None:
    assert canonical(iter([1, 2])) == canonical(iter([1, 2])) != canonical(iter([1, 3]))
    law = replay(lambda data, rng: (rng.integers(2) for _ in range(2)), [0, 1], "all").laws[0]
    assert sorted(law.values()) == [Fraction(1, 4)] * 4


nested: list[Any] = []
nested.append(nested)


UNTOLD: list[Any] = [
    *([len], Opaque, nested, Hiding(), Coarse(len), (1 // each for each in (1, 0))),  # type: ignore[arg-type]
    *(np.ma.array([1]), np.zeros(1, "M8[s]"), np.random.default_rng(0), itertools.count(), io.StringIO("a")),
    *(np.array(["a" * 40], np.dtypes.StringDType()), np.zeros(1, np.dtype(float, metadata={"a": 1}))),
    *({"a", "b"}, frozenset({("a", 1), ("b", 1)}), defaultdict(lambda: 0), re.compile("a"), time.localtime(0)),
]


@for_each("output", UNTOLD, ids=lambda output: type(output).__name__)
def test_what_cannot_be_told_apart_is_refused(output: Any) -> None:
    with pytest.raises(UnsoundAudit, match="an output"):
        canonical(output)


def test_forms_read_like_what_they_stand_for() -> None:
    assert repr(canonical([1, "a"])) == "list((1, 'a'))"
    assert canonical((1, "a")) == (1, "a")
