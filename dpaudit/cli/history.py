"""`dpaudit history`, `compare` and `accept`: results over time, changes between two records, reviewed findings."""

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpaudit.base.quoting import clean
from dpaudit.cli.options import check_writable, chosen_ledger, say, show, writing
from dpaudit.errors import InvalidSpec

if TYPE_CHECKING:
    from dpaudit.results.result import AuditResult


@click.command("history")
@click.argument("mechanism", metavar="MECHANISM")
@click.option(
    "--ledger", metavar="FILE", help="The ledger; otherwise that of [tool.dpaudit], or .dpaudit/ledger.sqlite."
)
@click.option("--figure", type=click.Path(), metavar="FILE", help="Draw the bound over time into a .svg or .png file.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="How the results are printed.",
)
def history_command(mechanism: str, ledger: str | None, figure: str | None, form: str) -> int:
    """Print every recorded result of MECHANISM: an audit's name, a mechanism's reference, or a fingerprint.

    A bound of more runs, or of a lower confidence, is a higher one: compare rows whose question is the same.
    """
    from dpaudit.ledger.history import as_csv, as_json, as_table, history, names
    from dpaudit.ledger.results import Ledger

    if figure is not None:
        if Path(figure).suffix.lower() not in (".svg", ".png"):
            raise InvalidSpec(f"--figure must end in .svg or .png, got {figure}")
        check_writable("--figure", figure)
    with Ledger(chosen_ledger(ledger), read_only=True) as opened:
        points = history(opened, mechanism)
        chain = opened.chain()
    if figure is not None and len(names(points)) > 1:
        several = ", ".join(map(repr, names(points)))
        raise InvalidSpec(
            f"--figure draws one audit, and {mechanism} names {len(names(points))}: give one of {several}"
        )
    if chain.wrong is not None:
        say(f"note: ledger {clean(opened.path, 200)}: {chain.text}; restore it from a copy")
    click.echo({"table": as_table, "csv": as_csv, "json": as_json}[form](points))
    if figure is not None:
        from dpaudit.report.figures import history_drawing

        with writing("--figure", figure):
            history_drawing([point.to_dict() for point in points]).save(figure)
        say(f"figure: {figure}")
    return 0


@click.command("compare")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option(
    "--fail-on",
    type=click.Choice(["regression", "any", "never"]),
    default="regression",
    show_default=True,
    help="What ends with 1: a regression, or any change beyond noise.",
)
@click.option("--ledger", metavar="FILE", help="Where commits are looked up; otherwise as for dpaudit history.")
@click.option("--rerun", is_flag=True, help="Run the old events again, on fresh runs of the code that is here.")
@click.option("--jobs", type=int, default=-1, metavar="N", help="Workers for --rerun; -1 for all processors.")
def compare_command(old: str, new: str, fail_on: str, ledger: str | None, rerun: bool, jobs: int) -> int:
    """Say what changed from OLD to NEW: each a result, a suite, a report folder, a ledger, or a commit in a ledger.

    A regression is a claim that became refuted, a bound that rose beyond noise, or a verdict that is not there any
    more. With --rerun, an old event whose spec file is here is counted on fresh runs, and rose where they show that it
    loses more than it did: that needs no margin for what search may miss. Ends with 5 where the two have no audit in
    common, unless nothing is to fail.
    """
    from dpaudit.account.change import comparison_lines
    from dpaudit.cli.recheck import fresh_result
    from dpaudit.ledger.comparison import compare
    from dpaudit.ledger.history import read_side

    where = chosen_ledger(ledger)
    (old_label, before), (new_label, after) = read_side(old, where), read_side(new, where)
    again = (lambda result: fresh_result(result, result.name, None, jobs, silent=True)) if rerun else None
    comparison = compare(before, after, old_label=old_label, new_label=new_label, again=again)
    for line in comparison_lines(comparison, fail_on):
        show(line)
    return comparison.exit_code(fail_on)


@click.command("accept")
@click.argument("finding", metavar="FINDING")
@click.option("--reason", required=True, metavar="TEXT", help="Why this finding is accepted; people will read it.")
@click.option(
    "--until", required=True, metavar="DATE", help="The last day, as 2026-03-01; from then on it fails again."
)
@click.option(
    "--accepted",
    type=click.Path(),
    metavar="FILE",
    help="The file; otherwise that of [tool.dpaudit], or dpaudit-accepted.toml.",
)
@click.option("--ledger", metavar="FILE", help="Where fingerprints are looked up; otherwise as for dpaudit history.")
def accept_command(finding: str, reason: str, until: str, accepted: str | None, ledger: str | None) -> int:
    """Accept FINDING, the file of a refuted result or a fingerprint in the ledger, for a reason and until a day.

    The finding is matched by its fingerprint (mechanism, claim, class of pair and event) and stays refuted in every
    report. When its last day is over, the audits fail again.
    """
    from dpaudit.account.suites import accepted_text
    from dpaudit.ledger.baseline import DEFAULT, accept, merged, read_baseline, write_baseline
    from dpaudit.spec.settings import read_settings

    try:
        last = date.fromisoformat(until)
    except ValueError:
        raise InvalidSpec(f"--until must be a day, as 2026-03-01, got {until!r}") from None
    result, bits = _finding(finding, ledger)
    new = accept(result, reason=reason, until=last, today=date.today(), representation=bits)
    path = accepted if accepted is not None else read_settings(Path.cwd()).accepted or DEFAULT
    all_of_them, before = merged(read_baseline(path, missing_ok=True), new)
    with writing("--accepted", path):
        write_baseline(path, all_of_them)
    show(accepted_text(new, path, before))
    return 0


def _finding(finding: str, ledger: str | None) -> "tuple[AuditResult, bool | None]":
    """The result, and whether its finding on bits is meant; None: whichever of the two is refuted."""
    from dpaudit.ledger.baseline import FINGERPRINT
    from dpaudit.ledger.results import Ledger
    from dpaudit.results.stored import load

    if not FINGERPRINT.fullmatch(finding) or Path(finding).exists():
        return load(finding), None
    with Ledger(chosen_ledger(ledger), read_only=True) as opened:
        records = [each for each in opened.find(finding) if finding in (each.fingerprint, each.representation)]
        if not records:
            raise InvalidSpec(f"{finding}: no finding of this fingerprint is in {opened.path}; give a result's file")
        latest = records[-1]
        return opened.load(latest), latest.fingerprint != finding
