"""A project that uses only the plugin, as its author meets it: what fails, what it says, and what is left behind."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import coverage
import pytest

from dpaudit import load

ROOT = Path(__file__).parents[2]
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


# pages and figures are the report's own business, and seconds of work
JSON_ONLY = """
from functools import partial

from dpaudit import report

report.write_suite = partial(report.write_suite, formats=("json",))
"""
CONFTEST = """
import pytest

def wide(rows, rng):
    return len(rows) + rng.laplace(scale=2.0)

@pytest.fixture
def noise():
    return wide
"""

TESTS = """
import os
import random
from dataclasses import dataclass

import hypothesis.strategies as st
import numpy as np
import pytest

PAIR = ([1] * 10, [1] * 9)
SCALE = 0.25

def noisy(rows, rng):
    return len(rows) + helper(rng)

def helper(rng):
    return rng.laplace(scale=SCALE)

@pytest.mark.parametrize("name", ["it's [a] 'b' $c"])
def test_broken(audit, name):
    audit(noisy, pair=PAIR, epsilon=1.0)

@dataclass
class Person:
    age: int

@pytest.mark.parametrize("scale", [2.0])
def test_closure(audit, noise, scale):
    pair = [Person(1)] * 3, [Person(1)] * 2
    result = audit(lambda rows, rng: noise([each.age for each in rows], rng) * scale, pair=pair, epsilon=1.0)
    assert result.spec["mechanism"]["reference"] is None
    assert "test_closure[2.0]" in result.spec["mechanism"]["name"]

@pytest.mark.dpaudit(epsilon=1.0, pair=PAIR, runs=3_500)
def test_known_with_a_strategy_and_random_state(audit):
    before = random.getstate(), np.random.get_state()[1].tolist()
    rows = st.lists(st.integers(0, 1), min_size=1, max_size=8)
    result = audit(noisy, pairs=rows.map(lambda all: (all, all[1:])), expect="refuted", seed=5)
    assert (result.spec["runs"], result.spec["seed"]) == (3_500, 5)
    assert len(result.spec["pairs"]) > 1
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before

def test_ends_its_process(audit):
    audit(lambda data: os._exit(0), pair=PAIR, epsilon=1.0)
