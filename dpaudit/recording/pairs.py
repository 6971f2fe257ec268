"""The worst pair by recorded noise: candidates made of one example dataset, asked by two runs each, and shrunk.

Candidates differ in size and in values, more than the patterns that an audit has anyway; what shows a lead is shrunk by
Hypothesis where that is installed. All of it runs in a process of its own; what comes home are sealed pairs.
"""

import math
import random
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import count, pairwise
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from dpaudit.base.numerals import counted
from dpaudit.claims import Claim, Relation
from dpaudit.data.data import home_of, records_of
from dpaudit.data.data_records import cells_of, joined, put, short, taken
from dpaudit.data.data_users import UserRecords, Users, opened
from dpaudit.data.pair import AdjacentPair, SealedPair
from dpaudit.data.patterns import ADD, FOUND, Example, without_constants
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.execution.engine import Engine, FreshProcesses
from dpaudit.mechanisms.protocol import Description, Mechanism
from dpaudit.processes.pools import LostWorker
from dpaudit.processes.tasks import FreshTask, worker_for
from dpaudit.recording.patching import patched
from dpaudit.recording.replays import analysed, glanced
from dpaudit.results.recorded import Lead
from dpaudit.running import guard
from dpaudit.running.streams import Shard, Stage
from dpaudit.running.worker import Job

MOST = 2_400  # recorded runs
GLANCES, LOOKS = 0.25, 0.7  # of them are made when glances end, and when close looks do
ANALYSED, HANDED = 46, 3  # runs of a close look; pairs that an audit is given
BASE, LARGEST = 64, 1_000  # rows of the dataset that values are moved in, and of the largest that is made
BLOCKS, CALLS = 24, 400  # rows, or blocks, that the shrinker drops in one go; its calls for a pair
WORSE, HEAVIEST = 1.01, 1e300  # times the loss of a pair that there is anyway, which another is to have; infinity
STRONG = 5.0  # times what the claim allows, or 1 where that is less: no pair is shrunk to less of a loss
HANGS_S, MEMORY = 0.5, 4 << 30  # a candidate whose run takes longer, or more bytes than a process may have, is dropped
FAR = [sign * 10**power for power in (0, 3, 6, 9, 16) for sign in (1, -1)]  # opposite signs stand together
WHOLE = [*FAR, 0, 127, 32_767, 2**53 + 1, 2**31 - 1, -(2**31)]
REAL = [*map(float, FAR), 0.0, -0.0, 0.1, 5e-324, math.nan, math.inf, -math.inf]
TEXTS = ["never seen", "", "a" * 10_000]

Rows = Sequence[Any]


class Candidate(NamedTuple):
    """Neighbours: rows that both have, and at a `place` among them what either has alone; `kind` is what was moved."""

    kind: str
    common: Rows
    place: int
    first: Rows
    second: Rows


