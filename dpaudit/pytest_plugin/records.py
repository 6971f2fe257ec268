"""The runs and confidence of the audits of a session, by profile, project and command line; and records of them.

Records are small plain values that travel between processes.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from dpaudit.options import OPTIONS, precedence

CONFIDENCE = 1.0 - 1e-6  # of each audit: a suite of a thousand then refutes falsely once in a thousand sessions
PROFILES = {"dev": 20_000, "ci": 200_000, "nightly": 5_000_000}  # the runs of an audit
DEFAULT, FRESH = "dev", "nightly"  # the profile where none is named, and the one whose sessions have a new seed each


@dataclass(frozen=True, slots=True)
class Defaults:
    """The options of the audits of a session that their test does not set, and those that go before a test.

    `command` are those of the command line, `usual` the defaults behind those of a test.
    """

    profile: str
    usual: dict[str, Any]
    command: dict[str, Any]

    @property
    def line(self) -> str:
        """The defaults as the header of a session prints them."""
        told = precedence(self.command, self.usual)
        runs = f"{told['runs']:,} runs an audit" + ("" if "runs" in self.command else " whose test sets none")
        return f"profile {self.profile}, {runs}, seed {told['seed']}"

    def settle(self, options: dict[str, Any]) -> dict[str, Any]:
        """The keywords of an audit: of the command line, then of its test, then the usual ones.

        >>> Defaults("dev", {"runs": 20_000, "seed": 0}, {"seed": 7}).settle({"runs": 500, "seed": 1})
        {'seed': 7, 'runs': 500}
        """
        return precedence(self.command, options, self.usual)


def plan(
    *, profile: str | None, command: dict[str, Any], settings: dict[str, Any], fresh: int | None = None
) -> Defaults:
    """The defaults of a session: the command line, then [tool.dpaudit], then the default profile.

    A profile of the command line overrides the settings. `fresh` is the new seed of a session that shares its tests
    with other processes; None: it is drawn here, where the profile needs one.

    >>> plan(profile="ci", command={}, settings={"runs": 50_000}).line
    'profile ci, 200,000 runs an audit whose test sets none, seed 0'
    """
    chosen = DEFAULT if profile is None else profile
    usual: dict[str, Any] = {"runs": PROFILES[chosen], "confidence": CONFIDENCE, "seed": 0}
    if chosen == FRESH:
        import secrets

        usual["seed"] = secrets.randbits(32) if fresh is None else fresh
    if profile is None:
        usual.update({key: value for key, value in settings.items() if key in usual})
    return Defaults(chosen, usual, {key: value for key, value in command.items() if value is not None})


@dataclass(slots=True)
class SessionState:
    """The session in one process: its plan, the folder of the report, and the modules of its tests."""

    plan: Defaults
    root: Path
    folder: Path | None = None  # of the report
    shown: str | None = None  # that folder as the command line names it
    baseline: Path | None = None  # the file of accepted findings
    shared: bool = False  # by several processes, of which this is one that runs tests
    terminal: TextIO | None = None  # where pytest's capturing does not reach
    modules: tuple[ModuleType, ...] = ()  # that only this process has, once a test has used the fixture
    audits: bool = False  # whether a test uses the fixture


def settings_of(root: Path) -> dict[str, Any]:
    """The table [tool.dpaudit] of the project, as far as a session needs it; empty where it is wrong: audits say so.

    Its confidence is that of a whole suite of `dpaudit run`, which would be far too little for each of many tests.
    """
    from dpaudit.errors import InvalidSpec
    from dpaudit.spec.settings import read_settings

    try:
        settings = read_settings(root)
    except InvalidSpec:
        return {}
    told = {key: value for key, value in settings.options.items() if OPTIONS[key].session_words}
    return told if settings.accepted is None else {**told, "accepted": settings.accepted}


@dataclass(frozen=True, slots=True)
class AuditOfTest:
    """One audit of a test, its question and its outcome; `verdict` is None where there is none.

    `key` is its own, `attempt` counts the runs of a test that is run again, and `number` the audits of one of them.
    `bound` is the certified one, and the claim that it is beyond. `file` is the name of the stored result in the folder
    of the report, `accepted` the fingerprint of the accepted finding that covers it, `problem` why it could not be
    stored; `in_part` where only a part of each output was searched.
    """

    key: str
    test: str
    attempt: int
    number: int
    name: str
    expect: str
    confidence: float
    verdict: str | None = None
    as_expected: bool = False
    error: str | None = None
    bound: str = ""
    exit_code: int = 0
    accepted: str | None = None
    bits_refuted: bool = False
    in_part: bool = False
    file: str | None = None
    problem: str | None = None

    @property
    def unmet(self) -> bool:
        """Whether this makes a test fail: an unexpected verdict, no verdict, or too little power."""
        return not self.as_expected or self.exit_code != 0

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values."""
        return asdict(self)


class Records:
    """The audits of a session in the order in which they ended, each once; no attempt at a test replaces another."""

    def __init__(self) -> None:
        self._all: dict[str, AuditOfTest] = {}
        self._failed: set[str] = set()
        self._last: dict[str, int] = {}  # attempt of a test

    def add(self, stored: Iterable[dict[str, Any]], outcome: str) -> None:
        """Records the audits of a test, here or in another process, up to a report of this outcome."""
        for each in stored:
            record = AuditOfTest(**each)
            self._all[record.key] = record
            self._last[record.test] = max(record.attempt, self._last.get(record.test, 0))
            if outcome == "failed":
                self._failed.add(record.key)
            elif outcome == "rerun":  # the word of plugins that try again
                self._last[record.test] = max(record.attempt + 1, self._last[record.test])

    def sort(self) -> None:
        """Puts them in the order of their tests' names."""
        self._all = dict(sorted(self._all.items(), key=lambda each: (each[1].test, each[1].attempt, each[1].number)))

    @property
    def swallowed(self) -> tuple[AuditOfTest, ...]:
        """Audits that should have failed a passing test: the error was caught, or a mark expects the failure."""
        return self._passed(again=False)

    @property
    def retried(self) -> tuple[AuditOfTest, ...]:
        """Audits that should have failed a test that was then run again, and passed."""
        return self._passed(again=True)

    def _passed(self, *, again: bool) -> tuple[AuditOfTest, ...]:
        unmet = (each for each in self.all if each.unmet and each.key not in self._failed)
        return tuple(each for each in unmet if (self._last[each.test] > each.attempt) is again)

    @property
    def all(self) -> tuple[AuditOfTest, ...]:
        """Every record."""
        return tuple(self._all.values())

    @property
    def alarming(self) -> float:
        """The chance that any sound mechanism fails its test: the errors spent, and the level of all health checks."""
        from dpaudit.results.observations import LEVEL

        return min(1.0, float(Decimal(repr(self.spent)) + len(self.all) * Decimal(repr(LEVEL))))

    @property
    def spent(self) -> float:
        """The chance of a false refutation that all audits have spent: the sum of their error probabilities."""
        errors = (1 - Decimal(repr(record.confidence)) for record in self.all)  # 1e-6, and not 1.00000000003e-6
        return min(1.0, float(sum(errors, Decimal(0))))
