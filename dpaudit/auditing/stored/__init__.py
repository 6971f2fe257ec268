"""Stored results read back: strict models, and the arithmetic again from the stored counts."""

from dpaudit.auditing.stored.models import json_schema
from dpaudit.auditing.stored.reading import load

__all__ = ["json_schema", "load"]
