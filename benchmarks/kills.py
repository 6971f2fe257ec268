"""Kills of drivers, hosts and processes over resumed audits: nothing lost, nothing twice, nothing left, the same bytes.

A driver is forked from a process that has everything imported, so that kills fall into its work and not into its
start; it runs the command `dpaudit run` as a shell would. A trigger in the ledger keeps what was ever stored: at the
end no place was stored twice, and the certified counts are the sum of the stored ones. After every kill there must be
no process that a driver has started, daemons in sessions of their own included, and no file but the ledger and reports.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import print_table as show

KILLS, LONGEST_S, GONE_S = 1_000, 240.0, 10.0
NO_VERDICT = 3  # what a driver may end with when its host is killed before anything is recorded
SECRET = "a-dataset-of-the-benchmark"
KILLED = "DPAUDIT_BENCHMARK_KILLED"  # the variable by which what drivers have started is found
HOWS = {
    "SIGKILL of the driver": (0, signal.SIGKILL),
    "SIGTERM of the driver": (0, signal.SIGTERM),
    "SIGHUP of the driver": (0, signal.SIGHUP),
    "SIGKILL of a host": (1, signal.SIGKILL),
    "SIGKILL of a process": (2, signal.SIGKILL),
}  # how far below the driver, and with what
WEIGHTS = (6, 1, 1, 1, 1)
OURS = ("mechs.py", "program.py", "suite.toml", "peace", "tmp", "out", "ledger", "__pycache__", ".dpaudit")
MECHANISMS = """
import subprocess
import time
import numpy as np

LEFT = []

def leaves(data, rng):
    if not LEFT:
        LEFT.append(subprocess.Popen(["sleep", "600"], start_new_session=True))
    return data + rng.laplace(scale=1.2)

def noisy(data, rng):
    time.sleep(0.0001)
    return data + rng.laplace(scale=1.2)

def both(data, rng):
    return data + rng.laplace(scale=0.5), "odd" if rng.random() < 0.3 else None

def own(data):
    time.sleep(0.0001)
    return data + np.random.default_rng().laplace(scale=3.0)
"""
PROGRAM = """
import json, random, sys
request = json.load(sys.stdin)
rng = random.Random(request["seed"])
for _ in range(request["runs"]):
    print(len(request["data"]) + rng.expovariate(1.0) - rng.expovariate(1.0))
"""
AUDITS = {
    "per run": 'mechanism = "mechs:noisy"\nruns = 3_000',
    "refuted": 'mechanism = "mechs:both"\nruns = 3_000\nexpect = "refuted"',
    "batched": 'mechanism = "dpaudit.catalogue.additive:laplace"\nruns = 200_000',
    "anytime": 'mechanism = "mechs:noisy"\nruns = 1_500\nstopping = "anytime"',
    "pairs": 'mechanism = "mechs:noisy"\nruns = 3_000',
    "its own randomness": 'mechanism = "mechs:own"\nruns = 3_000',
    "leaves daemons": 'mechanism = "mechs:leaves"\nruns = 2_000\ncontrols = 1',
    "program": 'mechanism = { command = ["PYTHON", "-S", "program.py"] }\nruns = 2_000',
}
PAIRS = "pairs = [{ first = 10, second = 9 }, { first = 10, second = 11 }, { first = 3, second = 2 }]"
LOG = """
CREATE TABLE kept_log (run TEXT, audit, "call", look, stage, pair, shard, runs, kind, content);
CREATE TRIGGER kept AFTER INSERT ON shards WHEN new."call" >= 0 BEGIN
    INSERT INTO kept_log VALUES (new.run, new.audit, new."call", new.look, new.stage, new.pair, new.shard, new.runs,
                                 new.kind, new.content);
