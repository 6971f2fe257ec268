"""The items of the notes: none is missing, no name leads nowhere, and nothing here belongs to none of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from audits.lectures.claims import collect, items
from dpaudit.catalogue import entries
from dpaudit.catalogue.attacks import ATTACKS
from tests.audits.test_specs import ALL

ONE = '[[item]]\nnotes = "000"\nplace = "definition 2.1"\nkind = "definition"\nitem = "An item"\n'


def test_an_item_is_read_as_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "items.toml"
    path.write_text(f'{ONE}entries = ["laplace"]\n', encoding="utf-8")
    assert items.read(path) == (items.Item("000", "definition 2.1", "definition", "An item", entries=("laplace",)),)
    assert items.missing(items.read(path)) == []
    path.write_text(f"{ONE}entries = []\n", encoding="utf-8")
    assert items.missing(items.read(path)) == ["An item"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{ONE}files = []\n", "unknown keys: files"),
        (f'{ONE}entries = "laplace"\n', "'entries' must be a list of names"),
        (ONE.replace('"000"', '"005"'), "notes are 000"),
        (ONE.replace('"definition"', '"thing"'), "a kind is one of"),
        (ONE.replace("item =", "name ="), "unknown keys: name"),
        (ONE.replace('item = "An item"', 'item = ""'), "needs a text 'item'"),
    ],
)
def test_an_item_that_is_not_whole_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "items.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        items.read(tmp_path / "items.toml")


def test_what_is_astray_is_named() -> None:
    item = items.Item("000", "here", "example", "An item", ("a",), ("laplace.half", "b"), ("c",), ("dpaudit:no",))
    entries = {"laplace": False, "laplace.half": False, "gaussian": True}
    assert items.astray([item], ("a", "d"), entries, ("e",)) == [
        "An item: there is no 'b' among the entries",
        "An item: there is no 'c' among the attacks",
        "An item: 'dpaudit:no' cannot be imported",
        "no item names 'd' of the statements",
        "no item names 'gaussian' of the entries",
        "no item names 'e' of the attacks",
    ]


def test_nothing_of_the_notes_is_missing() -> None:
    assert items.missing(items.read()) == []


def test_every_name_leads_somewhere_and_everything_here_belongs_to_the_notes() -> None:
    held = items.read()
    statements = [each.name for found in collect.topics().values() for each in found]
    known = {each.name: each for entry in entries() for each in (entry, *entry.twins.values())}
    needed = {name: "." not in name and each.source.lecture is not None for name, each in known.items()}
    assert not items.astray(held, statements, needed, [each.name for each in ATTACKS])
    audited = {table["mechanism"] for path, table in ALL if path.parent == collect.SPECS}
    assert all(known[name].reference in audited for each in held for name in each.entries)
    assert {each.notes for each in held} == set(items.NOTES)
