"""Recorded noise through every door but the shell, whose transcript is `recorded.txt`: a lead decides no verdict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.options import OPTIONS
from dpaudit.results.recorded import NoiseRecord
from dpaudit.spec.questions import Layers, read_spec
from dpaudit.spec.settings import read_settings
from tests.doors.conftest import Write, spec

PAIR, SOUND = ([1.01], []), ([1.0], [])
AUDITED: dict[str, Any] = {"pair": PAIR, "epsilon": 1.0, "runs": 4_000, "n_jobs": 1, "progress": False}


def total(rows: list[float], rng: np.random.Generator, scale: float = 1.0) -> float:
    return sum(rows) + float(rng.laplace(scale=scale))


def test_the_python_door_takes_claim_pair_and_parameters_as_an_audit_does() -> None:
    record = dpaudit.record_noise(total, PAIR, epsilon=1.0)
    assert isinstance(record, NoiseRecord)
    assert record.worst is not None
    assert record.worst.loss == pytest.approx(1.01)
    assert record.description["reference"] == f"{__name__}:total"
    assert record.pair["first"]["value"] == [1.01]
    assert not dpaudit.record_noise(total, PAIR, epsilon=1.0, parameters={"scale": 2.0}).leads
    far = dpaudit.AdjacentPair([1.0, 1.0], [], distance=2)
    assert not dpaudit.record_noise(total, far, claim=dpaudit.PureDP(1.0)).leads
    plain = dpaudit.record_noise(total, PAIR)
    assert (plain.claim, plain.allowed, plain.leads) == (None, None, ())
    assert plain.loss == pytest.approx(1.01)
    own = dpaudit.record_noise(dpaudit.adapters.local(lambda bit, rng: bit + rng.laplace(), [0, 1], 0.5), (0, 1))
    assert own.claim is not None
    assert len(own.leads) == 1
    assert dpaudit.record_noise(total, PAIR, epsilon=1.0) == record


def test_a_question_that_cannot_be_asked_is_refused() -> None:
    for wrong, said in (
        ({"pair": ([1], [1])}, "must differ"),
        ({"delta": 1e-6}, "epsilon"),
        ({"relation": "replace_one", "epsilon": 1.0}, "not at distance 1"),
        ({"runs": 10}, "record_noise has no keyword 'runs'"),
    ):
        with pytest.raises(dpaudit.InvalidSpec, match=said):
            dpaudit.record_noise(total, **{"pair": PAIR, **wrong})


def test_an_audit_keeps_the_record_beside_a_verdict_that_it_does_not_change() -> None:
    plain, told, failed = (dpaudit.audit(total, **AUDITED, leads=leads) for leads in (None, "tell", "fail"))
    assert plain.recorded == ()
    assert [len(each.recorded) for each in (told, failed)] == [1, 1]
    assert (plain.exit_code, told.exit_code, failed.exit_code) == (0, 0, 1)
    for led in (told, failed):
        assert (led.evidence, led.witness, led.certificate) == (plain.evidence, plain.witness, plain.certificate)
        assert (led.runs_used, led.verdict, led.upper, led.bracket) == (plain.runs_used, plain.verdict, None, None)
    assert not dpaudit.audit(total, **{**AUDITED, "pair": SOUND}, leads="fail").led
    with pytest.raises(dpaudit.InvalidSpec, match="leads must be one of tell, fail"):
        dpaudit.audit(total, **AUDITED, leads="loud")


def test_a_record_that_cannot_be_made_costs_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def ended(*given: object, **named: object) -> None:
        raise dpaudit.UnsoundAudit("the process ended")

    monkeypatch.setattr("dpaudit.recording.record.record", ended)
    result = dpaudit.audit(total, **AUDITED, leads="fail")
    assert (result.recorded, result.exit_code) == ((), 0)
    assert "Noise was not recorded: the process for it ended, or there was no time." in str(result)
    with pytest.raises(dpaudit.UnsoundAudit):
        dpaudit.record_noise(total, PAIR)


@pytest.mark.parametrize("stopping", ["fixed", "anytime"])
def test_the_pair_of_a_lead_is_certified_where_nothing_is_beyond_the_claim(stopping: str) -> None:
    pairs = [SOUND, ([1.0, 0.0], [0.0]), PAIR, ([0.0], [1.0])]
    asked = {**AUDITED, "pair": None, "pairs": pairs, "stopping": stopping, "seed": 3}
    witnesses = {leads: dpaudit.audit(total, **asked, leads=leads).witness.pair for leads in (None, "tell")}
    assert witnesses["tell"] == 2
    assert witnesses[None] != 2  # of this seed: else the test shows nothing
    broken = dpaudit.audit(total, **{**asked, "pairs": [*pairs, ([50.0], [])]}, leads="tell")
    assert broken.witness.pair == 4
    assert broken.refuted
    assert [each.pair["name"] for each in broken.recorded] == ["pair 4", "pair 2"]


def test_the_option_is_a_key_of_specs_and_of_the_project(write: Write, folder: Path) -> None:
    name = write(spec(mechanism='"mechs:noisy"', leads='"tell"'), spec(name='"another"', mechanism='"mechs:noisy"'))
    (folder / "pyproject.toml").write_text('[tool.dpaudit]\nleads = "fail"\n')
    project = read_settings(folder).options
    for command, leads in (({}, ["tell", "fail"]), ({"leads": "fail"}, ["fail", "fail"])):
        assert [each.leads for each in read_spec(name, Layers(command, project))] == leads
    with pytest.raises(dpaudit.InvalidSpec, match="leads"):
        read_spec(write(spec(leads='"loud"')))
    asked = {}
    for leads in (None, '"tell"'):
        (question,) = read_spec(write(spec(mechanism='"mechs:noisy"', pair="{ first = 1, second = 0 }", leads=leads)))
        asked[leads] = question.outline().to_dict()
    assert asked[None] | {"leads": "tell"} == asked['"tell"']
    assert "leads" not in asked[None]
    assert OPTIONS["leads"].usual is None


TESTS = """
import pytest

