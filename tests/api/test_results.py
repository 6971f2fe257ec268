"""Results kept, loaded, checked again and run again."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AdjacentPair, InvalidSpec, UnsoundAudit, Verdict
from dpaudit.api.audits import audit
from dpaudit.api.existing import load, recheck, write_report
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms import wrap
from tests.api import mechanisms


@pytest.fixture(scope="module")
def result() -> Any:
    """Half the noise of epsilon 1: refuted surely."""
    return audit(_half, pair=([1, 1], [1]), epsilon=1.0, runs=10_000, n_jobs=1, seed=3)


def _half(rows: Any, rng: Any) -> float:
    return float(len(rows) + rng.laplace(scale=0.5))


def test_a_result_survives_its_file(result: Any, tmp_path: Path) -> None:
    path = result.save(tmp_path / "deep" / "result.json")
    again = load(path)
    assert again.to_dict() == result.to_dict()
    assert again.verdict is Verdict.REFUTED
    assert list(path.parent.iterdir()) == [path]  # no temporary file is left


def test_a_recheck_gives_the_same_certificate(result: Any, tmp_path: Path) -> None:
    assert recheck(result).certificate == result.certificate
    assert recheck(load(result.save(tmp_path / "result.json"))).to_dict() == result.to_dict()


def test_why_a_pair_was_looked_at_is_told_and_is_no_part_of_the_question(result: Any, tmp_path: Path) -> None:
    pair = AdjacentPair([1, 1], [1], reason="one leaves")
    assert pair == AdjacentPair([1, 1], [1])
    found = load(audit(_half, pair=pair, epsilon=1.0, runs=10_000, n_jobs=1, seed=3).save(tmp_path / "result.json"))
    assert (found.spec, found.evidence) == (result.spec, result.evidence)
    assert (
        write_report(found, tmp_path / "result.md").read_text(encoding="utf-8").count("Why this pair: one leaves") == 1
    )
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


@pytest.mark.parametrize("runs", [400, 4_000])
def test_fresh_runs_that_all_fail_are_no_verdict(runs: int) -> None:
    """Their witness is never hit on either side, so it alone does not tell; the first runs are 4, or 20."""
    down = False

    def failing(data: float, rng: Any) -> float:
        if down:
            raise RuntimeError("down")
        return float(data + rng.laplace())

    result = audit(failing, pair=(0.0, 1.0), epsilon=1.0, runs=runs, seed=1, n_jobs=1)
    down = True
    with pytest.raises(UnsoundAudit, match=r"every run on the pair 'pair' raised RuntimeError, .*nothing was compared"):
        recheck(result, failing, fresh=True)


def test_fresh_runs_need_the_mechanism(result: Any) -> None:
    with pytest.raises(InvalidSpec, match="needs the mechanism"):
        recheck(result, fresh=True)


def test_fresh_runs_need_the_datasets(result: Any) -> None:
    large = audit(_half, pair=(list(range(5_000)), list(range(4_999))), epsilon=1.0, runs=400, n_jobs=1)
    with pytest.raises(InvalidSpec, match="by digest only"):
        recheck(large, _half, fresh=True)


@pytest.mark.parametrize(
    "pair",
    [(np.array([1.0, 5.0]), np.array([1.0])), ((1, 1), (1,)), (np.array([1.0, np.nan]), np.array([-np.inf]))],
    ids=["array", "tuple", "not finite"],
)
def test_fresh_runs_see_the_same_kind_of_data(pair: Any, tmp_path: Path) -> None:
    """A list of the values of an array, or of a tuple, is another dataset: a mechanism may tell them apart."""
    seen: list[str] = []

    def telling(data: Any, rng: Any) -> float:
        seen.append(type(data).__name__)
        return float(np.sum(data) + rng.laplace())

    found = audit(telling, pair=pair, epsilon=1.0, runs=400, n_jobs=1)
    kind = type(pair[0]).__name__
    assert set(seen) == {kind}
    for result in (found, load(found.save(tmp_path / "result.json"))):
        seen.clear()
        recheck(result, telling, fresh=True)
        assert set(seen) == {kind}


def test_fresh_runs_of_an_array_mechanism_are_no_fake_verdict() -> None:
    found = audit(mechanisms.total, pair=(np.array([1.0, 5.0]), np.array([1.0])), epsilon=1.0, runs=5_000, n_jobs=1)
    assert found.verdict is Verdict.REFUTED
    with contextlib.suppress(InvalidSpec):
        assert recheck(found, mechanisms.total, fresh=True).verdict is Verdict.REFUTED


@pytest.mark.parametrize("suffix", [".json", ".md", ".txt"])
def test_reports_by_suffix(result: Any, suffix: str, tmp_path: Path) -> None:
    path = write_report(result, tmp_path / f"report{suffix}")
    text = path.read_text(encoding="utf-8")
    assert "REFUTED" in text or "refuted" in text
    if suffix == ".json":
        assert json.loads(text) == json.loads(result.to_json())


def test_an_unknown_format_is_refused(result: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match=r"\.docx"):
        write_report(result, tmp_path / "report.docx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema": "dpaudit.result/1"}', "\x00"], ids=repr)
def test_files_that_hold_no_result(text: str, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(InvalidSpec) as caught:
        load(path)
    assert "result.json" in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match=r"nowhere\.json"):
        load(tmp_path / "nowhere.json")


def test_a_result_that_contradicts_its_counts_is_refused(result: Any, tmp_path: Path) -> None:
    stored = json.loads(result.to_json())
    stored["evidence"]["hits_p"] = stored["evidence"]["hits_q"]
    path = tmp_path / "result.json"
    path.write_text(json.dumps(stored))
    with pytest.raises(InvalidSpec):
        load(path)


def test_a_tampered_certificate_is_found_by_recheck(result: Any) -> None:
    bold = replace(result, certificate=replace(result.certificate, lower=99.0, epsilon_lower=99.0))
    assert recheck(bold).certificate == result.certificate
