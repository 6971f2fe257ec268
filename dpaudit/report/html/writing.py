"""A folder of pages: the overview and one page an audit, rendered by several workers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dpaudit.report.html.pages import render_result, render_suite
from dpaudit.results.files import write_text
from dpaudit.results.suite import SuiteEntry, SuiteResult

OVERVIEW = "index.html"
FEW = 6  # pages that are rendered sooner than a worker has started


def page_names(records: Sequence[str | None]) -> tuple[str | None, ...]:
    """The names of the pages beside these records.

    >>> page_names(["noisy-count-0c6c1f0b.json", None])
    ('noisy-count-0c6c1f0b.html', None)
    """
    return tuple(None if name is None else f"{name.removesuffix('.json')}.html" for name in records)


def write_suite(
    suite: SuiteResult,
    folder: str | os.PathLike[str],
    records: Sequence[str | None],
    *,
    n_jobs: int = 2,
    beside: bool = True,
) -> list[Path]:
    """Writes the overview and a page for each result, and returns the paths, the overview's first.

    `records` are the names of the JSON files of the results, one an audit, None where there is none; pages have the
    same names. Links lead to the JSON files unless `beside` is False.
    """
    pages = page_names(records)
    kept = records if beside else [None] * len(records)
    first = write_text(Path(folder, OVERVIEW), render_suite(suite, pages, kept))
    work = [
        (entry, Path(folder, page), record)
        for entry, page, record in zip(suite.entries, pages, kept, strict=True)
        if entry.result is not None and page is not None
    ]
    if len(work) <= FEW or n_jobs == 1:
        return [first, *(write_page(*each) for each in work)]
    from joblib import Parallel, delayed

    return [first, *Parallel(n_jobs=n_jobs)(delayed(write_page)(*each) for each in work)]


def write_page(entry: SuiteEntry, path: Path, record: str | None) -> Path:
    """Writes the page of one audit beside the overview."""
    assert entry.result is not None
    return write_text(path, render_result(entry.result, entry=entry, overview=OVERVIEW, record=record))
