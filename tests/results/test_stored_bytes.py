"""Every stored file that the repository has is read, and written again byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpaudit.report import exchange
from dpaudit.results.result import AuditResult
from dpaudit.results.stored import load_either, loads
from dpaudit.results.suite import SuiteResult
from tests.golden import example

ROOT = Path(__file__).resolve().parents[2]
FORMATS = ("dpaudit.result/1", "dpaudit.suite/1")
FILES = [path for folder in ("reports", "tests") for path in sorted((ROOT / folder).rglob("*.json"))]
STORED = [path for path in FILES if json.loads(path.read_text(encoding="utf-8")).get("schema") in FORMATS]


def _written(held: AuditResult | SuiteResult) -> str:
    return held.to_json() if isinstance(held, AuditResult) else exchange.json_suite(held)


def test_there_are_some() -> None:
    assert {path.name for path in STORED} >= {"result.json", "suite.json"}


@pytest.mark.parametrize("path", STORED, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_stored_file_is_written_again_byte_for_byte(path: Path) -> None:
    assert _written(load_either(path)) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("made", [example.result(), example.kept(), example.result(provenance={}, histogram=None)])
def test_a_result_of_the_tests_is_written_again_byte_for_byte(made: AuditResult) -> None:
    assert loads(made.to_json()).to_json() == made.to_json()
