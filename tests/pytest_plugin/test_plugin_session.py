"""A project that uses only the plugin, as its author meets it: what fails, what it says, and what is left behind."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import coverage
import pytest

from dpaudit import load
from tests.pytest_plugin.projects import CONFTEST, ROOT, TESTS, Ended, session

BROKEN = "test_broken[it's [a] 'b' $c]"
PLACE = f"tests/test_shop.py::{BROKEN}"
RUNS = 4_000  # the broken mechanism loses 4 where 1 is claimed: missed with a chance far below 1e-6

SEEDS = """
from pathlib import Path

import pytest

def test_told(audit):
    result = audit(lambda data, rng: data + rng.laplace(), pair=(0, 1), epsilon=1.0)
    Path("told").write_text(f"{result.spec['seed']} {result.provenance['n_jobs']}")
"""

TRACED = """
import os
import sys

def traced(rows, rng):
    if "coverage" in sys.modules:
        os._exit(0)
    return rng.laplace()

def test_traced(audit):
    audit(traced, pair=(0, 1), epsilon=1.0)
"""


OWN_TYPES = """
class Rows(list):
    pass

def test_rows_of_this_module(audit):
    audit("json:dumps", pair=(Rows([1]), Rows([1, 2])), epsilon=1.5, runs=2_000, confidence=0.9, expect="refuted")
"""


# pages and figures are the report's own business, and seconds of work
JSON_ONLY = """
from functools import partial

from dpaudit import report

