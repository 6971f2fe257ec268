"""The forms are an open set: one that this file defines passes every door, and is gone again afterwards."""

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
from dpaudit.base import validate
from dpaudit.base.arrays import Reals
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
runs = 2_000
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


@pytest.fixture
def registered() -> Iterator[None]:
    FORMS.append(BitsDP)
    yield
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


@pytest.mark.long
def test_a_form_of_ones_own_passes_spec_plan_run_report_and_recheck(
    registered: None, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (question,) = read_spec("spec.toml")
    assert question.claim == BitsDP(1.0, Relation.REPLACE_ONE)
    assert "bits" in spec_tables.json_schema()["$defs"]["ClaimTable"]["properties"]
    assert ran(capfd, "validate", "spec.toml") == (0, "spec.toml: 1 audit\n")
    code, output = ran(capfd, "plan", "spec.toml", "--jobs", "1")
    assert (code, "1-bit DP" in output, "bits" in output) == (0, True, True)
    formats = "json,md,html,junit,sarif,csv,txt"
    code, output = ran(
        capfd, "run", "spec.toml", "--report", "out", "--format", formats, "--jobs", "1", "--no-progress"
    )
    assert code == 0, output
    (stored,) = Path("out").glob("a-leak-*.json")
    jsonschema.Draft202012Validator(json_schema()).validate(json.loads(stored.read_text()))
    result = dpaudit.load(stored)
    assert result.claim == question.claim
    assert result.verdict is dpaudit.Verdict.REFUTED
    assert result.spec["certifier"] == "coin-flip"  # as of every promise of a ratio alone
    assert dpaudit.recheck(result).to_json() == result.to_json()
    assert ran(capfd, "recheck", str(stored))[0] == 0
    code, output = ran(capfd, "recheck", str(stored), "--fresh", "--jobs", "1")
    assert code == 0, output
    for suffix in ("md", "html", "txt", "xml", "sarif", "csv"):
        text = dpaudit.write_report(result, f"one.{suffix}").read_text("utf-8")
        assert re.search("BitsDP" if suffix == "csv" else r"bits (&gt;|>)= \d", text), suffix
        output = "bits 1. It promises: no output tells more than 1 bits apart one dataset from its neighbour"
        assert output in text or suffix != "md"


@pytest.mark.long
def test_a_form_of_ones_own_is_swept_and_audited_from_python(
    registered: None, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, text = ran(capfd, "sweep", "sweep.toml", "--report", "out", "--jobs", "1")
    assert "4 points: 4 refuted, 0 not refuted, 0 without verdict" in text, text
    assert (code, "leak(bits=2.0): 2-bit DP refuted, bits >= " in text) == (0, True), text

    def leak(data: int, rng: np.random.Generator) -> int:
        return data if rng.random() < 0.75 else 0

    result = dpaudit.audit(leak, pair=(1, 0), claim=BitsDP(1.0), relation="local", runs=2_000, n_jobs=1)
    assert result.claim.relation is Relation.LOCAL
    assert result.verdict is dpaudit.Verdict.REFUTED
    assert dpaudit.recheck(result, leak, fresh=True).verdict is dpaudit.Verdict.REFUTED


def test_what_is_not_registered_is_no_form(folder: Path) -> None:
    with pytest.raises(InvalidSpec, match=r"claim\.form must be one of PureDP"):
        claim_from_dict(BitsDP(1.0).to_dict())
    with pytest.raises(InvalidSpec, match=r"claim: unknown key 'bits'; known here: epsilon, delta, mu"):
        read_spec("spec.toml")
    assert "StoredBitsDP" not in json_schema()["$defs"]
    with pytest.raises(InvalidSpec, match="claim must be a claim such as"):
        dpaudit.audit(lambda data: data, pair=(1, 0), claim=BitsDP)  # type: ignore[arg-type]
