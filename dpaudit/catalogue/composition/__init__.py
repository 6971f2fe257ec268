"""Composition: several releases as one transcript."""

from __future__ import annotations

from dpaudit.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = ()
