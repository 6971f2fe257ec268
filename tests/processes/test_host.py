"""Hosts and their processes: what a mechanism sends is data, what it leaves behind holds nobody up, none escapes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from dpaudit import AdjacentPair, UnsoundAudit, batched, command
from dpaudit.base.files import write_text
from dpaudit.errors import OutOfTime
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import wrap
from dpaudit.outputs.encode import encode_objects
from dpaudit.processes import tasks
from dpaudit.processes.frames import ProtocolError, answered
from dpaudit.processes.host import CHANGING, MARK, Host, Lost, new_mark
from dpaudit.processes.pipes import TICK_S, Request, roused, stat
from dpaudit.processes.pools import LostWorker, Processes, _fits
from dpaudit.processes.serving import ASLEEP_S, _waking
from dpaudit.processes.tasks import Done, FreshTask
from dpaudit.running import guard
from dpaudit.running.streams import Shard, Stage, shards
from dpaudit.running.worker import Job
from tests.cases import for_each
from tests.processes import left

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="uses /proc")]

WORK = shards(Stage.SEARCH, 0, 4, 4)
FRESH = [FreshTask(Shard(Stage.FRESH, 0, 0, 1), (False,))]


def made(mechanism: Any, folder: Path, backend: str | None = None, limit_s: float | None = None, **way: Any) -> Any:
    """Four runs in a process of the pool; or one in a fresh one, which is a backend of its own here."""
    fresh = backend == "fresh"
    pairs = (AdjacentPair([str(folder), 0], [str(folder), 1]),)
    with (
        Engine(1, None if fresh else backend, supervised=True, task_runs=4, **way) as engine,
        engine.session(wrap(mechanism), pairs, 5, limit_s) as session,
    ):
        return session.fresh(FRESH) if fresh else session.pilot(WORK)


NO_VERDICT: list[tuple[Any, dict[str, Any], str]] = [
    (left.forges, {"backend": "loky"}, "twice"),
    (left.forges, {"backend": "fresh"}, "twice"),
    (left.answers_nobody, {}, "twice"),
    (left.ends_host, {}, "twice"),
    (left.hangs_deaf, {"limit_s": 0.05}, "hung past run_timeout_s"),
    (left.another_kind, {"isolation": "none"}, "changed the code that runs it"),
    (left.another_kind, {"isolation": "process"}, "changed the code that runs it"),
    (left.another_shard, {"isolation": "none"}, "twice"),  # and the process that gave it is not asked again
]
GOES_ON: list[tuple[Any, dict[str, Any]]] = [
    (left.forges_in_a_fork, {"backend": "loky"}),  # a fork has no line to write to
    (left.forges_in_a_fork, {"backend": "fresh"}),
    (left.another_shard, {"isolation": "process"}),  # where the host counts, it is asked no such question
    (left.stops, {}),
]


@for_each("mechanism, way, error", [*NO_VERDICT, *((*each, "") for each in GOES_ON)])
def test_what_escapes_or_answers_for_another_is_no_verdict(
    tmp_path: Path, mechanism: Any, way: dict[str, Any], error: str
) -> None:
    """From time limits, sessions, pipes and hosts. What it writes runs nothing, and what outlives its host is ended."""
    folder = tmp_path / mechanism.__name__
    folder.mkdir(exist_ok=True)
    if error:
        with pytest.raises(UnsoundAudit, match=error):
            made(mechanism, folder, **way)
    else:
        found = made(mechanism, folder, **way)
        assert way.get("backend") == "fresh" or found.sizes == (4,)
    processes = [int(each.name) for each in folder.iterdir()]
    assert len(processes) == (4 if mechanism is left.ends_host else 0)
    assert left.gone(*processes)


@pytest.mark.parametrize("way", ["loky", "fresh"])
def test_what_is_left_behind_holds_nobody_up(tmp_path: Path, way: str) -> None:
    """A thread, a fork and a daemon of another session go with their process."""
    code = script("test_host.made(left.holds, Path(sys.argv[1]), sys.argv[2]); print('done')")
    assert left.said(code, str(tmp_path), way) == (0, "done\n")
    daemons = [int(daemon.name) for daemon in tmp_path.iterdir()]
    assert daemons
    assert left.gone(*daemons)


def script(line: str) -> str:
    return f"import sys; from pathlib import Path; from tests.processes import left, test_host\n{line}"


def test_a_driver_that_is_killed_leaves_neither_process_nor_file(tmp_path: Path) -> None:
    """Its datasets are larger than a pipe, and the mechanism is running when it is killed."""
    (away := tmp_path / "tmp").mkdir()
    code = script("test_host.end_large(Path(sys.argv[1]))")
    assert left.said(code, str(tmp_path), TMPDIR=str(away)) == (-signal.SIGKILL, "")
    assert left.gone(*map(int, (tmp_path / "process").read_text().split()))
    assert list(away.iterdir()) == []


def end_large(folder: Path) -> None:
    (folder / "driver").write_text(str(os.getpid()))
    pair = AdjacentPair([str(folder), b"x" * 2**20], [str(folder), b"y" * 2**20])
    with Engine(1, "loky") as engine, engine.session(wrap(left.end_driver), (pair,), 5, None) as session:
        session.pilot(WORK)


def test_a_program_that_runs_ends_with_its_driver(tmp_path: Path) -> None:
    """With what it has started, although it has a group of its own and the process that started it is killed."""
    assert left.said(script("test_host.run_program(Path(sys.argv[1]) / 'ids')"), str(tmp_path)) == (-signal.SIGKILL, "")
    assert left.gone(*map(int, (tmp_path / "ids").read_text().split()))


def run_program(ids: Path) -> None:
    """Kills this process once the program is there."""

    def end() -> None:
        while not ids.exists() or ids.read_text().count("\n") < 2:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=end, daemon=True).start()
    program = command(["sh", "-c", 'sleep 600 & echo "$$\n$!" > "$0"; wait', str(ids)])
    with Engine(1, supervised=True) as engine, engine.session(program, (AdjacentPair(0, 1),), 5, None) as session:
        session.pilot(WORK)


def tells() -> dict[str, str]:
    """Who answers, where, and how often its process has: an answer that travels from one run to the next."""
    _RUNS.append(1)
    ids = {"process": str(os.getpid()), "host": str(os.getppid())}
    return {**ids, "folder": os.getcwd(), "runs": str(len(_RUNS)), "variable": os.environ.get(CHANGING, "")}


_RUNS: list[int] = []


def test_a_host_goes_on_to_the_next_audit_and_its_process_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> dict[str, str]:
        pool = Processes()
        (answer,) = pool.run(tells, [()])
        pool.close()
        assert left.gone(int(answer["process"]))
        return dict(answer)

    monkeypatch.setenv(CHANGING, "before")
    first = told()
    monkeypatch.setenv(CHANGING, "after")
    monkeypatch.chdir(tmp_path)
    second = told()
    monkeypatch.setenv("PYTHONHASHSEED", "7")  # which an interpreter reads at its start
    third = told()
    assert first["host"] == second["host"] != third["host"]
    assert first["process"] != second["process"]
    assert (second["folder"], second["variable"], second["runs"]) == (str(tmp_path), "after", "1")


def naps(seconds: float) -> dict[str, str]:
    time.sleep(seconds)
    return {}


def test_a_call_waits_for_the_processes_of_another_no_longer_than_it_has_time() -> None:
    pool, at_work = Processes(), threading.Event()

    def other() -> None:
        with contextlib.suppress(LostWorker):
            list(pool.run(naps, [(0.0,), (600.0,)], then=lambda done: at_work.set()))

    thread = threading.Thread(target=other)
    thread.start()
    assert at_work.wait(60.0)
    with pytest.raises(OutOfTime):
        list(pool.run(naps, [(0.0,)], until=time.monotonic() + 0.5))
    pool.end()  # what is at work, and no more
    thread.join(60.0)
    assert list(pool.run(naps, [(0.0,)])) == [{}]
    pool.close()
    assert not thread.is_alive()


def test_a_host_that_answers_while_its_pool_closes_is_not_kept() -> None:
    pool = Processes()
    assert list(pool.run(naps, [(0.0,)], then=lambda done: pool.close())) == [None]
    assert not pool._hosts


@pytest.mark.parametrize("made", [(), ((FRESH[0].shard, encode_objects([1.0, 2.0])),)])
def test_an_answer_of_a_fresh_process_is_its_one_run(made: Any) -> None:
    job = Job("key", 5, None)
    assert not _fits(tasks.run_alone, Done(made), (job, FRESH[0]))
    assert not _fits(tasks.run_alone, {"left": ""}, (job, FRESH[0]))
    assert not _fits(tasks.run_alone, Done(error=("InvalidSpec", "")), (job, FRESH[0]))
    assert _fits(tasks.run_alone, Done(((FRESH[0].shard, encode_objects([1.0])),)), (job, FRESH[0]))


@pytest.mark.parametrize(
    "odd",
    [
        "os.close(0); os.close(1); os.close(2)",
        "sys.path.append(pathlib.Path('/nowhere')); sys.path.append(None)",
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN); signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})",
    ],
)
def test_a_driver_may_be_in_an_odd_state(odd: str) -> None:
    """Streams that are closed, entries that imports look past, signals that what it starts inherits."""
    code = (
        f"import os, pathlib, signal, sys, time\n{odd}\n"
        "from dpaudit.processes import host; from dpaudit.processes.pools import Processes\n"
        "from tests.processes import test_host; host.PATIENCE_S = 60.0  # of which a busy machine needs no half\n"
        "pool = Processes(silent=False); [_] = pool.run(test_host.tells, [()])\n"
        "before = time.monotonic(); pool.close(); os._exit(7 if time.monotonic() < before + 30.0 else 8)"
    )
    assert left.said(code) == (7, "")


def test_a_host_that_does_not_answer_is_not_kept_waiting_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.processes.host.PATIENCE_S", 0.3)
    host = Host(silent=True, environment={})
    os.kill(host._process.pid, signal.SIGSTOP)
    assert not host.rests()
    host.close()


def test_a_clock_that_a_mechanism_changes_is_not_read() -> None:
    pairs = (AdjacentPair(0, 1),)
    with Engine(1, supervised=True) as engine, engine.session(wrap(left.no_clock), pairs, 5, None) as session:
        assert session.probe(16).run_s == session.run_s == 0.0


def test_a_parameter_that_json_does_not_know_is_told_as_it_prints() -> None:
    """In this process and in another: the audit goes on, and its result can be stored."""
    wrapped = batched(left.draws, table=np.arange(2), keys={("a", 1): 0}, plain=[1.5])
    for supervised in (False, True):
        with Engine(1, supervised=supervised) as engine:
            found, _ = engine.describe(wrapped, (AdjacentPair(0, 1),))
        assert found.parameters == {"table": "array([0, 1])", "keys": "{('a', 1): 0}", "plain": [1.5]}


def test_a_host_whose_driver_is_killed_at_once_ends(tmp_path: Path) -> None:
    """Before it has loaded anything, let alone been asked; its pipes are held open by another process."""
    code = (
        "import os, signal, time; from dpaudit.processes.host import CHANGING, Host\n"
        "host = Host(silent=True, environment={}); holder = os.fork()\n"
        "(os.close(1), time.sleep(600)) if holder == 0 else print(host._process.pid, holder, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    ended, out = left.said(code)
    host, holder = map(int, out.split())
    try:
        assert ended == -signal.SIGKILL
        assert left.gone(host)
    finally:
        os.kill(holder, signal.SIGKILL)


def test_a_process_whose_host_is_killed_ends() -> None:
    pool = Processes()
    (ids,) = pool.run(tells, [()])
    process, host = int(ids["process"]), int(ids["host"])
    os.kill(host, signal.SIGKILL)
    assert left.gone(process)
    with pytest.raises(LostWorker):
        list(pool.run(tells, [()]))
    pool.close()


def test_bytes_that_are_no_answer_are_refused() -> None:
    """Cut anywhere, or with any byte changed: refused, or read as another answer, and nothing else ever happens."""
    whole = tasks.respond(_done, [()], 1, {})
    (done,) = answered(whole)
    assert [(shard, counts.tolist()) for shard, counts in done.results] == [(WORK[0], [1, 2])]
    for end in range(len(whole)):
        with pytest.raises(ProtocolError):
            answered(whole[:end])
    for at in range(len(whole)):
        with contextlib.suppress(ProtocolError, UnsoundAudit):
            answered(whole[:at] + bytes([whole[at] ^ 0x15]) + whole[at + 1 :])


def _done() -> Done:
    return Done(((WORK[0], np.array([1, 2])),), 0.5, 0.25)


def test_an_error_comes_back_as_one_of_ours() -> None:
    """Whatever it calls itself: no name that it sends is looked up beyond our own errors."""
    for kind in ("SystemExit", "annotations", "__builtins__", ""):
        with pytest.raises(UnsoundAudit, match="told"):
            raise tasks.as_error(kind, "told")
    pool = Processes()
    with pytest.raises(UnsoundAudit, match=r"a worker failed \(SystemExit: 0\)"):
        list(pool.run(raise_exit, [()]))
    pool.close()


def raise_exit() -> None:
    raise SystemExit(0)


def test_an_answer_without_the_nonce_is_none() -> None:
    host = Host(silent=True, environment={})
    host.send(Request.HOLD, b"")
    host.send(Request.RUN, b"no request at all")
    with pytest.raises(Lost):
        host.receive()
    host.close()


def state(process: int, wanted: str) -> bool:
    """Whether it comes to one of these states; no more than ten seconds are given to it."""
    for _ in range(1000):
        if stat(process)[0] in wanted:
            return True
        time.sleep(0.01)
    return False


def wakes(process: int) -> None:
    look = _waking(process, [])
    for _ in range(round(ASLEEP_S / TICK_S) + 1):
        look()


def test_a_driver_that_no_terminal_stopped_goes_on() -> None:
    """And one that has a terminal stays stopped: that may be Ctrl-Z."""
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as bare:
        terminal, at = pty.fork()
        if terminal == 0:
            os.execvp("sleep", ["sleep", "600"])
        while stat(terminal)[4] == "0":  # it has forked, and takes its terminal
            time.sleep(0.01)
        try:
            for each, after in ((bare.pid, "S"), (terminal, "T")):
                os.kill(each, signal.SIGSTOP)
                assert state(each, "T")
                wakes(each)
                assert state(each, after)
        finally:
            for each in (bare.pid, terminal):
                os.kill(each, signal.SIGKILL)
            os.waitpid(terminal, 0)
            os.close(at)


def test_what_a_mechanism_traces_is_seen_as_stopped_and_goes_on() -> None:
    with subprocess.Popen(["sleep", "600"]) as held:
        tracer = os.fork()
        if tracer == 0:
            ctypes.CDLL(None).ptrace(16, held.pid, 0, 0)
            signal.pause()
        try:
            if not state(held.pid, "t"):
                pytest.skip("no process may trace another here")
            assert roused(held.pid)
            wakes(held.pid)
            assert state(held.pid, "S")
        finally:
            for each in (tracer, held.pid):
                os.kill(each, signal.SIGKILL)
            os.waitpid(tracer, 0)


def test_what_drivers_and_hosts_have_left_is_ended_by_the_next_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a driver that is no more; what belongs to this one, or to a driver in another namespace, stays."""
    monkeypatch.setattr("dpaudit.processes.host._SWEPT", [])
    mine = new_mark().split()[-1]
    namespace, _, started, _ = mine.split("-")
    marks = [mine, f"{namespace}-{os.getpid()}-{int(started) - 1}-0", f"1-{os.getpid()}-1-0", "no-mark"]
    sleepers = [subprocess.Popen(["sleep", "600"], env={**os.environ, MARK: mark}) for mark in marks]
    try:
        monkeypatch.setattr("dpaudit.processes.host._SWEPT", [])
        new_mark()
        assert sleepers[1].wait(30.0) != 0
        assert [each.poll() for each in sleepers if each is not sleepers[1]] == [None] * 3
    finally:
        for each in sleepers:
            each.kill()
            each.wait()


