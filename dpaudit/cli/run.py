"""`dpaudit run`: every audit of the given specs, one after the other, each as safe from the others as can be."""

from __future__ import annotations

from pathlib import Path

import click

from dpaudit.cli.group import Caller
from dpaudit.cli.options import nothing_to_audit, tagged, wishes
from dpaudit.cli.words import one_line, say


@click.command("run")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--report", metavar="DIR", help="Write a JSON for each result, and report.md, into DIR.")
@click.option("--confidence", type=float, metavar="C", help="Confidence of all audits together.")
@click.option("--seed", type=int, metavar="N", help="Seed of all randomness.")
@click.option("--runs", type=float, metavar="N", help="Executions to spend on each audit.")
@click.option("--controls", type=int, metavar="N", help="Repeat each spiked control so many times: 20 is usual.")
@click.option("--jobs", type=int, metavar="N", help="Workers; -1, the default, for all processors.")
@click.option("--backend", metavar="NAME", help="A joblib backend, instead of the one that fits the work.")
@click.option("--tag", "tags", multiple=True, metavar="WORD", help="Only audits with this tag; may be repeated.")
@click.option("--no-progress", is_flag=True, help="Say nothing while the audits run.")
@click.option("--quiet", is_flag=True, help="Print the closing line only; implies --no-progress.")
@click.pass_obj
def command(
    caller: Caller,
    paths: tuple[str, ...],
    report: str | None,
    confidence: float | None,
    seed: int | None,
    runs: float | None,
    controls: int | None,
    jobs: int | None,
    backend: str | None,
    tags: tuple[str, ...],
    no_progress: bool,
    quiet: bool,
) -> int:
    """Run the audits of spec files, or of all spec files in a folder.

    Options go before the spec, the spec before [tool.dpaudit] in ./pyproject.toml.
    """
    from dpaudit.cli.suite import Suite, header
    from dpaudit.errors import InvalidSpec
    from dpaudit.sampling import Engine
    from dpaudit.spec_file import Question, find_specs, read_spec
    from dpaudit.spec_file.suite import shared

    wished = wishes(runs=runs, confidence=confidence, seed=seed, controls=controls)
    jobs = next(value for value in (jobs, wished.settings.jobs, -1) if value is not None)
    Engine(jobs, backend, supervised=True)  # a bad value is refused once, here, and not by each audit
    questions: list[Question] = []
    wrong = 0
    for path in find_specs(paths):
        try:
            questions += read_spec(path, wished)
        except InvalidSpec as error:
            say(f"error: {one_line(error)}")
            wrong += 1
    if wrong:
        return InvalidSpec.exit_code
    chosen = tagged(questions, tags)
    if not chosen:
        say(nothing_to_audit(paths, tags, len(questions)))
        return 5
    posed, together = shared(chosen)
    folder = report if report is not None else wished.settings.report
    overridden = runs is not None or wished.settings.runs is not None
    suite = Suite(
        posed, together, jobs=jobs, backend=backend, tags=tags, runs_given=overridden, controls=controls, caller=caller
    )
    suite.prepare(None if folder is None else Path(folder))
    if not quiet:
        click.echo(header(posed, together))
    finished = suite.run(silent=no_progress or quiet)
    suite.tell(finished, quiet=quiet)
    return finished.exit_code
