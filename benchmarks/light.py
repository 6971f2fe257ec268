"""What it costs to start: CPU time of `import dpaudit` and of `dpaudit --help`, and what they load."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys

from benchmarks.tables import print_table

ROUNDS = 5
HEAVY = ("numpy", "scipy", "scipy.stats", "pandas", "statsmodels", "matplotlib", "sklearn", "joblib", "rich", "pytest")
LINES = (
    ("python alone", ["-c", "pass"], None),
    ("import dpaudit", ["-c", "import dpaudit"], 250.0),
    ("import dpaudit, and every public name", ["-c", "from dpaudit import *"], None),
    ("dpaudit --help", ["-m", "dpaudit", "--help"], 150.0),
)
LOADED = "import json, sys; print(json.dumps(sorted(sys.modules)))"


def cpu_ms(arguments: list[str]) -> float:
    """CPU milliseconds of one Python process, user and system."""
    child = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, arguments
    return (usage.ru_utime + usage.ru_stime) * 1e3


def heavy(program: str) -> tuple[int, list[str]]:
    """How many modules a program leaves loaded, and which of the heavy ones."""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    loaded = set(json.loads(out.splitlines()[-1]))
    return len(loaded), [name for name in HEAVY if name in loaded]


def run(quick: bool) -> None:
    """Prints the table; `quick` changes nothing."""
    programs = (
        LOADED,
        f"import dpaudit; {LOADED}",
        f"from dpaudit import *; {LOADED}",
        "import sys, atexit, json; sys.argv = ['dpaudit', '--help']; "
        f"atexit.register(lambda: exec({LOADED!r})); from dpaudit.cli import main; main()",
    )
    rows = []
    for (title, arguments, goal), program in zip(LINES, programs, strict=True):
        times = [cpu_ms(arguments) for _ in range(ROUNDS + 1)][1:]  # the first may compile
        median = statistics.median(times)
        count, found = heavy(program)
        met = "" if goal is None else f"{goal:g} {'met' if median <= goal else 'MISSED'}"
        rows.append(
            (
                title,
                f"{median:.0f}",
                f"{min(times):.0f} to {max(times):.0f}",
                met,
                f"{count}",
                ", ".join(found) or "none",
            )
        )
    header = ("process", "CPU ms, median of 5", "all", "goal", "modules", "heavy ones")
    print_table("Light: CPU time of starting", header, rows)
