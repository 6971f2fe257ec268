"""Audits one after the other: whatever one of them does, the others keep their results."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import click

from dpaudit import report
from dpaudit.account.sections import full_text
from dpaudit.account.statements import stamp
from dpaudit.account.suites import suite_headline, suite_line
from dpaudit.auditing.audit import run_audit
from dpaudit.auditing.clock import Clock
from dpaudit.auditing.probing import planned_runs
from dpaudit.auditing.watching import Watcher, watching
from dpaudit.base.numerals import confidence_text, duration
from dpaudit.base.quoting import clean
from dpaudit.cli.group import INTERNAL, Caller, internal_error
from dpaudit.cli.options import one_line, say, show
from dpaudit.cli.recording import STOPS, CannotResume, Recording, no_longer
from dpaudit.errors import DpAuditError, InvalidSpec, UnsoundAudit
from dpaudit.execution.engine import Engine
from dpaudit.ledger.baseline import review
from dpaudit.ledger.database import LedgerError, LedgerLost
from dpaudit.ledger.history import trend
from dpaudit.ledger.runs import Begun
from dpaudit.results.provenance import commit_of
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import Acceptance, SuiteEntry, SuiteResult
from dpaudit.spec.questions import Question
from dpaudit.spec.suite import command
from dpaudit.version import __version__


def header(questions: tuple[Question, ...], confidence: float) -> str:
    """What is about to run: everything that a second run needs to be the same."""
    seeds = sorted({question.seed for question in questions})
    audits = f"{len(questions)} audit{'' if len(questions) == 1 else 's'}"
    seed = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}"
    return f"dpaudit {__version__}: {audits}, suite confidence {confidence_text(confidence)}, {seed}"


@dataclass(slots=True)
class Suite:
    """The questions of one command, at their shares of its confidence, and how to run them."""

    questions: tuple[Question, ...]
    confidence: float
    engine: Callable[[str | None], Engine]  # of a spec's isolation
    tags: tuple[str, ...]
    only: tuple[str, ...]
    runs_given: bool
    controls: int | None
    caller: Caller
    again: str = ""
    recording: Recording | None = None
    accepted: tuple[Acceptance, ...] = ()
    formats: tuple[str, ...] = report.USUAL
    folder: Path | None = None
    entries: list[SuiteEntry] = field(default_factory=list)
    unwritten: bool = False

    def run(self, *, silent: bool) -> SuiteResult:
        """Runs every audit; its result is on disk before the next one begins."""
        try:
            with watching(len(self.questions), shown=not silent) as watcher:
                for number, question in enumerate(self.questions, start=1):
                    watcher.audit(number, question.name)
                    known = None if self.recording is None else self.recording.recorded(number, question)
                    if known is not None and self.recording is not None:
                        self.recording.check(number, question, self.engine)
                    self.entries.append(known or self._answer(number, question, watcher))
                    try:
                        if self.recording is not None and known is None:
                            self.recording.keep(number, self.entries[-1])
                    finally:  # what the ledger cannot take is not lost
                        self._keep()
                    self._tell(watcher, question, known=known is not None)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._so_far()) from None
        except STOPS as error:
            again = not isinstance(error, LedgerLost)
            hint = "" if isinstance(error, CannotResume) else f"; {self._so_far(again=again)}"
            raise type(error)(f"{error}{hint}") from None
        entries, reviewed = review(self.entries, self.accepted, date.today())
        self.entries = list(entries)
        finished = SuiteResult(entries, self.confidence, reviewed)
        self.unwritten = False  # files of single results that could not be written are written now
        if self.folder is not None:
            with self._writing():
                report.write_suite(finished, self.folder, self.formats, self._trends())
            if self.unwritten:
                say(f"error: {self.entries[-1].error}")
        if self.recording is not None and not self.unwritten:
            self.recording.run.finish()
        return replace(finished, entries=tuple(self.entries))  # with what went wrong while the report was written

    def _trends(self) -> list[tuple[dict[str, Any], ...]]:
        """What the ledger knows of each audit from before, and of now."""
        if self.recording is None:
            return []
        with contextlib.suppress(LedgerError):
            ledger = self.recording.ledger
            return [() if each.result is None else trend(ledger, each.result) for each in self.entries]
        return []

    def tell(self, suite: SuiteResult, *, quiet: bool) -> None:
        """The result on standard output: the whole account of what is not as expected, a line for the rest."""
        if not quiet:
            for entry in suite.entries:
                alone = len(suite.entries) == 1 or not entry.as_expected
                whole = alone and entry.result is not None
                show(f"\n{full_text(entry.result)}\n" if whole and entry.result else suite_line(entry))
            show()
        show(f"{suite_headline(suite)}; exit code {suite.exit_code}")
        if self.folder is not None and not self.unwritten and not quiet:
            pages = {"html": "index.html", "md": "report.md"}
            page = next((pages[each] for each in pages if each in self.formats), "")
            click.echo(f"report: {self.folder / page}")

    def _so_far(self, *, again: bool = True) -> str:
        kept = f"; their results are in {self.folder}" if self.folder and self.entries else ""
        cure = f"; go on with: {self.again}" if self.recording is not None and again else ""
        return f"{len(self.entries)} of {len(self.questions)} audits finished{kept}{cure}"

    def _answer(self, number: int, question: Question, watcher: Watcher) -> SuiteEntry:
        entry = SuiteEntry(question.name, question.expect, source=str(question.source), bits=question.bits)
        try:
            result = self._result(number, question, watcher)
            return replace(entry, result=result, exit_code=result.exit_code)
        except STOPS:
            raise
        except DpAuditError as error:
            if self._begun(number) is not None and self.recording and number not in self.recording.run.driven:
                raise no_longer(question, error) from None
            return replace(entry, error=one_line(self._why(number, error)), exit_code=error.exit_code)
        except Exception as error:
            internal_error(error, self.caller)
            what = f"internal error: {type(error).__name__}: {one_line(error)}"
            return replace(entry, error=what, exit_code=INTERNAL)

    def _result(self, number: int, question: Question, watcher: Watcher) -> AuditResult:
        question.check_requirements()
        clock = Clock(question.max_time_s)
        # an engine of its own: what one mechanism imports or breaks is gone with its process
        with self.engine(question.isolation) as engine:
            clock.limits(engine)
            description, pairs = engine.describe(question.mechanism, question.pairs, question.settle)
            parts = {} if self.recording is None else engine.made_of(question.mechanism)  # before any run
            begun = self._begun(number)
            runs = None if begun is None else begun.runs
            if clock.limited and runs is None:
                limit, seed, most = question.run_timeout_s, question.seed, question.runs
                runs = planned_runs(engine, question.mechanism, pairs, clock, seed, limit, most=most)
            spec = question.spec(description, pairs, runs=runs)
            if self.recording is not None:
                engine.keep_in(self.recording.begin(number, spec.to_dict(), parts, runs))
            result = run_audit(spec, engine, progress=watcher, clock=clock)
        if question.upper is not None:
            result = replace(result, upper=question.upper)
        limit = question.max_time_s
        chosen = spec.runs if self.runs_given or limit is not None else None
        repeat = command(question, self.questions, self.tags, only=self.only, runs=chosen, controls=self.controls)
        known: dict[str, Any] = {"source": str(question.source), "command": repeat, "max_time_s": limit}
        if question.record:
            known["record"] = question.record
        commit = commit_of(question.source.parent)
        if commit is not None:
            known["commit"] = commit
        now = self._begun(number)
        if now is not None:
            known["interruptions"] = now.interruptions
        return replace(result, provenance={**result.provenance, **known})

    def _why(self, number: int, error: DpAuditError) -> str:
        """What an error says, and what an interruption may have to do with it."""
        begun = self._begun(number)
        if begun is None or begun.interruptions == 0 or not isinstance(error, UnsoundAudit):
            return str(error)
        return f"{error}; it was interrupted, so its runs are those of {begun.drivers} processes, one after the other"

    def _begun(self, number: int) -> Begun | None:
        return None if self.recording is None else self.recording.run.begun(number)

    def _tell(self, watcher: Watcher, question: Question, *, known: bool) -> None:
        entry = self.entries[-1]
        if entry.result is None:
            watcher.failed(f"no verdict   {question.place}: {entry.error}")
        elif entry.error is not None:
            watcher.failed(suite_line(entry))
        else:
            expected = "as expected" if entry.as_expected else "NOT as expected"
            spent = "from the ledger" if known else duration(entry.result.provenance["wall_s"])
            watcher.finished(f"{clean(entry.name)}: {stamp(entry.result)}, {expected}, {spent}")

    def _keep(self) -> None:
        """Writes the last result, under the name that it will have in the whole report."""
        entry = self.entries[-1]
        if self.folder is None or entry.result is None or "json" not in self.formats:
            return
        name = report.record_names(SuiteResult(tuple(self.entries), self.confidence))[-1]
        if name is not None:
            with self._writing():
                report.write(entry.result, self.folder / name)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """A report that cannot be written, or made, costs the exit code and never a verdict."""
        try:
            yield
        except OSError as error:
            self.unwritten = True
            again = "" if self.recording is None else f"; once it can be, {self.again}"
            self._fail(f"the report could not be written: {error.strerror or error}{again}", InvalidSpec.exit_code)
        except Exception as error:
            internal_error(error, self.caller)
            self._fail(f"the report could not be made: {type(error).__name__}: {one_line(error)}", INTERNAL)

    def _fail(self, reason: str, exit_code: int) -> None:
        self.entries[-1] = replace(self.entries[-1], error=reason, exit_code=exit_code)
