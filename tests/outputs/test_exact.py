"""Outputs are taken as they are: nothing that a later run changes, and nothing that a class says of itself."""

from __future__ import annotations

import collections
import copy
import enum
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, UnsoundAudit, audit, batched
from dpaudit.events import Event
from dpaudit.events.features import Coordinate
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import wrap
from dpaudit.outputs.canonical import PRINTED_AS, is_metadata, token
from dpaudit.outputs.encode import encode_objects
from dpaudit.running.streams import Stage, shards
from dpaudit.running.watch import Watch
from dpaudit.running.worker import identical
from tests.cases import for_each
from tests.outputs import kinds

PAIR = (AdjacentPair(0.0, 1.0),)


class Box:
    """No type that can be copied, and one that can be looked into."""

    def __init__(self) -> None:
        self.value = np.zeros(1)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.value


class Named(list[Any]):
    pass


def field(made: Any, value: float) -> None:
    made["a"] = value


def first(made: Any, value: float) -> None:
    made[0] = value


def byte(made: Any, value: float) -> None:
    made[0] = round(value) % 256


def only(made: Any, value: float) -> None:
    made.clear()
    made.add(round(value))


def own(made: Any, value: float) -> None:
    made.value = value


def within(inside: Callable[[Any], Any]) -> Callable[[Any, float], None]:
    return lambda made, value: first(inside(made), value)


REUSED: dict[str, tuple[Any, Callable[[Any, float], None]]] = {
    "array": (np.zeros(2), first),
    "objects": (np.zeros(1, object), first),
    "fields": (np.zeros(1, [("a", float)]), first),
    "record": (np.zeros(1, [("a", float)])[0], field),
    "masked": (np.ma.zeros(2), first),
    "list": ([0.0], first),
    "nested": ((1, [[0.0]]), within(lambda made: made[1][0])),
    "dictionary": ({0: 0.0}, first),
    "array in a dictionary": ({"a": np.zeros(1)}, within(lambda made: made["a"])),
    "default": (collections.defaultdict(float), first),
    "set": (set(), only),
    "bytes": (bytearray(1), byte),
    "row": (kinds.Row("a", 0.0), own),
    "rows": ([kinds.Row("a", [0.0])], within(lambda made: made[0].value)),
    "list of its own": (Named([0.0]), first),
    "box": (Box(), within(lambda made: made.value)),
}


class Reusing:
    """Returns one object in every run, filled anew; with `fresh`, a copy that nothing else holds."""

    def __init__(self, kind: str, *, fresh: bool) -> None:
        self.fresh, (self.made, self.put) = fresh, copy.deepcopy(REUSED[kind])

    def __call__(self, data: float, rng: np.random.Generator) -> Any:
        self.put(self.made, data + rng.laplace())
        return copy.deepcopy(self.made) if self.fresh else self.made


class ReusingBatch:
    def __init__(self, form: str, *, fresh: bool) -> None:
        self.form, self.fresh, self.room = form, fresh, np.zeros((100, 80))

    def __call__(self, data: float, runs: int, rng: np.random.Generator) -> Any:
        room = self.room.copy() if self.fresh else self.room
        room[:runs] = data + rng.laplace(size=(runs, 80))
        made = room[:runs]
        return {
            "one": made[:, 0],
            "rows": made[:, :2],
            "wide rows": made,
            "columns": (made[:, 0], made[:, 1]),
            "dictionary": {"a": made[:, 1]},
            "masked": np.ma.array(made[:, 0], mask=made[:, 1] > 0, copy=False),
            "list": list(made[:, :2]),
        }[self.form]


def pilot(mechanism: Any, runs: int, size: int) -> Any:
    with Engine(1) as engine, engine.session(wrap(mechanism), PAIR, 4, None) as session:
        return session.pilot(shards(Stage.SEARCH, 0, runs, size))


@for_each("kind", REUSED)
def test_an_output_does_not_change_with_the_runs_after_it(kind: str) -> None:
    assert identical(*(pilot(Reusing(kind, fresh=fresh), 60, 20) for fresh in (False, True)))


@for_each("form", ["one", "rows", "wide rows", "columns", "dictionary", "masked", "list"])
def test_a_batch_does_not_change_with_the_calls_after_it(form: str) -> None:
    """Both sides of a shard are looked at after their two calls: the second must not be counted twice."""
    assert identical(*(pilot(batched(ReusingBatch(form, fresh=fresh)), 300, 100) for fresh in (False, True)))


def test_threads_do_not_fill_one_batch_at_once() -> None:
    """The probe sees that calls share their memory; then they take turns, and no run is of the other side."""
    room = np.zeros(1 << 15)

    def noisy(data: float, runs: int, rng: np.random.Generator) -> Any:
        room[:runs] = rng.random(runs)
        time.sleep(1e-3)  # others run
        room[:runs] += 2.0 * data
        return room[:runs]

    watch = Watch(Event(Coordinate(()), intervals=((1.999, np.inf),)))
    with Engine(4, "threading", task_runs=1) as engine, engine.session(wrap(batched(noisy)), PAIR, 4, None) as session:
        session.probe(200)
        table = session.shard_counts(shards(Stage.CERTIFY, 0, 1 << 15, 1 << 10), watch)
    total = np.sum(list(table.values()), axis=0)
    assert watch.plain(total).tolist() == [0, total[0], total[1], total[1]]


def test_a_leak_in_a_reused_output_is_refuted() -> None:
    """The noise has a scale of 0.2 and the claim is 1; missed with probability under 1e-6."""
    room: dict[str, Any] = {}

    def noisy(data: float, rng: np.random.Generator) -> Any:
        room["sum"] = data + 0.2 * rng.laplace()
        return room

    assert audit(noisy, pair=(0.0, 1.0), epsilon=1.0, runs=1_000, n_jobs=1).verdict.value == "REFUTED"


