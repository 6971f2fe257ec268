"""The peak memory of the parent process at ten times the runs: nothing may grow with their number."""

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


def run(quick: bool) -> None:
    """Prints the table; `quick` takes a tenth of the runs."""
    sizes = (10**6, 10**7) if quick else (10**7, 10**8)
    peaks = []
    for runs in sizes:
        command = [sys.executable, "-c", PROGRAM.format(runs=runs)]
        out = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(int(out.stdout.split()[0]) / 1024)
    rows = [(f"{runs:,}", f"{peak:.1f}") for runs, peak in zip(sizes, peaks, strict=True)]
    rows.append(("ratio (goal 1.05)", f"{peaks[1] / peaks[0]:.3f}"))
    print_table("Peak memory of the parent, batched mechanism, two threads", ("runs", "MiB"), rows)
