"""The page of the lecture notes as a reader meets it: narrow and wide, in the light and in the dark, and filtered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from audits.lectures.claims import collect, items, page
from audits.lectures.claims.descent import STATEMENTS as DESCENT
from audits.lectures.claims.selection import STATEMENTS as SELECTION
from audits.lectures.claims.statement import Statement, Truth
from audits.lectures.claims.tightness import TIGHT
from tests.browser.chromium import OUTSIDE, SCHEMES, WIDTHS, Tab

pytestmark = pytest.mark.browser

SCROLLS = "h3, p, td, blockquote, .scroll, .drawing, .skip, .heard"  # what a wide formula moves within
SHOWN = "[...document.querySelectorAll('article')].filter(each => each.offsetHeight > 0).length"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some statements of the notes with what is known of them, and no results: every audit is marked as not run."""

    def answered(each: Statement) -> Statement:
        """Its check finds what the notes say, and as tightly."""
        numbers = {str(key): 1.0 for key in TIGHT.get(each.name, ())}
        return replace(each, check=lambda: Truth(each.verdict, "x^2 <= sqrt(k) epsilon", numbers))

    found = {
        topic: [collect.checked(answered(each), {}) for each in statements]
        for topic, statements in {"Selection": SELECTION, "Descent": DESCENT}.items()
    }
    made = tmp_path_factory.mktemp("page") / "claims.html"
    made.write_text(page.render(found, collect.audited({}), [], {}, items=items.read()), encoding="utf-8")
    return made


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_page_is_quiet_whole_and_readable(tab: Tab, path: Path, width: int, scheme: str) -> None:
    tab.check(path, width, scheme, OUTSIDE % (".parentElement.closest", SCROLLS))
    assert tab.run("document.querySelectorAll('math').length") > 20


def test_formulas_are_drawn_as_formulas(tab: Tab, path: Path) -> None:
    tab.open(path)
    raised = "[...document.querySelectorAll('msup')].filter(each => each.children[1].getBoundingClientRect().bottom"
    assert tab.run(f"{raised} < each.children[0].getBoundingClientRect().bottom).length") > 0


def test_filters_work_without_script(tab: Tab, path: Path) -> None:
    tab.open(path)
    every = tab.run(SHOWN)
    for choice, kind in (("notes-002", ".notes-002"), ("verdict-wrong", ".wrong")):
        tab.run(f"document.getElementById('{choice}').checked = true")
        kept = tab.run(f"document.querySelectorAll('article{kind}').length")
        assert tab.run(SHOWN) == kept
        assert kept < every
        tab.run(f"document.getElementById('{choice.split('-')[0]}-all').checked = true")
    assert tab.run(SHOWN) == every
    assert tab.run("document.scripts.length") == 0


def test_two_choices_leave_no_empty_chapter_and_a_link_brings_its_target_back(tab: Tab, path: Path) -> None:
    tab.open(path)
    for choice in ("notes-004", "verdict-wrong"):
        tab.run(f"document.getElementById('{choice}').checked = true")
    shown = "filter(each => each.offsetHeight > 0)"
    for held, kept in (("section:has(article)", "article"), ("tbody:has(.of-notes)", "tr")):
        left = f"[...document.querySelectorAll('{held}')].{shown}"
        assert (
            tab.run(f"{left}.filter(each => ![...each.querySelectorAll('{kept}.notes-004.wrong')].{shown}.length)")
            == []
        )
    gone = "[...document.querySelectorAll('article')].find(each => !each.offsetHeight)"
    assert tab.run(f"location.hash = {gone}.id, document.querySelector('article:target').offsetHeight") > 0


def test_every_link_within_the_page_leads_somewhere(tab: Tab, path: Path) -> None:
    tab.open(path)
    lost = "[...document.querySelectorAll('nav a, .wide th a')].map(each => each.getAttribute('href'))"
    assert tab.run(f"{lost}.filter(each => each.startsWith('#') && !document.getElementById(each.slice(1)))") == []
