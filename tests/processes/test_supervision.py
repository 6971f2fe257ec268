"""What hosts do about mechanisms that escape: from their time limits, their sessions, their pipes and their hosts."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dpaudit import AdjacentPair, UnsoundAudit
from dpaudit.base.files import write_text
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import wrap
from dpaudit.processes.host import MARK, new_mark
from dpaudit.processes.pipes import TICK_S, roused, stat
from dpaudit.processes.pools import OutOfTime, Processes
from dpaudit.processes.serving import ASLEEP_S, _waking
from dpaudit.running import guard
from dpaudit.running.streams import Stage, shards
from tests.processes import left

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="uses /proc")]

WORK = shards(Stage.SEARCH, 0, 4, 4)


def made(mechanism: Any, folder: Path, limit_s: float | None = None) -> Any:
    """Four runs in a process of ours."""
    pairs = (AdjacentPair([str(folder), 0], [str(folder), 1]),)
    with (
        Engine(1, supervised=True, task_runs=4) as engine,
        engine.session(wrap(mechanism), pairs, 5, limit_s) as session,
    ):
        return session.pilot(WORK)


def test_a_run_that_turned_off_its_alarms_is_ended_from_outside(tmp_path: Path) -> None:
    with pytest.raises(UnsoundAudit, match="hung past run_timeout_s"):
        made(left.hangs_deaf, tmp_path, limit_s=0.05)


def test_what_is_stopped_goes_on(tmp_path: Path) -> None:
    assert made(left.stops, tmp_path).sizes == (4,)


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


def test_a_process_that_answered_somewhere_else_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(UnsoundAudit, match="twice"):
        made(left.answers_nobody, tmp_path)


def test_what_outlives_its_host_is_found_by_its_mark(tmp_path: Path) -> None:
    with pytest.raises(UnsoundAudit, match="twice"):
        made(left.ends_host, tmp_path)
    found = [int(each.name) for each in tmp_path.iterdir()]
    assert len(found) == 4
    assert left.gone(*found)


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


def test_work_is_ended_at_a_time_and_the_pool_goes_on(tmp_path: Path) -> None:
    """What was done before is told; what was at work has ended."""
    pool, here = Processes(), str(tmp_path)
    done = list(pool.run(_sleeps, [(here, 0.0)]))
    work = pool.run(_sleeps, [(here, 0.0), (here, 600.0)], time.monotonic() + 5.0)
    assert [next(work)] == done
    with pytest.raises(OutOfTime):
        next(work)
    assert done == [{"slept": "0.0"}]
    assert left.gone(*(int(each.name) for each in tmp_path.iterdir()))
    assert list(pool.run(_sleeps, [(here, 0.0)])) == done
    pool.close()


def _sleeps(folder: str, seconds: float) -> dict[str, str]:
    Path(folder, str(os.getpid())).touch()
    time.sleep(seconds)
    return {"slept": str(seconds)}


def test_what_a_killed_writer_left_goes_when_the_file_is_written_again(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    dead = tmp_path / f".a.json.dpaudit-{ended.pid}-x"
    kept = [
        tmp_path / name for name in (f".a.json.dpaudit-{os.getpid()}-x", f".b.json.dpaudit-{ended.pid}-x", ".a.json.x")
    ]
    for each in (dead, *kept):
        each.touch()
    write_text(tmp_path / "a.json", "{}")
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "a.json", *kept])
