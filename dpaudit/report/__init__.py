"""The formats of reports: one line each in `FORMATS`; the module of a format is loaded when the format is asked for."""

import importlib
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit.base.files import write_text
from dpaudit.base.quoting import clean
from dpaudit.errors import InvalidSpec

if TYPE_CHECKING:  # the command line reads `FORMATS` before it knows whether there is anything to report
    from dpaudit.account import Account
    from dpaudit.report.figures import Drawing
    from dpaudit.results.suite import SuiteEntry, SuiteResult

LONGEST_SLUG = 60
USUAL = ("json", "md", "html")

Names = Sequence[str | None]  # of files, one an audit; None for an audit that has none


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name, its module here, the file that a suite is written to, and what else the module has.

    A module has pure functions, from a value to the whole text of a file, whose names begin with `prefix`:
    `render_suite(suite, records)`, `records` the names of the files that hold its results; of a `single` format
    `render_result(result)`; of a `folder` one, which writes a file for each audit, `render_files`.
    """

    name: str
    module: str
    file: str
    single: bool = False
    folder: bool = False
    prefix: str = "render_"

    def function(self, what: str) -> Any:
        """The function for a `suite`, a `result` or `files`; its module is imported now."""
        return getattr(importlib.import_module(f"dpaudit.report.{self.module}"), f"{self.prefix}{what}")

    def files(
        self, suite: "SuiteResult", names: Names, records: Names, trends: Any = ()
    ) -> Iterable[tuple[str, Callable[[], str]]]:
        """The name of each file of a suite, and what makes its text.

        `names` are those that the records have, or would have; `trends` the points of each audit's history.
        """
        if self.folder:
            texts: Iterable[tuple[str, Callable[[], str]]] = self.function("files")(suite, names, records, trends)
            return texts
        return [(self.file, partial(self.function("suite"), suite, records))]


FORMATS = {
    each.name: each
    for each in (
        Format("json", "exchange", "suite.json", single=True, folder=True, prefix="json_"),
        Format("md", "markdown", "report.md", single=True, folder=True),
        Format("html", "html", "index.html", single=True, folder=True),
        Format("junit", "exchange", "junit.xml", prefix="junit_"),
        Format("sarif", "exchange", "dpaudit.sarif", prefix="sarif_"),
        Format("csv", "csv_", "results.csv"),
        Format("txt", "markdown", "report.txt", single=True, prefix="text_"),
        Format("badge", "exchange", "badge.svg", prefix="badge_"),
    )
}
ALIASES = {"summary": "md"}  # names of earlier versions
SUFFIXES: dict[str, Format] = {}
for _each in FORMATS.values():
    SUFFIXES.setdefault(Path(_each.file).suffix, _each)  # of two formats with one suffix the first
del SUFFIXES[".svg"]  # a figure, elsewhere


def format_of(path: str | os.PathLike[str]) -> Format:
    """The format that the suffix of a file names. Raises `InvalidSpec` for a suffix that no format has."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidSpec(f"a report must end in {', '.join(SUFFIXES)}, got {clean(path, 200)!r}")
    return SUFFIXES[suffix]


def formats_of(names: Iterable[str]) -> tuple[Format, ...]:
    """The formats of these names, each once. Raises `InvalidSpec` for a name that no format has.

    >>> [each.file for each in formats_of(("md", "sarif", "md"))]
    ['report.md', 'dpaudit.sarif']
    """
    chosen = tuple(dict.fromkeys(ALIASES.get(name, name) for name in names))
    for name in chosen:
        if name not in FORMATS:
            raise InvalidSpec(f"a format must be one of {', '.join(FORMATS)}, got {clean(name)!r}")
    return tuple(FORMATS[name] for name in chosen)


def render(report: Any, kind: Format) -> str:
    """The whole text of a finding in one format, without other files. Raises `InvalidSpec` for one it cannot have."""
    from dpaudit.account import account, templates
    from dpaudit.results.result import AuditResult
    from dpaudit.results.suite import SuiteResult

    if isinstance(report, SuiteResult):
        return str(kind.function("suite")(report))
    if isinstance(report, AuditResult) and not kind.single:
        return str(kind.function("suite")(SuiteResult.of([report])))
    known = account.dispatch(type(report)) is not account.dispatch(object)
    if not (known and kind.single and (kind.name != "json" or hasattr(report, "to_dict"))):
        raise InvalidSpec(templates.NO_REPORT.format(finding=type(report).__name__, kind=kind.name))
    return str(kind.function("result")(report))


def write_report(report: Any, path: str | os.PathLike[str]) -> Path:
    """Writes the report of any finding, whole or not at all; the suffix chooses the format.

    All have .html, .md and .txt, and .json where they can be stored; audits and suites also .xml (JUnit), .sarif and
    .csv. Of a suite .md is a comment of 30 lines. A folder, or a name without a dot, gets the page with what belongs to
    it. Returns the path, of a folder that of the page. Raises `InvalidSpec` for a suffix that makes no sense, and for
    what is no finding.
    """
    from dpaudit.results.result import AuditResult
    from dpaudit.results.suite import SuiteResult

    if Path(path).is_dir() or "." not in Path(path).name:
        if not isinstance(report, AuditResult | SuiteResult):
            render(report, FORMATS["txt"])  # what has no report is refused before a folder is made
            return write_page(report, path)[-1]
        write_suite(report if isinstance(report, SuiteResult) else SuiteResult.of([report]), path)
        return Path(path, "index.html")
    return write_text(path, render(report, format_of(path)))


