"""Every form of claim, anytime audits, several pairs and bits; results kept, loaded, checked again and run again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import dpaudit
from dpaudit import AdjacentPair, InvalidSpec, UnsoundAudit, Verdict
from dpaudit.account import account
from dpaudit.api.audits import audit
from dpaudit.api.existing import recheck
from dpaudit.claims import ApproximateDP, GaussianDP, PrivacyProfile, PureDP, RenyiDP, TradeOffDP, ZeroConcentratedDP
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import wrap
from dpaudit.report import write_report
from dpaudit.results.stored import json_schema, load
from tests.cases import NIGHTLY, for_each

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
    if truth is not None or NIGHTLY:
        again = dpaudit.recheck(loaded, dpaudit.batched(gaussian), fresh=True)
        assert again.verdict is Verdict.REFUTED
        survives(again, tmp_path / "again")


@for_each("claim", [RenyiDP(2.0, 0.3), ZeroConcentratedDP(0.1)], ids=str)
def test_a_bound_from_bins_is_told_in_the_parameter_of_its_claim(claim: Any) -> None:
    result = audited(claim, certifier="binned")
    text = str(result.explain())
    assert (result.evidence.kind, result.epsilon_lower) == ("binned", None)
    at_order = " at order 2" if claim.parameter == "epsilon" else ""
    assert f"at most {claim.parameter} " in text
    assert f"{at_order} can be certified by so many runs, with all hits on one side" in text


def test_one_event_of_a_renyi_claim_gives_an_epsilon_at_a_delta_too_also_several_steps_apart(tmp_path: Path) -> None:
    text = str(audited(RenyiDP(2.0, 0.3), certifier="unconditional").explain())
    assert "whatever the mechanism is: epsilon >= " in text
    result = survives(audited(RenyiDP(2.0, 0.1), pair=AdjacentPair(0.0, MU, distance=2)), tmp_path)
    assert result.verdict is Verdict.REFUTED
    assert "at most epsilon " in str(result.explain())


def test_an_anytime_audit_stops_is_kept_and_is_repeated(tmp_path: Path) -> None:
    loaded = survives(audited(GaussianDP(0.5), stopping="anytime", runs=20_000), tmp_path)
    assert (loaded.verdict, loaded.stopped_early) == (Verdict.REFUTED, True)
    assert loaded.runs_used < 2_000
    bets = sum(block.evidence.runs for block in loaded.blocks)
    told = f"{loaded.runs_used:,} of 20,000 runs used, {bets:,} of them to bet on and certify\n"
    assert told in str(loaded.explain())
    again = dpaudit.recheck(loaded, dpaudit.batched(gaussian), fresh=True)
    assert (again.verdict, again.blocks, again.spec["stopping"]) == (Verdict.REFUTED, (), "fixed")
    whole = survives(audited(GaussianDP(MU), stopping="anytime"), tmp_path)
    assert (whole.verdict, whole.stopped_early) == (Verdict.NOT_REFUTED, False)
    assert f"the last {whole.evidence.runs:,} of these for the fixed bound" in str(whole.explain())


def test_two_certified_pairs_share_the_error_and_state_it_together(tmp_path: Path) -> None:
    result = audited(GaussianDP(0.5), pairs=[(0.0, 0.1), (0.0, MU), (0.0, 2.5)], certify_pairs=2, runs=6_000)
    loaded = survives(result, tmp_path)
    (other,) = loaded.others
    assert {loaded.witness.pair, other.witness.pair} == {1, 2}
    assert loaded.certificate.confidence == other.certificate.confidence == 0.975
    assert loaded.certificate.p_value <= other.certificate.p_value
    assert loaded.holm[0] == pytest.approx(2.0 * loaded.certificate.p_value)
    # the best of two is told: both bounds hold together at 0.95, and one of two sound claims falls with 0.05
    text = str(loaded.explain())
    assert ", claimed 0.5, if the datasets count as neighbours (wrong in at most 1 of 20 such audits)\n" in text
    assert "a mechanism that keeps its claim is refuted with probability at most 0.05\n" in text


def test_bits_of_floats_are_a_finding_of_their_own_and_integers_have_none(tmp_path: Path) -> None:
    options: dict[str, Any] = {"runs": 100_000, "representation": True}
    floats = survives(audited(PureDP(1.0), mechanism=laplace, pair=(0.0, 1.0), **options), tmp_path)
    whole = audited(PureDP(1.0), mechanism=geometric, pair=(0, 1), **options)
    assert {floats.verdict, whole.verdict} == {Verdict.NOT_REFUTED}
    assert (floats.representation_refuted, whole.representation_refuted) == (True, False)
    assert "REPRESENTATION FINDING: epsilon >= " in str(floats.explain())
    assert account(whole)["representation"].lines[0].startswith("no finding")


def test_a_constant_that_tells_its_dataset_is_refuted_through_processes(tmp_path: Path) -> None:
    result = dpaudit.audit(lambda data: data, pair=(0, 1), epsilon=1.0, runs=600, confidence=0.9, n_jobs=1)
    assert result.verdict is Verdict.REFUTED
    survives(result, tmp_path)
    assert result.evidence.runs < 100
    assert f"each certifying run was made in a fresh process, {result.evidence.runs} in all" in str(result.explain())


def test_a_certifier_that_does_not_fit_is_refused_in_one_line() -> None:
    with pytest.raises(InvalidSpec) as caught:
        audited(GaussianDP(1.0), certifier="binned")
    assert str(caught.value) == "certifier 'binned' is for RenyiDP and ZeroConcentratedDP, got the claim 1-GDP"
    with pytest.raises(InvalidSpec, match="bets on one event: give certifier 'unconditional', got 'binned'"):
        audited(RenyiDP(2.0, 0.3), stopping="anytime", certifier="binned")


@pytest.fixture(scope="module")
def result() -> Any:
    """Half the noise of epsilon 1: refuted surely."""
    return audit(_half, pair=([1, 1], [1]), epsilon=1.0, runs=10_000, n_jobs=1, seed=3)


def _half(rows: Any, rng: Any) -> float:
    return float(len(rows) + rng.laplace(scale=0.5))


def test_a_result_survives_its_file_and_its_recheck(result: Any, tmp_path: Path) -> None:
    path = result.save(tmp_path / "deep" / "result.json")
    again = load(path)
    assert again.to_dict() == recheck(again).to_dict() == result.to_dict()
    assert again.verdict is Verdict.REFUTED
    assert list(path.parent.iterdir()) == [path]  # no temporary file is left
    with pytest.raises(InvalidSpec, match=r"nowhere\.json"):
        load(tmp_path / "nowhere.json")


def test_why_a_pair_was_looked_at_is_told_and_is_no_part_of_the_question(result: Any, tmp_path: Path) -> None:
    pair = AdjacentPair([1, 1], [1], reason="one leaves")
    assert pair == AdjacentPair([1, 1], [1])
    found = load(audit(_half, pair=pair, epsilon=1.0, runs=10_000, n_jobs=1, seed=3).save(tmp_path / "result.json"))
    assert (found.spec, found.evidence) == (result.spec, result.evidence)
    report = write_report(found, tmp_path / "result.md").read_text(encoding="utf-8")
    assert report.count("Why this pair: one leaves") == 1
    assert "why     one leaves" in str(found.explain())
    with Engine(1, supervised=True) as engine:  # as the command line has it
        assert [each.reason for each in engine.describe(wrap("statistics:mean"), (pair,))[1]] == ["one leaves"]


def test_fresh_runs_repeat_the_witness(result: Any) -> None:
    """A sure refutation stays one; fresh runs differ from the stored ones, all of them certify."""
    again = recheck(result, _half, fresh=True)
    assert again.verdict is Verdict.REFUTED
    assert again.witness == result.witness
    assert again.evidence != result.evidence
    assert again.spec["seed"] == result.spec["seed"] + 1
    assert again.evidence.runs > result.evidence.runs
    assert again.runs_used <= result.spec["runs"]


def test_fresh_runs_are_new_to_whoever_audited_with_any_seed() -> None:
    """Their streams are no audit's. Equal doubles of independent streams: chance 1e-9."""
    drawn: list[float] = []

    def drawing(data: int, rng: Any) -> float:
        drawn.append(float(rng.random()))
        return data + drawn[-1]

    result = audit(drawing, pair=(0, 1), epsilon=1.0, runs=600, n_jobs=1)
    audit(drawing, pair=(0, 1), epsilon=1.0, runs=600, n_jobs=1, seed=1)
    seen = set(drawn)
    drawn.clear()
    again = recheck(result, drawing, fresh=True)
    assert again.spec["seed"] == 1
    assert drawn
    assert not seen & set(drawn)
    assert "dpaudit.recheck(result, mechanism, fresh=True)  # of the result with seed 0" in str(again)


