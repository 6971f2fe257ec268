"""Frames: a head of JSON and aligned arrays of numbers, in which outputs, shards and answers cross; never a pickle.

One form for what a process writes into the memory that it shares with its host, for what a host answers, and for what
a ledger stores. Outputs go through memory: the process fills it and says how much; the host copies that out, says so,
and then reads its copy: whatever changes the memory afterwards changes nothing.
"""

import json
import math
import mmap
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.base.arrays import Bools, Places
from dpaudit.claims.claim import Relation
from dpaudit.data.pair import SealedPair
from dpaudit.errors import DpAuditError
from dpaudit.mechanisms.protocol import Description
from dpaudit.outputs.canonical import Column, Columns, Outputs, Path, Pilot, Stretch, Wanted
from dpaudit.processes.pipes import LARGEST
from dpaudit.running.pieces import Piece
from dpaudit.running.streams import Shard, Stage

SIZE = 1 << 23  # bytes of the memory; only what is used is ever there
CROSSES = 1 << 22  # bytes of batched outputs that cross at a time; those of a per-run mechanism cross cell by cell
WORD = 8  # bytes of a length, and what everything is aligned to
SIZES = struct.Struct("<QQ")  # bytes of a head, and of what stands behind it
MAGIC = b"dpaudit shard 2\n"  # before a frame that is stored
STORED = ("counts", "pilot", "outputs", "batch-failed", "piece")  # kinds of what a shard brings home
KINDS = "fiub"  # of arrays: floats, integers, truth values

MALFORMED = (
    *(ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, StopIteration, struct.error),
)  # of bytes that are not ours

Array = npt.NDArray[Any]
WRITERS: "list[FrameWriter]" = []  # of a process whose outputs are counted elsewhere


class UnreadableShard(DpAuditError):
    """Stored bytes are not what was stored. Cure: start again without the stored run."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class BatchFailure:
    """Stands where counts would: a batched call raised, with this message."""

    message: str


@dataclass(frozen=True, slots=True)
class KeptShard:
    """What one shard came to, with what a later process has to know of how it was made.

    `result` is counts of a reducer (int64), a `Pilot`, a `Piece`, the `Outputs` of a fresh process or a `BatchFailure`;
    `seconds` and `runs` are those of the task it was part of, `pool` where that ran, `driver` how many processes had
    driven the audit before, `lost` how many workers this one had lost.
    """

    result: Any
    seconds: float = 0.0
    runs: int = 0
    pool: str = ""
    driver: int = 0
    lost: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """What a task sends home: integers or a pilot for each shard, the time it took, or why it broke.

    `check_s` is what it cost afterwards to look whether its runs had changed a dataset.
    """

    results: tuple[tuple[Shard, Any], ...] = ()
    seconds: float = 0.0
    cpu_s: float = 0.0
    error: tuple[str, str] | None = None
    check_s: float = 0.0
    accelerated: bool = False  # an accelerator may be at work there
    place: tuple[str, str, str] | None = None  # host, name and likeness of a worker not ours that is made of the same


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """Stands where results would: a task raised what is no outcome of a mechanism, in words."""

    kind: str
    message: str


class ProtocolError(ValueError):
    """Bytes that no code of ours has written: something else has."""


class EndOfStream(Exception):
    """The process has answered, and no outputs are to come."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer


# --- a frame ---------------------------------------------------------------------------------------------------------


def frame(head: Any, arrays: Sequence[Array]) -> bytes:
    """A head that JSON holds, and arrays behind it.

    >>> head, (array,) = unframed(frame(["a"], [np.array([1, 2])]))
    >>> head, array.tolist()
    (['a'], [1, 2])
    """
    return b"".join(_parts(head, arrays))


def _parts(head: Any, arrays: Sequence[Array]) -> Iterator[bytes | memoryview]:
    """The bytes of a frame, in their order."""
    text = json.dumps([head, [[array.dtype.str, array.shape] for array in arrays]]).encode("ascii")
    text += b" " * (-len(text) % WORD)
    yield SIZES.pack(len(text), sum(array.nbytes + -array.nbytes % WORD for array in arrays)) + text
    for array in arrays:
        yield np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        yield bytes(-array.nbytes % WORD)


