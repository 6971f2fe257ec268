"""What more workers bring: audits beside plain joblib, both from a cold pool, and a model that says it for 16 and 64.

Plain joblib is `joblib.Parallel(n_jobs)` over chunks of the bare loop, or of raw calls of 8,192 runs, and counts
nothing. The model replays a timeline: an audit that was recorded with one task at a time, as cut for so many workers,
in CPU seconds, so that nothing waits for a core. Recording is from outside, through `Processes._ask`, which all goes
through that a process of ours is given, and what makes hosts and threads of it. On Linux only.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import astuple
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from benchmarks.timeline import BESIDE, DRIVER, FRESH, HERE, PROCESSES, START, THREADS, Replay, Segment, Timeline

CALL = 1 << 13  # runs of a raw batched call
CHUNKS = 4  # for each worker of plain joblib
BEYOND = (16, 64)  # workers that are predicted, whatever this machine has
KINDS = {  # runs, whether batched, the backend
    "per-run": (8_000_000, False, None),
    "batched, processes": (800_000_000, True, "loky"),
    "batched, threads": (800_000_000, True, "threading"),
}


# --- recording -------------------------------------------------------------------------------------------------------


class Recorder:
    """What this process asks of workers from now on; `alone`: of one at a time, and a timeline is made of it."""

    def __init__(self, *, alone: bool) -> None:
        from dpaudit.execution import ahead
        from dpaudit.processes.host import Host
        from dpaudit.processes.pipes import Request
        from dpaudit.processes.pools import InProcess, Processes

        self.alone, self.started = alone, list[Any]()
        self.busy: list[tuple[str, float, float]] = []  # where a task ran, from when to when
        self.segments: list[list[Any]] = []  # rows of `Timeline.recorded`
        self._call: object = None
        self.most, most = 0, dict[Any, int]()  # tasks at once: of the call, of every pool
        self.worked_s = self._own_s = self._here_s = 0.0  # of the last task; of looking at others; of tasks here
        self._last, self._beside = time.process_time(), False
        ask, make, begin, run = Processes._ask, Processes.__init__, Host.__init__, InProcess.run
        start, opened, all_beside = Processes.start, Processes.opened, ahead.Ahead._make

        def asking(
            pool: Any, function: Any, until: float, then: Any, failed: Any, mine: Any, unused: bool, *given: Any
        ) -> Any:
            def seen(done: Any) -> Any:
                self.worked_s = getattr(done, "cpu_s", 0.0)
                return then(done)

            where, self.most = FRESH if pool._kind == Request.RUN_FRESH else PROCESSES, most.get(pool, 0)
            where = BESIDE if self._beside and where == FRESH else where
            return self.task(where, failed, ask, pool, function, until, seen, failed, mine, unused, *given)

        def running(pool: Any, function: Any, tasks: Any, *given: Any) -> Any:  # until when, and what is made of each
            if pool.threads == 1 or len(tasks) == 1:
                self.most = 1
                yield from run(pool, partial(self.task, HERE, tasks, function), tasks, *given)
                return
            begun = time.monotonic()
            yield from self._by_turns(function, tasks, given[1]) if alone else run(pool, function, tasks, *given)
            self.busy.append((THREADS, begun, time.monotonic()))

        def one(pool: Any, workers: int = 1, **options: Any) -> None:
            most[pool] = workers
            make(pool, 1, **options)

        def beginning(host: Any, *given: Any, **options: Any) -> None:
            self.task(START, host, begin, host, *given, **options)

        def beside(made: Any, *given: Any) -> None:
            self._beside = True
            all_beside(made, *given)
            self._beside = False

        class AtOnce:  # in place of a thread
            def __init__(self, target: Any, args: Any, **_: Any) -> None:
                self.start, self.join = partial(target, *args), list

        hooks: list[tuple[Any, str, Any]] = [(InProcess, "run", running), (Processes, "_ask", asking)]
        hooks += [
            (Processes, "__init__", one),
            (Host, "__init__", beginning),
            (Processes, "start", lambda pool, hosts: start(pool, min(hosts, 1))),
            (Processes, "opened", lambda pool, job: opened(pool, job) and self._here_s > sum(self.started[2])),
            (ahead.Ahead, "_make", beside),
            (ahead, "threading", SimpleNamespace(Thread=AtOnce)),
        ] * alone
        for owner, name, hook in hooks:
            setattr(owner, name, hook)

    def task(self, where: str, call: object, work: Callable[..., Any], *given: Any, **options: Any) -> Any:
        """What the work returns: a task of this call."""
        before, start = self.begin(where, call), time.monotonic()
        done = work(*given, **options)
        self.busy.append((where, start, time.monotonic()))
        self.end(where, before)
        return done

    def end(self, where: str, before: float) -> None:
        """Takes down the task that `begin` began."""
        if not self.alone:
            return
        after, spent = self._below(), self._spent()
        self._here_s += spent * (where == HERE)
        self.segments[-1][2 if where == HERE else 1].append(spent)
        self.segments[-1][2] += [after - before] * (where in (PROCESSES, FRESH, BESIDE))
        if where == PROCESSES and not self.started:  # all that it does not take itself is the start of its worker
            known = sum(sum(each[2]) for each in self.segments[:-1] if each[0] in (FRESH, BESIDE))
            self.started = [each for each in self.segments if each[0] == START][-1]
            self.started[2], self.segments[-1][2] = [after - known - self.worked_s], [self.worked_s]
        if where == PROCESSES and self._beside:
            self.segments[-1][0] = BESIDE

    def timeline(self) -> Timeline:
        """All since the recorder was made."""
        self.begin(DRIVER, None)
        return Timeline.recorded(self.segments)

    def begin(self, where: str, call: object) -> float:
        """The driver's time until now is of this call, where that goes on; CPU seconds of all processes below."""
        if not self.alone:
            return 0.0
        spent = self._spent()
        if call is not self._call or call is None:
            self.segments += [[DRIVER, [spent], [], 0.0, 0], [where, [], [], 0.0, self.most]]
        else:
            self.segments[-1][1].append(spent)
        self._call = call
        return self._below()

    def _by_turns(self, function: Any, tasks: list[Any], then: Any) -> Iterator[Any]:
        """Tasks of threads: one alone and two at a time by turns, which shows for how much of one the GIL is held.

        A busy machine makes that more than it is.
        """
        self.begin(THREADS, tasks)
        sizes, walls = list[int](), {1: list[float](), 2: list[float]()}
        with ThreadPoolExecutor(2) as pool:
            while tasks:
                at_once = min(len(tasks), 1 + (len(walls[1]) > len(walls[2])))
                group = [tasks.pop(0) for _ in range(at_once)]
                sizes, start = [*sizes, *(sum(shard.runs for shard in task[1]) for task in group)], time.monotonic()
                done = list(pool.map(lambda task: function(*task), group))
                walls[at_once].append((time.monotonic() - start) / sum(sizes[-at_once:]))
                yield from map(then, done)
        spent, ratio = self._spent(), min(walls[2], default=0.0) / min(walls[1])
        serial = min(1.0, math.sqrt(max(0.0, 2.0 * ratio - 1.0)))  # as `shared` has it
        self.segments[-1] = [THREADS, [], [spent * size / sum(sizes) for size in sizes], serial, 0]

    def _spent(self) -> float:
        """CPU seconds of the driver since this was last asked, without those of looking at others."""
        before, self._last = self._last, time.process_time() - self._own_s
        return self._last - before

    def _below(self) -> float:
        start = time.thread_time()
        seconds = below(os.getpid())
        self._own_s += time.thread_time() - start
        return seconds


