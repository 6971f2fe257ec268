"""One format, one module with `render_result` and `render_suite`, and one line in `FORMATS`.

Every format prints the sentences of `dpaudit.results.wording`; none has wording about a result of its own. A module is
loaded when its format is asked for.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, cast

from dpaudit.errors import InvalidSpec
from dpaudit.results.files import write_text
from dpaudit.results.question import spec_hash
from dpaudit.results.result import AuditResult
from dpaudit.results.suite import SuiteResult
from dpaudit.results.wording.quoting import clean

LONGEST_SLUG = 60
USUAL = ("json", "md", "html")


class Report(Protocol):
    """What the module of a format has: two pure functions, from a value to the whole text of a file."""

    def render_result(self, result: AuditResult) -> str:
        """The text for one result."""

    def render_suite(self, suite: SuiteResult, *, records: Sequence[str | None] = ()) -> str:
        """The text for a suite; `records` are the names of the files that hold its results, where there are any."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name, its module here, and the file that a suite is written to."""

    name: str
    module: str
    file: str

    def load(self) -> Report:
        """The module, imported now."""
        return cast(Report, importlib.import_module(f"dpaudit.report.{self.module}"))


FORMATS = {
    each.name: each
    for each in (
        Format("json", "json_", "suite.json"),
        Format("md", "markdown", "report.md"),
        Format("html", "html", "index.html"),
        Format("junit", "junit", "junit.xml"),
        Format("sarif", "sarif", "dpaudit.sarif"),
        Format("csv", "csv_", "results.csv"),
        Format("txt", "text", "report.txt"),
        Format("summary", "summary", "summary.md"),
    )
}
SUFFIXES = {Path(each.file).suffix: each for each in FORMATS.values() if each.name != "summary"}


def format_of(path: str | os.PathLike[str]) -> Format:
    """The format that the suffix of a file names. Raises `InvalidSpec` for a suffix that no format has."""
    found = SUFFIXES.get(Path(path).suffix.lower())
    if found is None:
        raise InvalidSpec(f"a report must end in {', '.join(SUFFIXES)}, got {clean(path, 200)!r}")
    return found


def formats_of(names: Iterable[str]) -> tuple[Format, ...]:
    """The formats of these names, each once. Raises `InvalidSpec` for a name that no format has.

    >>> [each.file for each in formats_of(("md", "sarif", "md"))]
    ['report.md', 'dpaudit.sarif']
    """
    chosen = tuple(dict.fromkeys(names))
    for name in chosen:
        if name not in FORMATS:
            raise InvalidSpec(f"a format must be one of {', '.join(FORMATS)}, got {clean(name)!r}")
    return tuple(FORMATS[name] for name in chosen)


def render(report: AuditResult | SuiteResult, made: Format) -> str:
    """The whole text of a result or a suite in one format, with no other file beside it."""
    module = made.load()
    return module.render_suite(report) if isinstance(report, SuiteResult) else module.render_result(report)


def write(report: AuditResult | SuiteResult, path: str | os.PathLike[str]) -> Path:
    """Writes a result or a suite in the format that the suffix names, whole or not at all; returns the path.

    Raises `InvalidSpec` for a suffix that no format has.
    """
    return write_text(path, render(report, format_of(path)))


def write_suite(
    suite: SuiteResult, folder: str | os.PathLike[str], formats: Iterable[str] = USUAL, *, n_jobs: int = 2
) -> list[Path]:
    """Writes a suite into a folder, in each of the formats; returns the paths, in the order of the formats.

    The records come first, whatever the order of the formats: `json` is a file for each result, and `suite.json`.
    Where a format fails, the others are written all the same, and its error is raised at the end. Raises `InvalidSpec`
    for a name that no format has, before anything is written.
    """
    chosen = formats_of(formats)
    names, kept = record_names(suite), FORMATS["json"] in chosen
    steps: list[tuple[str, Callable[[], list[Path]]]] = []
    for entry, name in zip(suite.entries, names, strict=True):
        if kept and entry.result is not None and name is not None:
            steps.append(("json", partial(_write_record, entry.result, Path(folder, name))))
    for each in sorted(chosen, key=lambda each: each.name != "json"):
        if each.name == "html":
            steps.append((each.name, partial(_write_html, suite, folder, names, kept, n_jobs)))
        else:
            steps.append((each.name, partial(_write_whole, suite, folder, names if kept else (), each)))
    written: dict[str, list[Path]] = {each.name: [] for each in chosen}
    failed: list[Exception] = []
    for name, step in steps:
        try:
            written[name] += step()
        except Exception as error:  # whatever it is, it must not cost the files that follow
            error.add_note(f"while the report was written as {name}")
            failed.append(error)
    if failed:
        raise failed[0]
    return [path for paths in written.values() for path in paths]


def _write_record(result: AuditResult, path: Path) -> list[Path]:
    return [result.save(path)]


def _write_whole(
    suite: SuiteResult, folder: str | os.PathLike[str], records: Sequence[str | None], made: Format
) -> list[Path]:
    return [write_text(Path(folder, made.file), made.load().render_suite(suite, records=records))]


def _write_html(
    suite: SuiteResult, folder: str | os.PathLike[str], names: Sequence[str | None], kept: bool, n_jobs: int
) -> list[Path]:
    from dpaudit.report import html

    return html.write_suite(suite, folder, names, n_jobs=n_jobs, beside=kept)


def record_names(suite: SuiteResult) -> tuple[str | None, ...]:
    """The file name of each result: its name as a slug and the head of its spec's hash; None where there is none."""
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


__all__ = [
    "FORMATS",
    "USUAL",
    "Format",
    "Report",
    "format_of",
    "formats_of",
    "record_names",
    "render",
    "slug",
    "write",
    "write_suite",
]