class Maker:
    """Candidates of one example dataset. Raises `InvalidSpec` where it has no records."""

    def __init__(self, example: Example) -> None:
        data, self.relation, self.user = example
        self.data = data() if callable(data) else data
        self.adds, self.alone = self.relation in ADD, self.relation is Relation.LOCAL
        if self.alone and len(records_of(self.data) or ()) > 1:
            raise InvalidSpec("a local mechanism may be given these values, and others are no candidates")
        held: Any = [self.data] if self.alone else self.data
        records = opened(held if self.user is None else Users(held, self.user), 1, least=1)
        self.size, self.empty = len(records.rows), held.iloc[:0] if home_of(held) == "pandas" else taken(held, [])
        self.rows: Rows = records.rows[:: max(1, self.size // BASE)][:BASE]
        users = records if isinstance(records, UserRecords) else None
        self.own = users and users.place
        self.named: Callable[[Any], Any] = partial(users.named, name=users.new(1)[0]) if users else lambda row: row

    def pair(self, candidate: Candidate) -> AdjacentPair:
        """The pair. Raises `InvalidSpec` where the relation does not connect it, or the data cannot hold it."""
        common, alone = candidate.common, (candidate.first, candidate.second)
        rows = [[*common[: candidate.place], *each, *common[candidate.place :]] for each in alone]
        first, second = (side[0] if self.alone else joined(self.empty, side) if side else self.empty for side in rows)
        words, many = " by ".join(short(each[0]) for each in alone if each), counted(len(common), "record")
        name = f"add {words} to {many}" if self.adds else f"replace {words} beside {many}"
        pair = AdjacentPair(first, second, name, user=self.user)
        pair.check(self.relation)
        return pair

    def sized(self, size: int, kind: str = "size") -> Candidate:
        """So many rows, and one more, or another."""
        return self._beside(kind, [self.rows[k % len(self.rows)] for k in range(size)], self.rows[-1])

    def others(self) -> Iterator[Candidate]:
        """Users of many rows, and values moved to extremes: alone, beside the data, or beside one of their like."""
        for many in (self.rows, [*self.rows[:1]] * 10) if self.own is not None else ():
            yield Candidate("rows", self.rows, 0, [], [*map(self.named, many)])
        places = [place for place, _ in cells_of(self.rows[0]) if self.own is None or place != self.own]
        moved = [each for place in places for each in self._moved(place)]
        for kind, row in moved:
            yield from (self._beside(kind, common, row) for common in ([], self.rows, [row, *self.rows]))
        if not self.adds:
            yield from (Candidate(kind, self.rows[1:], 0, [one], [row]) for (_, one), (kind, row) in pairwise(moved))

    def _beside(self, kind: str, common: Rows, row: Any) -> Candidate:
        if self.adds:
            return Candidate(kind, common, (len(common) + 1) // 2, [], [self.named(row)])
        return Candidate(kind, common[1:], 0, common[:1] or self.rows[:1], [row])

    def _moved(self, place: Any) -> Iterator[tuple[str, Any]]:
        """The first row with other values at a place: those of the data at its ends, and far and odd ones."""
        column: list[Any] = [dict(cells_of(row)).get(place) for row in self.rows]
        values, numbers = [*{repr(each): each for each in column}.values()][:4], list(filter(_is_number, column))
        if any(isinstance(each, str) for each in column):
            values += TEXTS
        elif numbers:
            whole = all(isinstance(each, Integral) for each in numbers)
            kind = getattr(numbers[0], "dtype", np.int64 if whole else np.float64)
            ends: Any = np.iinfo(kind) if whole else np.finfo(kind)
            far = [ends.min, ends.max, *WHOLE] if whole else [float(ends.min), float(ends.max), *REAL]
            values += [min(numbers), max(numbers), *far]
        for value in values:
            size = _is_number(value) and (abs(value) >= 10) + (abs(value) >= 1e10)
            with suppress(InvalidSpec, TypeError, ValueError, OverflowError):  # which the row cannot hold
                yield "text" if value in TEXTS else f"values {size}", put(self.rows[0], place, value)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and repr(value) not in ("True", "False") and bool(value - value == 0)


class Enough(BaseException):
    """No more is asked."""


class Found(NamedTuple):
    """A candidate with a lead, and how far apart the outputs of a smaller one are to be."""

    candidate: Candidate
    lead: Lead
    least: float


@dataclass(slots=True)
class Asked:
    """A mechanism that is asked about candidates, in `patched`, as long as recorded runs are left."""

    opened: Callable[[Any, Any], Any]
    maker: Maker
    claim: Claim
    seed: int
    left: int
    pairs: Sequence[tuple[Any, Any]] = ()  # which there are anyway

    def call(self, data: Any, rng: Any) -> Any:
        """One run; one that hangs, or wants too much memory, says nothing, and costs as much as many."""
        self.left -= 1
        try:
            return self.opened(data, rng)
        except (guard.RunTimedOut, MemoryError):
            self.left -= MOST // 4
            raise InvalidSpec("no audit could make many such runs") from None

    def glance(self, candidate: Candidate) -> float:
        """How far apart its outputs are, in units of the noise; 0 too where it is no pair, or no runs are left."""
        with suppress(DpAuditError):
            if self.left > 0:
                return glanced(self.call, *self.maker.pair(candidate).open(), seed=self.seed)
        return 0.0

    def look(self, candidate: Candidate, apart: float) -> Found | None:
        """Its strongest lead; a text that one side refuses is none. Raises `Enough` where something draws unseen."""
        with suppress(DpAuditError):
            record = analysed(self.call, *self.maker.pair(candidate).open(), claim=self.claim, seed=self.seed)
            if record.unseen:
                raise Enough
            leads = [each for each in record.leads if (candidate.kind, each.kind) != ("text", "raised")]
            if leads:
                lead = max(leads, key=lambda each: each.weight)
                part = STRONG * max(record.allowed or 0.0, 1.0) / lead.weight if lead.weight < math.inf else 1.0
                return Found(candidate, lead, apart * min(0.999, part))
        return None

    def shown(self) -> dict[str, float]:
        """The weight of leads of each kind on the pairs that there are anyway: of those furthest apart."""
        weights: dict[str, float] = {}
        apart = [glanced(self.call, *pair, seed=self.seed) for pair in self.pairs]
        for wanted in (math.inf, max((each for each in apart if each < math.inf), default=math.nan)):
            for pair in [pair for pair, each in zip(self.pairs, apart, strict=True) if each == wanted][:1]:
                with suppress(DpAuditError):
                    for lead in analysed(self.call, *pair, claim=self.claim, seed=self.seed).leads:
                        weights[lead.kind] = max(weights.get(lead.kind, 0.0), min(lead.weight, HEAVIEST))
        return weights

    def worst(self) -> list[AdjacentPair]:
        """The pairs that show different leads, the strongest first, shrunk."""
        most, seen = self.left, dict[tuple[str, bool], tuple[float, Candidate]]()

        def glance(candidate: Candidate) -> float:
            """Keeps the first of its kind that is so far apart."""
            apart = self.glance(candidate)
            if apart > seen.get((candidate.kind, apart == math.inf), (0.0,))[0]:
                seen[candidate.kind, apart == math.inf] = apart, candidate
            return apart

        def differ(*sizes: int) -> bool:
            near, far = sorted(glance(self.maker.sized(size)) for size in sizes)
            return far > 2.0 * near

        n = self.maker.size
        sizes = [] if self.maker.alone else sorted({0, 1, 2, n // 2, n - 1, n, n + 1, 2 * n, 3 * n})
        for low, high in pairwise(size for size in sizes if size <= LARGEST):
            while differ(low, high) and (middle := (low + high) // 2) > low:  # where outputs stop varying, or begin to
                low, high = (low, middle) if differ(low, middle) else (middle, high)
            for size in (low, high) if high - low == 1 and differ(low, high) else ():
                glance(self.maker.sized(size, f"size {size}"))
        others = list(self.maker.others())
        for place in np.random.default_rng([self.seed, len(others)]).permutation(len(others)):
            if self.left > (1.0 - GLANCES) * most:
                glance(others[place])
        known, found = self.shown(), dict[tuple[str, str], Found]()
        for apart, candidate in sorted(seen.values(), key=lambda each: -each[0]):
            if self.left < max(ANALYSED, (1.0 - LOOKS) * most):
                break
            each = self.look(candidate, apart)
            if each is not None and min(each.lead.weight, HEAVIEST) > WORSE * known.get(each.lead.kind, 0.0):
                key = each.lead.kind, each.lead.place
                found[key] = max(found.get(key, each), each, key=lambda each: each.lead.weight)
        best = sorted(found.values(), key=lambda each: -each.lead.weight)[:HANDED]
        return [self._handed(number, each, self.left // len(best)) for number, each in enumerate(best, start=1)]

    def _handed(self, number: int, found: Found, runs: int) -> AdjacentPair:
        """The pair that an audit is given: shrunk on so many runs, with the reason in words."""
        cure, left, self.left = "", self.left - runs, runs
        if find_spec("hypothesis") is None:
            from dpaudit.base.installed import requirement

            cure = f"; python3 -m pip install {shlex.join(requirement('search'))} has it shrunk"
        elif (again := self.look(self.shrunk(found), found.least)) and again.lead.kind == found.lead.kind:
            found = again
        self.left, lead, pair = left, found.lead, self.maker.pair(found.candidate)
        words = f"{FOUND}: {lead.kind} of {lead.parts[0]}, {lead.first} and {lead.second}{cure}"
        return replace(pair, name=f"lead {number}: {pair.name}", reason=words)

    def shrunk(self, found: Found) -> Candidate:
        """The smallest candidate that Hypothesis finds whose outputs are apart: of fewer rows, and of nearer values."""
        hypothesis: Any = import_module("hypothesis")
        phases = [hypothesis.Phase.generate, hypothesis.Phase.shrink]
        quiet = hypothesis.settings(max_examples=100, database=None, deadline=None, backend="hypothesis", phases=phases)
        integers, best, calls = hypothesis.strategies.integers, found.candidate, count()

        def smaller(draw: Any, of: Candidate, values: bool) -> Candidate:
            """Mostly with all rows; or with `values` anywhere between their own and nothing."""

            def some(rows: Rows) -> Rows:
                size = max(1, -(-len(rows) // BLOCKS))
                blocks = [rows[start : start + size] for start in range(0, len(rows), size)]
                return [row for block in blocks if values or draw(integers(0, 9)) for row in block]

            def nearer(row: Any) -> Any:
                for place, value in list(cells_of(row)) if values else ():
                    text = isinstance(value, str)
                    most = len(value) if text else abs(int(value)) if _is_number(value) else 0
                    bits = most.bit_length() + 1
                    number = draw(integers(0, 2 ** min(bits, draw(integers(0, 2 * bits))) - 1))
                    if number < most:
                        row = put(row, place, value[:number] if text else type(value)(number if value > 0 else -number))
                return row

            head, tail = some(of.common[: of.place]), some(of.common[of.place :])
            alone = [some(rows) if len(rows) > 1 else [*map(nearer, rows)] for rows in (of.first, of.second)]
            return Candidate(of.kind, [*head, *tail], len(head), *alone)

        def shows(candidate: Candidate) -> bool:
            nonlocal best
            if next(calls) == CALLS or self.left < ANALYSED + 2:
                raise Enough
            shown = self.glance(candidate) >= found.least
            best = candidate if shown else best
            return shown

        for values in (False, False, True):  # rows in smaller blocks each time
            with suppress(Enough, hypothesis.errors.HypothesisException), without_constants():
                strategy = hypothesis.strategies.composite(smaller)(best, values)
                hypothesis.find(strategy, shows, settings=quiet, random=random.Random(self.seed))
        return best


def worst_here(
    example: Example, claim: Claim, runs: int, job: Job, task: FreshTask
) -> tuple[Description, tuple[SealedPair, ...]]:
    """The pairs of a dataset that show leads, by at most so many recorded runs where the mechanism runs."""
    pairs: list[AdjacentPair] = []
    with recording(job) as call, suppress(Enough):
        pairs = Asked(call, Maker(example), claim, job.seed % 2**31, min(runs, MOST), worker_for(job).pairs).worst()
    return Description("", "recorded"), tuple(map(SealedPair.seal, pairs))


def asked_alone(
    engine: Engine,
    mechanism: Mechanism,
    seed: int,
    function: Callable[[Job, FreshTask], Any],
    pairs: Sequence[AdjacentPair | SealedPair] = (),
) -> Any | None:
    """What a function makes of a mechanism in a process of its own; None where that comes to no answer."""
    with engine.session(mechanism, tuple(pairs), seed, HANGS_S) as session, suppress(LostWorker, DpAuditError):
        session.job = replace(session.job, alone=True)  # a batched mechanism gets a call for each run
        body = FreshProcesses(session, [FreshTask(Shard(Stage.FRESH, 0, 0, 0), ())], function)
        (((_, answer),),) = (done.results for done in body.run(body.work))
        return answer
    return None


@contextmanager
def recording(job: Job) -> Iterator[Callable[[Any, Any], Any]]:
    """The mechanism of a job as `call(data, rng)`, where noise is recorded, and little memory is to be had."""
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    with patched(), guard.alarms(True), np.errstate(all="ignore"):
        yield worker_for(job).opened.call
    guard.disarm()
