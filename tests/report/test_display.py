"""What a result shows of itself: one line at a prompt, a picture in a notebook, a figure to keep, a row an audit."""

from __future__ import annotations

import math
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import html5lib
import pytest

from dpaudit import AuditResult, Bracket, MissingRequirement, ScoresResult, Sweep, UpperBound, Verdict
from dpaudit.claims import ApproximateDP, PureDP
from dpaudit.errors import InvalidSpec
from dpaudit.results.bounds import Arithmetic, Label, LowerBound
from dpaudit.results.suite import SuiteEntry, SuiteResult
from dpaudit.scores import audit_scores
from dpaudit.sweeps.rows import COLUMNS
from dpaudit.training import TrainingResult
from tests.golden import example
from tests.report import hostile
from tests.training.test_page import result as trained


def _bracket() -> Bracket:
    audited = LowerBound(0.9, 0.0, 0.999, "one pair", "coin-flip")
    proved = UpperBound(1.0, 0.0, Label.PROVED, "all query answers", Arithmetic.REALS, "alignment")
    exact = UpperBound(math.inf, 0.0, Label.EXACT_PAIR, "q = (1, 0)", Arithmetic.BALLS, "integrals", 0.99)
    return Bracket("sparse", PureDP(1.0), audited, (proved, exact))


def _scores() -> ScoresResult:
    counted = [float(number % 7) for number in range(60)]
    return audit_scores([score + 2.0 for score in counted], counted, claim=ApproximateDP(1.0, 1e-5))


def _sweep() -> Sweep:
    point = dict.fromkeys(COLUMNS) | {"point": 1, "mechanism": "laplace", "confidence": 0.99, "verdict": "REFUTED"}
    numbers = {"claimed": 1.0, "claimed_epsilon": 1.0, "lower": 1.5, "epsilon_lower": 1.5, "delta": 0.0, "runs": 500}
    return Sweep((point | numbers, point | {"point": 2, "verdict": None, "error": "too few runs", "runs": 2}))


HELD = (example.result(), example.kept(), example.suite(), _bracket(), _scores(), trained(), _sweep())


def test_a_result_is_one_short_line_at_a_prompt() -> None:
    lines = [repr(each) for each in HELD]
    assert lines[0] == "<AuditResult REFUTED  noisy count: epsilon >= 1.96 with confidence 0.999, claimed 1>"
    for held, line in zip(HELD, lines, strict=True):
        assert line.startswith(f"<{type(held).__name__} ")
        assert len(line) < 250, line
        assert line.isprintable()
    assert all(repr(replace(example.kept(), spec=_named(name))).isprintable() for name in hostile.ALL[:60])


def _named(name: str) -> dict[str, Any]:
    return {**example.kept().spec, "name": name}


def test_the_verdict_and_its_p_value_are_properties_of_every_result_that_has_them() -> None:
    for held in HELD:
        if isinstance(held, AuditResult | ScoresResult | TrainingResult):
            assert held.refuted is None or held.p_value is not None
            assert type(held.refuted) is bool
    assert example.result().refuted
    assert not example.kept().refuted
    assert not _bracket().refuted


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


def test_a_notebook_is_dark_where_its_theme_is_whatever_the_system_says() -> None:
    style = example.result()._repr_html_()
    for theme in ('[data-jp-theme-light="false"]', ".vscode-dark", "html[theme=dark]", "prefers-color-scheme:dark"):
        assert theme in style


def test_names_stay_text_in_a_notebook() -> None:
    for name in hostile.ALL[:60]:
        shown = replace(example.kept(), spec=_named(name))._repr_html_()
        assert "<script" not in shown.lower()
        assert "onerror=" not in re.sub(r">[^<]*<", "><", shown)


def test_what_a_notebook_shows_is_what_is_printed() -> None:
    held = example.result()
    shown = held._repr_html_()
    for part in ("REFUTED", "what to do", "p-value at most", "runs in the event", "not shown"):
        assert part in shown
    lost = SuiteEntry("lost", Verdict.NOT_REFUTED, None, "it <broke>", 3)
    assert "it &lt;broke&gt;" in SuiteResult((lost,), 0.99)._repr_html_()


def test_a_figure_is_chosen_by_its_name_and_kept_in_a_file(tmp_path: Path) -> None:
    held = example.result()
    assert held.plot().name == "distributions"
    assert held.plot("trade-off").save(tmp_path / "square.svg").read_text().startswith("<?xml")
    with pytest.raises(InvalidSpec, match="kind must be one of distributions, trade-off"):
        held.plot("roc")
    with pytest.raises(InvalidSpec, match="nothing to draw"):
        SuiteResult((), 0.99).plot()
    rows = {row[0]: row[1:] for row in _bracket().plot().rows}
    assert rows["together"] == ("0.99", "1", "0")
    assert rows["exact-pair"] == ("0.99", "infinity", "0")


def test_a_frame_has_a_row_an_audit_and_numbers_that_compute() -> None:
    suite = example.suite()
    frame = suite.to_frame()
    assert list(frame["audit"]) == [entry.name for entry in suite.entries]
    assert [p for p in frame["p_value"] if p == p] == [each.p_value for each in suite.results]
    for held in HELD:
        made = held.to_frame()
        assert all(made[name].dtype == "float64" for name in made if name in ("lower", "epsilon_lower", "p_value"))
    assert list(example.kept().to_frame()["verdict"]) == ["not refuted"]
    assert (len(_scores().to_frame()), len(_bracket().to_frame())) == (len(_scores().estimates), 1)
    assert list(SuiteResult((), 0.99).to_frame().columns) == list(frame.columns)
    assert SuiteResult((), 0.99).to_frame()["p_value"].dtype == "float64"


def test_without_pandas_a_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingRequirement, match=r"^to_frame needs pandas, .*: pip install pandas$"):
        example.result().to_frame()
