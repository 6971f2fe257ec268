"""Where one number is wanted of each output it is read at once, and the cell is that of encoding the output alone."""

from __future__ import annotations

import random
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, UnsoundAudit
from dpaudit.errors import Interrupted
from dpaudit.events import Event, HitCounter
from dpaudit.events.features import Coordinate
from dpaudit.mechanisms import Opened
from dpaudit.outputs.canonical import Column, Failure, Outputs, Path, concatenate, token
from dpaudit.outputs.encode import encode_objects, lookup_of
from dpaudit.running import worker
from dpaudit.running.streams import Shard, Stage
from dpaudit.running.watch import Watch
from dpaudit.running.worker import Job, Worker
from tests.cases import for_each
from tests.outputs import kinds
from tests.outputs.test_exact import LIARS
from tests.outputs.test_tally import Recorded, counted, looked_at

pytestmark = pytest.mark.filterwarnings("ignore")  # numpy warns where a strange object is read as a number

LONG = "x" * 70


class Gathered:
    """Keeps what it is given in order of the runs."""

    tallies = True

    def __init__(self, runs: int, *paths: Path) -> None:
        self.wanted, self.sides, self.parts = frozenset(paths), np.zeros(runs, np.bool_), list[Outputs]()
        self.ends = [0]

    def fill(self, start: int, outputs: Outputs, numbers: Any = None) -> None:
        assert start == self.ends[-1], "in order, as the host of a process of its own takes them"
        self.parts.append(outputs if numbers is None else outputs.take(numbers))
        self.ends.append(start + self.parts[-1].runs)

    def call(self, start: int, outputs: Outputs, side: int) -> None:
        raise AssertionError("of batches alone")


def gathered(mechanism: Any, runs: int, *paths: Path) -> Outputs:
    """All outputs of a shard in the order of the runs, as a worker gives them to a sink."""
    sink = Gathered(runs, *paths)
    Worker.start(Job("test", 1, None), mechanism, (AdjacentPair("first", "second"),)).feed(
        Shard(Stage.CERTIFY, 0, 0, runs), sink
    )
    assert sink.ends[-1] == runs
    return concatenate(sink.parts)


class Made(Recorded):
    """Calls a function in each run."""

    def __init__(self, run: Callable[[int], Any]) -> None:
        self.run, self.count = run, 0

    def open(self) -> Any:
        return Opened(self.each, per_run=True, takes_rng=False)

    def each(self, data: Any, rng: Any) -> Any:
        self.count += 1
        return self.run(self.count)


@pytest.fixture(autouse=True)
def _small_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "CELL", 3)


class Twice(np.ndarray[Any, Any]):
    """A view whose entries lie."""

    def __getitem__(self, place: Any) -> Any:
        return 99.0


def array(*entries: Any, kind: Any = float) -> Any:
    made = np.empty(len(entries), object)
    for place, entry in enumerate(entries):
        made[place] = entry
    with np.errstate(over="ignore"):
        return made.astype(kind)


