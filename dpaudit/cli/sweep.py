"""`dpaudit sweep`: an audit at every point of a grid, as a table with figures."""

import contextlib
from typing import Any

import click

from dpaudit.cli.options import report_folder, say, show, wishes, writing
from dpaudit.errors import InvalidSpec
from dpaudit.report import slug


@click.command("sweep")
@click.argument("spec", metavar="SPEC")
@click.option("--report", metavar="DIR", help="Write the table (CSV), its figures and a page about them into DIR.")
@click.option("--runs", type=float, metavar="N", help="Executions to spend on each point.")
@click.option("--seed", type=int, metavar="N", help="Seed of all randomness, instead of those of the spec.")
@click.option("--confidence", type=float, metavar="C", help="Confidence of each point for itself.")
@click.option("--jobs", type=int, metavar="N", help="Workers; -1, the default, for all processors.")
@click.option("--backend", metavar="NAME", help="A joblib backend, instead of the one that fits the work.")
@click.option("--isolation", metavar="MODE", help="process: count where no mechanism runs; none: where it runs.")
@click.option("--ledger", metavar="FILE", help="Record results here, and take from here those that are there already.")
@click.option("--no-ledger", is_flag=True, help="Record nothing, and run every point.")
@click.option("--no-progress", is_flag=True, help="Say nothing while the points run.")
@click.option("--quiet", is_flag=True, help="Print the closing lines only; implies --no-progress.")
def command(
    spec: str,
    report: str | None,
    jobs: int | None,
    backend: str | None,
    isolation: str | None,
    ledger: str | None,
    no_ledger: bool,
    no_progress: bool,
    quiet: bool,
    **asked: Any,
) -> int:
    """Run the [sweep] tables of a spec file: an audit at every point of their grids.

    A refuted claim is a row like any other. Ends with 0 where every point has a verdict, and with 3 where one has none.
    Points that the ledger holds, for the same question and code, are not run again: an interrupted sweep goes on.
    """
    from dpaudit.execution.engine import Engine
    from dpaudit.sweeps import SweepInterrupted, run_sweep
    from dpaudit.sweeps.page import growing
    from dpaudit.sweeps.spec import read_sweep_file

    if ledger is not None and no_ledger:
        raise InvalidSpec("--ledger and --no-ledger: give one of the two")
    wished = wishes(**asked)  # named as there
    workers = next(value for value in (jobs, wished.settings.jobs, -1) if value is not None)

    def engine() -> Engine:
        return Engine(workers, backend, supervised=True, isolation=isolation)

    engine()  # a bad value is refused once, here, and not by each point
    questions = read_sweep_file(spec, wished)
    where = report if report is not None else wished.settings.report
    folder = None if where is None else report_folder(where)
    code = 0
    with _ledger(ledger, wished.settings.ledger, no_ledger) as opened:
        for question in questions:
            size = question.grid.size
            if not quiet:
                show(f"{question.name}: {size:,} point{'' if size == 1 else 's'}")
            into = None if folder is None else folder if len(questions) == 1 else folder / slug(question.name)
            try:
                found = run_sweep(
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
            show(str(found))
            if into is not None:
                with writing("--report", str(into)):
                    click.echo(f"report: {found.write(into)[-1]}")
            code = max(code, found.exit_code)
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