@for_each("runs", [400, 4_000])
def test_fresh_runs_that_all_fail_are_no_verdict(runs: int) -> None:
    """Their witness is never hit on either side, so it alone does not tell; the first runs are 4, or 20."""
    down = False

    def failing(data: float, rng: Any) -> float:
        if down:
            raise RuntimeError("down")
        return float(data + rng.laplace())

    result = audit(failing, pair=(0.0, 1.0), epsilon=1.0, runs=runs, seed=1, n_jobs=1)
    down = True
    with pytest.raises(
        UnsoundAudit, match=r"every run on the pair 'pair' raised RuntimeError, .*so there is no verdict"
    ):
        recheck(result, failing, fresh=True)


def test_fresh_runs_need_the_mechanism_and_the_datasets(result: Any) -> None:
    with pytest.raises(InvalidSpec, match="needs the mechanism"):
        recheck(result, fresh=True)
    large = audit(_half, pair=(list(range(5_000)), list(range(4_999))), epsilon=1.0, runs=400, n_jobs=1)
    with pytest.raises(InvalidSpec, match="by digest only"):
        recheck(large, _half, fresh=True)


@for_each(
    "pair",
    [(np.array([1.0, 5.0]), np.array([1.0])), ((1, 1), (1,)), (np.array([1.0, np.nan]), np.array([-np.inf]))],
)
def test_fresh_runs_see_the_same_kind_of_data(pair: Any, tmp_path: Path) -> None:
    """A list of the values of an array, or of a tuple, is another dataset: a mechanism may tell them apart."""
    seen: list[str] = []

    def telling(data: Any, rng: Any) -> float:
        seen.append(type(data).__name__)
        return float(np.sum(data) + rng.laplace())

    found = audit(telling, pair=pair, epsilon=1.0, runs=400, n_jobs=1)
    recheck(load(found.save(tmp_path / "result.json")), telling, fresh=True)
    assert set(seen) == {type(pair[0]).__name__}


def test_a_tampered_certificate_is_found_by_recheck(result: Any) -> None:
    bold = replace(result, certificate=replace(result.certificate, lower=99.0, epsilon_lower=99.0))
    assert recheck(bold).certificate == result.certificate