"""


@dataclass(frozen=True)
class Ended:
    """How a session ended."""

    code: int
    out: str

    def section(self, title: str) -> list[str]:
        """The lines under a heading of the output."""
        found = re.search(rf"^[=_]+ {re.escape(title)} [=_]+\n(.*?)(?=^[=_]{{5,}})", self.out, re.M | re.S)
        assert found is not None, self.out
        return found[1].splitlines()


def session(folder: Path, *arguments: str, under: tuple[str, ...] = (), alone: bool = False) -> Ended:
    """Runs pytest in a folder, `under` a module that runs modules, with nothing of the caller's in its environment.

    `alone`, without other plugins, which take a second to load.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV", "CI"))}
    if alone:
        kept["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        arguments = ("-p", "dpaudit", *arguments)
    source = os.pathsep.join([str(ROOT), str(folder / "src")])
    ended = subprocess.run(
        [sys.executable, *under, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:benchmark", *arguments],
        cwd=folder,
        env={**kept, "PYTHONPATH": source, "COLUMNS": "100", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return Ended(ended.returncode, ended.stdout + ended.stderr)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "tests").mkdir()
    (folder / "tests" / "conftest.py").write_text(CONFTEST)
    (folder / "tests" / "test_shop.py").write_text(TESTS)
    settings = f"[tool.pytest.ini_options]\n[tool.dpaudit]\nruns = {RUNS}\nseed = 3\njobs = 1\n"
    (folder / "pyproject.toml").write_text(settings)
    return folder


@pytest.fixture(scope="module")
def ended(project: Path) -> Ended:
    return session(project, "--import-mode=importlib", "--strict-markers", "-W", "error")


def test_what_fails_and_what_does_not_and_how_it_adds_up(ended: Ended) -> None:
    assert ended.code == 1
    assert f"dpaudit: profile dev, {RUNS:,} runs an audit whose test sets none, seed 3\n" in ended.out
    assert "2 failed, 2 passed" in ended.out
    short = ended.section("short test summary info")
    assert re.fullmatch(r"REFUTED epsilon >= [1-4]\.\d\d > 1", short[0].removeprefix(f"FAILED {PLACE} - ")), short
    assert short[1].startswith("FAILED tests/test_shop.py::test_ends_its_process - NO VERDICT the worker ")
    first, chance, *others = ended.section("dpaudit")
    assert first == "4 audits: 2 refuted, 1 not refuted, 1 without verdict; 1 verdict not as expected"
    assert chance.startswith("chance of a false alarm: at most 8e-6 for all of them together; profile dev, ")
    assert re.fullmatch(rf"REFUTED  epsilon >= [1-4]\.\d\d > 1: {re.escape(PLACE)}", others[0])
    assert others[1:] == ["NO VERDICT: tests/test_shop.py::test_ends_its_process"]


def test_a_refutation_shows_the_line_of_the_test_and_the_message_and_nothing_else(ended: Ended) -> None:
    shown = ended.section(BROKEN)
    assert [line for line in shown if line.startswith(">")] == [">       audit(noisy, pair=PAIR, epsilon=1.0)"]
    assert not any("site-packages" in line or "dpaudit/" in line for line in shown)
    message = [line for line in shown if line.startswith("E ")]
    assert len(message) <= 20
    assert not [line for line in shown if line.startswith("tests/") and "test_shop.py:" not in line]
    assert "only the first has 1 once more" in "\n".join(message)


def test_the_command_of_a_message_repeats_the_counts_and_what_an_audit_runs_counts_as_covered(
    ended: Ended, project: Path
) -> None:
    """In another folder and under coverage: no tracer of the session looks into processes of the audit's own.

    Where one mechanism ends because it is traced, it has its verdict and no lines.
    """
    (told,) = [line.partition("same counts: ")[2] for line in ended.section(BROKEN) if "same counts: " in line]
    command = shlex.split(told)
    assert command == ["pytest", PLACE, "--dpaudit-seed", "3", "--dpaudit-runs", str(RUNS)]
    (project / "tests" / "test_traced.py").write_text(TRACED)
    chosen = PLACE.removeprefix("tests/"), "test_traced.py"
    traced = ("-m", "coverage", "run", "--include=*/tests/test_*")
    again = session(project / "tests", *chosen, *command[2:], "-q", under=traced)
    assert "1 failed, 1 passed" in again.out, again.out
    assert f"FAILED {chosen[0]} - REFUTED epsilon >= " in again.out
    first, second = (
        [line.partition("E")[2].split() for line in each.splitlines() if "utputs " in line and " came in " in line]
        for each in ("\n".join(ended.section(BROKEN)), again.out)
    )
    assert len(first) == 1, "\n".join(ended.section(BROKEN))
    assert first == second
    data = coverage.CoverageData(str(project / "tests" / ".coverage"))
    data.read()
    for name, body in (("test_shop.py", "return rng.laplace(scale=SCALE)"), ("test_traced.py", "return rng.laplace()")):
        file = project / "tests" / name
        place = [line.strip() for line in file.read_text().splitlines()].index(body) + 1
        assert (place in (data.lines(str(file)) or ())) == (name == "test_shop.py"), name


def test_the_example_project_in_another_process(tmp_path: Path) -> None:
    """One new seed for all, in the header and in every audit; one job each; the sums of what the other has done."""
    example = tmp_path / "project"
    shutil.copytree(ROOT / "audits" / "example_project", example, ignore=shutil.ignore_patterns("__pycache__"))
    (example / "tests" / "test_seeds.py").write_text(SEEDS)
    (example / "tests" / "conftest.py").write_text(JSON_ONLY)
    chosen = ("-k", "told or half", "--dpaudit-profile", "nightly", "--dpaudit-runs", "4e3")
    shared = session(example, "-n", "1", *chosen, "--dpaudit-report", "rep")
    assert shared.code == 0, shared.out
    lines = shared.section("dpaudit")
    assert lines[0] == "2 audits: 1 refuted, 1 not refuted, 0 without verdict; every verdict as expected"
    assert lines[1].startswith("chance of a false alarm: at most 4e-6 ")
    seed, jobs = (example / "told").read_text().split()
    assert jobs == "1"
    assert f"dpaudit: profile nightly, 4,000 runs an audit, seed {seed}\n" in shared.out
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
    forks = "    child = os.fork()\n    if child == 0:\n        os._exit(0)\n    assert os.waitpid(child, 0)[1] == 0\n"
    for text in (
        f"import os\n\n\ndef test_ends(audit):\n{forks}    os._exit(0)\n",
        "import os\n\nos._exit(0)\n",
        "import pytest\n\n\ndef test_ends(audit):\n    pytest.exit('', 0)\n",
    ):
        (tmp_path / "test_ends.py").write_text(text)
        assert session(tmp_path, "-q", alone=True).code == 2


UNTOLD = """
import dpaudit.account.audit as audit
import dpaudit.account.first as first

def fail(*given):
    raise OverflowError("cannot convert float infinity to integer")

audit.meaning = first.answers = fail
"""
LEAKS = """
class Rows(list):
    pass

def test_leak(audit):
    audit(lambda data, rng: data + rng.random(), pair=(0, 1), epsilon=1.0, runs=1_000, confidence=0.9)

def test_rows_of_this_module(audit):
    audit("random:choice", pair=(Rows([1]), Rows([1, 2])), epsilon=1.5, runs=2_000, confidence=0.9, expect="refuted")
"""


def test_a_failure_that_cannot_be_told_is_one_and_types_that_only_the_test_has_stay_where_they_are(
    tmp_path: Path,
) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.dpaudit]\njobs = 1\n")
    (tmp_path / "conftest.py").write_text(UNTOLD + JSON_ONLY)
    (tmp_path / "test_leak.py").write_text(LEAKS)
    ended = session(tmp_path, "--import-mode=importlib", "--dpaudit-report", "out", alone=True)
    assert (ended.code, "1 failed, 1 passed" in ended.out) == (1, True), ended.out
    assert "REFUTED" in ended.out
    assert "his part cannot be told (OverflowError: cannot convert float infinity to integer)" in ended.out
    assert "internal error" not in ended.out
    assert load(next((tmp_path / "out").glob("test-leak-py-test-leak*.json"))).refuted
