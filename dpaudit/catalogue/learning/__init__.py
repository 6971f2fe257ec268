"""Learning: models fitted to private data."""

from __future__ import annotations

from dpaudit.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = ()