def unframed(content: bytes) -> tuple[Any, list[Array]]:
    """The head and the arrays of a frame; raises an error of values (`MALFORMED`) for other bytes."""
    length, size = SIZES.unpack_from(content)
    start = SIZES.size + length
    if start + size != len(content):
        raise ValueError(size)
    head, layout = json.loads(content[SIZES.size : start].decode("ascii"))
    return head, [array.copy() for array in _arrays(memoryview(content)[start:], layout)]


def _arrays(content: bytes | memoryview, layout: list[Any]) -> list[Array]:
    arrays: list[Array] = []
    start = 0
    for name, shape in layout:
        dtype = np.dtype(str(name))
        if dtype.kind not in KINDS or min(shape, default=0) < 0:
            raise ValueError(name)
        arrays.append(np.frombuffer(content, dtype, math.prod(shape), start).reshape(shape))
        start += arrays[-1].nbytes + -arrays[-1].nbytes % WORD
    if start != len(content):
        raise ValueError(start)
    return arrays


# --- values in frames ------------------------------------------------------------------------------------------------


def encoded(shard: KeptShard) -> tuple[str, bytes]:
    """(kind, bytes) of a kept shard; raises `TypeError` for what no shard brings home.

    >>> kind, content = encoded(KeptShard(np.array([1, 2])))
    >>> kind, decoded(kind, content).result.tolist()
    ('counts', [1, 2])
    """
    arrays: list[Array] = []
    kind, value = _taken_apart(shard.result, arrays)
    if kind not in STORED:
        raise TypeError(f"no shard brings home {kind}")
    return kind, MAGIC + frame([kind, value, [shard.seconds, shard.runs, shard.pool, shard.driver, shard.lost]], arrays)


def decoded(kind: str, content: bytes) -> KeptShard:
    """The shard again. Raises `UnreadableShard` for bytes that `encoded` did not write for this kind."""
    try:
        (written, value, task), arrays = unframed(content[len(MAGIC) :])
        if content[: len(MAGIC)] != MAGIC or written != kind or kind not in STORED:
            raise ValueError(kind)
        seconds, runs, pool, driver, lost = task
        left = iter(arrays)
        result = _put_together(kind, value, left)
        none_left(left)
        return KeptShard(result, float(seconds), int(runs), str(pool), int(driver), int(lost))
    except MALFORMED:
        raise UnreadableShard(
            "a stored shard is damaged or was written by another version; begin the run anew"
        ) from None


def answer(results: Sequence[Any]) -> bytes:
    """What each task returned, as bytes."""
    arrays: list[Array] = []
    return frame([_taken_apart(each, arrays) for each in results], arrays)


def answered(content: bytes) -> list[Any]:
    """What each task returned. Raises `ProtocolError` where this is no answer."""
    try:
        head, arrays = unframed(content)
        left = iter(arrays)
        results = [_put_together(str(kind), value, left) for kind, value in head]
        none_left(left)
    except MALFORMED:
        raise ProtocolError("an answer cannot be read") from None
    return results


