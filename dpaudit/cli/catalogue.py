"""`dpaudit catalogue`: the mechanisms that come with dpaudit, and how to audit one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dpaudit.catalogue import Entry
    from dpaudit.catalogue.attacks.attack import Attack


@click.command("catalogue")
@click.argument("name", required=False)
def command(name: str | None) -> int:
    """List mechanisms by topic, each with its twins, and attacks; or describe the one called NAME."""
    from dpaudit.catalogue import find, rooms
    from dpaudit.catalogue.attacks import ATTACKS

    if name is not None:
        known = {attack.name: attack for attack in ATTACKS}
        click.echo("\n".join(_attack_page(known[name]) if name in known else _page(find(name))))
        return 0
    held = {
        topic: [each for entry in room for each in (entry, *entry.twins.values())] for topic, room in rooms().items()
    }
    every = [each for room in held.values() for each in room]
    width = max(len(_heading(each)[0]) for each in every)
    for topic, room in held.items():
        click.echo(f"{topic}\n")
        for each in room:
            label, title = _heading(each)
            click.echo(f"  {label:<{width}}  {_keeps(each):<16}  {title}")
        click.echo()
    click.echo("Attacks on releases\n")
    for attack in ATTACKS:
        click.echo(f"  {attack.name:<{width}}  {attack.title}")
    click.echo()
    sound, broken = (sum(each.broken is kind for each in every) for kind in (False, True))
    click.echo(f"{sound} keep their claim, {broken} break it; `dpaudit catalogue NAME` describes one")
    return 0


def named(name: str) -> Entry:
    """The entry or twin of this name; raises `InvalidSpec`."""
    from dpaudit.catalogue import find

    return find(name)


def _heading(entry: Entry) -> tuple[str, str]:
    """Its name, indented for a twin, and its title."""
    return ("  " if entry.reason else "") + entry.name, entry.title


def _keeps(entry: Entry) -> str:
    if entry.broken:
        return "breaks its claim"
    return "does no harm" if entry.reason else "keeps its claim"


def _page(entry: Entry) -> list[str]:
    from dpaudit.catalogue.entry import written

    pair, claim = entry.pair, entry.claim()
    loss = entry.true_loss(pair.first, pair.second)
    unit = "" if claim.parameter == "epsilon" else f" ({claim.parameter})"
    program = written(entry.program)
    lines = [
        f"{entry.name}: {entry.title}",
        "",
        f"formula     {entry.formula}",
        f"claim       {claim}; neighbours are {entry.neighbours}",
        f"verdict     {_keeps(entry)}" + (f": {entry.reason}" if entry.reason else ""),
        f"pair        {pair.first!r} against {pair.second!r}"
        + ("" if loss is None else f", exact loss {loss:.6g}{unit}"),
        f"source      {entry.source.paper}" + (f"; lecture: {entry.source.lecture}" if entry.source.lecture else ""),
        f"program     {program.__name__} in {program.__module__}, line {program.__code__.co_firstlineno}",
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


def _attack_page(attack: Attack) -> list[str]:
    from dpaudit.catalogue.attacks import achieves, allowed

    claim, pair = attack.private.claim(), attack.pair
    rates = [achieves(attack, entry, attack.runs, seed=0).advantage for entry in (attack.without, attack.private)]
    most = allowed(claim.epsilon_at(claim.delta), claim.delta)
    return [
        f"{attack.name}: {attack.title}",
        "",
        f"formula     {attack.formula}",
        f"worlds      {pair.first!r} against {pair.second!r}",
        f"source      {attack.source.paper}" + (f"; lecture: {attack.source.lecture}" if attack.source.lecture else ""),
        f"without DP  {attack.without.name}: advantage {rates[0]:.3f} over {attack.runs:,} runs in each world",
        f"with DP     {attack.private.name}: advantage {rates[1]:.3f}; {claim} allows at most {most:.3f}",
    ]


def _toml(value: Any) -> str:
    """A plain value in the notation of a spec."""
    import json

    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    held = isinstance(value, float)  # JSON has no infinity
    return repr(float(value)) if held else json.dumps(value, ensure_ascii=False)
