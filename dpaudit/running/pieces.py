"""Shards of slow runs in parts, each reported and stored as it is done; the runs are those of the whole shard.

A part goes on where the one before it ended, with the stream in that state, and counts of parts add up. Search looks
at outputs of a whole shard together, so its parts pass them on as they were returned, where JSON can hold them.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpaudit.base.arrays import Integers
from dpaudit.outputs.canonical import Failure, Token
from dpaudit.running.streams import Shard, grouped

PART_S = 1.0  # a part lasts about this long
CHECK_PART = 20  # a task lasts this many times longer than it takes to look at its datasets,
LONGEST_TASK_S = 10.0  # up to this
OCTET = 8  # runs of a part are a multiple of it: coins are drawn by bytes, and patterns are of four runs
LONGEST_TEXT = 1 << 22  # characters of outputs that are handed on
PLAIN = (type(None), bool, int, str)


@dataclass(frozen=True, slots=True)
class Piece:
    """A shard so far: its first `done` runs, to go on until `stop`.

    `stream` is the state of the mechanism's stream after them, `counts` their counts, and `held` their outputs
    where search looks at these.
    """

    done: int = 0
    stop: int = 0
    stream: tuple[int, ...] = ()
    counts: Integers | None = None
    held: str = "[]"


class Pieces(dict[Shard, Piece]):
    """The state of those shards of a call that are made in parts."""

    def tasks(self, work: Sequence[Shard], run_s: float, check_s: float, size: int) -> Iterator[tuple[Any, ...]]:
        """Tasks, each with the part to make: one for each shard that lasts some seconds, or was begun in parts.

        All other shards are grouped into tasks of about `size` runs.
        """
        slow = [shard for shard in work if shard in self or shard.runs * run_s > 2 * PART_S]
        yield from (((shard,), self.next(shard, run_s, check_s)) for shard in slow)
        yield from ((task,) for task in grouped([shard for shard in work if shard not in slow], size))

    def next(self, shard: Shard, run_s: float, check_s: float) -> Piece:
        """The next part of a shard: about a second, longer where datasets are large, the last part up to half."""
        so_far = self.get(shard, Piece())
        runs = max(OCTET, int(max(PART_S, min(LONGEST_TASK_S, CHECK_PART * check_s)) / run_s) // OCTET * OCTET)
        end = so_far.done + runs
        return replace(so_far, stop=end if end + runs // 2 < shard.runs else shard.runs)

    def end(self, shard: Shard, result: Any) -> int:
        """How many runs of a shard are done: none, those of its parts, or all."""
        return 0 if result is None else result.done if isinstance(result, Piece) else shard.runs

    def made(self, results: Iterable[tuple[Shard, Any]]) -> int:
        """How many runs these results add."""
        return sum(self.end(shard, result) - self.end(shard, self.get(shard)) for shard, result in results)


def state_of(rng: np.random.Generator) -> tuple[int, ...]:
    """The state of a stream, in whole numbers."""
    state: Any = rng.bit_generator.state
    seeds: Any = rng.bit_generator.seed_seq
    return (*map(int, state["state"]["state"]), state["has_uint32"], state["uinteger"], seeds.n_children_spawned)


def again(rng: np.random.Generator, stream: Sequence[int]) -> np.random.Generator:
    """A stream of the same seed as this one, in another state."""
    *words, has_uint32, uinteger, spawned = stream
    before: Any = rng.bit_generator.seed_seq
    seeds = np.random.SeedSequence(before.entropy, spawn_key=before.spawn_key, n_children_spawned=spawned)
    bits = np.random.SFC64(seeds)
    state: Any = {"state": np.array(words, np.uint64)}
    bits.state = {"bit_generator": "SFC64", "state": state, "has_uint32": has_uint32, "uinteger": uinteger}
    return np.random.Generator(bits)


def text_of(outputs: list[Any]) -> str | None:
    """The outputs as text, from which `outputs_of` makes the same ones, bit for bit; None where that cannot be.

    >>> outputs_of(text_of([0.1, (1, "a"), {"b": [None, -0.0]}]))
    [0.1, (1, 'a'), {'b': [None, -0.0]}]
    >>> text_of([object()]), text_of([10**5_000])  # no number of so many digits is written
    (None, None)
    """
    try:
        text = json.dumps([_as_json(each) for each in outputs])
    except (TypeError, ValueError, RecursionError):
        return None
    return text if len(text) <= LONGEST_TEXT else None


def outputs_of(text: str) -> list[Any]:
    """The outputs that `text_of` wrote."""
    return [_from_json(each) for each in json.loads(text)]


def _as_json(value: Any) -> Any:
    kind = type(value)
    if kind in PLAIN or (kind is float and value == value):  # JSON does not keep the sign of a NaN
        return value
    if kind in (list, tuple):
        return [kind.__name__, *map(_as_json, value)]
    if kind is dict and set(map(type, value)) <= {str, int}:
        return ["dict", *([key, _as_json(each)] for key, each in value.items())]
    if kind is Failure:
        return ["raised", value.token.label, value.token.code, value.note, value.message]
    if kind is np.ndarray or issubclass(kind, np.generic):
        dtype = value.dtype
        if dtype.kind in "fiub" and kind in (np.ndarray, dtype.type) and np.dtype(dtype.str).type is dtype.type:
            return ["array" if kind is np.ndarray else "number", dtype.str, value.shape, value.tobytes().hex()]
    raise TypeError(kind)


def _from_json(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    kind, *rest = value
    if kind in ("list", "tuple"):
        return (list if kind == "list" else tuple)(map(_from_json, rest))
    if kind == "dict":
        return {key: _from_json(each) for key, each in rest}
    if kind == "raised":
        label, code, note, message = rest
        return Failure(Token(label, code), note, message)
    dtype, shape, content = rest
    array = np.frombuffer(bytes.fromhex(content), dtype).reshape(shape).copy()
    return array if kind == "array" else array[()]
