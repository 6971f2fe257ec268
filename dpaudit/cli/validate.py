"""`dpaudit validate`: what can be known of a spec without running anybody's code."""

import json
from collections.abc import Sequence
from pathlib import Path

import click

from dpaudit.cli.options import nothing_to_audit, read_all, wishes


@click.command("validate")
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option(
    "--schema", type=click.Choice(["spec", "result", "suite"]), help="Print the JSON Schema of a file format instead."
)
def command(paths: tuple[str, ...], schema: str | None) -> int:
    """Check spec files, or all in a folder; a mechanism is imported only beside a stored proof, in another process."""
    if schema is not None:
        from dpaudit.results import stored
        from dpaudit.spec import tables

        makers = {"spec": tables.json_schema, "result": stored.json_schema, "suite": stored.suite_schema}
        click.echo(json.dumps(makers[schema](), indent=1))
        return 0
    if not paths:
        raise click.UsageError("Missing argument 'PATH...'.")

    from dpaudit.adapters.adapted import OwnClaim
    from dpaudit.spec.questions import Question

    def told(path: Path, found: Sequence[Question]) -> None:
        asked = sum(isinstance(question.claim, OwnClaim) for question in found)
        left = f"; the claim of {asked} is left to the mechanism, which `dpaudit plan` asks" if asked else ""
        click.echo(f"{path}: {len(found)} audit{'' if len(found) == 1 else 's'}{left}")

    if not read_all(paths, wishes(), told):
        raise nothing_to_audit(paths, (), 0)
    return 0
