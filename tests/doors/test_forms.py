"""Specs with every form of claim, stopping early, patterns, power demanded and controls, through the command line.

Mechanisms draw from the seeded rng alone, so each test sees the same counts every time. The leaks are so gross that
other streams would fail with a chance far below 1e-6.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from tests.doors.conftest import Outcome, spec

Run = Callable[..., Outcome]
Write = Callable[..., str]
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
FORMS = {
    "pure": "{ epsilon = 0.5 }",
    "approximate": "{ epsilon = 0.5, delta = 1e-3 }",
    "gaussian": "{ mu = 0.5 }",
    "renyi": "{ order = 2.0, epsilon = 0.3 }",
    "concentrated": "{ rho = 0.1 }",
    "concentrated twice": "{ rho = 0.1, xi = 0.01 }",
    "profile": "{ profile = [[0.0, 0.2], [0.5, 0.1], [2.0, 0.0]] }",
    "trade-off": "{ trade_off = [[0, 1], [0.2, 0.6], [0.6, 0.2], [1, 0]] }",
}
GROSS = {"mechanism": '"noisy:gaussian"', "pair": "{ first = 0.0, second = 4.0 }", "expect": '"refuted"'}


@pytest.fixture
def noisy(folder: Path) -> None:
    (folder / "noisy.py").write_text(NOISY)


def one_result(name: str = "it") -> Path:
    (path,) = Path("out").glob(f"{name}-*.json")
    return path


def test_every_form_of_claim_is_a_key_of_a_spec(dpaudit: Run, write: Write, noisy: None) -> None:
    forms = {name: spec(name=f'"{name}"', claim=claim, tags=f'["{name}"]', **GROSS) for name, claim in FORMS.items()}
    path = write(*forms.values())
    assert dpaudit("validate", path).out == "spec.toml: 8 audits\n"
    planned = dpaudit("plan", path, "--tag", "renyi", "--tag", "profile")
    assert planned.code == 0
    for told in ("(2, 0.3)-RDP, no", "privacy profile of 3 points, no", "certifier   binned", "epsilon from "):
        assert told in planned.out
    ended = dpaudit("run", path, "--report", "out", "--format", "json,md", "--confidence", "0.95", "--no-progress")
    assert ended.code == 0, ended.out + ended.err
    assert ended.out.count("as expected  REFUTED") == len(FORMS)
    schema = jsonschema.Draft202012Validator(json.loads(dpaudit("validate", "--schema", "result").out))
    for stored in Path("out").glob("*-*.json"):
        schema.validate(json.loads(stored.read_text()))
    report = Path("out", "report.md").read_text()
    assert "PrivacyProfile(curve=\\[(0, 0.2), (0.5, 0.1), (2, 0)\\])" in report
    assert "| profile | REFUTED | REFUTED | 0" in report
    assert "0.0000" not in report


ADAPTED = """
import dpaudit

class Measurement:  # as those of opendp are, from outside
    input_metric, output_measure = "AbsoluteDistance(i32)", "MaxDivergence"

    def __init__(self, loss):
        self.loss, self.input_domain = loss, self

    def member(self, value):
        return True

    def map(self, d_in):
        return self.loss * d_in

    def __call__(self, value):
        return value

