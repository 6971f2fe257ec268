"""What a user writes first, and what they see: forty small tasks on a terminal, with the time to the first verdict.

Each task is a script, a command or a test of its own process on a pseudo-terminal of 80 columns. The table tells the
line that answers, the processor time until it is there, and the longest time without a byte on the terminal: a task
that says nothing for more than two seconds is silent, start of Python and imports counted in.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from benchmarks.tables import print_table
from benchmarks.tasks.listed import TASKS
from benchmarks.tasks.terminal import Seen, on_a_terminal

ROOT = Path(__file__).resolve().parents[2]
SILENT_S = 2.0  # without a byte: a user begins to wonder
QUICK = 10  # every tenth task shows that it runs


def run(quick: bool = False) -> None:
    """Prints the table, and how many of the tasks were answered and how many were silent."""
    rows, missed, silent = [], 0, 0
    for task in TASKS[:: QUICK if quick else 1]:
        with tempfile.TemporaryDirectory() as folder:
            seen = None
            for step in task.steps(Path(folder)):
                seen = on_a_terminal(step, Path(folder), environment())
                if seen.status != step.status or seen.line is None:
                    break
        assert seen is not None
        met = seen.line is not None and seen.status == step.status
        missed += not met
        silent += seen.silent_s > SILENT_S
        rows.append((task.title, f"`{task.shown}`", told(seen), f"{seen.cpu_s:.1f}", f"{seen.silent_s:.1f}"))
    print_table(
        "What a user writes first, and sees",
        ("task", "what is written", "what is seen", "CPU s to the verdict", "longest silence, s"),
        rows,
    )
    print(
        f"\n{len(rows) - missed} of {len(rows)} answered as they should be; {silent} silent for more than {SILENT_S} s."
    )


def told(seen: Seen) -> str:
    """The line that answers, or what stood in its place."""
    if seen.line is None:
        return f"**not what was hoped for**, exit {seen.status}: {seen.last}"
    return seen.line.replace("|", "\\|")


def environment() -> dict[str, str]:
    """The user's own, and the package of this tree; bars on a terminal are drawn as nowhere else than in CI."""
    kept = {key: value for key, value in os.environ.items() if key not in ("CI", "NO_COLOR")}
    paths = os.pathsep.join(filter(None, [str(ROOT), kept.get("PYTHONPATH")]))
    return (
        kept
        | {"PYTHONPATH": paths, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "40"}
        | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])}
    )