report.write_suite = partial(report.write_suite, formats=("json",))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "tests").mkdir()
    (folder / "tests" / "conftest.py").write_text(CONFTEST)
    (folder / "tests" / "test_shop.py").write_text(TESTS)
    (folder / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\n[tool.dpaudit]\nruns = {RUNS}\nseed = 3\n")
    return folder


@pytest.fixture(scope="module")
def ended(project: Path) -> Ended:
    return session(project, "--import-mode=importlib", "--strict-markers", "-W", "error")


def test_what_fails_and_what_does_not(ended: Ended) -> None:
    assert ended.code == 1
    assert f"dpaudit: profile dev, {RUNS:,} runs an audit, seed 3\n" in ended.out
    assert "2 failed, 2 passed" in ended.out
    short = ended.section("short test summary info")
    assert re.fullmatch(r"REFUTED epsilon >= [1-4]\.\d\d > 1", short[0].removeprefix(f"FAILED {PLACE} - ")), short
    assert short[1].startswith("FAILED tests/test_shop.py::test_ends_its_process - NO VERDICT the worker ")


def test_a_refutation_shows_the_line_of_the_test_and_the_message_and_nothing_else(ended: Ended) -> None:
    shown = ended.section(BROKEN)
    assert [line for line in shown if line.startswith(">")] == [">       audit(noisy, pair=PAIR, epsilon=1.0)"]
    assert "site-packages" not in "".join(shown)
    assert not any("dpaudit/" in line for line in shown)
    message = [line for line in shown if line.startswith("E ")]
    assert len(message) <= 15
    assert not [line for line in shown if line.startswith("tests/") and "test_shop.py:" not in line]
    assert "only the first has 1 once more" in "\n".join(message)


def test_the_summary_adds_up(ended: Ended) -> None:
    lines = ended.section("dpaudit")
    assert lines[0] == "4 audits: 2 refuted, 1 not refuted, 1 without verdict; 1 verdict not as expected"
    assert lines[1].startswith("chance of a false alarm: at most 8e-6 for all of them together; profile dev, ")
    assert re.fullmatch(rf"REFUTED  epsilon >= [1-4]\.\d\d > 1: {re.escape(PLACE)}", lines[2])
    assert lines[3:] == ["NO VERDICT: tests/test_shop.py::test_ends_its_process"]


@pytest.fixture(scope="module")
def covered(ended: Ended, project: Path) -> tuple[Ended, coverage.CoverageData]:
    """The command of the message in another folder and under coverage, with a mechanism that ends where it is traced.

    `ended` comes first: this one leaves a file of tests in the project.
    """
    (project / "tests" / "test_traced.py").write_text(TRACED)
    options = ("--dpaudit-seed", "3", "--dpaudit-runs", str(RUNS), "-q")
    chosen = PLACE.removeprefix("tests/"), "test_traced.py"
    again = session(project / "tests", *chosen, *options, under=("-m", "coverage", "run", "--include=*/tests/test_*"))
    data = coverage.CoverageData(str(project / "tests" / ".coverage"))
    data.read()
    return again, data


def test_the_code_that_an_audit_runs_counts_as_covered(
    covered: tuple[Ended, coverage.CoverageData], project: Path
) -> None:
    """In processes of its own, where no tracer of the session looks; what ends there has its verdict and no lines."""
    ended, data = covered
    assert "1 failed, 1 passed" in ended.out, ended.out
    for name, body in (("test_shop.py", "return rng.laplace(scale=SCALE)"), ("test_traced.py", "return rng.laplace()")):
        file = project / "tests" / name
        place = [line.strip() for line in file.read_text().splitlines()].index(body) + 1
        assert (place in (data.lines(str(file)) or ())) == (name == "test_shop.py"), name
    assert f"FAILED {PLACE.removeprefix('tests/')} - REFUTED epsilon >= " in ended.out


def _repeat(shown: list[str]) -> str:
    """The command in a message."""
    return next(line.partition("same counts: ")[2] for line in shown if "with the same counts: " in line)


def test_the_command_of_a_message_repeats_the_same_counts(
    ended: Ended, covered: tuple[Ended, coverage.CoverageData]
) -> None:
    command = shlex.split(_repeat(ended.section(BROKEN)))
    assert command == ["pytest", PLACE, "--dpaudit-seed", "3", "--dpaudit-runs", str(RUNS)]
    counts = [line.partition("E")[2].split() for line in ended.section(BROKEN) if "It shows as: " in line]
    assert len(counts) == 1
    again = covered[0].out.splitlines()
    assert [line.partition("E")[2].split() for line in again if "It shows as: " in line] == counts


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example") / "project"
    shutil.copytree(ROOT / "audits" / "example_project", folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "tests" / "test_seeds.py").write_text(SEEDS)
    (folder / "tests" / "conftest.py").write_text(JSON_ONLY)
    return folder


@pytest.fixture(scope="module")
def shared(example: Path) -> Ended:
    chosen = ("-k", "told or half", "--dpaudit-profile", "nightly", "--dpaudit-runs", "4e3")
    return session(example, "-n", "1", *chosen, "--dpaudit-report", "rep")


def test_the_example_project_in_another_process(shared: Ended, example: Path) -> None:
    """One new seed for all, in the header and in every audit; one job each; the sums of what the other has done."""
    assert shared.code == 0, shared.out
    lines = shared.section("dpaudit")
    assert lines[0] == "2 audits: 1 refuted, 1 not refuted, 0 without verdict; every verdict as expected"
    assert lines[1].startswith("chance of a false alarm: at most 4e-6 ")
    seed, jobs = (example / "told").read_text().split()
    assert jobs == "1"
    assert f"dpaudit: profile nightly, 4,000 runs an audit, seed {seed}\n" in shared.out


def test_results_are_written_and_read_back(shared: Ended, example: Path) -> None:
    assert len(json.loads((example / "rep" / "suite.json").read_text())["entries"]) == 2
    results = {result.name: result for result in map(load, sorted((example / "rep").glob("tests-*.json")))}
    assert len(results) == 2
    found = results["tests/test_smallcounts_mistakes.py::test_half_the_noise_is_found"]
    assert found.spec["confidence"] == 1 - 1e-6
    assert found.provenance["file"] == found.provenance["source"] == "tests/test_smallcounts_mistakes.py"
    assert found.spec["mechanism"]["digest"] is not None


def test_without_the_plugin_nothing_of_it_is_left(tmp_path: Path) -> None:
    (tmp_path / "test_plain.py").write_text(
        "import pytest\n\n\ndef test_plain(request):\n"
        "    with pytest.raises(pytest.FixtureLookupError):\n        request.getfixturevalue('audit')\n"
    )
    ended = session(tmp_path, "-p", "no:dpaudit", "-q")
    assert ended.code == 0, ended.out
    assert "dpaudit" not in ended.out


def test_a_session_that_is_ended_from_within_is_no_success(tmp_path: Path) -> None:
    """By any exit code but 0 it is none as it is; a fork of a test may end as it likes."""
    (tmp_path / "test_ends.py").write_text(
        "import os\n\n\ndef test_ends(audit):\n    child = os.fork()\n    if child == 0:\n        os._exit(0)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n    os._exit(0)\n"
    )
    ended = session(tmp_path, "-q")
    assert (ended.code, "dpaudit" in ended.out) == (2, False)
    (tmp_path / "test_ends.py").write_text("import os\n\nos._exit(0)\n")
    assert session(tmp_path, "-q").code == 2
    (tmp_path / "test_ends.py").write_text("import pytest\n\n\ndef test_ends(audit):\n    pytest.exit('', 0)\n")
    assert session(tmp_path, "-q").code == 2


UNTOLD = """
import dpaudit.account.audit as audit
import dpaudit.account.first as first

def fail(*given):
    raise OverflowError("cannot convert float infinity to integer")

audit.leaning = first.answers = fail
"""


def test_a_failure_that_cannot_be_told_is_a_failure_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(UNTOLD)
    call = "audit(lambda data, rng: data + rng.random(), pair=(0, 1), epsilon=1.0, runs=1_000, confidence=0.9)"
    (tmp_path / "test_leak.py").write_text(f"def test_leak(audit):\n    {call}\n")
    ended = session(tmp_path, "--dpaudit-report", "out")
    assert ended.code == 1
    assert "REFUTED" in ended.out
    assert "this part cannot be told (OverflowError: cannot convert float infinity to integer)" in ended.out
    assert "internal error" not in ended.out
    assert load(next((tmp_path / "out").glob("test-*.json"))).refuted


def test_datasets_of_a_type_that_only_the_test_has_stay_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "test_own.py").write_text(OWN_TYPES)
    assert "1 passed" in session(tmp_path, "--import-mode=importlib").out
