"""The checks of the experiment itself, as a result keeps them: a check can only end an audit without a verdict."""

from dataclasses import dataclass

from dpaudit.errors import UnsoundAudit

LEAST = 1e-300
LEVEL = 1e-6  # the chance that a sound audit of any mechanism is stopped by any check
SERIAL = "serial dependence"
BETWEEN = "over-dispersion between shards"
ONE_OUTPUT = "every search run on both datasets gave one and the same output; a constant tells nothing of the data"
CURES = {
    "repeated streams": "draw from the rng argument or from the system's entropy, never from a generator that is "
    "seeded on import, copied to each worker or shared through a fork; or use n_jobs=1",
    "constant outputs": "draw fresh noise in every call: not from a cache, nor a seed that is made of the data",
    SERIAL: "draw fresh noise in every call, and keep nothing of one call for the next",
    "state between calls": "keep nothing of one dataset for the next call: make the mechanism's object anew each time",
    "drift inside a shard": "let no counter, budget or growing state change what a call does; make it anew in each run",
    "drift over shards": "let no counter, budget or growing state change what a call does; make it anew in each run",
    BETWEEN: "draw from the rng argument; let no worker keep a seed or a draw of its own",
}
CHECKS = tuple(CURES)


@dataclass(frozen=True, slots=True)
class Check:
    """One check of the experiment's health.

    Its p-value under independent runs (as log10, rounded up), the level it alarms at, what it saw. `finding` and `cure`
    are empty where there is no alarm.
    """

    name: str
    log10_p: float
    level: float
    finding: str = ""
    cure: str = ""

    @property
    def p_value(self) -> float:
        """The p-value, at least 1e-300."""
        return max(LEAST, 10.0**self.log10_p) if self.log10_p > -300.0 else LEAST

    @property
    def alarm(self) -> bool:
        """Whether the runs are not independent."""
        return self.p_value <= self.level


@dataclass(frozen=True, slots=True)
class Health:
    """All checks of the experiment's health, and notes.

    Notes are no failures.
    """

    checks: tuple[Check, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def alarms(self) -> tuple[Check, ...]:
        """The checks that alarm, the strongest first."""
        return tuple(sorted((check for check in self.checks if check.alarm), key=lambda check: check.log10_p))

    @property
    def sound(self) -> bool:
        """Whether no check alarms."""
        return not self.alarms

    def raise_if_unsound(self) -> "Health":
        """Itself; raises `UnsoundAudit` naming the checks that alarm, the worst with numbers and cure, in one line."""
        if self.sound:
            return self
        worst, *more = self.alarms
        also = f"; also {', '.join(check.name for check in more)}" if more else ""
        cures = dict.fromkeys(check.cure for check in (worst, *more[:1]))
        raise UnsoundAudit(
            f"{worst.name}: {worst.finding} (p-value {worst.p_value:.1e}, level {worst.level:.1e}){also}; "
            f"runs that depend on each other give no verdict; {'; or '.join(cures)}"
        )
