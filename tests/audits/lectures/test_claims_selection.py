"""The statements on selection: verdicts as known, texts with their numbers, audits that are there."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import pytest

from audits.lectures.claims.selection import STATEMENTS
from audits.lectures.claims.statement import Statement, Truth
from dpaudit.spec.reading import find_specs
from tests.cases import for_each

AUDITS = Path(__file__).parents[3] / "audits"
BY_NAME = {statement.name: statement for statement in STATEMENTS}


@pytest.fixture(scope="module")
def truths() -> dict[str, Truth]:
    return {name: statement.check() for name, statement in BY_NAME.items()}


@for_each("statement", STATEMENTS, ids=list(BY_NAME))
def test_the_check_finds_what_is_known(statement: Statement, truths: dict[str, Truth]) -> None:
    truth = truths[statement.name]
    assert truth.verdict == statement.verdict
    assert truth.text.endswith(".")
    assert all(math.isfinite(value) for value in truth.numbers.values())


def test_names_are_their_own_and_the_audits_are_there() -> None:
    assert len(BY_NAME) == len(STATEMENTS) == 8
    paths = find_specs([AUDITS])
    written = {table["name"] for path in paths for table in tomllib.loads(path.read_text("utf-8"))["audit"]}
    assert {name for statement in STATEMENTS for name in statement.audits} <= written


@for_each(
    ("name", "number", "value"),
    [
        ("noisy-max-counts", "two counts", 0.9765),
        ("noisy-max-counts", "three counts", 1.0000),
        ("noisy-max-any-queries", "three answers", 2.0000),
        ("noisy-max-any-queries", "with twice the noise", 1.0000),
        ("noisy-max-against-all-counts", "loss of all counts", 10.0),
        ("laplace-as-exponential-mechanism", "loss", 0.5),
        ("laplace-as-exponential-mechanism", "scale", 2.0),
        ("exponential-mechanism-learning", "three hypotheses", 0.9345),
        ("exponential-mechanism-learning-as-printed", "five records", 4.9997),
        ("exponential-mechanism-grid", "2^10", 1024.0),
    ],
)
def test_the_numbers(name: str, number: str, value: float, truths: dict[str, Truth]) -> None:
    assert truths[name].numbers[number] == pytest.approx(value, abs=5.1e-5)
