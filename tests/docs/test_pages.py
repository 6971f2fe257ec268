"""Every Python example of documentation and README runs, every command that they show exists, every default is real."""

from __future__ import annotations

import ast
import doctest
import functools
import glob
import importlib
import inspect
import json
import linecache
import os
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from types import ModuleType

import click
import pytest

import dpaudit
from audits.digest import MADE_OF, digest
from dpaudit.auditing import probing
from dpaudit.cli.group import exit_code, group
from dpaudit.execution.engine import Engine
from dpaudit.options import IN_SPECS, OPTIONS, Working, options
from dpaudit.processes import workers
from dpaudit.pytest_plugin import pytest_addoption
from dpaudit.spec.questions import read_spec
from dpaudit.spec.reading import audits_of, convert, read_sweeps
from dpaudit.spec.tables import AuditTable
from dpaudit.sweeps.spec import read_sweep_file
from tests.cases import NIGHTLY, for_each

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


MATCHES = doctest.OutputChecker().check_output
WITH_EXAMPLES = [page for page in [*PAGES, README] if any(block.language == "python" for block in blocks(page))]
SMALLER = {  # by day, where the text says nothing of the number
    r"\bruns=500_000\b": "runs=20_000",
    r"\bruns=100_000(?=,  # of the audit|\)\.verdict)": "runs=5_000",
    r"\bmax_time_s=5\b": "max_time_s=60, runs=20_000",
    r"(?m)(^assert refuted_with\(.*\)\n)+": r"\1",  # of six mistakes one
}


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.stem)
def test_the_examples_run_and_print_what_is_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("audit", "bracket"):  # in this process: workers of an earlier test know nothing of the folder
        monkeypatch.setattr(dpaudit, name, functools.partial(getattr(dpaudit, name), n_jobs=1))
    _cheap(monkeypatch)
    before = set(sys.modules)
    names: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    try:
        for block in blocks(page):
            if block.is_file:
                (tmp_path / block.title).write_text(block.text)
            elif block.title == PRINTS or (page == README and block.language == "text" and printed):
                shown = block.text + "..." * (page == README)
                assert MATCHES(shown, printed, doctest.ELLIPSIS), f"{block.place}: what is printed is\n{printed}"
            elif block.language == "python" and not block.title.startswith(NOT_RUN):
                _run(block, names)
                printed = capsys.readouterr().out
    finally:
        _forget(before, tmp_path)


def _run(block: Block, names: dict[str, object]) -> None:
    file, text = block.place, block.text
    for usual, smaller in () if NIGHTLY else SMALLER.items():
        text = re.sub(usual, smaller, text)
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)  # as an interpreter does
    exec(compile(text, file, "exec"), names)


def test_what_is_not_run_says_why_and_compiles() -> None:
    held = [block for page in PAGES for block in blocks(page) if block.language == "python"]
    for block in held:
        assert not block.title or block.is_file or block.title.startswith(NOT_RUN), f"{block.place}: {block.title!r}"
        compile(block.text, block.place, "exec")
    left_out = [block for block in held if block.title.startswith(NOT_RUN)]
    assert all(len(block.title) > len(NOT_RUN) + 8 for block in left_out)  # a reason is given
    assert len(left_out) < len(held) / 4


def test_the_tests_of_the_tutorial_keep_their_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = [page for page in PAGES if page.stem in ("tutorial", "plugin", "training")]
    shown = [block for page in pages for block in blocks(page) if block.is_file]
    for block in shown:  # of a file that is shown several times, the last is what stays
        (tmp_path / block.title).write_text(block.text)
    (tmp_path / "pyproject.toml").write_text("[tool.dpaudit]\njobs = 1\n")
    monkeypatch.chdir(tmp_path)
    _cheap(monkeypatch)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # all but the one that is named
    before, path = set(sys.modules), list(sys.path)
    try:  # a session in this process, which has loaded what the plugin needs
        ended = pytest.main(
            ["-q", "-p", "dpaudit", "-p", "no:cacheprovider", "--dpaudit-runs", "4000", "--rootdir", ".", "."]
        )
    finally:
        sys.path[:] = path
        _forget(before, tmp_path)
    printed = capsys.readouterr().out
    assert ended == 0, printed
    tests = sum(len(re.findall(r"^def test_", (tmp_path / name).read_text(), re.MULTILINE)) for name in _files(shown))
    assert f"{tests + 1} passed" in printed  # one of them has two parameters


