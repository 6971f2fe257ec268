"""The plugin of pytest: the fixture `audit`, the marker `dpaudit`, and options that start with --dpaudit.

A claim that is refuted fails its test with the witness, the counts and the command that repeats it. Loading this
costs a test session next to nothing: the first audit loads the code that audits.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Generator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from dpaudit.errors import InvalidSpec
from dpaudit.options import FEWEST_RUNS, IN_PROJECTS, OPTIONS, Option
from dpaudit.pytest_plugin.records import PROFILES, Records, SessionState, plan, settings_of

if TYPE_CHECKING:
    from dpaudit.pytest_plugin.auditor import Auditor

ACCEPTED = "dpaudit-accepted.toml"  # where `dpaudit accept` writes; its module is too heavy to import
MARKER = (
    f"dpaudit({', '.join(IN_PROJECTS)}, epsilon, ..., expect): what the audits of this test are given, by the keywords "
    "of dpaudit.audit; every test that uses the fixture audit has the marker, so that -m dpaudit selects them"
)


STATE = pytest.StashKey[SessionState]()
AUDITED = pytest.StashKey[list[dict[str, Any]]]()
ATTEMPTS = pytest.StashKey[int]()
OF_SESSIONS = [each for each in reversed(OPTIONS.values()) if each.session_words]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the command line."""
    group = parser.getgroup("dpaudit", "audits of differentially private mechanisms")
    profiles = ", ".join(f"{name} {runs:,} runs" for name, runs in PROFILES.items())
    group.addoption("--dpaudit-profile", choices=tuple(PROFILES), help=f"how much an audit may spend: {profiles} (dev)")
    for each in OF_SESSIONS:
        group.addoption(f"--dpaudit-{each.name}", type=partial(_whole, each), metavar="N", help=each.session_words)
    group.addoption("--dpaudit-report", metavar="DIR", help="write each result, and a report of all, into DIR")


def pytest_configure(config: pytest.Config) -> None:
    """Settles the plan of the session; a folder that cannot be made is an error before the runs, not after."""
    config.addinivalue_line("markers", MARKER)
    given, settings = config.option, settings_of(config.rootpath)
    mine = getattr(config, "workerinput", None)  # of a process that gets its tests from another
    settled = plan(
        profile=given.dpaudit_profile,
        command={each.name: getattr(given, f"dpaudit_{each.name}") for each in OF_SESSIONS},
        settings=settings,
        fresh=None if mine is None else mine.get("dpaudit_seed"),
    )
    folder = None
    if given.dpaudit_report is not None:
        if not given.dpaudit_report:
            raise pytest.UsageError("--dpaudit-report: must name a folder, got an empty name")
        from dpaudit.base.files import report_folder

        folder = Path(os.path.abspath(config.invocation_params.dir / given.dpaudit_report))
        try:
            report_folder("--dpaudit-report", folder)
        except InvalidSpec as error:
            raise pytest.UsageError(str(error)) from None
    usual = config.rootpath / ACCEPTED
    baseline = config.rootpath / settings["accepted"] if "accepted" in settings else usual if usual.is_file() else None
    seen = mine is None and sys.stderr is not None and sys.stderr.isatty()
    terminal = os.fdopen(os.dup(sys.stderr.fileno()), "w") if seen else None
    shared, shown = mine is not None, given.dpaudit_report
    config.stash[STATE] = SessionState(settled, config.rootpath, folder, shown, baseline, shared, terminal)
    if mine is None:
        ending = SessionEnd(config)
        config.pluginmanager.register(ending, "dpaudit-ending")
        ending.guard_exit()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Every process of a shared session gets the one seed that is in its header (a hook of pytest-xdist)."""
    node.workerinput["dpaudit_seed"] = node.config.stash[STATE].plan.usual["seed"]


def pytest_report_header(config: pytest.Config) -> str:
    """The line that a second session needs to be the same."""
    return f"dpaudit: {config.stash[STATE].plan.line}"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks every test that uses the fixture."""
    if "audit" in getattr(item, "fixturenames", ()) and item.get_closest_marker("dpaudit") is None:
        item.add_marker("dpaudit")
    item.config.stash[STATE].audits |= "audit" in getattr(item, "fixturenames", ())


