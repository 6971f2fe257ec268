"""`dpaudit run` and `sweep`: the audits of spec files, one after the other, and at every point of a grid."""

import contextlib
from pathlib import Path
from typing import Any

import click

from dpaudit.cli.group import Caller
from dpaudit.cli.options import (
    POINTS,
    asked,
    layers,
    nothing_to_audit,
    read_all,
    report_folder,
    report_formats,
    say,
    show,
    tagged,
    typed_again,
    writing,
)
from dpaudit.errors import InvalidSpec
from dpaudit.report import slug


@click.command("run")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--report", metavar="DIR", help="Write a JSON for each result, and a report of them all, into DIR.")
@click.option("--format", "formats", metavar="NAME,...", help="Formats of the report: json,md,html by default.")
@asked("confidence", "seed", "runs", "controls")
@click.option("--jobs", type=int, metavar="N", help="Workers; -1, the default, for all processors.")
@click.option("--backend", metavar="NAME", help="A joblib backend, instead of the one that fits the work.")
@asked("isolation")
@click.option("--tag", "tags", multiple=True, metavar="WORD", help="Only audits with this tag; may be repeated.")
@click.option("--only", multiple=True, metavar="NAME", help="Only the audit of this name; may be repeated.")
@click.option("--ledger", metavar="FILE", help="Record results and shards here; .dpaudit/ledger.sqlite by default.")
@click.option("--no-ledger", is_flag=True, help="Record nothing: a run that is killed is lost.")
@click.option("--resume", is_flag=True, help="Go on with the newest run of these specs that was not finished.")
@click.option(
    "--accepted", metavar="FILE", help="Findings that were reviewed; dpaudit-accepted.toml where there is one."
)
@click.option("--no-progress", is_flag=True, help="Say nothing while the audits run.")
@click.option("--quiet", is_flag=True, help="Print the closing line only; implies --no-progress.")
@click.pass_obj
def run_command(
    caller: Caller,
    /,
    paths: tuple[str, ...],
    report: str | None,
    jobs: int | None,
    backend: str | None,
    tags: tuple[str, ...],
    only: tuple[str, ...],
    formats: str | None,
    ledger: str | None,
    no_ledger: bool,
    resume: bool,
    accepted: str | None,
    no_progress: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Run the audits of spec files, or of all spec files in a folder.

    Options go before the spec, the spec before [tool.dpaudit] in ./pyproject.toml.

    A run that was killed or interrupted goes on with --resume: nothing of it is lost, and nothing is counted twice.
    """
    from dpaudit.cli.suite import Suite, header, recording
    from dpaudit.execution.engine import Engine
    from dpaudit.ledger.baseline import DEFAULT, read_baseline
    from dpaudit.report import USUAL
    from dpaudit.spec.questions import shared
    from dpaudit.spec.settings import read_settings

    given, project = layers(**options), read_settings(Path.cwd())
    workers = next(value for value in (jobs, project.jobs, -1) if value is not None)

    def engine(isolation: str | None) -> Engine:
        return Engine(workers, backend, supervised=True, isolation=isolation)

    engine(given.command.get("isolation"))  # a bad value is refused once, here, and not by each audit
    questions = read_all(paths, given)
    chosen = tagged(questions, tags, only)
    if not chosen:
        raise nothing_to_audit(paths, tags, len(questions))
    posed, together = shared(chosen)
    folder = report if report is not None else project.report
    if no_ledger and (ledger is not None or resume):
        raise InvalidSpec(f"--no-ledger and {'--resume' if resume else '--ledger'}: give one of the two")
    baseline = accepted if accepted is not None else project.accepted
    suite = Suite(
        posed,
        together,
        engine=engine,
        tags=tags,
        only=only,
        layers=given,
        caller=caller,
        again=typed_again("--resume", without=("resume",)),
        accepted=read_baseline(DEFAULT if baseline is None else baseline, missing_ok=baseline is None),
        formats=USUAL if formats is None else tuple(each.name for each in report_formats(formats)),
        folder=None if folder is None else report_folder(folder),
    )
    where = ledger if ledger is not None else project.ledger
    together_asked = {"confidence": together, "tags": sorted(tags)}
    with recording(posed, path=where, wanted=not no_ledger, again=resume, options=together_asked) as record:
        suite.recording = record
        if not quiet:
            click.echo(header(posed, together))
        finished = suite.run(silent=no_progress or quiet)
    suite.tell(finished, quiet=quiet)
    return finished.exit_code


@click.command("sweep")
@click.argument("spec", metavar="SPEC")
@click.option("--report", metavar="DIR", help="Write the table (CSV), its figures and a page about them into DIR.")
@asked("runs", "seed", "confidence", about=POINTS)
@click.option("--jobs", type=int, metavar="N", help="Workers; -1, the default, for all processors.")
@click.option("--backend", metavar="NAME", help="A joblib backend, instead of the one that fits the work.")
@asked("isolation")
@click.option("--ledger", metavar="FILE", help="Record results here, and take from here those that are there already.")
@click.option("--no-ledger", is_flag=True, help="Record nothing, and run every point.")
@click.option("--no-progress", is_flag=True, help="Say nothing while the points run.")
@click.option("--quiet", is_flag=True, help="Print the closing lines only; implies --no-progress.")
def sweep_command(
    spec: str,
    report: str | None,
    jobs: int | None,
    backend: str | None,
    isolation: str | None,
    ledger: str | None,
    no_ledger: bool,
    no_progress: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Run the [sweep] tables of a spec file: an audit at every point of their grids.

    A refuted claim is a row like any other. Ends with 0 where every point has a verdict, and with 3 where one has none.
    Points that the ledger holds, for the same question and code, are not run again: an interrupted sweep goes on.
    """
    from dpaudit.execution.engine import Engine
    from dpaudit.spec.settings import read_settings
    from dpaudit.sweeps import SweepInterrupted, run_sweep
    from dpaudit.sweeps.page import growing
    from dpaudit.sweeps.spec import read_sweep_file

    if ledger is not None and no_ledger:
        raise InvalidSpec("--ledger and --no-ledger: give one of the two")
    project = read_settings(Path.cwd())
    workers = next(value for value in (jobs, project.jobs, -1) if value is not None)

    def engine() -> Engine:
        return Engine(workers, backend, supervised=True, isolation=isolation)

    engine()  # a bad value is refused once, here, and not by each point
    questions = read_sweep_file(spec, layers(**options))
    where = report if report is not None else project.report
    folder = None if where is None else report_folder(where)
    code = 0
    with _ledger(ledger, project.ledger, no_ledger) as opened:
        for question in questions:
            size = question.grid.size
            if not quiet:
                show(f"{question.name}: {size:,} point{'' if size == 1 else 's'}")
            into = None if folder is None else folder if len(questions) == 1 else folder / slug(question.name)
            try:
                table = run_sweep(
                    question.grid,
                    engine,
                    name=question.name,
                    prove=question.prove,
                    ledger=opened,
                    progress=not (no_progress or quiet),
                    put=growing(into),
                )
            except SweepInterrupted as error:
                goes_on = "; the same command goes on from there" if opened is not None else ""
                done = f"{len(error.sweep.rows):,} of {size:,} points done"
                raise KeyboardInterrupt(f"{done}{goes_on}") from None
            show(str(table))
            if into is not None:
                with writing("--report", str(into)):
                    click.echo(f"report: {table.write(into)[-1]}")
            code = max(code, table.exit_code)
    return code


def _ledger(given: str | None, setting: str | None, refused: bool) -> contextlib.AbstractContextManager[Any]:
    """The ledger that results go to; None where none is wanted, or the default one cannot be written."""
    from dpaudit.errors import DpAuditError
    from dpaudit.ledger.database import DEFAULT
    from dpaudit.ledger.results import Ledger

    named = given if given is not None else setting
    try:
        return contextlib.nullcontext() if refused else Ledger(DEFAULT if named is None else named)
    except DpAuditError as error:
        if named is not None:
            raise
        say(f"note: nothing is recorded: {error}")
        return contextlib.nullcontext()