def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts fewer processes: no page shows whether a result would repeat in a fresh one, which other tests look at."""
    monkeypatch.setattr(probing, "_repeats_afresh", lambda *_: True)
    monkeypatch.setattr(workers, "INTERPRETERS", 1)


def _forget(before: set[str], folder: Path) -> None:
    """Unloads the modules of a folder: the next page may have others of their names."""
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or ROOT).is_relative_to(folder):
            del sys.modules[name]


def _files(shown: list[Block]) -> set[str]:
    return {block.title for block in shown if block.title.startswith("test_")}


def test_the_specs_are_specs() -> None:
    for block in (block for page in PAGES for block in blocks(page) if block.language == "toml"):
        found = tomllib.loads(block.text)
        if "audit" in found or "sweep" in found:
            audits, wrong = audits_of(found, block.place) if "audit" in found else (read_sweeps(found, block.place), [])
            assert (bool(audits), wrong) == (True, [])
            assert "sweep" in found or all(convert(each, AuditTable, place) for each, place in audits)
        else:
            assert {"tool", "schema"} & found.keys(), f"{block.place}: a TOML file that nothing reads"


SHOWN = [(place, words) for page in PAGES for place, words, _ in commands(page)]
INLINE = re.compile(r"`(?:python -m )?(dpaudit [a-z-]+[^`]*)`")
PLUGIN = re.compile(r"--dpaudit-[a-z]+")


def _check(place: str, words: list[str]) -> None:
    context = click.Context(group)
    command = group.get_command(context, words[1])
    assert command is not None, f"{place}: there is no command `dpaudit {words[1]}`"
    known = {name for option in command.params for name in option.opts}
    for word in words[2:]:
        if word.startswith("--"):
            assert word.partition("=")[0] in {*known, "--help"}, f"{place}: `dpaudit {words[1]}` has no option {word}"


@for_each(("place", "words"), [each for each in SHOWN if each[1][0] == "dpaudit"])
def test_the_command_would_be_understood(place: str, words: list[str]) -> None:
    _check(place, words)
    command = group.get_command(click.Context(group), words[1])
    assert command is not None
    command.make_context("dpaudit", words[2:])  # parses, and runs nothing


def test_commands_inside_sentences_exist() -> None:
    found = 0
    for page in PAGES:
        for text in INLINE.findall(page.read_text(encoding="utf-8")):
            words = [word for word in text.split() if word != "..."]
            if words[1] != "COMMAND":
                _check(str(page.relative_to(ROOT)), words)
                found += 1
    assert found > 10


def test_options_of_the_plugin_exist() -> None:
    parser = pytest.Parser(_ispytest=True)
    pytest_addoption(parser)
    known = {name for option in parser.getgroup("dpaudit").options for name in option.names()}
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = set(PLUGIN.findall(text))
    assert shown <= known
    assert known <= shown  # each of them is told of


def test_goals_of_make_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    pages = [*PAGES, README, ROOT / "CONTRIBUTING.md", ROOT / "reports/README.md"]
    goals = {goal for page in pages for goal in re.findall(r"`make ([\w-]+)`", page.read_text(encoding="utf-8"))}
    for goal in goals:
        assert re.search(rf"^{goal}:", makefile, re.MULTILINE), f"the pages name `make {goal}`; there is no such goal"


LINK = re.compile(r"\]\((?!http)([^)#\s]+)[^)]*\)|href=\"(?!http)([^\"#]+)[^\"]*\"")


@for_each("page", (README, ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("reports/**/*.[mh][dt]*"))))
def test_links_of_files_that_are_read_in_the_repository_resolve(page: Path) -> None:
    absent = [ROOT / "reports" / report for report in MADE_OF if not (ROOT / "reports" / report).exists()]
    for found in LINK.findall(page.read_text(encoding="utf-8")):
        target = Path(os.path.normpath(page.parent / "".join(found)))
        assert target.exists() or any(target.is_relative_to(each) for each in absent), f"{page}: {found}"


def test_a_report_says_which_code_made_it() -> None:
    for page in (ROOT / "reports").glob("*/[cs]*.html"):
        assert re.search(r"; digest of the code \([^)]*\): [0-9a-f]{16}\.", page.read_text(encoding="utf-8")), page
    assert all(re.fullmatch("[0-9a-f]{16}", digest(report)) for report in MADE_OF)
    listed = (ROOT / "reports/README.md").read_text(encoding="utf-8")
    assert all(f"]({report}/" in listed and f"`make {report}`" in listed for report in MADE_OF)


def test_the_parts_that_a_page_counts_by_hand_make_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("counts.py").write_text("def noisy(data, rng):\n    return data + rng.laplace()\n")
    asked = AUDIT.replace("m:f", "counts:noisy") + "runs = 20_000\n"
    Path("spec.toml").write_text(f'schema = "dpaudit.audit/1"\n[[audit]]\n{asked}')
    (block,) = (each for each in blocks(DOCS / "how/cluster.md") if each.title == "run by the tests")
    for line in block.text.splitlines():
        assert exit_code(shlex.split(line)[2:]) == 0, f"{line}: {capfd.readouterr().err}"
    assert Path("report/index.html").exists()


def test_other_programs_are_those_that_a_reader_has() -> None:
    assert {words[0] for _, words in SHOWN} <= {"dpaudit", "pytest", "python3", "python"}


def test_the_commands_of_readme_run_and_say_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In its order and in one folder; all but one in this process, which has imported what a second goes into."""
    monkeypatch.chdir(tmp_path)
    for block in blocks(README):
        if block.language == "toml":
            (tmp_path / block.text.splitlines()[0].removeprefix("# ")).write_text(block.text)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    for place, (program, *words), shown in commands(README):
        assert program == "dpaudit"
        capfd.readouterr()
        if words[0] == "run":
            code = subprocess.run(["sh", "-c", shlex.join([program, *words])]).returncode
        else:
            words += ["--runs", "2000"] * (words[0] == "bracket" and not NIGHTLY)  # it says nothing of their number
            code = exit_code([each for word in words for each in (sorted(glob.glob(word)) or [word])])
        out, err = capfd.readouterr()
        assert code == 0, f"{place}: {words}: {err}"
        assert doctest.OutputChecker().check_output(shown, out, doctest.ELLIPSIS), f"{place}: {words} printed:\n{out}"


