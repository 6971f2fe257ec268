"""The certifiers are an open set: one that this file defines passes every door, and is gone again afterwards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import numpy as np
import pytest

import dpaudit
from dpaudit.auditing.calibration import CalibrationCase, calibrate
from dpaudit.certify import CERTIFIERS, CoinFlip, certifier_named, certifier_names, certify, suited
from dpaudit.certify.coin_flip import CoinFlipCertifier
from dpaudit.claims import PureDP
from dpaudit.cli.group import exit_code
from dpaudit.errors import InvalidSpec
from dpaudit.results.stored import json_schema
from dpaudit.spec import tables as spec_tables
from dpaudit.spec.questions import read_spec

MECHANISM = """
def leak(data, rng):
    return data if rng.random() < 0.75 else 0
"""
AUDIT = """schema = "dpaudit.audit/1"
[[audit]]
name = "a leak"
mechanism = "leaking:leak"
claim = { epsilon = 1.0 }
pair = { first = 1, second = 0 }
certifier = "patient"
detect = { epsilon = 2.0, mass = 0.5 }
runs = 4_000
expect = "refuted"
"""
SWEEP = """schema = "dpaudit.audit/1"
[sweep]
mechanisms = "leaking:leak"
claims = { epsilon = 1.0 }
pairs = { first = 1, second = 0 }
certifiers = ["coin-flip", "patient"]
runs = 2_000
"""


class PatientCertifier(CoinFlipCertifier):
    """That of the coins at a tenth of the error probability: valid, and looser."""

    name, method = "patient", "coin-flip, a tenth of the error probability"

    def suits(self, claim: object, stopping: str) -> bool:
        return False

    def epsilon_lower(self, evidence: CoinFlip, delta: float, alpha: float) -> float:
        return super().epsilon_lower(evidence, delta, alpha / 10.0)

    def p_value(self, evidence: CoinFlip, epsilon: float, delta: float, alpha: float) -> float:
        return min(1.0, 10.0 * super().p_value(evidence, epsilon, delta, alpha))

    def ceiling(self, runs_p: int, runs_q: int, delta: float, alpha: float) -> float:
        return super().ceiling(runs_p, runs_q, delta, alpha / 10.0)


@pytest.fixture
def registered() -> Iterator[None]:
    CERTIFIERS.append(PatientCertifier())
    yield
    CERTIFIERS.pop()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "leaking.py").write_text(MECHANISM)
    (tmp_path / "spec.toml").write_text(AUDIT)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code of a command line, and what it said."""
    capfd.readouterr()
    code = exit_code(list(arguments))
    streams = capfd.readouterr()
    return code, streams.out + streams.err


def leak(data: int, rng: np.random.Generator) -> int:
    return data if rng.random() < 0.75 else 0


@pytest.mark.long
def test_a_certifier_of_ones_own_passes_spec_plan_run_report_and_recheck(
    registered: None, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (question,) = read_spec("spec.toml")
    assert question.outline().resolved().certifier == PatientCertifier()
    assert "patient" in json.dumps(spec_tables.json_schema()["$defs"]["AuditTable"]["properties"]["certifier"])
    assert ran(capfd, "validate", "spec.toml") == (0, "spec.toml: 1 audit\n")
    code, text = ran(capfd, "plan", "spec.toml", "--jobs", "1")
    assert (code, "  certifier   patient\n" in text, "within reach" in text) == (0, True, True), text
    formats = "json,md,html,junit,sarif,csv,txt"
    code, text = ran(capfd, "run", "spec.toml", "--report", "out", "--format", formats, "--jobs", "1", "--no-progress")
    assert code == 0, text
    (stored,) = Path("out").glob("a-leak-*.json")
    jsonschema.Draft202012Validator(json_schema()).validate(json.loads(stored.read_text()))
    result = dpaudit.load(stored)
    assert (result.certifier, result.certificate.method) == ("patient", PatientCertifier.method)
    assert result.verdict is dpaudit.Verdict.REFUTED
    assert result.power_reached
    usual = certify(result.evidence, result.claim, result.certificate.confidence)
    assert 1.0 < result.certificate.lower < usual.lower
    assert result.certificate.p_value == 10.0 * usual.p_value
    assert dpaudit.recheck(result).to_json() == result.to_json()
    assert ran(capfd, "recheck", str(stored))[0] == 0
    code, text = ran(capfd, "recheck", str(stored), "--fresh", "--jobs", "1")
    assert code == 0, text
    for suffix in ("md", "html", "txt", "xml", "sarif", "csv"):
        assert dpaudit.write_report(result, f"one.{suffix}").stat().st_size
    assert "patient" in Path("one.md").read_text()


@pytest.mark.long
def test_a_certifier_of_ones_own_is_swept_calibrated_and_audited_from_python(
    registered: None, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, text = ran(capfd, "sweep", "sweep.toml", "--report", "out", "--jobs", "1")
    assert (code, "2 points: 2 refuted" in text) == (0, True), text
    result = dpaudit.audit(
        leak, pair=(1, 0), epsilon=1.0, certifier="patient", stopping="anytime", runs=4_000, n_jobs=1
    )
    assert result.verdict is dpaudit.Verdict.REFUTED
    (line,) = calibrate((CalibrationCase("PureDP", PureDP(1.0), PatientCertifier()),), repeats=4, runs=400, n_jobs=1)
    assert line.to_dict()["certifier"] == "patient"
    assert suited(PureDP(1.0)).name == "coin-flip"


def test_what_is_not_registered_is_no_certifier(folder: Path) -> None:
    with pytest.raises(InvalidSpec, match=rf"^certifier must be one of {', '.join(certifier_names())}, got 'patient'$"):
        certifier_named("patient")
    with pytest.raises(InvalidSpec, match=rf"audit 'a leak': certifier must be one of {', '.join(certifier_names())},"):
        read_spec("spec.toml")
    assert "patient" not in json.dumps(json_schema())
