"""What an audit has come to, kept outside of its process: the shards of each call, and decisions of the moment by name.

A shard is stored before it is counted or looked at, and taken up again in its place: (call, look, stage, pair, shard).
A call is one request of the audit for runs, counted over the whole of it. Why a second driver that is handed the same
shards comes to the same result: docs/statistics/resume.md.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any, NoReturn, Protocol

from dpaudit.errors import DpAuditError
from dpaudit.events import event_from_dict, partition_from_dict
from dpaudit.processes.frames import KeptShard, decoded, encoded
from dpaudit.running.contents import digest_of
from dpaudit.running.streams import Shard, Stage, shards
from dpaudit.running.watch import Watch


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

    def notes(self) -> dict[str, Any]:
        """What was noted of the audit, as JSON holds it."""

    def note(self, name: str, value: Any) -> None:
        """Notes a value under a name, in place of the one before; when it returns it survives a kill."""


LOADED = "loaded"  # a note: digests of the source files that the first runs have loaded
ELSEWHERE = "elsewhere"  # a note: who made certifying runs outside of this process and its own (`Elsewhere`), by place


FROZEN = "frozen"  # a note: calls for certifying runs that were put off (`FrozenCall`), as JSON holds them


@dataclass(frozen=True, slots=True)
class FrozenCall:
    """A call for certifying runs that is put off: its number and question, the seed of its streams, and its grid.

    `alone`: a batched mechanism gets a call for each run. `likeness` is that of the `probed` first runs on the first
    pair, empty where they had none. `events` are counted, those of the witness first, as results store them.
    """

    number: int
    question: str
    seed: int
    alone: bool
    probed: int
    likeness: str
    pair: int
    runs: int
    shard_runs: int
    events: list[dict[str, Any]]

    @property
    def shards(self) -> list[Shard]:
        """Its shards: a fixed grid, as it is where no time is limited."""
        return shards(Stage.CERTIFY, self.pair, self.runs, self.shard_runs)

    @property
    def watch(self) -> Watch:
        """What counts them."""
        main, *extra = (partition_from_dict(each) if "bins" in each else event_from_dict(each) for each in self.events)
        return Watch(main, tuple(extra))


class Frozen(Exception):
    """The certifying runs of an audit are put off: they are noted in its store."""


class Recorder:
    """Numbers the calls of one audit from `first` on, and keeps what they bring home and what the moment decides.

    Without a store it keeps nothing. `freezing`: certifying runs are put off.
    """

    def __init__(self, store: ShardStore | None = None, *, first: int = 0, freezing: bool = False) -> None:
        self.store, self.freezing = store, freezing
        self.put_off: list[dict[str, Any]] = []
        self._calls = first
        self._names = Counter[str]()
        self._notes: dict[str, Any] = {} if store is None else store.notes()

    @property
    def driver(self) -> int:
        """How many processes have driven the audit before this one."""
        return 0 if self.store is None else self.store.driver

    def call(self, *question: Any) -> "ShardCall":
        """The next call, with the question that it puts."""
        number, self._calls = self._calls, self._calls + 1
        if self.store is None:
            return ShardCall(self, number, "", {})
        known = {(each.look, *_place(each.shard)): each for each in self.store.fetch(number)}
        return ShardCall(self, number, digest_of(*question), known)

    def decided(self, name: str) -> Any:
        """What was decided or noted under this name, when this audit was first driven here; None for nothing."""
        return self._notes.get(name)

    def note(self, name: str, value: Any) -> None:
        """Keeps a number or a table of words under a name."""
        if self.store is not None:
            self._notes[name] = value
            self.store.note(name, value)

    def freeze(self, call: FrozenCall) -> NoReturn:
        """Puts a call off. Raises `Frozen`."""
        self.put_off.append(asdict(call))
        self.note(FROZEN, self.put_off)
        raise Frozen

    def decide(self, name: str, choose: Callable[[], int]) -> int:
        """A number that the moment decides, such as by the clock: an audit that is taken up decides alike.

        The same name may be asked again: the first time it is another decision than the second.
        """
        self._names[name] += 1
        numbered = name if self._names[name] == 1 else f"{name}, {self._names[name]}"
        number = self.decided(numbered)
        if number is None:
            number = choose()
            self.note(numbered, number)
        return int(number)


@dataclass(frozen=True, slots=True)
class ShardCall:
    """One call: what is stored of it already, and where the rest goes."""

    recorder: Recorder
    number: int
    question: str
    _stored: Mapping[tuple[int, int, int, int], StoredShard]

    @property
    def driver(self) -> int:
        """How many processes have driven the audit before this one."""
        return self.recorder.driver

    @property
    def late(self) -> str:
        """The name of the decision that the time was over in this call."""
        return f"time was over in call {self.number}"

    def stored(self, work: Iterable[Shard], *, look: int = 0) -> dict[Shard, KeptShard]:
        """Those of the shards that are stored. Raises `ForeignShard` where another question was put there."""
        shards: dict[Shard, KeptShard] = {}
        for shard in work:
            each = self._stored.get((look, *_place(shard)))
            if each is None:
                continue
            if each.shard != shard or each.question != self.question:
                raise ForeignShard(
                    f"a stored shard ({shard.stage.name.lower()}, pair {shard.pair}, shard {shard.index}) answers "
                    "another question than is asked now; begin the run anew"
                )
            shards[shard] = decoded(each.kind, each.content)
        return shards

    def keep(self, *looks: Iterable[tuple[Shard, KeptShard]]) -> None:
        """Stores what came back, before anybody looks at it: all of it or nothing."""
        if self.recorder.store is None:
            return
        rows = [
            StoredShard(self.number, look, shard, self.question, *encoded(entry))
            for look, results in enumerate(looks)
            for shard, entry in results
        ]
        if rows:
            self.recorder.store.keep(rows)


def identity(mechanism: Any, pairs: Iterable[Any]) -> tuple[Any, ...]:
    """What a session runs, in words and numbers that are the same on every machine: names, parameters, digests."""
    names = [each.name for each in fields(mechanism) if each.name != "folder"] if is_dataclass(mechanism) else ["name"]
    values = [(name, getattr(mechanism, name, None)) for name in names]
    plain = [each for each in values if isinstance(each[1], str | int | float | None)]
    return type(mechanism).__qualname__, plain, [digests_of(pair) for pair in pairs]


def digests_of(pair: Any) -> list[Any]:
    """What tells a pair from another: its name, its distance, and digests of its datasets."""
    record = pair.record()
    return [record["name"], record["distance"], *(record[side]["digest"] for side in ("first", "second"))]


def _place(shard: Shard) -> tuple[int, int, int]:
    return int(shard.stage), shard.pair, shard.index
