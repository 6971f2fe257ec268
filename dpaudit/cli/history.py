"""`dpaudit history`: the certified bound of a mechanism over time, from the ledger."""

import click

from dpaudit.base.quoting import clean
from dpaudit.cli.options import check_writable, chosen_ledger, say, writing
from dpaudit.errors import InvalidSpec


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
def command(mechanism: str, ledger: str | None, figure: str | None, form: str) -> int:
    """Print every recorded result of MECHANISM: an audit's name, a mechanism's reference, or a fingerprint.

    A bound of more runs, or of a lower confidence, is a higher one: compare rows whose question is the same.
    """
    from pathlib import Path

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
