"""Ctrl-C in Python: a line, no traceback, no process left; with a ledger, the same call goes on to the same result."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

import dpaudit
from tests.cases import NIGHTLY

SCRIPT = """
import json, os, sys, time
import dpaudit

def noisy(data, rng):
    with open(os.environ["PACE"]) as file:
        time.sleep(float(file.read()))
    return data + rng.laplace(scale=0.5)

result = dpaudit.audit(noisy, pair=(1, 0), epsilon=1.0, runs=4_000, n_jobs=2, ledger=sys.argv[1])
print(json.dumps(result.to_dict()))
"""


def call(ledger: Path, run_s: float = 0.0, **pipes: Any) -> subprocess.Popen[str]:
    script = ledger.with_name("script.py")
    script.write_text(SCRIPT)
    ledger.with_name(f"{ledger.name}.pace").write_text(str(run_s))  # which is no part of what is compared
    env = {**os.environ, "PACE": f"{ledger}.pace", "TERM": "xterm", "CI": "", "COLUMNS": "100"}
    return subprocess.Popen(
        [sys.executable, str(script), str(ledger)], env=env, text=True, start_new_session=True, **pipes
    )


def stored(ledger: Path) -> list[str]:
    """The kinds and digests of the shards that the ledger holds."""
    if not ledger.exists():
        return []
    with closing(sqlite3.connect(ledger, timeout=30)) as connection, suppress(sqlite3.OperationalError):
        return [f"{kind} {digest}" for kind, digest in connection.execute("SELECT kind, digest FROM shards")]
    return []


def read_until(terminal: int, enough: Callable[[str], bool], seconds: float = 60.0) -> str:
    """What stands on the terminal once it is enough, or its other end is closed."""
    seen, deadline = "", time.monotonic() + seconds
    while not enough(seen) and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                seen += os.read(terminal, 1 << 16).decode(errors="replace")
            except OSError:
                break
    return seen


def left_of(process: int) -> list[str]:
    """Processes that this one has started and left behind."""
    mark = f"-{process}-".encode()
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            marks = [each for each in file.read_bytes().split(b"\0") if each.startswith(b"DPAUDIT_STARTED_BY=")]
            found += [file.parent.name for each in marks if mark in each]
    return found


SCALE = 1.0


def helper(rng: Any) -> float:
    return SCALE * float(rng.laplace())


def made(shift: float) -> Callable[..., Any]:
    def closed(data: Any, rng: Any) -> float:
        return float(data + shift + helper(rng))

    closed.__module__ = helper.__module__ = "__main__"
    return closed


def interrupt(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_the_same_call_goes_on_and_another_one_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a function of a script or notebook has closed over, and uses of it, is a part of the question."""

    def ask(mechanism: Any, **options: Any) -> Any:
        options = {"pair": (1, 0), "epsilon": 2.0, "runs": 500, "n_jobs": 1} | options
        return dpaudit.audit(mechanism, **options, ledger=tmp_path / "kept").provenance["interruptions"]

    def begin() -> None:
        with monkeypatch.context() as patch:
            patch.setattr("dpaudit.auditing.runner.run_audit", interrupt)
            with pytest.raises(dpaudit.AuditInterrupted, match="no run was made yet"):
                ask(made(0.0))

    begin()
    assert ask(made(0.0)) == 1
    changed: list[dict[str, Any]] = [{"mechanism": made(0.5)}, {"seed": 1}, {"pair": (2, 0)}]
    begin()
    for options in changed:
        with pytest.warns(UserWarning, match=r"another call of made\.closed, which begins anew"):
            assert ask(**{"mechanism": made(0.0), **options}) == 0
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    with pytest.warns(UserWarning, match=r"SCALE is not what it was"):
        assert ask(made(0.0)) == 0
    monkeypatch.setitem(globals(), "SCALE", 1.0)
    assert ask(made(0.0)) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_an_interrupted_call_tells_the_time_and_goes_on_to_the_same_result(tmp_path: Path) -> None:
    """A function of 50 ms: a bar, how long it takes, then Ctrl-C in the midst of a shard; by night twice."""
    first, second = tmp_path / "a" / "kept.sqlite", tmp_path / "b" / "whole.sqlite"
    for each in (first, second):
        each.parent.mkdir()
    turns = (1, 2) if NIGHTLY else (1,)
    for turn in turns:
        here, there = pty.openpty()
        began = time.monotonic()
        process = call(first, 0.05, stdout=subprocess.PIPE, stderr=there)
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
        assert re.search(
            r"noisy: about 1 min \d+ s \([34],\d\d\d runs of 0\.05\d* s, on 2 workers\); shorter: max_time_s", said
        )
        assert turn == 2 or told_s < 15.0  # 5 s on a machine that does nothing else
        assert "Traceback" not in said
        assert re.search(
            r"KeyboardInterrupt: [\d,]+ of 4,000 runs are done, and are kept in .*; the same call goes on", said
        )
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
