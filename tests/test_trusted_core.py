"""The trusted core is what `docs/architecture.md` says: those modules, that many lines, and no import out of them.

When a test fails here, the core has grown or reaches for something new: make it smaller, or say so on that page.
"""

from __future__ import annotations

import re

from tests.test_architecture import PACKAGE, ROOT, Import, imports

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (?P<what>[^|]+) \| (?P<modules>`[^|]+`) \| (?P<lines>\d+) \|$", re.MULTILINE)
NEAREST = 50  # lines


def core(verdict: str) -> dict[str, str]:
    """The modules of a section of the page, each with the row that it stands in."""
    _, section = PAGE.split(f"## What must be right for {verdict} to be right\n")
    rows = ROW.finditer(section.partition("\n## ")[0])
    named = [(module, row["what"]) for row in rows for module in re.findall(r"`([\w.]+)`", row["modules"])]
    assert named, f"the page names no module for {verdict}"
    assert len(dict(named)) == len(named), "a module stands in one row"
    return dict(named)


def file_of(module: str) -> str:
    path = PACKAGE / module.replace(".", "/")
    return str((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).relative_to(ROOT))


def home_of(found: Import) -> str:
    """The module that an import takes a name from, without `dpaudit.`; through packages that only gather names."""
    name = found.name or ""
    for module in (f"{found.module}.{name}".rstrip("."), found.module):
        path = ROOT / module.replace(".", "/")
        if path.with_suffix(".py").is_file():
            return module.partition(".")[2]
        if path.is_dir():
            again = next((each for each in imports(path / "__init__.py") if each.name == name), None)
            return module.partition(".")[2] if again is None else home_of(again)
    raise AssertionError(f"{found.where}: there is no {found.module}")


def test_the_lines_of_the_core_are_those_that_the_page_tells() -> None:
    wrong = []
    for row in ROW.finditer(PAGE):
        modules = re.findall(r"`([\w.]+)`", row["modules"])
        counted = sum(len((ROOT / file_of(module)).read_text(encoding="utf-8").splitlines()) for module in modules)
        if abs(counted - int(row["lines"])) > NEAREST:
            wrong.append(f"{row['what']}: {counted} lines, the page says {row['lines']}")
    assert not wrong, "\n".join(wrong)


def test_the_core_imports_nothing_but_the_core() -> None:
    for verdict in ("REFUTED",):
        named = core(verdict)
        out = {
            f"{module} imports {home_of(found)}"
            for module in named
            for found in imports(ROOT / file_of(module))
            if found.module.split(".")[0] == "dpaudit" and home_of(found) not in named
        }
        assert not out, f"out of the core of {verdict}: " + "; ".join(sorted(out))
