"""The lines that a mechanism executes, for the coverage of whoever audits it: a few runs of its own under a tracer.

They are made once its audit has its result, in the process of the mechanism: nothing of the result depends on them.
"""

import json
import pickle
import sys
import time
import warnings
from contextlib import suppress
from typing import Any

import numpy as np

from dpaudit.execution.engine import Engine
from dpaudit.mechanisms.protocol import Mechanism
from dpaudit.processes.pools import pickled

RUNS = 20  # on each dataset,
ENOUGH_S = 1.0  # but no further round of them after so long,
PATIENCE_S = 10.0  # and an end after so long
OPTIONS = ("branch", "cover_pylib", "include", "omit", "relative_files", "source", "source_pkgs")


def cover(engine: Engine, mechanism: Mechanism, pairs: tuple[Any, ...]) -> None:
    """Adds the lines of the mechanism to the coverage that measures this process; does nothing where none does."""
    coverage = sys.modules.get("coverage")
    measuring = None if coverage is None else coverage.Coverage.current()
    if measuring is None:
        return
    with suppress(Exception):  # what becomes of a figure of coverage never fails an audit that has its result
        options = {name: measuring.get_option(f"run:{name}") for name in OPTIONS}
        task, until = (pickled((mechanism, pairs, options)),), time.monotonic() + PATIENCE_S
        reply = next(engine.workers.child.with_threads(1).run(traced, [task], until))
        lines_of = {file: json.loads(lines) for file, lines in reply.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of modules that the session has yet to import
            data = measuring.get_data()
        if options["branch"]:
            data.add_arcs({file: [(line, then) for line, then in arcs] for file, arcs in lines_of.items()})
        else:
            data.add_lines(lines_of)


def traced(payload: bytes) -> dict[str, str]:
    """The lines of each file that these runs executed, or the jumps between lines, as JSON: in the mechanism's process.

    What it answers are words, as of every process that runs a mechanism.
    """
    import coverage

    mechanism, pairs, options = pickle.loads(payload)
    meter = coverage.Coverage(data_file=None, config_file=False, messages=False)
    for name, value in options.items():
        meter.set_option(f"run:{name}", value)
    datasets = [data for pair in pairs for data in pair.open()]
    begun = time.monotonic()
    meter.start()
    try:
        opened, rng = mechanism.open(), np.random.default_rng(0)
        many = opened.size or max(RUNS, opened.smallest_batch)
        for _ in range(RUNS if opened.per_run else 1):
            for data in datasets:
                with suppress(Exception, SystemExit):  # an output like any other
                    opened.call(data, rng) if opened.per_run else opened.call(data, many, rng)
            if time.monotonic() > begun + ENOUGH_S:
                break
    finally:
        meter.stop()
    measured = meter.get_data()
    of = measured.arcs if options["branch"] else measured.lines
    return {file: json.dumps(of(file)) for file in measured.measured_files()}