END;
"""


def run(quick: bool) -> None:
    """Kills drivers until there were enough, suite after suite, and compares each suite with one left in peace."""
    wanted, rng, rows = (KILLS // 10 if quick else KILLS), random.Random(6), []
    suites = compared = wrong = twice = lost = 0
    phases: Counter[tuple[str, str]] = Counter()
    left: dict[str, list[float]] = {how: [] for how in HOWS}  # seconds until all was gone
    files: set[str] = set()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        _write_specs()
        _preload()
        started = time.perf_counter()
        assert _driver(["--report", "peace", "--no-ledger"], None) == (0, False)
        whole_s = time.perf_counter() - started
        expected = _records("peace")
        while sum(phases.values()) < wanted:
            suites += 1
            ledger, out = f"ledger{suites}.sqlite", f"out{suites}"
            _make(ledger)
            arguments = ["--report", out, "--ledger", ledger]
            resume: list[str] = []
            while True:
                (how,) = rng.choices(list(HOWS), WEIGHTS)
                after_s = rng.uniform(0.0, 0.8) * whole_s
                driven = [*arguments, *resume]
                ended, struck = _driver(driven, None if sum(phases.values()) >= wanted else after_s, how)
                below = struck and HOWS[how][0] > 0
                assert ended in (0, None) or ended == NO_VERDICT and below, f"a driver ended with {ended} after {how}"
                left[how].append(_gone_after())
                files |= _strange()
                if ended is not None:
                    phases[how, "no verdict" if ended else "it went on"] += below
                    break
                begun = _runs(ledger)
                phases[how, "the end" if any(begun) else _phase(ledger)] += 1
                assert len(begun) <= 1
                if any(begun):
                    break  # killed when all was recorded and written: it is held to that
                resume = ["--resume"] * len(begun)
            if ended:  # without a verdict there is nothing to compare
                continue
            compared += 1
            found = _records(out)
            files |= {str(file) for file in Path(out).glob(".*")}
            wrong += sum(found.get(name) != record for name, record in expected.items() if "own" not in name)
            doubled, missing = _accounted(ledger, out)
            twice, lost = twice + doubled, lost + missing
        kills = str(sum(phases.values()))
        rows.append([kills, str(compared), str(compared * (len(AUDITS) - 1)), str(wrong), str(twice), str(lost)])
    head = ["kills", "suites", "audits compared", "not byte-identical", "stored twice", "counts not accounted for"]
    show("Kills, taken up with --resume", head, rows)
    show(
        "What was stored last when the kill came",
        ["how", "stage", "kills"],
        [[*name, str(n)] for name, n in sorted(phases.items()) if n],
    )
    title = f"What is left after the end of a driver; strange files: {', '.join(sorted(files)) or 'none'}"
    show(
        title,
        ["how", "ends", "all gone after, s, at most", f"something left after {GONE_S:g} s"],
        [[how, str(len(s)), f"{max(s):.2f}", str(sum(each > GONE_S for each in s))] for how, s in left.items() if s],
    )
    show("The cost of storing every shard", ["audit", "without, s CPU", "with, s CPU", "ratio"], _cost(quick))


def _write_specs() -> None:
    Path("mechs.py").write_text(MECHANISMS)
    Path("program.py").write_text(PROGRAM)
    Path("tmp").mkdir()
    parts = ['schema = "dpaudit.audit/1"']
    for name, keys in AUDITS.items():
        pair = PAIRS if name == "pairs" else "pair = { first = 10, second = 9 }"
        if name == "program":
            pair = f'pair = {{ first = [1, 2, "{SECRET}"], second = [1, 2] }}'
        claim = "" if "catalogue" in keys else f"claim = {{ epsilon = 1.0 }}\n{pair}\n"
        parts.append(f'[[audit]]\nname = "{name}"\n{claim}{keys}\n')
    Path("suite.toml").write_text("\n".join(parts).replace("PYTHON", sys.executable))


def _preload() -> None:
    import scipy.special  # noqa: F401
    import statsmodels.stats.multitest  # noqa: F401


def _driver(arguments: list[str], kill_after_s: float | None, how: str = "") -> tuple[int | None, bool]:
    """The exit code of a driver, None where it was killed, or interrupted; and whether anything was killed."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        os.environ[KILLED], os.environ["TMPDIR"] = "1", os.path.abspath("tmp")
        tempfile.tempdir = None
        from dpaudit.cli.group import exit_code

        os._exit(exit_code(["run", "suite.toml", "--format", "json", "--jobs", "1", "--quiet", *arguments]))
    started, below, struck = time.monotonic(), None if kill_after_s is None else HOWS[how][0], False
    while time.monotonic() < started + LONGEST_S:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return None if struck and code in (-9, -15, -1, 130) else code, struck
        if below is not None and kill_after_s is not None and time.monotonic() > started + kill_after_s:
            targets = [child]
            for _ in range(below):
                targets = [each for each, parent in _started() if parent in targets]
            for each in targets[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(each, HOWS[how][1])
                    struck = True
            below = None
        time.sleep(0.002)
    raise AssertionError(f"a driver hangs, after {how}")


def _started() -> list[tuple[int, int]]:
    """Processes that a driver has started, with their parents."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            if f"{KILLED}=".encode() in (folder / "environ").read_bytes():
                told = (folder / "stat").read_text().rpartition(")")[2].split()
                found.append((int(folder.name), int(told[1])))
    return found


def _gone_after() -> float:
    """Seconds until nothing is there that a driver has started; more than `GONE_S` where something stays."""
    started = time.monotonic()
    while left := _started():
        if time.monotonic() > started + GONE_S:
            for process, _ in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            return time.monotonic() - started
        time.sleep(0.01)
    return time.monotonic() - started


def _strange() -> set[str]:
    """Files that are neither the ledger's nor reports, and those that hold a dataset where memory is shared."""
    found = {name for name in os.listdir() if not name.startswith(OURS)} | set(os.listdir("tmp"))
    for file in Path("/dev/shm").iterdir():
        with contextlib.suppress(OSError):
            found |= {file.name} if file.is_file() and SECRET.encode() in file.read_bytes() else set()
    return found


@contextlib.contextmanager
def _opened(ledger: str) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(ledger, timeout=30)) as connection, connection:
        yield connection