def test_a_run_that_swallows_the_alarm_of_a_deadline_does_not_count() -> None:
    swallowing = contextlib.suppress(BaseException)
    with pytest.raises(OutOfTime), guard.ended_at(time.monotonic() + 0.01), swallowing:
        time.sleep(60.0)


def test_an_alarm_that_rings_as_the_block_is_left_is_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    own = signal.setitimer

    def late(which: Any, seconds: float, *more: float) -> Any:
        if seconds == 0.0:
            signal.raise_signal(signal.SIGALRM)
        return own(which, seconds, *more)

    monkeypatch.setattr(signal, "setitimer", late)
    with guard.ended_at(time.monotonic() + 60.0):
        done = True
    assert done


def test_what_a_killed_writer_left_goes_when_the_file_is_written_again(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    names = (("a", ended.pid), ("a", os.getpid()), ("b", ended.pid))
    dead, *others = (f".{name}.json.dpaudit-{process}-x" for name, process in names)
    for each in (dead, *others):
        (tmp_path / each).touch()
    write_text(tmp_path / "a.json", "{}")
    assert {each.name for each in tmp_path.iterdir()} == {"a.json", *others}


# --- a pool as `joblib.Parallel` drives it: calls that end early, lose a worker, or grow -----------------------------


def sleeps(seconds: float, who: str) -> dict[str, str]:
    time.sleep(seconds)
    return {"who": who, "process": str(os.getpid())}


def dies(who: str) -> dict[str, str]:
    if who == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.3)
    return {"who": who}


