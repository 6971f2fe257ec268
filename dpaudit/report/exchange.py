"""Formats that other programs read: JSON, JUnit XML and SARIF 2.1.0; and a badge.

JSON is the record: one result is exactly what `AuditResult.save` writes, a suite holds its results whole.

JUnit has a test case for each audit, in the dialect of Jenkins (junit-10.xsd), which CI services read. The file is
green where the exit code is 0, and only there. An acceptance that expired is a test case of its own. No two test cases
of a file have one name in one class: readers take the second for a rerun of the first.

SARIF has the findings of a suite for code scanning, each at the line of its mechanism. What breaks a build is an
`error`; an accepted finding is suppressed and only a `note`, as code scanning knows no suppressions. URIs are relative
to the folder that dpaudit was called in, which should be the root of the repository.

Nothing of the badge is green, as not refuted is not proved.
"""

import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from dpaudit.account import Level, account, suites, templates
from dpaudit.base.quoting import clean
from dpaudit.base.strict import text_of
from dpaudit.report import inside, spec_of
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteEntry, SuiteResult
from dpaudit.version import __version__

TOOL = "dpaudit"
ACCEPTED_CLASS = "accepted findings"  # the class of the test cases about them
LONGEST_S = 1e9  # seconds; a longer time is no time, and would not be a number of XML

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "%SRCROOT%"
FINGERPRINT = "dpauditFinding/v1"
TRACKED = "primaryLocationLineHash"  # the only key that GitHub compares; two findings of one line differ in it
SUCCESSFUL = (0, 1, 4)  # exit codes of a run in which every audit came to a verdict
HERE = "."  # where nothing says which file a finding is about

RED, AMBER, GREY, BLUE, LABEL = "#b3261e", "#8a5a00", "#57606a", "#1f5fa8", "#24292f"  # white on each is readable
HEIGHT, PAD, LETTER = 20, 8, 6.2  # pixels


def json_result(result: AuditResult) -> str:
    """One result in the schema `dpaudit.result/1`."""
    return text_of(result.to_dict())


def json_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """A suite in the schema `dpaudit.suite/1`: each entry with its result, or the reason why there is none."""
    return text_of(suite.to_dict())


def json_files(
    suite: SuiteResult, names: Sequence[str | None], records: Sequence[str | None], trends: object = ()
) -> Iterator[tuple[str, Callable[[], str]]]:
    """A record for each result, and the suite."""
    for entry, name in zip(suite.entries, names, strict=True):
        if entry.result is not None and name is not None:
            yield name, partial(json_result, entry.result)
    yield "suite.json", partial(json_suite, suite)


def junit_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """A suite as one `testsuite`, in the order of its audits."""
    cases = [_case(entry) for entry in suite.entries]
    if not cases:
        cases.append(_bare_case(TOOL, TOOL, "error", suites.NO_VERDICT, suites.suite_headline(suite)))
    for each in suite.reviewed:
        if each.expired:
            name = clean(each.acceptance.finding)
            cases.append(
                _bare_case(name, ACCEPTED_CLASS, "failure", suites.EXPIRED, suites.flat(suites.reviewed_line(each)))
            )
    _number_names(cases)
    shared = {"tests": str(len(cases))}
    for kind, plural in (("failure", "failures"), ("error", "errors")):
        shared[plural] = str(sum(case.find(kind) is not None for case in cases))
    skipped = {"skipped": str(sum(case.find("skipped") is not None for case in cases))}
    spent = {"name": TOOL, "time": f"{sum(map(_wall, suite.entries)):.3f}"}
    root = Element("testsuites", {**shared, **spent})
    started = [str(each.provenance["started"]) for each in suite.results if each.provenance.get("started")]
    begun = {"timestamp": clean(min(started))} if started else {}  # the first of the audits
    inner = SubElement(root, "testsuite", {**shared, **skipped, **spent, **begun})
    properties = SubElement(inner, "properties")
    for name, value in (("suite", suites.suite_headline(suite)), ("exit code", str(suite.exit_code))):
        SubElement(properties, "property", {"name": name, "value": value})
    inner.extend(cases)
    indent(root, " ")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(root, encoding="unicode")}\n'


