"""Anytime audits: blocks, decisions at their ends, the freeze, and what stays the same whoever does the work."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpaudit import batched
from dpaudit.auditing.anytime import Wealth, block_sizes, run_blocks
from dpaudit.auditing.certifying import Outcome
from dpaudit.auditing.question import Question
from dpaudit.catalogue import find
from dpaudit.certify.evidence import CoinFlip
from dpaudit.certify.sequential import log_wealth, p_value
from dpaudit.claims import Claim, GaussianDP, PureDP
from dpaudit.data import AdjacentPair
from dpaudit.execution.engine import Engine
from dpaudit.mechanisms.functions import PerRun
from dpaudit.running.streams import FEWEST, FIRST
from dpaudit.search.goal import Goal
from tests.cases import for_each

CONFIDENCE = 0.95


def response(data: int, runs: int, rng: np.random.Generator, keep: float) -> Any:
    """Randomised response."""
    return np.where(rng.random(runs) < keep, data, 1 - data)


def noisy(data: float, rng: np.random.Generator) -> float:
    """One run of Laplace noise of half the scale."""
    return data + rng.laplace(scale=0.5)


def anytime(
    mechanism: Any,
    pair: tuple[Any, Any],
    claim: Claim,
    *,
    runs: int = 4_000,
    seed: int = 1,
    search_share: float = 0.25,
    engine: Engine | None = None,
) -> Outcome:
    """The blocks of one audit."""
    spec = Question(
        claim=claim,
        mechanism=mechanism,
        pairs=(AdjacentPair(*pair),),
        runs=runs,
        confidence=CONFIDENCE,
        seed=seed,
        stopping="anytime",
        certifier=None,
        search_share=search_share,
    ).resolved()
    goal = Goal(claim, int((1.0 - search_share) * runs), 0.04, spec.certifier.coins)
    with (engine or Engine(1)).session(spec.mechanism, spec.pairs, seed, None) as session:
        session.per_run = isinstance(mechanism, PerRun)
        return run_blocks(spec, session, pair=0, runs=runs, goal=goal)


@for_each(("runs", "freeze"), [(60, 30), (200, 50), (1_000_000, 100_000), (40, 3), (13, 12)])
def test_blocks_make_up_all_runs_and_the_freeze_lies_between_two(runs: int, freeze: int) -> None:
    learning, betting = block_sizes(runs, freeze)
    assert sum(learning) == freeze
    assert sum(betting) == runs - freeze
    assert learning[0] <= FIRST + FEWEST
    assert max(learning) <= 0.12 * freeze + FIRST + FEWEST
    assert all(size >= FEWEST for size in learning[:-1])


def test_a_gross_fault_is_found_in_tens_of_runs_and_the_wealth_is_replayed() -> None:
    """The wealth is that of all blocks, and refutes where their p-value does."""
    claim = PureDP(1.0)
    found = anytime(find("laplace.half_noise"), (10, 9), claim, seed=3)
    blocks = found.blocks
    assert found.counted[0].evidence.runs == 0
    assert found.runs == sum(block.evidence.runs for block in blocks) < 1_500
    assert p_value(blocks, claim) <= 0.01 < p_value(blocks[:-1], claim)
    assert blocks[-1].event == found.counted[0].witness.event
    assert blocks[0].p == blocks[0].q  # before anything was seen
    paths = np.cumsum([float(log_wealth([block], claim)[0]) for block in blocks])
    wealth = Wealth()
    for number, block in enumerate(blocks, start=1):
        wealth = wealth.after(block, claim)
        assert wealth.blocks == blocks[:number]
        assert (wealth.last, wealth.highest) == pytest.approx((paths[number - 1], max(0.0, *paths[:number])))
        value = p_value(wealth.blocks, claim)
        assert wealth.refutes(claim, value)
        assert not wealth.refutes(claim, 0.999 * value)
    lost = wealth.after(replace(blocks[-1], evidence=CoinFlip(0, 400, 400, 400)), claim)
    assert lost.last < wealth.last, "a block that goes against the bet"
    assert lost.highest == wealth.highest
    assert lost.refutes(claim, p_value(blocks, claim)), "a refutation at one end stays"


def test_a_curved_claim_stops_too() -> None:
    def half(data: float, runs: int, rng: np.random.Generator) -> Any:
        return data + 0.5 * rng.standard_normal(runs)

    found = anytime(batched(half), (0.0, 1.0), GaussianDP(1.0), seed=5)
    assert found.counted[0].evidence.runs == 0
    assert found.runs < 2_000


def test_what_is_left_is_fresh_evidence_on_one_event() -> None:
    found = anytime(find("laplace"), (10, 9), PureDP(1.0), seed=2)
    learning, betting = block_sizes(4_000, 1_000)
    assert [block.evidence.runs for block in found.blocks] == [*learning, *betting]
    assert found.counted[0].evidence.runs == 3_000
    assert sum(int(looked.runs.sum()) for looked in found.watched) == 3_000
    ends = np.cumsum(learning)
    assert found.pilot.runs == ends[ends <= 500].max(), "whole blocks, as long as there is room"
    assert found.counted[0].witness.tangent.offset == 0.0
    assert found.explored


def test_late_in_a_long_audit_one_event_is_bet_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpaudit.auditing.anytime.LEARNED_RUNS", 2_000)
    found = anytime(find("laplace"), (10, 9), PureDP(1.0), seed=2)
    ends = np.cumsum([block.evidence.runs for block in found.blocks])
    late = [block for block, end in zip(found.blocks[1:], ends, strict=False) if end > 2_000]
    assert len(late) > 3
    assert len({str(block.event) for block in late}) == 1
    assert found.counted[0].evidence.runs == 3_000


@for_each("search_share", [0.001, 0.9], nightly=[0.02, 0.05])
def test_any_share_may_look_for_the_event(search_share: float) -> None:
    entry = find("report_noisy_max")
    found = anytime(entry, entry.default_pair, PureDP(1.0), search_share=search_share, runs=2_000)
    assert found.runs == 2_000
    assert found.counted[0].evidence.runs == 2_000 - int(2_000 * search_share)


def test_a_bet_is_a_function_of_earlier_blocks() -> None:
    """The first blocks are those of a longer audit too: nothing later, and no total, has a say in a bet."""
    short = anytime(find("laplace"), (10, 9), PureDP(1.0), runs=2_000, seed=4)
    long = anytime(find("laplace"), (10, 9), PureDP(1.0), runs=4_000, seed=4)
    same = [one == other for one, other in zip(short.blocks, long.blocks, strict=False)]
    assert sum(same[:20]) == 20


@pytest.mark.long
@for_each("backend", ["threading"], nightly=[None])
def test_workers_change_nothing(backend: str | None) -> None:
    kinds = (batched(response, keep=0.75), (0, 1), PureDP(1.05)), (PerRun(noisy), (0.0, 1.0), PureDP(1.9))
    for mechanism, pair, claim in kinds:
        one = anytime(mechanism, pair, claim, runs=2_000, search_share=0.5)
        other = anytime(mechanism, pair, claim, runs=2_000, search_share=0.5, engine=Engine(2, backend, task_runs=256))
        assert one.blocks == other.blocks
        assert one.counted[0].evidence == other.counted[0].evidence
        assert one.counted[0].witness == other.counted[0].witness


@pytest.mark.long
def test_a_true_claim_is_rarely_refuted_early() -> None:
    """8 whole audits where the claim is exactly true: at 1 %, more than 3 early stops have a chance below 1e-6."""
    claim, keep = PureDP(1.0), math.e / (1.0 + math.e)
    audits = (anytime(batched(response, keep=keep), (0, 1), claim, runs=800, seed=seed) for seed in range(8))
    stops = sum(each.counted[0].evidence.runs == 0 for each in audits)
    assert float(stats.binom.sf(3, 8, 0.01)) < 1e-6
    assert stops <= 3
