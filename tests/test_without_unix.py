"""What holds where Windows lacks what Linux has: everything imports, Python audits, and the rest is refused in a line.

No Windows is here: a fresh interpreter is stripped of the modules and functions that it would not have.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SPEC = 'schema = "dpaudit.audit/1"\n[[audit]]\nname = "a"\nmechanism = "dpaudit.catalogue.additive:laplace"\n'
STRIPPED = """
import multiprocessing.connection, os, select, signal, socket, subprocess, sys
import click, cloudpickle, joblib, msgspec, numpy, pytest, scipy.stats  # they ask the system

for name in ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty", "syslog"):
    sys.modules[name] = None
LACKING = {
    os: "O_CLOEXEC O_NOCTTY O_NONBLOCK P_PID WNOHANG WSTOPPED fork forkpty getegid geteuid getgid getgroups getloadavg "
    "getpgid getsid getuid killpg memfd_create mkfifo register_at_fork sched_getaffinity setpgid setsid uname wait "
    "waitid",
    signal: "ITIMER_REAL SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGSTOP SIGUSR1 SIG_BLOCK SIG_SETMASK alarm "
    "pthread_sigmask setitimer",
    select: "epoll poll",
    socket: "AF_UNIX",
}
for module, names in LACKING.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
sys.platform = "win32"
"""
USE = """
import importlib, pkgutil
import dpaudit

for found in pkgutil.walk_packages(dpaudit.__path__, "dpaudit."):
    if found.name != "dpaudit.__main__":
        importlib.import_module(found.name)

def noisy_count(rows, rng):
    return len(rows) + rng.laplace(scale=0.5)

def told(**options):
    try:
        return dpaudit.audit(noisy_count, pair=([1, 2], [1]), epsilon=1.0, runs=4000, **options).verdict.value
    except dpaudit.DpAuditError as error:
        return f"{type(error).__name__}: {error}"

from dpaudit.cli.group import exit_code
from dpaudit.ledger.runs import RunLock
from pathlib import Path

print(told(n_jobs=1), told(), told(isolation="process"), told(run_timeout_s=1.0), sep="\\n")
try:
    RunLock(Path("audits.sqlite"), "run").take()
except dpaudit.DpAuditError as error:
    print(error)
print(*(exit_code(words) for words in (["--help"], ["validate", "a.toml"], ["run", "a.toml"])))
"""


@pytest.mark.long
def test_python_audits_and_specs_are_read_where_there_is_no_fork(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(SPEC)
    ended = subprocess.run([sys.executable, "-c", STRIPPED + USE], cwd=tmp_path, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[:2] == ["REFUTED", "REFUTED"]
    assert lines[2].startswith("MissingRequirement: processes of mechanisms need fork: Linux, macOS or WSL;")
    assert lines[3].startswith("InvalidSpec: run_timeout_s needs the alarms of Linux and macOS")
    assert lines[4].startswith("this needs the file locks of Linux and macOS")
    assert lines[-1] == "0 0 3"
    assert ended.stderr == f"error: {lines[2].removeprefix('MissingRequirement: ')}\n"
