"""What a report was made with: the version of dpaudit, and a digest of the code.

`python -m audits.digest` prints the line of the code that is here, for each report; a page in `reports/` has that of
the code that made it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from dpaudit import __version__

ROOT = Path(__file__).parents[1]
MADE_OF = {  # what decides a report: folders of the repository
    "lectures": ("dpaudit", "audits/lectures"),
    "literature": ("dpaudit", "audits/literature"),
    "research": ("dpaudit", "audits/literature", "audits/research"),
}
SUFFIXES = {".py", ".toml", ".json", ".jinja", ".html", ".css", ".js"}


def digest(report: str) -> str:
    """The first 64 bits of the SHA-256 of all files that decide a report, with their names."""
    found = hashlib.sha256()
    for folder in MADE_OF[report]:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in SUFFIXES:
                content = path.read_bytes()
                found.update(f"{path.relative_to(ROOT).as_posix()}\0{len(content)}\0".encode() + content)
    return found.hexdigest()[:16]


def made(report: str) -> str:
    """A sentence for the foot of a report."""
    folders = ", ".join(f"{folder}/" for folder in MADE_OF[report])
    return f"Made by dpaudit {__version__}; digest of the code ({folders}): {digest(report)}."


if __name__ == "__main__":
    for each in MADE_OF:
        print(f"{each}: {made(each)}")
