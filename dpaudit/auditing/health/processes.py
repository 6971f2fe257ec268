"""What fresh processes tell: a cache from a deterministic mechanism, and whether every process draws the same.

Where each side is constant, runs in one process prove nothing: a value kept from the first call would look the same.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpaudit.auditing.health.checks import NOTHING, SeenBy, Twins
from dpaudit.base.arrays import Bools
from dpaudit.certify import independence
from dpaudit.errors import InvalidSpec, UnsoundAudit
from dpaudit.execution.engine import Session
from dpaudit.outputs.canonical import Outputs, Pilot, concatenate
from dpaudit.processes.tasks import FreshTask
from dpaudit.running.order import PRINTED, words
from dpaudit.running.streams import Shard, Stage
from dpaudit.running.worker import Probe

MOST_PROCESSES = 1 << 12
TWINS, TWIN_RUNS = 8, 64  # fresh processes that are compared before a refutation, and the least runs of each
TWIN_S, FEWEST_TWIN_RUNS = 2.0, 16  # seconds of runs in each of two processes that are compared, or so many runs


class NoProcesses(UnsoundAudit):
    """Runs in fresh processes cannot be had: too many would be needed, or the mechanism does not open there."""


@dataclass(frozen=True, slots=True)
class FreshRuns:
    """The first run of each of several fresh processes: outputs and sides in order, and whether a cache shows."""

    outputs: Outputs
    sides: Bools
    seen: SeenBy

    @property
    def runs(self) -> int:
        """The number of processes, one run each."""
        return self.outputs.runs


def processes_needed(refutes: Callable[[int], bool]) -> int:
    """How many processes to start, their sides drawn by coins, so that outputs which tell their dataset refute.

    `refutes(n)` says whether all hits in n runs of one side and none in n of the other refute the claim. Raises
    `NoProcesses` where it would take more than `MOST_PROCESSES`.

    >>> processes_needed(lambda runs: runs >= 23)
    77
    """
    low, high = 0, 1
    while high <= MOST_PROCESSES and not refutes(high):
        low, high = high, 2 * high
    while high - low > 1 and high <= MOST_PROCESSES:
        middle = (low + high) // 2
        low, high = (low, middle) if refutes(middle) else (middle, high)
    count = 2 * high + int(4.0 * (2.0 * high) ** 0.5) + 4  # a side has fewer than `high` in one case of a thousand
    if count > MOST_PROCESSES:
        raise NoProcesses(
            "constant outputs: each dataset always gave one output of its own, as a cache does, and fresh processes to "
            f"tell would be more than {MOST_PROCESSES:,}; give a lower confidence"
        )
    return count


def run_processes(session: Session, pair: int, pilot: Pilot | None, count: int, start: int = 0) -> FreshRuns:
    """One run in each of `count` fresh processes, against the constants that the pilot found in this one, if any.

    Their streams are those from number `start` on. Raises `NoProcesses` where the mechanism cannot be opened there.
    `seen` has the p-value of so many processes unlike the pilot, were all runs independent.
    """
    coins, _ = Shard(Stage.FRESH, pair, start, count).streams(session.job.seed)
    sides = coins.integers(2, size=count).astype(np.bool_)
    work = [FreshTask(Shard(Stage.FRESH, pair, start + k, 1), (bool(side),)) for k, side in enumerate(sides)]
    try:
        outputs = concatenate(session.fresh(work))
    except InvalidSpec as error:
        raise NoProcesses(
            "constant outputs: each dataset always gave one output of its own, as a cache does, and the mechanism "
            f"cannot be opened in a fresh process, which would tell ({error}); build it with dpaudit.built_by(make)"
        ) from None
    if pilot is None or not (outputs.complete and pilot.first.complete and pilot.second.complete):
        return FreshRuns(outputs, sides, NOTHING)  # parts that were left out cannot be compared
    codes = words(outputs, count)
    logs, differing = [], 0
    for side, before in ((False, pilot.first), (True, pilot.second)):
        others = codes[sides == side]
        unlike = int(np.count_nonzero(others != words(before, 1)[0]))
        differing += unlike
        logs.append(independence.strangers(before.runs, unlike, len(others)))
    seen = SeenBy(
        independence.least(logs),
        f"all {pilot.runs:,} runs of one process gave one output for each dataset, and "
        f"{differing} of {count} fresh processes another: an answer is kept from call to call, or made of what differs "
        "from process to process",
    )
    return FreshRuns(outputs, sides, seen if differing else NOTHING)


def compare_twins(
    session: Session, pair: int, probe: Probe, runs: int = 2 * PRINTED, *, refuted: bool = False
) -> Twins | None:
    """Shards made in fresh processes, of at most `runs` runs in all, once the certifying runs are done; or None.

    What a process keeps for itself sets its shard apart from the others. Where a mechanism does not repeat itself on
    equal streams, and the certifying runs were spread over processes, as those of an audit are that was taken up after
    a kill, there are two, with the same sides, so that equal streams show run by run; in one process, a stream that
    others would repeat is sound, and so is a mechanism that only opens there. Before a refutation there are `TWINS` of
    what does not repeat itself, if need be with more runs, unless time is limited: fewer could not show that each
    keeps a part of its noise.
    """
    spread = not (probe.reproducible or session.one_process)
    many = refuted and not probe.reproducible and session.engine.limit is None
    processes = TWINS if many else 2 if spread else 1
    affordable = runs if probe.reproducible else max(FEWEST_TWIN_RUNS, int(TWIN_S / max(probe.run_s, 1e-9)))
    each = max(1, min(PRINTED, max(runs // processes, many * TWIN_RUNS), affordable))
    sides = np.arange(each) >= each // 2
    work = [FreshTask(Shard(Stage.FRESH, pair, k, each), tuple(sides.tolist())) for k in range(processes)]
    try:
        outputs = session.fresh(work)
    except InvalidSpec:  # made in this process alone, and used here alone
        if spread:
            raise
        return None
    if not spread and all(map(_always_raises, outputs)):
        return None  # what this process has set up for it is not there
    parts = [Pilot(each_output.take(~sides), each_output.take(sides), sides, (each,)) for each_output in outputs]
    return Twins(Pilot.joined(parts), spread)


def _always_raises(outputs: Outputs) -> bool:
    column = outputs.columns.get(())
    if column is None or column.codes is None:
        return False
    return all(outputs.labels.get(code, "").startswith("raised ") for code in np.unique(column.codes).tolist())
