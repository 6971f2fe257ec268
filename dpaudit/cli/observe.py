"""`dpaudit observe` and `bisect`: audits of libraries and their versions, each in an environment of its own."""

import os
from contextlib import suppress
from pathlib import Path

import click

from dpaudit.cli.options import layers, nothing_to_audit, one_line, report_folder, say, show, typed_again
from dpaudit.errors import InvalidSpec


@click.command("observe")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "--report", default="reports/libraries", show_default=True, metavar="DIR", help="Write the page into DIR."
)
@click.option(
    "--environments", default=".environments", show_default=True, metavar="DIR", help="Where environments are, or go."
)
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Rows at a time; as many as processors by default.")
@click.option("--tag", "tags", multiple=True, metavar="WORD", help="Only rows with this tag; may be repeated.")
@click.option("--skip-tag", "skipped", multiple=True, metavar="WORD", help="No row with this tag; may be repeated.")
@click.option("--fast", is_flag=True, help="No row that does less than a thousand runs a second: --skip-tag slow.")
@click.option("--only", multiple=True, metavar="NAME", help="Only the row of this name; may be repeated.")
@click.option("--confidence", type=float, metavar="C", help="Confidence of the audits of each file together.")
@click.option("--ledger", metavar="FILE", help="Record results and shards here; .dpaudit/ledger.sqlite by default.")
@click.option("--resume", is_flag=True, help="Take what is finished as it is, and go on with the rest.")
def observe_command(
    paths: tuple[str, ...],
    report: str,
    environments: str,
    jobs: int | None,
    tags: tuple[str, ...],
    skipped: tuple[str, ...],
    fast: bool,
    only: tuple[str, ...],
    confidence: float | None,
    ledger: str | None,
    resume: bool,
) -> int:
    """Audit libraries: every spec file under PATH that names an [environment] runs in that one.

    Environments are made where they are missing. A plain count, where a row has one, is made beside the audit.
    """
    from dpaudit.observatory.environments import Children
    from dpaudit.observatory.page import Observation, line
    from dpaudit.observatory.rows import SLOW, Observed, Observer, choose, read_rows

    rows, left_out = read_rows(paths, Path(environments), layers(confidence=confidence))
    for path in left_out:
        say(f"note: {path} names no [environment] and is left out; `dpaudit run` runs it")
    chosen = choose(rows, tags=tags, skipped=(*skipped, *[SLOW] * fast), only=only)
    if not chosen:
        raise nothing_to_audit(paths, tags, len(rows))
    folder = report_folder(report)
    finished: dict[str, Observed] = {}

    def tell(seen: Observed) -> None:
        finished[seen.row.question.name] = seen
        say(f"[{len(finished)}/{len(chosen)}] {one_line(line(seen))}")

    with suppress(KeyboardInterrupt):
        Observer(folder, ledger, resume, Children(), say).observe(chosen, jobs or os.cpu_count() or 1, tell)
    observation = Observation(
        tuple(finished[row.question.name] for row in chosen if row.question.name in finished),
        tuple(row for row in rows if row not in chosen),
        tuple(row for row in chosen if row.question.name not in finished),
        ("--environments", environments, *(() if confidence is None else ("--confidence", repr(confidence)))),
    )
    page = observation.write(folder)
    for seen in observation.seen:
        show(line(seen))
    show(f"\n{observation.headline}; exit code {observation.exit_code}\nreport: {page}")
    if observation.unfinished:
        raise KeyboardInterrupt(f"go on with: {typed_again('--resume', without=('resume',))}")
    return observation.exit_code


@click.command("bisect")
@click.argument("spec", metavar="SPEC")
@click.option("--versions", "span", required=True, metavar="A..B", help="Releases to look among, as 1.1.2..1.2.0.")
@click.option("--audit", "name", metavar="NAME", help="The audit to ask, where SPEC has several.")
@click.option(
    "--report", default="reports/bisect", show_default=True, metavar="DIR", help="Keep what was found of each in DIR."
)
@click.option(
    "--environments", default=".environments", show_default=True, metavar="DIR", help="Where environments are, or go."
)
def bisect_command(spec: str, span: str, name: str | None, report: str, environments: str) -> int:
    """Find the first version of a library whose audit has another outcome than the first of A..B.

    SPEC names an [environment]; the version of its first requirement is exchanged. An outcome is the verdict, and
    whether bits refute. Versions that cannot be installed or audited are skipped, and named.
    """
    from dpaudit.observatory.environments import Children
    from dpaudit.observatory.rows import Observer, VersionOutcome, at_version, bisect, choose, read_rows, versions

    rows, left_out = read_rows([spec], Path(environments))
    if left_out:
        raise InvalidSpec(f"{left_out[0]} names no [environment], so there is no library to exchange")
    chosen = choose(rows, only=[name] if name else (), option="--audit")
    if len(chosen) != 1:
        names = ", ".join(repr(row.question.name) for row in chosen)
        raise InvalidSpec(f"{spec} has {len(chosen)} audits; choose one by --audit: {names}")
    row, children = chosen[0], Children()
    observer = Observer(report_folder(report), None, True, children, say)
    try:
        row.environment.make(children, say)
        known = versions(row.environment.package, span, row.environment.own, children)

        def ask(version: str) -> VersionOutcome:
            outcome = VersionOutcome.of(observer.see(at_version(row, version)).entry)
            say(f"{row.environment.package} {version}: {one_line(outcome.said or f'skipped, {outcome.error}')}")
            return outcome

        change = bisect(known, ask)
    except KeyboardInterrupt:
        children.end()
        raise
    one_of = f"one of {', '.join((*change.between, change.after))}" if change.between else change.after
    show(f"{row.environment.package} {one_of} is the first version with another outcome")
    for version, outcome in zip((change.before, change.after), change.outcomes, strict=True):
        show(f"  {version}: {outcome.said}")
    for version, error in change.skipped.items():
        show(f"  {version}: skipped: {one_line(error)}")
    show(f"This supposes one change among {len(known)} versions, {known[0]} to {known[-1]}.")
    click.echo(f"repeat: {typed_again(without=('report', 'environments'))}")
    return 0