def _case(entry: SuiteEntry) -> Element:
    case = Element("testcase", {"name": clean(entry.name), "classname": _class(entry), "time": f"{_wall(entry):.3f}"})
    result, line = entry.result, suites.flat(suites.suite_line(entry))
    if result is None:
        _ending(case, "error", suites.NO_VERDICT, line, line)
        return case
    if not entry.as_expected:
        rule = suites.REFUTED if result.refuted else suites.MISSED
        _ending(case, "failure", rule, line, str(account(result, Level.DETAIL)))
    elif entry.exit_code or entry.error:
        rule = suites.SUSPECTED if suites.kind_of(entry) == suites.LED else suites.BROKEN_REPORT
        _ending(case, "error", suites.POWERLESS if result.power_reached is False else rule, line, line)
    elif entry.covered:
        SubElement(case, "skipped", {"type": "accepted", "message": line}).text = str(account(result, Level.DETAIL))
    SubElement(case, "system-out").text = line
    return case


def _ending(case: Element, kind: str, rule: suites.FindingRule, message: str, whole: str) -> None:
    SubElement(case, kind, {"type": f"{rule.id} {rule.name}", "message": message}).text = whole


def _bare_case(name: str, group: str, kind: str, rule: suites.FindingRule, line: str) -> Element:
    """A test case that says no more than how it ended."""
    case = Element("testcase", {"name": name, "classname": group, "time": "0.000"})
    _ending(case, kind, rule, line, line)
    return case


def _number_names(cases: Sequence[Element]) -> None:
    """Gives the second test case of a name in a class its number: `noisy count #2`."""
    taken: set[tuple[str, str]] = set()
    met: Counter[tuple[str, str]] = Counter()
    for case in cases:
        name, group = case.get("name") or "audit", case.get("classname", TOOL)
        unique = name
        while (group, unique) in taken:
            met[group, name] += 1
            unique = f"{name} #{met[group, name] + 1}"
        taken.add((group, unique))
        case.set("name", unique)


def _class(entry: SuiteEntry) -> str:
    """What CI services group by, with points as they expect: the spec file; the mechanism where there is none."""
    source = spec_of(entry)
    if source:
        *folders, file = inside(source) or (TOOL,)
        return clean(".".join([*folders, file.removesuffix(".toml")]))
    return TOOL if entry.result is None else clean(entry.result.spec["mechanism"]["name"]) or TOOL


def _wall(entry: SuiteEntry) -> float:
    spent = 0.0 if entry.result is None else entry.result.provenance.get("wall_s", 0.0)
    return float(spent) if spent <= LONGEST_S else 0.0