def _taken_apart(result: Any, arrays: list[Array]) -> tuple[str, Any]:
    """The kind of a result and its value as JSON holds it; its arrays join those given."""
    if isinstance(result, np.ndarray):
        _add(result.astype(np.int64, casting="safe", copy=False), arrays)
        return "counts", None
    if isinstance(result, Pilot):
        first, second = outputs_apart(result.first, arrays), outputs_apart(result.second, arrays)
        _add(result.sides, arrays)
        return "pilot", {"first": first, "second": second, "sizes": [int(size) for size in result.sizes]}
    if isinstance(result, Outputs):
        return "outputs", outputs_apart(result, arrays)
    if isinstance(result, BatchFailure):
        return "batch-failed", result.message
    if isinstance(result, Piece):
        arrays += [] if result.counts is None else [result.counts]
        return "piece", [result.done, list(result.stream), result.held, result.counts is not None]
    if isinstance(result, Done):
        times = [result.seconds, result.cpu_s, result.check_s]
        shards = [
            [[int(shard.stage), shard.pair, shard.index, shard.runs], *_taken_apart(each, arrays)]
            for shard, each in result.results
        ]
        return "done", [times, result.error, result.accelerated, shards]
    if isinstance(result, TaskFailed):
        return "failed", [result.kind, result.message]
    if isinstance(result, dict):
        return "words", {str(key): str(each) for key, each in result.items()}
    if isinstance(result, tuple):
        description, pairs = result
        return "description", [asdict(description), [_pair(pair, arrays) for pair in pairs]]
    raise TypeError(f"no shard brings home a {type(result).__name__}")


def _put_together(kind: str, value: Any, arrays: Iterator[Array]) -> Any:
    if kind == "counts":
        return _integers(next(arrays))
    if kind == "pilot":
        first, second = outputs_again(value["first"], arrays), outputs_again(value["second"], arrays)
        return Pilot(first, second, next(arrays), tuple(int(size) for size in value["sizes"]))
    if kind == "outputs":
        return outputs_again(value, arrays)
    if kind == "batch-failed":
        return BatchFailure(str(value))
    if kind == "piece":
        done, stream, text, counted = value
        counts = _integers(next(arrays)) if counted else None
        return Piece(int(done), 0, tuple(map(int, stream)), counts, str(text))
    if kind == "done":
        (seconds, cpu_s, check_s), error, accelerated, shards = value
        results = [(_shard(*place), _put_together(str(each), rest, arrays)) for place, each, rest in shards]
        failure = None if error is None else (str(error[0]), str(error[1]))
        times = _time(seconds), _time(cpu_s), _time(check_s)
        return Done(tuple(results), *times[:2], failure, times[2], accelerated=accelerated is True)
    if kind == "failed":
        return TaskFailed(*map(str, value))
    if kind == "words":
        return {str(key): str(each) for key, each in value.items()}
    if kind == "description":
        described, pairs = value
        return Description(**described), tuple(_sealed(next(arrays).tobytes(), *pair) for pair in pairs)
    raise ValueError(kind)


def _integers(array: Array) -> Array:
    if array.dtype != np.int64:
        raise ValueError(array.dtype)
    return array


def _shard(stage: int, pair: int, index: int, runs: int) -> Shard:
    return Shard(Stage(stage), int(pair), int(index), int(runs))


def _time(seconds: Any) -> float:
    """Where a mechanism has changed the clock, none."""
    return float(seconds) if math.isfinite(seconds) else 0.0


def _pair(pair: SealedPair, arrays: list[Array]) -> list[Any]:
    arrays.append(np.frombuffer(pair.payload, np.uint8))
    adjacency = [[None if each is None else each.value, words] for each, words in pair.adjacency().items()]
    return [pair.name, pair.distance, pair.record(), adjacency, pair.reason]


def _sealed(
    payload: bytes, name: str, distance: int, record: dict[str, Any], adjacency: list[Any], reason: str
) -> SealedPair:
    relations = {
        None if each is None else Relation(each): None if words is None else str(words) for each, words in adjacency
    }
    return SealedPair(str(name), int(distance), payload, dict(record), relations, str(reason))


def none_left(arrays: Iterator[Array]) -> None:
    """Raises `ValueError` where there is an array more than was asked for."""
    if next(arrays, None) is not None:
        raise ValueError("an array is left over")


def outputs_apart(outputs: Outputs, arrays: list[Array]) -> dict[str, Any]:
    """Outputs as JSON, and their columns as arrays, which join those given."""
    columns = []
    for path, column in outputs.columns.items():
        _add(column.values, arrays)
        if column.codes is not None:
            _add(column.codes, arrays)
        columns.append([[step_of(step) for step in path], column.codes is not None])
    labels = [[int(code), label] for code, label in outputs.labels.items()]
    whole = {"complete": bool(outputs.complete), "unseen": int(outputs.unseen), "notes": dict(outputs.notes)}
    return {"runs": int(outputs.runs), **whole, "columns": columns, "labels": labels}


