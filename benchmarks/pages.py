"""The HTML report of a suite of 100 audits: seconds and kilobytes, the overview alone and with all its pages."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.tables import print_table

PROGRAM = """
import json, tempfile, time
from dataclasses import replace
from pathlib import Path
import dpaudit
from dpaudit import report
from dpaudit.results.suite import SuiteEntry, SuiteResult
from dpaudit.report import html

@dpaudit.batched
def laplace(data, runs, rng):
    return data + rng.laplace(0.0, 1.0, runs)

@dpaudit.batched
def normal(data, runs, rng):
    return data + rng.normal(0.0, 1.0, runs)

forms = [dict(epsilon=0.5), dict(epsilon=1.0, delta=1e-3), dict(claim=dpaudit.GaussianDP(1.0)),
         dict(claim=dpaudit.RenyiDP(2.0, 1.0)), dict(epsilon=0.5, stopping="anytime")]
entries = []
for number in range({audits}):
    made = dpaudit.audit((laplace, normal)[number % 2], pair=(1.0, 0.0), runs=20_000, seed=number, n_jobs=1,
                         **forms[number % len(forms)])
    name = f"audit {{number}} of a mechanism with a name of usual length"
    made = replace(made, spec={{**made.spec, "name": name}})
    entries.append(SuiteEntry(name, made.verdict, made))
suite = SuiteResult(tuple(entries), 0.99)
names = report.record_names(suite)

def spent(what):
    start, cpu = time.monotonic(), time.process_time()
    found = what()
    return time.monotonic() - start, time.process_time() - cpu, found

first, first_cpu, page = spent(lambda: html.render_suite(suite, html.page_names(names), names))
with tempfile.TemporaryDirectory() as folder:
    whole, whole_cpu, paths = spent(lambda: report.write_suite(suite, folder, ["html"]))
    sizes = [path.stat().st_size for path in paths]
print(json.dumps([first, first_cpu, len(page), whole, whole_cpu, max(sizes[1:])]))
"""


def run(quick: bool) -> None:
    """Prints the table; `quick` takes a tenth of the audits."""
    audits = 10 if quick else 100
    command = [sys.executable, "-c", PROGRAM.format(audits=audits)]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    first, first_cpu, size, whole, whole_cpu, largest = map(float, out.stdout.strip("[] \n").split(","))
    rows = [
        ("overview alone, with loading", f"{first:.1f}", f"{first_cpu:.1f}", f"{size / 1000:.0f}", "5 s, 400 kB"),
        (
            "overview and pages",
            f"{whole:.1f}",
            f"{whole_cpu:.1f}",
            f"{largest / 1000:.0f}",
            "60 s, 300 kB a page",
        ),
    ]
    print_table(f"HTML of {audits} audits", ("what", "s", "s of CPU", "largest file in kB", "goal"), rows)
