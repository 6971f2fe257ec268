"""Specs with every form of claim, stopping early, patterns and controls, and `dpaudit sweep`, by the command line."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from dpaudit.catalogue import sparse
from dpaudit.spec.questions import Layers, read_spec
from dpaudit.spec.reading import find_specs
from dpaudit.sweeps.spec import read_sweep_file
from tests.doors.conftest import Run, Write, process, spec
from tests.doors.test_transcripts import FOLDER, cases

NOISY = """
import numpy as np
import dpaudit

def _gaussian(data, runs, rng):
    return data + rng.normal(size=runs)

def _laplace(data, runs, rng):
    return data + rng.laplace(size=runs)

def _vector(data, runs, rng):
    return 4.0 * np.asarray(data, float) + rng.normal(size=(runs, len(data)))

gaussian = dpaudit.batched(_gaussian)
laplace = dpaudit.batched(_laplace)
vector = dpaudit.batched(_vector)
"""
FORMS = [
    ("PureDP", "{ epsilon = 0.5 }"),
    ("ApproximateDP", "{ epsilon = 0.5, delta = 1e-3 }"),
    ("GaussianDP", "{ mu = 0.5 }"),
    ("RenyiDP", "{ order = 2.0, epsilon = 0.3 }"),
    ("ZeroConcentratedDP", "{ rho = 0.1 }"),
    ("ZeroConcentratedDP", "{ rho = 0.1, xi = 0.01 }"),
    ("TradeOffDP", "{ trade_off = [[0, 1], [0.2, 0.6], [0.6, 0.2], [1, 0]] }"),
    ("PrivacyProfile", "{ profile = [[0.0, 0.2], [0.5, 0.1], [2.0, 0.0]] }"),
]
GROSS = {"mechanism": '"noisy:gaussian"', "pair": "{ first = 0.0, second = 4.0 }", "expect": '"refuted"'}


@pytest.fixture
def noisy(folder: Path) -> None:
    (folder / "noisy.py").write_text(NOISY)


def one_result(name: str = "it") -> Path:
    (path,) = Path("out").glob(f"{name}-*.json")
    return path


def test_every_form_of_claim_is_a_key_of_a_spec(dpaudit: Run, write: Write, noisy: None) -> None:
    path = write(*(spec(name=f'"{place}"', claim=claim, **GROSS) for place, (_, claim) in enumerate(FORMS)))
    assert [type(each.claim).__name__ for each in read_spec(path)] == [name for name, _ in FORMS]
    path = write(spec(claim=FORMS[-1][1], **GROSS))
    ended = dpaudit("run", path, "--report", "out", "--format", "json,md", "--confidence", "0.95", "--quiet")
    assert ended.code == 0, ended.out + ended.err
    report = Path("out", "report-long.md").read_text()
    assert "PrivacyProfile(curve=\\[(0, 0.2), (0.5, 0.1), (2, 0)\\])" in report
    assert "0.0000" not in report


def test_an_audit_that_stops_two_certified_pairs_of_a_pattern_and_controls(
    dpaudit: Run, write: Write, noisy: None
) -> None:
    keys = {"pattern": '"one_differs"', "pattern_parameters": "{ queries = 3 }", "certify_pairs": "2", "pair": None}
    stops = spec(name='"stops"', claim="{ mu = 0.5 }", stopping='"anytime"', **{**GROSS, "runs": "20_000"})
    pattern = spec(name='"pattern"', **{**GROSS, "mechanism": '"noisy:vector"', "runs": "4_000", **keys})
    write(stops, pattern, spec(mechanism='"noisy:laplace"', pair="{ first = 0.0, second = 1.0 }", controls="2"))
    ended = dpaudit("run", "spec.toml", "--report", "out", "--format", "json", "--no-progress")
    assert ended.code == 0, ended.err
    told = {
        "stops": ("stopped there: the claim was refuted before the runs were spent", "to bet on and certify\n"),
        "pattern": ("2 witnesses were certified, each at an equal part of the error probability",),
        "it": ("an output far away, or a new word: ", "a control is the mechanism with a leak of the stated size"),
    }
    for name, sentences in told.items():
        whole = dpaudit("report", str(one_result(name)), "--format", "txt").out
        assert all(sentence in whole for sentence in sentences), whole
        assert dpaudit("recheck", str(one_result(name))).code == 0
    fresh = dpaudit("recheck", str(one_result("stops")), "--fresh", "--no-progress")
    assert fresh.code == 0, fresh.err
    assert "fresh   REFUTED  stops: mu >= " in fresh.out


def test_a_sweep_is_a_table_figures_and_a_page_and_goes_on_from_the_ledger(dpaudit: Run, folder: Path) -> None:
    *_, case = cases((FOLDER / "sweeps.txt").read_text(encoding="utf-8"))
    case.write(folder)
    assert dpaudit("sweep", "spec.toml", "--report", "out", "--jobs", "1").code == 3  # some points have no verdict
    figures = [f"claimed-against-certified.{kind}" for kind in ("png", "svg")]
    assert sorted(os.listdir(folder / "out")) == [*figures, "sweep.csv", "sweep.html", "sweep.md"]
    with (folder / "out" / "sweep.csv").open(newline="") as read:
        leak, dies, laplace = csv.DictReader(read)
    assert (leak["verdict"], leak["parameters.times"], leak["claimed"], leak["broken"]) == ("REFUTED", "2.0", "2.0", "")
    assert float(leak["lower"]) > 2.0
    assert (dies["mechanism"], dies["verdict"], dies["lower"], "process" in dies["error"]) == ("dies", "", "", True)
    assert laplace["error"].startswith("laplace has no parameter 'times'")
    page = (folder / "out" / "sweep.html").read_text()
    assert ("<svg" in page, "<script" in page) == (True, False)
    (folder / "other.toml").write_text(case.files["spec.toml"].replace('"swept:dies", ', ""))
    with process("sweep", "other.toml", "--jobs", "1", "--quiet", cwd=folder) as again:  # no older text is loaded
        out, errors = again.communicate()
    first, second, *_ = out.splitlines()
    assert first == "2 points: 1 refuted, 0 not refuted, 1 without verdict"
    assert second.endswith("  1 result taken from the ledger, for the same questions, sources and versions")
    assert errors.count("no verdict") == 1  # a failure is never held back


def test_lists_are_axes_and_the_command_line_goes_first(write: Write) -> None:
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
    rooms, listed = read_sweep_file(write(text))
    assert find_specs(["."]) == ()  # a folder's audits run without its sweeps
    assert rooms.size == (len(sparse.ENTRIES) + 1) * 2 * 2 * 3 * 2
    assert rooms.options["confidence"] == (0.999,)
    assert listed.size == 2 * 2 * 2
    assert [getattr(pair, "name", None) for pair in listed.pairs] == ["pair 1, pair", "pair 2"]
    assert {claim.relation.value for claim in listed.claims} == {"replace_one"}
    given = Layers({"runs": 5_000, "seed": 9, "confidence": 0.9})
    (_, other) = read_sweep_file("spec.toml", given)
    assert [other.options[name] for name in given.command] == [(5_000,), (9,), (0.9,)]
