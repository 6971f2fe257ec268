"""Releases of tables and aggregates, without differential privacy and with it."""

from __future__ import annotations

from dpaudit.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = ()
