"""Every form of claim, anytime audits, several certified pairs and bits of floats, through the Python door.

Mechanisms draw from the seeded rng alone, so each test gives the same counts every time. The leaks are so gross that
other streams would fail with a chance far below 1e-6.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import dpaudit
from dpaudit import (
    AdjacentPair,
    ApproximateDP,
    GaussianDP,
    InvalidSpec,
    PrivacyProfile,
    PureDP,
    RenyiDP,
    TradeOffDP,
    Verdict,
    ZeroConcentratedDP,
)
from dpaudit.account import account
from dpaudit.certify import certifier_names
from dpaudit.results.stored import json_schema
from tests.cases import for_each

SCHEMA = jsonschema.Draft202012Validator(json_schema())
MU = 3.0  # what the mechanism loses on (0, 3)


def gaussian(data: float, runs: int, rng: np.random.Generator) -> Any:
    return data + rng.normal(size=runs)


def laplace(data: float, runs: int, rng: np.random.Generator) -> Any:
    return data + rng.laplace(size=runs)


def geometric(data: int, runs: int, rng: np.random.Generator) -> Any:
    return data + rng.geometric(0.6, size=runs) - rng.geometric(0.6, size=runs)


def audited(claim: Any, **options: Any) -> dpaudit.AuditResult:
    mechanism = options.pop("mechanism", gaussian)
    given = {"pair": (0.0, MU), "runs": 3_000, "confidence": 0.95, "n_jobs": 1, **options}
    if "pairs" in given:
        del given["pair"]
    return dpaudit.audit(dpaudit.batched(mechanism), claim=claim, **given)


def survives(result: dpaudit.AuditResult, folder: Path) -> dpaudit.AuditResult:
    """The result from its file: the same in all, its text included, and as the schema says."""
    path = result.save(folder / "result.json")
    SCHEMA.validate(json.loads(path.read_text()))
    loaded = dpaudit.load(path)
    assert loaded.to_dict() == result.to_dict()
    assert str(loaded) == str(result)
    assert dpaudit.recheck(loaded).certificate == result.certificate
    return loaded


@for_each(
    ("claim", "truth"),
    [
        (PureDP(0.5), None),
        (GaussianDP(0.5), MU),
        (RenyiDP(2.0, 0.3), MU**2),
        (ZeroConcentratedDP(0.1, 0.01), MU**2 / 2.0),
        (PrivacyProfile([(0.0, 0.2), (0.5, 0.1), (2.0, 0.0)]), None),
        (TradeOffDP([(0.0, 1.0), (0.2, 0.6), (0.6, 0.2), (1.0, 0.0)]), None),
    ],
    ids=str,
    nightly=[(ApproximateDP(0.5, 1e-3), None), (ZeroConcentratedDP(0.1), MU**2 / 2.0)],
)
def test_every_form_is_refuted_kept_and_repeated(claim: Any, truth: float | None, tmp_path: Path) -> None:
    result = audited(claim, confidence=0.99)
    assert result.verdict is Verdict.REFUTED
    assert truth is None or claim.promised(0.0) < result.certificate.lower < truth
    loaded = survives(result, tmp_path)
    again = dpaudit.recheck(loaded, dpaudit.batched(gaussian), fresh=True)
    assert again.verdict is Verdict.REFUTED
    survives(again, tmp_path / "again")


@pytest.mark.parametrize("claim", [RenyiDP(2.0, 0.3), ZeroConcentratedDP(0.1)], ids=str)
def test_a_bound_from_bins_is_told_in_the_parameter_of_its_claim(claim: Any, tmp_path: Path) -> None:
    result = survives(audited(claim, certifier="binned"), tmp_path)
    text = str(result.explain())
    assert result.evidence.kind == "binned"
    assert result.epsilon_lower is None
    assert "whatever the mechanism is" not in text
    at_order = " at order 2" if claim.parameter == "epsilon" else ""
    assert f"at most {claim.parameter} " in text
    assert f"{at_order}: with all hits on one side" in text
    assert "is likelier" not in text
    assert "the partition into " in text


def test_one_event_of_a_renyi_claim_gives_an_epsilon_at_a_delta_too() -> None:
    text = str(audited(RenyiDP(2.0, 0.3), certifier="unconditional").explain())
    assert " at order 2 with confidence 0.95, claimed 0.3; adjacency taken on trust\n" in text
    assert "whatever the mechanism is: epsilon >= " in text


def test_a_renyi_claim_several_steps_apart_is_audited_by_one_event(tmp_path: Path) -> None:
    pair = AdjacentPair(0.0, MU, distance=2)
    result = survives(audited(RenyiDP(2.0, 0.1), pair=pair), tmp_path)
    assert result.verdict is Verdict.REFUTED
    assert "at most epsilon " in str(result.explain())


def test_an_anytime_audit_stops_is_kept_and_is_repeated(tmp_path: Path) -> None:
    result = audited(GaussianDP(0.5), stopping="anytime", runs=20_000)
    assert result.verdict is Verdict.REFUTED
    assert result.stopped_early
    assert result.runs_used < 2_000
    loaded = survives(result, tmp_path)
    text = str(loaded.explain())
    assert "stopped there: the claim was refuted before the runs were spent" in text
    bets = sum(block.evidence.runs for block in result.blocks)
    assert f"{result.runs_used:,} of 20,000 runs used, {bets:,} of them to bet on and certify\n" in text
    assert "cross-check" not in text  # no runs were counted for the fixed bound: there is nothing to check
    assert "with all hits on one side" not in text
    assert "epsilon >= 0 " not in text
    again = dpaudit.recheck(loaded, dpaudit.batched(gaussian), fresh=True)
    assert (again.verdict, again.blocks, again.spec["stopping"]) == (Verdict.REFUTED, (), "fixed")


def test_an_anytime_audit_that_does_not_stop_says_which_runs_count_twice(tmp_path: Path) -> None:
    result = audited(GaussianDP(MU), stopping="anytime")
    assert result.verdict is Verdict.NOT_REFUTED
    assert not result.stopped_early
    text = str(survives(result, tmp_path).explain())
    assert f"the last {result.evidence.runs:,} of these for the fixed bound" in text
    assert "on runs made after bet or witness was frozen" in text
    assert "cross-check" in text


def test_two_certified_pairs_share_the_error_and_state_it_together(tmp_path: Path) -> None:
    result = audited(GaussianDP(0.5), pairs=[(0.0, 0.1), (0.0, MU), (0.0, 2.5)], certify_pairs=2, runs=6_000)
    loaded = survives(result, tmp_path)
    assert len(loaded.others) == 1
    assert {loaded.witness.pair, loaded.others[0].witness.pair} == {1, 2}
    assert loaded.certificate.confidence == loaded.others[0].certificate.confidence == 0.975
    assert loaded.certificate.p_value <= loaded.others[0].certificate.p_value
    assert loaded.holm[0] == pytest.approx(2.0 * loaded.certificate.p_value)
    text = str(loaded.explain())
    # the best of two is told: both bounds hold together at 0.95, and one of two sound claims falls with 0.05
    assert " with confidence 0.95, claimed 0.5; adjacency taken on trust\n" in text
    assert "and 0.025 or less refutes\n" in text
    assert "a mechanism that keeps its claim is refuted with probability at most 0.05\n" in text
    assert "with confidence 0.975" not in text
    assert 'pair "pair ' in text
    assert "pair pair" not in text


def test_bits_of_floats_are_a_finding_of_their_own(tmp_path: Path) -> None:
    options = {"mechanism": laplace, "pair": (0.0, 1.0), "runs": 100_000, "representation": True}
    result = survives(audited(PureDP(1.0), **options), tmp_path)
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.representation_refuted
    text = str(result.explain())
    assert "REPRESENTATION FINDING: epsilon >= " in text
    assert "were not looked at as such" not in text


def test_integers_have_no_finding_on_bits() -> None:
    options = {"mechanism": geometric, "pair": (0, 1), "runs": 100_000, "representation": True}
    result = audited(PureDP(1.0), **options)
    assert result.verdict is Verdict.NOT_REFUTED
    assert not result.representation_refuted
    assert "REPRESENTATION" not in str(result.explain())
    assert account(result)["representation"].lines[0].startswith("no finding")


def test_a_constant_that_tells_its_dataset_is_refuted_through_processes(tmp_path: Path) -> None:
    result = dpaudit.audit(lambda data: data, pair=(0, 1), epsilon=1.0, runs=600, confidence=0.9, n_jobs=1)
    assert result.verdict is Verdict.REFUTED
    survives(result, tmp_path)
    assert result.evidence.runs < 100
    assert f"each certifying run was made in a fresh process, {result.evidence.runs} in all" in str(result.explain())


@for_each(
    ("options", "message"),
    [
        ({"stopping": "sometimes"}, "stopping must be one of fixed, anytime, got 'sometimes'"),
        ({"certifier": "exact"}, f"certifier must be one of {', '.join(certifier_names())}, got 'exact'"),
        ({"certifier": "binned"}, "certifier 'binned' is for RenyiDP and ZeroConcentratedDP, got the claim 1-GDP"),
        ({"sequential_share": float("nan")}, "sequential_share must be a number, got NaN"),
        ({"certify_pairs": 2}, "certify_pairs must be at most the number of pairs, 1, got 2"),
        ({"detect": {"epsilon": 1.2, "mass": 0.1}}, "detect: the parameter of 1-GDP is mu, got 'epsilon'"),
        ({"detect": {"mu": float("nan"), "mass": 0.1}}, "detect.mu must be a number, got NaN"),
        ({"controls": -1}, "controls must be at least 0, got -1"),
    ],
    ids=lambda given: "" if isinstance(given, str) else "-".join(given),
)
def test_what_cannot_be_asked_is_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        audited(GaussianDP(1.0), **options)
    assert str(caught.value) == message


def test_an_anytime_audit_cannot_have_bins() -> None:
    with pytest.raises(InvalidSpec, match="bets on one event: give certifier 'unconditional', got 'binned'"):
        audited(RenyiDP(2.0, 0.3), stopping="anytime", certifier="binned")