@pytest.fixture
def pool() -> Any:
    made = Processes(2)
    yield made
    made.close()


def test_work_is_ended_at_a_time_and_the_pool_goes_on() -> None:
    """What was done before is told; what was at work, which would take minutes, has ended."""
    pool = Processes(1)
    ((first),) = pool.run(sleeps, [(0.0, "starts")])
    work = pool.run(sleeps, [(0.0, "done"), (600.0, "late")], time.monotonic() + 2.0)
    assert next(work)["who"] == "done"
    with pytest.raises(OutOfTime):
        next(work)
    assert left.gone(int(first["process"]))
    assert [each["who"] for each in pool.run(sleeps, [(0.0, "again")])] == ["again"]
    pool.close()


def test_a_call_that_nobody_reads_to_its_end_ends_what_is_under_way(
    pool: Processes, recwarn: pytest.WarningsRecorder
) -> None:
    list(pool.run(sleeps, [(0.0, "starts"), (0.0, "both")]))
    stream = pool.run(sleeps, [(0.0, "first"), (60.0, "second"), (60.0, "third")])
    began = time.monotonic()
    assert next(stream)["who"] == "first"
    stream.close()
    assert time.monotonic() - began < 30.0
    assert [str(each.message) for each in recwarn] == []  # joblib would warn of what was not read
    assert sorted(each["who"] for each in pool.run(sleeps, [(0.0, "a"), (0.0, "b")])) == ["a", "b"]


