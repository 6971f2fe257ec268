"""JUnit XML: a test case for each audit, in the dialect of Jenkins (junit-10.xsd), which CI services read.

The file is green where the exit code is 0, and only there. An acceptance that expired is a test case of its own. No
two test cases of a file have one name in one class: readers take the second for a rerun of the first.
"""

from collections import Counter
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from dpaudit.account.sections import full_text
from dpaudit.account.suites import (
    BROKEN_REPORT,
    EXPIRED,
    MISSED,
    NO_VERDICT,
    POWERLESS,
    REFUTED,
    FindingRule,
    flat,
    reviewed_line,
    suite_headline,
    suite_line,
)
from dpaudit.base.quoting import clean
from dpaudit.report import inside, spec_of
from dpaudit.results.suite import SuiteEntry, SuiteResult

NAME = "dpaudit"
ACCEPTED = "accepted findings"  # the class of the test cases about them
LONGEST_S = 1e9  # seconds; a longer time is no time, and would not be a number of XML


def render_suite(suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
    """A suite as one `testsuite`, in the order of its audits."""
    cases = [_case(entry) for entry in suite.entries]
    if not cases:
        cases.append(_alone(NAME, NAME, "error", NO_VERDICT, suite_headline(suite)))
    for each in suite.reviewed:
        if each.expired:
            name = clean(each.acceptance.finding)
            cases.append(_alone(name, ACCEPTED, "failure", EXPIRED, flat(reviewed_line(each))))
    _tell_apart(cases)
    shared = {"tests": str(len(cases))}
    for kind, plural in (("failure", "failures"), ("error", "errors")):
        shared[plural] = str(sum(case.find(kind) is not None for case in cases))
    skipped = {"skipped": str(sum(case.find("skipped") is not None for case in cases))}
    spent = {"name": NAME, "time": f"{sum(map(_wall, suite.entries)):.3f}"}
    root = Element("testsuites", {**shared, **spent})
    started = [str(made["started"]) for each in suite.results if (made := each.provenance).get("started")]
    begun = {"timestamp": clean(min(started))} if started else {}  # the first of the audits
    inner = SubElement(root, "testsuite", {**shared, **skipped, **spent, **begun})
    properties = SubElement(inner, "properties")
    for name, value in (("suite", suite_headline(suite)), ("exit code", str(suite.exit_code))):
        SubElement(properties, "property", {"name": name, "value": value})
    inner.extend(cases)
    indent(root, " ")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(root, encoding="unicode")}\n'


def _case(entry: SuiteEntry) -> Element:
    case = Element("testcase", {"name": clean(entry.name), "classname": _class(entry), "time": f"{_wall(entry):.3f}"})
    result, line = entry.result, flat(suite_line(entry))
    if result is None:
        _ending(case, "error", NO_VERDICT, line, line)
        return case
    if not entry.as_expected:
        rule = REFUTED if result.refuted else MISSED
        _ending(case, "failure", rule, line, full_text(result))
    elif entry.exit_code or entry.error:
        _ending(case, "error", POWERLESS if result.power_reached is False else BROKEN_REPORT, line, line)
    elif entry.covered:
        SubElement(case, "skipped", {"type": "accepted", "message": line}).text = full_text(result)
    SubElement(case, "system-out").text = line
    return case


def _ending(case: Element, kind: str, rule: FindingRule, message: str, whole: str) -> None:
    SubElement(case, kind, {"type": f"{rule.id} {rule.name}", "message": message}).text = whole


def _alone(name: str, group: str, kind: str, rule: FindingRule, line: str) -> Element:
    """A test case of which there is nothing to tell but how it ended."""
    case = Element("testcase", {"name": name, "classname": group, "time": "0.000"})
    _ending(case, kind, rule, line, line)
    return case


def _tell_apart(cases: Sequence[Element]) -> None:
    """Gives the second test case of a name in a class its number: `noisy count #2`."""
    taken: set[tuple[str, str]] = set()
    met: Counter[tuple[str, str]] = Counter()
    for case in cases:
        name, group = case.get("name") or "audit", case.get("classname", NAME)
        told = name
        while (group, told) in taken:
            met[group, name] += 1
            told = f"{name} #{met[group, name] + 1}"
        taken.add((group, told))
        case.set("name", told)


def _class(entry: SuiteEntry) -> str:
    """What CI services group by, with points as they expect: the spec file; the mechanism where there is none."""
    source = spec_of(entry)
    if source:
        *folders, file = inside(source) or (NAME,)
        return clean(".".join([*folders, file.removesuffix(".toml")]))
    return NAME if entry.result is None else clean(entry.result.spec["mechanism"]["name"]) or NAME


def _wall(entry: SuiteEntry) -> float:
    spent = 0.0 if entry.result is None else entry.result.provenance.get("wall_s", 0.0)
    return float(spent) if spent <= LONGEST_S else 0.0
