"""What a report was made with: the version of dpaudit, and a digest of the code.

`python -m audits.digest` prints the line of the code that is here, for each report, and which of those in `reports/`
other code has made: a page has the digest of its own.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from dpaudit import __version__

ROOT = Path(__file__).parents[1]
MADE_OF = {  # what decides a report: folders of the repository
    "lectures": ("dpaudit", "audits/lectures"),
    "literature": ("dpaudit", "audits/literature"),
    "research": ("dpaudit", "audits/literature", "audits/research"),
}
TOLD_APART = {  # what decides nothing of it: a change of words there leaves the record true
    "literature": (
        *(f"dpaudit/{room}/" for room in ("account", "report", "ledger", "sweeps", "training", "cli", "pytest_plugin")),
        *(f"audits/literature/{name}.py" for name in ("expected", "figures", "page", "published", "sections", "table")),
    )
}
PAGES = {"lectures": "claims.html", "literature": "literature.md", "research": "study.md"}
SUFFIXES = {".py", ".toml", ".json", ".jinja", ".html", ".css", ".js"}


def digest(report: str) -> str:
    """The first 64 bits of the SHA-256 of all files that decide a report, with their names."""
    found = hashlib.sha256()
    for folder in MADE_OF[report]:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in SUFFIXES and not name.startswith(TOLD_APART.get(report, ())):
                content = path.read_bytes()
                found.update(f"{name}\0{len(content)}\0".encode() + content)
    return found.hexdigest()[:16]


def made(report: str) -> str:
    """A sentence for the foot of a report."""
    folders = ", ".join(f"{folder}/" for folder in MADE_OF[report])
    return f"Made by dpaudit {__version__}; digest of the code ({folders}): {digest(report)}."


def stale(report: str) -> str | None:
    """A sentence on a report in `reports/` that other code has made; None where it is of this code."""
    page = (ROOT / "reports" / report / PAGES[report]).read_text(encoding="utf-8")
    found = re.search(r"(?:digest of the code \([^)]*\):|code digest) ([0-9a-f]{16})", page)
    if found and found[1] == digest(report):
        return None
    return f"reports/{report} is of other code ({found[1] if found else 'which it does not say'}): make {report}"


if __name__ == "__main__":
    for each in MADE_OF:
        print(f"{each}: {made(each)} {stale(each) or 'That in reports/ is of this code.'}")