@pytest.fixture
def audit(request: pytest.FixtureRequest) -> "Auditor":
    """Audits a mechanism, `audit(mechanism, pair=..., epsilon=...)`; the test fails where its claim is refuted.

    The keywords are those of dpaudit.audit, and expect="refuted" (or "bits") for a violation that is known. The
    mechanism runs in a process of its own: what the test has changed in other modules (mocks) is there as it was.
    """
    from dpaudit.pytest_plugin.auditor import Auditor

    state, node = request.config.stash[STATE], request.node
    marks = list(node.iter_markers("dpaudit"))
    if any(mark.args for mark in marks):
        pytest.fail("the marker dpaudit takes keywords only: @pytest.mark.dpaudit(runs=100_000)", pytrace=False)
    state.modules = state.modules or tuple(_modules(request))
    node.stash[ATTEMPTS] = attempt = node.stash.get(ATTEMPTS, 0) + 1
    return Auditor(
        state,
        str(node.nodeid),
        f"pytest {shlex.quote(_seen(request.config, node))}",
        tuple(mark.kwargs for mark in reversed(marks)),
        attempt=attempt,
        audited=node.stash.setdefault(AUDITED, []),
        patches=request.getfixturevalue("monkeypatch") if "monkeypatch" in request.fixturenames else None,
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Sends what a test has audited along with its report, to whichever process makes the summary."""
    report = yield
    audited = item.stash.get(AUDITED, [])
    if audited:  # all so far: a plugin that runs tests again may drop the report of one attempt
        report.dpaudit = list(audited)  # type: ignore[attr-defined]
    if call.excinfo is not None and "dpaudit.errors" in sys.modules:
        report.dpaudit_short = short_forms(call.excinfo.value)  # type: ignore[attr-defined]
    return report


def short_forms(error: BaseException) -> list[str]:
    """Texts of an error of ours for the short summary, the longest first; none for any other error."""
    from dpaudit.errors import ClaimRefuted, UnsoundAudit

    if isinstance(error, ClaimRefuted) and error.bound:
        near = error.bound.partition(" at ")[0]
        return [f"REFUTED {error.bound}", f"REFUTED {near}", near]
    if isinstance(error, UnsoundAudit):
        return [f"NO VERDICT {error}"]
    message = str(error).partition("\n")[0] if type(error) is AssertionError else ""
    return [message] if message.startswith(("NOT FOUND  ", "TOO LITTLE POWER  ", "LEAD  ")) else []


class SessionEnd:
    """The hooks of the one process that gets all reports: it ends the session with a report and a summary."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.state = config.stash[STATE]
        self.records = Records()
        self.problems: tuple[str, ...] = ()
        self._leave = os._exit
        self._session: pytest.Session | None = None  # once it is over
        self._stopped = False

    def guard_exit(self) -> None:
        """A session that a test, or a module of it, ends before its time is no success, whatever its exit code."""
        here = os.getpid()

        def leave(status: int) -> NoReturn:
            code = pytest.ExitCode.INTERRUPTED if self._session is None else self._session.exitstatus
            self._leave(int(code) if status == 0 and os.getpid() == here else status)

        os._exit = leave

    def pytest_unconfigure(self) -> None:
        """After the summary: in a session with audits, code that runs at exit cannot change the exit code."""
        if not self.records.all:
            os._exit = self._leave

    def pytest_keyboard_interrupt(self) -> None:
        """Ctrl-C, or `pytest.exit`, which may set the exit code of a success."""
        self._stopped = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Records the audits of a test, here or in another process."""
        self.records.add(getattr(report, "dpaudit", ()), report.outcome)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Writes the report; a session whose report is lost, or whose acceptances have expired, is no success."""
        self._session = session
        if self._stopped and self.state.audits and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.INTERRUPTED
        if not self.records.all:
            return
        from dpaudit.pytest_plugin.ending import expired, write_report

        if self.config.pluginmanager.hasplugin("dsession"):
            self.records.sort()  # processes end their tests in any order
        problems = expired(self.state.baseline)
        if self.state.folder is not None:
            problems += write_report(self.records, self.state.folder, self.state.baseline)
        lost = bool(self.records.retried) or any(record.problem for record in self.records.all)
        if (problems or lost) and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        self.problems = problems

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The audits, their verdicts, and the chance of a false alarm of all of them."""
        for report in terminalreporter.getreports("failed"):
            self._shorten(report)
        if not self.records.all:
            return
        from dpaudit.pytest_plugin.ending import summary_lines

        terminalreporter.section("dpaudit")
        for line in summary_lines(self.records, self.state.plan, self.state.folder, self.problems):
            terminalreporter.write_line(line)

    def _shorten(self, report: pytest.TestReport) -> None:
        """Has the short summary begin with the result of an audit, in the longest text that fits its line."""
        forms = getattr(report, "dpaudit_short", [])
        crash = getattr(report.longrepr, "reprcrash", None)
        if forms and crash is not None:
            line = f"FAILED {_seen(self.config, report)} - "
            room = self.config.get_terminal_writer().fullwidth - len(line)
            crash.message = next((form for form in forms if len(form) <= room), forms[0])


def _seen(config: pytest.Config, named: Any) -> str:
    """The name of a test, or of its report, as typed in the folder where pytest was called."""
    return str(config.cwd_relative_nodeid(getattr(named, "id", named.nodeid)))  # a value of its own from pytest 9.2 on


def _modules(request: pytest.FixtureRequest) -> set[ModuleType]:
    """The modules that pytest imports in its own way: those of the tests, and every conftest."""
    tests = {getattr(item, "module", None) for item in request.session.items}
    plugins = request.config.pluginmanager.get_plugins()
    ours = {each for each in plugins if Path(getattr(each, "__file__", None) or "").name == "conftest.py"}
    return {module for module in tests | ours if isinstance(module, ModuleType)}


def _whole(option: Option, text: str) -> int:
    """A whole number of an option, `200000`, `200_000` or `2e5`."""
    try:
        number = float(text) if "e" in text.lower() else int(text)
        if text.isascii():
            return int(option.check(option.name, number))
    except (ValueError, OverflowError, InvalidSpec):  # no number, one without end, or out of range
        pass
    least = FEWEST_RUNS if option.name == "runs" else 0
    raise argparse.ArgumentTypeError(f"must be a whole number from {least:,} on, got {text!r}")
