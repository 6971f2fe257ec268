"""The page of a finding that has no spec: its account in Markdown and in HTML, its figures, and its record."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpaudit.account import Account, account
from dpaudit.base.files import write_text
from dpaudit.base.strict import text_of
from dpaudit.report.figures import Drawing, drawings


def write_page(result: Any, folder: str | os.PathLike[str], stem: str) -> list[Path]:
    """Writes JSON, figures as SVG, Markdown and HTML, their names made of `stem`; returns their paths, HTML last."""
    record = write_text(Path(folder, f"{stem}.json"), text_of(result.to_dict()))
    return [record, *write_account(account(result), drawings(result), folder, stem, record.name, f"{stem}-")]


def write_account(
    told: Account,
    drawn: Sequence[Drawing],
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
