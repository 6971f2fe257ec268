"""`dpaudit catalogue`: the mechanisms that come with dpaudit, and how to audit one."""

import json
from typing import Any

from dpaudit.account import templates
from dpaudit.catalogue import Entry, rooms
from dpaudit.catalogue import find as find
from dpaudit.catalogue.attacks import ATTACKS, achieves, allowed
from dpaudit.catalogue.attacks.attack import Attack
from dpaudit.catalogue.entry import written
from dpaudit.cli.commands import CatalogueCommand
from dpaudit.cli.options import show


def catalogue_command(call: CatalogueCommand) -> int:
    attacks = {attack.name: attack for attack in ATTACKS}
    entries = {
        topic: [each for entry in room for each in (entry, *entry.twins.values())] for topic, room in rooms().items()
    }
    if len(call.words) == 1 and call.words[0] in attacks:
        show("\n".join(_attack_page(attacks[call.words[0]])))
        return 0
    if len(call.words) == 1 and call.words[0] in {each.name for room in entries.values() for each in room}:
        show("\n".join(_page(find(call.words[0]))))
        return 0
    rows = {topic: [_row(each, topic) for each in room] for topic, room in entries.items()}
    rows["Attacks on releases"] = [(each.name, "attack", each.title, each.formula) for each in ATTACKS]
    every = [row for room in rows.values() for row in room]
    asked = [word.lower() for word in call.words]
    chosen = [row for row in every if all(word in " ".join(row).lower() for word in asked)]
    if not chosen:
        find(" ".join(call.words))  # says what is near
    width = max(len(row[0]) for row in chosen)
    for topic, room in rows.items():
        if here := [row for row in room if row in chosen]:
            show("\n".join([f"{topic}\n", *(f"  {row[0]:<{width}}  {row[1]:<16}  {row[2]}" for row in here), ""]))
    keeping, broken = (sum(row[1].startswith(kind) for row in chosen) for kind in (("keeps", "does"), "breaks"))
    show(templates.KEEPING.format(keeping=keeping, broken=broken))
    return 0


def _row(entry: Entry, topic: str) -> tuple[str, str, str, str]:
    """Name, indented for a twin, whether it keeps its claim, title, and further text that words are searched in."""
    about = f"{entry.name} {topic} {entry.formula} {entry.claim()} {entry.claim().form}"
    return ("  " if entry.reason else "") + entry.name, _keeps(entry), entry.title, about


def _keeps(entry: Entry) -> str:
    if entry.broken:
        return "breaks its claim"
    return "does no harm" if entry.reason else "keeps its claim"


def _page(entry: Entry) -> list[str]:
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
    claim, pair = attack.private.claim(), attack.pair
    rates = [achieves(attack, entry, attack.runs, seed=0).advantage for entry in (attack.without, attack.private)]
    most = allowed(claim.epsilon_at(claim.delta), claim.delta)
    return [
        f"{attack.name}: {attack.title}",
        "",
        f"formula     {attack.formula}",
        f"worlds      {pair.first!r} against {pair.second!r}",
        f"source      {attack.source.paper}" + (f"; lecture: {attack.source.lecture}" if attack.source.lecture else ""),
        templates.ADVANTAGE.format(name=attack.without.name, rate=rates[0], runs=attack.runs),
        f"with DP     {attack.private.name}: advantage {rates[1]:.3f}; {claim} allows at most {most:.3f}",
    ]


def _toml(value: Any) -> str:
    """A plain value in the notation of a spec."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    number = isinstance(value, float)  # JSON has no infinity
    return repr(float(value)) if number else json.dumps(value, ensure_ascii=False)
