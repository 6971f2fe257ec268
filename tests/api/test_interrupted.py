"""Ctrl-C in Python, and the same call that goes on; the runs of a call that says neither how many nor how long."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.account.repeat import python_form
from dpaudit.account.statements import headline
from dpaudit.auditing import Question, plan, probing, runner
from dpaudit.claims import PureDP
from dpaudit.data import AdjacentPair
from dpaudit.errors import InvalidSpec
from dpaudit.mechanisms import wrap
from tests.cases import NIGHTLY
from tests.doors.conftest import read_until

SCRIPT = """
import json, os, sys, time
import dpaudit

def noisy(data, rng):
    with open(os.environ["PACE"]) as file:
        time.sleep(float(file.read()))
    return data + rng.laplace(scale=0.5)

result = dpaudit.audit(noisy, pair=(1, 0), epsilon=1.0, runs=4_000, n_jobs=int(sys.argv[2]), ledger=sys.argv[1])
print(json.dumps(result.to_dict()))
"""


def call(ledger: Path, run_s: float = 0.0, jobs: int = 1, **pipes: Any) -> subprocess.Popen[str]:
    script = ledger.with_name("script.py")
    script.write_text(SCRIPT)
    ledger.with_name(f"{ledger.name}.pace").write_text(str(run_s))  # which is no part of what is compared
    env = {**os.environ, "PACE": f"{ledger}.pace", "TERM": "xterm", "CI": "", "COLUMNS": "100"}
    words = [sys.executable, str(script), str(ledger), str(jobs)]
    return subprocess.Popen(words, env=env, text=True, start_new_session=True, **pipes)


def stored(ledger: Path) -> list[str]:
    """The kinds and digests of the shards that the ledger holds."""
    if not ledger.exists():
        return []
    with closing(sqlite3.connect(ledger, timeout=30)) as connection, suppress(sqlite3.OperationalError):
        return [f"{kind} {digest}" for kind, digest in connection.execute("SELECT kind, digest FROM shards")]
    return []


def left_of(process: int) -> list[str]:
    """Processes that this one has started and left behind."""
    mark = f"-{process}-".encode()
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            marks = [each for each in file.read_bytes().split(b"\0") if each.startswith(b"DPAUDIT_STARTED_BY=")]
            found += [file.parent.name for each in marks if mark in each]
    return found


def made(shift: float) -> Callable[..., Any]:
    def closed(data: Any, rng: Any) -> float:
        return float(data + shift + rng.laplace())

    closed.__module__ = "__main__"
    return closed


def interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_the_same_call_goes_on_and_another_one_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a function of a script or notebook has closed over is a part of the question."""

    def ask(mechanism: Any, **options: Any) -> Any:
        options = {"pair": (1, 0), "epsilon": 2.0, "runs": 500, "n_jobs": 1} | options
        return dpaudit.audit(mechanism, **options, ledger=tmp_path / "kept").provenance["interruptions"]

    with monkeypatch.context() as patch:
        patch.setattr("dpaudit.auditing.runner.run_audit", interrupt)
        with pytest.raises(dpaudit.AuditInterrupted, match="no run was made yet"):
            ask(made(0.0))
    changed: list[dict[str, Any]] = [{"mechanism": made(0.5)}, {"seed": 1}, {"pair": (2, 0)}]
    for options in changed:
        with pytest.warns(UserWarning, match=r"another call of made\.closed, which begins anew"):
            assert ask(**{"mechanism": made(0.0), **options}) == 0
    assert ask(made(0.0)) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_interrupted_call_tells_the_time_and_goes_on_to_the_same_result(tmp_path: Path) -> None:
    """A function of 50 ms: a bar, how long it takes, then Ctrl-C in the midst of a shard; by night twice.

    With two workers; the call that goes on has one.
    """
    first, second = tmp_path / "a" / "kept.sqlite", tmp_path / "b" / "whole.sqlite"
    for each in (first, second):
        each.parent.mkdir()
    turns = (1, 2) if NIGHTLY else (1,)
    for turn in turns:
        here, there = pty.openpty()
        began = time.monotonic()
        process = call(first, 0.05, 2, stdout=subprocess.PIPE, stderr=there)
        os.close(there)
        before = stored(first)
        said = read_until(here, lambda seen: "dpaudit.batched" in seen)
        told_s = time.monotonic() - began
        said += read_until(here, lambda _, before=before: any("piece" in each for each in {*stored(first)} - {*before}))
        os.kill(process.pid, signal.SIGINT)
        said += read_until(here, lambda _: False)
        out, _ = process.communicate(timeout=60)
        os.close(here)
        assert "\x1b[?25l" in said  # a bar was there
        told = r"noisy: about 1 min \d+ s \([34],\d\d\d runs of 0\.05\d* s, on 2 workers\); shorter: max_time_s"
        assert re.search(told, said)
        assert turn == 2 or told_s < 15.0  # 5 s on a machine that does nothing else
        assert "Traceback" not in said
        told = r"KeyboardInterrupt: [\d,]+ of 4,000 runs are done, and are kept in .*; the same call goes on"
        assert re.search(told, said)
        assert (out, process.returncode) == ("", 130)
        assert left_of(process.pid) == []
    results = []
    for ledger in (first, second):
        process = call(ledger, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, errors = process.communicate(timeout=60)
        assert (errors, process.returncode) == ("", 0)
        results.append(json.loads(out))
        assert stored(ledger) == []
    assert [each.pop("provenance").get("interruptions") for each in results] == [len(turns), 0]
    assert results[0] == results[1]


ASKED: dict[str, Any] = {"pair": (10, 9), "epsilon": 1.0, "n_jobs": 1, "progress": False}


def noisy(data: int, rng: np.random.Generator) -> float:
    return data + float(rng.laplace())


@pytest.fixture
def takes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Says what the probe finds: the seconds of a run."""

    def put(run_s: float) -> None:
        monkeypatch.setattr(probing, "time_of_a_run", lambda *_: SimpleNamespace(run_s=run_s))

    return put


def chosen(epsilon: float = 1.0, jobs: int = 2, **options: Any) -> int:
    question = Question(PureDP(epsilon), wrap(noisy), (AdjacentPair(10, 9),), runs=None, **options)
    return probing.chosen_runs(question, plan(question), SimpleNamespace(n_jobs=jobs))  # type: ignore[arg-type]


def test_they_take_about_a_minute_on_the_workers(takes: Any) -> None:
    expected = {0.0: 10**6, 1.2e-4: 10**6, 1.3e-4: 300_000, 1e-3: 100_000, 2.8e-3: 30_000, 9.0: 10_000}
    for run_s, runs in expected.items():
        takes(run_s)
        assert chosen() == runs, run_s
    takes(1e-3)
    assert chosen(jobs=200) == 10**6
    assert chosen(detect={"epsilon": 1.2, "mass": 0.01}) == 10**6


def test_they_are_enough_to_refute_the_claim(takes: Any) -> None:
    takes(9.0)
    assert [chosen(epsilon) for epsilon in (6.0, 7.0, 8.0, 9.0, 10.0)] == [*probing.CHOICES]
    with pytest.raises(InvalidSpec, match="runs = 1,000,000 can never refute"):
        dpaudit.audit(noisy, **ASKED | {"epsilon": 40.0})


def test_they_are_stored_said_and_repeated(takes: Any, tmp_path: Path) -> None:
    takes(5e-3)
    found = dpaudit.audit(noisy, **ASKED)
    assert (found.spec["runs"], found.provenance["chosen_runs"]) == (10_000, 10_000)
    first = str(found).splitlines()[0]
    assert first.endswith("; 10,000 runs, as many as a minute allows")
    (seen,) = re.findall("10 runs +epsilon (.*)", str(found))
    assert float(seen) == pytest.approx(found.least_found(0.1), abs=0.01)
    assert "runs=10000, " in "\n".join(python_form(found))
    again = dpaudit.audit(noisy, runs=10_000, **ASKED)
    assert (again.evidence, again.witness, again.spec) == (found.evidence, found.witness, found.spec)
    assert "a minute" not in headline(again)
    assert headline(dpaudit.load(found.save(tmp_path / "result.json"))) == first
    broken = dpaudit.audit(noisy, **ASKED | {"epsilon": 0.1})
    assert ", claimed 0.1, if the datasets count as neighbours (wrong in" in headline(broken)
    assert headline(broken).endswith("; 10,000 runs, as many as a minute allows")


def test_who_says_how_many_or_how_long_is_not_asked_twice_and_time_chooses_beforehand(takes: Any) -> None:
    takes(0.05)
    found = dpaudit.audit(noisy, **ASKED, max_time_s=60.0)
    assert (found.spec["runs"], found.provenance["max_time_s"]) == (1_080, 60.0)  # nine tenths of the time
    assert "chosen_runs" not in found.provenance
    takes(1.0)
    with pytest.raises(InvalidSpec, match="max_time_s = 60 allows 54 runs of 1 s each; an audit needs at least 200"):
        dpaudit.audit(noisy, **ASKED, max_time_s=60.0)


def test_a_call_that_goes_on_has_the_number_of_its_beginning(
    takes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    takes(5e-3)
    with monkeypatch.context() as patch:
        patch.setattr(runner, "run_audit", interrupted)
        with pytest.raises(dpaudit.AuditInterrupted):
            dpaudit.audit(noisy, **ASKED, ledger=tmp_path / "kept.sqlite")
    takes(1e-6)
    found = dpaudit.audit(noisy, **ASKED, ledger=tmp_path / "kept.sqlite")
    assert (found.spec["runs"], found.provenance["chosen_runs"]) == (10_000, 10_000)
    assert found.provenance["interruptions"] == 1