def sarif_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """A suite as one run of the tool."""
    named = dict(enumerate(itertools.islice(records, len(suite.entries))))
    sources = Counter(filter(None, map(spec_of, suite.entries)))  # most audits come from one
    place = max(sources, key=lambda source: (sources[source], source), default=HERE)
    versions = suites.of_all(suite, "version")
    version = versions[0].removeprefix("dpaudit ") if len(versions) == 1 else __version__
    run = {
        "tool": {"driver": {"name": "dpaudit", "version": version, "rules": list(map(_rule, suites.RULES))}},
        "invocations": [_invocation(suite)],
        "originalUriBaseIds": {ROOT: {"description": {"text": templates.FOLDER}}},
        "columnKind": "unicodeCodePoints",
        "results": _numbered([_result(each, suite, place, named) for each in suites.reported(suite)]),
        "properties": {"summary": suites.suite_headline(suite)},
    }
    return text_of({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(rule: suites.FindingRule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": rule.short},
        "fullDescription": {"text": f"{rule.short} {rule.help}"},
        "help": {"text": rule.help},
        "defaultConfiguration": {"level": rule.level},
        "properties": {"tags": ["differential-privacy"]},
    }


def _invocation(suite: SuiteResult) -> dict[str, Any]:
    missing = [finding for finding in suites.reported(suite) if finding.rule is suites.NO_VERDICT]
    entries: dict[str, Any] = {
        "executionSuccessful": suite.exit_code in SUCCESSFUL and not missing,
        "exitCode": suite.exit_code,
        "exitCodeDescription": suites.EXIT_CODES.get(suite.exit_code, "unknown"),
    }
    begun = sorted(filter(None, (_utc(result.provenance.get("started")) for result in suite.results)))
    if begun:
        entries["startTimeUtc"] = begun[0]
    if missing:
        entries["toolExecutionNotifications"] = [
            {"level": "error", "message": {"text": literal(each.sentence)}, "associatedRule": {"id": each.rule.id}}
            for each in missing
        ]
    return entries


def _result(finding: suites.Reported, suite: SuiteResult, place: str, records: dict[int, str | None]) -> dict[str, Any]:
    entry = None if finding.entry is None else suite.entries[finding.entry]
    named = json.dumps([finding.rule.id, entry and entry.name, entry and entry.source])  # of what has no witness
    mine = finding.fingerprint or hashlib.sha256(named.encode("ascii")).hexdigest()[:16]
    entries: dict[str, Any] = {
        "ruleId": finding.rule.id,
        "ruleIndex": suites.RULES.index(finding.rule),
        "level": finding.rule.level if finding.accepted is None else suites.NOTE,
        "message": {"text": literal(finding.sentence)},
        "locations": [_location(entry, place)],
        "partialFingerprints": {FINGERPRINT: mine},
    }
    if finding.accepted is not None:
        answered = {"kind": "external", "status": "accepted", "justification": finding.justification}
        entries["suppressions"] = [answered]
    if entry is not None and (result := entry.result) is not None and finding.entry is not None:
        _, _, _, certified, claimed, p_value = suites.row_of(entry, result.certificate.p_value)
        entries["properties"] = {
            "audit": clean(result.name),
            "verdict": account(entry, Level.HEADLINE).stamp,
            "claimed": claimed,
            "certified": certified,
            "pValue": p_value,
        }
        if record := records.get(finding.entry):
            entries["properties"]["record"] = record
    return entries


def _numbered(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The results with the fingerprint that GitHub tracks: equal ones of a rule are numbered."""
    met: Counter[tuple[str, str]] = Counter()
    for result in results:
        mine = result["partialFingerprints"][FINGERPRINT]
        met[result["ruleId"], mine] += 1
        result["partialFingerprints"][TRACKED] = f"{mine}:{met[result['ruleId'], mine]}"
    return results


def _location(entry: SuiteEntry | None, place: str) -> dict[str, Any]:
    """The line of the mechanism; the spec where the mechanism has none; the spec of the others where there is none.

    There is always a line, the first where none is known: code scanning asks for one.
    """
    result = None if entry is None else entry.result
    provenance = {} if result is None else result.provenance
    file, line = provenance.get("file"), provenance.get("line")
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
        time = datetime.fromisoformat(str(started))
    except ValueError:
        return None
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if time.tzinfo is not None else None


def badge_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """The badge of a suite."""
    days, versions = suites.of_all(suite, "started"), suites.of_all(suite, "version") or [f"dpaudit {__version__}"]
    label = f"{' and '.join(versions[:2])}{' and others' * (len(versions) > 2)}"
    told = account(suite, Level.HEADLINE).headline
    words = suites.kind_of(suite.entries[0]).partition(",")[0] if len(suite.entries) == 1 else told.partition(";")[0]
    words += f", {days[0]}" if days else ""
    widths = [2 * PAD + LETTER * len(text) for text in (label, words)]
    size = {"width": f"{sum(widths):g}", "height": str(HEIGHT)}
    whole = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size, "role": "img", "aria-label": words})
    SubElement(whole, "title").text = f"{label}: {words}; {told}"
    style = {"fill": "#fff", "font-family": "Verdana,DejaVu Sans,sans-serif", "font-size": "11"}
    at = 0.0
    for text, width, colour in zip((label, words), widths, (LABEL, _colour(suite)), strict=True):
        SubElement(whole, "rect", {"x": f"{at:g}", "width": f"{width:g}", "height": str(HEIGHT), "fill": colour})
        place = {"x": f"{at + PAD:g}", "y": "14", "textLength": f"{width - 2 * PAD:g}"}  # in any font
        SubElement(whole, "text", {**place, "lengthAdjust": "spacingAndGlyphs", **style}).text = text
        at += width
    indent(whole, " ")
    return tostring(whole, encoding="unicode") + "\n"


def _colour(suite: SuiteResult) -> str:
    kinds = set(map(suites.kind_of, suite.entries))
    if kinds & {suites.REFUTED_ODD, suites.BITS_ODD}:
        return RED
    if not kinds or suites.NO_RESULT in kinds:
        return GREY
    return AMBER if suite.exit_code or suites.ACCEPTED in kinds else BLUE
