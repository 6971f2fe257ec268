"""The frozen interface: the stored form of a result, its schema, and how it reads. Changed only for a stated reason."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dpaudit.certify import certifier_named
from dpaudit.results.result import AuditResult, recompute
from dpaudit.results.stored import json_schema, load, load_either, suite_schema
from tests.cases import for_each
from tests.golden import example, rewrite


def _golden(name: str) -> str:
    return (rewrite.FOLDER / name).read_text(encoding="utf-8")


@for_each("name", sorted(rewrite.contents()))
def test_todays_code_writes_the_golden_file(name: str) -> None:
    # the cross-check alone is computed while writing, by statsmodels; its last digits belong to scipy's release
    today = repr(example.result().cross_check)
    frozen = repr(json.loads(_golden("result.json"))["cross_check"]["epsilon_lower"])
    assert _undigested(rewrite.contents()[name].replace(today, frozen)) == _undigested(_golden(name))
    assert float(today) == pytest.approx(float(frozen), rel=1e-9)


def _undigested(text: str) -> str:
    """A text without digests of whole records, which hold those last digits."""
    return re.sub(r"\b[0-9a-f]{64}\b", "(digest)", text)


def test_every_golden_file_is_checked() -> None:
    kept = {
        path.relative_to(rewrite.FOLDER).as_posix() for path in rewrite.FOLDER.rglob("*.*") if ".py" not in path.suffix
    }
    assert kept == set(rewrite.contents())


def test_the_golden_result_is_written_again_exactly() -> None:
    again, golden = load(rewrite.FOLDER / "result.json").to_dict(), json.loads(_golden("result.json"))
    golden["provenance"]["digest"] = again["provenance"]["digest"]  # of the cross-check too
    assert again == {**golden, "cross_check": again["cross_check"]}


@for_each(
    ("name", "today", "held"),
    [("result", json_schema(), example.result()), ("suite", suite_schema(), example.reviewed_suite())],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_golden_files_fit_their_schema_and_are_read_back(name: str, today: dict[str, Any], held: object) -> None:
    schema = json.loads(_golden(f"{name}.schema.json"))
    assert schema == today
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(_golden(f"{name}.json")))
    assert load_either(rewrite.FOLDER / f"{name}.json") == held


@for_each("result", [example.result(), example.kept()], ids=lambda result: result.name)
def test_the_numbers_written_by_hand_are_those_of_the_counts(result: AuditResult) -> None:
    again, e = recompute(result), result.evidence
    assert again.lower == pytest.approx(result.certificate.lower, rel=1e-9)
    assert again.p_value == pytest.approx(result.certificate.p_value, rel=1e-9)
    most = certifier_named(result.certifier).perfect(e.runs_p, e.runs_q, result.claim, 0.999, 0.0)
    assert most == pytest.approx(result.ceiling, rel=1e-9)


def test_the_golden_folder_holds_no_path_of_a_machine() -> None:
    for path in (*Path(rewrite.FOLDER).glob("result*"), *Path(rewrite.FOLDER, "accounts").iterdir()):
        assert "/home" not in path.read_text(encoding="utf-8")