def test_a_lost_worker_takes_none_of_the_others_along_and_no_other_task_is_begun(pool: Processes) -> None:
    """Joblib has taken some ahead by then, and there is a host less than threads; the pool goes on."""
    came: list[Any] = []
    with pytest.raises(LostWorker):
        came.extend(pool.run(dies, [(each,) for each in ("a", "dies", *map(str, range(20)))]))
    assert "a" in [each["who"] for each in came]
    assert len(came) < 12  # of 21 others, on a machine however busy
    assert [each["who"] for each in pool.run(dies, [("again",)])] == ["again"]


def test_tasks_that_a_result_adds_are_run_before_a_worker_rests(pool: Processes) -> None:
    for made in (pool, Processes(1)):
        tasks: list[Any] = [(0.0, "3"), (0.0, "1")]

        def then(result: Any, tasks: list[Any] = tasks) -> Any:
            if result["who"] != "0":
                tasks.insert(0, (0.0, str(int(result["who"]) - 1)))
            return result["who"]

        assert sorted(made.run(sleeps, tasks, then=then)) == ["0", "0", "1", "1", "2", "3"]
        made.close()


def test_nothing_that_a_process_sends_is_unpickled_here(pool: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    list(pool.run(sleeps, [(0.0, "starts"), (0.0, "both")]))

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("unpickled in the driver")

    monkeypatch.setattr(pickle, "loads", refused)
    monkeypatch.setattr(pickle, "load", refused)
    assert len(list(pool.run(sleeps, [(0.0, str(number)) for number in range(6)]))) == 6


def workers(*given: Any) -> tuple[int, str | None]:
    with Engine(*given) as engine:
        return engine.n_jobs, engine.backend


def test_what_is_not_said_is_as_joblib_is_configured() -> None:
    assert workers() == (os.cpu_count(), None)
    with joblib.parallel_config(n_jobs=3):
        assert (workers(), workers(1)) == ((3, None), (1, None))
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert (workers(), workers(1, "sequential")) == ((2, "threading"), (1, "sequential"))
    for backend in ("loky", "dpaudit"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            assert workers() == (2, None)
