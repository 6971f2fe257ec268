"""One format, one file: a module with `render_result` and `render_suite`, and one line in `FORMATS`.

Every format prints the sentences of `dpaudit.auditing.wording`; none has wording about a result of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from dpaudit.auditing.result import AuditResult, SuiteResult, write_text
from dpaudit.auditing.spec import spec_hash
from dpaudit.auditing.wording.quoting import clean
from dpaudit.errors import InvalidSpec
from dpaudit.report import json_, markdown, text

LONGEST_SLUG = 60


class Report(Protocol):
    """A format: two pure functions, from a value to the whole text of a file."""

    def render_result(self, result: AuditResult) -> str:
        """The text for one result."""

    def render_suite(self, suite: SuiteResult, records: Sequence[str | None] = ()) -> str:
        """The text for a suite; `records` are the names of the files that hold its results, where there are any."""


FORMATS: dict[str, Report] = {
    ".json": json_,
    ".md": markdown,
    ".txt": text,
}


def write(report: AuditResult | SuiteResult, path: str | os.PathLike[str]) -> Path:
    """Writes a result or a suite in the format that the suffix names, whole or not at all; returns the path.

    Raises `InvalidSpec` for a suffix that no format has.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise InvalidSpec(f"a report must end in {', '.join(FORMATS)}, got {clean(path, 200)!r}")
    made = FORMATS[suffix]
    whole = made.render_suite(report) if isinstance(report, SuiteResult) else made.render_result(report)
    return write_text(path, whole)


def write_suite(suite: SuiteResult, folder: str | os.PathLike[str]) -> list[Path]:
    """Writes one JSON for each result and `report.md` for the suite; returns the paths, the report's last."""
    records = record_names(suite)
    paths = [
        write(entry.result, Path(folder, record))
        for entry, record in zip(suite.entries, records, strict=True)
        if entry.result is not None and record is not None
    ]
    return [*paths, write_text(Path(folder, "report.md"), markdown.render_suite(suite, records))]


def record_names(suite: SuiteResult) -> tuple[str | None, ...]:
    """The file name of each result: its name as a slug and the head of its spec's hash; None where there is none."""
    names: list[str | None] = []
    for entry in suite.entries:
        if entry.result is None:
            names.append(None)
            continue
        stem = f"{slug(entry.name)}-{spec_hash(entry.result.spec)[:8]}"
        tries = (stem if number == 1 else f"{stem}-{number}" for number in range(1, len(suite.entries) + 1))
        names.append(next(f"{name}.json" for name in tries if f"{name}.json" not in names))
    return tuple(names)


def slug(name: str) -> str:
    """A name as part of a file name: lower-case ASCII letters, digits and single dashes.

    >>> slug("Noisy count, half the noise!"), slug("../../etc")
    ('noisy-count-half-the-noise', 'etc')
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:LONGEST_SLUG].strip("-") or "audit"


__all__ = ["FORMATS", "Report", "record_names", "slug", "write", "write_suite"]
