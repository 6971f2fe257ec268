"""Audits one after the other, recorded in a ledger: whatever one of them does, the others keep their results."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from dpaudit import report
from dpaudit.account import Level, account, templates
from dpaudit.account.statements import stamp
from dpaudit.account.suites import ACTION, action_lines, suite_line
from dpaudit.auditing.question import Plan
from dpaudit.auditing.runner import Runner
from dpaudit.auditing.watching import Watcher, watching
from dpaudit.base.files import report_folder
from dpaudit.base.numerals import confidence_text, duration
from dpaudit.base.quoting import clean
from dpaudit.cli.commands import RunCommand
from dpaudit.cli.group import INTERNAL, Caller, internal_error
from dpaudit.cli.options import (
    chosen_questions,
    layers,
    one_line,
    report_formats,
    say,
    show,
    typed_again,
)
from dpaudit.errors import DpAuditError, InvalidSpec, UnsoundAudit
from dpaudit.execution.engine import Engine
from dpaudit.execution.journal import ForeignShard, Frozen
from dpaudit.ledger.baseline import DEFAULT as ACCEPTED
from dpaudit.ledger.baseline import read_baseline, review
from dpaudit.ledger.database import DEFAULT, LedgerError, LedgerLost
from dpaudit.ledger.history import trend
from dpaudit.ledger.parts import BY_HAND
from dpaudit.ledger.results import Ledger
from dpaudit.ledger.runs import LedgerJournal, Run, resume, start, taken
from dpaudit.mechanisms import Mechanism
from dpaudit.processes.clusters import ClusterLost
from dpaudit.processes.frames import UnreadableShard
from dpaudit.report import USUAL
from dpaudit.results.provenance import commit_of, versions
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import Acceptance, SuiteEntry, SuiteResult, joined
from dpaudit.running.program import portable, unknown
from dpaudit.spec.questions import Layers, SpecQuestion, command, shared
from dpaudit.spec.settings import read_settings
from dpaudit.version import __version__


class CannotResume(InvalidSpec):
    """The run is not the one that was begun."""


KEPT = ("confidence", "seed", "isolation")  # options that every command has that repeats, or that count nothing
STOPS = (
    LedgerError,
    ForeignShard,
    UnreadableShard,
    CannotResume,
    ClusterLost,
)  # errors of a whole run, and of no audit


@dataclass(slots=True)
class SuiteJournal(LedgerJournal):
    """One audit of a recorded run: a changed question concerns the whole run."""

    question: SpecQuestion = field(kw_only=True)
    by_hand: int = field(default=0, kw_only=True)  # how many parts its certifying runs are made in, where they are

    def look_at(self, mechanism: Mechanism, engine: Engine) -> None:
        """Looks at what the mechanism is made of, by hand on every machine alike."""
        LedgerJournal.look_at(self, mechanism, engine)
        if self.by_hand:
            self.parts = portable(self.parts)
            if lost := unknown(self.parts):
                raise InvalidSpec(f"{lost[0]}{templates.NOT_TOLD}")

    def begin_anew(self, name: str, why: list[str]) -> None:
        """Says so: nothing can tell whether its mechanism is the same."""
        say(f"note: audit {clean(name)!r} begins anew: {'; '.join(why[:3])}")
        LedgerJournal.begin_anew(self, name, why)

    def refuse(self, name: str, why: list[str]) -> None:
        """Raises `CannotResume`: it is not what began."""
        if self.by_hand:
            raise CannotResume(f"audit {clean(name)!r}: {'; '.join(why[:3])}{templates.FREEZE_AGAIN}")
        raise CannotResume(f"--resume: audit {clean(name)!r}: {'; '.join(why[:3])}; leave out --resume to begin anew")

    def entry(self) -> SuiteEntry | None:
        """Its entry where it has ended in this run; None where it has not."""
        ended, entry = self.ended(), entry_of(self.question)
        if isinstance(ended, AuditResult):
            return replace(entry, result=ended, exit_code=ended.exit_code)
        return None if ended is None else replace(entry, error=ended[0], exit_code=ended[1])

    def check_ended(self, make: Callable[[SpecQuestion], Engine]) -> None:
        """Raises `CannotResume` where the mechanism of an audit that has ended is not what it was."""
        try:
            self.question.check_requirements()
            with make(self.question) as engine:
                asked = Runner(engine, self).plan(self.question)
                self.look_at(self.question.mechanism, engine)
        except DpAuditError as error:
            if self.begun is None:
                return  # it could not be asked before either
            raise self.no_longer(error) from None
        if self.begun is None:
            raise CannotResume(
                f"--resume: audit {self.question.name!r} could not be asked when it was tried, and now can; "
                "leave out --resume to begin anew"
            )
        self.check(asked.to_dict())

    def put(self, entry: SuiteEntry) -> None:
        """Records how it ended; its shards are needed no longer."""
        if entry.result is not None:
            self.record(entry.result)
            return
        self.ledger.fail(entry.name, entry.error or "", entry.exit_code, run=self.run, number=self.number)
        self.drop()

    def no_longer(self, error: DpAuditError) -> CannotResume:
        """For an audit that had begun and now cannot even be asked."""
        audit = templates.NO_LONGER_ASKED.format(name=self.question.name)
        return CannotResume(f"--resume: {audit}: {one_line(error)}")


def entry_of(question: SpecQuestion) -> SuiteEntry:
    """The entry of an audit, before it has an outcome."""
    return SuiteEntry(question.name, question.expect, source=str(question.source), bits=question.bits)


@contextmanager
def recording(
    call: RunCommand, questions: Sequence[SpecQuestion], path: str | None, options: dict[str, Any]
) -> Iterator[Run | None]:
    """The ledger for these questions, open: a new run in it, or with --resume the unfinished one.

    Without a `path` it is the default one, and where that cannot be used the audits run without a ledger. Raises
    `InvalidSpec` or `LedgerError` where a `path` or --resume cannot be satisfied.
    """
    if call.no_ledger:
        yield None
        return
    with ExitStack() as opened:
        try:
            ledger = opened.enter_context(Ledger(DEFAULT if path is None else Path(path)))
            run = _run(ledger, questions, options, again=call.resume)
        except LedgerError as error:
            if path is not None or call.resume:
                raise
            say(f"note: {one_line(error)}; this run is not recorded, and cannot be resumed")
            yield None
            return
        opened.callback(run.close)
        yield run


def _run(ledger: Ledger, questions: Sequence[SpecQuestion], options: dict[str, Any], *, again: bool) -> Run:
    sources = sorted({str(question.source.resolve()) for question in questions})
    libraries = {name: value for name, value in versions().items() if name != "platform"}
    audits = {question.place: question.identity() for question in questions}
    asked = {
        "dpaudit": libraries.pop("version"),
        "options": options,
        "versions": libraries,
        "audits": audits,
        "order": list(audits),  # an audit is known by its number
    }
    if again and BY_HAND in options:
        return resume(ledger, sources, asked, f"{{why}}{templates.FREEZE_AGAIN}")
    if again:
        return resume(ledger, sources, asked)
    left = taken(ledger, sources, asked)
    if left is not None:
        left.close()
        say(f"note: an unfinished run of the same audits ({left.id}) is in the ledger; --resume goes on with it")
    return start(ledger, sources, asked)


def header(questions: tuple[SpecQuestion, ...], confidence: float, clusters: Iterable[str] = ()) -> str:
    """The first line of a run: everything that a second run needs to be the same, and who runs it."""
    seeds = sorted({question.seed for question in questions})
    audits = f"{len(questions)} audit{'' if len(questions) == 1 else 's'}"
    seed = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {', '.join(map(str, seeds))}"
    return f"dpaudit {__version__}: {audits}, suite confidence {confidence_text(confidence)}, {seed}" + "".join(
        f"; {each}" for each in clusters
    )


@dataclass(slots=True)
class Suite:
    """The questions of one command, at their shares of its confidence, and how to run them."""

    questions: tuple[SpecQuestion, ...]
    confidence: float
    call: RunCommand
    engine: Callable[[SpecQuestion], Engine]
    layers: Layers
    caller: Caller
    again: str = ""
    recorded: Run | None = None
    by_hand: int = 0
    accepted: tuple[Acceptance, ...] = ()
    formats: tuple[str, ...] = report.USUAL
    folder: Path | None = None
    entries: list[SuiteEntry] = field(default_factory=list)
    unwritten: bool = False

    def run(self) -> SuiteResult:
        """Runs every audit; its result is on disk before the next one begins."""
        try:
            silent = self.call.no_progress or self.call.quiet
            with watching(len(self.questions), shown=not silent) as watcher:
                for number, question in enumerate(self.questions, start=1):
                    watcher.audit(number, question.name)
                    journal = self._journal(number, question)
                    known = journal.entry() if journal is not None and self.call.resume else None
                    if known is not None and journal is not None:
                        journal.check_ended(self.engine)
                    try:
                        self.entries.append(known or self._answer(question, journal, watcher))
                    except Frozen:
                        watcher.finished(templates.PUT_OFF.format(name=clean(question.name)))
                        continue
                    try:
                        if journal is not None and known is None:
                            journal.put(self.entries[-1])
                    finally:  # what the ledger cannot take is not lost
                        self._keep()
                    self._tell(watcher, question, known=known is not None)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(self._so_far()) from None
        except STOPS as error:
            again = not isinstance(error, LedgerLost)
            hint = "" if isinstance(error, CannotResume) else f"; {self._so_far(again=again)}"
            raise type(error)(f"{error}{hint}") from None
        if self.freezing:
            return SuiteResult(tuple(self.entries), self.confidence)
        entries, reviewed = review(self.entries, self.accepted, date.today())
        self.entries = list(entries)
        finished = SuiteResult(entries, self.confidence, reviewed, *joined(each.suite for each in self.questions))
        self.unwritten = False  # files of single results that could not be written are written now
        if self.folder is not None:
            with self._writing():
                report.write_suite(finished, self.folder, self.formats, self._trends())
            if self.unwritten:
                say(f"error: {self.entries[-1].error}")
        if self.recorded is not None and not self.unwritten:
            self.recorded.finish()
        return replace(finished, entries=tuple(self.entries))  # with what went wrong while the report was written

    @property
    def freezing(self) -> bool:
        """Whether certifying runs are put off, to be made by hand."""
        return self.by_hand > 0 and not self.call.resume

    def _journal(self, number: int, question: SpecQuestion) -> SuiteJournal | None:
        if self.recorded is None:
            return None
        return SuiteJournal(self.recorded.ledger, self.recorded.id, number, question=question, by_hand=self.by_hand)

    def _trends(self) -> list[tuple[dict[str, Any], ...]]:
        """The results of each audit in the ledger, earlier ones and that of this run."""
        if self.recorded is None:
            return []
        with suppress(LedgerError):
            ledger = self.recorded.ledger
            return [() if each.result is None else trend(ledger, each.result) for each in self.entries]
        return []

    def tell(self, suite: SuiteResult) -> None:
        """The result on standard output: the first page of one audit, of several a line each, and what needs action."""
        if not self.call.quiet:
            alone = len(suite.entries) == 1
            for entry in suite.entries:
                page = "\n".join(account(entry, Level.PAGE_ONE).lines(templates.WHOLE))
                paged = (alone or self.call.verbose) and entry.result is not None
                show(f"\n{page}\n" if paged else suite_line(entry, brief=not alone))
            odd = () if alone else action_lines(suite)
            show("\n".join(["", *([f"{ACTION}:", *(f"  {each}" for each in odd), ""] if odd else [])]))
            if self.folder is not None and not self.unwritten:
                pages = {"html": "index.html", "md": "report.md"}
                page = next((pages[each] for each in pages if each in self.formats), "")
                click.echo(f"report: {self.folder / page}")
        show(f"{account(suite, Level.HEADLINE).headline}; exit code {suite.exit_code}")

    def _so_far(self, *, again: bool = True) -> str:
        place = f"; their results are in {self.folder}" if self.folder and self.entries else ""
        cure = f"; go on with: {self.again}" if self.recorded is not None and again and not self.by_hand else ""
        return f"{len(self.entries)} of {len(self.questions)} audits finished{place}{cure}"

    def _answer(self, question: SpecQuestion, journal: SuiteJournal | None, watcher: Watcher) -> SuiteEntry:
        entry = entry_of(question)
        try:
            question.check_requirements()
            # an engine of its own: what one mechanism imports or breaks is gone with its process
            with self.engine(question) as engine:
                runner = Runner(engine, journal, watcher, partial(self._origin, question), self.freezing)
                result = runner.run(question)
            return replace(entry, result=result, exit_code=result.exit_code)
        except (*STOPS, Frozen):
            raise
        except DpAuditError as error:
            begun = None if journal is None else journal.begun
            if journal is not None and begun is not None and not journal.ours:
                raise journal.no_longer(error) from None
            why = str(error)
            if begun is not None and begun.interruptions and not self.by_hand and isinstance(error, UnsoundAudit):
                told = templates.DRIVERS.format(drivers=begun.drivers)
                why = f"{error}; it was interrupted, so {told}"
            return replace(entry, error=one_line(why), exit_code=error.exit_code)
        except Exception as error:
            internal_error(error, self.caller)
            what = f"internal error: {type(error).__name__}: {one_line(error)}"
            return replace(entry, error=what, exit_code=INTERNAL)

    def _origin(self, question: SpecQuestion, planned: Plan) -> dict[str, Any]:
        """Where a result comes from: its spec, the command that repeats it, and the commit."""
        names = ["runs"] if question.max_time_s is not None else []
        names += [*self.layers.project, *self.layers.command]
        given = {name: getattr(planned, name) for name in dict.fromkeys(names) if name not in KEPT}
        repeat = command(question, self.questions, self.call.tags, only=self.call.only, given=given)
        commit = commit_of(question.source.parent)
        merged = {"parts": self.by_hand, "interruptions": 0} if self.by_hand else {}
        return {
            "source": str(question.source),
            "command": repeat,
            **({} if commit is None else {"commit": commit}),
            **merged,
        }

    def _tell(self, watcher: Watcher, question: SpecQuestion, *, known: bool) -> None:
        entry = self.entries[-1]
        if entry.result is None:
            error = str(entry.error).removeprefix(f"{question.place}: ")  # which some errors name themselves
            watcher.failed(f"no verdict   {question.place}: {error}")
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
                report.write_report(entry.result, self.folder / name)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A report that cannot be written, or made, costs the exit code and never a verdict."""
        try:
            yield
        except OSError as error:
            self.unwritten = True
            again = "" if self.recorded is None else f"; once it can be, {self.again}"
            self._fail(
                templates.UNWRITTEN_REPORT.format(why=f"{error.strerror or error}{again}"), InvalidSpec.exit_code
            )
        except Exception as error:
            internal_error(error, self.caller)
            self._fail(templates.UNMADE_REPORT.format(why=f"{type(error).__name__}: {one_line(error)}"), INTERNAL)

    def _fail(self, reason: str, exit_code: int) -> None:
        self.entries[-1] = replace(self.entries[-1], error=reason, exit_code=exit_code)


