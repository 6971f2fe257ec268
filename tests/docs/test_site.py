"""The site as it is built: every link and anchor resolves, nothing is loaded from elsewhere, and no key is left out."""

from __future__ import annotations

import fcntl
import html
import os
import re
import sys
import warnings
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import click
import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

import dpaudit
from dpaudit.catalogue import rooms
from dpaudit.cli.group import COMMANDS, group
from dpaudit.options import IN_PROJECTS
from dpaudit.results import stored
from dpaudit.spec import tables
from dpaudit.spec.settings import OWN

ROOT = Path(__file__).resolve().parents[2]
PYTHON = "audit mechanisms claims results bounds scores sweeps errors"  # the pages of names
LOADING = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src", "use": "href"}


class Seen(HTMLParser):
    """The links of a page, the anchors in it, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value for name, value in attrs if value is not None}
        self.anchors |= {held[name] for name in ("id", "name") if name in held}
        if tag == "a" and "href" in held:
            self.links.append(held["href"])
        if tag in LOADING and LOADING[tag] in held and held.get("rel") not in ("prev", "next", "canonical"):
            self.loads.append(held[LOADING[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; where tests run in several processes, one of them builds it for all."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = shared / "site"
    with open(shared / "site.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "built").exists():
            _build(folder)
            (folder / "built").touch()
    return folder


def _build(folder: Path) -> None:
    """As `mkdocs build --strict` does; in this process, which has loaded most of what the pages need."""
    before, path = set(sys.modules), list(sys.path)
    try:
        with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
            warnings.simplefilter("ignore")  # of the programs that build; a warning about a page is logged, and raises
            patch.setenv("NO_MKDOCS_2_WARNING", "1")
            build(load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(folder)))
    finally:
        sys.path[:] = path
        hooks = ROOT / "docs"
        for name in set(sys.modules) - before:
            if Path(getattr(sys.modules[name], "__file__", None) or os.sep).is_relative_to(hooks):
                del sys.modules[name]


def test_the_notebook_was_run_and_shows_what_its_words_say(site: Path) -> None:
    """Its cells run when the site is built, one after the other; where one of them raises, there is no site."""
    shown = (site / "notebook.html").read_text(encoding="utf-8")
    assert re.findall(r'class="dpaudit-shown (\w+)"', shown) == ["refuted", "kept", "none"]
    table = shown[shown.rindex("<thead>") :]
    assert re.findall(r"<td[^>]*>(REFUTED|not refuted)</td>", table) == ["REFUTED", *["not refuted"] * 3]
    assert "claimed 1" in shown
    assert (site / "notebook.ipynb").is_file()
    figure = (site / "paper.html").read_text(encoding="utf-8")
    assert re.findall(r">(own_svt|clipped_mean|above_threshold)</text>", figure)  # the figure names its mechanisms
    assert re.search(r"(?s)<td[^>]*>own_svt</td>.{,400}>REFUTED<", figure)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Seen]:
    """Every page of the site, read."""
    found = {}
    for path in sorted(site.rglob("*.html")):
        found[path] = Seen()
        found[path].feed(path.read_text(encoding="utf-8"))
    assert len(found) > 30
    return found


def test_every_internal_link_and_anchor_resolves(site: Path, pages: dict[Path, Seen]) -> None:
    followed = 0
    for page, seen in pages.items():
        for link in seen.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            base = site if parts.path.startswith("/") else page.parent  # absolute: of the page for what is not found
            target = Path(os.path.normpath(base / unquote(parts.path).lstrip("/"))) if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            place = f"{page.relative_to(site)}: {link}"
            assert target.is_file(), place
            if parts.fragment and target in pages:
                assert parts.fragment in pages[target].anchors, place
                followed += 1
    assert followed > 100


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Seen]) -> None:
    for page, seen in pages.items():
        for address in seen.loads:
            assert not urlsplit(address).netloc, f"{page.relative_to(site)} loads {address}"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name


def _text(site: Path, names: str) -> str:
    """The text of pages of the reference, without tags."""
    pages = [(site / "reference" / f"{name}.html").read_text(encoding="utf-8") for name in names.split()]
    return html.unescape(re.sub(r"<[^>]+>", "", "".join(page.partition("<article")[2] for page in pages)))


def _keys(schema: dict[str, Any]) -> set[str]:
    """Every key of every table of a schema."""
    return {key for table in schema["$defs"].values() for key in table.get("properties", {})}


def _words() -> dict[str, set[str]]:
    """What each page of the reference has to name."""
    context = click.Context(group)
    shown = [command for name in COMMANDS if (command := group.get_command(context, name))]
    assert len(shown) == len(COMMANDS)
    options = {word for command in shown for option in command.params for word in option.opts if word[:2] == "--"}
    public = [getattr(dpaudit, name) for name in dpaudit.__all__ if name[0].isupper()]
    errors = [each for each in public if isinstance(each, type) and issubclass(each, dpaudit.DpAuditError)]
    entries = [each for room in rooms().values() for entry in room for each in (entry, *entry.twins.values())]
    members = {"raise_if_refuted", "least_caught", "epsilon_lower", "power_reached", "save", "beside"}
    return {
        "spec": {*_keys(tables.json_schema()), *IN_PROJECTS, *OWN},
        "result": _keys(stored.json_schema()),
        "suite": _keys(stored.suite_schema()) - _keys(stored.json_schema()),
        "commands": {*options, *(f"dpaudit {name}" for name in COMMANDS)},
        "exit-codes": {str(code) for code in (*(each.exit_code for each in errors), 0, 4, 5, 70, 130)},
        PYTHON: members | {f"dpaudit.{name}" for name in dpaudit.__all__ if name != "__version__"},
        "catalogue": {word for each in entries for word in (each.name, each.title)},
    }


def test_every_key_command_code_name_and_entry_is_there(site: Path) -> None:
    for page, words in _words().items():
        text = _text(site, page)
        missing = {word for word in words if not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)}
        assert not missing, page
    told = _text(site, "spec")
    settings = told.partition("The settings of a project")[2]
    assert all(re.search(rf"\b{name}\b", settings) for name in (*IN_PROJECTS, *OWN))
    assert re.search(r"\bruns\b[^|]{0,80}?\b1000000\b", told)  # a default beside its key


def test_names_lead_to_the_reference_and_narrow_tables_name_their_columns(site: Path) -> None:
    page = (site / "tutorial.html").read_text(encoding="utf-8").partition("<article")[2]
    for target in ("mechanisms.html#stock_pairs", "results.html#AuditResult.least_caught", "commands.html#plan"):
        assert page.count(f'<a class="name" href="reference/{target}"><code>') == 1  # where the name stands first
    assert not re.search(r"<(h\d|pre)\b[^>]*>(?:(?!</\1>).)*<a class=.name", page, re.DOTALL)
    told = (site / "tools.html").read_text(encoding="utf-8")
    assert '<td data-column="what it states">a p-value of one epsilon</td>' in told
    audit = (site / "reference/audit.html").read_text(encoding="utf-8")
    assert '<code id="max_time_s">max<wbr>_time<wbr>_s</code>' in audit  # what a link to a keyword leads to


def test_the_page_about_reports_shows_a_real_one(site: Path) -> None:
    page = (site / "report.html").read_text(encoding="utf-8")
    assert page.count('role="img"') >= 5
    assert "REFUTED  noisy_count: epsilon &gt;= 1.9" in page
    assert "<!--" not in page.partition("<article")[2].partition("</article")[0]
    assert 'class="language-text highlight"' in page  # by which the style sheet lets its lines wrap


def test_the_pages_follow_the_light_and_the_dark(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    choices = re.findall(r'data-md-color-media="([^"]*)" data-md-color-scheme="([^"]*)"', page)
    assert choices[0][0] == "(prefers-color-scheme)"  # as the system has it, until a reader chooses
    assert {("(prefers-color-scheme: light)", "default"), ("(prefers-color-scheme: dark)", "slate")} <= set(choices)
    styles = (site / "assets/figures.css").read_text(encoding="utf-8")
    assert all(f"{place} {{ --dp-" in styles for place in (":root", '[data-md-color-scheme="slate"]'))
