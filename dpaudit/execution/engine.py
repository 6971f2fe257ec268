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
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, TypeVar, cast

from dpaudit.base import validate
from dpaudit.base.arrays import Integers
from dpaudit.data.pair import AdjacentPair, SealedPair
from dpaudit.errors import InvalidSpec, MissingRequirement, OutOfTime, UnsoundAudit
from dpaudit.events import Event
from dpaudit.execution.ahead import Ahead
from dpaudit.execution.executor import Limit, Retry, TaskResult, Work, layered, thought
from dpaudit.execution.journal import (
    ELSEWHERE,
    LOADED,
    FrozenCall,
    Recorder,
    ShardCall,
    ShardStore,
    identity,
)
from dpaudit.mechanisms.protocol import Description, Mechanism
from dpaudit.outputs.canonical import Outputs, Pilot
from dpaudit.processes import pools, tasks
from dpaudit.processes.frames import BatchFailure, Done, KeptShard
from dpaudit.processes.host import NO_FORKS
from dpaudit.processes.pipes import FORKS
from dpaudit.processes.pools import AsMade, InProcess, LostWorker, Pool, Processes, pickled, tried
from dpaudit.processes.tasks import FreshTask, left_alone, run_alone, run_task
from dpaudit.processes.workers import Workers
from dpaudit.running import alike
from dpaudit.running.pieces import Piece
from dpaudit.running.program import made_with
from dpaudit.running.progress import SILENT, Progress
from dpaudit.running.streams import Shard, Stage, graded, shards
from dpaudit.running.watch import Reducer, Watch
from dpaudit.running.worker import BatchFailed, Job, Probe, identical, likeness

FRESH_CPU, ACCELERATED = "CPU of a fresh process", "an accelerator may be at work"  # notes
FEWEST_PROBED = 4  # runs of a pair in each of the two looks of a probe
OVER = "the mechanism ended its process, hung past run_timeout_s or ran out of memory"
ENDED = f"a worker died twice on the same runs ({{}}): {OVER}, of which fewer n_jobs need less; no verdict"
FRESH_ENDED = f"a fresh process ended twice before its runs were done: {OVER}; no verdict"
PROBE_ENDED = f"the worker process died twice during the first runs: {OVER}; no verdict"

Thought = TypeVar("Thought")
Elsewhere = dict[str, tuple[str, int, bool]]  # workers that are not ours: host, runs, whether their outputs are ours


