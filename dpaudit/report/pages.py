"""The page of a finding that is no audit: its account in Markdown and in HTML, its figures, and its record."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpaudit.account import Account, account
from dpaudit.base.files import write_text
from dpaudit.base.strict import text_of
from dpaudit.report.figures import Drawing, drawings


def write_page(finding: Any, folder: str | os.PathLike[str]) -> list[Path]:
    """Writes the record, figures as SVG, Markdown and HTML, their names made of its kind; their paths, HTML last.

    A finding with a `write` of its own writes itself.
    """
    if hasattr(finding, "write"):
        paths: list[Path] = finding.write(folder)
        return paths
    stem, told = type(finding).__name__.removesuffix("Result").lower(), account(finding)
    stored = [text_of(finding.to_dict())] if hasattr(finding, "to_dict") else []
    record = [write_text(Path(folder, f"{stem}.json"), text) for text in stored]
    name = "".join(each.name for each in record)
    return [*record, *write_account(told, drawings(finding), folder, stem, name, f"{stem}-")]


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