def outputs_again(value: dict[str, Any], arrays: Iterator[Array]) -> Outputs:
    """The outputs; raises an error of values for what `outputs_apart` does not make."""
    columns: dict[Path, Column] = {}
    runs = int(value["runs"])
    for path, tokens in value["columns"]:
        column = Column(next(arrays), next(arrays) if tokens else None)
        if len(column.values) != runs or (column.codes is not None and len(column.codes) != runs):
            raise ValueError(path)
        columns[tuple(step_of(step) for step in path)] = column
    labels = {int(code): str(label) for code, label in value["labels"]}
    notes = {str(label): str(note) for label, note in value["notes"].items()}
    return Outputs(runs, columns, labels, bool(value["complete"]), int(value["unseen"]), notes)


def step_of(step: Any) -> int | str:
    """A step of a path, which is nothing else."""
    if type(step) not in (int, str):
        raise TypeError(f"a path has no step of type {type(step).__name__}")
    return step  # type: ignore[no-any-return]


def _add(array: Array, arrays: list[Array]) -> None:
    if array.dtype.kind not in KINDS:
        raise TypeError(f"no shard brings home an array of {array.dtype}")
    arrays.append(np.ascontiguousarray(array).reshape(array.shape))


# --- outputs on their way to who counts them -------------------------------------------------------------------------


class FrameWriter:
    """The end of the process: `crossing` says how many bytes are there, and returns once they have been copied."""

    def __init__(self, memory: mmap.mmap, crossing: Callable[[int], None]) -> None:
        self._space = memoryview(memory)
        self._crossing = crossing
        self._used = 0
        self._begun: int | None = None  # where the part begins that holds numbers, and may hold more

    def numbers(self, values: Array) -> None:
        """Doubles, which are all that the outputs are: a part without a head, which also holds those that follow."""
        self.flush(SIZE - SIZES.size - values.nbytes + 1)
        if self._begun is None:
            self._begun, self._used = self._used, self._used + SIZES.size
        self._add(np.ascontiguousarray(values).view(np.uint8).data)
        SIZES.pack_into(self._space, self._begun, 0, self._used - self._begun - SIZES.size)

    def put(self, head: Any, arrays: list[Array]) -> None:
        """One part: a head, and arrays behind it."""
        self._begun = None
        for part in _parts(head, arrays):
            self._add(part)

    def flush(self, least: int = 1) -> None:
        """Lets cross what is there, if it is so much."""
        if self._used >= least:
            self._crossing(self._used)
            self._used, self._begun = 0, None

    def _add(self, content: bytes | memoryview) -> None:
        while (end := self._used + len(content)) > SIZE:
            room = SIZE - self._used
            self._space[self._used :] = content[:room]
            content, self._used = content[room:], SIZE
            self.flush()
        self._space[self._used : end] = content
        self._used = end


