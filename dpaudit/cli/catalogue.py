"""`dpaudit catalogue`: the mechanisms that come with dpaudit, and how to audit one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dpaudit.catalogue import Entry


@click.command("catalogue")
@click.argument("name", required=False)
def command(name: str | None) -> int:
    """List the mechanisms of the catalogue, or describe the one called NAME."""
    from dpaudit.catalogue import entries, find

    if name is not None:
        click.echo("\n".join(_page(find(name))))
        return 0
    rows = [(each.name, each.title, _keeps(each)) for entry in entries() for each in (entry, *entry.twins.values())]
    left, middle = (max(len(row[column]) for row in rows) for column in (0, 1))
    for entry_name, title, keeps in rows:
        click.echo(f"{entry_name:<{left}}  {title:<{middle}}  {keeps}")
    return 0


def _keeps(entry: Entry) -> str:
    return "breaks its claim" if entry.broken else "keeps its claim"


def _page(entry: Entry) -> list[str]:
    pair = entry.pair
    loss = entry.true_epsilon(pair.first, pair.second)
    lines = [
        f"{entry.name}: {entry.title}",
        "",
        f"formula     {entry.formula}",
        f"claim       {entry.claim()}; neighbours are {entry.neighbours}",
        f"verdict     {_keeps(entry)}" + (f": {entry.reason}" if entry.reason else ""),
        f"pair        {pair.first!r} against {pair.second!r}" + ("" if loss is None else f", exact loss {loss:.6g}"),
        f"source      {entry.source.paper}" + (f"; lecture: {entry.source.lecture}" if entry.source.lecture else ""),
    ]
    for title, parameter in zip(("parameters", *[""] * len(entry.parameters)), entry.parameters, strict=False):
        unit = f" ({parameter.unit})" if parameter.unit else ""
        lines.append(f"{title:<12}{parameter.name} = {_toml(parameter.default)}{unit}: {parameter.meaning}")
    for title, twin in zip(("twins", *[""] * len(entry.twins)), entry.twins.values(), strict=False):
        lines.append(f"{title:<12}{twin.name}: {twin.title}")
    values = ", ".join(f"{key} = {_toml(value)}" for key, value in entry.values().items())
    return [
        *lines,
        "",
        "as a spec:",
        "",
        'schema = "dpaudit.audit/1"',
        "[[audit]]",
        f"name = {_toml(entry.title)}",
        f"mechanism = {_toml(entry.reference)}",
        *([f"parameters = {{ {values} }}"] if values else []),
        f"pair = {{ first = {_toml(pair.first)}, second = {_toml(pair.second)} }}",
        f"expect = {_toml(entry.expect)}",
    ]


def _toml(value: Any) -> str:
    """A plain value in the notation of a spec."""
    import json

    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)
