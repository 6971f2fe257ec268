"""Search over given pairs: the best survive, luck does not, nothing is spent twice, and none of it certifies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from dpaudit import AdjacentPair, ApproximateDP, PureDP, batched
from dpaudit.auditing.question import Plan, Question
from dpaudit.auditing.search_stage import FoundWitness, budget, cautious, find_witness, goal, goal_at, screen
from dpaudit.base.validate import error_probability
from dpaudit.claims import GaussianDP, RenyiDP, ZeroConcentratedDP
from dpaudit.events import Event, Partition
from dpaudit.events.features import Whole
from dpaudit.execution.engine import Engine
from dpaudit.results.result import screening_share
from dpaudit.search.goal import Goal
from dpaudit.search.look import PILOT_RUNS, excess
from dpaudit.search.selection import Proposal
from tests.cases import for_each


def noisy_count(data: float, runs: int, rng: np.random.Generator) -> Any:
    return data + rng.laplace(size=runs)


COUNT = batched(noisy_count)


def candidates(losses: list[float]) -> tuple[AdjacentPair, ...]:
    """Pairs of counts whose losses under Lap(1) are these."""
    return tuple(AdjacentPair(10.0 * j, 10.0 * j + loss, f"pair {j}") for j, loss in enumerate(losses))


def asked(pairs: tuple[AdjacentPair, ...], **changed: Any) -> Plan:
    return Question(
        **{"claim": PureDP(1.0), "mechanism": COUNT, "pairs": pairs, "runs": 40_000, "confidence": 0.95, **changed}
    ).resolved()


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(n_jobs=1) as engine:
        yield engine


def search(engine: Engine, spec: Plan) -> FoundWitness:
    with engine.session(spec.mechanism, spec.pairs, spec.seed, None) as session:
        session.per_run = False
        return find_witness(spec, session, spent=0)


def test_the_share_of_screening_grows_to_six_tenths() -> None:
    shares = [screening_share(pairs) for pairs in range(2, 1_000)]
    assert shares[0] == 0.15
    assert shares[-1] == 0.6
    assert shares == sorted(shares)
    assert screening_share(1) == screening_share(3, 3) == screening_share(2, 3) == 0.0


@pytest.mark.long
@for_each("pairs", [1, 2, 7], nightly=[40])
@for_each("kept", [1, 2])
def test_no_stage_takes_runs_of_another(engine: Engine, pairs: int, kept: int) -> None:
    spec = asked(candidates([0.5] * pairs), runs=4_000, certify_pairs=min(kept, pairs), search_share=0.25)
    plan = budget(spec, spent=100)
    assert plan.screening + plan.searching + spec.certify_pairs * plan.certifying <= spec.runs - 100
    found = search(engine, spec)
    # besides rounding, each pair gets at least two runs
    assert found.runs <= plan.screening + plan.searching + 2 * pairs
    assert found.runs >= 0.9 * (plan.screening + plan.searching) - pairs  # but for those that settle a score


@pytest.mark.long
@for_each("place", [0, 7], nightly=[4])
def test_the_bad_pair_is_kept(engine: Engine, place: int) -> None:
    """Loss 3 among losses 0.5, first judged by about 114 runs a side.

    It goes only when the other side, which hits with probability 0.025, does so as often as that of the others
    (0.30): 18 hits or more, of which the probability is below 1e-9; later rounds see more. So is a witness that
    predicts less than 1.5.
    """
    losses = [0.5] * 8
    losses[place] = 3.0
    found = search(engine, asked(candidates(losses)))
    assert [witness.pair for witness in found.witnesses] == [place]
    assert found.witness.score > 1.5
    entries = [entry for entry in found.explored if entry.what == "pair"]
    assert len(entries) == 8
    assert [entry.name for entry in entries if entry.status == "kept"] == [f"pair {place}"]
    assert all(entry.runs > 0 for entry in entries)


def test_no_pair_is_dropped_before_enough_is_seen_of_it(engine: Engine) -> None:
    """Of 3,000 runs the first round has 9 of each pair, in which no event has hits enough, and half of the pairs went.

    Of 26 runs of each, one of 16 equal pairs shows 13 outputs of one side alone beyond a threshold with probability
    2^-11 at most, so less than once in a hundred; and in all of three seeds once in a million.
    """
    pairs = candidates([0.001] * 16 + [1_000.0])
    found = [search(engine, asked(pairs, runs=3_000, seed=seed)) for seed in range(3)]
    assert 16 in [each.witness.pair for each in found]
    few = search(engine, asked(pairs, runs=1_000))  # 8 runs a pair show nothing: some are seen, and the others go
    dropped = ["dropped in screening round 1" in [entry.status for entry in each.explored] for each in (few, found[0])]
    assert dropped == [True, False]


@pytest.mark.long
def test_the_best_few_each_get_a_witness_in_order(engine: Engine) -> None:
    """Losses 4 and 2 among six of 0.3, about 100 runs a side in the first round and 2,000 in the close look.

    The second would go with 18 hits or more where 6.8 are expected, and another in its place below 13 where 37 are:
    together below 1e-6; so is a close look at it that promises more than the one at loss 4.
    """
    spec = asked(candidates([0.3, 2.0, 0.3, 0.3, 4.0, 0.3, 0.3, 0.3]), certify_pairs=2, runs=60_000)
    found = search(engine, spec)
    assert [witness.pair for witness in found.witnesses] == [4, 1]
    assert len(found.pilots) == 2
    assert all(pilot.runs <= PILOT_RUNS for pilot in found.pilots)
    assert {entry.name.partition(":")[0] for entry in found.explored if entry.what == "feature"} == {"pair 4", "pair 1"}
    assert sum(entry.status == "kept" for entry in found.explored) == 2


def test_several_witnesses_divide_the_error_probability_and_two_directions_do_not() -> None:
    """Either dataset may be the likelier one, and the witness names it: one direction is certified at full level."""
    pairs = candidates([0.5, 0.5, 0.5])
    assert goal(asked(pairs), 0, 1_000).alpha == pytest.approx(0.05)
    several = asked(pairs, certify_pairs=3)
    assert goal(several, 0, 1_000).alpha == pytest.approx(0.05 / 3)
    assert error_probability(several.level) == pytest.approx(0.05 / 3)
    assert budget(several).certifying == (several.runs - budget(several).searching) // 3


def test_a_pair_that_has_enough_outputs_is_counted_on(engine: Engine) -> None:
    """Runs beyond the outputs that are held still judge the pairs."""
    spec = asked(candidates([0.5, 0.9]), runs=400_000)
    with engine.session(spec.mechanism, spec.pairs, spec.seed, None) as session:
        session.per_run = False
        found = screen(spec, session, runs=3 * PILOT_RUNS, certifying=100_000)
    (kept,) = found.looks
    assert kept.now.runs > PILOT_RUNS
    assert kept.now.pilot.runs == PILOT_RUNS
    assert found.runs == 3 * PILOT_RUNS
    assert kept.pair == 1  # 0.4 of loss apart, 24,000 runs a side: some thirty deviations


def test_bins_are_proposed_where_bins_certify(engine: Engine) -> None:
    """A Rényi claim at distance 2 is no Rényi claim any more, so a single event is its witness."""

    @batched
    def normal(data: float, runs: int, rng: np.random.Generator) -> Any:
        return data + rng.normal(size=runs)

    spec = asked((AdjacentPair(0.0, 1.0),), claim=RenyiDP(2.0, 0.2), mechanism=normal, runs=20_000)
    (witness,) = search(engine, spec).witnesses
    assert spec.certifier.name == "binned"
    assert type(witness.event) is Partition
    assert witness.score > 0.2
    assert [goal_at(spec, distance, 100).bins for distance in (1, 2)] == [True, False]
    (witness,) = search(engine, asked((AdjacentPair(0.0, 1.0),), mechanism=normal)).witnesses
    assert type(witness.event) is Event


def test_distance_pays_for_normal_noise_and_not_for_pure_claims() -> None:
    """Faults of 5 %, at the expected counts of the best event: by distance GDP gains on sampling, pure DP loses."""
    runs = 5_000

    def by_distance(claim: Any, p_of: Any, q_of: Any) -> list[float]:
        measured = []
        for distance in (1, 2, 8):
            end = cautious(Goal(claim.at_distance(distance), 20_000, 0.05, coins=False), 2 * runs, 3)
            hits = [np.array([float(round(runs * part(1.05 * distance)))]) for part in (p_of, q_of)]
            (score,) = end.scores(hits[0], hits[1], runs, runs, 1.0).tolist()
            measured.append(excess(claim, distance, candidate(score)))
        return measured

    mu = 0.268
    near, middle, far = by_distance(GaussianDP(mu), lambda k: ndtr(k * mu / 2), lambda k: ndtr(-k * mu / 2))
    assert near < middle < far
    near, middle, far = by_distance(PureDP(1.0), lambda k: 0.5, lambda k: 0.5 * math.exp(-k))
    assert far < min(near, middle)


@for_each("claim", [PureDP(1.0), ApproximateDP(1.0, 1e-5), GaussianDP(1.0), ZeroConcentratedDP(0.5)])
def test_few_runs_and_many_pairs_make_a_pair_look_worse(claim: Any) -> None:
    certifier = "coin-flip" if isinstance(claim, PureDP) else "unconditional"
    end = Goal(claim, 100_000, 0.05, coins=certifier == "coin-flip", bins=certifier == "binned")

    def score(seen: int, pairs: int) -> float:
        judged = cautious(end, seen, pairs)
        side = seen // 2
        (found,) = judged.scores(np.array([0.5 * side]), np.array([0.1 * side]), side, side, 2.5).tolist()
        return float(found)

    by_runs = [score(seen, 100) for seen in (200, 1_000, 10_000, 100_000)]
    by_pairs = [score(1_000, pairs) for pairs in (1_000, 100, 10, 2)]
    assert by_runs == sorted(by_runs)
    assert by_pairs == sorted(by_pairs)
    assert len(set(by_runs)) == len(set(by_pairs)) == 4


def test_what_certification_takes_off_counts_where_it_is_more() -> None:
    end = Goal(PureDP(1.0), 500, 0.001)
    assert cautious(end, 50_000, 2) is end
    assert cautious(end, 100, 1_000).runs == 100


@pytest.mark.long
def test_the_luckiest_of_many_equal_pairs_stays_below_the_bad_one(engine: Engine) -> None:
    """20 pairs of loss 0.5 and one of 2, 20,500 runs: at least 2 of 4 seeds.

    With about 30 runs a side in the first round the bad pair goes below the middle of the others once in 400 (later
    rounds add less), so three seeds of four miss it with probability below 1e-7.
    """
    right = 0
    for seed in range(4):
        losses = [0.5] * 21
        losses[(17 * seed + 5) % 21] = 2.0
        (witness,) = search(engine, asked(candidates(losses), runs=20_500, seed=seed)).witnesses
        right += witness.pair == (17 * seed + 5) % 21
        if right == 2:
            return
    pytest.fail(f"found at {right} seeds")


def candidate(score: float, delta: float = 0.0) -> Proposal:
    return Proposal(Event(Whole()), "first", "any", score, delta)


@for_each("claim", [PureDP(0.5), GaussianDP(0.5), ZeroConcentratedDP(0.3)])
def test_the_same_part_of_the_promise_counts_alike_at_every_distance(claim: Any) -> None:
    measured = [
        excess(claim, distance, candidate(1.2 * claim.at_distance(distance).promised(0.01), 0.01))
        for distance in (1, 2, 5)
    ]
    assert measured == pytest.approx([0.2 * claim.promised(0.01)] * 3)
    assert excess(claim, 4, candidate(claim.at_distance(4).promised(0.0))) == pytest.approx(0.0, abs=1e-9)


def test_no_proposal_and_no_promise_come_last() -> None:
    assert excess(PureDP(1.0), 1, None) == -math.inf
    assert excess(PureDP(0.0), 3, candidate(0.6)) == pytest.approx(0.2)