class FrameReader:
    """The end of the host: `crossed` waits for what the process says, a number of bytes or its answer.

    What has crossed lies in `own`, memory of the host alone, until the next part is asked for; longer where it `keeps`.
    """

    def __init__(
        self, memory: mmap.mmap, own: mmap.mmap, crossed: Callable[[], bytes], copied: Callable[[], None]
    ) -> None:
        self._memory, self._own, self._crossed, self._copied = memoryview(memory), memoryview(own), crossed, copied
        self._held, self.keeps = self._own[:0], False

    def part(self) -> tuple[Any, list[Array]]:
        """The next part; the head of doubles alone is None.

        Raises `EndOfStream` where the process has answered, `ProtocolError` or an error of values for other bytes.
        """
        length, size = SIZES.unpack(self._take(SIZES.size))
        text = str(self._take(length), "ascii")
        whole = self._take(size)
        body = memoryview(bytes(whole)) if self.keeps else whole
        if not text:
            return None, [np.frombuffer(body, np.float64)]
        head, layout = json.loads(text)
        arrays = _arrays(body, layout)
        if any(array.dtype.itemsize > WORD or not array.dtype.isnative for array in arrays):
            raise ProtocolError
        return head, arrays

    def answer(self) -> bytes:
        """What the process says once all its outputs have crossed."""
        try:
            while not self._held:
                self._more()
        except EndOfStream as end:
            return end.answer
        raise ProtocolError

    def _take(self, size: int) -> memoryview:
        if size > LARGEST:
            raise ProtocolError
        if size and not self._held:
            self._more()
        whole, self._held = self._held[:size], self._held[size:]
        if len(whole) == size:
            return whole
        parts = bytearray(whole)
        while missing := size - len(parts):
            self._more()
            parts += self._held[:missing]
            self._held = self._held[missing:]
        return memoryview(parts)

    def _more(self) -> None:
        message = self._crossed()
        if len(message) != WORD:
            raise EndOfStream(message)
        size = int.from_bytes(message, "little")
        if not 0 < size <= SIZE:
            raise ProtocolError
        self._held = self._own[:size]
        self._held[:] = self._memory[:size]
        self._copied()


class Sending:
    """A sink of the process's end: outputs go as they come."""

    def __init__(self, runs: int, wanted: Wanted, *, tallies: bool, writer: FrameWriter) -> None:
        self.sides: Bools = np.empty(runs, np.bool_)
        self.wanted, self.tallies, self._writer = wanted, tallies, writer

    def fill(self, start: int, outputs: Outputs, numbers: Places | None = None) -> None:
        """Outputs of a per-run mechanism."""
        self._send(outputs, [] if numbers is None else [numbers])
        self._writer.flush()

    def call(self, start: int, outputs: Outputs, side: int) -> None:
        """Outputs of one call of a batched mechanism."""
        self._send(outputs, [])
        self._writer.flush(CROSSES)

    def _send(self, outputs: Outputs, arrays: list[Array]) -> None:
        tallied, every, matrix = len(arrays), outputs.columns, None
        plain = every.get(()) if len(every) == 1 and type(every) is dict and outputs.complete and not arrays else None
        odd = outputs.labels or outputs.notes or outputs.unseen or plain is None or plain.codes is not None
        if plain is not None and not odd and plain.values.dtype == np.float64 and plain.values.nbytes < CROSSES:
            return self._writer.numbers(plain.values)
        if isinstance(every, Columns):
            matrix = [[list(path), place] for path, place in every.places.items()]
            outputs = replace(outputs, columns=every.loose)
            arrays.append(every.matrix)
        self._writer.put([tallied, matrix, outputs_apart(outputs, arrays)], arrays)


def received(head: Any, arrays: list[Array]) -> tuple[Outputs, Places | None]:
    """What `Sending` sent, checked: raises `ProtocolError`, or any error of values, where it is something else."""
    if head is None:
        return Outputs(len(arrays[0]), {(): Column(arrays[0])}), None
    tallied, matrix, value = head
    left = iter(arrays)
    numbers = next(left) if tallied else None
    wide = None if matrix is None else next(left)
    outputs = outputs_again(value, left)
    none_left(left)
    if outputs.runs < 0 or any(
        each.values.ndim != 1 or (each.codes is not None and each.codes.dtype != np.uint64)
        for each in outputs.columns.values()
    ):
        raise ProtocolError
    if numbers is not None and (
        numbers.ndim != 1
        or numbers.dtype != np.intp
        or not outputs.runs
        or not 0 <= numbers.min() <= numbers.max() < outputs.runs
    ):
        raise ProtocolError
    if wide is not None:
        places = {tuple(map(step_of, path)): int(place) for path, place in matrix}
        if wide.shape != (len(places), outputs.runs) or sorted(places.values()) != list(range(len(places))):
            raise ProtocolError
        outputs = replace(outputs, columns=Columns(places, [Stretch(wide)], outputs.columns))
    return outputs, numbers
