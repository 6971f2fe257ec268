"""Stored results and suites read back: strict models, and the arithmetic again from the stored counts."""

from dpaudit.results.stored.models import json_schema
from dpaudit.results.stored.reading import load, load_either, load_record, load_suite, loads, stored_files, suite_schema
from dpaudit.results.suite import SUITE_SCHEMA

__all__ = ["SUITE_SCHEMA", "json_schema", "load", "load_either", "load_record", "load_suite"]
__all__ += ["loads", "stored_files", "suite_schema"]
