"""The page of a finding that has no spec: its account in Markdown and in HTML, its figures, and its record in JSON."""

import os
from pathlib import Path
from typing import Any

from dpaudit.account import account
from dpaudit.base.files import write_text
from dpaudit.base.strict import text_of
from dpaudit.report.figures import drawings


def write_page(result: Any, folder: str | os.PathLike[str], stem: str) -> list[Path]:
    """Writes JSON, figures as SVG, Markdown and HTML, their names made of `stem`; returns their paths, HTML last."""
    from dpaudit.report.html import render_account
    from dpaudit.report.markdown import account_page

    where, told, drawn = Path(folder), account(result), drawings(result)
    where.mkdir(parents=True, exist_ok=True)
    paths = [write_text(where / f"{stem}.json", text_of(result.to_dict()))]
    paths += [each.save(where / f"{stem}-{each.name}.svg") for each in drawn]
    paths.append(write_text(where / f"{stem}.md", account_page(told, drawn, stem)))
    return [*paths, write_text(where / f"{stem}.html", render_account(told, drawn, record=f"{stem}.json"))]
