"""`dpaudit bisect`: the version of a library at which the outcome of its audit changed."""

from pathlib import Path

import click

from dpaudit.cli.options import one_line, report_folder, say, show, typed_again


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
def command(spec: str, span: str, name: str | None, report: str, environments: str) -> int:
    """Find the first version of a library whose audit has another outcome than the first of A..B.

    SPEC names an [environment]; the version of its first requirement is exchanged. An outcome is the verdict, and
    whether bits refute. Versions that cannot be installed or audited are skipped, and named.
    """
    from dpaudit.errors import InvalidSpec
    from dpaudit.observatory.bisecting import VersionOutcome, at_version, bisect, versions
    from dpaudit.observatory.environments import Children
    from dpaudit.observatory.rows import choose, read_rows
    from dpaudit.observatory.running import Observer

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
            found = VersionOutcome.of(observer.see(at_version(row, version)).entry)
            say(f"{row.environment.package} {version}: {one_line(found.said or f'skipped, {found.error}')}")
            return found

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
