"""`dpaudit run`: the audits of spec files, one after the other."""

from pathlib import Path

import click

from dpaudit.cli.commands import RunCommand
from dpaudit.cli.options import chosen_questions, layers, report_folder, report_formats, typed_again
from dpaudit.cli.suite import Suite, header, recording
from dpaudit.errors import InvalidSpec
from dpaudit.execution.engine import Engine
from dpaudit.ledger.baseline import DEFAULT, read_baseline
from dpaudit.report import USUAL
from dpaudit.spec.questions import shared
from dpaudit.spec.settings import read_settings


def run_command(call: RunCommand) -> int:
    given, project = layers(call), read_settings(Path.cwd())
    workers = next(value for value in (call.jobs, project.jobs, -1) if value is not None)

    def engine(isolation: str | None) -> Engine:
        return Engine(workers, call.backend, supervised=True, isolation=isolation)

    engine(given.command.get("isolation"))  # a bad value is refused once, here, and not by each audit
    posed, together = shared(chosen_questions(call.paths, given, call.tags, call.only))
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
        accepted=read_baseline(DEFAULT if baseline is None else baseline, missing_ok=baseline is None),
        formats=USUAL if call.formats is None else tuple(each.name for each in report_formats(call.formats)),
        folder=None if folder is None else report_folder(folder),
    )
    where = call.ledger if call.ledger is not None else project.ledger
    together_asked = {"confidence": together, "tags": sorted(call.tags)}
    with recording(call, posed, where, together_asked) as record:
        suite.recording = record
        if not call.quiet:
            click.echo(header(posed, together))
        finished = suite.run()
    suite.tell(finished)
    return finished.exit_code
