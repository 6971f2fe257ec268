"""`dpaudit compare`: what changed between two records of audits, and whether a build fails for it."""

import click

from dpaudit.cli.options import chosen_ledger, show


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
def command(old: str, new: str, fail_on: str, ledger: str | None, rerun: bool, jobs: int) -> int:
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