measured = dpaudit.adapters.opendp(Measurement)
report = dpaudit.adapters.local(lambda value, rng: value, ["a", "b", "c"], epsilon=1.0)
"""


def test_an_adapted_mechanism_brings_claim_and_pairs_into_a_spec(dpaudit: Run, write: Write, folder: Path) -> None:
    (folder / "adapted.py").write_text(ADAPTED)
    bare = {"claim": None, "pair": None, "expect": '"refuted"'}
    measured = {**bare, "mechanism": '"adapted:measured"', "parameters": "{ loss = 0.5 }"}
    path = write(
        spec(name='"local"', **{**bare, "mechanism": '"adapted:report"'}),
        spec(name='"near"', **{**measured, "pair": "{ first = 0, second = 1 }"}),
    )
    planned = dpaudit("plan", path)
    assert planned.code == 0, planned.err
    left = "the claim of 2 is left to the mechanism, which `dpaudit plan` asks"
    assert dpaudit("validate", path).out == f"spec.toml: 2 audits; {left}\n"
    for told in ("1-DP, local;", "'a' and 'b', 'a' and 'c', 'b' and 'c'", "0.5-DP, no relation stated;"):
        assert told in planned.out
    refused = {
        "the datasets of 'pair' are more than d_in = 1": {**measured, "pair": "{ first = 0, second = 2 }"},
        "more than d_in = 1 apart": {**measured, "claim": "{ epsilon = 1.0 }", "pair": "{ first = 0, second = 2 }"},
        "an audit needs a pair, and Measurement has none": measured,
        "an audit needs a claim, and constant states none": {**bare, "mechanism": '"mechs:constant"'},
    }
    more = write(*(spec(name=f'"{told}"', **keys) for told, keys in refused.items()), name="more.toml")
    ended = dpaudit("run", path, more, "--no-progress")
    assert (ended.code, ended.out.count("as expected  REFUTED")) == (2, 2), ended.out + ended.err
    assert all(ended.out.count(told) >= 2 for told in refused), ended.out
    ended = dpaudit("plan", more)
    assert (ended.code, ended.err.count("the datasets of 'pair' are more than d_in = 1 apart")) == (2, 1)


def test_an_anytime_spec_stops_and_is_checked_again(dpaudit: Run, write: Write, noisy: None) -> None:
    write(spec(claim="{ mu = 0.5 }", stopping='"anytime"', **{**GROSS, "runs": "20_000"}))
    assert "  stopping    anytime: as soon as bets reach a wealth of " in dpaudit("plan", "spec.toml").out
    ended = dpaudit("run", "spec.toml", "--report", "out", "--format", "json,md", "--no-progress")
    assert ended.code == 0, ended.err
    whole = dpaudit("report", str(one_result()), "--format", "txt").out
    assert "stopped there: the claim was refuted before the runs were spent" in whole
    assert "of them to bet on and certify\n" in whole
    assert dpaudit("recheck", str(one_result())).code == 0
    fresh = dpaudit("recheck", str(one_result()), "--fresh", "--no-progress")
    assert fresh.code == 0, fresh.err
    assert "fresh   REFUTED  it: mu >= " in fresh.out


def test_a_pattern_makes_the_pairs_and_the_best_two_are_certified(dpaudit: Run, write: Write, noisy: None) -> None:
    keys = {"pattern": '"one_differs"', "pattern_parameters": "{ queries = 3 }", "certify_pairs": "2"}
    write(spec(**{**GROSS, "mechanism": '"noisy:vector"', "pair": None, "runs": "4_000", **keys}))
    assert "one differs: first up, " in dpaudit("plan", "spec.toml").out
    ended = dpaudit("run", "spec.toml", "--report", "out", "--format", "json,md", "--no-progress")
    assert ended.code == 0, ended.err
    assert "with confidence 0.999, claimed 1\n" in ended.out
    whole = dpaudit("report", str(one_result()), "--format", "txt").out
    assert "2 witnesses were certified, each at an equal part of the error probability" in whole
    assert dpaudit("recheck", str(one_result())).code == 0


def test_power_that_is_not_reached_ends_with_4_and_says_so(dpaudit: Run, write: Write) -> None:
    weak = spec(detect="{ epsilon = 1.05, mass = 0.01 }")
    strong = spec(name='"strong"', detect="{ epsilon = 3.8, mass = 0.5 }")
    write(weak, strong)
    planned = dpaudit("plan", "spec.toml").out
    assert "demanded  epsilon 1.05 at 0.01: OUT OF REACH (exit code 4): give more runs\n" in planned
    assert "demanded  epsilon 3.8 at 0.5: within reach\n" in planned
    ended = dpaudit("run", "spec.toml", "--no-progress")
    assert ended.code == 4
    first, second = (line for line in ended.out.splitlines() if line.startswith("as expected"))
    assert first.endswith("claimed 1; adjacency taken on trust; without the power that the spec demands")
    assert second.endswith("claimed 1; adjacency taken on trust")
    closing = "every verdict as expected, 1 without the power demanded; exit code 4\n"
    assert ended.out.endswith(closing)


def test_controls_are_made_and_told(dpaudit: Run, write: Write, noisy: None) -> None:
    write(spec(mechanism='"noisy:laplace"', pair="{ first = 0.0, second = 1.0 }"))
    assert "  controls    1 repeats" not in dpaudit("plan", "spec.toml", "--controls", "2").out
    ended = dpaudit("run", "spec.toml", "--controls", "2", "--report", "out", "--format", "json,md", "--no-progress")
    assert ended.code == 0, ended.err
    assert ended.out.partition("dpaudit run spec.toml")[2].splitlines()[0].endswith("--controls 2")
    whole = dpaudit("report", str(one_result()), "--format", "txt").out
    assert "an output far away, or a new word: " in whole
    assert "missed at 0.0001 (caught in 0 of 1 audit)" in whole
    assert "a control is the mechanism with a leak put into it" in whole


def test_a_renyi_claim_several_steps_apart_can_be_planned(dpaudit: Run, write: Write) -> None:
    pair = "{ first = 0.0, second = 4.0, distance = 2 }"
    ended = dpaudit("plan", write(spec(claim="{ order = 2.0, epsilon = 0.1 }", pair=pair)))
    assert ended.code == 0, ended.err
    assert "  certifier   unconditional\n" in ended.out
