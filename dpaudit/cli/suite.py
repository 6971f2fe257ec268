"""Audits one after the other: whatever one of them does, the others keep their results."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from dpaudit import report
from dpaudit.api import planned_runs
from dpaudit.auditing.pipeline import run_audit
from dpaudit.auditing.result import AuditResult, SuiteEntry, SuiteResult
from dpaudit.auditing.wording import full_text, suite_headline, suite_line, verdict_text
from dpaudit.auditing.wording.numerals import confidence_text
from dpaudit.auditing.wording.quoting import clean
from dpaudit.cli.group import INTERNAL, TOO_LITTLE_POWER, Caller, internal_error
from dpaudit.cli.progress import Watcher, watching
from dpaudit.cli.words import duration, one_line, version
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.sampling import Engine
from dpaudit.spec_file import Question
from dpaudit.spec_file.suite import command


def header(questions: tuple[Question, ...], confidence: float) -> str:
    """What is about to run: everything that a second run needs to be the same."""
    seeds = sorted({question.seed for question in questions})
    audits = f"{len(questions)} audit{'' if len(questions) == 1 else 's'}"
    seed = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}"
    return f"dpaudit {version()}: {audits}, suite confidence {confidence_text(confidence)}, {seed}"


@dataclass(slots=True)
class Suite:
    """The questions of one command, at their shares of its confidence, and how to run them."""

    questions: tuple[Question, ...]
    confidence: float
    jobs: int
    backend: str | None
    tags: tuple[str, ...]
    runs_given: bool
    controls: int | None
    caller: Caller
    folder: Path | None = None
    entries: list[SuiteEntry] = field(default_factory=list)

    def prepare(self, folder: Path | None) -> None:
        """Makes the folder of the report now: what cannot be written is better known before the runs than after."""
        self.folder = folder
        if folder is None:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidSpec(f"--report: {folder} cannot be made ({error.strerror}); name another folder") from None
        if not os.access(folder, os.W_OK):
            raise InvalidSpec(f"--report: {folder} cannot be written to; name another folder")

    def run(self, *, silent: bool) -> SuiteResult:
        """Runs every audit; its result is on disk before the next one begins."""
        try:
            with watching(len(self.questions), silent=silent) as watcher:
                for number, question in enumerate(self.questions, start=1):
                    watcher.audit(number, question.name)
                    self.entries.append(self._answer(question, watcher))
                    self._keep()
                    self._tell(watcher, question)
        except KeyboardInterrupt:
            kept = f"; their results are in {self.folder}" if self.folder and self.entries else ""
            raise KeyboardInterrupt(f"{len(self.entries)} of {len(self.questions)} audits finished{kept}") from None
        finished = SuiteResult(tuple(self.entries), self.confidence)
        if self.folder is not None:
            with _writing(self._fail):
                report.write_suite(finished, self.folder)
        return SuiteResult(tuple(self.entries), self.confidence)

    def tell(self, suite: SuiteResult, *, quiet: bool) -> None:
        """The result on standard output: the whole account of what is not as expected, a line for the rest."""
        if not quiet:
            for entry in suite.entries:
                alone = len(suite.entries) == 1 or not entry.as_expected
                whole = alone and entry.result is not None
                click.echo(f"\n{full_text(entry.result)}\n" if whole and entry.result else suite_line(entry))
            click.echo()
        click.echo(suite_headline(suite))
        if self.folder is not None and not quiet:
            click.echo(f"report: {self.folder / 'report.md'}")

    def _answer(self, question: Question, watcher: Watcher) -> SuiteEntry:
        entry = SuiteEntry(question.name, question.expect)
        try:
            result = self._result(question, watcher)
            return replace(entry, result=result, exit_code=TOO_LITTLE_POWER if result.power_reached is False else 0)
        except DpAuditError as error:
            return replace(entry, error=one_line(error), exit_code=error.exit_code)
        except Exception as error:
            internal_error(error, self.caller)
            what = f"internal error: {type(error).__name__}: {one_line(error)}"
            return replace(entry, error=what, exit_code=INTERNAL)

    def _result(self, question: Question, watcher: Watcher) -> AuditResult:
        question.check_requirements()
        # an engine of its own: what one mechanism imports or breaks is gone with its process
        with Engine(self.jobs, self.backend, supervised=True) as engine:
            description, pairs = engine.describe(question.mechanism, question.pairs)
            runs = None
            if question.max_time_s is not None:
                limit = question.run_timeout_s
                runs = planned_runs(engine, question.mechanism, pairs, question.max_time_s, question.seed, limit)
            spec = question.spec(description, pairs, runs=runs)
            result = run_audit(spec, engine, progress=watcher)
        if question.upper is not None:
            result = replace(result, upper=question.upper)
        limit = question.max_time_s
        chosen = spec.runs if self.runs_given or limit is not None else None
        repeat = command(question, self.questions, self.tags, runs=chosen, controls=self.controls)
        known = {"source": str(question.source), "command": repeat, "max_time_s": limit}
        return replace(result, provenance={**result.provenance, **known})

    def _tell(self, watcher: Watcher, question: Question) -> None:
        entry = self.entries[-1]
        if entry.result is None:
            watcher.failed(f"no verdict   {question.place}: {entry.error}")
        elif entry.error is not None:
            watcher.failed(suite_line(entry))
        else:
            expected = "as expected" if entry.as_expected else "NOT as expected"
            spent = duration(entry.result.provenance["wall_s"])
            watcher.finished(f"{clean(entry.name)}: {verdict_text(entry.result.verdict)}, {expected}, {spent}")

    def _keep(self) -> None:
        """Writes the last result, under the name that it will have in the whole report."""
        entry = self.entries[-1]
        if self.folder is None or entry.result is None:
            return
        name = report.record_names(SuiteResult(tuple(self.entries), self.confidence))[-1]
        if name is not None:
            with _writing(self._fail):
                report.write(entry.result, self.folder / name)

    def _fail(self, reason: str) -> None:
        self.entries[-1] = replace(self.entries[-1], error=reason, exit_code=InvalidSpec.exit_code)


@contextlib.contextmanager
def _writing(failed: Callable[[str], None]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        failed(f"the report could not be written: {error.strerror or error}")