def below(process: int) -> float:
    """CPU seconds of all processes that this one has started and their own; those of ended ones to 10 ms."""
    seconds = 0.0
    for task in Path(f"/proc/{process}/task").iterdir():
        for child in (task / "children").read_text().split():
            with suppress(OSError):
                ended = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[13:15]
                seconds += sum(map(int, ended)) / os.sysconf("SC_CLK_TCK") + time.clock_gettime(~int(child) << 3 | 2)
                seconds += below(int(child))
    return seconds


# --- measuring, each in a process of its own -------------------------------------------------------------------------


def number(data: float, rng: Any) -> Any:
    """Half a microsecond of Python."""
    return data + rng.laplace()


def numbers(data: float, runs: int, rng: Any) -> Any:
    """The cheapest batched mechanism there is."""
    return data + rng.laplace(size=runs)


def bare(runs: int, is_batched: bool, seed: int) -> None:
    """A chunk of what plain joblib does."""
    import numpy as np

    rng = np.random.Generator(np.random.SFC64(seed))
    for _ in range(-(-runs // CALL) if is_batched else runs):
        numbers(10.0, CALL, rng) if is_batched else number(10.0, rng)


def audited(kind: str, workers: int, runs: int, recorded: bool) -> Any:
    """Seconds of an audit as a `Replay` has them, or its timeline."""
    from dpaudit import audit, batched

    (_, is_batched, backend), recorder = KINDS[kind], Recorder(alone=recorded)
    start, cpu = time.monotonic(), time.process_time()
    mechanism = batched(numbers) if is_batched else number
    audit(mechanism, pair=(10.0, 9.0), epsilon=1.0, runs=runs, n_jobs=workers, backend=backend)
    end, cpu = time.monotonic(), time.process_time() - cpu
    if recorded:
        return [astuple(each) for each in recorder.timeline().segments]
    idle, last = end - start, start
    for where, began, came in sorted(recorder.busy, key=lambda each: each[1]):
        if where != HERE or workers == 1:
            idle -= max(0.0, came - max(last, began))
            last = max(last, came)
    return end - start, cpu, idle


def plain(kind: str, workers: int, runs: int, recorded: bool) -> Any:
    """The same of plain joblib; its timeline is of a bare loop, and of chunks without any run."""
    from joblib import Parallel, delayed

    chunks, is_batched = CHUNKS * workers, KINDS[kind][1]
    start, cpu, under = time.monotonic(), time.process_time(), below(os.getpid())

    def spent(tasks: int, runs: int) -> float:
        Parallel(2 if recorded else workers)(delayed(bare)(runs, is_batched, seed) for seed in range(tasks))
        return time.process_time() - cpu

    if not recorded:
        driver = spent(chunks, runs // chunks)
        return time.monotonic() - start, driver, 0.0
    began, ready_s = spent(2, 0), (below(os.getpid()) - under) / 2
    each, cpu = (spent(100, 0) - began) / 100, time.process_time()
    bare(runs, is_batched, 0)
    cpu = time.process_time() - cpu
    pool = [Segment(START, began / 2, (ready_s,)), Segment(PROCESSES, each, (cpu / chunks,) * chunks)]
    return [astuple(each) for each in (pool if workers > 1 else [Segment(HERE, 0.0, (cpu,), 0.0, 1)])]


def cold(what: Callable[..., Any], kind: str, workers: int, runs: int, *, recorded: bool) -> Replay:
    """What a fresh process says of it; the replay of its timeline where that is recorded."""
    asked = "-m", "benchmarks.scale", what.__name__, kind, str(workers), str(runs), "recorded" * recorded
    found = json.loads(subprocess.run([sys.executable, *asked], stdout=subprocess.PIPE, check=True).stdout)
    return Timeline(tuple(Segment(*each) for each in found)).replay(workers) if recorded else Replay(*found)


def run(quick: bool) -> None:
    """Prints a table for each kind of audit; `quick` takes a tenth of the runs."""
    from benchmarks.tables import print_table

    cores = os.cpu_count() or 1
    here = sorted({cores, *(1 << power for power in range(cores.bit_length()))})
    for kind, (runs, *_) in KINDS.items():
        runs, rows = runs // 10 if quick else runs, []
        for workers in sorted({*here, *BEYOND}):
            row = [f"{workers}"] + [""] * 5 * (workers not in here)
            for recorded in (False, True) if workers in here else (True,):
                ours, theirs = (cold(each, kind, workers, runs, recorded=recorded) for each in (audited, plain))
                seconds = ours.wall_s, ours.driver_s, ours.idle_s, theirs.wall_s
                row += [*(f"{each:.2f}" for each in seconds), f"{theirs.wall_s / ours.wall_s:.2f}"]
            rows.append(row)
        names = ("wall, s", "driver's CPU", "no worker runs", "plain joblib, s", "part of it")
        header = ("workers", *names, *(f"model: {name}" for name in names))
        print_table(f"{kind}, {runs:,} runs; load {os.getloadavg()[0]:.1f} on {cores} cores", header, rows)


if __name__ == "__main__":
    _, call, kind, workers, runs, recorded = sys.argv
    print(json.dumps(globals()[call](kind, int(workers), int(runs), bool(recorded))))