# --- classes that say something else ----------------------------------------------------------------------------------


def nothing(*_: Any, **__: Any) -> Any:
    return 0


def empty(*_: Any) -> Any:
    return iter(())


NUMERIC = dict.fromkeys(("__float__", "__int__", "__index__", "__eq__", "__gt__", "__hash__"), nothing)
HOLDING = {"__len__": nothing, "__iter__": empty, "__getitem__": nothing, "items": empty, "__contains__": nothing}
LIARS: list[tuple[Any, Any]] = [
    (type("Float", (float,), NUMERIC)(5.0), 5.0),
    (type("Double", (np.float64,), NUMERIC)(5.0), 5.0),
    (type("Whole", (int,), NUMERIC)(5), 5.0),
    (type("Huge", (int,), NUMERIC)(-(10**400)), -np.inf),
    (type("Complex", (complex,), {"real": 0.0, "imag": 0.0, "__complex__": nothing})(1 + 2j), 1 + 2j),
    (type("Text", (str,), {"__eq__": nothing, "__hash__": nothing, "__len__": nothing})("a"), "a"),
    (type("Bytes", (bytes,), {"__bytes__": lambda self: b"", "hex": lambda self: ""})(b"a"), b"a"),
    (type("List", (list,), HOLDING)([1.0, "a"]), [1.0, "a"]),
    (type("Tuple", (tuple,), HOLDING)((1.0, "a")), (1.0, "a")),
    (type("Dictionary", (dict,), HOLDING)(a=1.0), {"a": 1.0}),
    (type("Set", (set,), HOLDING)([1.0]), {1.0}),
    (type("Frozen", (frozenset,), HOLDING)([1.0]), {1.0}),
    (np.array([5.0, 6.0]).view(type("Array", (np.ndarray,), {"__array__": nothing, **HOLDING})), np.array([5.0, 6.0])),
    ({type("Key", (float,), NUMERIC)(5.0): 1.0}, {5.0: 1.0}),
]


@for_each("output, content", LIARS, ids=[type(each).__name__ for each, _ in LIARS])
def test_content_is_read_past_the_methods_of_a_subclass(output: Any, content: Any) -> None:
    """Alone, among plain values, and inside of a tuple."""
    for objects in ([output], [1.0, output]):
        found, expected = (kinds.cells(encode_objects([*objects[:-1], each]), -1) for each in (output, content))
        assert {path: cell for path, cell in found.items() if not is_metadata(path)} == {
            path: cell for path, cell in expected.items() if not is_metadata(path)
        }
    wanted = frozenset({(0,)})
    inside, plain = (encode_objects([(each,)], wanted).column((0,)) for each in (output, content))
    assert inside.tokens.tolist() == plain.tokens.tolist()
    assert np.array_equal(inside.values, plain.values, equal_nan=True)


class Said:
    """What a print shows is another thing than what its methods give."""

    def __init__(self, said: int) -> None:
        self.said = said

    def __repr__(self) -> str:
        return f"Said({self.said})"

    def __float__(self) -> float:
        return 0.0


class SaidArray(Said):
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.zeros(1)


class SaidFloat(float):
    """Zero, whatever it is made of."""

    def __new__(cls, said: int) -> SaidFloat:
        found = super().__new__(cls, 0.0)
        found.said = said  # type: ignore[attr-defined]
        return found

    __repr__ = __str__ = Said.__repr__  # type: ignore[assignment]


@for_each("make", [lambda k: {"a": Said(k)}, SaidArray, SaidFloat, lambda k: {Said(k): 0.0}])
def test_what_prints_itself_otherwise_is_another_output(make: Any) -> None:
    one, other, again = (kinds.cells(encode_objects([make(k)]), 0) for k in (1, 2, 1))
    assert one == again != other
    if make is SaidFloat:
        assert one[PRINTED_AS,] == (0.0, token("text", "Said(1)").code)


class Printed(Said):
    __slots__ = ()

    def __init__(self, said: int) -> None:
        pass


def test_an_object_that_only_prints_itself_has_no_verdict() -> None:
    """As text, its numbers could not be compared; the message says what to return. What it holds is looked at."""
    with pytest.raises(UnsoundAudit, match=r"an object of the type .*Printed"):
        audit(lambda data: Printed(int(data)), pair=(0.0, 1.0), epsilon=1.0, runs=400, n_jobs=1, confidence=0.9)


def saying(base: type, **own: Any) -> Any:
    return type("Saying", (base,), own)


BUILTIN = saying(float, __float__=lambda _: 0.0, __repr__=lambda _: "0.0", __module__="builtins")  # as if of Python
DATE = saying(list, __repr__=lambda _: "[]", __module__="datetime")  # as if its text told all
ENDLESS = saying(dict, __iter__=lambda _: itertools.repeat("a"))


class One(enum.Enum):
    FIRST = 1
    SECOND = 2

    def __str__(self) -> str:
        return "one"

    __repr__ = __str__


@for_each(
    "one, other",
    [(BUILTIN(1), BUILTIN(2)), (DATE([1]), DATE([2])), (One.FIRST, One.SECOND), (ENDLESS(a=1), ENDLESS(a=2))],
    ids=lambda each: type(each).__mro__[1].__name__,
)
def test_what_a_class_says_of_itself_hides_nothing(one: Any, other: Any) -> None:
    outputs = encode_objects([one, other])
    assert kinds.cells(outputs, 0) != kinds.cells(outputs, 1)
