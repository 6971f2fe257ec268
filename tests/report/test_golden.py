"""The frozen interface: the stored form of a result, its schema, and how it reads. Changed only for a stated reason."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from dpaudit.certify import certifier_named
from dpaudit.results.result import recompute
from dpaudit.results.stored import json_schema, load, load_suite, suite_schema
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


def test_the_golden_result_is_read_back_exactly() -> None:
    result = load(rewrite.FOLDER / "result.json")
    assert result == example.result()
    again, golden = result.to_dict(), json.loads(_golden("result.json"))
    golden["provenance"]["digest"] = again["provenance"]["digest"]  # of the cross-check too
    assert again == {**golden, "cross_check": again["cross_check"]}


def test_the_golden_result_fits_its_schema() -> None:
    schema = json.loads(_golden("result.schema.json"))
    assert schema == json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(_golden("result.json")))


def test_the_golden_suite_is_read_back_exactly_and_fits_its_schema() -> None:
    assert load_suite(rewrite.FOLDER / "suite.json") == example.reviewed_suite()
    schema = json.loads(_golden("suite.schema.json"))
    assert schema == suite_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(_golden("suite.json")))


@pytest.mark.parametrize("made", [example.result(), example.kept()])
def test_the_numbers_written_by_hand_are_those_of_the_counts(made: object) -> None:
    result = made
    again = recompute(result)  # type: ignore[arg-type]
    assert again.lower == pytest.approx(result.certificate.lower, rel=1e-9)  # type: ignore[attr-defined]
    assert again.p_value == pytest.approx(result.certificate.p_value, rel=1e-9)  # type: ignore[attr-defined]
    e = result.evidence  # type: ignore[attr-defined]
    most = certifier_named(result.certifier).perfect(e.runs_p, e.runs_q, result.claim, 0.999, 0.0)  # type: ignore[attr-defined]
    assert most == pytest.approx(result.ceiling, rel=1e-9)  # type: ignore[attr-defined]


def test_the_golden_folder_holds_no_path_of_a_machine() -> None:
    for path in (*Path(rewrite.FOLDER).glob("result*"), *Path(rewrite.FOLDER, "accounts").iterdir()):
        assert "/home" not in path.read_text(encoding="utf-8")
