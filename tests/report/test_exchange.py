"""JUnit, SARIF, CSV, the comment of 30 lines and the badge: what each says of every kind of ending."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest
import xmlschema

from dpaudit.account import Level, account
from dpaudit.account.suites import EXIT_CODES, RULES, suite_line
from dpaudit.cli.group import exit_code
from dpaudit.events import event_from_dict
from dpaudit.events.features import Coordinate
from dpaudit.events.scores import Binning, LogRatio, Term
from dpaudit.report import csv_, exchange, markdown
from dpaudit.results.display import Verdict
from dpaudit.results.result import Finding, fingerprint
from dpaudit.results.stored import load, load_suite
from dpaudit.results.suite import Reviewed, SuiteEntry, SuiteResult, together
from tests.cases import for_each
from tests.golden import example
from tests.report import hostile

SCHEMAS = Path(__file__).parent / "schemas"
XSD = xmlschema.XMLSchema(str(SCHEMAS / "junit-10.xsd"))
SARIF = jsonschema.Draft4Validator(json.loads((SCHEMAS / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8")))

HELD = example.accepted()
WEAK = replace(example.kept(), spec={**example.kept().spec, "detect": {"epsilon": 1.0001, "mass": 0.001}})
LOW_BITS = {"feature": {"kind": "lowest-bit", "paths": [[]]}, "intervals": [[-30.0, "inf"]], "tokens": []}
BITS = replace(
    example.kept(),
    spec={**example.kept().spec, "representation": True},
    representation=Finding(
        example.result().claim,
        replace(example.result().witness, event=event_from_dict(LOW_BITS)),
        example.result().evidence,
        example.result().certificate,
    ),
)
ENDINGS = {
    "kept": SuiteEntry("kept", Verdict.NOT_REFUTED, example.kept()),
    "known": SuiteEntry("known", Verdict.REFUTED, example.result()),
    "refuted": SuiteEntry("refuted", Verdict.NOT_REFUTED, example.result()),
    "accepted": SuiteEntry("accepted", Verdict.NOT_REFUTED, example.result(), accepted=HELD),
    "missed": SuiteEntry("missed", Verdict.REFUTED, example.kept()),
    "lost": SuiteEntry("lost", Verdict.NOT_REFUTED, None, "a worker was lost twice", 3),
    "internal": SuiteEntry("internal", Verdict.NOT_REFUTED, None, "internal error: KeyError", 70),
    "weak": SuiteEntry("weak", Verdict.NOT_REFUTED, WEAK, exit_code=4),
    "unwritten": SuiteEntry("unwritten", Verdict.NOT_REFUTED, example.kept(), "no space left on device", 2),
    "accepted, unwritten": SuiteEntry("both", Verdict.NOT_REFUTED, example.result(), "no space", 2, HELD),
}
TOLD: dict[str, tuple[str | None, list[str]]] = {  # what JUnit ends a case with, and the rules of SARIF
    "kept": (None, []),
    "known": (None, []),
    "refuted": ("failure", ["DPA001"]),
    "accepted": ("skipped", ["DPA001"]),
    "missed": ("failure", ["DPA004"]),
    "lost": ("error", ["DPA003"]),
    "internal": ("error", ["DPA003"]),
    "weak": ("error", ["DPA005"]),
    "unwritten": ("error", ["DPA008"]),
    "accepted, unwritten": ("error", ["DPA001", "DPA008"]),
}
OVER = Reviewed(example.accepted(fingerprint="0" * 16), expired=True, matched=False)


def _suite(*names: str, reviewed: tuple[Reviewed, ...] = ()) -> SuiteResult:
    return SuiteResult(tuple(ENDINGS[name] for name in names), 0.99, reviewed)


def _cases(suite: SuiteResult) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(exchange.junit_suite(suite))
    XSD.validate(root)
    return list(root.iter("testcase"))


def _run(suite: SuiteResult) -> dict[str, Any]:
    stored = json.loads(exchange.sarif_suite(suite))
    SARIF.validate(stored)
    (run,) = stored["runs"]
    return dict(run)


@for_each("name", ENDINGS)
def test_what_an_ending_becomes_in_junit_and_in_sarif(name: str) -> None:
    ending, rules = TOLD[name]
    (case,) = _cases(_suite(name))
    assert case.get("name") == ENDINGS[name].name
    assert [each.tag for each in case if each.tag != "system-out"] == ([] if ending is None else [ending])
    if ending in ("failure", "error"):
        assert case[0].get("message") == " ".join(suite_line(ENDINGS[name]).split())
    if name == "refuted":
        assert case[0].text == str(account(example.result(), Level.DETAIL))
        assert case[0].get("type") == "DPA001 ClaimRefuted"
    run = _run(_suite(name))
    assert [result["ruleId"] for result in run["results"]] == rules
    known = run["tool"]["driver"]["rules"]
    assert all(known[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])


# JUnit


def test_the_file_is_green_where_the_exit_code_is_zero_and_only_there() -> None:
    chosen = [names for size in (0, 1, 2) for names in itertools.combinations(ENDINGS, size)]
    for names, reviewed in itertools.product(chosen, ((), (OVER,))):
        suite = _suite(*names, reviewed=reviewed)
        root = ElementTree.fromstring(exchange.junit_suite(suite))
        (inner,) = root
        bad = int(inner.get("failures", "")) + int(inner.get("errors", ""))
        assert (bad == 0) is (suite.exit_code == 0), names
        tags = [each.tag for case in root.iter("testcase") for each in case]
        assert bad == tags.count("failure") + tags.count("error")
        assert int(inner.get("skipped", "")) == tags.count("skipped")
        assert int(inner.get("tests", "")) == len(list(root.iter("testcase")))


def test_no_two_test_cases_have_one_name_in_one_class() -> None:
    kept, moved = example.kept(), replace(example.kept(), provenance={"source": "audits/more/a.b.toml"})
    names = ("twin", "twin", "twin #2", "x" * 90 + "1" + "y" * 90, "x" * 90 + "2" + "y" * 90, "")
    entries = [SuiteEntry(name, Verdict.NOT_REFUTED, kept) for name in names]
    entries += [
        SuiteEntry("twin", Verdict.NOT_REFUTED, moved),
        SuiteEntry("twin", Verdict.NOT_REFUTED, None, "lost", 3, source="audits/more/a.b.toml"),
        SuiteEntry("", Verdict.NOT_REFUTED, None, "lost", 3, source="/home/somebody/a.toml"),
    ]
    cases = [(case.get("classname"), case.get("name")) for case in _cases(SuiteResult(tuple(entries), 0.99))]
    assert len(set(cases)) == len(cases)
    assert [name for _, name in cases[:3]] == ["twin", "twin #2", "twin #2 #2"]
    assert cases[5:] == [
        ("noisy_count", "audit"),
        ("audits.more.a.b", "twin"),
        ("audits.more.a.b", "twin #2"),
        ("a", "audit"),
    ]


@pytest.mark.parametrize("spent", [math.inf, 1e300, math.nan])
def test_a_time_that_is_none_is_zero(spent: float) -> None:
    made = replace(example.kept(), provenance={"wall_s": spent})
    (case,) = _cases(SuiteResult.of([made]))
    assert case.get("time") == "0.000"


# SARIF


def test_every_rule_has_an_id_of_its_own_and_says_what_to_do() -> None:
    assert [rule.id for rule in RULES] == [f"DPA{number:03}" for number in range(1, len(RULES) + 1)]
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.short and rule.help for rule in RULES)
    assert {rule.level for rule in RULES} == {"error", "warning", "note"}


def test_without_a_file_it_stands_in_the_spec_and_without_both_in_the_spec_of_the_others() -> None:
    bare = replace(example.result(), provenance={"source": "audits/a b.toml", "file": None, "line": None})
    suite = SuiteResult((SuiteEntry("bare", Verdict.NOT_REFUTED, bare), ENDINGS["lost"]), 0.99)
    places = [result["locations"][0]["physicalLocation"] for result in _run(suite)["results"]]
    address = {"artifactLocation": {"uri": "audits/a%20b.toml", "uriBaseId": "%SRCROOT%"}, "region": {"startLine": 1}}
    assert places == [address, address]


def test_code_scanning_has_an_open_error_where_the_exit_code_is_not_zero_and_only_there() -> None:
    odd = SuiteEntry("odd", Verdict.NOT_REFUTED, example.kept(), exit_code=3)
    endings = [(), *((each,) for each in (*ENDINGS.values(), odd)), tuple(ENDINGS.values())]
    for entries, reviewed in itertools.product(endings, ((), (OVER,))):
        suite = SuiteResult(entries, 0.99, reviewed)
        results = json.loads(exchange.sarif_suite(suite))["runs"][0]["results"]
        open_ones = [each["ruleId"] for each in results if each["level"] == "error"]
        assert bool(open_ones) is (suite.exit_code != 0), (entries, open_ones)
        assert all(each["level"] == "note" for each in results if "suppressions" in each)


def test_a_result_keeps_its_fingerprints_whatever_the_seed_and_no_two_have_the_same() -> None:
    first, missed = example.result(), example.kept()
    again, other = (replace(each, spec={**each.spec, "seed": 7}) for each in (first, missed))
    failed = {"feature": {"kind": "coordinate", "path": []}, "intervals": [], "tokens": [{"label": "nan", "code": 1}]}
    other = replace(other, witness=replace(other.witness, event=event_from_dict(failed)))
    assert fingerprint(first) in json.dumps(_run(_suite("refuted"))["results"][0]["partialFingerprints"])
    tracked = []
    for refuted, held in ((first, missed), (again, other)):
        entries = (
            *(SuiteEntry("twin", Verdict.NOT_REFUTED, refuted) for _ in range(2)),
            SuiteEntry("missed", Verdict.REFUTED, held),
            *(SuiteEntry("lost", Verdict.REFUTED, None, "lost", 3, source=source) for source in ("a.toml", "b.toml")),
        )
        run = _run(SuiteResult(entries, 0.99))
        tracked.append([each["partialFingerprints"]["primaryLocationLineHash"] for each in run["results"]])
    assert tracked[0] == tracked[1]
    assert len(set(tracked[0])) == 5
    places = [each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in run["results"]]
    assert places == ["counts.py", "counts.py", "counts.py", "a.toml", "b.toml"]


def test_an_expired_acceptance_suppresses_nothing() -> None:
    over = Reviewed(replace(HELD, until=HELD.accepted), expired=True, matched=True)
    run = _run(_suite("refuted", reviewed=(over,)))
    assert [result["ruleId"] for result in run["results"]] == ["DPA001", "DPA006"]
    assert not any("suppressions" in result for result in run["results"])


def test_a_finding_on_bits_is_a_result_of_its_own_and_is_accepted_by_itself() -> None:
    entry = SuiteEntry("bits", Verdict.NOT_REFUTED, BITS)
    mine = fingerprint(BITS, representation=True)
    for held, over, count in (
        (HELD, False, 0),
        (example.accepted(fingerprint=mine), False, 1),
        (example.accepted(fingerprint=mine), True, 0),
    ):
        suite = SuiteResult((entry,), 0.99, (Reviewed(held, expired=over, matched=True),))
        result, *rest = _run(suite)["results"]
        assert [each["ruleId"] for each in rest] == (["DPA006"] if over else [])
        assert result["ruleId"] == "DPA002"
        assert result["level"] == ("note" if count else "warning")
        assert result["partialFingerprints"]["dpauditFinding/v1"] == mine
        assert len(result.get("suppressions", ())) == count


@pytest.mark.parametrize(
    ("names", "code", "successful"),
    [
        (("kept",), 0, True),
        (("refuted",), 1, True),
        (("refuted", "lost"), 1, False),
        (("weak",), 4, True),
        ((), 5, False),
    ],
)
def test_the_invocation_says_how_the_suite_ended(names: tuple[str, ...], code: int, successful: bool) -> None:
    (made,) = _run(_suite(*names))["invocations"]
    assert (made["exitCode"], made["executionSuccessful"]) == (code, successful)
    assert made["exitCodeDescription"] == EXIT_CODES[code]
    missing = [each["message"]["text"] for each in made.get("toolExecutionNotifications", ())]
    told = {
        "lost": ["no verdict lost: a worker was lost twice"],
        "": ["Nothing was asked: there are no audits. Nothing was audited."],
    }
    assert missing == told.get(names[-1] if names else "", [])


@for_each(
    ("path", "address"),
    [
        ("src/a.py", "src/a.py"),
        ("./src/../src/a.py", "src/a.py"),
        ("../outside/a.py", "a.py"),
        ("/home/somebody/a.py", "a.py"),
        (str(Path.cwd() / "src" / "a.py"), "src/a.py"),
        ("C:\\Users\\somebody\\a.py", "a.py"),
        ("//host/share/a.py", "a.py"),
        ("https://example.org/a.py", "https%3A/example.org/a.py"),
        ("..", "."),
        ("", "."),
    ],
)
def test_no_address_leads_out_of_the_folder(path: str, address: str) -> None:
    assert exchange.uri(path) == address


# CSV


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_infinity_is_a_word_and_an_acceptance_a_day() -> None:
    made = replace(example.result(), certificate=replace(example.result().certificate, lower=math.inf))
    entry = SuiteEntry("x", Verdict.NOT_REFUTED, made, accepted=HELD)
    (row,) = _rows(csv_.render_suite(SuiteResult((entry,), 0.99)))
    assert (row["lower"], row["accepted_until"], row["as_expected"]) == ("inf", "2025-05-01", "yes")


@pytest.mark.parametrize(
    ("text", "shown"),
    [("a;=1+1", "a;'=1+1"), ("a; @x;-1", "a; '@x;'-1"), ("a;b", "a;b"), (";", ";"), ("=a;\uff1d1", "'=a;'\uff1d1")],
)
def test_no_cell_is_computed_where_a_semicolon_parts_them_either(text: str, shown: str) -> None:
    entry = SuiteEntry(text, Verdict.NOT_REFUTED, None, "x", 3, source="audits/a.toml")
    (row,) = _rows(csv_.render_suite(SuiteResult((entry,), 0.99)))
    assert (row["audit"], row["source"]) == (shown, "audits/a.toml")


def test_every_column_is_explained() -> None:
    assert all(csv_.COLUMNS.values())
    (row,) = _rows(csv_.render_suite(SuiteResult.of([example.result()])))
    assert list(row) == list(csv_.COLUMNS)


# the comment for a pull request


@pytest.mark.parametrize("copies", [1, 10, 100])
def test_the_comment_has_at_most_thirty_lines(copies: int) -> None:
    entries = tuple(ENDINGS.values()) * copies
    many = tuple(Reviewed(example.accepted(fingerprint=f"{n:016x}"), n % 2 == 0, False) for n in range(copies))
    text = markdown.render_suite(SuiteResult(entries, 0.99, many, "by night", "stats", "2.1"), links=True)
    assert len(text.splitlines()) <= 30
    assert text.startswith(f"## by night\n\n**{7 * copies:,} of {len(entries):,} audits need action, ")
    assert "\n- stats 2.1; 2025-01-31; " in text
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert rows[0].startswith("| [refuted](report-long.md#audit-")
    (rest,) = [line for line in text.splitlines() if line.startswith("The rest: ")]
    counts = rest.partition(". **")[0].partition(": ")[2].split("; ")
    assert sum(int(each.split()[0].replace(",", "")) for each in counts) == len(entries) - len(rows)


def test_what_needs_somebody_comes_first_and_what_to_do_stands_once_for_each_kind() -> None:
    text = markdown.render_suite(_suite(*reversed(ENDINGS)))
    rows = [line.split(" | ")[0].removeprefix("| ") for line in text.splitlines() if line.startswith("| ")][2:]
    assert rows == ["refuted", "missed", "internal", "lost", "weak", "both", "unwritten"]
    assert "The rest: 1 REFUTED, accepted; 1 REFUTED, as expected; 1 not refuted, as expected. **Known to be b" in text
    assert "do not rely on these (known).**" in text
    (advice,) = [block for block in text.split("\n\n") if block.startswith("- **The claim is refuted (refuted")]
    assert advice.count("\n- **") == 3
    every = str(account(_suite(*ENDINGS)))
    assert all(rule.help in every for rule in RULES if any(rule.id in rules for _, rules in TOLD.values()))
    quiet = markdown.render_suite(_suite("kept", "known", "accepted"))
    assert "3 audits, none needs action: " in quiet
    assert "- **" not in quiet


def test_a_representation_finding_comes_before_what_needs_nobody() -> None:
    many = (*(ENDINGS["kept"],) * 40, SuiteEntry("bits", Verdict.NOT_REFUTED, BITS))
    text = markdown.render_suite(SuiteResult(many, 0.99))
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert rows[0].startswith("| bits | REFUTED by bits | the low bits of floats: ")
    assert "**The bits of floating-point outputs tell the datasets apart (bits).**" in text


# results that come alone, and together


def test_a_result_alone_is_a_suite_that_expects_no_refutation() -> None:
    assert [SuiteResult.of([each]).exit_code for each in (example.result(), example.kept(), WEAK)] == [1, 0, 4]


def test_results_together_share_the_error_probability_and_what_is_given_twice_counts_once() -> None:
    assert together([example.result(), example.kept()]).confidence == 0.998
    for suite in (example.suite(), example.reviewed_suite()):
        assert together([suite]) == suite
        assert together([suite.results[0], suite, suite, *suite.results]) == suite
    other = SuiteResult.of([replace(example.kept(), spec={**example.kept().spec, "seed": 1})])
    both = together([suite, other, suite])
    assert (len(both.entries), both.confidence) == (5, 0.996)


def test_a_learned_score_which_holds_arrays_is_compared_too(tmp_path: Path) -> None:
    bins = Binning(np.array([0.5, 1.5], np.float32))
    score = LogRatio((Term(Coordinate(()), bins, (0.5, 0.0, -0.5, 0.0)),))
    stored = {"feature": score.to_dict(), "intervals": [[0.25, "inf"]], "tokens": []}
    made = replace(example.result().witness, event=event_from_dict(stored))
    path = replace(example.result(), witness=made).save(tmp_path / "a.json")
    suite = together([load(path), load(path), SuiteResult.of([load(path)])])
    assert len(suite.entries) == 1


def test_suites_of_one_list_of_accepted_findings_are_one_suite_that_can_be_read_back(tmp_path: Path) -> None:
    first = example.reviewed_suite()
    second = SuiteResult(
        (SuiteEntry("noisy count, whole noise", Verdict.NOT_REFUTED, example.kept()),),
        0.999,
        tuple(replace(each, matched=False) for each in first.reviewed),
    )
    suite = together([second, first])
    assert [each.matched for each in suite.reviewed] == [True, False, False]
    later = together([suite, replace(second, reviewed=(replace(first.reviewed[0], expired=True),))])
    for number, made in enumerate((suite, later)):
        path = tmp_path / f"{number}.json"
        path.write_text(exchange.json_suite(made), encoding="utf-8")
        assert load_suite(path) == made
    assert len(later.reviewed) == 4
    assert later.exit_code == 1


# the badge: an SVG with the worst first, the day of the oldest audit and the version; never green, and readable


SVG = "{http://www.w3.org/2000/svg}"
KEPT, LOST = ENDINGS["kept"], ENDINGS["lost"]


def shown(suite: SuiteResult) -> tuple[str, str, str]:
    """Label, words and colour of a badge."""
    root = ElementTree.fromstring(exchange.badge_suite(suite))
    label, words = (str(each.text) for each in root.iter(f"{SVG}text"))
    colour = [str(each.get("fill")) for each in root.iter(f"{SVG}rect")][1]
    widths = [float(each.get("width", "0")) for each in root.iter(f"{SVG}rect")]
    assert float(root.get("width", "0")) == pytest.approx(sum(widths))
    return label, words, colour


@for_each(
    ("suite", "words", "colour"),
    [
        (SuiteResult.of([example.result()]), "REFUTED, 2025-01-31", exchange.RED),
        (SuiteResult.of([example.kept()]), "not refuted, 2025-01-31", exchange.BLUE),
        (SuiteResult((), 0.99), "0 audits: 0 refuted, 0 not refuted, 0 without verdict", exchange.GREY),
        (SuiteResult((LOST,), 0.99), "no verdict", exchange.GREY),
        (
            SuiteResult((LOST, KEPT), 0.99),
            "1 of 2 audits needs action: 0 refuted, 1 not refuted, 1 without verdict, 2025-01-31",
            exchange.GREY,
        ),
        (
            SuiteResult((replace(KEPT, exit_code=4),), 0.99),
            "something went wrong beside it, 2025-01-31",
            exchange.AMBER,
        ),
    ],
)
def test_words_and_colour_are_those_of_the_worst(suite: SuiteResult, words: str, colour: str) -> None:
    assert shown(suite) == ("dpaudit 0.1.0", words, colour)


def test_accepted_findings_and_those_that_expired_are_said() -> None:
    _, words, colour = shown(example.reviewed_suite())
    assert words.startswith("3 of 4 audits need action, 1 acceptance expired: 2 refuted, ")
    assert colour == exchange.RED


def test_white_is_readable_on_every_colour_and_none_is_green() -> None:
    for colour in (exchange.RED, exchange.AMBER, exchange.GREY, exchange.BLUE, exchange.LABEL):
        red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        assert green < max(red, blue)
        light = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (red, green, blue)]
        luminance = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]
        assert 1.05 / (luminance + 0.05) >= 4.5


def test_what_a_file_says_of_its_version_stays_text() -> None:
    plain = exchange.badge_suite(SuiteResult.of([example.result()])).count("<")
    for name in hostile.NAMES:
        named = {"version": name, "started": name}
        result = replace(example.result(), provenance={**example.result().provenance, **named})
        text = exchange.badge_suite(SuiteResult.of([result]))
        assert text.count("<") == plain
        assert len(ElementTree.fromstring(text)) == 5


def test_the_command_writes_it(tmp_path: Path) -> None:
    golden = Path(__file__).parents[1] / "golden" / "result.json"
    target = tmp_path / "badge.svg"
    assert exit_code(["report", str(golden), "--format", "badge", "--output", str(target)]) == 0
    assert target.read_text(encoding="utf-8") == exchange.badge_suite(SuiteResult.of([example.result()]))
