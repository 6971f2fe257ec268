"""The files a report is written to: the format from the suffix, names that cannot escape, whole or not at all."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from dpaudit import report
from dpaudit.account import Level, account
from dpaudit.account.suites import assertion, suite_line
from dpaudit.claims import PureDP
from dpaudit.cli.group import exit_code
from dpaudit.errors import InvalidSpec
from dpaudit.report import html
from dpaudit.results.display import Verdict
from dpaudit.results.result import reached
from dpaudit.results.stored import load, load_suite
from dpaudit.results.suite import SuiteEntry, SuiteResult, holm
from tests.account.results import made
from tests.cases import for_each
from tests.golden import example
from tests.report import hostile


@for_each(
    ("suffix", "begins"),
    [(".json", "{"), (".md", "# REFUTED"), (".txt", "REFUTED"), (".JSON", "{"), (".xml", "<?xml"), (".sarif", "{"),
     (".csv", '"audit"')],
)  # fmt: skip
def test_the_suffix_names_the_format(tmp_path: Path, suffix: str, begins: str) -> None:
    path = report.write_report(example.result(), tmp_path / f"result{suffix}")
    assert path.read_text(encoding="utf-8").startswith(begins)
    text = report.write_report(example.suite(), tmp_path / f"suite{suffix}").read_text(encoding="utf-8")
    assert all(entry.name in text or suffix in (".sarif", ".md") for entry in example.suite().entries)
    assert text.endswith("\n")


SHOWN = {".md": 400, ".txt": 250, ".html": 1_200, ".xml": 2_000, ".sarif": None}  # how much comes first
APART = "2 records leave and 0 come"
UNSTATED = {"claim": PureDP(1.0), "spec": {**example.result().spec, "claim": PureDP(1.0).to_dict()}}


@for_each(
    ("changes", "said"),
    [
        ({"adjacency": (None,)}, "if the datasets count as neighbours"),
        ({"adjacency": (), **UNSTATED}, "if the datasets count as neighbours"),  # an older file
        ({"adjacency": (APART,), **UNSTATED}, f"if the datasets count as neighbours, though {APART}"),
        (
            {"unseen": 744, "unpaired": 1},
            "744 entries of an output not looked at, 1 looked at alone and in sums only",
        ),
    ],
)
def test_what_a_verdict_leaves_open_stands_in_the_first_part_of_every_format(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    """Where nothing was compared no sentence says that it was, or that the datasets are neighbours."""
    result = replace(example.result(), **changes)
    for suffix, first in SHOWN.items():
        text = report.write_report(result, tmp_path / f"it{suffix}").read_text(encoding="utf-8")
        assert said in re.sub(r"(?s)<head>.*?</head>|<svg.*?</svg>", "", text)[:first].replace("A", "a"), suffix
        if "adjacency" in changes:
            for false in ("it was checked", "as near as stated", "refuted: on datasets that count"):
                assert false not in text, (suffix, false)
        plain = report.write_report(example.result(), tmp_path / f"whole{suffix}").read_text(encoding="utf-8")
        assert said not in plain
    assert said in assertion(SuiteEntry("it", Verdict.NOT_REFUTED, result)).split("\n")[0]
    assert said in suite_line(SuiteEntry("it", Verdict.REFUTED, result))
    again = load(result.save(tmp_path / "it.json"))
    assert again == result
    assert again.further_apart == (APART if APART in said else "")
    (row,) = csv.DictReader(report.write_report(result, tmp_path / "it.csv").read_text(encoding="utf-8").splitlines())
    assert (row["unseen"], row["unpaired"]) == (("744", "1") if "unseen" in changes else ("0", "0"))
    assert ("on trust" in ";".join(map(str, row.values()))) is ("adjacency" in changes)


def test_datasets_several_steps_apart_are_to_be_looked_at_first() -> None:
    pair = {**example.result().spec["pairs"][0], "distance": 2}
    apart = replace(example.result(), adjacency=(None,), spec={**example.result().spec, "pairs": [pair]})
    assert account(apart)["what to do"].lines[0].startswith("First make sure that the datasets are 2 steps apart: ")


def test_every_format_says_whose_power_it_is_and_where_controls_were_missed(tmp_path: Path) -> None:
    """What it says of them stands in the golden account of controls."""
    result = made("controls")
    assert result.searching_runs == result.runs_used - result.evidence.runs > 0
    for suffix in (".md", ".txt", ".html"):
        text = report.write_report(result, tmp_path / f"it{suffix}").read_text(encoding="utf-8")
        assert all(line in text for line in account(result)["controls"].lines), suffix
        assert "This holds for leaks that one value or one threshold shows" in text
        assert "for an event that is known" in text
    assert load(result.save(tmp_path / "it.json")) == result
    known = replace(result, runs_used=result.evidence.runs)  # a witness that was given: nothing had to be found
    assert known.searching_runs == 0
    assert known.least_found(0.01) == known.least_caught(0.01) < (result.least_found(0.01) or 0.0)
    table = account(known)["before you rely on it"].table
    assert table is not None
    assert table.note == "This holds for an event that is known."


def test_power_that_an_older_suite_had_for_a_known_event_alone_is_still_read(tmp_path: Path) -> None:
    made = example.kept()
    between = (made.least_caught(0.01) + made.least_found(0.01)) / 2.0  # type: ignore[operator]
    older = replace(made, spec={**made.spec, "detect": {"epsilon": between, "mass": 0.01}})
    assert (older.power_reached, reached(older, older.least_caught)) == (False, True)
    suite = SuiteResult((SuiteEntry(older.name, older.verdict, older, exit_code=0),), 0.999)
    assert load_suite(report.write_report(suite, tmp_path / "suite.json")).entries[0].exit_code == 0


@for_each("name", ["report.pdf", "report.json.gz", ".json", "a\nb.exe"])
def test_what_no_format_has_is_refused_with_those_known_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidSpec, match=r"^a report must end in \.json, \.md, \.html, .*, got .*$"):
        report.write_report(example.result(), tmp_path / name)
    with pytest.raises(InvalidSpec, match=r"^a format must be one of json, md, html, .*, got 'pdf'$"):
        report.write_suite(example.suite(), tmp_path / "new", ("json", "pdf"))
    assert list(tmp_path.iterdir()) == []


def test_a_name_without_a_dot_is_a_folder_that_gets_what_the_command_writes(tmp_path: Path) -> None:
    page = report.write_report(example.result(), tmp_path / "report")
    assert page == tmp_path / "report" / "index.html"
    assert report.write_report(SuiteResult.of([example.result()]), page.parent) == page
    assert {each.suffix for each in page.parent.iterdir()} == {".html", ".json", ".md"}


def test_a_suite_is_one_record_a_result_and_a_file_for_each_format(tmp_path: Path) -> None:
    formats = [name for name in report.FORMATS if name != "html"]
    paths = report.write_suite(example.suite(), tmp_path / "new" / "folder", formats)
    names = [path.name for path in paths]
    records = ["noisy-count-6abe893a.json", "noisy-count-whole-noise-cb68c558.json"]
    files = ("suite.json", "report.md", "report-long.md", "junit.xml", "dpaudit.sarif", "results.csv", "report.txt")
    assert names == [*records, *files, "badge.svg"]
    assert sorted(os.listdir(tmp_path / "new" / "folder")) == sorted(names)
    assert load(paths[0]) == example.result()
    assert load_suite(paths[2]) == example.suite()
    page = paths[4].read_text(encoding="utf-8")
    assert all(f"[{name}]({name})" in page for name in records)
    assert "[sparse](report-long.md#audit-3)" in paths[3].read_text(encoding="utf-8")
    assert "\n# Audit 3\n" in page
    assert all(name in paths[7].read_text(encoding="utf-8") for name in records)


def test_the_usual_formats_link_records_and_no_format_names_one_that_is_not_written(tmp_path: Path) -> None:
    paths = report.write_suite(example.suite(), tmp_path)
    records = [name for name in report.record_names(example.suite()) if name]
    pages = [name for name in html.page_names(records) if name]
    assert [path.name for path in paths] == [
        *records,
        "suite.json",
        "report.md",
        "report-long.md",
        "index.html",
        *pages,
    ]
    assert all(name in paths[4].read_text(encoding="utf-8") for name in records)
    few = report.write_suite(example.suite(), tmp_path / "few", ("md", "csv", "sarif"))
    assert [path.name for path in few] == ["report.md", "report-long.md", "results.csv", "dpaudit.sarif"]
    texts = [path.read_text(encoding="utf-8") for path in few]
    assert not any(".json`" in text or "6abe893a.json" in text for text in texts)


@pytest.mark.parametrize("broken", ["json", "md", "csv"])
def test_a_format_that_fails_costs_no_other(broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> str:
        raise RuntimeError("a name nobody thought of")

    function = report.FORMATS[broken].function("suite")
    monkeypatch.setattr(f"{function.__module__}.{function.__name__}", fails)
    with pytest.raises(RuntimeError, match="nobody thought of") as caught:
        report.write_suite(example.suite(), tmp_path, ("md", "json", "csv"))
    assert caught.value.__notes__ == [f"while the report was written as {broken}"]
    records = {"noisy-count-6abe893a.json", "noisy-count-whole-noise-cb68c558.json"}
    others = {"json": "suite.json", "md": "report.md", "csv": "results.csv"}
    assert set(os.listdir(tmp_path)) == records | {"report-long.md", *others.values()} - {others[broken]}


def test_equal_audits_get_files_of_their_own_whose_names_stay_when_audits_follow(tmp_path: Path) -> None:
    twins = tuple(SuiteEntry("twin", Verdict.REFUTED, example.result()) for _ in range(3))
    names = [path.name for path in report.write_suite(SuiteResult(twins, 0.99), tmp_path, ("json",))]
    assert names == ["twin-6abe893a.json", "twin-6abe893a-2.json", "twin-6abe893a-3.json", "suite.json"]
    assert [report.record_names(SuiteResult(twins[:count], 0.99))[-1] for count in (1, 2, 3)] == names[:3]


def test_no_name_leaves_the_folder_of_the_report(tmp_path: Path) -> None:
    hard = [form.format(name) for name in hostile.NAMES if "{" not in name for form in ("{}", "../{}", "/{}/..", "CON")]
    suite = SuiteResult(tuple(SuiteEntry(name, Verdict.NOT_REFUTED, example.kept()) for name in hard), 0.99)
    names = report.record_names(suite)
    assert len(set(names)) == len(hard)
    for name in names:
        assert name is not None
        assert name.isascii()
        assert name == Path(name).name
        assert len(name) <= 80
    few = SuiteResult(suite.entries[:40:8], 0.99)
    paths = report.write_suite(few, tmp_path / "report", ("json", "md"))
    assert sorted(paths) == sorted((tmp_path / "report").iterdir())
    assert os.listdir(tmp_path) == ["report"]
    assert all(load(path) == example.kept() for path in paths[:-3])


def test_a_format_is_the_functions_of_a_module_and_one_line() -> None:
    folder = Path(report.__file__).parent
    others = {"__init__", "pages", "display"}
    modules = {path.stem for path in folder.glob("*.py")} - others | {"html"}
    assert {made.module for made in report.FORMATS.values()} == modules
    for each in report.FORMATS.values():
        module = sys.modules[each.function("suite").__module__]
        assert hasattr(module, f"{each.prefix}result") is each.single
        assert hasattr(module, f"{each.prefix}files") is each.folder
    assert len({each.file for each in report.FORMATS.values()}) == len(report.FORMATS)


def test_asking_for_text_loads_no_figures() -> None:
    heavy = ("matplotlib", "jinja2", "statsmodels")
    code = f"import sys, dpaudit.report, dpaudit.cli.report; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# what a suite amounts to


def _entry(verdict: Verdict, expect: Verdict, code: int = 0) -> SuiteEntry:
    made = example.result() if verdict is Verdict.REFUTED else example.kept()
    return SuiteEntry("audit", expect, made, exit_code=code)


EXPECTED = _entry(Verdict.REFUTED, Verdict.REFUTED)
MISSED = _entry(Verdict.NOT_REFUTED, Verdict.REFUTED)
REFUTED = _entry(Verdict.REFUTED, Verdict.NOT_REFUTED)
HELD = _entry(Verdict.NOT_REFUTED, Verdict.NOT_REFUTED)
WEAK = _entry(Verdict.NOT_REFUTED, Verdict.NOT_REFUTED, 4)
BROKEN, INVALID, INTERNAL = (SuiteEntry("audit", Verdict.NOT_REFUTED, None, "why", code) for code in (3, 2, 70))


@for_each(
    ("entries", "code"),
    [
        ((), 5),
        ((EXPECTED, HELD), 0),
        ((EXPECTED, REFUTED), 1),
        ((EXPECTED, MISSED), 1),
        ((EXPECTED, WEAK), 4),
        ((EXPECTED, WEAK, BROKEN), 3),
        ((BROKEN, REFUTED, WEAK), 1),
        ((REFUTED, INVALID, BROKEN), 2),
        ((INVALID, INTERNAL, REFUTED), 70),
    ],
)
def test_the_worst_ending_decides_the_exit_code(entries: tuple[SuiteEntry, ...], code: int) -> None:
    assert SuiteResult(entries, 0.99).exit_code == code


def _with_p(p_value: float) -> SuiteEntry:
    made = example.kept()
    return SuiteEntry(
        "audit", Verdict.NOT_REFUTED, replace(made, certificate=replace(made.certificate, p_value=p_value))
    )


def test_holm_is_that_of_statsmodels_and_counts_an_audit_without_a_result() -> None:
    for seed in range(5):
        drawn = np.random.default_rng(seed)
        raw = drawn.random(40) ** drawn.integers(1, 200, 40)
        assert holm(raw.tolist()) == pytest.approx(multipletests(raw, method="holm")[1], rel=1e-12)
    adjusted = SuiteResult((_with_p(0.001), BROKEN, BROKEN, _with_p(0.02)), 0.99).holm()
    assert adjusted[1:3] == (None, None)
    assert (adjusted[0], adjusted[3]) == pytest.approx((0.004, 0.06))
    assert SuiteResult((), 0.99).holm() == ()


# `dpaudit report`: stored results in other formats, and one line for what cannot be read


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
        [*(Path(path).name for path in _records(folder)), "suite.json", "report.md", "report-long.md", "dpaudit.sarif"]
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