def write_suite(
    suite: "SuiteResult", folder: str | os.PathLike[str], formats: Iterable[str] = USUAL, trends: Any = ()
) -> list[Path]:
    """Writes a suite into a folder, in each of the formats; returns the paths, in the order of the formats.

    The records come first, whatever the order of the formats: `json` is a file for each result, and `suite.json`.
    Where a file fails, the others are written all the same, and its error is raised at the end. Raises `InvalidSpec`
    for a name that no format has, before anything is written. `trends` are the points of each audit's history, for
    pages, as `figures.history_drawing` takes them.
    """
    chosen = formats_of(formats)
    names = record_names(suite)
    records = names if FORMATS["json"] in chosen else ()
    written: dict[str, list[Path]] = {each.name: [] for each in chosen}
    failed: list[Exception] = []
    for kind in sorted(chosen, key=lambda each: each.name != "json"):
        for name, text in kind.files(suite, names, records, trends):
            try:
                written[kind.name].append(write_text(Path(folder, name), text()))
            except Exception as error:  # of any kind: the files that follow are written all the same
                error.add_note(f"while the report was written as {kind.name}")
                failed.append(error)
    if failed:
        raise failed[0]
    return [path for paths in written.values() for path in paths]


def write_page(finding: Any, folder: str | os.PathLike[str]) -> list[Path]:
    """Writes the page of a finding that is no audit: the record, figures as SVG, Markdown, HTML; the paths, HTML last.

    Their names are made of its kind. A finding with a `write` of its own writes itself.
    """
    if hasattr(finding, "write"):
        paths: list[Path] = finding.write(folder)
        return paths
    from dpaudit.account import account
    from dpaudit.base.strict import text_of
    from dpaudit.report.figures import drawings

    stem, told = type(finding).__name__.removesuffix("Result").lower(), account(finding)
    stored = [text_of(finding.to_dict())] if hasattr(finding, "to_dict") else []
    record = [write_text(Path(folder, f"{stem}.json"), text) for text in stored]
    name = "".join(each.name for each in record)
    return [*record, *write_account(told, drawings(finding), folder, stem, name, f"{stem}-")]


def write_account(
    told: "Account",
    drawn: "Sequence[Drawing]",
    folder: str | os.PathLike[str],
    stem: str,
    record: str,
    prefix: str = "",
    suffixes: Sequence[str] = (".svg",),
) -> list[Path]:
    """Writes the figures, with a `prefix` to their names, and the account in Markdown and HTML; the paths, HTML last.

    `record` is the file beside them that has all numbers.
    """
    from dpaudit.report.html import render_account
    from dpaudit.report.markdown import account_page

    where = Path(folder)
    paths = [each.save(where / f"{prefix}{each.name}{suffix}") for each in drawn for suffix in suffixes]
    paths.append(write_text(where / f"{stem}.md", account_page(told, drawn, prefix, record)))
    return [*paths, write_text(where / f"{stem}.html", render_account(told, drawn, record=record))]


def record_names(suite: "SuiteResult") -> tuple[str | None, ...]:
    """The file name of each result: its name as a slug and the head of its spec's hash; None where there is none."""
    from dpaudit.base.strict import spec_hash

    names: list[str | None] = []
    taken: set[str] = set()
    for entry in suite.entries:
        if entry.result is None:
            names.append(None)
            continue
        stem = f"{slug(entry.name)}-{spec_hash(entry.result.spec)[:8]}"
        tries = (stem if number == 1 else f"{stem}-{number}" for number in range(1, len(suite.entries) + 1))
        name = next(f"{each}.json" for each in tries if f"{each}.json" not in taken)
        names.append(name)
        taken.add(name)
    return tuple(names)


def slug(name: str) -> str:
    """A name as part of a file name: lower-case ASCII letters, digits and single dashes.

    >>> slug("Noisy count, half the noise!"), slug("../../etc")
    ('noisy-count-half-the-noise', 'etc')
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:LONGEST_SLUG].strip("-") or "audit"


def spec_of(entry: "SuiteEntry | None") -> str | None:
    """The spec file of an audit, whether it came to a result or not; None where there is none."""
    if entry is None:
        return None
    return entry.source or (None if entry.result is None else entry.result.provenance.get("source"))


def inside(path: str) -> tuple[str, ...]:
    r"""The parts of a path below this folder; of a path that leads out of it only the last name is left.

    No report names a home folder.

    >>> inside("src/a.py"), inside("C:\\x\\y.py"), inside("../../etc/passwd")
    (('src', 'a.py'), ('y.py',), ('passwd',))
    """
    if os.path.isabs(path) and Path(path).is_relative_to(Path.cwd()):
        path = os.path.relpath(path)
    flat = posixpath.normpath(path.replace("\\", "/"))
    outside = flat.startswith(("/", "../")) or re.match("[A-Za-z]:/", flat)
    parts = flat.split("/")[-1:] if outside else flat.split("/")
    return tuple(part for part in parts if part not in ("", ".", ".."))
