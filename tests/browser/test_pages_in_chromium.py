"""What a reader meets: the pages opened in Chromium, narrow and wide, in the light and in the dark, and printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpaudit import report
from dpaudit.report import html
from dpaudit.results.display import Verdict
from dpaudit.results.suite import SuiteEntry, SuiteResult
from tests.account.results import made as of_kind
from tests.browser.chromium import CONTRASTS, LEAST_CONTRAST, OUTSIDE, SCHEMES, SCROLLED, WIDTHS, Tab
from tests.golden import example
from tests.report import hostile
from tests.report.test_display import HELD
from tests.training import test_page as training

pytestmark = pytest.mark.browser

CUT = OUTSIDE % (".closest", ".drawing, pre, .skip, .heard, details")
DRAWINGS = """[...document.querySelectorAll('.drawing svg')].map(each => {
  const box = each.getBoundingClientRect();
  return [box.width, box.height, box.right];
})"""


def suite() -> SuiteResult:
    """Several audits, one without a verdict, and one with a name that does its worst."""
    many = tuple(SuiteEntry(f"count {number}", Verdict.NOT_REFUTED, example.kept()) for number in range(6))
    worst = "<script>alert(1)</script>" + "x" * 2_000 + "\u202e"
    return SuiteResult((*example.suite().entries, *many, *hostile.suite(worst).entries), 0.99)


def test_the_table_is_sorted_and_filtered_by_keys_alone(tab: Tab, folder: Path) -> None:
    tab.open(folder / "index.html")
    rows = "[...document.querySelectorAll('.audits tbody tr')].filter(each => each.offsetHeight)"
    heads = f"{rows}.filter(each => each.cells.length === 1).map(each => each.textContent.trim())"
    shown = f"{rows}.filter(each => each.cells.length > 1).map(each => each"
    every = tab.run(f"{shown}.cells[0].textContent.trim())")
    assert tab.run(heads) == ["Needs action (3)", "Known to be broken: do not rely on these (1)", "As expected (7)"]
    assert tab.run("document.querySelector('.filter').offsetHeight") > 0
    press = "document.querySelectorAll('.audits th button')[{}].focus(), document.activeElement.click()"
    certified = f"{shown}.cells[3].textContent.trim())"
    tab.run(press.format(3))
    rising = [float(each.split()[-1]) for each in tab.run(certified)[4:] if each]  # what is as expected
    assert rising == sorted(rising)
    assert tab.run(certified)[2] == ""  # what is not there stands last in its group
    tab.run(press.format(3))
    assert [float(each.split()[-1]) for each in tab.run(certified)[4:] if each] == rising[::-1]
    assert tab.run("document.querySelectorAll('[aria-sort=descending]').length") == 1
    choose = "(each => (each.value = '{1}', each.dispatchEvent(new Event('{2}'))))(document.getElementById('{0}'))"
    tab.run(choose.format("words", "count 3", "input"))
    assert tab.run(f"{shown}.cells[0].textContent.trim())") == ["count 3"]
    assert tab.run(heads) == ["As expected (7)"]
    tab.run(choose.format("words", "", "input"))
    tab.run(choose.format("kind", "REFUTED, as expected", "change"))
    assert set(tab.run(f"{shown}.cells[1].textContent.trim())")) == {"REFUTED, as expected"}
    assert "of" in tab.run("document.getElementById('shown').textContent")
    tab.run(choose.format("kind", "", "change"))
    assert sorted(tab.run(f"{shown}.cells[0].textContent.trim())")) == sorted(every)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made, path = suite(), tmp_path_factory.mktemp("pages")
    report.write_suite(made, path, ["html", "json"])
    training.result(inserted="<b>" + "x" * 2_000 + "\u202e").write_report(path)
    for kind in KINDS:
        report.write_report(of_kind(kind), path / f"{kind}.html")
    return path


KINDS = ("bits-too", "controls", "raising", "few-runs", "accepted", "missed", "suite", "bracket", "scores", "training")
KINDS += ("sweep", "comparison")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_page_of_every_kind_can_be_read(tab: Tab, folder: Path, kind: str, width: int, scheme: str) -> None:
    tab.check(folder / f"{kind}.html", width, scheme)


def pages(folder: Path) -> list[Path]:
    """The overview, a page with a refutation, one with a bracket, the hostile one, and that of a training."""
    names = [name for name in html.page_names(report.record_names(suite())) if name]
    return [folder / name for name in ("index.html", names[0], names[1], names[-1], "training.html")]


@pytest.mark.parametrize("which", range(5), ids=["overview", "refuted", "kept", "hostile", "training"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_page_is_quiet_whole_and_readable(tab: Tab, folder: Path, which: int, width: int, scheme: str) -> None:
    tab.check(pages(folder)[which], width, scheme)
    assert which or tab.run(CUT) == []  # the table of a suite is whole, where it is narrow too
    drawn = tab.run(DRAWINGS)
    assert len(drawn) >= (1 if which == 0 else 3)
    assert all(across > 250 and down > 40 for across, down, _ in drawn), drawn
    assert all(right <= width for _, _, right in drawn), drawn
    assert tab.run(f"matchMedia('(prefers-color-scheme: {scheme})').matches") is True


THEMES = {"system": "", "light": 'data-jp-theme-light="true"', "dark": 'class="vscode-dark"'}
GROUND = "getComputedStyle(document.querySelector('#{} .dpaudit-shown')).backgroundColor"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_notebook_shows_results_in_its_own_theme(tab: Tab, tmp_path: Path, width: int, scheme: str) -> None:
    """Whatever the system has, and without a style for what stands beside them."""
    held = (*HELD, *suite().results[-1:], example.result().plot())
    shown = "".join(each._repr_html_() for each in held)
    cells = "".join(f'<div id="{name}" {theme}>{shown}</div>' for name, theme in THEMES.items())
    path = tmp_path / "notebook.html"
    beside = "<p>beside</p><dl><dt>a</dt><dd>b</dd></dl><table><tr><td>c</td></tr></table>"
    head = '<!DOCTYPE html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>n</title>'
    path.write_text(f"{head}<section>{beside}</section>{cells}", encoding="utf-8")
    tab.check(path, width, scheme)
    grounds = {name: tab.run(GROUND.format(name)) for name in THEMES}
    assert grounds["light"] != grounds["dark"]
    assert grounds["system"] == grounds[scheme]
    style = "[...document.querySelectorAll('section *')].map(each => JSON.stringify({...getComputedStyle(each)}))"
    before = tab.run(style)
    tab.run("document.querySelectorAll('style').forEach(each => each.remove())")
    assert tab.run(style) == before


def test_a_link_of_the_overview_leads_to_the_page_and_back(tab: Tab, folder: Path) -> None:
    tab.open(folder / "index.html")
    targets = tab.run("[...document.querySelectorAll('.audits a')].map(each => each.href)")
    assert pages(folder)[1].resolve().as_uri() in targets
    tab.open(pages(folder)[1])
    assert tab.run("document.querySelector('nav a').href") == (folder / "index.html").resolve().as_uri()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_pages_print(tab: Tab, folder: Path, scheme: str) -> None:
    for path in pages(folder)[:2]:
        tab.open(path, scheme=scheme)
        ground = tab.run("getComputedStyle(document.body).backgroundColor")
        tab.open(path, scheme=SCHEMES[scheme == "light"])
        assert tab.run("getComputedStyle(document.body).backgroundColor") != ground  # light and dark are not the same
        tab.open(path, scheme=scheme)
        printed = tab.pdf()
        assert printed.startswith(b"%PDF-")
        assert re.search(rb"/MediaBox \[0 0 59[45][.0-9]* 84[12]", printed), "not A4 upright"
        assert len(printed) > 20_000


def test_the_tables_of_the_account_are_printed_and_the_numbers_of_figures_are_not(tab: Tab, folder: Path) -> None:
    tab.open(pages(folder)[1])
    tab.call("Emulation.setEmulatedMedia", media="print")
    height = "[...document.querySelectorAll('table')].filter(t => {} t.closest('figure')).map(t => t.offsetHeight)"
    tables, numbers = tab.run(height.format("!")), tab.run(height.format(""))
    tab.call("Emulation.setEmulatedMedia", media="")
    assert min(tables) > 10
    assert set(numbers) == {0}


def test_the_driver_would_notice(tab: Tab, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    bad.write_text(
        "<!DOCTYPE html><title>x</title><meta http-equiv='Content-Security-Policy' content=\"script-src 'none'\">"
        "<p style='width:3000px'>wide</p><script>1</script><img src='gone.png'><p style='color:#999'>faint</p>"
    )
    tab.open(bad, width=400)
    assert any("Content Security Policy" in each for each in tab.complaints)
    assert (tmp_path / "gone.png").as_uri() in tab.requests
    assert tab.run("document.documentElement.scrollWidth") > 400
    assert tab.run(SCROLLED)
    assert tab.run(CONTRASTS)[0][0] < LEAST_CONTRAST
