"""`dpaudit run`: every audit of the given specs, one after the other, each as safe from the others as can be."""

from typing import Any

import click

from dpaudit.cli.group import Caller
from dpaudit.cli.options import nothing_to_audit, read_all, report_folder, report_formats, tagged, typed_again, wishes
from dpaudit.errors import InvalidSpec


@click.command("run")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--report", metavar="DIR", help="Write a JSON for each result, and a report of them all, into DIR.")
@click.option("--format", "formats", metavar="NAME,...", help="Formats of the report: json,md,html by default.")
@click.option("--confidence", type=float, metavar="C", help="Confidence of all audits together.")
@click.option("--seed", type=int, metavar="N", help="Seed of all randomness.")
@click.option("--runs", type=float, metavar="N", help="Executions to spend on each audit.")
@click.option("--controls", type=int, metavar="N", help="Repeat each spiked control so many times: 20 is usual.")
@click.option("--jobs", type=int, metavar="N", help="Workers; -1, the default, for all processors.")
@click.option("--backend", metavar="NAME", help="A joblib backend, instead of the one that fits the work.")
@click.option("--isolation", metavar="MODE", help="process: count where no mechanism runs; none: where it runs.")
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
def command(
    caller: Caller,
    /,
    paths: tuple[str, ...],
    report: str | None,
    jobs: int | None,
    backend: str | None,
    isolation: str | None,
    tags: tuple[str, ...],
    only: tuple[str, ...],
    formats: str | None,
    ledger: str | None,
    no_ledger: bool,
    resume: bool,
    accepted: str | None,
    no_progress: bool,
    quiet: bool,
    **asked: Any,
) -> int:
    """Run the audits of spec files, or of all spec files in a folder.

    Options go before the spec, the spec before [tool.dpaudit] in ./pyproject.toml.

    A run that was killed or interrupted goes on with --resume: nothing of it is lost, and nothing is counted twice.
    """
    from dpaudit.cli.recording import recording
    from dpaudit.cli.suite import Suite, header
    from dpaudit.execution.engine import Engine
    from dpaudit.ledger.baseline import DEFAULT, read_baseline
    from dpaudit.report import USUAL
    from dpaudit.spec.suite import shared

    wished = wishes(**asked)  # named as there
    workers = next(value for value in (jobs, wished.settings.jobs, -1) if value is not None)

    def engine(usual: str | None = None) -> Engine:
        return Engine(workers, backend, supervised=True, isolation=usual if isolation is None else isolation)

    engine()  # a bad value is refused once, here, and not by each audit
    questions = read_all(paths, wished)
    chosen = tagged(questions, tags, only)
    if not chosen:
        raise nothing_to_audit(paths, tags, len(questions))
    posed, together = shared(chosen)
    folder = report if report is not None else wished.settings.report
    if no_ledger and (ledger is not None or resume):
        raise InvalidSpec(f"--no-ledger and {'--resume' if resume else '--ledger'}: give one of the two")
    baseline = accepted if accepted is not None else wished.settings.accepted
    suite = Suite(
        posed,
        together,
        engine=engine,
        tags=tags,
        only=only,
        runs_given=(wished.runs or wished.settings.runs) is not None,
        controls=wished.controls,
        caller=caller,
        again=typed_again("--resume", without=("resume",)),
        accepted=read_baseline(DEFAULT if baseline is None else baseline, missing_ok=baseline is None),
        formats=USUAL if formats is None else tuple(each.name for each in report_formats(formats)),
        folder=None if folder is None else report_folder(folder),
    )
    where = ledger if ledger is not None else wished.settings.ledger
    options = {"confidence": together, "tags": sorted(tags)}
    with recording(posed, path=where, wanted=not no_ledger, again=resume, options=options) as kept:
        suite.recording = kept
        if not quiet:
            click.echo(header(posed, together))
        finished = suite.run(silent=no_progress or quiet)
    suite.tell(finished, quiet=quiet)
    return finished.exit_code
