"""Mechanisms from the literature, each with its claim, its exact loss where known, and its broken twins."""

import importlib

from dpaudit.base import validate
from dpaudit.catalogue.entry import Entry, Parameter, Source, Twin
from dpaudit.errors import InvalidSpec

__all__ = ["Entry", "Parameter", "Source", "Twin", "entries", "find", "rooms"]

_ROOMS = ("additive", "selection", "sparse", "local", "composition", "releases", "learning", "adaptive")


def entries() -> tuple[Entry, ...]:
    """All entries in order; the twins of each are in its `twins`.

    >>> [entry.name for entry in entries()][:2]
    ['laplace', 'laplace_vector']
    """
    return tuple(entry for group in rooms().values() for entry in group)


def rooms() -> dict[str, tuple[Entry, ...]]:
    """The entries by room: what the room is about, in one line, and its entries.

    >>> list(rooms())[0]
    'Additive noise'
    """
    modules = [importlib.import_module(f"{__name__}.{room}") for room in _ROOMS]
    return {str(module.__doc__).splitlines()[0].rstrip("."): module.ENTRIES for module in modules}


def find(name: str) -> Entry:
    """The entry or twin of this name, such as `laplace` or `laplace.half_noise`; raises `InvalidSpec`.

    >>> find("laplace.half_noise").broken
    True
    """
    known = {each.name: each for entry in entries() for each in (entry, *entry.twins.values())}
    if name not in known:
        hint = validate.meant(name, known, "; `dpaudit catalogue` lists them; your own read module:function")
        raise InvalidSpec(f"the catalogue has no entry {name!r}{hint}")
    return known[name]
