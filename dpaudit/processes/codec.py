"""What a shard brought home, as bytes and back, bit for bit: arrays, and JSON for paths and labels; never a pickle."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpaudit.errors import DpAuditError
from dpaudit.outputs.canonical import Column, Outputs, Path, Pilot
from dpaudit.running.pieces import Piece

MAGIC = b"dpaudit shard 1\n"
LENGTH = 8  # bytes that tell how long the head is
KINDS = "fiub"  # of arrays: floats, integers, truth values

MALFORMED = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, StopIteration)
"""Of bytes that are not ours."""

Array = npt.NDArray[Any]


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


def encoded(kept: KeptShard) -> tuple[str, bytes]:
    """(kind, bytes) of a kept shard; raises `TypeError` for what no shard brings home.

    >>> kind, content = encoded(KeptShard(np.array([1, 2])))
    >>> kind, decoded(kind, content).result.tolist()
    ('counts', [1, 2])
    """
    arrays: list[Array] = []
    kind, value = _taken_apart(kept.result, arrays)
    head = {
        "kind": kind,
        "value": value,
        "arrays": layout(arrays),
        "task": [kept.seconds, kept.runs, kept.pool, kept.driver, kept.lost],
    }
    text = json.dumps(head, allow_nan=False).encode("ascii")
    parts = [MAGIC, len(text).to_bytes(LENGTH, "little"), text, *(array.tobytes() for array in arrays)]
    return kind, b"".join(parts)


def decoded(kind: str, content: bytes) -> KeptShard:
    """The shard again. Raises `UnreadableShard` for bytes that `encoded` did not write for this kind."""
    try:
        start = len(MAGIC) + LENGTH
        end = start + int.from_bytes(content[len(MAGIC) : start], "little")
        head = json.loads(content[start:end].decode("ascii"))
        if content[: len(MAGIC)] != MAGIC or head["kind"] != kind:
            raise ValueError(kind)
        arrays = [array.copy() for array in arrays_at(end, content, head["arrays"])]
        seconds, runs, pool, driver, lost = head["task"]
        result = _put_together(kind, head["value"], iter(arrays))
        return KeptShard(result, float(seconds), int(runs), str(pool), int(driver), int(lost))
    except MALFORMED:
        raise UnreadableShard(
            "a stored shard is damaged or was written by another version; begin the run anew"
        ) from None


def layout(arrays: list[Array]) -> list[Any]:
    """The type and the shape of each array, as JSON holds them."""
    return [[array.dtype.str, array.shape] for array in arrays]


def arrays_at(start: int, content: bytes | memoryview, told: list[Any], aligned: int = 1) -> list[Array]:
    """The arrays of a layout, each from a multiple of `aligned` bytes on; raises an error of values for other bytes."""
    arrays: list[Array] = []
    for name, shape in told:
        dtype = np.dtype(str(name))
        if dtype.kind not in KINDS or min(shape, default=0) < 0:
            raise ValueError(name)
        arrays.append(np.frombuffer(content, dtype, math.prod(shape), start).reshape(shape))
        start += arrays[-1].nbytes + -arrays[-1].nbytes % aligned
    if start != len(content):
        raise ValueError(start)
    return arrays


def _taken_apart(result: Any, arrays: list[Array]) -> tuple[str, Any]:
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
        return "piece", [result.done, list(result.stream), result.held]
    raise TypeError(f"no shard brings home a {type(result).__name__}")


def _put_together(kind: str, value: Any, left: Iterator[Array]) -> Any:
    if kind == "counts":
        made: Any = next(left)
        if made.dtype != np.int64:
            raise ValueError(made.dtype)
    elif kind == "pilot":
        first, second = outputs_again(value["first"], left), outputs_again(value["second"], left)
        made = Pilot(first, second, next(left), tuple(int(size) for size in value["sizes"]))
    elif kind == "outputs":
        made = outputs_again(value, left)
    elif kind == "batch-failed":
        made = BatchFailure(str(value))
    elif kind == "piece":
        done, stream, held = value
        made = Piece(int(done), 0, tuple(map(int, stream)), next(left, None), str(held))
        if made.counts is not None and made.counts.dtype != np.int64:
            raise ValueError(made.counts.dtype)
    else:
        raise ValueError(kind)
    none_left(left)
    return made


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
