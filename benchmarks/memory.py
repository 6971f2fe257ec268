"""The peak memory of the parent process: nothing grows with the runs, and of wide outputs there is one copy."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.tables import print_table

PROGRAM = """
import resource
import numpy as np
import dpaudit
def mechanism(data, runs, rng):
    return data + rng.laplace(0.0, 1.0, runs)
result = dpaudit.audit(dpaudit.batched(mechanism), pair=(10.0, 9.0), epsilon=1.0, runs={runs}, n_jobs=2)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, result.runs_used)
"""
WIDE = """
import resource
import dpaudit
def number(data, rng):
    return data + rng.laplace()
def vector(data, rng):
    return data + rng.laplace(0.0, 1.0, 1_000)
dpaudit.audit(number, pair=(10.0, 9.0), epsilon=1.0, runs=2_000, n_jobs=1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
dpaudit.audit(vector, pair=(10.0, 9.0), epsilon=1.0, runs={runs}, n_jobs=1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def run(quick: bool) -> None:
    """Prints the tables; `quick` takes a tenth of the runs."""
    sizes = (10**6, 10**7) if quick else (10**7, 10**8)
    peaks = [_mebibytes(PROGRAM, runs) for runs in sizes]
    rows = [(f"{runs:,}", f"{peak:.1f}") for runs, peak in zip(sizes, peaks, strict=True)]
    rows.append(("ratio (goal 1.05)", f"{peaks[1] / peaks[0]:.3f}"))
    print_table("Peak memory of the parent, batched mechanism, two threads", ("runs", "MiB"), rows)
    runs = 10**4 if quick else 10**5
    wide = [(f"{runs:,}", f"{_mebibytes(WIDE, runs):.1f}")]
    print_table("What vectors of 1,000 numbers add to it, one thread (goal 250)", ("runs", "MiB"), wide)


def _mebibytes(program: str, runs: int) -> float:
    command = [sys.executable, "-c", program.format(runs=runs)]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(out.stdout.split()[0]) / 1024