NEIGHBOURS: list[Any] = [*kinds.EVERYTHING, *(liar for liar, _ in LIARS)]
WITHIN: list[Callable[[Any], Any]] = [
    lambda each: (0, each),
    lambda each: [0, each],
    lambda each: (each,),
    lambda each: [each, each, each],
    lambda each: {"a": each, 1: each},
    lambda each: {1: each, "b": 2},
    lambda each: {True: each, "a": 1.0},
    lambda each: {kinds.Text("a"): each},
    lambda each: {"a": 1.5, kinds.Text("a "): each},
    lambda each: {np.int64(1): each, "a": 0.5},
    lambda each: {"@len": each, "a": 2.5, LONG: each},
    lambda each: OrderedDict(a=each),
    lambda each: defaultdict(float, a=each),
    lambda each: kinds.Point(0, each),
    lambda each: array(0, each, kind=object),
]
NUMBERS: list[Any] = [1.5, -0.0, 0.0, float("nan"), float("inf"), 1e300, 3, 2**53, 2**53 + 1, -(2**60), 10**400]
NUMBERS += [
    True,
    np.float64(2.5),
    np.float32(0.1),
    np.int64(2**53 + 1),
    np.uint8(7),
    np.bool_(True),
    np.longdouble(1.5),
]
ARRAYS: list[Any] = [
    *(array(1, 2, 3), array(1), array(), np.array(2.0), np.ones((2, 2)), array(1, 2, 3)[::2], array(1, 2, 3)[1:]),
    *(array(2**53 + 1, 5, kind=kind) for kind in (np.int64, ">f8", np.float32, np.longdouble, np.float16)),
    *(array(1, 2).view(Twice), np.ma.array([1.0, 2.0], mask=[False, True]), kinds.structured(), array(True, False)),
    *(np.frombuffer(b"\2\1", np.bool_), np.array([1.0, 2.0], np.dtype(float, metadata={"a": 1}))),
]
PATHS: list[Path] = [
    *((), (0,), (1,), ("a",), ("b",), ("@len",), ("@@len",), (LONG,), (65_536,), (-1,), (0, 1), ("@as len",))
]


def stretches(rng: random.Random, path: Path) -> list[Any]:
    """Outputs in stretches of a kind, each with its odd ones, so that reading begins and ends."""
    outputs: list[Any] = []
    while len(outputs) < 60:
        within = rng.choice([lambda each: each, *WITHIN])
        plain = [within(rng.choice(NUMBERS)) for _ in range(rng.randrange(1, 4))]
        several = rng.choice([plain, plain, plain, ARRAYS, [within(rng.choice(NEIGHBOURS)) for _ in range(3)]])
        outputs += [rng.choice(several) for _ in range(rng.randrange(1, 25))]
        if rng.random() < 0.5:
            outputs.append(rng.choice(NEIGHBOURS))
    return outputs


def same(found: Column, row: int, expected: Column) -> bool:
    one, other = (column.values[place].astype(np.float64) for column, place in ((found, row), (expected, 0)))
    return bool(found.tokens[row] == expected.tokens[0]) and one.tobytes() == other.tobytes()


@pytest.mark.long
@for_each("seed", range(12), nightly=range(12, 400))
def test_what_is_read_is_what_would_be_encoded(seed: int) -> None:
    """Bit for bit, whatever stands beside it: subclasses that lie, other types, other shapes, other keys."""
    rng = random.Random(seed)
    for path in PATHS:
        outputs = stretches(rng, path)
        found = gathered(Recorded(outputs), len(outputs), path).column(path)
        for row, output in enumerate(outputs):
            alone = encode_objects([output], frozenset({path})).column(path)
            assert same(found, row, alone), (path, row, output)
        reducer = HitCounter(Event(Coordinate(path), intervals=((0.5, np.inf),), tokens=(token("text", "red"),)))
        assert counted(outputs, reducer) == looked_at(outputs, reducer)


READ: list[tuple[Path, Callable[[float], Any]]] = [
    ((), float),
    ((), np.float64),
    ((), lambda number: int(number * 8)),
    ((), lambda number: np.int64(number * 8)),
    ((), lambda number: number > 0.5),
    ((1,), lambda number: (0, number)),
    ((1,), lambda number: [0, number, "a"]),
    ((3,), lambda number: np.full(5, number)),
    (("a",), lambda number: {"a": number, "b": 1, 7: "c"}),
]


