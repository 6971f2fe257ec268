"""What the site adds to its pages when it is built: the reference, and the figures of an audit that is run for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import finish
import recipe
import shown
import worked
from mkdocs.structure.files import File, Files
from reference import PAGES, keywords
from reference.python import signature, summary

COLOURS = "assets/figures.css"  # named in mkdocs.yml
ROOT = Path(__file__).resolve().parents[2]
OF_REPOSITORY = {  # pages that stand there too
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "reports.md": "reports/README.md",
}
SLOT = re.compile(r"^<!-- (?P<what>[a-z]+): (?P<name>[a-z-]+) -->$", re.MULTILINE)
FILLS: dict[str, Callable[[str], str]] = {
    "report": shown.report,
    "figure": shown.figure,
    "training": shown.training,
    "stored": shown.stored,
    "table": shown.numbers,
    "action": recipe.part,
    "keywords": keywords.rows,
    "python": summary,
    "signature": signature,
}


def on_files(files: Files, config: Any) -> Files:
    """Adds the reference pages, made from the package."""
    for path, make in PAGES.items():
        files.append(File.generated(config, path, content=make()))
    for path, name in OF_REPOSITORY.items():
        files.append(File.generated(config, path, content=_of_repository(ROOT / name)))
    files.append(File.generated(config, COLOURS, content=shown.colours()))
    for name, notebook in worked.NOTEBOOKS.items():
        files.append(File.generated(config, name, content=worked.page(notebook)))
    return files


def _of_repository(file: Path) -> str:
    """A file of the repository as a page: links to files that are no pages become their names."""

    def linked(found: re.Match[str]) -> str:
        words, target = found.groups()
        if target.startswith(("http", "#")):
            return found[0]
        inside = target.removeprefix("../")
        return f"[{words}]({inside.removeprefix('docs/')})" if inside.startswith("docs/") else words

    return re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", linked, file.read_text(encoding="utf-8"))


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fills the slots of a page, such as `<!-- report: verdict -->` or `<!-- figure: distributions -->`."""
    return SLOT.sub(lambda found: f"\n{FILLS[found['what']](found['name'])}\n", markdown)


def on_page_content(content: str, *, page: Any, files: Files, **_: Any) -> str:
    """Links the names of a page to the reference, and makes its tables fit a narrow screen."""
    path = page.file.src_uri
    found = finish.anchored(content) if path == finish.AUDIT else content
    return finish.stacked(finish.breakable(finish.linked(found, path, page.url, files)))