def total(rows, rng):
    return sum(rows) + rng.laplace(scale=1.0)

PAIR = ([1.01], [])

@pytest.mark.dpaudit(leads="fail", epsilon=1.0, runs=4_000)
def test_fails(audit):
    audit(total, pair=PAIR)

@pytest.mark.dpaudit(leads="fail", epsilon=1.0, runs=4_000)
def test_record_fails(audit):
    audit.record(total, PAIR)

def test_project(audit):
    audit(total, pair=PAIR, epsilon=1.0, runs=4_000)

def test_tells(audit):
    assert audit(total, pair=PAIR, epsilon=1.0, runs=4_000, leads="tell").led
    assert audit.record(total, PAIR, epsilon=1.0).worst.loss > 1.0
    with pytest.raises(Exception, match="audit.record has no keyword 'run'"):
        audit.record(total, PAIR, epsilon=1.0, run=3)

@pytest.mark.dpaudit(leads="fail", epsilon=1.0)
def test_sound(audit):
    audit(total, pair=([1.0], []), runs=4_000)
    assert not audit.record(total, ([1.0], [])).leads
"""


def test_a_test_fails_with_the_account_of_the_lead(tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(TESTS)
    (tmp_path / "pyproject.toml").write_text('[tool.dpaudit]\nleads = "fail"\n')
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--no-header", "test_shop.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    said = ended.stdout
    assert ended.returncode == 1, said
    assert "3 failed, 2 passed" in said
    assert "LEAD  test_shop.py::test_fails: " in said
    assert "recorded noise          LEAD, the pair moves output by 1.01 scales of Laplace noise" in said
    assert "LEAD  recorded  total: LEAD, the pair moves output by 1.01 scales" in said
    assert "FAILED test_shop.py::test_fails - LEAD  " in said
    assert "4 audits: 0 refuted, 4 not refuted, 0 without verdict; every verdict as expected, 2 leads by rec" in said
