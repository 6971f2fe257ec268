"""Forms and certifiers are open sets: one of each that this file defines passes every door, and is gone afterwards."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import jsonschema
import numpy as np
import pytest

import dpaudit
from dpaudit.auditing.calibration import CalibrationCase, calibrate
from dpaudit.base import validate
from dpaudit.base.arrays import Reals
from dpaudit.certify import CERTIFIERS, CoinFlip, certifier_named, certifier_names, certify, suited
from dpaudit.certify.coin_flip import CoinFlipCertifier
from dpaudit.claims import FORMS, Claim, HalfPlane, PureDP, Relation, claim_from_dict, key
from dpaudit.cli.group import exit_code
from dpaudit.errors import InvalidSpec
from dpaudit.results.stored import json_schema
from dpaudit.spec import tables as spec_tables
from dpaudit.spec.questions import read_spec

NAT = math.log(2.0)  # of a bit
MECHANISM = """
def leak(data, rng, bits=4.0):
    return data if rng.random() < 0.75 else 0
"""
AUDIT = """schema = "dpaudit.audit/1"
[[audit]]
name = "a leak"
mechanism = "leaking:leak"
claim = { bits = 1.0 }
relation = "replace_one"
pair = { first = 1, second = 0 }
certifier = "patient"
detect = { bits = 2.0, mass = 0.5 }
runs = 6_000
expect = "refuted"
"""
SWEEP = """schema = "dpaudit.audit/1"
[sweep]
name = "leaks"
mechanisms = "leaking:leak"
parameters = { bits = [0.5, 2.0] }
claims = [{ bits = "bits" }, { bits = 1.0 }]
pairs = { first = 1, second = 0 }
certifiers = ["patient"]
runs = 1_000
"""


@dataclass(frozen=True, slots=True)
class BitsDP(Claim):
    """Pure differential privacy with its loss counted in bits: P(S) <= 2^bits Q(S)."""

    bits: float = field(metadata=key("the loss in bits", validate.not_negative, ge=0.0))
    relation: Relation | None = field(default=None)

    example: ClassVar[tuple[Any, ...]] = (1.0,)
    form: ClassVar[str] = "BitsDP"
    parameter: ClassVar[str] = "bits"
    pure: ClassVar[bool] = True

    @property
    def natural(self) -> PureDP:
        """The same in nats."""
        return PureDP(self.bits * NAT, self.relation)

    def max_probability(self, q: float) -> float:
        return self.natural.max_probability(q)

    def tangent(self, q: float) -> HalfPlane:
        return self.natural.tangent(q)

    def epsilon_at(self, delta: float) -> float:
        return self.natural.epsilon_at(delta)

    def delta_at(self, epsilon: float) -> float:
        return self.natural.delta_at(epsilon)

    def lower(self, epsilon: float, delta: float) -> float:
        return self.natural.lower(epsilon, delta) / NAT * (1.0 - 1e-12)

    def least_parameter(self, q: Reals, p: Reals) -> Reals:
        return np.asarray(self.natural.least_parameter(q, p) / NAT)

    def delta_through(self, q: float, p: float) -> float:
        return 0.0

    def of_groups(self, k: int) -> BitsDP:
        return BitsDP(k * self.bits, self.relation)

    def promise(self, other: str) -> str:
        return f"no output tells more than {self.bits:g} bits apart one dataset from {other}"

    def __str__(self) -> str:
        return f"{self.bits:g}-bit DP"


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
    FORMS.append(BitsDP)
    CERTIFIERS.append(PatientCertifier())
    yield
    CERTIFIERS.pop()
    FORMS.remove(BitsDP)


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
def test_ones_own_passes_spec_plan_run_report_and_recheck(
    registered: None, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (question,) = read_spec("spec.toml")
    assert question.claim == BitsDP(1.0, Relation.REPLACE_ONE)
    assert question.outline().resolved().certifier == PatientCertifier()
    tables = spec_tables.json_schema()["$defs"]
    assert "bits" in tables["ClaimTable"]["properties"]
    assert "patient" in json.dumps(tables["AuditTable"]["properties"]["certifier"])
    assert ran(capfd, "validate", "spec.toml") == (0, "spec.toml: 1 audit\n")
    code, text = ran(capfd, "plan", "spec.toml", "--jobs", "1")
    assert (code, "  certifier   patient\n" in text, "within reach" in text) == (0, True, True), text
    assert "1-bit DP" in text
    formats = "json,md,html,junit,sarif,csv,txt"
    code, text = ran(capfd, "run", "spec.toml", "--report", "out", "--format", formats, "--jobs", "1", "--no-progress")
    assert code == 0, text
    (stored,) = Path("out").glob("a-leak-*.json")
    jsonschema.Draft202012Validator(json_schema()).validate(json.loads(stored.read_text()))
    result = dpaudit.load(stored)
    assert (result.claim, result.verdict) == (question.claim, dpaudit.Verdict.REFUTED)
    assert (result.certifier, result.certificate.method) == ("patient", PatientCertifier.method)
    assert result.power_reached
    usual = certify(result.evidence, result.claim, result.certificate.confidence)
    assert 1.0 < result.certificate.lower < usual.lower
    assert result.certificate.p_value == 10.0 * usual.p_value
    assert dpaudit.recheck(result).to_json() == result.to_json()
    assert ran(capfd, "recheck", str(stored))[0] == 0
    code, text = ran(capfd, "recheck", str(stored), "--fresh", "--jobs", "1")
    assert code == 0, text
    promise = "bits 1. It promises: no output tells more than 1 bits apart one dataset from its neighbour"
    for suffix in ("md", "html", "txt", "xml", "sarif", "csv"):
        text = dpaudit.write_report(result, f"one.{suffix}").read_text("utf-8")
        assert re.search("BitsDP" if suffix == "csv" else r"bits (&gt;|>)= \d", text), suffix
        assert suffix != "md" or (promise in text and "patient" in text)


@pytest.mark.long
def test_ones_own_is_swept_calibrated_and_audited_from_python(
    registered: None, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, text = ran(capfd, "sweep", "sweep.toml", "--report", "out", "--jobs", "1")
    assert "4 points: 4 refuted, 0 not refuted, 0 without verdict" in text, text
    assert (code, "leak(bits=2.0): 2-bit DP REFUTED, bits >= " in text) == (0, True), text
    asked: dict[str, Any] = {"pair": (1, 0), "claim": BitsDP(1.0), "relation": "local", "runs": 2_000, "n_jobs": 1}
    result = dpaudit.audit(leak, **asked)
    assert (result.claim.relation, result.verdict) == (Relation.LOCAL, dpaudit.Verdict.REFUTED)
    assert result.spec["certifier"] == suited(BitsDP(1.0)).name == "coin-flip"  # as of every promise of a ratio alone
    assert dpaudit.recheck(result, leak, fresh=True).verdict is dpaudit.Verdict.REFUTED
    patient = dpaudit.audit(leak, certifier="patient", stopping="anytime", **asked)
    assert patient.verdict is dpaudit.Verdict.REFUTED
    (line,) = calibrate((CalibrationCase("PureDP", PureDP(1.0), PatientCertifier()),), repeats=4, runs=400, n_jobs=1)
    assert line.to_dict()["certifier"] == "patient"


def test_what_is_not_registered_is_none(folder: Path) -> None:
    with pytest.raises(InvalidSpec, match=r"claim\.form must be one of PureDP"):
        claim_from_dict(BitsDP(1.0).to_dict())
    with pytest.raises(InvalidSpec, match=r"claim: unknown key 'bits'; known here: epsilon, delta, mu"):
        read_spec("spec.toml")
    with pytest.raises(InvalidSpec, match="claim must be a claim such as"):
        dpaudit.audit(lambda data: data, pair=(1, 0), claim=BitsDP)  # type: ignore[arg-type]
    with pytest.raises(InvalidSpec, match=rf"^certifier must be one of {', '.join(certifier_names())}, got 'patient'$"):
        certifier_named("patient")
    Path("spec.toml").write_text(AUDIT.replace("bits", "epsilon"))
    with pytest.raises(InvalidSpec, match=rf"audit 'a leak': certifier must be one of {', '.join(certifier_names())},"):
        read_spec("spec.toml")
    stored = json_schema()
    assert "StoredBitsDP" not in stored["$defs"]
    assert "patient" not in json.dumps(stored)
