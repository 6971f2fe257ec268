"""The pytest plugin as a project meets it: false alarms of sound audits, the time to a failure, the cost of loading."""

from __future__ import annotations

import os
import re
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.light import cpu_ms
from benchmarks.tables import print_table

SEEDS, AUDITS = 5, 200
ROUNDS = 5
LONGEST_S, LONGEST_LINES, LOADING_MS = 5.0, 25, 30.0
PLAIN = "import pytest"
LOADED = "import pytest, dpaudit.pytest_plugin"

# each loses exactly what it claims on its pair, so that nothing but the certificate stands between it and an alarm
SOUND = """
import numpy as np
import pytest
import dpaudit

EPSILONS = [0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5, 3.0]
KINDS = ["laplace", "geometric", "response", "histogram", "batched"]

def made(kind, epsilon):
    if kind == "laplace":
        return lambda data, rng: data + rng.laplace(scale=1 / epsilon)
    if kind == "geometric":
        stop = 1 - np.exp(-epsilon)
        return lambda data, rng: data + int(rng.geometric(stop) - rng.geometric(stop))
    if kind == "response":
        truth = 1 / (1 + np.exp(-epsilon))
        return lambda data, rng: data if rng.random() < truth else 1 - data
    if kind == "histogram":
        return lambda data, rng: {"a": data + rng.laplace(scale=1 / epsilon), "b": 3 + rng.laplace(scale=1 / epsilon)}
    return dpaudit.batched(lambda data, runs, rng: data + rng.laplace(scale=1 / epsilon, size=runs))

@pytest.mark.parametrize("again", range(4))
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", KINDS)
def test_sound(audit, kind, epsilon, again):
    result = audit(made(kind, epsilon), pair=(0, 1), epsilon=epsilon, seed=1000 * again + SEED)
    assert result.spec["runs"] == 200_000
"""

TWINS = """
def broken(rows, rng):
    return len(rows) + rng.laplace(scale=0.5)

def sound(rows, rng):
    return len(rows) + rng.laplace(scale=1.0)

def test_broken(audit):
    audit(broken, pair=(["a"] * 10, ["a"] * 9), epsilon=1.0)

def test_sound(audit):
    audit(sound, pair=(["a"] * 10, ["a"] * 9), epsilon=1.0)
"""


@dataclass(frozen=True)
class Ended:
    """How a session ended: its output, and the seconds it took."""

    out: str
    seconds: float
    cpu_s: float


def session(folder: Path, *arguments: str) -> Ended:
    """A test session in a folder, in a process of its own."""
    start, before = time.perf_counter(), os.times()
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "160"},
        capture_output=True,
        text=True,
    )
    after = os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return Ended(ended.stdout + ended.stderr, time.perf_counter() - start, spent)


def goal(value: float, most: float) -> str:
    """The goal, and whether it is met."""
    return f"{most:g} {'met' if value <= most else 'MISSED'}"


def run(quick: bool) -> None:
    """Prints the tables; `quick` makes a tenth of the sound audits with one seed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _alarms(folder, quick)
        _failures(folder)
    _loading()


def _alarms(folder: Path, quick: bool) -> None:
    rows = []
    for _ in range(1 if quick else SEEDS):
        seed = secrets.randbits(24)
        (folder / "test_sound.py").write_text(SOUND.replace("SEED", str(seed)))
        chosen = ("-k", "1.0-0 or 0.1-1") if quick else ()
        ended = session(folder, "test_sound.py", "-n", "2", "--dpaudit-profile", "ci", *chosen)
        found = re.search(r"^(\d+) audits?: (\d+) refuted, (\d+) not refuted, (\d+) without verdict", ended.out, re.M)
        assert found is not None, ended.out[-3000:]
        audits, refuted, _, lost = (int(number) for number in found.groups())
        assert quick or audits == AUDITS, audits
        rows.append((f"{seed}", f"{audits}", f"{refuted}", f"{lost}", f"{ended.seconds:.0f}"))
    header = ("seed, new each time", "sound audits", "refuted", "without verdict", "s, two processes")
    print_table("Plugin: false alarms in the CI profile (goal: none)", header, rows)


def _failures(folder: Path) -> None:
    (folder / "test_twins.py").write_text(TWINS)
    rows = []
    for test in ("test_broken", "test_sound"):
        for profile in ("dev", "ci"):
            ended = session(folder, f"test_twins.py::{test}", "--dpaudit-profile", profile)
            outcome = "failed" if "1 failed" in ended.out else "did not fail" if "1 passed" in ended.out else "?"
            lines = sum(line.startswith("E ") for line in ended.out.splitlines())
            took = f"{ended.seconds:.1f}", goal(ended.seconds, LONGEST_S), f"{ended.cpu_s:.1f}"
            rows.append((test, profile, outcome, *took, f"{lines}", goal(lines, LONGEST_LINES)))
    header = ("test", "profile", "outcome", "s, the whole session", "goal", "CPU s", "lines of the message", "goal")
    print_table("Plugin: a broken mechanism and its sound twin", header, rows)


def _loading() -> None:
    medians = [
        statistics.median([cpu_ms(["-c", program]) for _ in range(ROUNDS + 1)][1:]) for program in (PLAIN, LOADED)
    ]
    cost = medians[1] - medians[0]
    rows = [(f"{medians[0]:.0f}", f"{medians[1]:.0f}", f"{cost:.0f}", goal(cost, LOADING_MS))]
    print_table("Plugin: CPU ms of loading it", ("import pytest", "and the plugin", "the plugin", "goal"), rows)
