"""The files a report is written to: the format from the suffix, names that cannot escape, whole or not at all."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from dpaudit import report
from dpaudit.account import account
from dpaudit.account.suites import assertion, suite_line
from dpaudit.errors import InvalidSpec
from dpaudit.report import html
from dpaudit.results.display import Verdict
from dpaudit.results.observations import FAR, INSIDE, LATE, Control
from dpaudit.results.stored import load, load_suite
from dpaudit.results.suite import SuiteEntry, SuiteResult, holm
from tests.cases import for_each
from tests.golden import example
from tests.report import hostile


@for_each(
    ("suffix", "begins"),
    [
        (".json", "{"),
        (".md", "# REFUTED"),
        (".txt", "REFUTED"),
        (".JSON", "{"),
        (".xml", "<?xml"),
        (".sarif", "{"),
        (".csv", '"audit"'),
    ],
)
def test_the_suffix_names_the_format(tmp_path: Path, suffix: str, begins: str) -> None:
    path = report.write(example.result(), tmp_path / f"result{suffix}")
    assert path.read_text(encoding="utf-8").startswith(begins)


@pytest.mark.parametrize("suffix", [".json", ".md", ".txt", ".xml", ".csv"])
def test_every_format_takes_a_suite(tmp_path: Path, suffix: str) -> None:
    text = report.write(example.suite(), tmp_path / f"suite{suffix}").read_text(encoding="utf-8")
    assert all(entry.name in text for entry in example.suite().entries)
    assert text.endswith("\n")


def test_adjacency_on_trust_stands_in_the_first_part_of_every_format(tmp_path: Path) -> None:
    """Where nothing was compared no sentence says that it was, or that the datasets are neighbours."""
    made = example.result()
    trusted = replace(made, adjacency=(None,))
    older = replace(made, adjacency=(), spec={**made.spec, "claim": {**made.spec["claim"], "relation": None}})
    for suffix, first in {".md": 400, ".txt": 200, ".html": 1_000, ".xml": 2_000, ".sarif": None, ".csv": None}.items():
        texts = [
            report.write(each, tmp_path / f"{number}{suffix}").read_text(encoding="utf-8")
            for number, each in enumerate((made, trusted, older))
        ]
        for text in texts[1:]:
            shown = re.sub(r"(?s)<head>.*?</head>|<svg.*?</svg>", "", text)[:first].lower()
            assert ("on trust" if suffix == ".csv" else "adjacency taken on trust") in shown, suffix
            for false in ("it was checked", "as near as stated", "refuted: on datasets that count"):
                assert false not in text, (suffix, false)
        assert "on trust" not in texts[0].replace("it is taken on trust that they are neighbours", ""), suffix
    apart = "2 records leave and 0 come"
    further = replace(older, adjacency=(apart,))
    for suffix, length in {".md": 400, ".txt": 200, ".html": 1_000, ".xml": 2_000, ".sarif": None}.items():
        text = report.write(further, tmp_path / f"further{suffix}").read_text(encoding="utf-8")
        shown = re.sub(r"(?s)<head>.*?</head>|<svg.*?</svg>", "", text)[:length].lower()
        assert f"adjacency taken on trust, though {apart}" in shown, suffix
        assert "as near as stated" not in text, suffix
    assert load(further.save(tmp_path / "further.json")).further_apart == apart
    assert (further.further_apart, older.further_apart) == (apart, "")
    first = {**made.spec["pairs"][0], "distance": 2}
    apart = account(replace(trusted, spec={**made.spec, "pairs": [first]}))["what it means"].lines
    assert any(line.startswith("The claim is refuted if the datasets are several steps apart, as") for line in apart)
    for each in (trusted, older):
        assert "adjacency taken on trust" in assertion(SuiteEntry("it", Verdict.NOT_REFUTED, each)).split("\n")[0]
        assert "adjacency taken on trust" in suite_line(SuiteEntry("it", Verdict.REFUTED, each))
        assert json.loads(each.to_json())["adjacency"] == list(each.adjacency)


def test_entries_that_were_not_looked_at_stand_in_the_first_part_of_every_format(tmp_path: Path) -> None:
    result = replace(example.result(), unseen=744, unpaired=1)
    said = "744 entries of an output not looked at, 1 looked at alone and in sums only"
    for suffix, first in {".md": 400, ".txt": 250, ".html": 1_200, ".xml": 2_000, ".sarif": None}.items():
        text = report.write(result, tmp_path / f"it{suffix}").read_text(encoding="utf-8")
        assert said in re.sub(r"(?s)<head>.*?</head>|<svg.*?</svg>", "", text)[:first], suffix
    (row,) = csv.DictReader(report.write(result, tmp_path / "it.csv").read_text(encoding="utf-8").splitlines())
    assert (row["unseen"], row["unpaired"]) == ("744", "1")
    assert said in assertion(SuiteEntry("it", Verdict.NOT_REFUTED, result)).split("\n")[0]
    assert said in suite_line(SuiteEntry("it", Verdict.REFUTED, result))
    power = account(result)["power"].lines
    assert any(f"no power is claimed for what was left out: {said}" in line for line in power)
    for each in (result, replace(result, unseen=0)):  # what was looked at one by one may well hold the witness
        text = " ".join(account(each)["what it means"].lines)
        assert "Nothing is said of what was not looked at, nor of what such entries show together." in text
    stored = json.loads(result.to_json())
    assert (stored["unseen"], stored["unpaired"]) == (744, 1)
    assert load(result.save(tmp_path / "it.json")) == result
    for suffix in (".md", ".txt", ".html"):
        text = report.write(example.result(), tmp_path / f"whole{suffix}").read_text(encoding="utf-8")
        assert "looked at alone" not in text
        assert "refuted with power 0.95, search counted in, where one value, or one end of a range, shows it" in text
        assert "for an event that is known" in text


def test_every_format_says_whose_power_it_is_and_where_controls_were_missed(tmp_path: Path) -> None:
    caught = Control(0.01, 0.002, 1.7, 20, 20, 19)
    lost = tuple(Control(mass, mass / 5.0, 1.7, 3, 5, 19, INSIDE) for mass in (0.01, 0.03))
    late = Control(0.03, 0.006, 1.7, 19, 20, 19, LATE)
    made = replace(example.kept(), controls=(caught, *lost, late), spec={**example.kept().spec, "controls": 20})
    lines = {
        f"{FAR}: caught, a leak of epsilon 1.7 on an event of probability 0.01, in 20 of 20 audits",
        f"{INSIDE}: NOT CAUGHT at any probability, a leak of epsilon 1.7 missed at "
        "0.01 (caught in 3 of 5 audits) or 0.03 (caught in 3 of 5 audits)",
        f"{LATE}: caught, a leak of epsilon 1.7 on an event of probability 0.03, in 19 of 20 audits; "
        "rarer ones were not tried",
    }
    assert set(account(made)["controls"].lines) >= lines
    assert made.searching_runs == made.runs_used - made.evidence.runs > 0
    for suffix in (".md", ".txt", ".html"):
        text = report.write(made, tmp_path / f"it{suffix}").read_text(encoding="utf-8")
        assert all(line in text for line in lines), suffix
        assert "0.95, search counted in, where one value, or one end of a range, shows it" in text
        assert "for an event that is known" in text
    assert load(made.save(tmp_path / "it.json")) == made
    known = replace(made, runs_used=made.evidence.runs)  # a witness that was given: nothing had to be found
    assert known.searching_runs == 0
    assert known.least_found(0.01) == known.least_caught(0.01) < (made.least_found(0.01) or 0.0)
    assert not any("search counted in" in line for line in account(known)["power"].lines)


def test_power_that_an_older_suite_had_for_a_known_event_alone_is_still_read(tmp_path: Path) -> None:
    made = example.kept()
    between = (made.least_caught(0.01) + made.least_found(0.01)) / 2.0  # type: ignore[operator]
    older = replace(made, spec={**made.spec, "detect": {"epsilon": between, "mass": 0.01}})
    assert (older.power_reached, older.power_once_found) == (False, True)
    suite = SuiteResult((SuiteEntry(older.name, older.verdict, older, exit_code=0),), 0.999)
    assert load_suite(report.write(suite, tmp_path / "suite.json")).entries[0].exit_code == 0


@pytest.mark.parametrize("name", ["report.pdf", "report.json.gz", ".json", "a\nb.exe"])
def test_an_unknown_suffix_is_refused_with_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidSpec, match=r"^a report must end in \.json, \.md, \.html, .*, got .*$"):
        report.write(example.result(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_name_without_a_dot_is_a_folder_that_gets_what_the_command_writes(tmp_path: Path) -> None:
    page = report.write(example.result(), tmp_path / "report")
    assert page == tmp_path / "report" / "index.html"
    assert report.write(SuiteResult.of([example.result()]), page.parent) == page
    assert {each.suffix for each in page.parent.iterdir()} == {".html", ".json", ".md"}


def test_json_is_what_save_writes_and_reads_back_equal(tmp_path: Path) -> None:
    result = example.result()
    written = report.write(result, tmp_path / "written.json").read_bytes()
    assert written == result.save(tmp_path / "saved.json").read_bytes()
    assert load(tmp_path / "written.json") == result


def test_the_record_of_a_suite_holds_results_and_reasons(tmp_path: Path) -> None:
    suite = example.suite()
    stored = json.loads(report.write(suite, tmp_path / "suite.json").read_text(encoding="utf-8"))
    assert stored["schema"] == "dpaudit.suite/1"
    assert stored["exit_code"] == 3
    first, second, third = stored["entries"]
    assert first["result"] == example.result().to_dict()
    assert (first["p_value_holm"], second["p_value_holm"], third["p_value_holm"]) == (3e-300, 1.0, None)
    assert third["result"] is None
    assert third["error"] == "the worker of shard 3 was lost twice"


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = report.write(example.result(), tmp_path / "result.txt")
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        report.write(example.kept(), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_suite_is_one_record_a_result_and_a_file_for_each_format(tmp_path: Path) -> None:
    formats = [name for name in report.FORMATS if name != "html"]
    paths = report.write_suite(example.suite(), tmp_path / "new" / "folder", formats)
    names = [path.name for path in paths]
    records = ["noisy-count-6abe893a.json", "noisy-count-whole-noise-cb68c558.json"]
    files = ("suite.json", "report.md", "junit.xml", "dpaudit.sarif", "results.csv", "report.txt", "summary.md")
    assert names == [*records, *files, "badge.svg"]
    assert sorted(os.listdir(tmp_path / "new" / "folder")) == sorted(names)
    assert load(paths[0]) == example.result()
    assert load_suite(paths[2]) == example.suite()
    page = paths[3].read_text(encoding="utf-8")
    assert all(f"`dpaudit recheck {name}`" in page for name in records)
    assert all(name in paths[6].read_text(encoding="utf-8") for name in records)


def test_no_format_names_a_record_that_is_not_written(tmp_path: Path) -> None:
    paths = report.write_suite(example.suite(), tmp_path, ("md", "csv", "sarif"))
    assert (
        sorted(path.name for path in paths)
        == sorted(os.listdir(tmp_path))
        == ["dpaudit.sarif", "report.md", "results.csv"]
    )
    assert not any(
        ".json`" in path.read_text(encoding="utf-8") or "6abe893a.json" in path.read_text(encoding="utf-8")
        for path in paths
    )


def test_the_formats_that_are_written_unless_others_are_asked_for(tmp_path: Path) -> None:
    paths = report.write_suite(example.suite(), tmp_path)
    records = [name for name in report.record_names(example.suite()) if name]
    pages = [name for name in html.page_names(records) if name]
    assert [path.name for path in paths] == [*records, "suite.json", "report.md", "index.html", *pages]
    assert all(name in paths[3].read_text(encoding="utf-8") for name in records)  # a link to each


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
    assert set(os.listdir(tmp_path)) == records | set(others.values()) - {others[broken]}


def test_an_unknown_format_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match=r"^a format must be one of json, md, html, .*, got 'pdf'$"):
        report.write_suite(example.suite(), tmp_path / "new", ("json", "pdf"))
    assert list(tmp_path.iterdir()) == []


def test_equal_audits_get_files_of_their_own(tmp_path: Path) -> None:
    twins = SuiteResult(tuple(SuiteEntry("twin", Verdict.REFUTED, example.result()) for _ in range(3)), 0.99)
    names = [path.name for path in report.write_suite(twins, tmp_path, ("json",))]
    assert names == ["twin-6abe893a.json", "twin-6abe893a-2.json", "twin-6abe893a-3.json", "suite.json"]


def test_the_name_of_a_record_does_not_change_when_audits_follow() -> None:
    entries = tuple(SuiteEntry("twin", Verdict.REFUTED, example.result()) for _ in range(3))
    growing = [report.record_names(SuiteResult(entries[:count], 0.99))[-1] for count in (1, 2, 3)]
    assert tuple(growing) == report.record_names(SuiteResult(entries, 0.99))


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
    assert all(load(path) == example.kept() for path in paths[:-2])


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
WEAK = _entry(Verdict.NOT_REFUTED, Verdict.NOT_REFUTED, 4)
BROKEN, INVALID, INTERNAL = (SuiteEntry("audit", Verdict.NOT_REFUTED, None, "why", code) for code in (3, 2, 70))


@for_each(
    ("entries", "code"),
    [
        ((), 5),
        ((EXPECTED,), 0),
        ((EXPECTED, _entry(Verdict.NOT_REFUTED, Verdict.NOT_REFUTED)), 0),
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


def test_holm_multiplies_the_least_by_all_and_never_falls() -> None:
    suite = SuiteResult(tuple(_with_p(p) for p in (0.02, 0.001, 0.015, 0.6)), 0.99)
    assert suite.holm() == pytest.approx((0.045, 0.004, 0.045, 0.6))


def test_an_audit_without_a_result_counts_among_all_with_a_p_value_of_one() -> None:
    entries = (_with_p(0.001), BROKEN, BROKEN, _with_p(0.02))
    adjusted = SuiteResult(entries, 0.99).holm()
    assert adjusted[1:3] == (None, None)
    assert (adjusted[0], adjusted[3]) == pytest.approx((0.004, 0.06))
    assert SuiteResult((), 0.99).holm() == ()


@pytest.mark.parametrize("seed", range(5))
def test_holm_is_that_of_statsmodels(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    raw = drawn.random(40) ** drawn.integers(1, 200, 40)
    assert holm(raw.tolist()) == pytest.approx(multipletests(raw, method="holm")[1], rel=1e-12)
