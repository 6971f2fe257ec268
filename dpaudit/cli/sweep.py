"""`dpaudit sweep`: an audit at every point of the grids of a spec file."""

import contextlib
from pathlib import Path

import click

from dpaudit.account import templates
from dpaudit.base.files import report_folder, writing
from dpaudit.cli.commands import SweepCommand
from dpaudit.cli.options import layers, say, show
from dpaudit.errors import DpAuditError, InvalidSpec
from dpaudit.execution.engine import Engine
from dpaudit.ledger.database import DEFAULT
from dpaudit.ledger.results import Ledger
from dpaudit.options import WHERE
from dpaudit.report import slug
from dpaudit.spec.settings import read_settings
from dpaudit.sweeps import SweepInterrupted, run_sweep
from dpaudit.sweeps.page import growing
from dpaudit.sweeps.spec import read_sweep_file


def sweep_command(call: SweepCommand) -> int:
    if call.ledger is not None and call.no_ledger:
        raise InvalidSpec("--ledger and --no-ledger: give one of the two")
    project = read_settings(Path.cwd())
    workers = next(value for value in (call.jobs, project.jobs, -1) if value is not None)

    given = layers(call)
    where_run = {name: value for name, value in {**given.project, **given.command}.items() if name in WHERE}

    def engine() -> Engine:
        return Engine(workers, supervised=True, **where_run)

    engine()  # a bad value is refused once, here, and not by each point
    grids = read_sweep_file(call.spec, given)
    where = call.report if call.report is not None else project.report
    folder = report_folder("--report", where)
    code = 0
    with _ledger(call.ledger, project.ledger, call.no_ledger) as opened:
        for grid in grids:
            if not call.quiet:
                show(f"{grid.name}: {grid.size:,} point{'' if grid.size == 1 else 's'}")
            into = None if folder is None else folder if len(grids) == 1 else folder / slug(grid.name)
            try:
                shown = not (call.no_progress or call.quiet)
                table = run_sweep(grid, engine, ledger=opened, progress=shown, put=growing(into))
            except SweepInterrupted as error:
                goes_on = templates.CUT_OFF if opened is not None else ""
                done = f"{len(error.sweep.rows):,} of {grid.size:,} points done"
                raise KeyboardInterrupt(f"{done}{goes_on}") from None
            show(str(table))
            if into is not None:
                with writing("--report", str(into)):
                    click.echo(f"report: {table.write(into)[-1]}")
            code = max(code, table.exit_code)
    return code


def _ledger(given: str | None, setting: str | None, refused: bool) -> contextlib.AbstractContextManager[Ledger | None]:
    """The ledger that results go to; None where none is wanted, or the default one cannot be written."""
    named = given if given is not None else setting
    try:
        return contextlib.nullcontext() if refused else Ledger(DEFAULT if named is None else named)
    except DpAuditError as error:
        if named is not None:
            raise
        say(f"note: nothing is recorded: {error}")
        return contextlib.nullcontext()
