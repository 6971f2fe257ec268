"""Hostile mechanisms in seven ways of being audited: who hangs, ends well without a verdict, passes, or stays.

A false pass is "not refuted" of an output that tells its dataset (epsilon 2.94, claimed 1). Where a mechanism hides
its output in its own process before anything else sees it, no auditor can tell it from one that does not leak when it
is audited: such rows are counted, and named.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.hostiles import ACTS, OUT_OF_REACH
from benchmarks.tables import print_table

LIMIT_S, GRACE_S, RUNS = 120.0, 10.0, 1_500
ROOT = str(Path(__file__).resolve().parent.parent)
MARK = "DPAUDIT_HOSTILE_RUN"
LIBRARY = """
import sys, functools, dpaudit
from benchmarks.hostiles import leak
if __name__ == "__main__":
    found = dpaudit.audit(functools.partial(leak, does=sys.argv[1]), pair=(0, 1), epsilon=1.0, runs={runs}, {options})
    print("\\nVERDICT", found.verdict.value)
    sys.exit(found.verdict is dpaudit.Verdict.REFUTED)
"""
SPEC = """schema = "dpaudit.audit/1"
[[audit]]
name = "hostile"
mechanism = "benchmarks.hostiles:{mechanism}"
parameters = {{ does = "{does}" }}
pair = {{ first = 0, second = 1 }}
claim = {{ epsilon = 1.0 }}
runs = {runs}
{more}
"""
TEST = """
import functools
from benchmarks.hostiles import leak

def test_it(audit):
    audit(functools.partial(leak, does={does!r}), pair=(0, 1), epsilon=1.0, runs={runs})
"""
WAYS = {
    "library": "n_jobs=1",
    "library, processes": 'n_jobs=2, backend="loky"',
    "library, threads": 'n_jobs=2, backend="threading"',
    "library, isolated": 'n_jobs=1, isolation="process"',
    "command": "",
    "command, limited": "run_timeout_s = 1.0",
    "plugin": "",
}


@dataclass(frozen=True)
class Outcome:
    """What became of one audit: `verdict` is what it printed, empty for none."""

    act: str
    way: str
    code: int | None
    verdict: str
    left: int
    said: str = ""

    @property
    def wrong(self) -> str:
        """What must not be: "hang", "exit 0", "false pass", "left"; empty where nothing is wrong."""
        if self.code is None:
            return "hang"
        if self.code == 0 and self.verdict != "NOT REFUTED":
            return "exit 0"
        if self.verdict == "NOT REFUTED":
            return "false pass"
        return "left" if self.left else ""


def outcome(act: str, way: str, *, limit_s: float = LIMIT_S) -> Outcome:
    """Audits the leak that does this, in this way, in a process of its own."""
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    with tempfile.TemporaryDirectory() as folder:
        command, verdicts = _command(act, way, folder)
        environment = {**os.environ, MARK: mark, "PYTHONPATH": ROOT, "TMPDIR": folder, "NO_COLOR": "1"}
        with Path(folder, "said").open("w+") as said:
            started = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=said, stderr=said, start_new_session=True
            )
            code: int | None = None
            try:
                code = started.wait(limit_s)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()
            left = _left(mark) if code is not None else (_end(mark) or 0)
            said.seek(0)
            text = said.read()
    verdict = next((each for sign, each in verdicts.items() if sign in text), "")
    return Outcome(act, way, code, verdict, left, text[-600:])


def _command(act: str, way: str, folder: str) -> tuple[list[str], dict[str, str]]:
    if way.startswith("library"):
        file = Path(folder, "audit_it.py")
        file.write_text(LIBRARY.format(runs=RUNS, options=WAYS[way]))
        return [sys.executable, str(file), act], {"VERDICT NOT_REFUTED": "NOT REFUTED", "VERDICT REFUTED": "REFUTED"}
    if way == "plugin":
        Path(folder, "test_it.py").write_text(TEST.format(does=act, runs=RUNS))
        options = ["-q", "-p", "no:cacheprovider"]
        return [sys.executable, "-m", "pytest", *options, "test_it.py"], {
            "1 passed": "NOT REFUTED",
            "ClaimRefuted": "REFUTED",
        }
    mechanism = "leak_batch" if "batched" in way else "leak"
    Path(folder, "spec.toml").write_text(SPEC.format(mechanism=mechanism, does=act, runs=RUNS, more=WAYS[way]))
    options = ["run", "spec.toml", "--no-ledger", "--quiet", "--jobs", "1"]
    signs = {"1 audit: 0 refuted, 1 not refuted": "NOT REFUTED", "1 audit: 1 refuted": "REFUTED"}
    return [sys.executable, "-m", "dpaudit", *options], signs


def _marked(mark: str) -> list[int]:
    found = []
    for each in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in each.read_bytes():
                stat = Path(each.parent, "stat").read_text().rpartition(")")[2].split()[0]
                found += [int(each.parent.name)] if stat != "Z" else []
        except OSError:
            continue
    return found


def _left(mark: str) -> int:
    """How many of its processes are there after a while; they are ended."""
    until = time.monotonic() + GRACE_S
    while time.monotonic() < until and _marked(mark):
        time.sleep(0.1)
    return _end(mark)


def _end(mark: str) -> int:
    found = _marked(mark)
    for process in found:
        try:
            os.kill(process, signal.SIGKILL)
        except OSError:
            continue
    return len(found)


def run(quick: bool = False) -> None:
    """Prints a table of the ways, and each row where something was wrong."""
    acts = random.Random(7).sample(sorted(ACTS), 10) if quick else sorted(ACTS)
    found = [outcome(act, way) for way in WAYS for act in acts]
    rows = []
    for way in WAYS:
        here = [each for each in found if each.way == way]
        told = [sum(each.wrong == what for each in here) for what in ("hang", "exit 0", "false pass", "left")]
        none = sum(not each.verdict for each in here)
        refuted = sum(each.verdict == "REFUTED" for each in here)
        rows.append([way, *map(str, (len(here), refuted, none, *told))])
    print_table(
        f"Hostile mechanisms: {len(acts)}, each leaking epsilon 2.94 of a claimed 1",
        ["way", "audits", "refuted", "no verdict", "hangs", "exit 0 without verdict", "false passes", "left processes"],
        rows,
    )
    for each in found:
        if each.wrong:
            beyond = ", as in any audit: it does not leak where it is audited" if each.act in OUT_OF_REACH else ""
            print(f"* {each.way}: {each.act}: {each.wrong}{beyond}")