class Engine:
    """Runs mechanisms on shards; a context manager, and one for many audits.

    `n_jobs` counts workers as joblib does (-1: all processors). `backend` is dask, ray, spark or a registered joblib
    backend, `scheduler` the address of a cluster, which is connected now. What is None is that of
    `joblib.parallel_config`, where the caller is in one, or of the environment; else there are all processors, and the
    choice is by the work: sequential under a second of it in all, processes of ours (by the name loky too) else;
    threads for batched mechanisms that draw noise of their own, cannot be sent, or may use an accelerator. `supervised`
    keeps every mechanism out of this process; `isolation` is that of `pools.isolates`, usual where supervised: no count
    changes.
    `task_runs` fixes the grouping.
    """

    def __init__(
        self,
        n_jobs: int | None = None,
        backend: str | None = None,
        scheduler: str | None = None,
        *,
        supervised: bool = False,
        isolation: str | None = None,
        task_runs: int | None = None,
        progress: Progress = SILENT,
    ) -> None:
        n_jobs, backend = pools.in_context(n_jobs, backend)
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
        self.workers = Workers(self.n_jobs, self.backend, scheduler, silent=supervised)
        self._made: dict[int, tuple[Mechanism, Any]] = {}

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: object) -> None:
        self.workers.close()

    def keep_in(self, store: ShardStore, *, first: int = 0, freezing: bool = False) -> None:
        """Stores every shard of the audit to come before it is counted, and takes up those that are stored already.

        Its calls are numbered from `first` on; `freezing`: those for certifying runs are put off, by `Frozen`.
        """
        self.recorder = Recorder(store, first=first, freezing=freezing)

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
        self.job = Job(uuid.uuid4().hex, seed, run_timeout_s, self._contents)
        self.per_run = True
        self.here = False  # it cannot be opened elsewhere
        self.pool_names: dict[str, None] = {}  # in their order
        self._identity: tuple[Any, ...] = ()
        self.lost = 0  # workers that died while they ran shards
        self._makers: set[tuple[int, int]] = set()  # driver and its lost workers, of the runs that search and certify
        self.run_s = 0.0
        self.check_s = 0.0  # what it takes after a task to see that the datasets are as they were
        self.worked_s = 0.0  # CPU seconds of workers outside this process, fresh ones apart
        self.opening_s = 0.0  # seconds until processes gave their first answers, above what those took
        self.least = 0  # runs of a shard that the start of its calls is worth
        self.asked_for = self.made = 0  # runs of all stages after the probe, also of those that broke; that came back
        self.certifying = False  # runs on a frozen event have been asked for
        self.reproducible = False  # equal streams gave equal outputs
        self.accelerated = False  # the process of the mechanism may have an accelerator at work
        self.sentinel = Shard(Stage.PROBE, 0, 0, 0), ""  # the first runs, and their likeness where they have one
        self.elsewhere: Elsewhere = dict(engine.recorder.decided(ELSEWHERE) or {})
        noted = engine.recorder.decided(FRESH_CPU)
        self.fresh_cpu_s = math.inf if noted is None else noted  # CPU seconds of the quickest fresh process
        self._ahead: Ahead | None = None

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        if self._ahead is not None:
            self._ahead.end()
        self.job = replace(self.job, contents=None)  # nothing runs any more

    @contextmanager
    def stage(self, name: str, runs: int) -> Iterator[None]:
        """Says that a stage of so many runs begins, and that it is over."""
        self.engine.progress.begin(name, runs)
        yield
        self.engine.progress.end()

    def begin_alone(self, seed: int) -> None:
        """From here on a batched mechanism gets a call for each run, with the streams of this seed."""
        if self._ahead is not None:
            self._ahead.leave()
        self.job = replace(self.job, alone=True, seed=seed)

    def probe(self, runs: int) -> Probe:
        """Runs a small shard of each pair twice: its speed, and whether it repeats itself.

        A batched call that fails sends the whole audit into single-run calls; nothing drawn before is kept.
        """
        pairs = len(self._contents[1])
        each = max(FEWEST_PROBED, runs // (2 * pairs))
        task = tuple(Shard(Stage.PROBE, pair, 0, each) for pair in range(pairs))
        try:
            first, second = self._looks(task, self.call(None))
        except BatchFailed:
            if self.job.alone:
                raise
            self.job = replace(self.job, alone=True)
            return self.probe(min(runs, 16 * pairs))
        except InvalidSpec:
            if self.engine.supervised or self.engine.isolated or not self._sendable:
                raise
            self.here = True
            return self.probe(runs)
        self.run_s = min(first.seconds, second.seconds) / (pairs * each)
        self.check_s = min(first.check_s, second.check_s)
        same = all(identical(one, two) for (_, one), (_, two) in zip(first.results, second.results, strict=True))
        self.reproducible, self.accelerated = same, first.accelerated or second.accelerated
        self.sentinel = task[0], likeness(first.results[0][1]) if same else ""
        pilots = tuple(pilot for _, pilot in first.results)
        return Probe(self.run_s, 2 * pairs * each, same, self.job.alone, pilots, self.accelerated)

    @property
    def one_process(self) -> bool:
        """Whether all runs that searched and certified were made in one process, the fresh ones apart."""
        return len(self._makers) <= 1 and all(name in pools.IN_ONE_PROCESS for name in self.pool_names)

    @property
    def strangers(self) -> list[str]:
        """The workers elsewhere whose first runs had other outputs than here."""
        return [worker for worker, (_, _, same) in self.elsewhere.items() if not same]

    @property
    def hosts(self) -> list[dict[str, Any]]:
        """The machines of workers that are not ours: how many each has, and the runs that they made."""
        hosts: dict[str, list[int]] = {}
        for host, runs, _ in self.elsewhere.values():
            hosts.setdefault(host, []).append(runs)
        return [{"host": host, "workers": len(runs), "runs": sum(runs)} for host, runs in sorted(hosts.items())]

    def counts(self, work: list[Shard], reducer: Reducer) -> Integers:
        """The reduced outputs of all shards, added up."""
        return sum(counts for _, counts in self._run(work, reducer))  # type: ignore[no-any-return]

    def shard_counts(self, work: list[Shard], reducer: Reducer) -> dict[Shard, Integers]:
        """The reduced outputs of each shard, in the order of the grid; where time runs out, of those that are done."""
        counts: dict[Shard, Integers] = {}
        late = False
        try:
            counts.update(self._run(work, reducer))
        except OutOfTime:
            late = True
        asked, came = (sum(shard.runs for shard in shards) for shards in (work, counts))
        if asked != came and not late:
            raise UnsoundAudit(f"{asked} runs were asked for and {came} came back; no verdict")
        return {shard: counts[shard] for shard in work if shard in counts}

    def pilot(self, work: list[Shard]) -> Pilot:
        """The outputs of all shards, in the order of the grid; where time runs out, of those that are done, if any."""
        pilots: dict[Shard, Pilot] = {}
        try:
            pilots.update(self._run(work, None))
        except OutOfTime:
            if not pilots:
                raise
        return Pilot.joined([pilots[shard] for shard in work if shard in pilots])

    def grid(
        self, stage: Stage, pair: int, runs: int, shard_runs: int, *, start: int = 0, done: int = 0
    ) -> list[Shard]:
        """The shards of so many runs, after `done` of their kind: small first where a limit may cut them."""
        if self.engine.limit is None:
            return shards(stage, pair, runs, shard_runs, start=start)
        return graded(stage, pair, runs, shard_runs, start=start, done=done, least=self.least)

    def decided(self, name: str, choose: Callable[[], int]) -> int:
        """What `choose` gives now, or gave when this audit was first driven here; under this name."""
        return self.engine.recorder.decide(name, choose)

    def thinking(self, think: Callable[..., Thought], *given: Any, **options: Any) -> Thought:
        """What `think` makes of outputs, in this process, by the rules of `executor.thought`."""
        if self.engine.limit is None or not self.engine.limit.outside:
            return think(*given, **options)
        return thought(self.engine.recorder, self.engine.until, partial(think, *given, **options))

    def start_workers(self, work_s: float) -> None:
        """Starts the processes that so many seconds of work will want, where its runs are to be made in some."""
        if self.engine.backend is not None or self.apart():
            self.engine.workers.start(work_s)

    def begin_fresh(self, work: list[FreshTask], probed: int, fitting: Callable[[float], int]) -> None:
        """Begins fresh processes that will be asked for, beside what is to come; nothing where they cannot be had now.

        First `probed` of them, then as many as `fitting` says, given the CPU seconds of the quickest. Where none will
        be asked for, the workers that were started open the mechanism.
        """
        work = work or [FreshTask(Shard(Stage.FRESH, 0, k, 0), ()) for k in range(self.engine.workers.unused)]
        if work and FORKS and self.engine.n_jobs > 1:
            with suppress(InvalidSpec):  # which is told to whoever asks for them
                self._ahead = Ahead(self.engine.workers, self.sent_job(), work, self.engine.until, probed, fitting)

    def begun_fresh(self, work: list[Shard]) -> dict[Shard, Done]:
        """What has come of them; where they are others than this work, they are let go."""
        if self._ahead is not None and self._ahead.shards.isdisjoint(work):
            self._ahead.leave()
        return {} if self._ahead is None or self._ahead.over else self._ahead.made()

    def fresh(self, work: list[FreshTask]) -> list[Outputs]:
        """The outputs of each task, made in a process of its own that has run nothing before."""
        call = self.call([task.sides for task in work])
        outputs: dict[Shard, Outputs] = {}
        body = FreshProcesses(self, work, run_alone)
        for result in layered(body, call, self.engine.limit, self.engine.progress, FRESH_ENDED).run(body.work):
            outputs.update(result.results)
        return [outputs[task.shard] for task in work]

    def keeps(self, first: list[FreshTask], others: list[FreshTask]) -> bool:
        """Whether processes hold different values when opened, or after equal runs; `others` where runs change some."""

        def differ() -> int:
            states: list[dict[str, str]] = []
            for work in (first, others):
                body = FreshProcesses(self, work, left_alone)
                states += [state for result in Retry(body, FRESH_ENDED).run(body.work) for _, state in result.results]
                if all(each["left"] == each["opened"] for each in states):
                    break
            return int(len({repr(each) for each in states}) > 1)

        return bool(self.decided("what processes keep", differ))

    # --- running --------------------------------------------------------------------------------------------

    def _run(self, work: list[Shard], reducer: Reducer | None) -> Iterator[tuple[Shard, Any]]:
        """Yields (shard, result) as they come; a lost worker's shards are run once more, then there is no verdict."""
        call, job, recorder = self.call(reducer), self.job, self.engine.recorder
        if recorder.freezing and work[0].stage is Stage.CERTIFY:
            (first, like), watch = self.sentinel, cast(Watch, reducer)
            how = job.seed, job.alone, first.runs, like, work[0].pair, sum(shard.runs for shard in work), work[0].runs
            events = [cast(Event, each).to_dict() for each in (watch.main, *watch.extra)]
            recorder.freeze(FrozenCall(call.number, call.question, *how, events))
        self.asked_for += sum(shard.runs for shard in work)
        ended = self.engine.workers.ended or ENDED
        executor = layered(ShardTasks(self), call, self.engine.limit, self.engine.progress, ended)
        for result in executor.run(Work(list(work), reducer)):
            if result.results[0][0].stage is not Stage.PROBE:
                self._makers.add((result.driver, result.lost))
            if result.stored:  # as fast as its runs were, made where they were made
                self.run_s, self.pool_names[result.pool] = result.seconds / max(1, result.runs), None
            for shard, value in result.results:
                if not isinstance(value, Piece):
                    yield shard, value

    def call(self, question: Any) -> ShardCall:
        """The next call of the audit: what this session asks, and the question that it puts to the outputs."""
        recorder = self.engine.recorder
        if recorder.store is not None and not self._identity:
            self._identity = identity(*self._contents)
        return recorder.call(self._identity, self.job.seed, self.job.run_timeout_s, self.job.alone, question)

    def _looks(self, task: tuple[Shard, ...], call: ShardCall) -> list[Done]:
        """Two looks of a probe, stored together: from two processes they would not show what a process keeps."""
        stored = [call.stored(task, look=look) for look in (0, 1)]
        failures = [entry.result.message for entry in stored[0].values() if isinstance(entry.result, BatchFailure)]
        if failures:
            raise BatchFailed(failures[0])
        if all(len(each) == len(task) for each in stored):
            accelerated = call.recorder.decided(ACCELERATED) == 1
            return [
                Done(tuple((part, each[part].result) for part in task), each[task[0]].seconds, accelerated=accelerated)
                for each in stored
            ]
        try:
            looks, runs = [], sum(shard.runs for shard in task)
            for _ in (0, 1):
                pool = self.home_pool(1)  # where the mechanism lives when nothing is parallel
                done = tried(pool, run_task, (self.job_for(pool), task, None), self.engine.until, PROBE_ENDED, tries=2)
                looks.append(tasks.checked(done, self.job))
                self.engine.progress.advance(runs, looks[-1].seconds)
        except BatchFailed as error:
            call.keep([(task[0], KeptShard(BatchFailure(str(error)), driver=call.driver))])
            raise
        if call.recorder.store is not None:
            call.recorder.note(LOADED, self.engine.words(tasks.late_sources))
        if any(each.accelerated for each in looks):
            call.recorder.note(ACCELERATED, 1)
        call.keep(*(TaskResult(each.results, runs, each.seconds, driver=call.driver).kept() for each in looks))
        return looks

    def home_pool(self, threads: int) -> Pool:
        outside = self.engine.supervised or self.engine.isolated or self._sendable
        return self.engine.workers.home(threads, outside=outside, limited=self.job.run_timeout_s is not None)

    def job_for(self, pool: Pool) -> Job:
        if isinstance(pool, InProcess | Processes):
            return self.job if isinstance(pool, InProcess) else self.sent_job()
        self._shown = self._shown or alike.shown(self.engine.made_of(self._contents[0]))
        return replace(self.sent_job(), shown=self._shown, sentinel=self.sentinel[0] if self.sentinel[1] else None)

    @property
    def _sendable(self) -> bool:
        """Whether a limit wants runs made where they can be ended, and the mechanism can be sent there."""
        return self.engine.limit is not None and self.engine.limit.outside and self._travels

    def apart(self) -> bool:
        """Whether runs are made in several processes; of batches where these copy no noise, and no accelerator."""
        return self.must_be_apart or (self.reproducible and not self.accelerated and self._travels)

    @property
    def must_be_apart(self) -> bool:
        """Whether these are the only way: one run at a time in each, counted elsewhere, or with an alarm."""
        return self.per_run or self.engine.isolated or self.job.run_timeout_s is not None

    @property
    def _travels(self) -> bool:
        """Whether the mechanism can be sent to other processes, as far as is known."""
        if not FORKS or self.here:
            return False
        try:
            self.sent_job()
        except InvalidSpec:
            self.here = True
        return not self.here

    def sent_job(self) -> Job:
        """The job as it travels, with its mechanism: pickled once."""
        if self._payload is None:
            self._payload = pickled(self._sent)
        return replace(self.job, contents=self._payload, own_process=True, isolated=self.engine.isolated)

    def learn(self, done: Done, runs: int, *, outside: bool) -> None:
        """The speed of the last task groups the next stage better; it never changes a shard."""
        self.worked_s += done.cpu_s if outside else 0.0
        self.made += runs
        if done.place is not None:
            host, worker, like = done.place
            before, same = self.elsewhere.get(worker, (host, 0, True))[1:]
            self.elsewhere[worker] = host, before + runs, same and like in ("", self.sentinel[1])
            if not before or same != self.elsewhere[worker][2]:  # before its counts are stored
                self.engine.recorder.note(ELSEWHERE, self.elsewhere)
        if runs:
            self.run_s, self.check_s = done.seconds / runs, done.check_s


@dataclass(frozen=True, slots=True)
class ShardTasks:
    """Shards on the workers that fit the work, in tasks of some shards, or of a part of a slow one."""

    session: Session

    def run(self, work: Work) -> Iterator[TaskResult]:
        session, engine = self.session, self.session.engine
        work_s = sum(shard.runs for shard in work.shards) * session.run_s
        where = partial(engine.workers.pool, work_s, session.home_pool, job=session.job, apart=session.apart)
        pool, came = where(), False
        try:
            for result in self._on(pool, work):
                came = True
                yield result
        except InvalidSpec:
            if came or session.must_be_apart or engine.backend is not None or pool.name != "processes":
                raise
            session.here = True  # it can be sent, and not be opened
            del session.pool_names[pool.name]
            yield from self._on(where(), work)

    def _on(self, pool: Pool, work: Work) -> Iterator[TaskResult]:
        session, engine = self.session, self.session.engine
        runs, limit = sum(shard.runs for shard in work.shards), engine.limit
        session.pool_names[pool.name] = None
        job = session.job_for(pool)
        size = engine.task_runs or engine.workers.task_runs(
            runs, session.run_s, session.check_s, limit, shared=pool.name != "sequential"
        )
        speed = 0.0 if limit or not session.per_run or engine.task_runs else session.run_s, session.check_s
        calls = [(job, task, work.reducer, *part) for task, *part in work.parts.tasks(work.shards, *speed, size)]

        def then(done: Done) -> tuple[Done, TaskResult]:
            """The result of a task; the next part of a slow shard is there before a worker asks for another task."""
            fresh_runs = work.parts.made(done.results)
            result = TaskResult(done.results, fresh_runs, done.seconds, pool.name, engine.recorder.driver, session.lost)
            for shard, piece in done.results:
                if isinstance(piece, Piece):
                    work.parts[shard] = piece
                    calls.insert(0, (job, (shard,), work.reducer, work.parts.next(shard, *speed)))
            return done, result

        began, opening = time.monotonic(), limit is not None and limit.outside
        try:
            for done, result in pool.run(run_task, calls, engine.until, then):
                tasks.checked(done, job)
                if opening:
                    session.opening_s += max(0.0, time.monotonic() - began - done.seconds)
                opening = opening and not result.whole
                session.learn(done, result.runs, outside=isinstance(job.contents, bytes))
                yield result
        except (OutOfTime, LostWorker):
            session.lost += 1
            raise


class FreshProcesses:
    """Tasks of fresh runs, each in a process of its own."""

    def __init__(self, session: Session, tasks: list[FreshTask], run: Callable[[Job, FreshTask], Any]) -> None:
        self._session, self._tasks, self._run = session, {task.shard: task for task in tasks}, run

    @property
    def work(self) -> Work:
        """All of them."""
        return Work(list(self._tasks))

    def run(self, work: Work) -> Iterator[TaskResult]:
        session, engine = self._session, self._session.engine
        begun = session.begun_fresh(work.shards) if self._run is run_alone else {}
        there = [shard for shard in work.shards if shard in begun]
        left = [self._tasks[shard] for shard in work.shards if shard not in begun]
        made = engine.workers.fresh(session.sent_job(), left, engine.until, self._run) if left else ()
        for task, result in chain(((self._tasks[shard], begun.pop(shard)) for shard in there), made):
            if isinstance(result, Done):
                if result.cpu_s < session.fresh_cpu_s:
                    session.fresh_cpu_s = result.cpu_s  # noted before its outputs are: who takes up these needs it
                    engine.recorder.note(FRESH_CPU, result.cpu_s)
                ((_, result),) = result.results
            yield TaskResult(((task.shard, result),), len(task.sides), driver=engine.recorder.driver)
