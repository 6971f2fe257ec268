"""A fault at every n-th write, sync, rename and open: one line, the right exit code, and the same bytes after --resume.

The operations are those of the whole process on files of one folder, SQLite's among them: a library of `faults.c` is
preloaded, which needs a C compiler and Linux. A driver is forked from a process that has everything imported.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import print_table as show

FAULTS = 300
KINDS = {"disk full": errno.ENOSPC, "disk error": errno.EIO, "half written": 0}
ALLOWED = {0, 2, 3}  # a fault after all is decided may cost nothing; 3: what was to be recorded was not; 2: not opened
HEAD = 'schema = "dpaudit.audit/1"\n'
AUDIT = '[[audit]]\nname = "{0}"\nmechanism = "dpaudit.catalogue.additive:laplace"\nruns = {1}\nseed = {2}\n{3}\n'
STORES: dict[str, tuple[str, str]] = {  # what is under fault, and a suite that makes much use of it
    "ledger": ("l", "".join(AUDIT.format(f"a{n}", 300, n, "") for n in range(3))),
    "shards": ("l", AUDIT.format("many looks", 1_500, 0, 'stopping = "anytime"')),
    "reports": ("r", "".join(AUDIT.format(f"a{n}", 300, n, "") for n in range(2))),
}


def run(quick: bool) -> None:
    """Compiles the library, and makes the table in a process that has it preloaded."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        print("faults: needs a C compiler and Linux; left out")
        return
    with tempfile.TemporaryDirectory() as folder:
        library = str(Path(folder, "faults.so"))
        source = str(Path(__file__).with_suffix(".c"))
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", source, "-o", library, "-ldl"], check=True)
        command = [sys.executable, "-m", "benchmarks.faults", *(["--quick"] if quick else [])]
        subprocess.run(command, env={**os.environ, "LD_PRELOAD": library}, check=True)


def main(quick: bool) -> None:
    """The table, where the library is loaded."""
    import scipy.special  # noqa: F401
    import statsmodels.stats.multitest  # noqa: F401

    shim, rows = ctypes.CDLL(None), []
    with tempfile.TemporaryDirectory() as made:
        for name, (below, suite) in STORES.items():
            place = Path(made, name)
            place.mkdir()
            with contextlib.chdir(place):
                Path("s.toml").write_text(HEAD + suite)
                rows.append([name, *_store(shim, str(place / below), FAULTS // 10 if quick else FAULTS)])
    head = ["store", "operations", "faults", "exit codes", "wrong code or lines", "not the same bytes"]
    show("The n-th operation fails, then --resume", head, rows)


def _store(shim: Any, below: str, faults: int) -> list[str]:
    _, _, total = _driver(shim, below, 0, 0)
    expected, codes = _records(), Counter[int]()
    ill = other = done = 0
    order = np.random.default_rng(18).permutation(faults * max(1, -(-total // faults)))
    for turn in range(faults):
        _clean()
        nth, kind = 1 + int(order[turn]) % total, list(KINDS.values())[turn % 3]
        code, said, _ = _driver(shim, below, nth, kind)
        codes[code] += 1
        wrong = code not in ALLOWED or len(said.splitlines()) > 1 or (code != 0 and not said)
        again = _driver(shim, below, 0, 0, "--resume")
        if again[0] == 2 and "there is no unfinished run" in again[1]:
            again = _driver(shim, below, 0, 0)
        differs = again[0] != 0 or _records() != expected
        if wrong or differs:
            print(f"{below}: operation {nth} of {total}, {kind}: {code} {said!r} then {again}")
        ill, other, done = ill + wrong, other + differs, done + 1
    told = ", ".join(f"{code}: {count}" for code, count in sorted(codes.items()))
    return [str(total), str(done), told, str(ill), str(other)]


def _clean() -> None:
    for folder in ("l", "r"):
        shutil.rmtree(folder, ignore_errors=True)


def _driver(shim: Any, below: str, nth: int, kind: int, *more: str) -> tuple[int, str, int]:
    """Exit code, what was said, and the operations that were made."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        said = os.open("said", os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600)
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(said, 2)
        from dpaudit.cli.group import exit_code

        shim.faults_arm(below.encode(), ctypes.c_long(nth), kind)
        arguments = ["run", "s.toml", "--jobs", "1", "--quiet", "--no-progress", "--ledger", "l/l.sqlite"]
        code = exit_code([*arguments, "--report", "r", *more])
        Path("seen").write_text(str(shim.faults_seen()))
        sys.stderr.flush()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), Path("said").read_text(), int(Path("seen").read_text())


def _records() -> dict[str, str]:
    found = {}
    for file in Path("r").glob("*-*.json"):
        stored: dict[str, Any] = json.loads(file.read_text())
        del stored["provenance"]
        found[file.name] = json.dumps(stored)
    return found


if __name__ == "__main__":
    main("--quick" in sys.argv)
