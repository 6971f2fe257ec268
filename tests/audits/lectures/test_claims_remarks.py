"""The statements on remarks: each check finds what is known."""

from __future__ import annotations

import pytest

from audits.lectures.claims.remarks import STATEMENTS
from audits.lectures.claims.statement import Statement


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.name)
def test_the_check_finds_what_is_known(statement: Statement) -> None:
    truth = statement.check()
    assert truth.verdict == statement.verdict
    assert truth.text.endswith(".")
