"""Hosts and their processes: what a mechanism sends is data, and what it leaves behind holds nobody up."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, UnsoundAudit, batched, command
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import wrap
from dpaudit.processes import tasks
from dpaudit.processes.frames import ProtocolError, answered
from dpaudit.processes.host import CHANGING, Host, Lost
from dpaudit.processes.pipes import Request
from dpaudit.processes.pools import LostWorker, Processes
from dpaudit.processes.tasks import Done, FreshTask
from dpaudit.running.streams import Shard, Stage, shards
from tests.processes import left

pytestmark = pytest.mark.long

WORK = shards(Stage.SEARCH, 0, 4, 4)
PAIR = (AdjacentPair(0, 1),)
FRESH = [FreshTask(Shard(Stage.FRESH, 0, 0, 1), (False,))]


def made(mechanism: Any, folder: Path, way: str) -> Any:
    """Four runs in a process of the pool; or one in a fresh one."""
    backend = "loky" if way == "processes" else None
    with Engine(1, backend, supervised=True, task_runs=4) as engine:
        _, pairs = engine.describe(wrap(mechanism), (AdjacentPair([str(folder), 0], [str(folder), 1]),))
        with engine.session(wrap(mechanism), pairs, 5, None) as session:
            return session.fresh(FRESH) if way == "fresh" else session.pilot(WORK)


@pytest.mark.parametrize("way", ["processes", "fresh"])
def test_what_is_written_into_the_pipes_runs_nothing(tmp_path: Path, way: str) -> None:
    ran = tmp_path / "ran"
    with pytest.raises(UnsoundAudit, match="twice"):
        made(left.forges, ran, way)
    made(left.forges_in_a_fork, ran, way)  # a fork has no line to write to
    assert not ran.exists()


@pytest.mark.parametrize("way", ["processes", "fresh"])
def test_what_is_left_behind_holds_nobody_up(tmp_path: Path, way: str) -> None:
    """A thread, a fork and a daemon of another session go with their process; the daemon only on Linux."""
    code = (
        "import sys; from pathlib import Path; from tests.processes import left, test_host\n"
        "test_host.made(left.holds, Path(sys.argv[1]), sys.argv[2]); print('done')"
    )
    assert left.said(code, str(tmp_path), way) == (0, "done\n")
    daemons = [int(daemon.name) for daemon in tmp_path.iterdir()]
    assert daemons
    if sys.platform == "linux":
        assert left.gone(*daemons)


def test_a_driver_that_is_killed_leaves_neither_process_nor_file(tmp_path: Path) -> None:
    """Its datasets are larger than a pipe, and the mechanism is running when it is killed."""
    code = (
        "import os, sys; from pathlib import Path; from tests.processes import left, test_host\n"
        "Path(sys.argv[1], 'driver').write_text(str(os.getpid()))\n"
        "test_host.end_large(Path(sys.argv[1]))"
    )
    away = tmp_path / "tmp"
    away.mkdir()
    assert left.said(code, str(tmp_path), TMPDIR=str(away)) == (-signal.SIGKILL, "")
    assert left.gone(*map(int, (tmp_path / "process").read_text().split()))
    assert list(away.iterdir()) == []


def tells() -> dict[str, str]:
    """Who answers, where, and how often its process has: an answer that travels from one run to the next."""
    _RUNS.append(1)
    told = {"process": os.getpid(), "host": os.getppid(), "folder": os.getcwd(), "runs": len(_RUNS)}
    return {**{name: str(value) for name, value in told.items()}, "variable": os.environ[CHANGING]}


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


def end_large(folder: Path) -> None:
    pair = AdjacentPair([str(folder), b"x" * 2**20], [str(folder), b"y" * 2**20])
    with (
        Engine(1, "loky", task_runs=4) as engine,
        engine.session(wrap(left.end_driver), (pair,), 5, None) as session,
    ):
        session.pilot(WORK)


def test_a_program_that_runs_ends_with_its_driver(tmp_path: Path) -> None:
    """With what it has started, although it has a group of its own and the process that started it is killed."""
    code = (
        "import sys; from pathlib import Path; from tests.processes import test_host\n"
        "test_host.run_program(Path(sys.argv[1]) / 'ids')"
    )
    assert left.said(code, str(tmp_path)) == (-signal.SIGKILL, "")
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
        "pool = Processes(silent=False); [_] = pool.run(test_host._ids, [()])\n"
        "before = time.monotonic(); pool.close(); os._exit(7 if time.monotonic() < before + 30.0 else 8)"
    )
    assert left.said(code) == (7, "")


def test_a_host_that_does_not_answer_is_not_kept_waiting_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.processes.host.PATIENCE_S", 0.3)
    host = Host(silent=True, environment={})
    os.kill(host._process.pid, signal.SIGSTOP)
    assert not host.rests()
    host.close()


def test_an_answer_to_another_question_is_none() -> None:
    """And the process that gave it is not asked again. Where the host counts, it is asked no such question."""
    for isolation, outcome in (("none", pytest.raises(UnsoundAudit, match="twice")), ("process", nullcontext())):
        with (
            Engine(1, supervised=True, isolation=isolation) as engine,
            engine.session(wrap(left.another_kind), PAIR, 5, None) as session,
            pytest.raises(UnsoundAudit, match="changed the code that runs it"),
        ):
            session.pilot(WORK)
        with (
            Engine(1, supervised=True, isolation=isolation) as engine,
            engine.session(wrap(left.another_shard), PAIR, 5, None) as session,
            outcome,
        ):
            assert session.pilot(WORK).sizes == (4,)


def test_a_clock_that_a_mechanism_changes_is_not_read() -> None:
    with Engine(1, supervised=True) as engine, engine.session(wrap(left.no_clock), PAIR, 5, None) as session:
        assert session.probe(16).run_s == session.run_s == 0.0
        session.pilot(WORK)


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
    (ids,) = pool.run(_ids, [()])
    process, host = int(ids["process"]), int(ids["host"])
    os.kill(host, signal.SIGKILL)
    assert left.gone(process)
    with pytest.raises(LostWorker):
        list(pool.run(_ids, [()]))
    pool.close()


def _ids() -> dict[str, str]:
    return {"process": str(os.getpid()), "host": str(os.getppid())}


def test_bytes_that_are_no_answer_are_refused() -> None:
    """Cut anywhere, or with any byte changed: refused, or read as another answer, and nothing else ever happens."""
    whole = tasks.respond(_done, [()], 1, {})
    (done,) = answered(whole)
    assert [(shard, counts.tolist()) for shard, counts in done.results] == [(WORK[0], [1, 2])]
    for end in range(len(whole)):
        with pytest.raises(ProtocolError):
            answered(whole[:end])
    for at in range(len(whole)):
        with suppress(ProtocolError, UnsoundAudit):
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