@for_each("path, form", READ)
def test_of_plain_outputs_no_output_is_encoded(monkeypatch: pytest.MonkeyPatch, path: Path, form: Any) -> None:
    """Once the first cell has shown what they are; the columns are of the type that encoding gives."""
    made, asked = [form(number) for number in np.random.default_rng(3).random(80).tolist()], list[int]()

    def encoding(objects: list[Any], wanted: Any = None) -> Outputs:
        asked.append(len(objects))
        return encode_objects(objects, wanted)

    monkeypatch.setattr(worker, "encode_objects", encoding)
    found, expected = gathered(Recorded(made), 80, path), encode_objects(made, frozenset({path}))
    assert asked == [3]
    assert found.columns.keys() == expected.columns.keys() == {path}
    one, other = found.column(path), expected.column(path)
    assert (one.values.dtype, one.values.tobytes(), one.codes) == (other.values.dtype, other.values.tobytes(), None)
    assert other.codes is None


MORE: list[tuple[Any, tuple[Path, ...]]] = [
    (2, ((), ("@class",))),
    (True, (("@class",),)),
    (-0.0, ((), ("@sign",))),
    ((0.5, 1.5), ((0,), (1,))),
    ([0.5, 1.5], ((0,), (1,))),
    ((0.5, 1.5), ((1,), ("@len",))),
    ((0.5, -0.0), ((1, "@sign"),)),
    ((0.5, 1.5), ((1,), ("@rest",))),
    ({"a": 1.5, "b": 2.5}, (("a",), ("b",))),
]


@for_each("output, wanted", MORE)
def test_where_more_is_wanted_outputs_are_encoded(output: Any, wanted: tuple[Path, ...]) -> None:
    found, alone = gathered(Recorded([output] * 40), 40, *wanted), encode_objects([output], frozenset(wanted))
    assert all(same(found.column(each), row, alone.column(each)) for each in wanted for row in range(40))


def test_entries_beyond_those_that_are_looked_at_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    widest = kinds.cut_earlier(monkeypatch)
    for form in (list, tuple, np.array):
        found = gathered(Recorded([form([1.5] * (widest + 9))] * 40), 40, (widest + 2,))
        assert set(found.column((widest + 2,)).tokens.tolist()) == {token("absent").code}


# --- what a hostile mechanism may do -----------------------------------------------------------------------------


class Loud(float):
    """Says that it is another number, and that it equals all."""

    def __float__(self) -> float:
        return 0.0

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = float.__hash__


CHANGED: list[tuple[Path, Any, Callable[[Any, float], None]]] = [
    ((1,), [0.0, 0.0], lambda made, value: made.__setitem__(1, value)),
    (("a",), {"a": 0.0}, lambda made, value: made.__setitem__("a", value)),
    ((1,), np.zeros(3), lambda made, value: made.__setitem__(1, value)),
    ((0, 0), ([0.0],), lambda made, value: made[0].__setitem__(0, value)),
    ((0, 0), [[0.0]], lambda made, value: made[0].__setitem__(0, value)),
    ((0,), [Loud(0.0)], lambda made, value: made.__setitem__(0, Loud(value))),
]


@for_each("path, made, change", CHANGED)
def test_an_output_that_is_changed_later_is_what_it_was(path: Path, made: Any, change: Any) -> None:
    """One object, filled anew in each run; every seventh run returns nothing of the kind."""

    def run(count: int) -> Any:
        change(made, float(count))
        return None if count % 7 == 0 else made

    found = gathered(Made(run), 40, path).column(path)
    assert {row + 1: found.values[row] for row in np.flatnonzero(found.tokens == 0)} == {
        count: count for count in range(1, 41) if count % 7
    }


def test_the_odd_output_is_encoded_before_the_next_run() -> None:
    """A list among numbers, which the runs after it change."""
    shared = [0.0]

    def run(count: int) -> Any:
        shared[0] = float(count)
        return shared if count % 7 == 0 else float(count)

    found = gathered(Made(run), 50, (0,), ()).column((0,))
    assert [found.values[row] for row in range(6, 50, 7)] == list(range(7, 50, 7))


