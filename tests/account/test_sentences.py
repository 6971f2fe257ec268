"""Sentences stand in `account`: formats take sections by level, and doors print templates that stand there too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.cases import for_each
from tests.test_architecture import PACKAGE, imports

SENTENCE = 6  # words; fewer are a label, a key or a heading
WORD = re.compile(r"[A-Za-z][a-z']+")
NAMED = {"option", "asked", "argument", "addoption", "addini", "addinivalue_line", "command"}  # words of flags
REFUSED = {"say", "add_note", "InvalidSpec", "UsageError", "ValueError"}  # one line on standard error
WORDS_OF_FLAGS = {  # and of errors of usage
    *("cli/__init__.py", "cli/commands.py", "cli/options.py", "cli/group.py", "pytest_plugin/__init__.py"),
}
DRAWN = "report/figures/"  # a caption says what its drawing shows
CSV = "report/csv_.py"  # values, and what its columns are
STYLE = re.compile(r"font|<svg|<style|<div|default-src|:root|\.dpaudit-|sans-serif|serial mode")
SURFACE = {"dpaudit.account", "dpaudit.account.suites"}  # sections by level; kinds, rules and findings of a suite
FORMATS = ("markdown", "html/__init__", "exchange", "__init__")


def sentences(file: Path) -> Iterator[tuple[int, str]]:
    """The strings of a module that are printed or written, with the line of each."""
    tree, left = ast.parse(file.read_text(encoding="utf-8")), set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            left.add(id(node.body[0].value))  # type: ignore[attr-defined]
        called = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
        if isinstance(node, ast.Raise | ast.AnnAssign) or called in NAMED | REFUSED:
            left |= {id(each) for each in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in left:
            continue
        if isinstance(node, ast.JoinedStr):
            left |= {id(each) for each in node.values}
            yield node.lineno, "".join(str(each.value) for each in node.values if isinstance(each, ast.Constant))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def places() -> list[str]:
    files = (file for room in ("report", "cli", "pytest_plugin") for file in sorted((PACKAGE / room).rglob("*.py")))
    return [str(file.relative_to(PACKAGE)) for file in files]


@for_each("place", [each for each in places() if not each.startswith((DRAWN, CSV)) and each not in WORDS_OF_FLAGS])
def test_no_sentence_stands_outside_of_the_account(place: str) -> None:
    found = [
        f"{place}:{line}: {text!r}"
        for line, text in sentences(PACKAGE / place)
        if len(WORD.findall(text)) >= SENTENCE and " " in text and not STYLE.search(text)
    ]
    assert not found, f"give each a place in dpaudit/account: {found}"


@for_each("name", FORMATS)
def test_a_format_takes_sections_and_calls_no_function_of_words(name: str) -> None:
    file = PACKAGE / "report" / f"{name}.py"
    taken = {each.module for each in imports(file) if each.module.startswith("dpaudit.account")}
    assert taken <= SURFACE, f"{file.name} imports {taken - SURFACE}: add a section to the account, and take that"


def test_the_reader_of_this_file_would_notice(tmp_path: Path) -> None:
    file = tmp_path / "it.py"
    file.write_text('"""One two three four five six."""\nsay("one two three four five six")\nx = f"one two {y} six"\n')
    assert list(sentences(file)) == [(3, "one two  six")]
