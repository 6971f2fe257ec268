"""The trusted core is what `docs/architecture.md` says: those modules, that many lines, and no import out of them.

When a test fails here, the core has grown or reaches for something new: make it smaller, or say so on that page.
"""

from __future__ import annotations

import re

from dpaudit.certify import CERTIFIERS
from dpaudit.claims import FORMS
from tests.test_architecture import MODULES, PACKAGE, ROOT, Import, imports

PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (?P<what>[^|]+) \| (?P<modules>`[^|]+`) \| (?P<lines>\d+) \|$", re.MULTILINE)
NEAREST = 50  # lines
FILES = {".".join(file.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): file for file in MODULES}


def modules_of(row: re.Match[str]) -> list[str]:
    """The modules of a row; `folder.*` is a folder with all that is in it."""
    found = []
    for name in re.findall(r"`([\w.*]+)`", row["modules"]):
        folder = name.removesuffix(".*")
        found += [name] if folder == name else [each for each in FILES if f"{each}.".startswith(f"{folder}.")]
    return found


def core(verdict: str) -> set[str]:
    """The modules of a section of the page."""
    _, section = PAGE.split(f"## What must be right for {verdict} to be right\n")
    named = [module for row in ROW.finditer(section.partition("\n## ")[0]) for module in modules_of(row)]
    assert named, f"the page names no module for {verdict}"
    assert len(set(named)) == len(named), "a module stands in one row"
    return set(named)


def home_of(found: Import) -> str:
    """The module that an import takes a name from, without `dpaudit.`; through packages that only gather names."""
    name = found.name or ""
    for module in (f"{found.module}.{name}".rstrip("."), found.module):
        home = module.partition(".")[2]
        if home in FILES:
            again = [each for each in imports(FILES[home]) if FILES[home].stem == "__init__" and each.name == name]
            return home_of(again[0]) if again else home
    raise AssertionError(f"{found.where}: there is no {found.module}")


def test_the_lines_of_the_core_are_those_that_the_page_tells() -> None:
    wrong = []
    for row in ROW.finditer(PAGE):
        counted = sum(len(FILES[module].read_text(encoding="utf-8").splitlines()) for module in modules_of(row))
        if abs(counted - int(row["lines"])) > NEAREST:
            wrong.append(f"{row['what']}: {counted} lines, the page says {row['lines']}")
    assert not wrong, "\n".join(wrong)


def test_the_core_imports_nothing_but_the_core() -> None:
    for verdict in ("REFUTED", "PROVED"):
        named = core(verdict)
        out = {
            f"{module} imports {home_of(found)}"
            for module in named
            for found in imports(FILES[module])
            if found.module.split(".")[0] == "dpaudit" and home_of(found) not in named
        }
        assert not out, f"out of the core of {verdict}: " + "; ".join(sorted(out))


def test_every_certifier_and_every_claim_form_stands_on_the_page() -> None:
    homes = {each.__module__ for each in (*map(type, CERTIFIERS), *FORMS)}
    missing = {home.partition(".")[2] for home in homes} - set(core("REFUTED"))
    assert not missing, f"what certifies must be right: name {', '.join(sorted(missing))} in docs/architecture.md"
