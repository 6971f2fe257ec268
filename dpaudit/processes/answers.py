"""What a process sends home, as bytes and back: numbers and text in a form of ours, never a pickle."""

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from dpaudit.claims.claim import Relation
from dpaudit.data.pair import SealedPair
from dpaudit.errors import DpAuditError
from dpaudit.mechanisms.protocol import Description
from dpaudit.outputs.canonical import Outputs, Pilot
from dpaudit.processes.codec import MALFORMED, KeptShard, UnreadableShard, decoded, encoded
from dpaudit.processes.tasks import Done, as_error, hold, several
from dpaudit.running.pieces import Piece
from dpaudit.running.streams import Shard, Stage
from dpaudit.running.worker import named

LENGTH = 8  # bytes that tell how long the head is


class Unreadable(ValueError):
    """Bytes that no process of ours sends: something else has written them."""


def made(function: Callable[..., Any], tasks: list[Any], threads: int, payloads: dict[str, bytes]) -> bytes:
    """The answer of this process to a request: what each task returned, or what one of them raised."""
    try:
        hold(payloads)
        return written(several(function, tasks, threads))
    except BaseException as error:  # a SystemExit of a mechanism too: nothing that it raises is raised by the driver
        what = str(error) if isinstance(error, DpAuditError) else f"a worker failed ({named(error)}); no verdict"
        return _packed([["error", [type(error).__name__, what], []]], [])


def read(answer: bytes) -> list[Any]:
    """What each task returned. Raises the error of ours that one reported, `Unreadable` where this is no answer."""
    try:
        at = LENGTH + int.from_bytes(answer[:LENGTH], "little")
        found = json.loads(answer[LENGTH:at].decode("ascii"))
        results = []
        for kind, value, sizes in found:
            parts = []
            for size in sizes:
                parts.append(answer[at : at + size])
                at += size
            results.append(_result(kind, value, parts))
    except (UnreadableShard, *MALFORMED) as error:
        if isinstance(error, DpAuditError) and not isinstance(error, UnreadableShard):
            raise  # some of ours are ValueErrors
        raise Unreadable("an answer cannot be read") from None
    return results


def fits(result: Any, task: tuple[Any, ...]) -> bool:
    """Whether it may be what this task returned: its shards, and of the kind that was asked for."""
    if not isinstance(result, Done) or result.error is not None:
        return True
    _, asked, reducer, *part = task
    whole = [found for _, found in result.results if not isinstance(found, Piece)]
    right = all(isinstance(found, Pilot) is (reducer is None) for found in whole)
    right = right and (bool(part) or len(whole) == len(asked))
    return right and tuple(shard for shard, _ in result.results) == asked


def written(results: list[Any]) -> bytes:
    """What each task returned, as bytes."""
    heads: list[Any] = []
    parts: list[bytes] = []
    for result in results:
        if isinstance(result, Done):
            times = [result.seconds, result.cpu_s, result.check_s]
            work = [[int(shard.stage), shard.pair, shard.index, shard.runs] for shard, _ in result.results]
            kept = [encoded(KeptShard(each)) for _, each in result.results]
            value: Any = [times, result.error, work, [kind for kind, _ in kept]]
            kind, blobs = "done", [content for _, content in kept]
        elif isinstance(result, Outputs):
            kind, value, blobs = "outputs", None, [encoded(KeptShard(result))[1]]
        elif isinstance(result, dict):
            kind, value, blobs = "words", {str(key): str(each) for key, each in result.items()}, []
        else:
            description, pairs = result
            value = [asdict(description), [_pair(pair) for pair in pairs]]
            kind, blobs = "description", [pair.payload for pair in pairs]
        heads.append([kind, value, [len(blob) for blob in blobs]])
        parts += blobs
    return _packed(heads, parts)


def _result(kind: str, value: Any, parts: list[bytes]) -> Any:
    if kind == "done":
        (seconds, cpu_s, check_s), error, work, kinds = value
        found = [decoded(each, part).result for each, part in zip(kinds, parts, strict=True)]
        told = None if error is None else (str(error[0]), str(error[1]))
        made = [Shard(Stage(stage), int(pair), int(index), int(runs)) for stage, pair, index, runs in work]
        return Done(tuple(zip(made, found, strict=True)), _time(seconds), _time(cpu_s), told, _time(check_s))
    if kind == "outputs":
        return decoded(kind, parts[0]).result
    if kind == "words":
        return {str(key): str(each) for key, each in value.items()}
    if kind == "description":
        pairs = zip(value[1], parts, strict=True)
        return Description(**value[0]), tuple(_sealed(part, *each) for each, part in pairs)
    if kind == "error":
        raise as_error(Done(error=(str(value[0]), str(value[1]))))
    raise LookupError(kind)


def _time(seconds: Any) -> float:
    """Where a mechanism has changed the clock, none."""
    return float(seconds) if math.isfinite(seconds) else 0.0


def _pair(pair: SealedPair) -> list[Any]:
    adjacency = [[None if each is None else each.value, said] for each, said in pair.adjacency().items()]
    return [pair.name, pair.distance, pair.record(), adjacency, pair.reason]


def _sealed(
    payload: bytes, name: str, distance: int, record: dict[str, Any], adjacency: list[Any], reason: str
) -> SealedPair:
    found = {None if each is None else Relation(each): None if said is None else str(said) for each, said in adjacency}
    return SealedPair(str(name), int(distance), payload, dict(record), found, str(reason))


def _packed(heads: list[Any], parts: list[bytes]) -> bytes:
    text = json.dumps(heads).encode("ascii")
    return b"".join((len(text).to_bytes(LENGTH, "little"), text, *parts))
