"""Stored suites read back: each result as strictly as one alone, and all that is derived from them again.

Contract: `dpaudit.suite/1` may get further keys; none is renamed and none changes its meaning. A file whose exit codes,
Holm-adjusted p-values, acceptances or suite confidence its own results do not give is never loaded.
"""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from dpaudit.base.files import FILE, found_at
from dpaudit.base.quoting import clean
from dpaudit.base.strict import LARGEST_SUITE, models, read
from dpaudit.base.validate import error_probability
from dpaudit.errors import InvalidSpec, at
from dpaudit.results.display import Verdict
from dpaudit.results.result import SCHEMA, AuditResult, fingerprint
from dpaudit.results.stored.models import Probability, Stored, StoredResult, open_kinds, schema_of
from dpaudit.results.stored.reading import CURE, GIVE, TOLERANCE, agree, check_schema, named, of_model, result_of
from dpaudit.results.suite import Acceptance, Reviewed, SuiteEntry, SuiteResult

SUITE_SCHEMA, SUITE_FILE = "dpaudit.suite/1", "suite.json"
SOFTER = (0, 4, 5)  # exit codes that say less than that a verdict is missing
ROUNDED = 1e-3  # relative; a confidence close to 1 keeps few digits of its distance from 1

ExitCode = Annotated[int, msgspec.Meta(ge=0, le=255)]


_model = models({}, {})
if TYPE_CHECKING:
    from dpaudit.results.suite import Acceptance as StoredAcceptance
    from dpaudit.results.suite import Reviewed as StoredReviewed
else:
    StoredAcceptance, StoredReviewed = map(_model, (Acceptance, Reviewed))


class StoredEntry(Stored):
    """One audit: its result, or the reason why there is none."""

    name: str
    expect: Literal["REFUTED", "NOT_REFUTED", "BITS"]
    as_expected: bool
    exit_code: ExitCode
    error: str | None
    p_value_holm: Probability | None
    result: StoredResult | None
    accepted: StoredAcceptance | UnsetType | None = UNSET
    source: str | UnsetType | None = UNSET


class StoredSuite(Stored):
    """Several audits at one suite confidence."""

    schema: Literal["dpaudit.suite/1"]
    confidence: Probability
    exit_code: ExitCode
    entries: list[StoredEntry]
    reviewed: list[StoredReviewed] | UnsetType = UNSET


def suite_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a stored suite."""
    return schema_of(StoredSuite, {"$id": SUITE_SCHEMA}, open_kinds())


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
    model = msgspec.convert(raw, StoredSuite)
    entries = [_entry(each, mine, j) for j, (each, mine) in enumerate(zip(raw["entries"], model.entries, strict=True))]
    reviewed = of_model(model.reviewed or (), tuple[Reviewed, ...])
    suite = SuiteResult(tuple(entries), model.confidence, reviewed)
    _check(suite, model)
    return suite


def _entry(stored: dict[str, Any], mine: StoredEntry, number: int) -> SuiteEntry:
    try:
        with at(f"entries[{number}].result"):
            result = None if mine.result is None else result_of(stored["result"])
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(str(error).replace("`$.", f"`$.entries[{number}].result.")) from None
    accepted = of_model(mine.accepted or None, Acceptance | None)
    bits = mine.expect == "BITS"
    expect = Verdict.NOT_REFUTED if bits else Verdict(mine.expect)
    return SuiteEntry(mine.name, expect, result, mine.error, mine.exit_code, accepted, mine.source or None, bits)


def _check(suite: SuiteResult, model: StoredSuite) -> None:
    """That everything derived follows from the results, the expectations and the acceptances."""
    for j, (entry, mine, adjusted) in enumerate(zip(suite.entries, model.entries, suite.holm(), strict=True)):
        place = f"entries[{j}]"
        _check_entry(entry, place)
        agree(f"{place}.as_expected", mine.as_expected, entry.as_expected, "its verdict and expectation give")
        agree(f"{place}.p_value_holm", mine.p_value_holm, adjusted, "the results give")
        _check_acceptance(entry, suite, place)
    agree("exit_code", model.exit_code, suite.exit_code, "the results give")
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
