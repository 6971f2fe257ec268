"""`dpaudit compare`: what changed between two records of audits, and whether a build fails for it."""

from __future__ import annotations

import click

from dpaudit.cli.options import chosen_ledger


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
def command(old: str, new: str, fail_on: str, ledger: str | None) -> int:
    """Say what changed from OLD to NEW: each a result, a suite, a report folder, a ledger, or a commit in a ledger.

    A regression is a claim that became refuted, a bound that rose beyond noise, or a verdict that is not there any
    more. Ends with 5 where the two have no audit in common, unless nothing is to fail.
    """
    from dpaudit.ledger.comparison import compare
    from dpaudit.ledger.sources import read_side
    from dpaudit.results.wording.comparisons import comparison_lines

    where = chosen_ledger(ledger)
    (old_label, before), (new_label, after) = read_side(old, where), read_side(new, where)
    comparison = compare(before, after, old_label=old_label, new_label=new_label)
    for line in comparison_lines(comparison, fail_on):
        click.echo(line)
    return comparison.exit_code(fail_on)