def _make(ledger: str) -> None:
    from dpaudit.ledger.database import Database

    Database(ledger).close()
    with _opened(ledger) as connection:
        connection.executescript(LOG)


def _runs(ledger: str) -> list[bool]:
    """Of each run in the ledger, whether it is finished."""
    with _opened(ledger) as connection:
        return [row[0] is not None for row in connection.execute("SELECT finished FROM runs")]


def _phase(ledger: str) -> str:
    from dpaudit.running.streams import Stage

    with _opened(ledger) as connection:
        row = connection.execute("SELECT stage FROM kept_log ORDER BY rowid DESC LIMIT 1").fetchone()
    return "start and imports" if row is None else Stage(row[0]).name.lower()


def _records(folder: str) -> dict[str, str]:
    found = {}
    for file in Path(folder).glob("*-*.json"):
        stored: dict[str, Any] = json.loads(file.read_text())
        del stored["provenance"]
        found[file.name] = json.dumps(stored)
    return found


def _accounted(ledger: str, out: str) -> tuple[int, int]:
    """Places stored twice, and audits whose certified counts are not the sum of the stored ones."""
    from dpaudit.processes.frames import decoded
    from dpaudit.running.streams import Stage

    with _opened(ledger) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT count(*) FROM shards").fetchone() == (0,)
        twice = connection.execute(
            'SELECT count(*) FROM (SELECT 1 FROM kept_log GROUP BY run, audit, "call", look, stage, pair, shard '
            "HAVING count(*) > 1)"
        ).fetchone()[0]
        lost = 0
        for number, name in enumerate(AUDITS, start=1):
            if name == "anytime" or "controls" in AUDITS[name]:
                continue
            rows = connection.execute(
                "SELECT kind, content FROM kept_log WHERE audit = ? AND stage = ?", (number, int(Stage.CERTIFY))
            ).fetchall()
            total = np.sum([decoded(kind, content).result[:4] for kind, content in rows], axis=0).tolist()
            (file,) = Path(out).glob(f"{name.replace(' ', '-')}-*.json")
            stored = json.loads(file.read_text())
            sides = ("p", "q") if stored["witness"]["p_side"] == "first" else ("q", "p")
            evidence = stored["evidence"]
            lost += [evidence[f"{what}_{side}"] for what in ("runs", "hits") for side in sides] != total
    return int(twice), lost


def _cost(quick: bool) -> list[list[str]]:
    """CPU seconds of the driver and its workers, of the same audits with a store and without."""
    from dpaudit import AdjacentPair, AuditSpec, PureDP
    from dpaudit.auditing import run_audit
    from dpaudit.catalogue import additive
    from dpaudit.execution.engine import Engine
    from dpaudit.ledger.results import Ledger
    from dpaudit.ledger.runs import LedgerJournal
    from dpaudit.mechanisms import wrap

    def per_run(data: int, rng: np.random.Generator) -> float:
        return data + rng.laplace(scale=1.2)

    ways: dict[str, tuple[Any, dict[str, Any]]] = {
        "per run, 1,000,000 runs": (wrap(per_run), {"runs": 100_000 if quick else 1_000_000}),
        "batched, 10,000,000 runs": (additive.laplace, {"runs": 1_000_000 if quick else 10_000_000}),
        "anytime, 20,000 runs": (additive.laplace, {"runs": 20_000, "stopping": "anytime"}),
        "small, 20,000 runs": (wrap(per_run), {"runs": 20_000}),
    }
    rows = []
    with tempfile.TemporaryDirectory() as folder, Ledger(Path(folder, "ledger.sqlite")) as ledger:
        for number, (name, (mechanism, keys)) in enumerate(ways.items()):
            spec = AuditSpec(claim=PureDP(1.0), mechanism=mechanism, pairs=(AdjacentPair(10, 9),), **keys)
            spent: dict[bool, list[float]] = {False: [], True: []}
            for turn in range(3):
                for kept in (False, True):
                    with Engine(1) as engine:
                        if kept:
                            engine.keep_in(LedgerJournal(ledger, f"{name}{turn}", number))
                        before = time.process_time()
                        run_audit(spec, engine)
                        spent[kept].append(time.process_time() - before)
            without, with_ = (min(spent[kept]) for kept in (False, True))
            rows.append([name, f"{without:.2f}", f"{with_:.2f}", f"{with_ / without:.3f}"])
    return rows
