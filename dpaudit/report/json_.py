"""JSON: the record. One result is exactly what `AuditResult.save` writes; a suite holds its results whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dpaudit.auditing.result import AuditResult, SuiteResult

SUITE_SCHEMA = "dpaudit.suite/1"


def render_result(result: AuditResult) -> str:
    """One result in the schema `dpaudit.result/1`."""
    return _text(result.to_dict())


def render_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """A suite in the schema `dpaudit.suite/1`: each entry with its result, or the reason why there is none."""
    entries = [
        {
            "name": entry.name,
            "expect": entry.expect.value,
            "as_expected": entry.as_expected,
            "exit_code": entry.exit_code,
            "error": entry.error,
            "p_value_holm": adjusted,
            "result": None if entry.result is None else entry.result.to_dict(),
        }
        for entry, adjusted in zip(suite.entries, suite.holm(), strict=True)
    ]
    head = {"schema": SUITE_SCHEMA, "confidence": suite.confidence, "exit_code": suite.exit_code}
    return _text({**head, "entries": entries})


def _text(value: dict[str, Any]) -> str:
    # ASCII only: hidden and bidirectional characters stand as escapes, and come back exactly
    return json.dumps(value, indent=1, allow_nan=False) + "\n"
