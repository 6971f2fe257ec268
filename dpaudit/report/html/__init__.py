"""HTML: one file a result and an overview of a suite, to be read without script, network or other files."""

import itertools
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit.account import Account, Level, Table, account
from dpaudit.account.suites import ACTION, group_of, in_order, needs_action
from dpaudit.base.quoting import clean
from dpaudit.results.suite import SuiteEntry, SuiteResult
from dpaudit.version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment, Template

    from dpaudit.report.figures import Drawing

HERE = Path(__file__).parent
SCRIPT = (HERE / "audits.js").read_text(encoding="utf-8")  # sorts and filters the table of a suite; nothing needs it
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def render(template: "str | Template", **values: object) -> str:
    """The page that a template, or the one of this name, makes of these values."""
    return environment().get_template(template).render(values)


@cache
def environment() -> "Environment":
    """What all pages share: the templates, the style and the policy."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    from dpaudit.report.figures.panel import PRINTED, STYLE

    def plain(value: object) -> object:
        """A text without control, bidirectional or invisible characters; markup of our own as it is."""
        return clean(value, len(value)) if isinstance(value, str) and not isinstance(value, Markup) else value

    jinja = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
        finalize=plain,
    )
    style = (HERE / "page.css").read_text(encoding="utf-8")
    digest = b64encode(sha256(SCRIPT.encode()).digest()).decode()  # no other script runs
    scripted = {"script": Markup(SCRIPT), "script_policy": f"{POLICY}; script-src 'sha256-{digest}'"}
    jinja.globals.update(policy=POLICY, style=Markup(f"{STYLE}\n{PRINTED}\n{style}"), **scripted)
    return jinja


OVERVIEW = "index.html"
Trends = Sequence[Sequence[Mapping[str, Any]]]  # points of a history, the oldest first, of each audit


def render_result(
    result: Any,
    *,
    entry: SuiteEntry | None = None,
    overview: str | None = None,
    record: str | None = None,
    trend: Sequence[Mapping[str, Any]] = (),
) -> str:
    """A finding as one page that needs no other file.

    `entry` adds what the author of a spec expected; `overview` and `record` are relative links to the page of the
    suite and to the JSON file of the result; `trend` are points of `history_drawing`.
    """
    from dpaudit.report.figures import drawings, history_drawing

    past = (history_drawing(trend, parameter=result.claim.parameter),) if len(trend) > 1 else ()
    told = account(result if entry is None else entry)
    version = clean(getattr(result, "provenance", {}).get("version", ""))
    return render_account(told, (*drawings(result), *past), overview=overview, record=record, version=version)


def render_account(
    told: Account,
    drawings: "Sequence[Drawing]" = (),
    *,
    overview: str | None = None,
    record: str | None = None,
    version: str = __version__,
) -> str:
    """The account of any finding as one page: the first page, its figures, all that was done, what a reviewer asks."""
    parts = {"The account": ("account", Level.DETAIL), "For the reviewer": ("review", Level.REVIEWER)}
    chapters = [(anchor, title, below) for title, (anchor, level) in parts.items() if (below := told.at(level))]
    return render(
        "account.html",
        title=told.headline,
        told=told,
        first=told.at(Level.PAGE_ONE),
        chapters=chapters,
        links=[(f"#{anchor}", heading) for anchor, heading, _ in chapters],
        drawings=drawings,
        overview=overview,
        record=record,
        version=version,
    )


def render_suite(
    suite: SuiteResult,
    pages: Sequence[str | None] = (),
    records: Sequence[str | None] = (),
    trends: Trends = (),
    template: "str | Template" = "suite.html",
    **more: object,
) -> str:
    """The overview of a suite; `pages` and `records` are relative links, one an audit, None where it has none.

    `trends` are the points of each audit's history, as `history_drawing` takes them. A `template` of its own extends
    that of suites by what is shown of `more`.
    """
    from dpaudit.report.figures.overview import sparkline, suite_drawing

    told = account(suite)
    every = told["every audit"]
    table = every.table or Table(every.title, ("audit",), ())
    drawn = [sparkline(points) for points in trends] if any(len(points) > 1 for points in trends) else []
    beside = [*itertools.zip_longest(suite.entries, pages, records, drawn)]
    groups: dict[str, list[object]] = {}
    for place, cells in zip(in_order(suite), table.rows, strict=True):
        entry, page, _, trend = beside[place]
        tone = f"{account(entry, Level.HEADLINE).tone} {'action' if needs_action(entry) else 'quiet'}"
        groups.setdefault(group_of(entry), []).append((cells, tone, page, trend))
    return render(
        template,
        title=f"{told.kind}: {told.headline}",
        told=told,
        first=[part for part in told.at(Level.PAGE_ONE) if part.key not in ("about", ACTION)],
        detail=[part for part in told.at(Level.DETAIL) if part is not every],
        table=table,
        groups=groups,
        trends=bool(drawn),
        drawing=suite_drawing(suite, pages) if suite.results else None,
        records=[(clean(entry.name), record) for entry, _, record, _ in beside if record],
        **more,
    )


def render_files(
    suite: SuiteResult, names: Sequence[str | None], records: Sequence[str | None], trends: Trends = ()
) -> Iterator[tuple[str, Callable[[], str]]]:
    """The overview, and a page for each result that leads back to it; links lead to `records` where there are any."""
    pages = page_names(names)
    yield OVERVIEW, partial(render_suite, suite, pages, records, trends)
    for entry, page, record, trend in itertools.zip_longest(suite.entries, pages, records, trends):
        if entry.result is not None and page is not None:
            linked = partial(render_result, entry.result, entry=entry, overview=OVERVIEW, record=record)
            yield page, partial(linked, trend=trend or ())


def page_names(records: Sequence[str | None]) -> tuple[str | None, ...]:
    """The names of the pages that go with these records.

    >>> page_names(["noisy-count-0c6c1f0b.json", None])
    ('noisy-count-0c6c1f0b.html', None)
    """
    return tuple(None if name is None else f"{name.removesuffix('.json')}.html" for name in records)
