"""Runs in fresh processes: each imports the mechanism anew and makes its first runs, whatever others have kept.

A few hosts load this package and nothing of the user's; each forks a process for every task, which opens the mechanism,
runs it, and ends. So many processes cost little more than the import of the mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpaudit.errors import UnsoundAudit
from dpaudit.outputs import Outputs
from dpaudit.sampling.pools import LostWorker, Processes
from dpaudit.sampling.tasks import FreshTask, run_alone
from dpaudit.sampling.worker import Job

INTERPRETERS = 2  # fresh ones, each with a hash seed of its own; the processes are shared among them


def run_fresh(job: Job, work: Sequence[FreshTask], *, at_once: int = 1, until: float = math.inf) -> list[Outputs]:
    """The outputs of each task, made in a process of its own; the job carries its mechanism as a payload.

    Raises the error that a mechanism's process reported, `OutOfTime` past `until` (of `time.monotonic()`), and
    `UnsoundAudit` where a process was lost twice.
    """
    found: dict[int, Outputs] = {}
    for _ in range(2):  # a lost process is run once more, with the same seed, as any worker is
        missing = [place for place in range(len(work)) if place not in found]
        pool = Processes(min(at_once, INTERPRETERS), anew=True, spread=INTERPRETERS)
        try:
            for number, (outputs,) in pool.numbered(run_alone, [(job, work[place]) for place in missing], until):
                found[missing[number]] = outputs
        except LostWorker:
            continue
        finally:
            pool.close()
    if len(found) < len(work):
        raise UnsoundAudit(
            "a fresh process ended twice before its runs were done: the mechanism ended it, hung past "
            "run_timeout_s or ran out of memory; no verdict"
        )
    return [found[place] for place in range(len(work))]
