"""The items of the lecture notes, `items.toml` beside this module: each with the names of what implements it here."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

FILE = Path(__file__).with_name("items.toml")
NOTES = {
    "000": "Haghtalab 2020, Differential privacy",
    "001": "Bassi 2019, Differential privacy and generalization",
    "002": "CS 208, Machine learning with DP and ethics",
    "003": "Sarkar, Privacy",
    "004": "Cheema & Huszár, Differential privacy",
}
KINDS = (
    "definition",
    "mechanism",
    "algorithm",
    "theorem",
    "proposition",
    "lemma",
    "corollary",
    "claim",
    "proof",
    "remark",
    "question",
    "example",
    "exercise",
    "attack",
    "figure",
)
PLACES = ("statements", "entries", "attacks", "code")


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that the notes have: `notes` is the number of the lecture, `place` where in it, `item` what it is.

    `statements` are names of statements on the page, `entries` of mechanisms of the catalogue, `attacks` of attacks;
    `code` are importable names, `module:name`. Where all four are empty the item is missing.
    """

    notes: str
    place: str
    kind: str
    item: str
    statements: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    attacks: tuple[str, ...] = ()
    code: tuple[str, ...] = ()


def read(path: Path = FILE) -> tuple[Item, ...]:
    """The items of a file, in its order. Raises `ValueError` where one is not as `Item` says."""
    made = []
    for number, table in enumerate(tomllib.loads(path.read_text(encoding="utf-8")).get("item", []), start=1):
        here = f"item {number} ({table.get('item', 'no name')!r})"
        if unknown := set(table) - {field.name for field in fields(Item)}:
            raise ValueError(f"{here} has unknown keys: {', '.join(sorted(unknown))}")
        for key in ("notes", "place", "kind", "item"):
            if not isinstance(table.get(key), str) or not table[key]:
                raise ValueError(f"{here} needs a text {key!r}")
        for key in PLACES:
            if not isinstance(names := table.get(key, []), list) or not all(isinstance(each, str) for each in names):
                raise ValueError(f"{here}: {key!r} must be a list of names")
        if table["notes"] not in NOTES or table["kind"] not in KINDS:
            raise ValueError(f"{here}: notes are {', '.join(NOTES)}; a kind is one of {', '.join(KINDS)}")
        names = {key: tuple(table.get(key, ())) for key in PLACES}
        made.append(Item(table["notes"], table["place"], table["kind"], table["item"], **names))
    return tuple(made)


def missing(items: Iterable[Item]) -> list[str]:
    """The items that nothing fills."""
    return [each.item for each in items if not any(getattr(each, key) for key in PLACES)]


def astray(
    items: Iterable[Item],
    statements: Collection[str],
    entries: Mapping[str, bool],
    attacks: Collection[str],
) -> list[str]:
    """Names that lead nowhere, and what no item names, in words.

    `entries` says of each name whether an item must name it, or a twin of it.
    """
    given = tuple(items)
    known = {"statements": statements, "entries": entries, "attacks": attacks}
    told = {key: {name for each in given for name in getattr(each, key)} for key in known}
    told["entries"] |= {name.partition(".")[0] for name in told["entries"]}
    lost = [
        f"{each.item}: there is no {name!r} among the {key}"
        for each in given
        for key, names in known.items()
        for name in getattr(each, key)
        if name not in names
    ]
    lost += [f"{each.item}: {name!r} cannot be imported" for each in given for name in each.code if not leads(name)]
    asked = {**known, "entries": [name for name, needed in entries.items() if needed]}
    return lost + [
        f"no item names {name!r} of the {key}"
        for key, names in asked.items()
        for name in names
        if name not in told[key]
    ]


def leads(reference: str) -> bool:
    """Whether `module:name` can be imported; the name may have dots.

    >>> leads("dpaudit.catalogue.additive:laplace.half_noise"), leads("dpaudit:nothing")
    (True, False)
    """
    module, _, name = reference.partition(":")
    try:
        found: object = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError):
        return False
    return bool(name)


def file_of(reference: str) -> str:
    """The file of `module:name`, below the folder of the repository.

    >>> file_of("dpaudit.claims:PureDP")
    'dpaudit/claims/__init__.py'
    """
    place = importlib.import_module(reference.partition(":")[0]).__file__
    assert place is not None
    return Path(place).relative_to(Path(__file__).parents[3]).as_posix()
