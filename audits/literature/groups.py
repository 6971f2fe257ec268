"""The sections beside the benchmark itself: StatDP's own set, CheckDP's wrong programs, and soundness over the rows."""

from __future__ import annotations

from collections.abc import Callable

from audits.literature import checkdp, soundness, statdp
from audits.literature.table import Table


def statdp_section(n_jobs: int = -1) -> Table:
    """StatDP's mechanisms at its claims. Like the others it raises what `dpaudit.audit` raises."""
    return statdp.table(statdp.attempts(n_jobs=n_jobs))


def checkdp_section(n_jobs: int = -1) -> Table:
    """CheckDP's wrong programs."""
    return checkdp.table([checkdp.audited(each, n_jobs=n_jobs) for each in checkdp.programs()])


def soundness_section(n_jobs: int = -1) -> Table:
    """The repetitions of every row."""
    return soundness.table(soundness.tallies(n_jobs=n_jobs))


SECTIONS: dict[str, Callable[[int], Table]] = {  # the answers do not depend on the processes, the seconds do
    "StatDP's mechanisms": statdp_section,
    "CheckDP's wrong programs": checkdp_section,
    "soundness": soundness_section,
}
