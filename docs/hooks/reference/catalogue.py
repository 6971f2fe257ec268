"""The catalogue as tables: every entry and twin, with its claim and whether it keeps it."""

from __future__ import annotations

from dpaudit.catalogue import Entry, rooms
from dpaudit.catalogue.attacks import ATTACKS
from reference import text
from reference.text import code, prose, table

INTRODUCTION = """\
Mechanisms from the literature, each with its twins: the mistakes people make in it. A name from this page goes into
`dpaudit catalogue NAME`, which prints the formula, the source, the parameters and a spec, into
`dpaudit.catalogue.find`, and, with its module, into a spec file. A twin is written `entry.twin`."""


def page() -> str:
    """The page."""
    parts = []
    for topic, room in rooms().items():
        every = [each for entry in room for each in (entry, *entry.twins.values())]
        rows = [(code(each.name), prose(each.title), prose(str(each.claim())), _keeps(each)) for each in every]
        parts += [f"## {topic}", f"`{room[0].module}`", table(("name", "what it is", "claim", "keeps it"), rows)]
    attacks = [(code(attack.name), prose(attack.title)) for attack in ATTACKS]
    return text.page(
        "Catalogue", INTRODUCTION, *parts, "## Attacks on releases", table(("name", "what it is"), attacks)
    )


def _keeps(entry: Entry) -> str:
    if entry.broken:
        return f"no: {prose(entry.reason)}" if entry.reason else "no"
    return f"yes: {prose(entry.reason)}" if entry.reason else "yes"
