"""`dpaudit report`: stored results in other formats, and one line for what cannot be read."""

from __future__ import annotations

import errno
import io
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from dpaudit import report
from dpaudit.account import Level, account
from dpaudit.cli.group import exit_code
from dpaudit.results.stored import load_suite
from tests.golden import example


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with its records."""
    path = tmp_path_factory.mktemp("report")
    report.write_suite(example.reviewed_suite(), path, ("json",))
    return path


def _records(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.glob("*.json") if path.name != "suite.json")


@pytest.mark.parametrize("name", [name for name in report.FORMATS if name != "html"])
def test_one_format_goes_to_standard_output(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["report", str(folder), "--format", name]) == 0
    out, err = capsys.readouterr()
    assert out == report.render(example.reviewed_suite(), report.FORMATS[name])
    assert err == ""


def test_results_and_suites_become_one_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(*arguments: str) -> str:
        assert exit_code(["report", *arguments]) == 0
        return capsys.readouterr().out

    records = _records(folder)
    (record,) = [path for path in records if "noisy-count-6abe893a" in path]
    assert told(record) == f"{account(example.result(), Level.DETAIL)}\n"
    stored = json.loads(told(*records, "--format", "json"))
    assert [entry["name"] for entry in stored["entries"]] == ["noisy count", "noisy count, whole noise", "noisy sum"]
    assert stored["confidence"] == 0.997
    assert len(told(str(folder), *records, "--format", "csv").splitlines()) == 5  # a suite and its own records


def test_several_formats_go_into_a_folder(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "new"
    assert exit_code(["report", str(folder), "--format", "json, md,sarif", "--output", str(output)]) == 0
    names = sorted(path.name for path in output.iterdir())
    assert names == sorted(
        [*(Path(path).name for path in _records(folder)), "suite.json", "report.md", "dpaudit.sarif"]
    )
    assert sorted(capsys.readouterr().out.split()) == [str(output / name) for name in names]
    assert load_suite(output / "suite.json") == example.reviewed_suite()
    assert exit_code(["report", str(folder), "--format", "junit", "--output", str(tmp_path / "any name")]) == 0
    assert (tmp_path / "any name").read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{0}/none.json"], "there is no such file"),
        (["{0}", "--format", "pdf"], "--format: a format must be one of"),
        (["{0}", "--format", "md,csv"], "several formats need --output"),
        (["{1}"], "no result (*.json) is in this folder"),
        (["{1}/forged.json"], "but the counts give"),
        (["{0}", "--format", "csv", "--output", "{0}/suite.json/x"], "--output: "),
        (["{0}", "--format", "csv", "--output", "{0}/suite.json"], "suite.json is one of the files that were read"),
        (
            ["{0}/suite.json", "--format", "md,json", "--output", "{0}/"],
            "suite.json is one of the files that were read",
        ),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_two(
    arguments: list[str], message: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "forged" in arguments[0]:
        forged = json.loads(Path(_records(folder)[0]).read_text(encoding="utf-8"))
        forged["certificate"]["lower"] = 9.0
        (tmp_path / "forged.json").write_text(json.dumps(forged), encoding="utf-8")
    assert exit_code(["report", *(each.format(folder, tmp_path) for each in arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert message in err


def test_what_goes_to_standard_output_is_utf_8_whatever_the_terminal_speaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = example.result()
    path = replace(made, spec={**made.spec, "name": "počet 計數"}).save(tmp_path / "a.json")
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", newline="\r\n"))
    assert exit_code(["report", str(path), "--output", "-"]) == 0
    assert raw.getvalue().decode("utf-8").startswith("REFUTED  počet 計數")
    assert b"\r" not in raw.getvalue()
    assert [each.name for each in tmp_path.iterdir()] == ["a.json"]


def test_a_full_disk_behind_standard_output_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Full(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, _: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=Full(), isatty=lambda: False))
    assert exit_code(["report", str(folder)]) == 2
    err = capsys.readouterr().err
    assert err == "error: standard output cannot be written (No space left on device); name a file with --output\n"


def test_every_bad_file_is_named(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("{}", encoding="utf-8")
    assert exit_code(["report", str(folder), str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert ["a.json" in err, "b.json" in err, len(err.splitlines())] == [True, True, 2]


@pytest.mark.parametrize(("name", "identity"), [("result", "dpaudit.result/1"), ("suite", "dpaudit.suite/1")])
def test_the_schemas_are_published(name: str, identity: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["validate", "--schema", name]) == 0
    assert json.loads(capsys.readouterr().out)["$id"] == identity
