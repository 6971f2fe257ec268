"""The clock of an audit: how many of the runs that are still wanted fit into its time, and when each stage ends.

Without a deadline all runs fit, nothing is ended, and certification has one milestone, that of all its runs.

Where the end lies is decided by time alone, which may depend on outputs: `docs/statistics/deadline.md`.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from dpaudit.auditing.question import Plan
from dpaudit.certify.certificate import divided
from dpaudit.certify.sequential import Milestones
from dpaudit.execution.engine import Engine, Session
from dpaudit.execution.executor import Limit
from dpaudit.options import FEWEST_RUNS
from dpaudit.results.observations import Explored

CAUTIOUS = 0.9  # of the runs that fit, where not all do: the load may go on growing
PLANNING_PART = 0.1  # of the time that is left when the first runs are done
SEARCH_PART = 0.5  # of the time that is left after the probe: search ends then, and its runs mostly long before
SEARCH_GRACE = 0.15  # of it, for the runs of search that are under way
CHECKS_PART, CHECKS_S, OPENINGS = 0.2, 5.0, 4.0  # of all the time, kept for fresh processes: at most so long
CONTROLS_PART = 0.5  # of all the time, for spiked controls
FEW_PART = 0.5  # of the runs before a look: with fewer since, the speed is that of both together
DRAWN = 0.8  # of the fewest runs: the side with less of them may have that part of a half


class Clock:
    """Starts when it is made, with `limit_s` seconds to go, None without a deadline; `now` is the time in seconds."""

    def __init__(self, limit_s: float | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self.now, self.limited, self.limit_s = now, limit_s is not None, math.inf if limit_s is None else limit_s
        self.started = now()
        self.end = self.started + self.limit_s
        self.for_checks = self.run_s = 0.0
        self.begin()

    def begin(self, runs: int = 0, opening_s: float = 0.0) -> None:
        """The next speed is that of the runs from here on: so many there were before, and so long processes took."""
        self.since = self.before = runs, self.now(), opening_s

    def opened(self, session: Session) -> None:
        """The probe is done: what it took tells how long fresh processes may take to begin, after certification."""
        self.for_checks = min(CHECKS_PART * self.limit_s, CHECKS_S + OPENINGS * (self.now() - self.started))
        self.begin(opening_s=session.opening_s)

    def fitting(self, wanted: int, session: Session) -> int:
        """How many of `wanted` runs there is time for, at the speed of the session's runs since the last look."""
        if not self.limited:
            return wanted
        return session.decided("runs that fit", lambda: self._fitting(wanted, session.made, session.opening_s))

    def certifiable(self, plan: Plan, wanted: int, session: Session) -> int:
        """How many of `wanted` certifying runs there is time for, once and for all: an end may depend on outputs."""
        return min(wanted, max(fewest(plan), self.fitting(wanted, session))) if self.limited else wanted

    def milestones(self, plan: Plan, ends: list[int]) -> Milestones:
        """Those among the numbers of certifying runs `ends` of a witness: the same for all pairs."""
        return Milestones.among(ends if self.limited else ends[-1:], partial(_refutable, plan))

    def _fitting(self, wanted: int, runs: int, opening_s: float) -> int:
        since = self.since
        if runs - since[0] < FEW_PART * (since[0] - self.before[0]):  # such may be made one after the other
            since = self.before
        self.begin(runs, opening_s)
        self.before, now = since, self.since[1]
        if runs > since[0]:  # else the speed is that of the look before; processes begin once
            took = now - since[1]
            self.run_s = max(took / OPENINGS, took - (opening_s - since[2])) / (runs - since[0])
        left = max(0.0, self.end - self.for_checks - now)
        return wanted if left >= wanted * self.run_s else int(CAUTIOUS * left / self.run_s)

    def limits(self, engine: Engine, seconds: float | None = None, grace_s: float = 0.0) -> None:
        """Nothing that runs on the engine from here on takes longer: than what is left, or so many seconds of it."""
        end = self.end if seconds is None else self.now() + seconds
        if self.limited:
            engine.limit = Limit(lambda: end - self.now(), self.now is time.monotonic, grace_s)

    @contextmanager
    def over(self, engine: Engine) -> Iterator[None]:
        """Limits what runs on the engine to what is left, until the end of the block."""
        self.limits(engine)
        try:
            yield
        finally:
            engine.limit = None

    def planning(self, engine: Engine) -> None:
        """A look at the speed of the runs begins."""
        self.limits(engine, PLANNING_PART * (self.end - self.now()))

    def searching(self, engine: Engine) -> None:
        """Search, or what learns what to bet on, begins."""
        left = self.end - self.for_checks - self.now()
        self.limits(engine, SEARCH_PART * left, SEARCH_GRACE * left)

    def certifying(self, engine: Engine, witnesses: int) -> None:
        """The runs of one of so many witnesses begin, which share the time that is left."""
        self.limits(engine, (self.end - self.for_checks - self.now()) / witnesses)

    def without_controls(self) -> "Clock":
        """The same clock with an end before the time of spiked controls."""
        earlier = Clock(CONTROLS_PART * self.limit_s if self.limited else None, self.now)
        earlier.started, earlier.end = self.started, self.started + earlier.limit_s
        return earlier


def fewest(plan: Plan) -> int:
    """The least number of certifying runs that is planned, however little time there is: a total leak refutes with it.

    At most `FEWEST_RUNS`, and with some runs more, for the sides are drawn by coins.
    """
    enough = (runs for runs in range(10, FEWEST_RUNS, 10) if _refutable(plan, int(DRAWN * runs), 1.0))
    return next(enough, FEWEST_RUNS)


def _refutable(plan: Plan, runs: int, part: float) -> bool:
    claim = plan.claim.at_distance(min(pair.distance for pair in plan.pairs))
    level = divided(plan.fixed_level, 1.0 / part)
    return plan.certifier.at(claim).refutable(runs // 2, runs // 2, claim, level)


def cut(part: str, planned: int) -> Explored:
    """What is said where there was no time for all runs: a repetition gives other counts."""
    status = f"there was time for {part} of {planned:,}; a repetition without max_time_s makes all of them"
    return Explored("time", "max_time_s", status)
