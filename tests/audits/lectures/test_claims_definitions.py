"""The statements on the definition: each check finds what is known, and its numbers are those of closed forms."""

from __future__ import annotations

import math

import pytest

from audits.lectures.claims.definitions import STATEMENTS, normal_tail
from audits.lectures.claims.statement import Statement
from tests.cases import for_each

NAMED = {statement.name: statement for statement in STATEMENTS}


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
def test_the_check_of_a_definition_finds_what_is_known(statement: Statement) -> None:
    truth = statement.check()
    assert truth.verdict == statement.verdict
    assert truth.text.endswith(".")
    assert "nan" not in truth.text
    assert statement.check() == truth


@for_each(
    ("name", "number", "value"),
    [
        ("points-or-sets", "delta by sets", 1.0),
        ("epsilon-zero", "advantage at 0.1", math.tanh(0.05)),
        ("log-odds", "from 0.5", 1.0 / (1.0 + math.exp(-1.0))),
        ("log-odds", "from 0.9", 9.0 * math.e / (9.0 * math.e + 1.0)),
        ("approximate-dp-as-a-tail", "least sigma", 3.7306),
        ("approximate-dp-as-a-tail", "response, tail", 0.75),
        ("approximate-dp-as-a-tail", "response, delta", 0.75 - math.e / 4.0),
        ("approximate-dp-as-a-tail", "merged", 0.4),
    ],
)
def test_numbers_of_the_definition(name: str, number: str, value: float) -> None:
    assert NAMED[name].check().numbers[number] == pytest.approx(value, abs=1e-4)


def test_the_tail_of_the_loss_is_no_delta() -> None:
    found = NAMED["approximate-dp-as-a-tail"].check().numbers
    assert found["tail at the least sigma"] > 10.0 * 1e-5
    assert found["apart"] < found["merged"]
    assert normal_tail(1.0, 1.0) == pytest.approx(0.308538, abs=1e-6)
