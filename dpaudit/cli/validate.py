"""`dpaudit validate`: what can be known of a spec without running anybody's code."""

from __future__ import annotations

import json
from typing import Any

import click

from dpaudit.cli.options import nothing_to_audit, one_line, say, wishes
from dpaudit.errors import InvalidSpec


@click.command("validate")
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option(
    "--schema", type=click.Choice(["spec", "result", "suite"]), help="Print the JSON Schema of a file format instead."
)
def command(paths: tuple[str, ...], schema: str | None) -> int:
    """Check spec files, or all in a folder; a mechanism is imported only beside a stored proof, in another process."""
    if schema is not None:
        click.echo(json.dumps(_schema(schema), indent=1))
        return 0
    if not paths:
        raise click.UsageError("Missing argument 'PATH...'.")
    from dpaudit.spec_file.files import find_specs
    from dpaudit.spec_file.questions import read_spec

    wished = wishes()
    audits, wrong = 0, 0
    for path in find_specs(paths):
        try:
            found = read_spec(path, wished)
        except InvalidSpec as error:
            say(f"error: {one_line(error)}")
            wrong += 1
            continue
        audits += len(found)
        click.echo(f"{path}: {len(found)} audit{'' if len(found) == 1 else 's'}")
    if wrong:
        return InvalidSpec.exit_code
    if not audits:
        say(nothing_to_audit(paths, (), 0))
        return 5
    return 0


def _schema(name: str) -> dict[str, Any]:
    if name == "spec":
        from dpaudit.spec_file.tables import json_schema

        return json_schema()
    from dpaudit.results import stored

    return stored.suite_schema() if name == "suite" else stored.json_schema()
