"""Sentences that once said more than was seen: of few runs, of no random run, of the last bet, of what is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.account.diagnosis import ADVICE
from dpaudit.account.first import cause, finding_lines, to_do
from dpaudit.auditing.probing import _worth_a_start
from dpaudit.claims import PureDP
from dpaudit.results.observations import Histogram
from dpaudit.running.streams import Stage, graded
from dpaudit.running.worker import Probe
from dpaudit.scores.few import Evidence
from tests.golden import example

CALL: dict[str, Any] = {
    "pair": ([1, 2, 3], [1, 2]),
    "epsilon": 1.0,
    "n_jobs": 1,
    "isolation": "none",
    "progress": False,
}


def mostly(rows: Any, rng: Any) -> bool:
    return bool(rng.random() < (0.96 if len(rows) == 3 else 0.03))


def test_an_audit_that_bets_tells_the_counts_that_stand_beside_it_and_not_those_of_its_last_block() -> None:
    result = dpaudit.audit(mostly, stopping="anytime", runs=20_000, seed=0, **CALL)
    assert result.stopped_early
    assert result.typical is not None
    way = 1 if result.witness.p_side == "first" else -1
    (p, q), (runs_p, runs_q) = result.typical.hits[::way], result.typical.runs[::way]
    assert f" in {p} of {runs_p} search runs on the {result.witness.p_side} dataset against {q} of {runs_q}" in cause(
        result
    )
    assert "%" not in cause(result)
    whole = replace(result, typical=None)  # of before: its last block, as counts
    last = result.blocks[-1].evidence
    assert f" in {last.hits_p} of {last.runs_p} runs on the" in cause(whole)


def test_a_share_in_percent_stands_for_a_hundred_runs_at_least() -> None:
    few = replace(example.result().evidence, hits_p=4, runs_p=4, hits_q=0, runs_q=5)
    assert "in 4 of 4 runs on the first dataset against 0 of 5 on the second" in cause(example.result(evidence=few))
    many = replace(few, hits_p=400, runs_p=400, hits_q=0, runs_q=500)
    assert "in 100 % of the runs on the first dataset against 0 % on the second" in cause(example.result(evidence=many))
    assert "in 4 of 4 runs on the first and 0 of 5 runs on the second" in " ".join(
        finding_lines(example.kept(evidence=few))
    )


def seeded(rows: Any, rng: Any) -> bool:
    return bool(np.random.default_rng(len(rows)).random() < 0.99)


def test_where_no_run_was_random_it_is_not_said_that_there_is_nothing_to_do() -> None:
    result = dpaudit.audit(seeded, runs=600, seed=0, **CALL)
    assert not result.refuted
    first, second, *_ = to_do(result)
    assert first.startswith(
        "Look where the noise is drawn: every search run on both datasets gave one and the same output."
    )
    assert "audit more pairs" in first
    assert "no reason to change" not in str(result)
    assert to_do(example.kept())[0].startswith("Nothing: this audit is no reason to change")
    assert second.startswith("Whoever relies on the claim")


def test_the_evidence_of_steps_is_that_of_the_step_that_decides() -> None:
    rng = np.random.default_rng(3)
    steps, canaries = 6, 40
    coins = rng.random((steps, canaries)) < 0.5
    scores = np.where(np.arange(steps)[:, None] < 2, coins + 0.0, rng.random((steps, canaries)))
    seen = Evidence(PureDP(0.5), canaries, 0.05, 0.0, steps=steps).after(scores, coins)
    path = seen.log_path(seen.claim)
    assert path[-1] < path.max()  # the last step is not the one that decides
    assert seen.e_value == pytest.approx(1.0 / seen.p_value)
    assert seen.refuted == (seen.e_value >= 20.0)


@pytest.mark.parametrize("kind", ["location", "keys", "length", "tail", "infinity"])
def test_advice_says_what_is_too_small_where_it_may_be_there_already(kind: str) -> None:
    words = {
        "location": "more noise, or tighter",
        "keys": "is too low",
        "length": "too small",
        "tail": "larger than now",
    }
    assert words.get(kind, "NaN too (it passes min, max and most clips)") in ADVICE[kind][1]


def test_the_start_of_a_program_is_not_taken_for_the_time_of_its_runs() -> None:
    def seen(runs: int, start_s: float, run_s: float) -> Probe:
        return Probe((2.0 * start_s + run_s * runs) / runs, runs, True, False, (None,))  # type: ignore[arg-type]

    for start_s, run_s in ((0.15, 1e-5), (0.15, 1e-3), (1.0, 1e-4)):
        assert _worth_a_start(seen(8, start_s, run_s), seen(2_048, start_s, run_s)) == pytest.approx(
            start_s / run_s, rel=0.01
        )
    assert _worth_a_start(seen(8, 1e-4, 1e-6), seen(2_048, 1e-4, 1e-6)) == 0  # a call, and no start
    assert _worth_a_start(seen(8, 0.0, 0.1), seen(2_048, 0.0, 0.1)) == 0  # slow runs are slow
    sizes = [shard.runs for shard in graded(Stage.CERTIFY, 0, 1_000, 8_192, least=300)]
    assert sizes == [300, 300, 300, 100]


OLD = {
    "feature": "output",
    "edges": (0.0, 1.0),
    "values": (),
    "labels": ("infinite",),
    "runs_first": 100,
    "runs_second": 80,
}


def test_a_file_in_which_infinities_were_counted_twice_is_read_and_holds_them_once(tmp_path: Path) -> None:
    def read(**changes: Any) -> Histogram:
        cells = {"first": (10, 50, 40), "second": (70, 5, 5), "tokens_first": (0,), "tokens_second": (60,)}
        result = example.result(histogram=Histogram(**{**OLD, **cells, **changes}))
        found = dpaudit.load(result.save(tmp_path / "old.json")).histogram
        assert found is not None
        return found

    found = read()
    assert (found.second, found.labels, found.tokens_first, found.tokens_second) == ((70, 5, 5), (), (), ())
    found = read(
        labels=("'w'", "others"), tokens_first=(0, 0), tokens_second=(5, 57), second=(70, 5, 5), runs_second=90
    )
    assert (found.labels, found.tokens_second) == (("'w'", "others"), (5, 5))  # of 57, 52 stood in the bins too
    kept = read(second=(10, 5, 5))  # each once, as now
    assert (kept.labels, kept.tokens_second) == (("infinite",), (60,))
    for wrong in ({"second": (70, 50, 25)}, {"labels": ("'w'",)}, {"edges": (), "values": (0.0, 1.0, 2.0)}):
        with pytest.raises(dpaudit.InvalidSpec, match="do not fit its bins"):
            read(**wrong)
