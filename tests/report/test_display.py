"""What a result shows of itself: one line at a prompt, a picture in a notebook, a figure to keep, a row an audit."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import html5lib
import pytest

from dpaudit import AuditResult, MissingRequirement, ScoresResult, Verdict
from dpaudit.errors import InvalidSpec
from dpaudit.results.suite import SuiteEntry, SuiteResult
from dpaudit.training import TrainingResult
from tests.account.results import made
from tests.golden import example
from tests.report import hostile

HELD = (
    *(example.result(), example.kept(), example.suite()),
    *map(made, ("bracket", "scores", "training", "sweep")),
)


def named(name: str) -> Any:
    return replace(example.kept(), spec={**example.kept().spec, "name": name})


def test_a_result_is_one_short_line_at_a_prompt() -> None:
    lines = [repr(each) for each in HELD]
    stated = "noisy count: epsilon >= 1.96, claimed 1 (wrong in at most 1 of 1,000 such audits)"
    assert lines[0] == f"<AuditResult REFUTED  {stated}>"
    for held, line in zip(HELD, lines, strict=True):
        assert line.startswith(f"<{type(held).__name__} ")
        assert len(line) < 250, line
        assert line.isprintable()
    assert all(repr(named(name)).isprintable() for name in hostile.ALL[:60])


def test_the_verdict_and_its_p_value_are_properties_of_every_result_that_has_them() -> None:
    for held in HELD:
        if isinstance(held, AuditResult | ScoresResult | TrainingResult):
            assert held.refuted is None or held.p_value is not None
            assert type(held.refuted) is bool
    assert [held.refuted for held in HELD[:2]] == [True, False]
    assert not made("bracket").refuted


def test_a_notebook_gets_a_picture_that_needs_and_touches_nothing_else() -> None:
    for held in (*HELD, example.result().plot()):
        shown = held._repr_html_()
        parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
        page = parser.parse(f"<!DOCTYPE html><html><head><title>t</title></head><body>{shown}</body></html>")
        tags = {each.tag for each in page.iter() if isinstance(each.tag, str)}
        assert "svg" in "".join(tags)
        assert not tags & {"script", "link", "img", "iframe"}
        assert "url(http" not in shown
        assert not [each for each in page.iter() if "href" in each.attrib or "src" in each.attrib]
        for style in page.iter("style"):
            rules = re.sub(r"@media[^{]*\{(.*?\})\}", r"\1", str(style.text))
            for selector in re.findall(r"([^{}]+)\{", rules):
                whole = re.sub(r":is\([^ ]*\) ", "", selector.strip())
                assert all(each.strip().startswith(".dpaudit-shown") for each in whole.split(", ")), selector


def test_a_notebook_is_dark_where_its_theme_is_and_names_stay_text_in_it() -> None:
    style = example.result()._repr_html_()
    for theme in ('[data-jp-theme-light="false"]', ".vscode-dark", "html[theme=dark]", "prefers-color-scheme:dark"):
        assert theme in style
    for name in hostile.ALL[:60:2]:
        shown = named(name)._repr_html_()
        assert "<script" not in shown.lower()
        assert "onerror=" not in re.sub(r">[^<]*<", "><", shown)
    lost = SuiteEntry("lost", Verdict.NOT_REFUTED, None, "it <broke>", 3)
    assert "it &lt;broke&gt;" in SuiteResult((lost,), 0.99)._repr_html_()


def test_a_figure_is_chosen_by_its_name_and_kept_in_a_file(tmp_path: Path) -> None:
    held = example.result()
    assert held.plot().name == "distributions"
    assert held.plot("trade-off").save(tmp_path / "square.svg").read_text().startswith("<?xml")
    with pytest.raises(InvalidSpec, match="kind must be one of distributions, trade_off"):
        held.plot("roc")
    with pytest.raises(InvalidSpec, match="nothing to draw"):
        SuiteResult((), 0.99).plot()
    rows = {row[0]: row[1:] for row in made("bracket").plot().rows}
    assert rows["together"] == ("0.99", "1", "0")
    assert rows["exact-pair"] == ("0.99", "infinity", "0")


def test_a_frame_has_a_row_an_audit_and_numbers_that_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    suite = example.suite()
    frame, none = suite.to_frame(), SuiteResult((), 0.99).to_frame()
    assert list(frame["audit"]) == [entry.name for entry in suite.entries]
    assert [p for p in frame["p_value"] if p == p] == [each.p_value for each in suite.results]
    for each in (none, *(held.to_frame() for held in HELD)):
        assert all(each[name].dtype == "float64" for name in each if name in ("lower", "epsilon_lower", "p_value"))
    assert list(example.kept().to_frame()["verdict"]) == ["not refuted"]
    assert [len(made(kind).to_frame()) for kind in ("scores", "bracket")] == [len(made("scores").estimates), 1]
    assert list(none.columns) == list(frame.columns)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingRequirement, match=r"^to_frame needs pandas, .*: pip install pandas$"):
        example.result().to_frame()
