"""The engine: shards in, merged integers out, on whatever workers fit the work.

Timing chooses where and in which groups shards run, never what they contain: the same spec and seed give the
same counts with any number of workers, any backend and any grouping.
"""

import math
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from dpaudit.base import validate
from dpaudit.base.arrays import Integers
from dpaudit.data.pair import AdjacentPair, SealedPair
from dpaudit.errors import InvalidSpec, MissingRequirement, OutOfTime, UnsoundAudit
from dpaudit.execution.limit import Limit, in_time, thought
from dpaudit.execution.store import Asked, Recorder, ShardStore, decided, identity, kept_of
from dpaudit.mechanisms.protocol import Description, Mechanism
from dpaudit.outputs.canonical import Outputs, Pilot
from dpaudit.processes import pools, tasks
from dpaudit.processes.codec import BatchFailure, KeptShard
from dpaudit.processes.duct import FORKS
from dpaudit.processes.host import NO_FORKS
from dpaudit.processes.pools import InProcess, LostWorker, Pool, Processes, tried
from dpaudit.processes.sending import AsMade, pickled, run_fresh
from dpaudit.processes.tasks import Done, FreshTask, left_alone, run_task
from dpaudit.processes.workers import Workers
from dpaudit.running import alike
from dpaudit.running.pieces import Piece, Pieces
from dpaudit.running.program import made_with
from dpaudit.running.progress import SILENT, Progress
from dpaudit.running.streams import Shard, Stage, graded, shards
from dpaudit.running.watch import Reducer
from dpaudit.running.worker import BatchFailed, Job, Probe, identical

FEWEST_PROBED = 4  # runs of a pair in each of the two looks of a probe

Thought = TypeVar("Thought")


class Engine:
    """Runs mechanisms on shards; a context manager, and one for many audits.

    `n_jobs` counts workers as joblib does (-1: all processors). `backend` names a registered joblib backend and
    overrides the choice by the work: sequential under a second of it, threads for batched mechanisms, processes of ours
    (by the name loky too) for per-run ones. `supervised` keeps every mechanism out of this process; `isolation` is that
    of `pools.isolates`, usual where supervised, and changes no count. `task_runs` fixes the grouping.
    """

    def __init__(
        self,
        n_jobs: int = -1,
        backend: str | None = None,
        *,
        supervised: bool = False,
        isolation: str | None = None,
        task_runs: int | None = None,
        progress: Progress = SILENT,
    ) -> None:
        if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
            raise InvalidSpec(f"n_jobs must be a whole number other than 0 (-1 for all processors), got {n_jobs!r}")
        self.backend = None if backend is None else pools.check_backend(backend)
        self.isolated = pools.isolates(isolation, backend, usual=supervised)
        if not FORKS and (supervised or self.isolated):
            raise MissingRequirement(NO_FORKS)
        self.n_jobs = 1 if not FORKS else max(1, (os.cpu_count() or 1) + 1 + n_jobs) if n_jobs < 0 else n_jobs
        self.supervised = supervised
        self.task_runs = None if task_runs is None else validate.whole("task_runs", task_runs, least=1)
        self.progress = progress
        self.recorder = Recorder()
        self.limit: Limit | None = None  # on the time of what runs here from now on
        self.workers = Workers(self.n_jobs, self.backend, silent=supervised)
        self._made: dict[int, tuple[Mechanism, Any]] = {}

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self.workers.close()

    def keep_in(self, store: ShardStore) -> None:
        """Stores every shard of the audit to come before it is counted, and takes up those that are stored already."""
        self.recorder = Recorder(store)

    def as_made(self, mechanism: Mechanism) -> Any:
        """The mechanism as it was before this engine first ran it, to be sent to other processes."""
        if id(mechanism) not in self._made:  # held, so that the id stays its own
            self._made[id(mechanism)] = mechanism, AsMade.of(mechanism)
        return self._made[id(mechanism)][1]

    def describe(
        self, mechanism: Mechanism, pairs: tuple[Any, ...], settle: Callable[..., Any] | None = None
    ) -> tuple[Description, tuple[AdjacentPair | SealedPair, ...]]:
        """A mechanism described, and its pairs, resolved where mechanisms may run; `settle` says the claim."""
        if not self.supervised:
            return tasks.describe(mechanism, pairs, settle, seal=False)
        ended = f"{mechanism.name}: the process ended twice while the module was imported; there is no verdict"
        return self._told(ended, tasks.describe_pickled, pickled((mechanism, pairs, settle)), tries=2)  # type: ignore[no-any-return]

    def made_of(self, mechanism: Mechanism) -> dict[str, str]:
        """What a mechanism is made of (`made`), looked at where it is described."""
        return self.words(tasks.parts_of, pickled(mechanism) if self.supervised else mechanism) | made_with()

    def words(self, ask: Callable[..., dict[str, str]], *given: Any) -> dict[str, str]:
        """What is answered where mechanisms are described."""
        ended = "the process ended after its modules were imported; there is no verdict"
        return dict(self._told(ended, ask, *given) if self.supervised else ask(*given))

    def _told(self, ended: str, function: Callable[..., Any], *task: Any, tries: int = 1) -> Any:
        return tried(self.workers.child.with_threads(1), function, task, self.until, ended, tries)

    @property
    def until(self) -> float:
        """When work of ours is ended, by `time.monotonic()`."""
        return math.inf if self.limit is None else self.limit.until

    def session(
        self, mechanism: Mechanism, pairs: tuple[AdjacentPair | SealedPair, ...], seed: int, run_timeout_s: float | None
    ) -> "Session":
        """What runs one mechanism on its pairs."""
        return Session(self, mechanism, pairs, seed, run_timeout_s)


