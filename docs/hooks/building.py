"""What the site adds to its pages when it is built: the reference, and the figures of an audit that is run for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import recipe
import shown
import worked
from mkdocs.structure.files import File, Files
from reference import PAGES, keywords

COLOURS = "assets/figures.css"  # named in mkdocs.yml
SLOT = re.compile(r"^<!-- (?P<what>[a-z]+): (?P<name>[a-z-]+) -->$", re.MULTILINE)
FILLS: dict[str, Callable[[str], str]] = {
    "report": shown.report,
    "figure": shown.figure,
    "training": shown.training,
    "table": shown.numbers,
    "action": recipe.part,
    "keywords": keywords.rows,
}


def on_files(files: Files, config: Any) -> Files:
    """Adds the reference pages, made from the package."""
    for path, make in PAGES.items():
        files.append(File.generated(config, path, content=make()))
    files.append(File.generated(config, COLOURS, content=shown.colours()))
    files.append(File.generated(config, "notebook.md", content=worked.page()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fills the slots of a page, such as `<!-- report: verdict -->` or `<!-- figure: distributions -->`."""
    return SLOT.sub(lambda found: f"\n{FILLS[found['what']](found['name'])}\n", markdown)
