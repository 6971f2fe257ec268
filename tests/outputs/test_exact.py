"""Outputs are taken as they are: nothing that a later run changes, and nothing that a class says of itself."""

from __future__ import annotations

import collections
import copy
import dataclasses
import enum
import itertools
import time
from collections.abc import Callable, Iterator
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


@dataclasses.dataclass
class Row:
    value: Any


class Box:
    """No type that can be copied, and one that can be looked into."""

    def __init__(self) -> None:
        self.value = np.zeros(1)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.value


class Named(list[Any]):
    pass


REUSED: dict[str, Callable[[], Any]] = {
    "array": lambda: np.zeros(2),
    "objects": lambda: np.zeros(1, object),
    "fields": lambda: np.zeros(1, [("a", float)]),
    "record": lambda: np.zeros(1, [("a", float)])[0],
    "masked": lambda: np.ma.zeros(2),
    "list": lambda: [0.0],
    "nested": lambda: (1, [[0.0]]),
    "dictionary": lambda: {0: 0.0},
    "array in a dictionary": lambda: {"a": np.zeros(1)},
    "default": lambda: collections.defaultdict(float),
    "set": lambda: set(),
    "bytes": lambda: bytearray(1),
    "row": lambda: Row(0.0),
    "rows": lambda: [Row([0.0])],
    "list of its own": lambda: Named([0.0]),
    "box": lambda: Box(),
}


class Reusing:
    """Returns one object in every run, filled anew; with `fresh`, a copy that nothing else holds."""

    def __init__(self, kind: str, *, fresh: bool) -> None:
        self.fresh, self.made = fresh, REUSED[kind]()

    def __call__(self, data: float, rng: np.random.Generator) -> Any:
        put(self.made, data + rng.laplace())
        return copy.deepcopy(self.made) if self.fresh else self.made


def put(made: Any, value: float) -> None:
    """Puts a value into whatever holds it."""
    if isinstance(made, Row | Box):
        if isinstance(made.value, float):
            made.value = value
        else:
            put(made.value, value)
    elif isinstance(made, set):
        made.clear()
        made.add(round(value))
    elif isinstance(made, bytearray):
        made[0] = round(value) % 256
    elif isinstance(made, tuple) or isinstance(made, list) and not isinstance(made[-1], float):
        put(made[-1], value)
    elif isinstance(made, dict) and made and not isinstance(next(iter(made.values())), float):
        put(next(iter(made.values())), value)
    elif isinstance(made, np.void):
        made["a"] = value
    else:
        made[0] = value


@pytest.mark.parametrize("kind", REUSED)
def test_an_output_does_not_change_with_the_runs_after_it(kind: str) -> None:
    found = []
    for fresh in (False, True):
        with Engine(1) as engine, engine.session(wrap(Reusing(kind, fresh=fresh)), PAIR, 4, None) as session:
            found.append(session.pilot(shards(Stage.SEARCH, 0, 60, 20)))
    assert identical(*found)


class ReusingBatch:
    def __init__(self, form: str, *, fresh: bool) -> None:
        self.form, self.fresh, self.room = form, fresh, np.zeros((200, 2))

    def __call__(self, data: float, runs: int, rng: np.random.Generator) -> Any:
        room = self.room.copy() if self.fresh else self.room
        room[:runs] = data + rng.laplace(size=(runs, 2))
        made = room[:runs]
        return {
            "one": made[:, 0],
            "rows": made,
            "columns": (made[:, 0], made[:, 1]),
            "dictionary": {"a": made[:, 1]},
            "masked": np.ma.array(made[:, 0], mask=made[:, 1] > 0, copy=False),
            "list": list(made),
        }[self.form]


@pytest.mark.parametrize("form", ["one", "rows", "columns", "dictionary", "masked", "list"])
def test_a_batch_does_not_change_with_the_calls_after_it(form: str) -> None:
    """Both sides of a shard are looked at after their two calls: the second must not be counted twice."""
    found = []
    for fresh in (False, True):
        mechanism = batched(ReusingBatch(form, fresh=fresh))
        with Engine(1) as engine, engine.session(wrap(mechanism), PAIR, 4, None) as session:
            found.append(session.pilot(shards(Stage.SEARCH, 0, 300, 100)))
    assert identical(*found)


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


@pytest.mark.parametrize("runs", [1_000, 2_000])
def test_a_leak_in_a_reused_output_is_refuted(runs: int) -> None:
    """The noise has a scale of 0.2 and the claim is 1; missed with probability under 1e-6."""
    room: dict[str, Any] = {}

    def noisy(data: float, rng: np.random.Generator) -> Any:
        room["sum"] = data + 0.2 * rng.laplace()
        return room

    assert audit(noisy, pair=(0.0, 1.0), epsilon=1.0, runs=runs, n_jobs=1).verdict.value == "REFUTED"


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


@pytest.mark.parametrize(("output", "content"), LIARS, ids=[type(each).__name__ for each, _ in LIARS])
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
    said = 0

    def __repr__(self) -> str:
        return f"Said({self.said})"

    __str__ = __repr__


def said_float(said: int) -> SaidFloat:
    found = SaidFloat(0.0)
    found.said = said
    return found


@pytest.mark.parametrize("make", [lambda k: {"a": Said(k)}, SaidArray, said_float, lambda k: {Said(k): 0.0}])
def test_what_prints_itself_otherwise_is_another_output(make: Any) -> None:
    one, other, again = (kinds.cells(encode_objects([make(k)]), 0) for k in (1, 2, 1))
    assert one != other
    assert one == again
    if isinstance(make(1), float):
        assert one[PRINTED_AS,] == (0.0, token("text", "Said(1)").code)


def test_an_object_that_only_prints_itself_has_no_verdict() -> None:
    """As text, its numbers could not be compared; the message says what to return. What it holds is looked at."""

    class Printed(Said):
        __slots__ = ()

        def __init__(self, said: int) -> None:
            pass

    with pytest.raises(UnsoundAudit, match=r"an object of the type .*Printed"):
        audit(lambda data: Printed(int(data)), pair=(0.0, 1.0), epsilon=1.0, runs=400, n_jobs=1, confidence=0.9)


class SaysBuiltin(float):
    """Says of itself that it is of Python, and of its number that it is 0."""

    def __float__(self) -> float:
        return 0.0

    def __repr__(self) -> str:
        return "0.0"


class SaysDate(list[int]):
    """Says of itself that its text tells all."""

    def __repr__(self) -> str:
        return "[]"


class SaysOne(enum.Enum):
    FIRST = 1
    SECOND = 2

    def __str__(self) -> str:
        return "one"

    __repr__ = __str__


class SaysEndless(dict[str, int]):
    def __iter__(self) -> Iterator[str]:
        return itertools.repeat("a")


SaysBuiltin.__module__, SaysDate.__module__ = "builtins", "datetime"


@for_each(
    "one, other",
    [
        (SaysBuiltin(1), SaysBuiltin(2)),
        (SaysDate([1]), SaysDate([2])),
        (SaysOne.FIRST, SaysOne.SECOND),
        (SaysEndless(a=1), SaysEndless(a=2)),
    ],
)
def test_what_a_class_says_of_itself_hides_nothing(one: Any, other: Any) -> None:
    columns = encode_objects([one, other]).columns.values()
    assert any(
        len(set(each.values.tolist())) > 1 if each.codes is None else len(set(each.codes.tolist())) > 1
        for each in columns
    )
