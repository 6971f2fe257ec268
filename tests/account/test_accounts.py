"""Whole accounts: a page of twelve lines is printed, nothing is told twice on it, and all formats say the same.

What the sentences are stands in `tests/golden/accounts`, word for word.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dpaudit.account import Level, account
from dpaudit.account.suites import assertion
from dpaudit.report import html, markdown
from dpaudit.results.display import Verdict
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteEntry, SuiteResult
from tests.account.results import KINDS, counted, made, of_spec
from tests.cases import for_each
from tests.golden import example
from tests.report import hostile
from tests.report.html.test_html_pages import parse, text_of

MOST, OF_SUITE = 24, 12  # lines of a page: one that tells what to ask before one relies on it, others
FORBIDDEN = re.compile(r"\b(pass(es|ed)?|safe|TODO|trials?|iterations?|found_by)\b", re.IGNORECASE)
PAGE = ["what was found", "what it means", "what to do", "what it does not show", "repeat"]
ASKED = ["before you rely on it", "missing for a decision"]  # where nothing was refuted


@for_each("kind", KINDS)
def test_a_page_is_printed_with_the_verdict_first_and_no_section_is_told_twice(kind: str) -> None:
    finding = made(kind)
    whole, first = account(finding), account(finding, Level.PAGE_ONE)
    lines = "\n".join(first.lines("print(result.explain()) shows the whole account")).split("\n")
    assert len(lines) <= MOST, lines
    assert all(line.isprintable() for line in lines)
    assert lines[0] == whole.headline
    assert whole.up_to(Level.PAGE_ONE).sections == first.sections
    assert max(Counter(each.key for each in whole.sections if each.key != "upper").values()) <= 3
    assert "cannot be told" not in str(whole)
    assert not FORBIDDEN.search(str(whole))
    assert [each.level for each in whole.sections] == sorted(each.level for each in whole.sections)
    for section in whole.sections:
        if section.table is not None:
            assert {len(row) for row in section.table.rows} == {len(section.table.head)}, section.key
            assert max(section.table.numbers, default=0) < len(section.table.head)
    if isinstance(finding, AuditResult):
        assert "\n".join(lines) == str(finding)
        keys = [each.key for each in whole.at(Level.PAGE_ONE)]
        assert [each for each in keys if each not in ("bracket", "recorded noise", *ASKED)] == PAGE
        assert (set(ASKED) <= set(keys)) is not (finding.refuted or finding.representation_refuted)
        assert "with the same counts" in lines[-2] or "with other counts" in lines[-2]
        assert re.search(r"in (\d+ of \d+|[\d.]+ % of) (search )?runs on the first dataset and", str(finding))


def test_the_bound_and_its_error_probability_are_told_once_on_the_page() -> None:
    for kind in ("refuted", "approximate", "gaussian", "users", "on-trust", "own-randomness"):
        text = str(made(kind)).partition("repeat ")[0]
        assert len(re.findall(r"(epsilon|mu) (>=|>|is at least)", text)) == 1, text
        assert len(re.findall(r"confidence|probability at most|wrong in at most", text)) == 1 - (kind == "gaussian"), (
            text
        )


def test_one_output_is_named_first_where_power_was_missed_too() -> None:
    weak = replace(of_spec(made("one-output"), detect={"epsilon": 0.5, "mass": 0.001}), unseen=744)
    for held, then in ((weak, "Give it more runs"), (SuiteEntry("it", Verdict.REFUTED, weak), "Find out why a viol")):
        first, second = account(held, Level.PAGE_ONE)["what to do"].lines
        assert first.startswith("Look where the noise is drawn: every search run on both datasets gave one and")
        assert second.startswith(then)
        assert "Audit what this one did not look at, as the first line names it. Not refuted is not private" in second


def test_a_call_that_a_line_cannot_hold_or_only_its_author_has_is_told_as_such() -> None:
    local = {**example.result().spec["mechanism"], "name": "<lambda>", "reference": None}
    text = str(of_spec(example.result(), mechanism=local))
    assert "with the same counts (mechanism: the function that was audited): import dpaudit; dpaudit.audit(mech" in text
    pair = example.result().spec["pairs"][0]
    long = of_spec(example.result(), pairs=[{**pair, "first": {"digest": "d", "value": list(range(3, 400))}}])
    assert "# the call is too long for a line: print(result.explain())" in str(long)
    assert "397, 398, 399" in str(long.explain())


def test_a_suite_of_many_surprises_is_a_page_that_names_them() -> None:
    suite = example.reviewed_suite()
    text = str(replace(suite, entries=suite.entries * 3))
    assert len(text.split("\n")) == OF_SUITE
    assert "and 7 more audits: noisy sum, " in text
    assert "The claim is refuted (noisy sum, noisy sum, noisy sum). Repair" in text
    alone = str(SuiteResult((SuiteEntry("it", Verdict.NOT_REFUTED, made("refuted")),), 0.999))
    assert "The claim is refuted. Repair" in alone


def test_the_text_of_a_suite_has_the_detail_of_its_audits() -> None:
    suite = example.suite()
    text = markdown.text_suite(suite)
    assert text.startswith(f"{account(suite, Level.DETAIL)}\n")
    assert all(f"\n{account(each, Level.DETAIL)}\n" in text for each in suite.entries)


def test_a_stamp_is_the_verdict_and_the_headline_goes_on_without_it() -> None:
    stamps = {"refuted": "REFUTED", "bits-alone": "REFUTED by bits", "without-verdict": "no verdict"}
    stamps |= {"bracket": "PROVED", "scores": "NOT REFUTED", "training": "REFUTED"}
    for kind, stamp in (stamps | dict.fromkeys(("suite", "comparison", "sweep"), "")).items():
        told = account(made(kind))
        assert told.stamp == stamp
        assert told.headline.replace(f"{stamp}  ", f"{stamp} ") == f"{stamp} {told.rest}".strip()
    comparison = made("comparison")
    assert repr(comparison) == f"<Comparison {account(comparison).headline}>"
    assert comparison.explain() == account(comparison)


def test_estimates_that_show_more_or_are_many_keep_the_page() -> None:
    first = made("training")
    certified, product, model = first.lines
    lines = (certified, replace(product, lower=1.5), model, replace(model, method="other", value=1.0))
    text = str(replace(first, lines=lines))
    lower = "(product); this bound happens to be lower than the certified one; both are valid; never decides"
    assert f"epsilon >= 1.50 at delta 1e-05 {lower}\n" in text
    assert "happens to be lower" not in str(first)
    many = replace(first, lines=(*lines, replace(model, method="third", value=2.0)))
    for page in (text, str(many)):
        assert len(page.split("\n")) == OF_SUITE
        assert "gaussian, model-based); never decides\n" in page
    assert "other, model-based); never decides; 1 more in the whole account" in str(many)
    assert "third" not in str(many)
    assert "third, model-based); never decides" in str(account(many)["estimate, further"])


def read(text: str) -> str:
    """A text without what a format needs beside it."""
    return " ".join(text.replace("\\", "").replace("&#8203;", "").replace("&lt;", "<").split())


FORMATS: dict[str, tuple[Callable[[AuditResult], str], Level]] = {  # how far each format tells
    "txt": (markdown.text_result, Level.DETAIL),
    "md": (markdown.render_result, Level.REVIEWER),
    "html": (lambda result: text_of(parse(html.render_result(result))), Level.REVIEWER),
    "notebook": (lambda result: text_of(parse(f"<!DOCTYPE html><title>t</title>{result._repr_html_()}")), Level.DETAIL),
    "explain": (lambda result: str(result.explain()), Level.REVIEWER),
}


@for_each("name", FORMATS)
def test_every_format_tells_the_same_sentences_up_to_its_level(name: str) -> None:
    render, level = FORMATS[name]
    for kind in ("refuted", "not-refuted", "bits-too", "controls", "not-looked-at"):
        told = read(render(made(kind)))
        for section in account(made(kind)).up_to(level).sections:
            for line in section.lines if section.table is None or name in ("txt", "explain") else ():
                assert read(line) in told or section.level is Level.HEADLINE, (kind, section.key, line)


def test_the_long_form_of_a_suite_tells_each_audit() -> None:
    page = read(markdown.long_suite(example.suite()))
    for entry in example.suite().entries:
        for section in account(entry).sections:
            assert all(read(line) in page for line in section.lines), section.key


def test_a_printed_result_asks_for_each_thing_once_and_for_nothing_that_it_does_not_show() -> None:
    """The kind of mistake is looked for once, and no table of power is made for a page that has none."""
    result, calls, known = example.result(), Counter[str](), set[str]()

    def seen(frame: Any, event: str, argument: object) -> None:
        name, place = frame.f_code.co_name, frame.f_code.co_filename
        if event == "call" and "/dpaudit/" in place and not name.startswith("<"):
            calls[name] += 1
            known.add(f"{place}:{frame.f_code.co_firstlineno}")

    str(result)  # what is imported on first use
    sys.setprofile(seen)
    try:
        str(result)
    finally:
        sys.setprofile(None)
    assert calls["diagnosis"] == calls["cause"] == 1
    assert calls["least_found"] == calls["least_caught"] == 0
    assert len(known) <= 148
    assert len({each.partition(":")[0] for each in known}) <= 28


COMMAND = "pytest tests/test_counts.py::test_count --dpaudit-seed 0 --dpaudit-runs 1000000"


def failing(result: AuditResult, expect: Verdict = Verdict.NOT_REFUTED, record: str | None = None) -> list[str]:
    """The message of a failing test."""
    asked = replace(result, provenance={**result.provenance, "command": COMMAND})
    return assertion(SuiteEntry(result.name, expect, asked), record).split("\n")


def test_the_message_of_a_failing_test_is_the_page_and_what_else_can_be_done() -> None:
    result = example.result()
    lines = failing(result, record="reports/noisy count.json")
    assert lines[0] == account(result).headline
    assert lines[1:-8] == str(result).split("\n")[1:-2]
    assert lines[-8].endswith(f"with the same counts: {COMMAND}")
    assert lines[-7].startswith("or else  ")
    assert "dpaudit accept 'reports/noisy count.json' --reason" in lines[-5]
    assert "82,289 of 449,701 runs in the event" in lines[-4]
    assert lines[-1].endswith("dpaudit report 'reports/noisy count.json' --format txt")
    unwritten = failing(result)
    assert "--dpaudit-report DIR keeps the result" in unwritten[-5]
    assert "RESULT.json" not in "\n".join(unwritten)
    assert assertion(example.suite().entries[2]).startswith("no verdict  sparse: the worker of shard 3 was lost twice")
    missed, weak = failing(example.kept(), Verdict.REFUTED), failing(made("no-power"))
    assert missed[0].startswith("NOT FOUND  noisy count, whole noise: epsilon >= ")
    assert any("a violation that is known was not found" in line for line in missed)
    assert weak[0].startswith("TOO LITTLE POWER  noisy count")
    assert any("the power that was demanded (epsilon 1.01, mass 0.001) was not reached" in line for line in weak)


def test_pages_accounts_and_messages_keep_their_lines_whatever_the_names_are() -> None:
    made_of: dict[str, Callable[[str], str]] = {
        "page": lambda name: str(hostile.result(name)),
        "page of a suite": lambda name: str(hostile.suite(name)),
        "message": lambda name: "\n".join(failing(hostile.result(name), Verdict.REFUTED, name)),
    }
    whole: dict[str, Callable[[str], str]] = {
        "account": lambda name: str(account(hostile.result(name))),
        "account of a suite": lambda name: str(account(hostile.suite(name))),
    }
    for texts, names in ((made_of, hostile.BY_DAY[::3]), (whole, hostile.NAMES[::2])):
        for kind, text in texts.items():
            usual = len(text("plain").split("\n"))
            assert "page" not in kind or usual <= MOST
            for name in names:
                lines = text(name).split("\n")
                assert all(line.isprintable() for line in lines), (kind, name[:60])
                assert len(lines) == usual or (kind == "message" and len(lines) <= MOST + 3), (kind, name[:60])


@pytest.mark.parametrize("counts", [(0, 0, 1, 0), (1, 0, 1, 1), (5_010, 4_990, 10_000, 10_000)])
def test_few_counts_are_told_too(counts: tuple[int, ...]) -> None:
    result = counted(example.kept(), *counts)
    assert "cannot be told" not in str(account(result))
    assert len(str(result).split("\n")) <= MOST