class Session:
    """One mechanism, its pairs and a seed, on an engine."""

    def __init__(
        self,
        engine: Engine,
        mechanism: Mechanism,
        pairs: tuple[AdjacentPair | SealedPair, ...],
        seed: int,
        run_timeout_s: float | None,
    ) -> None:
        self.engine = engine
        self._contents = (mechanism, pairs)
        self._sent = (engine.as_made(mechanism), pairs)  # what runs here leave in it must not travel
        self._payload: bytes | None = None
        self._shown: alike.Shown = ()
        self.job = Job(uuid.uuid4().hex, seed, run_timeout_s)
        self.per_run, self._here = True, False
        self.pool_names: dict[str, None] = {}  # in their order
        self._identity: tuple[Any, ...] = ()
        self._lost = 0  # workers that died while they ran shards
        self._makers: set[tuple[int, int]] = set()  # driver and its lost workers, of the runs that search and certify
        self.run_s = 0.0
        self._check_s = 0.0  # what it takes after a task to see that the datasets are as they were
        self.worked_s = 0.0  # CPU seconds of workers outside this process, fresh ones apart
        self.opening_s = 0.0  # seconds until processes gave their first answers, above what those took
        self.least = 0  # runs of a shard that the start of its calls is worth
        self.asked_for = self.made = 0  # runs of all stages after the probe, also of those that broke; that came back
        self.certifying = False  # runs on a frozen event have been asked for
        tasks.LOCAL[self.job.key] = self._contents

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        tasks.LOCAL.pop(self.job.key, None)

    @contextmanager
    def stage(self, name: str, runs: int) -> Iterator[None]:
        """Says that a stage of so many runs begins, and that it is over."""
        self.engine.progress.begin(name, runs)
        yield
        self.engine.progress.end()

    def begin_alone(self, seed: int) -> None:
        """From here on a batched mechanism gets a call for each run, with the streams of this seed."""
        self.job = replace(self.job, alone=True, seed=seed)

    def probe(self, runs: int) -> Probe:
        """Runs a small shard of each pair twice: its speed, and whether it repeats itself.

        A batched call that fails sends the whole audit into single-run calls; nothing drawn before is kept.
        """
        pairs = len(self._contents[1])
        each = max(FEWEST_PROBED, runs // (2 * pairs))
        task = tuple(Shard(Stage.PROBE, pair, 0, each) for pair in range(pairs))
        try:
            first, second = self._looks(task, self._asked(None))
        except BatchFailed:
            if self.job.alone:
                raise
            self.job = replace(self.job, alone=True)
            return self.probe(min(runs, 16 * pairs))
        except InvalidSpec:
            if self.engine.supervised or self.engine.isolated or not self._sendable:
                raise
            self._here = True  # it cannot be opened elsewhere
            return self.probe(runs)
        self.run_s = min(first.seconds, second.seconds) / (pairs * each)
        self._check_s = min(first.check_s, second.check_s)
        same = all(identical(one, two) for (_, one), (_, two) in zip(first.results, second.results, strict=True))
        return Probe(self.run_s, 2 * pairs * each, same, self.job.alone, tuple(pilot for _, pilot in first.results))

    @property
    def one_process(self) -> bool:
        """Whether all runs that searched and certified were made in one process, the fresh ones apart."""
        return len(self._makers) <= 1 and all(name in pools.IN_ONE_PROCESS for name in self.pool_names)

    def counts(self, work: list[Shard], reducer: Reducer) -> Integers:
        """The reduced outputs of all shards, added up."""
        return sum(found for _, found in self._run(work, reducer))  # type: ignore[no-any-return]

    def shard_counts(self, work: list[Shard], reducer: Reducer) -> dict[Shard, Integers]:
        """The reduced outputs of each shard, in the order of the grid; where time runs out, of those that are done."""
        found: dict[Shard, Integers] = {}
        with suppress(OutOfTime):
            found.update(self._run(work, reducer))
        return {shard: found[shard] for shard in work if shard in found}

    def pilot(self, work: list[Shard]) -> Pilot:
        """The outputs of all shards, in the order of the grid; where time runs out, of those that are done, if any."""
        found: dict[Shard, Pilot] = {}
        try:
            found.update(self._run(work, None))
        except OutOfTime:
            if not found:
                raise
        return Pilot.joined([found[shard] for shard in work if shard in found])

    def grid(
        self, stage: Stage, pair: int, runs: int, shard_runs: int, *, start: int = 0, done: int = 0
    ) -> list[Shard]:
        """The shards of so many runs, after `done` of their kind: small first where a limit may cut them."""
        if self.engine.limit is None:
            return shards(stage, pair, runs, shard_runs, start=start)
        return graded(stage, pair, runs, shard_runs, start=start, done=done, least=self.least)

    def decided(self, choose: Callable[[], int]) -> int:
        """What `choose` gives now, or gave when this audit was first driven here."""
        return decided(self._asked("decided"), choose)

    def thinking(self, think: Callable[..., Thought], *given: Any, **options: Any) -> Thought:
        """What `think` makes of outputs, in this process, by the rules of `limit.thought`."""
        if self.engine.limit is None or not self.engine.limit.outside:
            return think(*given, **options)
        return thought(self._asked("thinking"), self.engine.until, partial(think, *given, **options))

    def fresh(self, work: list[FreshTask]) -> list[Outputs]:
        """The outputs of each task, made in a process of its own that has run nothing before."""
        asked, engine = self._asked([task.sides for task in work]), self.engine
        late = None if engine.limit is None else self._asked("late")
        held = asked.held(task.shard for task in work)
        if len(held) == len(work):
            return [held[task.shard].result for task in work]
        job = self._sent_job()
        made = (run_fresh(job, work, engine.progress, engine.n_jobs, engine.until) for _ in range(1))
        found = next(made if engine.limit is None or late is None else in_time(engine.limit, late, made, 1))
        asked.keep((task.shard, KeptShard(made, driver=asked.driver)) for task, made in zip(work, found, strict=True))
        return found

    def keeps(self, first: list[FreshTask], others: list[FreshTask]) -> bool:
        """Whether processes hold different values when opened, or after equal runs; `others` where runs change some."""
        job, engine = self._sent_job(), self.engine

        def differ() -> int:
            made: list[dict[str, str]] = []
            for work in (first, others):
                made += run_fresh(job, work, engine.progress, engine.n_jobs, engine.until, left_alone)
                if all(each["left"] == each["opened"] for each in made):
                    break
            return int(len({repr(each) for each in made}) > 1)

        return bool(self.decided(differ))

    # --- running --------------------------------------------------------------------------------------------

    def _run(self, work: list[Shard], reducer: Reducer | None) -> Any:
        """Yields (shard, result) as they come; a lost worker's shards are run once more, then there is no verdict."""
        asked, limit = self._asked(reducer), self.engine.limit
        late = asked if limit is None else self._asked("late")
        self.asked_for += sum(shard.runs for shard in work)
        held = asked.held(work)
        parts = Pieces((shard, kept.result) for shard, kept in held.items() if isinstance(kept.result, Piece))
        for shard, kept in held.items():
            if shard.stage is not Stage.PROBE:  # as fast as its runs were, made where they were made
                self._makers.add((kept.driver, kept.lost))
            self.run_s, self.pool_names[kept.pool] = kept.seconds / max(1, kept.runs), None
            self.engine.progress.advance(parts.end(shard, kept.result), stored=True)
            if shard not in parts:
                yield shard, kept.result
        remaining = [shard for shard in work if shard not in held or shard in parts]
        for attempt in (1, 2) if remaining else ():
            runs, limited = sum(shard.runs for shard in remaining), self.job.run_timeout_s is not None
            alone, workers = self.per_run or self.engine.isolated, self.engine.workers
            pool = workers.pool(runs * self.run_s, self._home_pool, alone=alone, limited=limited)
            self.pool_names[pool.name] = None
            job = self._job_for(pool)
            size = self.engine.task_runs or workers.task_runs(runs, self.run_s, self._check_s, limit)
            speed = 0.0 if limit or not self.per_run or self.engine.task_runs else self.run_s, self._check_s
            calls = [(job, task, reducer, *part) for task, *part in parts.tasks(remaining, *speed, size)]
            finished: set[Shard] = set()
            try:
                results, began = pool.run(run_task, calls, self.engine.until), time.monotonic()
                for done in results if limit is None else in_time(limit, late, results, len(calls)):
                    if limit is not None and limit.outside and not finished:
                        self.opening_s += max(0.0, time.monotonic() - began - done.seconds)
                    made = parts.made(tasks.checked(done, job).results)
                    asked.keep(kept_of(done, pool.name, asked.driver, self._lost, made))
                    if work[0].stage is not Stage.PROBE:
                        self._makers.add((asked.driver, self._lost))
                    self._learn(done, made, outside=job.payload is not None)
                    self.engine.progress.advance(made)
                    for shard, found in done.results:
                        if isinstance(found, Piece):
                            parts[shard] = found
                            calls.insert(0, (job, (shard,), reducer, parts.next(shard, self.run_s, self._check_s)))
                        else:
                            finished.add(shard)
                            yield shard, found
                return
            except OutOfTime:
                self._lost += 1
                raise
            except LostWorker:
                self._lost += 1
                remaining = [shard for shard in remaining if shard not in finished]
                if attempt == 2:
                    shard = remaining[0]
                    raise UnsoundAudit(
                        f"a worker died twice on the same runs ({shard.stage.name.lower()}, shard {shard.index}): "
                        "the mechanism ended its process, hung past run_timeout_s or ran out of memory; no verdict"
                    ) from None

    def _asked(self, question: Any) -> Asked:
        """The next call of the audit: what this session asks, and the question that it puts to the outputs."""
        recorder = self.engine.recorder
        if recorder.store is not None and not self._identity:
            self._identity = identity(*self._contents)
        return recorder.asked(self._identity, self.job.seed, self.job.run_timeout_s, self.job.alone, question)

    def _looks(self, task: tuple[Shard, ...], asked: Asked) -> list[Done]:
        """Two looks of a probe, stored together: from two processes they would not show what a process keeps."""
        held = [asked.held(task, look=look) for look in (0, 1)]
        failures = [kept.result.message for kept in held[0].values() if isinstance(kept.result, BatchFailure)]
        if failures:
            raise BatchFailed(failures[0])
        if all(len(each) == len(task) for each in held):
            return [Done(tuple((part, each[part].result) for part in task), each[task[0]].seconds) for each in held]
        try:
            found, runs = [], sum(shard.runs for shard in task)
            ended = (
                "the worker process died twice during the first runs: the mechanism ended its process, "
                "hung past run_timeout_s or ran out of memory; no verdict"
            )
            for _ in (0, 1):
                pool = self._home_pool(1)  # where the mechanism lives when nothing is parallel
                done = tried(pool, run_task, (self._job_for(pool), task, None), self.engine.until, ended, tries=2)
                found.append(tasks.checked(done, self.job))
                self.engine.progress.speed(found[-1].seconds / runs, runs)
                self.engine.progress.advance(runs)
        except BatchFailed as error:
            asked.keep([(task[0], KeptShard(BatchFailure(str(error)), driver=asked.driver))])
            raise
        if asked.store is not None:
            asked.store.loaded(self.engine.words(tasks.late_sources))
        asked.keep(*(kept_of(each, "", asked.driver) for each in found))
        return found

    def _home_pool(self, threads: int) -> Pool:
        outside = self.engine.supervised or self.engine.isolated or self._sendable
        return self.engine.workers.home(threads, outside=outside, limited=self.job.run_timeout_s is not None)

    def _job_for(self, pool: Pool) -> Job:
        if isinstance(pool, InProcess | Processes):
            return self.job if isinstance(pool, InProcess) else self._sent_job()
        self._shown = self._shown or alike.shown(self.engine.made_of(self._contents[0]))
        return replace(self._sent_job(), shown=self._shown)

    @property
    def _sendable(self) -> bool:
        """Whether a limit wants runs made where they can be ended, and the mechanism can be sent there."""
        if not FORKS or self._here or self.engine.limit is None or not self.engine.limit.outside:
            return False
        try:
            self._sent_job()
        except InvalidSpec:
            self._here = True
        return not self._here

    def _sent_job(self) -> Job:
        """The job as it travels, with its mechanism: pickled once."""
        if self._payload is None:
            self._payload = pickled(self._sent)
        return replace(self.job, payload=self._payload, own_process=True, isolated=self.engine.isolated)

    def _learn(self, done: Done, runs: int, *, outside: bool) -> None:
        """The speed of the last task groups the next stage better; it never changes a shard."""
        self.worked_s += done.cpu_s if outside else 0.0
        self.made += runs
        if runs:
            self.run_s, self._check_s = done.seconds / runs, done.check_s
            self.engine.progress.speed(self.run_s, runs)
