"""Adaptive data analysis: holdouts and chosen statistics."""

from __future__ import annotations

from dpaudit.catalogue.entry import Entry

ENTRIES: tuple[Entry, ...] = ()
