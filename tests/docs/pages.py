"""The pages of the documentation, as the tests of this folder read them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md"))
README = ROOT / "README.md"
BLOCK = re.compile(
    r"^```(?P<language>\w+)(?: title=\"(?P<title>[^\"]*)\")?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
NOT_RUN = "not run by the tests: "  # a title that readers see, followed by the reason
PRINTS = "prints"


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, its title as the page shows it, and its text."""

    page: Path
    line: int
    language: str
    title: str
    text: str

    @property
    def place(self) -> str:
        """Where it stands, as a message names it."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_file(self) -> bool:
        """Whether the page shows it as a file of that name."""
        return re.fullmatch(r"\w+\.py", self.title) is not None


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order. Every fence of a page is one of them, or the page is wrong."""
    text = page.read_text(encoding="utf-8")
    found = [
        Block(page, text[: each.start()].count("\n") + 1, each["language"], each["title"] or "", each["text"])
        for each in BLOCK.finditer(text)
    ]
    fences = len(re.findall(r"^```", text, re.MULTILINE))
    assert fences == 2 * len(found), f"{page.relative_to(ROOT)}: a fence has no language, or no end"
    return found


def commands(page: Path) -> list[tuple[str, list[str], str]]:
    """Every command that a page shows after a `$`: its place, its words, and what is shown below it."""
    return [
        (block.place, shlex.split(line, comments=True), output)
        for block in blocks(page)
        if block.language == "console"
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
        for line, _, output in [part.partition("\n")]
    ]