AUDIT = 'name = "a"\nmechanism = "m:f"\nclaim = { epsilon = 1.0 }\npair = { first = 1, second = 2 }\n'
SWEEP = 'mechanisms = "dpaudit.catalogue.additive:laplace"\n'
LEFT_OUT = {"relation", "pairs", "pattern", "upper", "record", "data"}
LEFT_OUT |= {name for name, each in IN_SPECS.items() if each.default is None and name != "isolation"}


@pytest.fixture
def schemas(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs" / "hooks"), *sys.path])
    return importlib.import_module("reference.schemas")


def defaults(schemas: ModuleType, table: str) -> dict[str, str]:
    """The default of each key of a table as the page shows it."""
    told = schemas.schema("spec")["$defs"][table]["properties"]
    return {key: unescape(re.sub("<.*?>", "", schemas._default(table, key, value))) for key, value in told.items()}


def asked(text: str) -> tuple[object, ...]:
    Path("spec.toml").write_text(f'schema = "dpaudit.audit/1"\n[[audit]]\n{text}')
    (question,) = read_spec("spec.toml")
    question = replace(question, isolation=None)
    return question.outline(), question


def test_written_down_the_defaults_ask_the_same(
    schemas: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = {key: value for key, value in defaults(schemas, "AuditTable").items() if key not in AUDIT}
    assert {key for key, value in told.items() if value == "*left out*"} == LEFT_OUT
    shown = {key: value for key, value in told.items() if value not in ("*left out*", "none")}
    assert {"runs", "confidence", "seed", "expect", "stopping", "isolation"} <= shown.keys()
    for key, value in shown.items():
        assert asked(f"{AUDIT}{key} = {value}\n") == asked(AUDIT), key
    engines = [Engine(1, supervised=True, **keys) for keys in ({}, {"isolation": json.loads(shown["isolation"])})]
    assert engines[0].isolated == engines[1].isolated
    path = tmp_path / "sweep.toml"

    def grid(text: str) -> object:
        path.write_text(f'schema = "dpaudit.audit/1"\n[sweep]\n{text}')
        return read_sweep_file(path)

    for key, value in defaults(schemas, "SweepTable").items():
        if value not in ("*left out*", "none", "*required*"):
            assert grid(f"{SWEEP}{key} = {value}\n") == grid(SWEEP), key


def test_the_signature_of_audit_is_that_of_the_declared_options() -> None:
    keywords = {name: each.default for name, each in inspect.signature(dpaudit.audit).parameters.items()}
    declared = {each.name: each.usual for each in (*OPTIONS.values(), *options(Working)) if each.keyword}
    assert {name: keywords[name] for name in declared} == declared
    others = {"mechanism", "pair", "pairs", "data", "claim", "epsilon", "delta", "relation", "parameters"}
    assert keywords.keys() - declared.keys() == others | {"name", "upper", "record"}


def test_the_table_of_keywords_has_each_of_audit_with_its_default(schemas: ModuleType) -> None:
    page = (DOCS / "reference" / "audit.md").read_text(encoding="utf-8")
    rows = importlib.import_module("reference.keywords").rows
    page = re.sub("<!-- keywords: (.*) -->", lambda slot: rows(slot[1]), page)
    told = dict(re.findall(r"^\| `(\w+)` \| `([^`|]+)` \| \S.* \|$", page, re.MULTILINE))
    wanted = inspect.signature(dpaudit.audit).parameters
    first, *keywords = wanted.values()
    assert first.name == "mechanism"
    assert {name: ast.literal_eval(said) for name, said in told.items()} == {
        each.name: each.default for each in keywords
    }
    assert page.count("\n| `") == len(keywords)  # none is there twice
