"""Shards that outlive a process: each is stored before it is counted or looked at, and taken up again in its place.

A place is (call, look, stage, pair, shard); a call is one request of the audit for runs, counted over the whole of it.
Why a second driver that is handed the same shards comes to the same result: docs/statistics/resume.md.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Protocol

import numpy as np

from dpaudit.errors import DpAuditError
from dpaudit.processes.codec import KeptShard, decoded, encoded
from dpaudit.processes.tasks import Done
from dpaudit.running.contents import digest_of
from dpaudit.running.streams import Shard, Stage

MOMENT = Shard(Stage.PROBE, 0, 0, 1)  # the place of a number that the moment decided


class ForeignShard(DpAuditError):
    """A stored shard answers another question. Cure: start again without the stored run."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class StoredShard:
    """One shard as a store holds it: its place, the digest of its question, and its content."""

    call: int
    look: int
    shard: Shard
    question: str
    kind: str
    content: bytes


class ShardStore(Protocol):
    """Keeps the shards of one audit."""

    @property
    def driver(self) -> int:
        """How many processes have driven this audit before."""

    def fetch(self, call: int) -> Sequence[StoredShard]:
        """All shards of a call."""

    def keep(self, shards: Sequence[StoredShard]) -> None:
        """Stores all of them or none; when it returns they survive a kill. Raises where they would not.

        A part of a shard, of the kind "piece", is replaced by the next one, and by the whole.
        """

    def loaded(self, files: Mapping[str, str]) -> None:
        """Keeps the digests of source files that the first runs have loaded: the next driver must find the same."""


class Recorder:
    """Numbers the calls of one audit and keeps what they bring home; without a store it keeps nothing."""

    def __init__(self, store: ShardStore | None = None) -> None:
        self.store = store
        self._calls = 0

    def asked(self, *question: Any) -> "Asked":
        """The next call, with the question that it puts."""
        if self.store is None:
            return Asked(None, 0, "", {})
        call, self._calls = self._calls, self._calls + 1
        held = {(each.look, *_place(each.shard)): each for each in self.store.fetch(call)}
        return Asked(self.store, call, digest_of(*question), held)


@dataclass(frozen=True, slots=True)
class Asked:
    """One call: what is held of it already, and where the rest goes."""

    store: ShardStore | None
    call: int
    question: str
    _held: Mapping[tuple[int, int, int, int], StoredShard]

    @property
    def driver(self) -> int:
        """How many processes have driven the audit before this one."""
        return 0 if self.store is None else self.store.driver

    def held(self, work: Iterable[Shard], *, look: int = 0) -> dict[Shard, KeptShard]:
        """Those of the shards that are stored. Raises `ForeignShard` where another question was put there."""
        found: dict[Shard, KeptShard] = {}
        for shard in work:
            each = self._held.get((look, *_place(shard)))
            if each is None:
                continue
            if each.shard != shard or each.question != self.question:
                raise ForeignShard(
                    f"a stored shard ({shard.stage.name.lower()}, pair {shard.pair}, shard {shard.index}) answers "
                    "another question than is asked now; begin the run anew"
                )
            found[shard] = decoded(each.kind, each.content)
        return found

    def keep(self, *looks: Iterable[tuple[Shard, KeptShard]]) -> None:
        """Stores what came back, before anybody looks at it: all of it or nothing."""
        found = [(look, *each) for look, made in enumerate(looks) for each in made]
        if self.store is not None and found:
            self.store.keep(
                [StoredShard(self.call, look, shard, self.question, *encoded(kept)) for look, shard, kept in found]
            )


def decided(asked: Asked, choose: Callable[[], int]) -> int:
    """A number that the moment decides, such as by the clock: stored, so that an audit taken up decides alike."""
    if held := asked.held([MOMENT]):
        return int(held[MOMENT].result[0])
    number = choose()
    asked.keep([(MOMENT, KeptShard(np.array([number], np.int64), driver=asked.driver))])
    return number


def identity(mechanism: Any, pairs: Iterable[Any]) -> tuple[Any, ...]:
    """What a session runs, in words and numbers that are the same in every process: names, parameters, digests."""
    names = [field.name for field in fields(mechanism)] if is_dataclass(mechanism) else ["name"]
    held = [(name, getattr(mechanism, name, None)) for name in names]
    plain = [each for each in held if isinstance(each[1], str | int | float | None)]
    return type(mechanism).__qualname__, plain, [digests_of(pair) for pair in pairs]


def digests_of(pair: Any) -> list[Any]:
    """What tells a pair from another: its name, its distance, and digests of its datasets."""
    record = pair.record()
    return [record["name"], record["distance"], *(record[side]["digest"] for side in ("first", "second"))]


def kept_of(done: Done, pool: str, driver: int, lost: int = 0, runs: int = 0) -> list[tuple[Shard, KeptShard]]:
    """The shards of a task that came back, each with the time, the `runs` and the place of the task."""
    runs = runs or sum(shard.runs for shard, _ in done.results)
    return [(shard, KeptShard(result, done.seconds, runs, pool, driver, lost)) for shard, result in done.results]


def _place(shard: Shard) -> tuple[int, int, int]:
    return int(shard.stage), shard.pair, shard.index
