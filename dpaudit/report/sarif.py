"""SARIF 2.1.0: the findings of a suite for code scanning, each at the line of its mechanism.

What breaks a build is an `error`; an accepted finding is suppressed and only a `note`, as code scanning knows no
suppressions. URIs are relative to the folder that dpaudit was called in, which should be the root of the repository.
"""

import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from dpaudit.account.statements import certified, claimed, stamp, supposed
from dpaudit.account.suites import (
    EXIT_CODES,
    NO_VERDICT,
    NOTE,
    RULES,
    FindingRule,
    Reported,
    acceptance_line,
    reported,
    suite_headline,
)
from dpaudit.base.numerals import p_text
from dpaudit.base.quoting import clean
from dpaudit.base.strict import text_of
from dpaudit.report import inside, spec_of
from dpaudit.results.suite import SuiteEntry, SuiteResult
from dpaudit.version import __version__

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
FINGERPRINT = "dpauditFinding/v1"
TRACKED = "primaryLocationLineHash"  # the only key that GitHub compares; it must tell two findings of one line apart
SUCCESSFUL = (0, 1, 4)  # exit codes of a run in which every audit came to a verdict
HERE = "."  # where nothing says which file a finding is about


def render_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """A suite as one run of the tool."""
    named = dict(enumerate(itertools.islice(records, len(suite.entries))))
    sources = Counter(filter(None, map(spec_of, suite.entries)))  # most audits come from one
    place = max(sources, key=lambda source: (sources[source], source), default=HERE)
    versions = {str(result.provenance["version"]) for result in suite.results if result.provenance.get("version")}
    version = clean(versions.pop()) if len(versions) == 1 else __version__
    run = {
        "tool": {"driver": {"name": "dpaudit", "version": version, "rules": list(map(_rule, RULES))}},
        "invocations": [_invocation(suite)],
        "originalUriBaseIds": {ROOT: {"description": {"text": "The folder that dpaudit was called in."}}},
        "columnKind": "unicodeCodePoints",
        "results": _numbered([_result(found, suite, place, named) for found in reported(suite)]),
        "properties": {"summary": suite_headline(suite)},
    }
    return text_of({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(rule: FindingRule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.short},
        "fullDescription": {"text": rule.full},
        "help": {"text": rule.help},
        "defaultConfiguration": {"level": rule.level},
        "properties": {"tags": ["differential-privacy"]},
    }


def _invocation(suite: SuiteResult) -> dict[str, Any]:
    missing = [found for found in reported(suite) if found.rule is NO_VERDICT]
    made: dict[str, Any] = {
        "executionSuccessful": suite.exit_code in SUCCESSFUL and not missing,
        "exitCode": suite.exit_code,
        "exitCodeDescription": EXIT_CODES.get(suite.exit_code, "unknown"),
    }
    begun = sorted(filter(None, (_utc(result.provenance.get("started")) for result in suite.results)))
    if begun:
        made["startTimeUtc"] = begun[0]
    if missing:
        made["toolExecutionNotifications"] = [
            {"level": "error", "message": {"text": literal(found.sentence)}, "associatedRule": {"id": found.rule.id}}
            for found in missing
        ]
    return made


def _result(found: Reported, suite: SuiteResult, place: str, records: dict[int, str | None]) -> dict[str, Any]:
    entry = None if found.entry is None else suite.entries[found.entry]
    result = None if entry is None else entry.result
    named = json.dumps([found.rule.id, entry and entry.name, entry and entry.source])  # of what has no witness
    mine = found.fingerprint or hashlib.sha256(named.encode("ascii")).hexdigest()[:16]
    made: dict[str, Any] = {
        "ruleId": found.rule.id,
        "ruleIndex": RULES.index(found.rule),
        "level": found.rule.level if found.accepted is None else NOTE,
        "message": {"text": literal(found.sentence)},
        "locations": [_location(entry, place)],
        "partialFingerprints": {FINGERPRINT: mine},
    }
    if found.accepted is not None:
        told = acceptance_line(found.accepted.acceptance)
        made["suppressions"] = [{"kind": "external", "status": "accepted", "justification": told}]
    if result is not None and found.entry is not None:
        made["properties"] = {
            "audit": clean(result.name),
            "verdict": f"{stamp(result)}{supposed(result)}",
            "claimed": claimed(result),
            "certified": certified(result),
            "pValue": p_text(result.certificate.p_value),
        }
        if record := records.get(found.entry):
            made["properties"]["record"] = record
    return made


def _numbered(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The results with the fingerprint that GitHub tracks: equal ones of a rule are told apart by their number."""
    met: Counter[tuple[str, str]] = Counter()
    for made in results:
        mine = made["partialFingerprints"][FINGERPRINT]
        met[made["ruleId"], mine] += 1
        made["partialFingerprints"][TRACKED] = f"{mine}:{met[made['ruleId'], mine]}"
    return results


def _location(entry: SuiteEntry | None, place: str) -> dict[str, Any]:
    """The line of the mechanism; the spec where the mechanism has none; the spec of the others where there is none.

    There is always a line, the first where none is known: code scanning asks for one.
    """
    result = None if entry is None else entry.result
    made = {} if result is None else result.provenance
    file, line = made.get("file"), made.get("line")
    known = bool(file) and isinstance(line, int) and line >= 1
    physical: dict[str, Any] = {
        "artifactLocation": {"uri": uri(file or spec_of(entry) or place), "uriBaseId": ROOT},
        "region": {"startLine": line if known else 1},
    }
    location: dict[str, Any] = {"physicalLocation": physical}
    reference = None if result is None else result.spec["mechanism"]["reference"]
    if reference:
        location["logicalLocations"] = [{"fullyQualifiedName": clean(reference), "kind": "function"}]
    return location


def uri(path: str) -> str:
    r"""A path as a relative URI: forward slashes, everything unusual percent-encoded, nothing above this folder.

    >>> uri("src/noisy count.py"), uri("C:\\x\\y.py"), uri("../../etc/passwd"), uri("javascript:alert(1)")
    ('src/noisy%20count.py', 'y.py', 'passwd', 'javascript%3Aalert%281%29')
    """
    return "/".join(quote(clean(part, 200).replace("/", ""), safe="") for part in inside(path)) or HERE


def literal(text: str) -> str:
    """A sentence as SARIF keeps it: braces that name no argument, brackets that open no link.

    >>> literal("a {0} and [b](c)")
    'a {{0}} and \\\\[b\\\\](c)'
    """
    doubled = text.replace("{", "{{").replace("}", "}}")
    return re.sub(r"[\[\]]", r"\\\g<0>", doubled) if "](" in doubled else doubled


def _utc(started: object) -> str | None:
    """A time as SARIF wants it, in UTC; None where it is no time."""
    try:
        told = datetime.fromisoformat(str(started))
    except ValueError:
        return None
    return told.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if told.tzinfo is not None else None
