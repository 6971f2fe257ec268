"""Every Python example of documentation and README runs, page by page, in a folder of its own and in its order."""

from __future__ import annotations

import doctest
import functools
import linecache
import re
import sys
import tomllib
from pathlib import Path

import pytest

import dpaudit
from dpaudit.auditing import probing
from dpaudit.processes import pools
from dpaudit.spec.reading import read_audits, read_sweeps
from tests.cases import NIGHTLY
from tests.docs.pages import NOT_RUN, PAGES, PRINTS, README, ROOT, Block, blocks

MATCHES = doctest.OutputChecker().check_output
WITH_EXAMPLES = [page for page in [*PAGES, README] if any(block.language == "python" for block in blocks(page))]
SMALLER = {  # by day, where the text says nothing of the number
    r"\bruns=500_000\b": "runs=20_000",
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
    monkeypatch.setattr(pools, "INTERPRETERS", 1)


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
            assert (read_audits if "audit" in found else read_sweeps)(found, block.place)
        else:
            assert {"tool", "schema"} & found.keys(), f"{block.place}: a TOML file that nothing reads"
