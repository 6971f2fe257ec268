"""Stored suites read back: each result as strictly as one alone, and all that is derived from them again.

Contract: `dpaudit.suite/1` may get further keys; none is renamed and none changes its meaning. A file whose exit codes,
Holm-adjusted p-values, acceptances or suite confidence its own results do not give is never loaded.
"""

import math
import os
from pathlib import Path
from typing import Any

import msgspec

from dpaudit.base.files import FILE, found_at
from dpaudit.base.quoting import clean
from dpaudit.base.strict import LARGEST_SUITE, fields_of, read
from dpaudit.base.validate import error_probability
from dpaudit.errors import InvalidSpec
from dpaudit.results.display import Verdict
from dpaudit.results.result import SCHEMA, AuditResult, fingerprint
from dpaudit.results.stored.models import json_schema, model_of
from dpaudit.results.stored.reading import CURE, GIVE, TOLERANCE, agree, check_schema, checked, named, result_of
from dpaudit.results.suite import SUITE_SCHEMA, SuiteEntry, SuiteResult

SUITE_FILE = "suite.json"
SOFTER = (0, 4, 5)  # exit codes that say less than that a verdict is missing
ROUNDED = 1e-3  # relative; a confidence close to 1 keeps few digits of its distance from 1


def suite_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a stored suite."""
    return json_schema(SuiteResult)


def load_suite(path: str | os.PathLike[str]) -> SuiteResult:
    """The suite in a file that `dpaudit.report` wrote as JSON.

    Raises `InvalidSpec` where the file is missing, is not such a suite, or contradicts its own results.
    """
    with named(path):
        return _suite_of(read(path, cure=CURE, not_json=GIVE, largest=LARGEST_SUITE))


def load_either(path: str | os.PathLike[str]) -> AuditResult | SuiteResult:
    """The result or the suite in a file, whichever it says that it is. Raises `InvalidSpec` as `load_suite` does."""
    with named(path):
        return either_of(read(path, cure=CURE, not_json=GIVE, largest=LARGEST_SUITE))


def either_of(raw: Any) -> AuditResult | SuiteResult:
    """The same of a JSON object. Raises `InvalidSpec`, or `msgspec.ValidationError` for a wrong key."""
    check_schema(raw, SCHEMA, SUITE_SCHEMA)
    return result_of(raw) if raw["schema"] == SCHEMA else _suite_of(raw)


def stored_files(folder: Path) -> list[Path]:
    """The stored files of a folder: its suite.json, or else every result in it. Raises `InvalidSpec` for none."""
    if found_at(folder / SUITE_FILE) == FILE:
        return [folder / SUITE_FILE]
    files = sorted(path for path in folder.glob("*.json") if not path.name.startswith("."))
    if not files:
        raise InvalidSpec(
            f"{clean(folder, 200)}: no result (*.json) is in this folder; name a result file, or a folder of a report"
        )
    return files


def _suite_of(raw: Any) -> SuiteResult:
    check_schema(raw, SUITE_SCHEMA)
    msgspec.convert(raw, model_of(SuiteResult))
    suite = SuiteResult(**fields_of(SuiteResult, raw, {SuiteEntry: _entry}))
    _check(suite, raw)
    return suite


def _entry(stored: dict[str, Any], place: str) -> SuiteEntry:
    bits = stored["expect"] == "BITS"
    expect = Verdict.NOT_REFUTED.value if bits else stored["expect"]
    given = {**stored, "expect": expect, "source": stored.get("source") or None}
    return SuiteEntry(bits=bits, **fields_of(SuiteEntry, given, {AuditResult: checked}, place))


def _check(suite: SuiteResult, raw: dict[str, Any]) -> None:
    """That everything derived follows from the results, the expectations and the acceptances."""
    for j, (entry, mine, adjusted) in enumerate(zip(suite.entries, raw["entries"], suite.holm(), strict=True)):
        place = f"entries[{j}]"
        _check_entry(entry, place)
        agree(f"{place}.as_expected", mine["as_expected"], entry.as_expected, "its verdict and expectation give")
        agree(f"{place}.p_value_holm", mine["p_value_holm"], adjusted, "the results give")
        _check_acceptance(entry, suite, place)
    agree("exit_code", raw["exit_code"], suite.exit_code, "the results give")
    _check_confidence(suite)


def _check_confidence(suite: SuiteResult) -> None:
    """The audits spend no more than the error probability of the suite; and all of it, where none lacks a result."""
    spent = math.fsum(error_probability(result.spec["confidence"]) for result in suite.results)
    whole = error_probability(suite.confidence)
    given = f"confidence is {suite.confidence!r}, but the audits spend an error probability of {spent!r} together"
    if min(spent, 1.0) > whole * (1.0 + TOLERANCE):
        raise InvalidSpec(f"{given}; {CURE}")
    if suite.entries and len(suite.results) == len(suite.entries) and spent < whole * (1.0 - ROUNDED):
        raise InvalidSpec(f"{given}: an audit is missing; {CURE}")


def _check_entry(entry: SuiteEntry, place: str) -> None:
    """A result is that of its audit; one without a verdict, or without the power demanded, cannot have gone well."""
    if entry.result is None:
        if entry.exit_code in SOFTER:
            raise InvalidSpec(f"{place}.exit_code is {entry.exit_code}, but there is no result; {CURE}")
        return
    agree(f"{place}.name", entry.name, entry.result.name, "its result is of")
    if entry.exit_code == 0 and entry.result.power_once_found is False:
        raise InvalidSpec(f"{place}.exit_code is 0, but the power that the spec demands was not reached; {CURE}")


def _check_acceptance(entry: SuiteEntry, suite: SuiteResult, place: str) -> None:
    """Only the finding that was reviewed is covered, and only while its acceptance holds."""
    acceptance = entry.accepted
    if acceptance is None:
        return
    mine = None if entry.result is None else fingerprint(entry.result)
    agree(f"{place}.accepted.fingerprint", acceptance.fingerprint, mine, "the results give")
    listed = [each for each in suite.reviewed if each.acceptance == acceptance]
    if not listed:
        raise InvalidSpec(f"{place}.accepted is not among the accepted findings in 'reviewed'; {CURE}")
    if all(each.expired or not each.matched for each in listed):
        raise InvalidSpec(f"{place}.accepted is listed in 'reviewed' as expired or not found; {CURE}")