class Hidden(str):
    """A key that is found under the name of another one."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("a")


class Lying(list[Any]):
    def __getitem__(self, place: Any) -> Any:
        return 99.0

    def __len__(self) -> int:
        return 0


class Empty(dict[Any, Any]):
    def __getitem__(self, key: Any) -> Any:
        return 99.0

    def __len__(self) -> int:
        return 0


@for_each(
    "path, plain, hostile",
    [
        ((), 1.5, Loud(2.5)),
        ((1,), (0, 1.5), (0, Loud(2.5))),
        (
            (1,),
            [0, 1.5],
            type("List", (list,), {"__getitem__": lambda self, place: 99.0, "__len__": lambda self: 0})([0, 2.5]),
        ),
        (("a",), {"a": 1.5}, {Hidden("b"): 2.5}),
        (("a",), {"a": 1.5}, {"b": 1.0, Hidden("c"): 2.5}),
        (("a",), {"a": 1.5}, Empty(a=2.5)),
        ((1,), np.array([0, 1.5]), np.array([0, 2.5]).view(Twice)),
        ((1,), np.array([0, 1.5]), np.array([0, Loud(2.5)], object)),
        ((1,), np.array([0, 1.5]), np.array([Hidden("b"), 2.5], object)),
    ],
)
def test_classes_with_methods_of_their_own_are_read_past_them(path: Path, plain: Any, hostile: Any) -> None:
    outputs = [*[plain] * 9, hostile, *[plain] * 9, hostile, hostile, *[plain] * 9]
    found = gathered(Recorded(outputs), len(outputs), path).column(path)
    for row, output in enumerate(outputs):
        assert same(found, row, encode_objects([output], frozenset({path})).column(path)), (row, output)


class Unread:
    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise SystemExit


def test_an_array_with_an_entry_that_cannot_be_read_is_no_verdict() -> None:
    """Beside the entry that is wanted, too: of an array of objects all entries are looked at."""
    outputs = [np.array([0, 1.5])] * 20 + [array(Unread(), 1.5, kind=object)] + [np.array([0, 1.5])] * 9
    with pytest.raises(UnsoundAudit, match="could not be read"):
        gathered(Recorded(outputs), len(outputs), (1,))


@for_each("error", [ValueError, StopIteration, KeyError, IndexError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_what_a_run_raises_is_its_output(error: type[BaseException]) -> None:
    def run(count: int) -> Any:
        if count % 9 == 0:
            raise error
        return {"a": float(count)} if count > 30 else float(count)

    found = gathered(Made(run), 70, ()).column(())
    raised = encode_objects([Failure(token("raised", error.__name__))]).column(()).tokens[0]
    assert [row + 1 for row in np.flatnonzero(found.tokens == raised)] == list(range(9, 71, 9))
    assert [row + 1 for row in range(30) if found.tokens[row] == 0] == [row for row in range(1, 31) if row % 9]


@for_each("error", [Interrupted, UnsoundAudit("no verdict")])
def test_what_ends_an_audit_ends_it_while_numbers_are_read(error: Any) -> None:
    def run(count: int) -> float:
        if count == 20:
            raise error
        return float(count)

    with pytest.raises(error if isinstance(error, type) else type(error)):
        gathered(Made(run), 40, ())


def test_reading_goes_on_from_shard_to_shard_until_another_place_is_wanted() -> None:
    mechanism = Recorded([(float(each), float(-each)) for each in range(120)])
    own = Worker.start(Job("test", 1, None), mechanism, (AdjacentPair("first", "second"),))
    high, low = (Event(Coordinate((place,)), intervals=((49.5, np.inf),)) for place in (0, 1))
    reducers: list[HitCounter | Watch] = [HitCounter(high), HitCounter(high), HitCounter(low), Watch(high)]
    hits = []
    for index, reducer in enumerate(reducers):
        counts = np.asarray(own.run(Shard(Stage.CERTIFY, 0, index, 30), reducer))
        hits.append(int(counts[0] + counts[2] if isinstance(reducer, HitCounter) else reducer.hits(counts).sum()))
        assert own.lookup == lookup_of((0.0, 0.0), reducer.wanted)
    assert hits == [0, 10, 0, 30]