def run_command(call: RunCommand) -> int:
    return run_suite(call, layers(call)).exit_code


def run_suite(call: RunCommand, given: Layers, options: Mapping[str, Any] = MappingProxyType({})) -> SuiteResult:
    """Runs the audits of a command; these `options` of it are recorded with the run."""
    project = read_settings(Path.cwd())
    workers = next(value for value in (call.jobs, project.jobs, -1) if value is not None)

    def engine(question: SpecQuestion) -> Engine:
        return Engine(workers, supervised=True, **question.where)

    posed, together = shared(chosen_questions(call.paths, given, call.tags, call.only))
    clusters: dict[str, None] = {}
    for each in {tuple(question.where.items()): question for question in posed}.values():
        clusters[engine(each).workers.told] = None  # a bad value is refused once, here, and not by each audit
    folder = call.report if call.report is not None else project.report
    if call.no_ledger and (call.ledger is not None or call.resume):
        raise InvalidSpec(f"--no-ledger and {'--resume' if call.resume else '--ledger'}: give one of the two")
    baseline = call.accepted if call.accepted is not None else project.accepted
    suite = Suite(
        posed,
        together,
        call,
        engine,
        given,
        caller=click.get_current_context().obj,
        again=typed_again("--resume", without=("resume",)),
        accepted=read_baseline(ACCEPTED if baseline is None else baseline, missing_ok=baseline is None),
        formats=USUAL if call.formats is None else tuple(each.name for each in report_formats(call.formats)),
        folder=report_folder("--report", folder),
        by_hand=options.get(BY_HAND, {}).get("parts", 0),
    )
    where = call.ledger if call.ledger is not None else project.ledger
    together_asked = {"confidence": together, "tags": sorted(call.tags), **options}
    with recording(call, posed, where, together_asked) as run:
        suite.recorded = run
        if not call.quiet:
            click.echo(header(posed, together, filter(None, clusters)))
        finished = suite.run()
    if not suite.freezing:
        suite.tell(finished)
    return finished
