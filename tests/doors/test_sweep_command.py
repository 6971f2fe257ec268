"""`dpaudit sweep` and the [sweep] tables of a spec file."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dpaudit.catalogue import sparse
from dpaudit.spec.questions import Layers
from dpaudit.spec.reading import find_specs
from dpaudit.sweeps.spec import read_sweep_file
from tests.doors.conftest import Outcome, process, spec

Run = Callable[..., Outcome]
Write = Callable[..., str]

MECHANISMS = """
import os

def leak(data, rng, times=1.0):
    return data * times + 0.125 * rng.integers(2)

def dies(data, rng, times=1.0):
    os._exit(0)
"""
SWEEP = """[sweep]
name = "leaks"
mechanisms = ["swept:leak", "swept:dies", "dpaudit.catalogue.additive:laplace"]
parameters = { times = 2.0 }
claims = { epsilon = "times" }
pairs = { first = 10, second = 9 }
runs = 2_000
prove = true
"""


@pytest.fixture
def sweeps(folder: Path, write: Write) -> Write:
    """Writes a spec file of the given text, beside the module that it names."""
    (folder / "swept.py").write_text(MECHANISMS)
    return write


def test_a_sweep_is_a_table_figures_and_a_page_and_goes_on_from_the_ledger(
    dpaudit: Run, sweeps: Write, folder: Path
) -> None:
    file = sweeps(SWEEP)
    ended = dpaudit("sweep", file, "--report", "out", "--jobs", "1")
    assert ended.code == 3  # some points have no verdict
    assert ended.out.splitlines()[:2] == [
        "leaks: 3 points",
        "3 points: 1 refuted, 0 not refuted, 2 without verdict",
    ]
    assert "without verdict, 1 point: laplace has no parameter 'times'" in ended.out
    assert ended.out.splitlines()[-1] == f"report: {Path('out', 'sweep.html')}"
    points = [line for line in ended.err.splitlines() if line.startswith("[") and " % of " not in line]
    assert len(points) == 3  # a line a point, beside how far a slow one has come
    assert sorted(os.listdir(folder / "out")) == [
        "claimed-against-certified.png",
        "claimed-against-certified.svg",
        "sweep.csv",
        "sweep.html",
        "sweep.md",
    ]
    with (folder / "out" / "sweep.csv").open(newline="") as read:
        leak, dies, laplace = csv.DictReader(read)
    assert (leak["verdict"], leak["parameters.times"], leak["claimed"], leak["broken"]) == ("REFUTED", "2.0", "2.0", "")
    assert float(leak["lower"]) > 2.0
    assert (dies["mechanism"], dies["verdict"], dies["lower"]) == ("dies", "", "")
    assert "process" in dies["error"]
    assert laplace["error"].startswith("laplace has no parameter 'times'")
    page = (folder / "out" / "sweep.html").read_text()
    assert "<svg" in page
    assert "<script" not in page
    other = SWEEP.replace('"swept:dies", ', "")
    with process("sweep", str(sweeps(other)), "--jobs", "1", "--quiet", cwd=folder) as again:  # no older text is loaded
        out, errors = again.communicate()
    first, second, *_ = out.splitlines()
    assert first == "2 points: 1 refuted, 0 not refuted, 1 without verdict"
    assert second.endswith("  1 result taken from the ledger, for the same questions, sources and versions")
    assert errors.count("no verdict") == 1  # a failure is never held back


def test_run_says_how_a_sweep_is_run_and_sweep_how_audits_are(dpaudit: Run, sweeps: Write, folder: Path) -> None:
    file = sweeps(SWEEP, name="leaks.toml")
    ended = dpaudit("run", file)
    assert ended.code == 2
    assert "`dpaudit sweep leaks.toml` runs" in ended.err
    sweeps(spec(), name="audits.toml")
    assert [path.name for path in find_specs([folder])] == ["audits.toml"]  # a folder's audits run without its sweeps
    ended = dpaudit("sweep", "audits.toml")
    assert ended.code == 2
    assert "`dpaudit run audits.toml` runs its audits" in ended.err
    sweeps(spec(), SWEEP, name="both.toml")
    for command in ("run", "sweep"):
        ended = dpaudit(command, "both.toml")
        assert ended.code == 2
        assert "of their own" in ended.err or "of its own" in ended.err


def test_lists_are_axes_and_the_command_line_goes_first(sweeps: Write) -> None:
    text = """[[sweep]]
name = "rooms"
mechanisms = ["dpaudit.catalogue.sparse", "dpaudit.catalogue.additive:laplace.half_noise"]
parameters = { epsilon = [0.5, 1.0], threshold = 0.0 }
stopping = ["fixed", "anytime"]
seeds = [1, 2, 3]
runs = [1_000, 2_000]

[[sweep]]
name = "listed"
mechanisms = "swept:leak"
parameters = [{ times = 1.0 }, { times = 2.0 }]
claims = [{ epsilon = 1.0 }, { rho = 1.0, xi = 0.5 }]
pairs = ["swept:pair", { first = 1, second = 2 }]
relation = "replace_one"
"""
    rooms, listed = read_sweep_file(sweeps(text))
    assert rooms.size == (len(sparse.ENTRIES) + 1) * 2 * 2 * 3 * 2
    assert rooms.options["confidence"] == (0.999,)
    assert listed.size == 2 * 2 * 2
    assert [getattr(pair, "name", None) for pair in listed.pairs] == ["pair 1, pair", "pair 2"]
    assert {claim.relation.value for claim in listed.claims} == {"replace_one"}
    given = Layers({"runs": 5_000, "seed": 9, "confidence": 0.9})
    (_, other) = read_sweep_file("spec.toml", given)
    assert [other.options[name] for name in given.command] == [(5_000,), (9,), (0.9,)]


def test_a_ledger_that_was_named_must_be_one(dpaudit: Run, sweeps: Write, folder: Path) -> None:
    (folder / "not.sqlite").write_text("these are words, and no ledger at all")
    ended = dpaudit("sweep", sweeps(SWEEP), "--ledger", "not.sqlite")
    assert ended.code != 0
    assert ended.err.count("\n") == 1
    ended = dpaudit("sweep", "spec.toml", "--ledger", "a", "--no-ledger")
    assert ended.code == 2
