"""The ledger of a `run`: where it is, the run that stands in it, and what of that is there already."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.base.quoting import clean
from dpaudit.cli.options import one_line, say
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.execution.engine import Engine
from dpaudit.execution.journal import ForeignShard, ShardStore
from dpaudit.ledger.database import DEFAULT, Database, LedgerError
from dpaudit.ledger.results import Ledger
from dpaudit.ledger.runs import Run, resume, start, taken
from dpaudit.processes.frames import UnreadableShard
from dpaudit.results.provenance import versions
from dpaudit.results.suite import SuiteEntry
from dpaudit.running.program import unknown
from dpaudit.spec.questions import Question


class CannotResume(InvalidSpec):
    """The run is not the one that was begun."""


STOPS = (LedgerError, ForeignShard, UnreadableShard, CannotResume)  # errors of a whole run, and of no audit


@dataclass(frozen=True, slots=True)
class Recording:
    """A run of these questions in a ledger, driven by this process."""

    ledger: Ledger
    run: Run
    resumed: bool

    def recorded(self, number: int, question: Question) -> SuiteEntry | None:
        """What the ledger says of an audit of the run that has ended; None where it has not."""
        entry = SuiteEntry(question.name, question.expect, source=str(question.source), bits=question.bits)
        if not self.resumed:
            return None
        record = self.ledger.of_run(self.run.id, number).get(number)
        if record is not None:
            result = self.ledger.load(record)
            self.run.drop(number)  # a kill may have come in between
            return dataclasses.replace(entry, result=result, exit_code=result.exit_code)
        failure = self.ledger.failures(self.run.id, number).get(number)
        if failure is None:
            return None
        _, error, code = failure
        return dataclasses.replace(entry, error=error, exit_code=code)

    def check(self, number: int, question: Question, make: Callable[[None], Engine]) -> None:
        """Raises `CannotResume` where the mechanism of an audit that has ended is not what it was."""
        begun = self.run.begun(number)
        try:
            question.check_requirements()
            with make(None) as engine:
                description, pairs = engine.describe(question.mechanism, question.pairs, question.settle)
                spec = question.spec(description, pairs, runs=None if begun is None else begun.runs)
                parts = engine.made_of(question.mechanism)
        except DpAuditError as error:
            if begun is None:
                return  # it could not be asked before either
            raise no_longer(question, error) from None
        if begun is None:
            raise CannotResume(
                f"--resume: audit {question.name!r} could not be asked when it was tried, and now can; "
                "leave out --resume to begin anew"
            )
        with _of_the_whole_run():
            self.run.check(number, spec.to_dict(), parts)

    def begin(self, number: int, spec: dict[str, Any], parts: dict[str, str], runs: int | None) -> ShardStore:
        """Where the shards of an audit are kept that begins now, or goes on."""
        lost = unknown(parts)
        if lost and self.run.begun(number) is not None:
            say(f"note: audit {clean(spec['name'])!r} begins anew: {'; '.join(lost[:3])}")
            self.run.forget(number)
        with _of_the_whole_run():
            return self.run.begin(number, spec, parts, runs)

    def keep(self, number: int, entry: SuiteEntry) -> None:
        """Records how an audit ended; its shards are needed no longer."""
        if entry.result is not None:
            self.ledger.record(entry.result, run=self.run.id, number=number)
        else:
            self.ledger.fail(entry.name, entry.error or "", entry.exit_code, run=self.run.id, number=number)
        self.run.drop(number)


def no_longer(question: Question, error: DpAuditError) -> CannotResume:
    """An audit that had begun and now cannot even be asked."""
    return CannotResume(f"--resume: audit {question.name!r} had begun and can no longer be asked: {one_line(error)}")


@contextmanager
def _of_the_whole_run() -> Iterator[None]:
    """A question that is not what it was concerns the whole run, not one audit of it."""
    try:
        yield
    except InvalidSpec as error:
        raise CannotResume(f"--resume: {error}; leave out --resume to begin anew") from None


@contextmanager
def recording(
    questions: Sequence[Question], *, path: str | None, wanted: bool, again: bool, options: dict[str, Any]
) -> Iterator[Recording | None]:
    """The ledger for these questions, open: a new run in it, or with `again` the one that was not finished.

    `path` was asked for; without one it is the default, and where that cannot be used the audits run without. Raises
    `InvalidSpec` or `LedgerError` where what was asked for cannot be had.
    """
    if not wanted:
        yield None
        return
    with ExitStack() as opened:
        try:
            ledger = opened.enter_context(Ledger(DEFAULT if path is None else Path(path)))
            run = _run(ledger, questions, options, again=again)
        except LedgerError as error:
            if path is not None or again:
                raise
            say(f"note: {one_line(error)}; this run is not recorded, and cannot be resumed")
            yield None
            return
        opened.callback(run.close)
        yield Recording(ledger, run, again)


def _run(database: Database, questions: Sequence[Question], options: dict[str, Any], *, again: bool) -> Run:
    sources = sorted({str(question.source.resolve()) for question in questions})
    made = {name: value for name, value in versions().items() if name != "platform"}
    audits = {question.place: _asked(question) for question in questions}
    asked = {
        "dpaudit": made.pop("version"),
        "options": options,
        "versions": made,
        "audits": audits,
        "order": list(audits),  # an audit is known by its number
    }
    if again:
        return resume(database, sources, asked)
    left = taken(database, sources, asked)
    if left is not None:
        left.close()
        say(f"note: an unfinished run of the same audits ({left.id}) is in the ledger; --resume goes on with it")
    return start(database, sources, asked)


def _asked(question: Question) -> dict[str, Any]:
    """All of a question that decides its answer, as far as it is known before a mechanism is imported."""
    found = {field.name: getattr(question, field.name) for field in dataclasses.fields(question)}
    for key in ("source", "name", "tags", "record"):
        del found[key]
    mechanism = question.mechanism
    found["claim"] = question.claim.to_dict()
    found["expect"] = question.expect.value
    found["upper"] = None if question.upper is None else question.upper.to_dict()
    found["mechanism"] = [type(mechanism).__name__, _fields(mechanism)]
    found["pairs"] = [_pair(pair) for pair in question.pairs]
    return found


def _pair(pair: Any) -> Any:
    if not hasattr(pair, "record"):
        return _fields(pair)
    record = pair.record()
    return {**record, **{side: {"digest": record[side]["digest"]} for side in ("first", "second")}}


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
